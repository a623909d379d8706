//! Bodies that compute nothing: the object, a constant, an element, or a term that is built of
//! elements, of variables within elements, and of constants. Their results are written in one pass
//! over the row, without the stack.

use crate::{
    constant::{Constant, Constants, Span},
    gen::{Op, Operand, Ops},
    head::{Bound, CompiledHead},
    outcome::Outcome,
    raw,
    row::Row,
    value::{Scratch, TRUE},
    wire,
};
use larder_term::tags;
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
    Element(usize),
    /// The variable of a slot that plain steps bind (see `head`).
    Bound(u32),
    /// A term whose encoding is the concatenation of these pieces.
    Built(SmallVec<[TermPiece; 4]>),
}

/// A part of a term that is built.
#[derive(Debug, Clone, Copy)]
pub(crate) enum TermPiece {
    /// Bytes of the pool.
    Raw(Span),
    /// A constant.
    Constant(Constant),
    /// The element at a position.
    Element(usize),
    /// The variable of a slot that plain steps bind.
    Bound(u32),
}

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
            [Op::Push(Operand::Field(position))] => DirectBody::Element(position),
            [Op::Push(Operand::Var(slot))] if head.plain => DirectBody::Bound(slot),
            [Op::Push(Operand::Bindings)] => bindings(head, pool),
            [Op::Build, ref parts @ .., Op::Built(0)] => built(parts, head).unwrap_or_default(),
            _ => DirectBody::NeedsMachine,
        }
    }

    /// Whether no instruction has to run.
    #[inline]
    pub(crate) fn is_uncomputed(&self) -> bool {
        !matches!(self, DirectBody::NeedsMachine)
    }

    /// The result for a row that matches, and whose plain steps have bound these variables. `None`
    /// if it must be computed.
    #[inline]
    pub(crate) fn give<'s>(
        &self,
        row: &mut Row<'s>,
        constants: &Constants<'s>,
        bound: &Bound<'s>,
        scratch: &'s mut Scratch,
    ) -> Option<Outcome<'s>> {
        Some(match self {
            DirectBody::NeedsMachine => return None,
            DirectBody::True => Outcome::Term(raw::whole(TRUE)),
            DirectBody::Object => Outcome::Object,
            DirectBody::Constant(constant) => Outcome::Term(constants.term(*constant)),
            DirectBody::Element(position) => {
                Outcome::Term(raw::whole(row.whole_element(*position)))
            }
            DirectBody::Bound(slot) => Outcome::Term(raw::whole(bound[*slot as usize])),
            DirectBody::Built(pieces) => {
                // One pass over the pieces, in the order of the encoding. Nothing is computed, so
                // nothing can fail.
                let arena = &mut scratch.arena;
                arena.clear();
                for &piece in pieces {
                    arena.extend_from_slice(match piece {
                        TermPiece::Raw(span) => constants.pool(span),
                        TermPiece::Constant(constant) => constants.get(constant),
                        TermPiece::Element(position) => row.whole_element(position),
                        TermPiece::Bound(slot) => bound[slot as usize],
                    });
                }
                Outcome::Term(raw::whole(arena))
            }
        })
    }

    /// Whether the result is `true`. `None` if it must be computed.
    #[inline]
    pub(crate) fn is_true(&self, row: &mut Row<'_>, constants: &Constants<'_>) -> Option<bool> {
        match self {
            DirectBody::NeedsMachine | DirectBody::Bound(_) => None,
            DirectBody::True => Some(true),
            DirectBody::Element(position) => Some(row.run(*position).starts_with(TRUE)),
            DirectBody::Constant(constant) => Some(constants.get(*constant) == TRUE),
            DirectBody::Object | DirectBody::Built(_) => Some(false),
        }
    }
}

/// The list of the variables, if each is an element or is bound by plain steps.
fn bindings(head: &CompiledHead, pool: &mut Vec<u8>) -> DirectBody {
    let from = pool.len();
    match head.places.len() {
        0 => pool.push(tags::NIL),
        // A list in the encoding is its length and its elements, so the bindings need only be
        // appended.
        n => wire::push_head(pool, tags::LIST, n),
    }
    let list = Span {
        from,
        to: pool.len(),
    };
    // A variable that isn't a whole element has no place. If the steps that bind it aren't plain,
    // the machine has to make the list.
    let variables = (0..).zip(&head.places).map(|(slot, place)| match place {
        Some(position) => Some(TermPiece::Element(*position)),
        None => head.plain.then_some(TermPiece::Bound(slot)),
    });
    let pieces = std::iter::once(Some(TermPiece::Raw(list))).chain(variables);
    pieces
        .collect::<Option<_>>()
        .map_or(DirectBody::NeedsMachine, DirectBody::Built)
}

fn built(parts: &[Op], head: &CompiledHead) -> Option<DirectBody> {
    // A part that must be computed makes the whole computed.
    let pieces = parts.iter().map(|part| match *part {
        Op::Raw(span) => Some(TermPiece::Raw(span)),
        Op::Put(Operand::Const(constant)) => Some(TermPiece::Constant(constant)),
        Op::Put(Operand::Field(position)) => Some(TermPiece::Element(position)),
        Op::Put(Operand::Var(slot)) if head.plain => Some(TermPiece::Bound(slot)),
        _ => None,
    });
    pieces.collect::<Option<_>>().map(DirectBody::Built)
}
