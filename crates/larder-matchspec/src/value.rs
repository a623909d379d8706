//! The machine's values, and the scratch memory that runs share.

use crate::constant::Span;
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
    /// A computed boolean.
    Bool(bool),
    /// A computed integer, or a constant one.
    Int(i64),
    /// Exactly one term, which is a part of the row, of the constants or of the context.
    Term(&'a [u8]),
    /// Exactly one term, in the arena.
    Arena(Span),
    /// The rest of a list: at least one element, at the beginning of a run; then the tail, if the
    /// list isn't proper.
    Rest {
        count: u32,
        proper: bool,
        run: Run<'a>,
    },
    /// The whole row.
    Object,
    /// The list of the variables.
    Bindings,
}

/// Adjacent terms.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Run<'a> {
    /// Exactly the terms.
    Slice(&'a [u8]),
    /// The same, in the arena.
    Arena(Span),
}

impl Val<'_> {
    /// The boolean, if the value is one.
    #[inline]
    pub(crate) fn truth(self) -> Option<bool> {
        match self {
            Val::Bool(value) => Some(value),
            // Each of the two atoms has only one encoding, so their bytes are compared.
            Val::Term(TRUE) => Some(true),
            Val::Term(FALSE) => Some(false),
            _ => None,
        }
    }
}

/// The number of values that a run keeps inline, without the scratch memory.
pub(crate) const INLINE_VALUES: usize = 8;

/// The values of a run. A few of them are inline. If there are more, or many are expected, all are
/// in memory that is borrowed from the scratch memory.
#[derive(Debug)]
pub(crate) struct MachineValues<'a>(SmallVec<[Val<'a>; INLINE_VALUES]>);

impl<'a> MachineValues<'a> {
    /// The number of values.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The value at an index; `false` if there is none.
    #[inline]
    pub(crate) fn at(&self, index: usize) -> Val<'a> {
        self.0.get(index).copied().unwrap_or(Val::Bool(false))
    }

    /// All values.
    #[inline]
    pub(crate) fn as_slice(&self) -> &[Val<'a>] {
        &self.0
    }

    /// All values, mutably.
    #[inline]
    pub(crate) fn as_mut_slice(&mut self) -> &mut [Val<'a>] {
        &mut self.0
    }

    /// Replaces the value in a slot, if there is one.
    #[inline]
    pub(crate) fn set(&mut self, slot: u32, value: Val<'a>) {
        if let Some(place) = self.0.get_mut(slot as usize) {
            *place = value;
        }
    }

    /// Pushes a value.
    #[inline]
    pub(crate) fn push(&mut self, value: Val<'a>) {
        self.0.push(value);
    }

    /// Pops the last value; `false` if there is none.
    #[inline]
    pub(crate) fn pop(&mut self) -> Val<'a> {
        self.0.pop().unwrap_or(Val::Bool(false))
    }

    /// Keeps the first `len` values, if there are more.
    #[inline]
    pub(crate) fn truncate(&mut self, len: usize) {
        self.0.truncate(len);
    }

    /// Replaces the values by this number of placeholders.
    #[inline]
    pub(crate) fn reset(&mut self, len: usize) {
        self.0.clear();
        if len > 0 {
            self.0.resize(len, Val::Bool(false));
        }
    }
}

/// Memory that is reused by runs of programs. A run allocates only if it needs more memory than any
/// run before it.
///
/// Any program may use any scratch memory, but only one run at a time.
#[derive(Debug, Default)]
pub struct Scratch {
    /// The memory of the stack, if it was needed.
    pub(crate) stack: Vec<Val<'static>>,
    /// The memory of the variables, if it was needed.
    pub(crate) vars: Vec<Val<'static>>,
    /// The open lists and maps of the head that is being matched.
    pub(crate) frames: Vec<(usize, bool)>,
    /// The bytes of computed terms.
    pub(crate) arena: Vec<u8>,
}

impl Scratch {
    /// The size of the memory, in bytes.
    pub fn memory(&self) -> usize {
        (self.stack.capacity() + self.vars.capacity()) * size_of::<Val<'static>>()
            + self.arena.capacity()
    }

    /// Empty scratch memory.
    pub fn new() -> Scratch {
        Scratch::default()
    }
}

/// Makes room for the values of a run. If they may be many, takes the memory from that of earlier
/// runs.
#[inline]
pub(crate) fn take<'a>(memory: &mut Vec<Val<'static>>, many: bool) -> MachineValues<'a> {
    if many {
        return MachineValues(SmallVec::from_vec(recycle(std::mem::take(memory))));
    }
    MachineValues(SmallVec::new())
}

/// Gives the memory back to the scratch memory, if the values needed any.
#[inline]
pub(crate) fn give(memory: &mut Vec<Val<'static>>, values: MachineValues<'_>) {
    if values.0.spilled() {
        *memory = recycle(values.0.into_vec());
    }
}

/// Returns the same memory for values of another lifetime. The vector is emptied, but keeps its
/// memory, since an in-place `collect` allocates nothing.
fn recycle<'b>(mut values: Vec<Val<'_>>) -> Vec<Val<'b>> {
    values.clear();
    values.into_iter().map(|_| Val::Bool(false)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_beyond_the_few_are_kept_as_well() {
        for many in [false, true] {
            let mut lent = Vec::new();
            let mut values = take(&mut lent, many);
            (0..3 * INLINE_VALUES as i64).for_each(|n| values.push(Val::Int(n)));
            assert_eq!(values.len(), 3 * INLINE_VALUES);
            assert!((0..3 * INLINE_VALUES)
                .all(|i| matches!(values.at(i), Val::Int(n) if n == i as i64)));
            assert!(matches!(values.pop(), Val::Int(n) if n == 3 * INLINE_VALUES as i64 - 1));
            values.truncate(1);
            assert!(matches!(
                (values.pop(), values.pop(), values.len()),
                (Val::Int(0), Val::Bool(false), 0)
            ));
            values.reset(2);
            assert_eq!(values.as_slice().len(), 2);
            give(&mut lent, values);
            assert!(lent.is_empty() && lent.capacity() >= 3 * INLINE_VALUES - 1);
        }
    }

    #[test]
    fn values_are_small() {
        assert!(size_of::<Val<'_>>() <= 32);
    }

    #[test]
    fn recycled_memory_is_kept() {
        let bytes = [tags::NIL];
        let mut values = Vec::with_capacity(100);
        values.push(Val::Term(&bytes));
        let again: Vec<Val<'static>> = recycle(values);
        assert!(again.is_empty() && again.capacity() >= 100);
    }
}
