//! Specifications with parameters, which are compiled once and run with different values.
//!
//! `{bind, N}` stands for the Nth value. It may be used in a head, a guard or a body, wherever a
//! constant may be. A [`Prepared`] specification is code with the values as its arguments;
//! [`Prepared::bind`] returns the program for given values.
//!
//! ```text
//!   [{{{user,{bind,1}},'$1'}, [{'>','$1',{bind,2}}], [{{'$1',{const,{bind,1}}}}]}]
//!   [{{      ?        ,'$1'}, [{'>','$1',   ?    }], [{{'$1',{const,{bind,1}}}}]}]  its template
//!       {user, value 1}                 value 2                                   what fills it
//! ```
//!
//! 1. A value is always a constant: `'_'`, `'$1'` and tuples in it have no special meaning.
//! 2. In a head, each maximal part that contains neither a variable, `'_'` or a map, nor a
//!    parameter as the tail of a list, becomes one argument, which is assembled when the values are
//!    bound. A key with a parameter inside is therefore a bound key.
//! 3. `{bind, N}` is not a parameter where no expression may be: in `{const,X}`, and as the inner
//!    tuple of double braces. There it is an ordinary tuple.
//! 4. Everything else is copied to the template unchanged, and its constants are compiled in.

use crate::{
    code::Code,
    constant::{Arguments, Class},
    error::{CompileError, Fault},
    program::Program,
    raw,
    source::{Source, TermIndex},
    template::{Hole, Template},
    wire::{self, Head},
};
use larder_term::{atoms, tags, Term, TermRef};
use smallvec::SmallVec;
use std::sync::Arc;

/// The greatest number of a parameter.
const MOST: i64 = 255;

/// A match specification with parameters, compiled. It is immutable and may be shared by any number
/// of threads.
#[derive(Debug, Clone)]
pub struct Prepared {
    code: Arc<Code>,
    /// How each argument is made of the values.
    fills: SmallVec<[Fill; 4]>,
    /// The number of values.
    count: usize,
}

/// How an argument is made of the values.
#[derive(Debug, Clone)]
enum Fill {
    /// It is the value with this index.
    Value(usize),
    /// It is a term that contains values.
    Built(Vec<ParameterPiece>),
}

/// A part of the encoding of an argument.
#[derive(Debug, Clone)]
enum ParameterPiece {
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
    /// The error of reading a value.
    type Error;

    /// The value with an index, counted from 0. This may be called several times for one value, or
    /// never.
    ///
    /// # Errors
    /// If the value can't be read.
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
    /// The number of parameters.
    pub parameters: usize,
    /// The number of values.
    pub values: usize,
}

impl std::error::Error for WrongCount {}

impl std::fmt::Display for WrongCount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { parameters, values } = *self;
        // Name the first parameter that has no value.
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
    /// Their numbers are from 1 to 255. If a number is not used, its value is ignored.
    ///
    /// # Errors
    /// As [`Program::compile`]. Also if a parameter has another number, is a whole head, or is
    /// inside a map that is in a key of a map in a head.
    ///
    /// # Complexity
    /// As [`Program::compile`].
    pub fn compile(spec: TermRef<'_>) -> Result<Prepared, CompileError> {
        // The program keeps the specification: handles in its constants are counted there.
        let held = Term::from(spec);
        let whole = Template::whole(held.bytes());
        // The index of the specification says where each term ends. `placeholders` are its
        // parameters.
        let index = TermIndex::of(&whole.bytes);
        let source = Source::new(&whole, &index);
        let placeholders = placeholders(&source);
        let tails = placeholders
            .iter()
            .filter(|placeholder| placeholder.is_tail);
        let mut reader = ParameterReader {
            source,
            tails: tails.map(|placeholder| placeholder.at).collect(),
            placeholders,
            template: Template::new(),
            fills: SmallVec::new(),
            count: 0,
        };
        reader.spec()?;
        // The template has the code's constants, `fills` say how arguments are made of values.
        let (template, fills, count) = (reader.template, reader.fills, reader.count);
        let code = Arc::new(Code::of_prepared(template, held)?);
        Ok(Prepared { code, fills, count })
    }

    /// The number of values needed, which is the greatest number of a parameter.
    pub fn parameters(&self) -> usize {
        self.count
    }

    /// The program with the `given` values for its parameters.
    ///
    /// # Errors
    /// [`WrongCount`], or the error of reading a value.
    ///
    /// # Complexity
    /// Linear in the size of the values. Nothing is compiled, and of the specification only the
    /// terms around parameters in heads are copied.
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
        // Arguments are in the order of the holes.
        let mut arguments = Arguments::new();
        // A parameter that is a whole argument is passed on as it is. Others are put together from
        // bytes.
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

/// Why the values could not be bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unbound<E> {
    /// There are too many or too few of them.
    Count(WrongCount),
    /// One of them can't be read.
    Value(E),
}

