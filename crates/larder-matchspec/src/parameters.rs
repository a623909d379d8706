//! Specifications with parameters: compiled once, and run with other values each time.
//!
//! `{bind, N}` stands for the Nth value, wherever a term may stand that is compared with or built
//! of: in a head, in a guard, in a body. A [`Prepared`] specification is code whose arguments are
//! these values; [`Prepared::bind`] gives the program.
//!
//! ```text
//!   [{{{user,{bind,1}},'$1'}, [{'>','$1',{bind,2}}], [{{'$1',{const,{bind,1}}}}]}]
//!   [{{      ?        ,'$1'}, [{'>','$1',   ?    }], [{{'$1',{const,{bind,1}}}}]}]    its template
//!       {user, value 1}                 value 2                                       what fills it
//! ```
//!
//! 1. A value is a constant, whatever it is: `'_'`, `'$1'` and tuples in it are themselves.
//! 2. In a head, each largest part without a variable, `'_'`, a map and a parameter as a list's
//!    tail is one argument, which is put together when it is bound: so keys are bound that have a
//!    parameter inside.
//! 3. `{bind, N}` is no parameter where no expression can stand: in `{const,X}`, and as the inner
//!    tuple of double braces. There it is the tuple.
//! 4. Everything else stays in the template as it is: constants that don't change are compiled in.

use crate::{
    code::Code,
    constant::{Arguments, Class},
    error::{CompileError, Fault},
    program::Program,
    raw,
    source::{Map, Source},
    template::{Hole, Template},
    wire::{self, Head},
};
use larder_term::{atoms, tags, Term, TermRef};
use smallvec::SmallVec;
use std::sync::Arc;

/// The most parameters that a specification has.
const MOST: i64 = 255;

/// A match specification with parameters, compiled. It is immutable and may be shared by any number
/// of threads.
#[derive(Debug, Clone)]
pub struct Prepared {
    code: Arc<Code>,
    /// What becomes of the values, by argument.
    fills: SmallVec<[Fill; 4]>,
    count: usize,
}

/// What an argument is made of.
#[derive(Debug, Clone)]
enum Fill {
    /// A value, by its place.
    Value(usize),
    /// A term around some.
    Built(Vec<Piece>),
}

/// A part of an argument, as bytes.
#[derive(Debug, Clone)]
enum Piece {
    Raw(Vec<u8>),
    Value(usize),
}

/// The value of a parameter.
#[derive(Debug, Clone, Copy)]
pub enum Value<'a> {
    /// An integer.
    Int(i64),
    /// Any term.
    Term(TermRef<'a>),
}

/// The values that a specification is bound to.
pub trait Values {
    /// What can be wrong with one.
    type Error;

    /// The value at a place, from 0. It may be asked for several times, or not at all.
    ///
    /// # Errors
    /// If it can't be read.
    fn value(&mut self, place: usize) -> Result<Value<'_>, Self::Error>;
}

impl Values for &[Term] {
    type Error = std::convert::Infallible;

    fn value(&mut self, place: usize) -> Result<Value<'_>, Self::Error> {
        Ok(Value::Term(self[place].as_ref()))
    }
}

/// More or fewer values than a specification has parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WrongCount {
    /// How many parameters it has.
    pub parameters: usize,
    /// How many values were given.
    pub values: usize,
}

impl std::error::Error for WrongCount {}

impl std::fmt::Display for WrongCount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { parameters, values } = *self;
        if values < parameters {
            write!(f, "{{bind, {}}} has no value: ", values + 1)?;
        }
        let s = |n: usize| if n == 1 { "" } else { "s" };
        write!(
            f,
            "the specification has {parameters} parameter{}, and {values} value{} given",
            s(parameters),
            if values == 1 { " is" } else { "s are" },
        )
    }
}

impl Prepared {
    /// Compiles a match specification: a list of `{Head, [Guard], [Body]}` with parameters in it.
    /// Their numbers count from 1 to 255; a number that is left out has a value of no use.
    ///
    /// # Errors
    /// As [`Program::compile`]; for a parameter that has another number, that is a whole head, or
    /// that is inside of a map in a key of a map in a head.
    ///
    /// # Complexity
    /// As [`Program::compile`].
    pub fn compile(spec: TermRef<'_>) -> Result<Prepared, CompileError> {
        let held = Term::from(spec);
        let whole = Template::whole(held.bytes());
        let map = Map::of(&whole.bytes);
        let source = Source::new(&whole, &map);
        let mut reader = Reader {
            source,
            marks: marks(&source),
            template: Template::new(),
            fills: SmallVec::new(),
            count: 0,
        };
        reader.spec()?;
        let (template, fills, count) = (reader.template, reader.fills, reader.count);
        let code = Arc::new(Code::of_prepared(template, held)?);
        Ok(Prepared { code, fills, count })
    }

    /// How many values it wants: the greatest number of a parameter.
    pub fn parameters(&self) -> usize {
        self.count
    }

