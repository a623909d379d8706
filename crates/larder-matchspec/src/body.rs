//! Bodies that compute nothing: the object, a constant, or a term that is built of elements, of
//! variables within elements, and of constants. Nothing runs for them: the parts of the result are
//! where the row and the constants have them, and a host makes its own term of these parts
//! ([`BuiltTerm`]). Only a host that needs the bytes of a result writes it in one piece.

use crate::{
    constant::{Constant, Constants, Span},
    gen::{Op, Operand, Ops},
    head::{Bound, CompiledHead},
    raw,
    row::Row,
    source::part_count,
    value::{Scratch, TRUE},
    wire::{self, Head},
};
use larder_term::{tags, Term, TermRef};
use smallvec::SmallVec;

/// The form of a body.
#[derive(Debug, Default)]
pub(crate) enum DirectBody {
    /// The machine must run the instructions.
    #[default]
    NeedsMachine,
    True,
    Object,
    Constant(Constant),
    /// A term with these parts, whose containers are tuples and lists. A host makes it.
    Built(TermParts),
    /// A term with these parts that is always written in one piece.
    Written(TermParts),
}

/// Where a result is. It borrows nothing from the scratch memory of the run.
#[derive(Debug)]
pub(crate) enum Found<'r, 's> {
    /// The whole row.
    Object,
    /// A term of the row, the constants or the context.
    Term(&'s [u8]),
    /// A term in the arena of the scratch memory.
    Arena(Span),
    /// A term whose parts are elsewhere.
    Built(BuiltTerm<'r, 's>),
}

/// The parts of a term, in the order of its encoding.
pub(crate) type TermParts = SmallVec<[TermPart; 4]>;

/// A part of a term that is built.
#[derive(Debug, Clone, Copy)]
pub(crate) enum TermPart {
    /// The head of a tuple of this number of elements, which follow.
    Tuple(usize),
    /// The same of a list.
    List(usize),
    /// The bytes of the head of a map or of an improper list, in the pool.
    Head(Span),
    /// A constant.
    Constant(Constant),
    /// The element at a position.
    Element(usize),
    /// The variable of a slot that plain steps bind (see `head`).
    Bound(u32),
}

/// The most levels of containers in a term that a host makes.
const MOST_LEVELS: usize = 32;

impl DirectBody {
    /// The form of a body with these instructions, behind this head.
    pub(crate) fn of(ops: &Ops, head: &CompiledHead, pool: &mut Vec<u8>) -> DirectBody {
        // The shape of the instructions says what the body does.
        match ops[..] {
            [Op::Push(Operand::Object)] => DirectBody::Object,
            [Op::Push(Operand::Const(constant))] => match constant.fixed(pool) {
                Some(TRUE) => DirectBody::True,
                _ => DirectBody::Constant(constant),
            },
            [Op::Push(Operand::Bindings)] => bindings(head, pool).unwrap_or_default(),
            [Op::Push(operand)] => part_of(operand, head)
                .map_or(DirectBody::NeedsMachine, |part| {
                    DirectBody::Built(TermParts::from_slice(&[part]))
                }),
            [Op::Build, ref ops @ .., Op::Built(0)] => built(ops, head, pool).unwrap_or_default(),
            _ => DirectBody::NeedsMachine,
        }
    }

    /// Whether no instruction has to run.
    #[inline]
    pub(crate) fn is_uncomputed(&self) -> bool {
        !matches!(self, DirectBody::NeedsMachine)
    }

    /// The result for a row that matches, and whose plain steps have bound these variables. The
    /// body isn't one that must be computed.
    #[inline(always)]
    pub(crate) fn find<'r, 's>(
        &'s self,
        row: &'r mut Row<'s>,
        constants: &'r Constants<'s>,
        bound: &'r Bound<'s>,
        scratch: &mut Scratch,
    ) -> Found<'r, 's> {
        // `Built` leaves it to the host to make the term. `Written` has a part that no host makes,
        // or too many levels, so it is written to the arena.
        let (parts, is_made) = match self {
            DirectBody::Built(parts) => (parts, true),
            DirectBody::Written(parts) => (parts, false),
            DirectBody::Object => return Found::Object,
            DirectBody::Constant(constant) => return Found::Term(constants.get(*constant)),
            DirectBody::True | DirectBody::NeedsMachine => return Found::Term(TRUE),
        };
        let mut built = BuiltTerm {
            parts,
            given: 0,
            row,
            constants,
            bound,
        };
        if is_made {
            return Found::Built(built);
        }
        let to = built.bytes(&mut scratch.arena).len();
        Found::Arena(Span { from: 0, to })
    }