/// Assembles an argument from its pieces and adds it to the arguments.
fn build<V: Values>(
    pieces: &[ParameterPiece],
    values: &mut V,
    arguments: &mut Arguments,
) -> Result<(), V::Error> {
    let mut bytes: SmallVec<[u8; 64]> = SmallVec::new();
    // Keeps the counts of handles in the values until the arguments own counts of their own.
    let mut held = Vec::new();
    for piece in pieces {
        match piece {
            ParameterPiece::Raw(raw) => bytes.extend_from_slice(raw),
            ParameterPiece::Value(place) => match values.value(*place)? {
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
    // The arguments take counts of their own here.
    arguments.push(raw::whole(&bytes));
    drop(held);
    Ok(())
}

/// A tuple `{bind, N}`.
#[derive(Clone, Copy)]
struct Placeholder {
    at: usize,
    end: usize,
    number: i64,
    /// Whether it is the tail of a list. If the value is a list, its elements are those of the
    /// whole list.
    is_tail: bool,
}

/// The number of the parameter at `at`, provided that parameters are allowed there.
pub(crate) fn number(source: &Source<'_>, at: usize) -> Option<i64> {
    if source.head(at) != Head::Tuple(2) {
        return None;
    }
    let mut parts = source.each(at);
    let (name, number) = (parts.next()?, parts.next()?);
    (source.atom(name) == Some(atoms::BIND)).then(|| wire::int(source.term(number)))?
}

/// All tuples `{bind, N}`, in the order of their offsets.
fn placeholders(source: &Source<'_>) -> Vec<Placeholder> {
    // The tail of a list is a parameter in another place than an element: it may not be part of an
    // argument.
    let tails = source.compounds().filter_map(|at| match source.head(at) {
        Head::Improper(n) => source.each(at).nth(n),
        _ => None,
    });
    let mut tails: Vec<usize> = tails.collect();
    tails.sort_unstable();
    let each = source.compounds().filter_map(|at| {
        Some(Placeholder {
            at,
            end: source.end(at),
            number: number(source, at)?,
            is_tail: tails.binary_search(&at).is_ok(),
        })
    });
    each.collect()
}

/// Copies a specification to a template, with holes for the terms that depend on parameters.
struct ParameterReader<'a> {
    source: Source<'a>,
    placeholders: Vec<Placeholder>,
    /// The offsets of those that are tails of lists.
    tails: Vec<usize>,
    template: Template,
    fills: SmallVec<[Fill; 4]>,
    count: usize,
}

/// A term to read. Terms are read in the order of their offsets.
enum ReadTask {
    /// A part of a head.
    Pattern(usize),
    /// A key of a map in a head.
    MapKey(usize),
    /// A guard, a body expression, a part of one, or a list of such.
    Expression(usize),
    /// A term that contains no parameters.
    Plain(usize),
}

type ReadTasks = SmallVec<[ReadTask; 8]>;

/// Pushes tasks so that they are done next, in this order.
fn read_all(tasks: &mut ReadTasks, parts: impl Iterator<Item = ReadTask>) {
    let first = tasks.len();
    tasks.extend(parts);
    tasks[first..].reverse();
}

impl ParameterReader<'_> {
    /// Reads the whole specification. A malformed one is copied unchanged, so that the compiler
    /// reports the fault.
    fn spec(&mut self) -> Result<(), CompileError> {
        let (source, end) = (self.source, self.source.end(0));
        // Without a parameter, there is nothing to replace.
        if self.placeholders.is_empty() || !matches!(source.head(0), Head::List(_)) {
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
            // What isn't a clause is copied, and refused when the template is compiled.
            _ => {
                self.copy(at, self.source.end(at));
                return Ok(());
            }
        };
        if number(&self.source, parts[0]).is_some() {
            return Err(Fault::ParameterAsHead);
        }
        // The head of the clause, then its three parts in order.
        self.head_of(at);
        let mut tasks = ReadTasks::new();
        read_all(
            &mut tasks,
            [
                ReadTask::Pattern(parts[0]),
                ReadTask::Expression(parts[1]),
                ReadTask::Expression(parts[2]),
            ]
            .into_iter(),
        );
        while let Some(task) = tasks.pop() {
            let at = match task {
                ReadTask::Pattern(at)
                | ReadTask::MapKey(at)
                | ReadTask::Expression(at)
                | ReadTask::Plain(at) => at,
            };
            // A term without parameters is copied as a whole.
            if self.placeholders_in(at).is_empty() {
                self.copy(at, self.source.end(at));
                continue;
            }
            match task {
                ReadTask::Pattern(_) => self.pattern(at, at == parts[0], &mut tasks)?,
                // A key of a map in a head must be a constant, so the whole key is one argument.
                ReadTask::MapKey(_) if self.source.has_map(at) || !self.is_plain(at) => {
                    return Err(Fault::ParameterInMapKey)
                }
                ReadTask::MapKey(_) => self.argument(at)?,
                ReadTask::Expression(_) => self.expression(at, &mut tasks)?,
                ReadTask::Plain(_) => self.copy(at, self.source.end(at)),
            }
        }
        Ok(())
    }

    /// Reads a part of a head that contains a parameter.
    fn pattern(&mut self, at: usize, is_head: bool, tasks: &mut ReadTasks) -> Result<(), Fault> {
        let source = self.source;
        // Terms are read from the outside, so the first that can be one argument is a maximal one
        // (rule 2).
        if !is_head && source.is_ground(at) && self.is_plain(at) {
            return self.argument(at);
        }
        self.head_of(at);
        let is_map = matches!(source.head(at), Head::Map(_));
        let parts = source.each(at).enumerate();
        read_all(
            tasks,
            parts.map(|(index, at)| match is_map && index % 2 == 0 {
                true => ReadTask::MapKey(at),
                false => ReadTask::Pattern(at),
            }),
        );
        Ok(())
    }

    /// Reads a part of a guard or a body that contains a parameter.
    fn expression(&mut self, at: usize, tasks: &mut ReadTasks) -> Result<(), Fault> {
        let source = self.source;
        // The parameter itself, where an expression may be.
        if number(&source, at).is_some() {
            return self.argument(at);
        }
        let is_tuple = matches!(source.head(at), Head::Tuple(_));
        let parts = source.parts(at);
        match parts[..] {
            // Double braces: the inner tuple is not an expression, but its elements are.
            [inner] if is_tuple && matches!(source.head(inner), Head::Tuple(_)) => {
                self.head_of(at);
                self.head_of(inner);
                read_all(tasks, source.each(inner).map(ReadTask::Expression));
            }
            // A call or a constant. The name of a function can't be a parameter.
            [name, ..] if is_tuple => {
                self.head_of(at);
                let is_constant = source.atom(name) == Some(atoms::CONST);
                let operand = if is_constant {
                    ReadTask::Plain
                } else {
                    ReadTask::Expression
                };
                let operands = parts[1..].iter().map(|&at| operand(at));
                read_all(
                    tasks,
                    std::iter::once(ReadTask::Plain(name)).chain(operands),
                );
            }
            _ => {
                self.head_of(at);
                read_all(tasks, parts.iter().map(|&at| ReadTask::Expression(at)));
            }
        }
        Ok(())
    }

    /// Leaves a hole in the template for a term that consists of parameters and constants only, and
    /// records how the term is made of the values.
    fn argument(&mut self, at: usize) -> Result<(), Fault> {
        // Numbers are checked here, so that the error names the parameter.
        let placeholders: SmallVec<[Placeholder; 4]> = self.placeholders_in(at).into();
        for placeholder in &placeholders {
            if !(1..=MOST).contains(&placeholder.number) {
                return Err(Fault::ParameterNumber(placeholder.number));
            }
            self.count = self.count.max(placeholder.number as usize);
        }
        let place = |placeholder: &Placeholder| placeholder.number as usize - 1;
        let fill = match placeholders[..] {
            // Most arguments are a single parameter.
            [placeholder] if placeholder.at == at => Fill::Value(place(&placeholder)),
            _ => {
                // Otherwise the bytes between the parameters are kept, and the values put between
                // them.
                let (mut pieces, mut from) = (Vec::new(), at);
                for placeholder in &placeholders {
                    pieces.push(ParameterPiece::Raw(
                        self.source.bytes(from, placeholder.at).to_vec(),
                    ));
                    pieces.push(ParameterPiece::Value(place(placeholder)));
                    from = placeholder.end;
                }
                let end = self.source.end(at);
                pieces.push(ParameterPiece::Raw(self.source.bytes(from, end).to_vec()));
                Fill::Built(pieces)
            }
        };
        // The hole is encoded as `[]`.
        self.template.holes.push(Hole {
            at: self.template.bytes.len() as u32,
            class: Class::Other,
        });
        self.template.bytes.push(tags::NIL);
        self.fills.push(fill);
        Ok(())
    }

    /// Whether the term's encoding is the concatenation of its parts for all values. It is not if a
    /// parameter inside is the tail of a list, because a list as the value would be merged into it.
    fn is_plain(&self, at: usize) -> bool {
        let inner = self.tails.partition_point(|&tail| tail <= at);
        let end = self.source.end(at);
        self.tails.get(inner).is_none_or(|&tail| tail >= end)
    }

    /// The tuples `{bind, N}` in a term.
    fn placeholders_in(&self, at: usize) -> &[Placeholder] {
        let first = self
            .placeholders
            .partition_point(|placeholder| placeholder.at < at);
        let end = self.source.end(at);
        let count = self.placeholders[first..].partition_point(|placeholder| placeholder.at < end);
        &self.placeholders[first..first + count]
    }

    fn copy(&mut self, from: usize, to: usize) {
        let bytes = self.source.bytes(from, to);
        self.template.bytes.extend_from_slice(bytes);
    }

    /// Copies the head of a compound term, without its parts.
    fn head_of(&mut self, at: usize) {
        let (_, body) = wire::open(self.source.bytes(at, self.source.end(at)));
        self.copy(at, at + body);
    }
}
