//! Tests: conditions on single elements of a row that are either true or false, and have no effect
//! otherwise.
//!
//! Constants of the head, comparisons of an element with a constant or with another element, and
//! type tests are decided on the element's bytes, without making a value of it. The tests of a
//! clause come first, sorted by position, so a row is walked no further than the first test that is
//! false:
//!
//! ```text
//!   [{{'$1',on,'_','$2'}, [{'>','$1',10}, {'andalso',{is_atom,'$2'},{'<',{abs,'$1'},9}}], ['$1']}]
//!
//!   arity 4 · 1: > 10 · 2: on · 4: an atom       then the machine: abs(1) < 9
//! ```
//!
//! A guard holds only if it is `true`. So an `and` or `andalso` in a guard is the same as one guard
//! for each of its operands. Within other expressions a test is an instruction that pushes a
//! boolean.

use crate::{
    closed, compare,
    constant::{Class, Constant, Constants, Span},
    func::{Cmp, Func},
    head::{CompiledHead, HeadForm, Step},
    ir::{Ir, Node, NodeId},
    raw,
    row::Row,
    template::Hole,
    value::TRUE,
    wire::{self, Head, Short},
};
use larder_term::tags;
use smallvec::SmallVec;

/// A condition on the element at a position.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Test {
    pub(crate) position: usize,
    condition: Condition,
}

const _: () = assert!(size_of::<Test>() <= 40);

/// The tests of a clause.
pub(crate) type Tests = SmallVec<[Test; 4]>;

/// What the element must be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Condition {
    /// Equal to a constant, byte for byte; if the flag is `false`: not equal.
    Bytes(Constant, bool),
    /// Identical to a constant that may have several encodings.
    Term(Constant),
    /// Matched by a closed pattern, which is an argument.
    Closed(Constant),
    /// The comparison with an integer holds.
    Int(Cmp, i64),
    /// The comparison with an argument holds. The argument is mostly an integer of 64 bits.
    Argument(Cmp, u32),
    /// The comparison with a float, by value, holds.
    Float(Cmp, f64),
    /// The comparison with a constant holds.
    Const(Cmp, Constant),
    /// Of a type.
    Type(Type),
    /// The comparison with the element at another position holds.
    Pair(Cmp, usize),
    /// Matched by the steps from the first number up to the second one, exclusive. They bind and
    /// remember nothing.
    Steps(u32, u32),
    /// A tuple of this number of elements, of which the first is this atom.
    Record(Span, usize),
    /// The atom `true`.
    True,
}

/// The types that a tag shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Type {
    Atom,
    Integer,
    Float,
    Number,
    Tuple,
    List,
    Map,
    Binary,
}

impl Test {
    /// The positions of the elements that it looks at.
    pub(crate) fn reads(&self) -> impl Iterator<Item = usize> {
        let other = match self.condition {
            Condition::Pair(_, other) => Some(other),
            _ => None,
        };
        std::iter::once(self.position).chain(other)
    }

    /// Whether the row passes. The row must have an element at the position. `head` is the head of
    /// the test's clause.
    #[inline]
    pub(crate) fn passes(
        &self,
        head: &CompiledHead,
        row: &mut Row<'_>,
        constants: &Constants<'_>,
    ) -> bool {
        // A pair reads two elements. All other tests read one.
        if let Condition::Pair(cmp, other) = self.condition {
            return pair(cmp, row, self.position, other);
        }
        self.holds(head, row.run(self.position), constants)
    }

    /// Whether it looks at one element alone.
    pub(crate) fn is_single(&self) -> bool {
        !matches!(self.condition, Condition::Pair(..))
    }

    /// The condition, in which an argument that is an integer stands as its value.
    pub(crate) fn condition(&self, constants: &Constants<'_>) -> Condition {
        match self.condition {
            Condition::Argument(cmp, index) => match constants.int(index) {
                Some(n) => Condition::Int(cmp, n),
                None => self.condition,
            },
            condition => condition,
        }
    }

    /// Whether the comparison of an element with an integer holds.
    #[inline]
    pub(crate) fn compares_to_int(cmp: Cmp, run: &[u8], n: i64) -> bool {
        compare_to_int(cmp, run, n)
    }