    /// The program that has these values for its parameters, `given` of them.
    ///
    /// # Errors
    /// [`WrongCount`], or what reading a value gives.
    ///
    /// # Complexity
    /// Linear in the values. Nothing is compiled, and nothing of the specification copied but what
    /// lies around a parameter in a head.
    #[inline]
    pub fn bind<V: Values>(
        &self,
        given: usize,
        values: &mut V,
    ) -> Result<Program, Unbound<V::Error>> {
        if given != self.count {
            return Err(Unbound::Count(WrongCount {
                parameters: self.count,
                values: given,
            }));
        }
        let mut arguments = Arguments::new();
        for fill in &self.fills {
            match fill {
                Fill::Value(place) => match values.value(*place).map_err(Unbound::Value)? {
                    Value::Int(n) => arguments.push_int(n),
                    Value::Term(term) => arguments.push(term),
                },
                Fill::Built(pieces) => {
                    build(pieces, values, &mut arguments).map_err(Unbound::Value)?;
                }
            }
        }
        Ok(Program {
            code: Arc::clone(&self.code),
            arguments,
        })
    }
}

/// Why values don't make a program of a specification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unbound<E> {
    /// There are more or fewer than it wants.
    Count(WrongCount),
    /// One can't be read.
    Value(E),
}

/// Adds the argument that pieces make.
fn build<V: Values>(
    pieces: &[Piece],
    values: &mut V,
    arguments: &mut Arguments,
) -> Result<(), V::Error> {
    let mut bytes: SmallVec<[u8; 64]> = SmallVec::new();
    // The counts of handles in values, until the arguments have their own.
    let mut held = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Raw(raw) => bytes.extend_from_slice(raw),
            Piece::Value(place) => match values.value(*place)? {
                Value::Int(n) => bytes.extend_from_slice(wire::Short::int(n).bytes()),
                Value::Term(term) => {
                    bytes.extend_from_slice(term.bytes());
                    if term.has_handles() {
                        held.push(Term::from(term));
                    }
                }
            },
        }
    }
    arguments.push(raw::whole(&bytes));
    drop(held);
    Ok(())
}

/// A tuple `{bind, N}`.
#[derive(Clone, Copy)]
struct Mark {
    at: usize,
    end: usize,
    number: i64,
    /// Whether it is the tail of a list: its value may be more of that list.
    is_tail: bool,
}

/// The number of the parameter that the term at `at` would be, where one can stand.
pub(crate) fn number(source: &Source<'_>, at: usize) -> Option<i64> {
    if source.head(at) != Head::Tuple(2) {
        return None;
    }
    let mut parts = source.each(at);
    let (name, number) = (parts.next()?, parts.next()?);
    (source.atom(name) == Some(atoms::BIND)).then(|| wire::int(source.term(number)))?
}

/// All of them, by place.
fn marks(source: &Source<'_>) -> Vec<Mark> {
    let tails = source.compounds().filter_map(|at| match source.head(at) {
        Head::Improper(n) => source.each(at).nth(n),
        _ => None,
    });
    let mut tails: Vec<usize> = tails.collect();
    tails.sort_unstable();
    let each = source.compounds().filter_map(|at| {
        Some(Mark {
            at,
            end: source.end(at),
            number: number(source, at)?,
            is_tail: tails.binary_search(&at).is_ok(),
        })
    });
    each.collect()
}

/// Copies a specification to a template, but for what depends on parameters.
struct Reader<'a> {
    source: Source<'a>,
    marks: Vec<Mark>,
    template: Template,
    fills: SmallVec<[Fill; 4]>,
    count: usize,
}

/// What is to be read next: each term is read where the one before it ends.
enum Task {
    /// A part of a head.
    Pattern(usize),
    /// A key of a map in a head.
    MapKey(usize),
    /// A guard, a body expression, a part of one, or a list of such.
    Expression(usize),
    /// A term in which nothing is a parameter.
    Plain(usize),
}

type Tasks = SmallVec<[Task; 8]>;

/// What is to be read next, in this order.
fn read_all(tasks: &mut Tasks, parts: impl Iterator<Item = Task>) {
    let first = tasks.len();
    tasks.extend(parts);
    tasks[first..].reverse();
}