    /// Whether the result is `true`. `None` if it must be computed.
    #[inline]
    pub(crate) fn is_true(&self, row: &mut Row<'_>, constants: &Constants<'_>) -> Option<bool> {
        match self {
            DirectBody::NeedsMachine => None,
            DirectBody::True => Some(true),
            DirectBody::Constant(constant) => Some(constants.get(*constant) == TRUE),
            DirectBody::Built(parts) => match parts[..] {
                // No other term begins with the bytes of `true`.
                [TermPart::Element(position)] => Some(row.run(position).starts_with(TRUE)),
                // The steps that bind the variable have not been run.
                [TermPart::Bound(_)] => None,
                // A tuple or a list.
                _ => Some(false),
            },
            DirectBody::Object | DirectBody::Written(_) => Some(false),
        }
    }
}

/// A result whose parts are in the row and among the constants.
#[derive(Debug)]
pub struct BuiltTerm<'r, 's> {
    pub(crate) parts: &'s [TermPart],
    /// The number of the parts that were asked for.
    pub(crate) given: usize,
    pub(crate) row: &'r mut Row<'s>,
    pub(crate) constants: &'r Constants<'s>,
    /// The variables that plain steps have bound.
    pub(crate) bound: &'r Bound<'s>,
}

/// A part of a [`BuiltTerm`].
#[derive(Debug)]
pub enum BuiltPart<'s> {
    /// A tuple of this number of elements, at least one. They are the next parts.
    Tuple(usize),
    /// The same of a proper list.
    List(usize),
    /// A term.
    Term(TermRun<'s>),
}

/// Bytes that begin with a whole term of an encoder's, whose handles' counts are held meanwhile.
/// Other bytes may follow.
#[derive(Debug, Clone, Copy)]
pub struct TermRun<'s>(&'s [u8]);

impl<'s> TermRun<'s> {
    /// All of the bytes.
    #[inline]
    pub fn bytes(self) -> &'s [u8] {
        self.0
    }

    /// The term.
    pub fn term(self) -> TermRef<'s> {
        raw::view(self.0)
    }
}

impl<'s> BuiltTerm<'_, 's> {
    /// The next part, in prefix order. There are at most 32 levels of tuples and lists.
    ///
    /// # Panics
    /// After the last part.
    #[inline(always)]
    pub fn next_part(&mut self) -> BuiltPart<'s> {
        let part = self.parts[self.given];
        self.given += 1;
        BuiltPart::Term(TermRun(match part {
            TermPart::Element(position) => self.row.run(position),
            TermPart::Tuple(arity) => return BuiltPart::Tuple(arity),
            TermPart::List(count) => return BuiltPart::List(count),
            TermPart::Constant(constant) => self.constants.get(constant),
            TermPart::Bound(slot) => self.bound[slot as usize],
            TermPart::Head(_) => unreachable!("a host makes tuples and lists"),
        }))
    }

    /// The bytes of the part that was given last, and those of the next parts, as long as they are
    /// the elements after it and are binaries or have a fixed length. So a host that shares memory
    /// between binaries finds those of the result, and no others of the row.
    pub fn with_next(&self, run: TermRun<'s>) -> &'s [u8] {
        let bytes = run.0;
        let mut end = larder_term::skip(bytes);
        // The position of the element that is stored after the run's term, if the run is that of
        // the element that was found last.
        let Some(mut position) = self.row.position_after(bytes) else {
            return &bytes[..end];
        };
        for part in &self.parts[self.given..] {
            // The next part of the result must be that element.
            let is_next = matches!(*part, TermPart::Element(next) if next == position);
            let Some(&tag) = bytes.get(end).filter(|_| is_next) else {
                break;
            };
            // The elements before a binary are passed, if that is cheap.
            if tag != tags::BIN && larder_term::fixed_len(tag) == 0 {
                break;
            }
            end += larder_term::skip(&bytes[end..]);
            position = self.row.stored_after(position);
        }
        &bytes[..end]
    }

    /// The whole result in one piece. It is put together in the buffer, whose content is lost.
    pub fn whole_term(&mut self, buffer: &mut Vec<u8>) -> Term {
        Term::from(raw::whole(self.bytes(buffer)))
    }

    /// The result in one piece: where the row has it, or in a buffer.
    #[inline]
    pub(crate) fn bytes<'b>(&mut self, buffer: &'b mut Vec<u8>) -> &'b [u8]
    where
        's: 'b,
    {
        // A single part lies in one piece already.
        if let [TermPart::Element(position)] = *self.parts {
            return self.row.whole_element(position);
        }
        if let [TermPart::Bound(slot)] = *self.parts {
            return self.bound[slot as usize];
        }
        // One pass over the parts, in the order of the encoding.
        buffer.clear();
        for &part in self.parts {
            let bytes = match part {
                TermPart::Tuple(arity) => {
                    wire::push_head(buffer, tags::TUPLE, arity);
                    continue;
                }
                TermPart::List(count) => {
                    wire::push_head(buffer, tags::LIST, count);
                    continue;
                }
                TermPart::Head(span) => self.constants.pool(span),
                TermPart::Constant(constant) => self.constants.get(constant),
                TermPart::Element(position) => self.row.whole_element(position),
                TermPart::Bound(slot) => self.bound[slot as usize],
            };
            buffer.extend_from_slice(bytes);
        }
        buffer
    }
}