    /// Whether the condition on a single element holds. `run` begins with the element, and
    /// continues with those after it.
    #[inline(always)]
    pub(crate) fn holds(&self, head: &CompiledHead, run: &[u8], constants: &Constants<'_>) -> bool {
        match self.condition {
            Condition::Int(cmp, n) => compare_to_int(cmp, run, n),
            Condition::Argument(cmp, index) => match constants.int(index) {
                Some(n) => compare_to_int(cmp, run, n),
                None => compare_to_constant(cmp, run, constants.get(Constant::Argument(index))),
            },
            // The encoding is prefix-free, so a run that begins with the constant's bytes begins
            // with the constant.
            Condition::Bytes(constant, is) => constants.begins(run, constant) == is,
            Condition::Type(ty) => run.first().is_some_and(|&tag| ty.has(tag)),
            Condition::Steps(from, to) => {
                matches(&head.steps[from as usize..to as usize], run, constants)
            }
            Condition::True => wire::begins(run, TRUE),
            Condition::Float(cmp, x) => compare_to_float(cmp, run, x),
            Condition::Const(cmp, constant) => {
                compare_to_constant(cmp, run, constants.get(constant))
            }
            Condition::Record(tag, arity) => match wire::open(run) {
                (Head::Tuple(n), at) => {
                    n == arity && n > 0 && wire::begins(&run[at..], constants.pool(tag))
                }
                _ => false,
            },
            Condition::Term(constant) => is_constant(run, constant, constants),
            Condition::Closed(pattern) => closed::matches(run, constants.get(pattern)),
            Condition::Pair(..) => false,
        }
    }
}

/// Whether steps match the beginning of a run. The steps bind and remember nothing.
#[inline(never)]
fn matches(steps: &[Step], mut run: &[u8], constants: &Constants<'_>) -> bool {
    // The bytes are consumed from the left, as the steps say.
    for step in steps {
        // The number of bytes that the step consumes, if it matches.
        let used = match *step {
            Step::Eq(constant) => {
                let begins = constants.begins(run, constant);
                begins.then(|| constants.get(constant).len())
            }
            Step::Skip => Some(larder_term::skip(run)),
            Step::EqTerm(constant) => {
                is_constant(run, constant, constants).then(|| larder_term::skip(run))
            }
            Step::Closed(pattern) => {
                let rest = closed::strip(run, constants.get(pattern));
                rest.map(|rest| run.len() - rest.len())
            }
            // A container must have as many parts. Its head is consumed, and its parts are left to
            // the next steps.
            _ => match (*step, wire::open(run)) {
                (Step::Tuple(wanted), (Head::Tuple(n), at))
                | (Step::List(wanted), (Head::List(n), at))
                | (Step::Improper(wanted), (Head::Improper(n), at)) => {
                    (n == wanted as usize).then_some(at)
                }
                _ => None,
            },
        };
        match used {
            Some(used) => run = &run[used..],
            None => return false,
        }
    }
    true
}

/// Whether a step may be a part of a test.
fn is_test(step: &Step) -> bool {
    // These steps bind nothing and leave nothing open.
    matches!(
        step,
        Step::Skip
            | Step::Eq(_)
            | Step::EqTerm(_)
            | Step::Closed(_)
            | Step::Tuple(_)
            | Step::List(_)
            | Step::Improper(_)
    )
}

/// Whether a run begins with a term that is identical to a constant.
fn is_constant(run: &[u8], constant: Constant, constants: &Constants<'_>) -> bool {
    constants.begins(run, constant)
        || constants.has_other_forms(constant) && raw::begins(run, constants.get(constant))
}

impl Type {
    /// The type that a type test asks for.
    fn of(func: Func) -> Option<Type> {
        Some(match func {
            Func::IsAtom => Type::Atom,
            Func::IsInteger => Type::Integer,
            Func::IsFloat => Type::Float,
            Func::IsNumber => Type::Number,
            Func::IsTuple => Type::Tuple,
            Func::IsList => Type::List,
            Func::IsMap => Type::Map,
            Func::IsBinary => Type::Binary,
            _ => return None,
        })
    }

    /// Whether a term with this tag is of the type.
    #[inline]
    fn has(self, tag: u8) -> bool {
        // The tags of integers are in two ranges.
        let integer = matches!(
            tag,
            tags::SMALL..|tags::INT1..=tags::INT8| tags::BIG_POS | tags::BIG_NEG
        );
        match self {
            Type::Atom => matches!(tag, tags::ATOM1..=tags::ATOM4),
            Type::Integer => integer,
            Type::Float => tag == tags::FLOAT,
            Type::Number => integer || tag == tags::FLOAT,
            Type::Tuple => tag == tags::TUPLE,
            Type::List => matches!(tag, tags::NIL | tags::LIST | tags::ILIST),
            Type::Map => matches!(tag, tags::MAP | tags::TREE_MAP),
            Type::Binary => matches!(tag, tags::BIN | tags::BLOB),
        }
    }
}