impl Reader<'_> {
    /// Reads the whole. What is no specification is copied as it is, for the compiler to refuse.
    fn spec(&mut self) -> Result<(), CompileError> {
        let (source, end) = (self.source, self.source.end(0));
        if self.marks.is_empty() || !matches!(source.head(0), Head::List(_)) {
            self.copy(0, end);
            return Ok(());
        }
        self.head_of(0);
        for (index, at) in source.each(0).enumerate() {
            self.clause(at).map_err(|fault| fault.in_clause(index))?;
        }
        Ok(())
    }

    fn clause(&mut self, at: usize) -> Result<(), Fault> {
        let parts = match self.source.tuple(at) {
            Some(parts) if parts.len() == 3 => parts,
            _ => {
                self.copy(at, self.source.end(at));
                return Ok(());
            }
        };
        if number(&self.source, parts[0]).is_some() {
            return Err(Fault::ParameterAsHead);
        }
        self.head_of(at);
        let mut tasks = Tasks::new();
        read_all(
            &mut tasks,
            [
                Task::Pattern(parts[0]),
                Task::Expression(parts[1]),
                Task::Expression(parts[2]),
            ]
            .into_iter(),
        );
        while let Some(task) = tasks.pop() {
            let at = match task {
                Task::Pattern(at) | Task::MapKey(at) | Task::Expression(at) | Task::Plain(at) => at,
            };
            if self.marks_in(at).is_empty() {
                self.copy(at, self.source.end(at));
                continue;
            }
            match task {
                Task::Pattern(_) => self.pattern(at, at == parts[0], &mut tasks)?,
                Task::MapKey(_) if self.source.has_map(at) || !self.is_plain(at) => {
                    return Err(Fault::ParameterInMapKey)
                }
                Task::MapKey(_) => self.argument(at)?,
                Task::Expression(_) => self.expression(at, &mut tasks)?,
                Task::Plain(_) => self.copy(at, self.source.end(at)),
            }
        }
        Ok(())
    }

    /// A part of a head with a parameter in it.
    fn pattern(&mut self, at: usize, is_head: bool, tasks: &mut Tasks) -> Result<(), Fault> {
        let source = self.source;
        if !is_head && source.is_ground(at) && self.is_plain(at) {
            return self.argument(at);
        }
        self.head_of(at);
        let is_map = matches!(source.head(at), Head::Map(_));
        let parts = source.each(at).enumerate();
        read_all(
            tasks,
            parts.map(|(index, at)| match is_map && index % 2 == 0 {
                true => Task::MapKey(at),
                false => Task::Pattern(at),
            }),
        );
        Ok(())
    }

    /// A part of a guard or a body with a parameter in it.
    fn expression(&mut self, at: usize, tasks: &mut Tasks) -> Result<(), Fault> {
        let source = self.source;
        if number(&source, at).is_some() {
            return self.argument(at);
        }
        let is_tuple = matches!(source.head(at), Head::Tuple(_));
        let parts = source.parts(at);
        match parts[..] {
            // Double braces: the inner tuple is no expression, its elements are.
            [inner] if is_tuple && matches!(source.head(inner), Head::Tuple(_)) => {
                self.head_of(at);
                self.head_of(inner);
                read_all(tasks, source.each(inner).map(Task::Expression));
            }
            // A call, whose name is one, or a constant.
            [name, ..] if is_tuple => {
                self.head_of(at);
                let is_constant = source.atom(name) == Some(atoms::CONST);
                let operand = if is_constant {
                    Task::Plain
                } else {
                    Task::Expression
                };
                let operands = parts[1..].iter().map(|&at| operand(at));
                read_all(tasks, std::iter::once(Task::Plain(name)).chain(operands));
            }
            _ => {
                self.head_of(at);
                read_all(tasks, parts.iter().map(|&at| Task::Expression(at)));
            }
        }
        Ok(())
    }

    /// Leaves a hole for a term that is a parameter, or ground but for some.
    fn argument(&mut self, at: usize) -> Result<(), Fault> {
        let marks: SmallVec<[Mark; 4]> = self.marks_in(at).into();
        for mark in &marks {
            if !(1..=MOST).contains(&mark.number) {
                return Err(Fault::ParameterNumber(mark.number));
            }
            self.count = self.count.max(mark.number as usize);
        }
        let place = |mark: &Mark| mark.number as usize - 1;
        let fill = match marks[..] {
            [mark] if mark.at == at => Fill::Value(place(&mark)),
            _ => {
                let (mut pieces, mut from) = (Vec::new(), at);
                for mark in &marks {
                    pieces.push(Piece::Raw(self.source.bytes(from, mark.at).to_vec()));
                    pieces.push(Piece::Value(place(mark)));
                    from = mark.end;
                }
                let end = self.source.end(at);
                pieces.push(Piece::Raw(self.source.bytes(from, end).to_vec()));
                Fill::Built(pieces)
            }
        };
        self.template.holes.push(Hole {
            at: self.template.bytes.len() as u32,
            class: Class::Other,
        });
        self.template.bytes.push(tags::NIL);
        self.fills.push(fill);
        Ok(())
    }

    /// Whether a term's bytes are those of its parts: no parameter in it is the tail of a list.
    fn is_plain(&self, at: usize) -> bool {
        let is_inner_tail = |mark: &Mark| mark.is_tail && mark.at != at;
        !self.marks_in(at).iter().any(is_inner_tail)
    }

    /// The tuples `{bind, N}` in a term.
    fn marks_in(&self, at: usize) -> &[Mark] {
        let first = self.marks.partition_point(|mark| mark.at < at);
        let end = self.source.end(at);
        let count = self.marks[first..].partition_point(|mark| mark.at < end);
        &self.marks[first..first + count]
    }

    fn copy(&mut self, from: usize, to: usize) {
        let bytes = self.source.bytes(from, to);
        self.template.bytes.extend_from_slice(bytes);
    }

    /// Copies what lies before the parts of a compound term.
    fn head_of(&mut self, at: usize) {
        let (_, body) = wire::open(self.source.bytes(at, self.source.end(at)));
        self.copy(at, at + body);
    }
}