/// The list of the variables, if each is an element or is bound by plain steps.
fn bindings(head: &CompiledHead, pool: &mut Vec<u8>) -> Option<DirectBody> {
    let count = head.places.len();
    if count == 0 {
        let from = pool.len();
        pool.push(tags::NIL);
        let to = pool.len();
        return Some(DirectBody::Constant(Constant::Fixed(Span { from, to })));
    }
    // A variable that isn't a whole element has no place. If the steps that bind it aren't plain,
    // the machine has to make the list.
    let variables = (0..).zip(&head.places).map(|(slot, place)| match place {
        Some(position) => Some(TermPart::Element(*position)),
        None => head.plain.then_some(TermPart::Bound(slot)),
    });
    let parts = std::iter::once(Some(TermPart::List(count))).chain(variables);
    parts.collect::<Option<_>>().map(DirectBody::Built)
}

/// The part for an operand, if it needs no computation.
fn part_of(operand: Operand, head: &CompiledHead) -> Option<TermPart> {
    match operand {
        Operand::Const(constant) => Some(TermPart::Constant(constant)),
        Operand::Field(position) => Some(TermPart::Element(position)),
        Operand::Var(slot) if head.plain => Some(TermPart::Bound(slot)),
        _ => None,
    }
}

fn built(ops: &[Op], head: &CompiledHead, pool: &[u8]) -> Option<DirectBody> {
    let mut parts = TermParts::new();
    for op in ops {
        match *op {
            Op::Raw(span) => push_raw(span, pool, &mut parts),
            // A part that must be computed makes the whole computed.
            Op::Put(operand) => parts.push(part_of(operand, head)?),
            _ => return None,
        }
    }
    Some(match is_made(&parts) {
        true => DirectBody::Built(parts),
        false => DirectBody::Written(parts),
    })
}

/// Adds the parts that lie in some bytes of the pool: whole constants, and the heads of containers
/// of which other parts come later.
fn push_raw(span: Span, pool: &[u8], parts: &mut TermParts) {
    // The open containers: where each begins, how many parts it lacks, and its index in `parts`.
    let mut open = SmallVec::<[(usize, usize, usize); 8]>::new();
    let mut at = span.from;
    while at < span.to {
        let from = at;
        let (head, len) = wire::open(&pool[at..span.to]);
        // A leaf is whole. Of a container only the head is passed; its parts follow.
        at += match head {
            Head::Leaf => larder_term::skip(&pool[at..span.to]),
            _ => len,
        };
        let whole = |from, to| TermPart::Constant(Constant::Fixed(Span { from, to }));
        let count = part_count(head);
        if count > 0 {
            open.push((from, count, parts.len()));
            parts.push(match head {
                Head::Tuple(arity) => TermPart::Tuple(arity),
                Head::List(count) => TermPart::List(count),
                _ => TermPart::Head(Span { from, to: at }),
            });
            continue;
        }
        parts.push(whole(from, at));
        // The constant may be the last part of several containers, which are constants then.
        while let Some((from, left, index)) = open.last_mut() {
            *left -= 1;
            if *left > 0 {
                break;
            }
            parts.truncate(*index);
            parts.push(whole(*from, at));
            open.pop();
        }
    }
}