/// Compares an element with one before it.
#[inline(never)]
fn pair(cmp: Cmp, row: &mut Row<'_>, position: usize, other: usize) -> bool {
    // Find the first one first, so that the row is walked once.
    let other = row.run(other);
    let run = row.run(position);
    match (wire::int(run), wire::int(other)) {
        (Some(a), Some(b)) => compare::compare_ints(cmp, a, b),
        _ => compare_runs(cmp, run, other),
    }
}

#[inline(never)]
fn compare_runs(cmp: Cmp, a: &[u8], b: &[u8]) -> bool {
    compare::compare_flat(cmp, raw::view(a), raw::view(b))
}

/// Compares any term with a constant. Tries fast comparisons of the bytes first.
pub(crate) fn compare_to_constant(cmp: Cmp, run: &[u8], constant: &[u8]) -> bool {
    // The fastest comparison that applies is taken: by value for floats, by bytes for binaries, by
    // bytes for equality.
    if let (Some(x), false) = (wire::float(constant), cmp.is_exact()) {
        return compare_to_float(cmp, run, x);
    }
    if let (Some(a), Some(b)) = (wire::binary(run), wire::binary(constant)) {
        return compare::holds(cmp, a.cmp(b));
    }
    let equal = match cmp {
        Cmp::Eq | Cmp::Same | Cmp::Ne | Cmp::NotSame => equal(run, constant),
        _ => None,
    };
    match equal {
        Some(equal) => equal == matches!(cmp, Cmp::Eq | Cmp::Same),
        None => compare_runs(cmp, run, constant),
    }
}

/// Decides equality by bytes where `==` and `=:=` agree: `Some(true)` if both hold, `Some(false)`
/// if neither does, `None` if the bytes don't decide. If the heads of two terms differ, they can
/// only be equal if they are numbers, or terms with several encodings.
fn equal(run: &[u8], constant: &[u8]) -> Option<bool> {
    let has_one_form = |tag: u8| {
        // Lists and tuples count, since their heads say how many parts they have.
        matches!(
            tag,
            tags::SMALL
                ..|tags::INT1..=tags::INT8| tags::ATOM1
                    ..=tags::ATOM4 | tags::NIL | tags::LIST | tags::ILIST | tags::TUPLE
        )
    };
    let mut at = 0;
    // Compare head by head, up to the first one that differs.
    while at < constant.len() {
        let next = larder_term::head(constant, at).0;
        if run.get(at..next) != Some(&constant[at..next]) {
            let known = has_one_form(*run.get(at)?) && has_one_form(constant[at]);
            return known.then_some(false);
        }
        at = next;
    }
    Some(true)
}

/// Compares any term with an integer.
#[inline]
fn compare_to_int(cmp: Cmp, run: &[u8], n: i64) -> bool {
    match wire::int(run) {
        Some(value) => compare::compare_ints(cmp, value, n),
        None => compare_other_to_int(cmp, run, n),
    }
}

#[cold]
fn compare_other_to_int(cmp: Cmp, run: &[u8], n: i64) -> bool {
    if cmp.is_exact() {
        return cmp == Cmp::NotSame;
    }
    compare_runs(cmp, run, Short::int(n).bytes())
}

/// Compares any term with a float.
#[inline]
fn compare_to_float(cmp: Cmp, run: &[u8], x: f64) -> bool {
    if let Some(order) = wire::float(run).and_then(|value| value.partial_cmp(&x)) {
        return compare::holds(cmp, order);
    }
    let mut constant = [tags::FLOAT; 9];
    constant[1..].copy_from_slice(&x.to_le_bytes());
    compare_runs(cmp, run, &constant)
}

