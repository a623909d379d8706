//! The machine's values, and the scratch memory that runs share.

use crate::source::Span;
use larder_term::{atoms, tags};
use smallvec::SmallVec;

/// `true`, encoded.
pub(crate) const TRUE: &[u8] = &[tags::ATOM1, atoms::TRUE.id() as u8];
/// `false`, encoded.
pub(crate) const FALSE: &[u8] = &[tags::ATOM1, atoms::FALSE.id() as u8];
/// `'EXIT'`, encoded.
pub(crate) const EXIT: &[u8] = &[tags::ATOM1, atoms::EXIT.id() as u8];
/// `[]`, encoded.
pub(crate) const NIL: &[u8] = &[tags::NIL];

/// A value.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Val<'a> {
    /// A boolean that was computed.
    Bool(bool),
    /// An integer that was computed, or a constant one.
    Int(i64),
    /// Exactly one term: a part of the row, of the constants or of the context.
    Term(&'a [u8]),
    /// Exactly one term, in the arena.
    Arena(Span),
    /// What is left of a list: at least one element, at the begin of a run; then, if it is not proper, the tail.
    Rest {
        count: usize,
        proper: bool,
        run: Run<'a>,
    },
    /// The whole row.
    Object,
    /// The list of the variables.
    Bindings,
}

/// Neighbouring terms.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Run<'a> {
    /// Exactly the terms.
    Slice(&'a [u8]),
    /// The same, in the arena.
    Arena(Span),
}

impl Val<'_> {
    /// The boolean that it is, if it is one.
    #[inline]
    pub(crate) fn truth(self) -> Option<bool> {
        match self {
            Val::Bool(value) => Some(value),
            Val::Term(TRUE) => Some(true),
            Val::Term(FALSE) => Some(false),
            _ => None,
        }
    }
}

/// How many values a run keeps without the scratch memory's help.
pub(crate) const FEW: usize = 8;

/// The values of a run.
pub(crate) type Values<'a> = SmallVec<[Val<'a>; FEW]>;

/// Memory that runs of programs use again and again: a run allocates only where it needs more than any before.
///
/// Any program may use any scratch, one run at a time.
#[derive(Debug, Default)]
pub struct Scratch {
    pub(crate) stack: Vec<Val<'static>>,
    pub(crate) vars: Vec<Val<'static>>,
    pub(crate) frames: Vec<(usize, bool)>,
    pub(crate) arena: Vec<u8>,
}

impl Scratch {
    /// Empty scratch memory.
    pub fn new() -> Scratch {
        Scratch::default()
    }
}

/// Room for the values of a run, in memory that others had: for more than a few of them only.
#[inline]
pub(crate) fn take<'a>(memory: &mut Vec<Val<'static>>, many: bool) -> Values<'a> {
    match many {
        true => SmallVec::from_vec(recycle(std::mem::take(memory))),
        false => SmallVec::new(),
    }
}

/// Gives the memory back.
#[inline]
pub(crate) fn give(memory: &mut Vec<Val<'static>>, values: Values<'_>) {
    if values.spilled() {
        *memory = recycle(values.into_vec());
    }
}

/// The same memory, for values of another lifetime. The vector is emptied; its memory stays (an in-place collect allocates nothing).
fn recycle<'b>(mut values: Vec<Val<'_>>) -> Vec<Val<'b>> {
    values.clear();
    values.into_iter().map(|_| Val::Bool(false)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recycled_memory_is_kept() {
        let bytes = [tags::NIL];
        let mut values = Vec::with_capacity(100);
        values.push(Val::Term(&bytes));
        let again: Vec<Val<'static>> = recycle(values);
        assert!(again.is_empty() && again.capacity() >= 100);
    }
}