/// Whether a host makes the term with these parts.
fn is_made(parts: &[TermPart]) -> bool {
    // The number of parts that each open container lacks.
    let mut open = SmallVec::<[usize; MOST_LEVELS]>::new();
    for part in parts {
        match *part {
            TermPart::Head(_) => return false,
            TermPart::Tuple(count) | TermPart::List(count) => open.push(count),
            _ => {
                // The part may be the last one of several containers.
                while let Some(left) = open.last_mut() {
                    *left -= 1;
                    if *left > 0 {
                        break;
                    }
                    open.pop();
                }
            }
        }
        if open.len() > MOST_LEVELS {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{outcome::Context, program::Program, value::Scratch};

    /// The form of the body of a specification with one clause.
    fn direct(body: &str) -> (Program, String) {
        let spec: Term = format!("[{{{{'$1',{{a,'$2'}}}},[],[{body}]}}]")
            .parse()
            .unwrap();
        let program = Program::compile(spec.as_ref()).unwrap();
        let form = format!("{:?}", program.code.clauses[0].direct);
        (program, form[..form.find('(').unwrap_or(form.len())].into())
    }

    #[test]
    fn hosts_make_tuples_and_lists_of_few_levels() {
        let nested = |levels: usize| {
            let (open, close) = ("[".repeat(levels), "]".repeat(levels));
            direct(&format!("{open}'$1'{close}")).1
        };
        for (body, form) in [
            ("'$1'", "Built"),
            ("'$2'", "Built"),
            ("'$$'", "Built"),
            ("{{'$1',b,[c,'$2'],{const,{d,#{e=>f}}}}}", "Built"),
            ("#{k=>'$1'}", "Written"),
            ("{{['$1'|{{'$2'}}],a}}", "Written"),
            ("['$1'|'$2']", "NeedsMachine"),
            ("{{'$1',{'+','$1',1}}}", "NeedsMachine"),
        ] {
            assert_eq!(direct(body).1, form, "{body}");
        }
        assert_eq!(nested(MOST_LEVELS), "Built");
        assert_eq!(nested(MOST_LEVELS + 1), "Written");
    }

    /// Makes a term of the next parts, as a host does.
    fn made(term: &mut BuiltTerm<'_, '_>) -> Term {
        match term.next_part() {
            BuiltPart::Tuple(arity) => {
                let elements: Vec<Term> = (0..arity).map(|_| made(term)).collect();
                Term::tuple(elements)
            }
            BuiltPart::List(count) => {
                let elements: Vec<Term> = (0..count).map(|_| made(term)).collect();
                Term::list(elements)
            }
            BuiltPart::Term(run) => Term::from(run.term()),
        }
    }

    /// What may be read after a part are the next ones alone.
    #[test]
    fn elements_of_the_result_may_be_read_together() {
        let row: Term = "{1,<<\"two\">>,<<\"three\">>,4,[5],<<\"six\">>}"
            .parse()
            .unwrap();
        let mut packed = larder_term::object::ObjectBuf::new();
        let form = larder_term::object::KeyForm::Ordered;
        // The key lies elsewhere.
        let beside = [
            ("{{'$2','$3','$4',x,'$6'}}", 3),
            ("{{'$2','$4'}}", 1),
            ("{{'$3','$2'}}", 1),
            ("{{'$3',x,'$4'}}", 1),
            ("'$2'", 1),
        ];
        let around = [("{{'$1','$2','$3','$4'}}", 2), ("{{'$2','$4','$5'}}", 2)];
        for (keypos, bodies) in [(1, &beside[..]), (5, &beside), (6, &beside), (3, &around)] {
            larder_term::object::encode(row.as_ref(), keypos, form, false, &mut packed).unwrap();
            for &(body, together) in bodies {
                let spec = format!("[{{{{'$1','$2','$3','$4','$5','$6'}},[],[{body}]}}]");
                let spec: Term = spec.parse().unwrap();
                let program = Program::compile(spec.as_ref()).unwrap();
                let (mut bytes, mut scratch) = (Vec::new(), Scratch::new());
                let view = packed.view(keypos, &mut bytes);
                let count = |shown: crate::Shown<'_>| {
                    let crate::Shown::Built(term) = shown else {
                        panic!("it is built");
                    };
                    let part = loop {
                        if let BuiltPart::Term(part) = term.next_part() {
                            break part;
                        }
                    };
                    let (mut rest, mut count) = (term.with_next(part), 0);
                    while !rest.is_empty() {
                        rest = &rest[larder_term::skip(rest)..];
                        count += 1;
                    }
                    count
                };
                let count = program.show(&view, &Context::none(), &mut scratch, count);
                assert_eq!(count, Some(together), "{keypos} {body}");
            }
        }
    }

    #[test]
    fn parts_are_those_of_the_result() {
        let row: Term = "{[7,x],{a,<<\"two\">>}}".parse().unwrap();
        for body in [
            "'$1'",
            "'$2'",
            "'$$'",
            "{{'$2','$1'}}",
            "[a,'$1',[],{{}},['$2',b]]",
            "{{'$1',b,[c,'$2'],{const,{d,#{e=>f}}}}}",
            "#{k=>'$1',l=>[m,'$2']}",
            "{{['$1'|{{'$2'}}],a}}",
        ] {
            let (program, _) = direct(body);
            let (mut scratch, mut other) = (Scratch::new(), Scratch::new());
            let context = Context::none();
            let whole = match program.run_term(row.as_ref(), &context, &mut scratch) {
                Some(crate::Outcome::Term(term)) => Term::from(term),
                found => panic!("{found:?}"),
            };
            let parts =
                program.show_row(
                    Row::plain(row.as_ref()),
                    &context,
                    &mut other,
                    |shown| match shown {
                        crate::Shown::Built(term) => made(term),
                        crate::Shown::Term(term) => Term::from(term),
                        crate::Shown::Object => panic!("no object"),
                    },
                );
            assert_eq!(parts, Some(whole), "{body}");
        }
    }
}