/// Moves the elements of a head that are variables, constants or equal to another element from its
/// steps to its tests. Records the positions of the variables.
pub(crate) fn of_head(head: &mut CompiledHead, tests: &mut Tests) {
    let CompiledHead {
        form: HeadForm::Tuple { elements, .. },
        steps,
        places,
        binds,
        ..
    } = head
    else {
        head.binds = !head.places.is_empty();
        return;
    };
    elements.retain(|element| {
        let position = element.position;
        // An element is a test if it has no effect but to match or not.
        let condition = match steps[element.steps.clone()] {
            [Step::Bind(slot)] => {
                places[slot as usize] = Some(position);
                return false;
            }
            // The other element is bound by its position. If it isn't an element as a whole, the
            // steps stay.
            [Step::Same(slot)] => match places[slot as usize] {
                Some(other) => Condition::Pair(Cmp::Same, other),
                None => return true,
            },
            [Step::Eq(constant)] => Condition::Bytes(constant, true),
            [Step::EqTerm(constant)] => Condition::Term(constant),
            [Step::Closed(pattern)] => Condition::Closed(pattern),
            ref nested if nested.iter().all(is_test) => {
                // Steps after the last one that may fail would only walk over the element.
                let fails = |step: &Step| *step != Step::Skip;
                let used = nested.iter().rposition(fails).map_or(0, |last| last + 1);
                let from = element.steps.start;
                Condition::Steps(from as u32, (from + used) as u32)
            }
            // The same holds for steps that bind. The element may have a large map after what
            // the last one binds.
            ref nested => {
                let walks =
                    |step: &Step| matches!(step, Step::Skip | Step::RestSkip | Step::CloseMap);
                let used = nested.iter().rposition(|step| !walks(step));
                element.steps.end = element.steps.start + used.map_or(0, |last| last + 1);
                return true;
            }
        };
        tests.push(Test {
            position,
            condition,
        });
        false
    });
    let bind = |step: &Step| matches!(step, Step::Bind(_) | Step::RestBind(_));
    *binds = elements
        .iter()
        .any(|element| steps[element.steps.clone()].iter().any(bind));
}

/// No tuple has this number of elements. Smaller numbers are immediate integers in the host.
const MOST_ARITY: i64 = 1 << 24;

/// Recognises the tests among expressions.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a> {
    pub(crate) ir: &'a Ir,
    /// The classes of the arguments.
    pub(crate) holes: &'a [Hole],
    /// The position of each variable that is an element.
    pub(crate) places: &'a [Option<usize>],
    /// The number of elements of the row, if the head determines it.
    pub(crate) arity: Option<usize>,
}

impl Reader<'_> {
    /// A guard as a test, if it is one. A row without an element at the test's position doesn't
    /// pass, as the guard would fail.
    pub(crate) fn guard(&self, pool: &[u8], id: NodeId) -> Option<Test> {
        if let Some(position) = self.position(pool, id, false) {
            let condition = Condition::True;
            return Some(Test {
                position,
                condition,
            });
        }
        self.test(pool, id, false)
    }

    /// An expression as a test, if it is one, and if it is certain that the row has its elements.
    pub(crate) fn value(&self, pool: &[u8], id: NodeId) -> Option<Test> {
        self.test(pool, id, true)
    }

    /// A call as a test, if it is one. If `sure` is set, it must be certain that the row has its
    /// elements.
    fn test(&self, pool: &[u8], id: NodeId, sure: bool) -> Option<Test> {
        let Node::Call(func, parts) = self.ir.node(id) else {
            return None;
        };
        let position = |id: NodeId| self.position(pool, id, sure);
        // Which side is an element decides the form. If both are, the later one has the test.
        match (func, self.ir.of(parts)) {
            (Func::Cmp(cmp), &[a, b]) => match (position(a), position(b)) {
                // The test is at the later position: a row that has this element has the other one,
                // too.
                (Some(a), Some(b)) if a < b => Some(Test {
                    position: b,
                    condition: Condition::Pair(cmp.flipped(), a),
                }),
                (Some(position), Some(b)) => Some(Test {
                    position,
                    condition: Condition::Pair(cmp, b),
                }),
                (Some(position), None) => Some(Test {
                    position,
                    condition: self.compares(pool, cmp, self.ir.constant(b)?),
                }),
                (None, Some(position)) => Some(Test {
                    position,
                    condition: self.compares(pool, cmp.flipped(), self.ir.constant(a)?),
                }),
                (None, None) => None,
            },
            // Tests of the type of an element, such as `is_atom`.
            (func, &[a]) => Some(Test {
                position: position(a)?,
                condition: Condition::Type(Type::of(func)?),
            }),
            (Func::IsRecord, &[a, tag, arity]) => Some(Test {
                position: position(a)?,
                condition: self.record(pool, tag, arity)?,
            }),
            _ => None,
        }
    }

    /// The test of a call of `is_record/3` with these operands.
    fn record(&self, pool: &[u8], tag: NodeId, arity: NodeId) -> Option<Condition> {
        // Templates leave the operands of `is_record` in place, so they are not arguments.
        let Constant::Fixed(tag) = self.ir.constant(tag)? else {
            return None;
        };
        wire::atom(&pool[tag.range()])?;
        let arity = wire::int(self.ir.constant(arity)?.fixed(pool)?)
            .filter(|n| (0..MOST_ARITY).contains(n))?;
        Some(Condition::Record(tag, usize::try_from(arity).unwrap_or(0)))
    }

    /// The fastest test for a comparison with a constant.
    fn compares(&self, pool: &[u8], cmp: Cmp, constant: Constant) -> Condition {
        // Whether the comparison asks for equality, for inequality, or for an order.
        let equal = match cmp {
            Cmp::Same | Cmp::Eq => Some(true),
            Cmp::NotSame | Cmp::Ne => Some(false),
            _ => None,
        };
        let bytes = match constant {
            Constant::Fixed(span) => &pool[span.range()],
            Constant::Argument(index) => {
                return match (self.holes[index as usize].class, equal) {
                    (Class::Plain, Some(equal)) => Condition::Bytes(constant, equal),
                    (Class::Int | Class::Other, _) => Condition::Argument(cmp, index),
                    _ => Condition::Const(cmp, constant),
                };
            }
        };
        // Constants of the code: their form is known now.
        if let Some(n) = wire::int(bytes) {
            return Condition::Int(cmp, n);
        }
        if let (Some(x), false) = (wire::float(bytes), cmp.is_exact()) {
            return Condition::Float(cmp, x);
        }
        // Atoms and inline binaries are equal only to terms with the same bytes.
        let plain = matches!(
            bytes.first(),
            Some(&(tags::ATOM1..=tags::ATOM4 | tags::BIN))
        );
        match equal {
            Some(equal) if plain && !wire::may_hold_handles(bytes) => {
                Condition::Bytes(constant, equal)
            }
            _ => Condition::Const(cmp, constant),
        }
    }

    /// The position of the element that an expression denotes: a variable, or `element/2` of the
    /// object. If `sure` is set, it must be certain that the row has that element.
    fn position(&self, pool: &[u8], id: NodeId, sure: bool) -> Option<usize> {
        match self.ir.node(id) {
            // A variable that stands for a whole element has a place.
            Node::Var(slot) => self.places.get(slot as usize).copied().flatten(),
            Node::Call(Func::Element, parts) => {
                let &[position, tuple] = self.ir.of(parts) else {
                    return None;
                };
                let position = wire::int(self.ir.constant(position)?.fixed(pool)?)?;
                // Positions count from 1, and must be within the head's arity to be sure.
                let position = usize::try_from(position).ok().filter(|&p| p > 0)?;
                let has = match self.arity {
                    Some(arity) => position <= arity,
                    None => !sure,
                };
                (has && self.ir.node(tuple) == Node::Object).then_some(position)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Program;
    use larder_term::Term;

    /// How many guards of the only clause are left to the machine.
    fn left(spec: &str) -> usize {
        let spec: Term = spec.parse().unwrap();
        let program = Program::compile(spec.as_ref()).unwrap();
        program.code.clauses[0].checks.len()
    }

    #[test]
    fn guards_on_elements_are_tests() {
        for spec in [
            "[{{'_','$1'},[{'<','$1',0}],[true]}]",
            "[{{'$1',on,'_','$2'},[{'>','$1',10},{is_atom,'$2'}],['$1']}]",
            "[{{'$1','$2'},[{'andalso',{'>','$1',1},{'andalso',{'<','$1',9},{'=:=','$2',a}}}],['$$']}]",
            "[{{'$1','$2'},[{'and',{'>','$1',1},{'==',a,'$2'}}],[{const,{a}}]}]",
            "[{{'$1','$2'},[{'>','$1','$2'}],['$_']}]",
            "[{{'$1','$2'},['$2'],['$_']}]",
            "[{{'$1','$2'},[{'==','$1',1.0},{'>=','$2',<<1>>},{'==','$2',{{a,1}}}],['$_']}]",
            "[{{'$1','$2'},[{is_record,'$2',a,3}],['$_']}]",
            "[{'$1',[{'>',{element,2,'$1'},1},{'=<',7,{element,3,'$_'}},{is_atom,{element,4,'$_'}}],['$1']}]",
        ] {
            assert_eq!(left(spec), 0, "{spec}");
        }
    }

    #[test]
    fn what_may_fail_or_computes_is_left_to_the_machine() {
        for spec in [
            "[{{'$1','_'},[{'>',{'+','$1',1},2}],['$_']}]",
            "[{{'$1','_'},[{'>',{element,'$1','$_'},2}],['$_']}]",
            "[{{'$1','_'},[{'>',{element,0,'$_'},2}],['$_']}]",
            "[{{'$1','_'},[{'>',{element,3,'$_'},2}],['$_']}]",
            "[{'$1',[{'orelse',{'>',{element,2,'$1'},1},true}],['$1']}]",
            "[{{'$1','_'},[{'orelse',{'>','$1',1},{is_atom,'$1'}}],['$_']}]",
            "[{{'_',{'$1'}},[{'>','$1',1}],['$_']}]",
        ] {
            assert!(left(spec) > 0, "{spec}");
        }
    }
}
