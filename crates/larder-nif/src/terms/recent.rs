//! A cache of what was used recently, by a number that each value has.

use std::ops::Range;

/// The number of slots.
const SLOTS: usize = 1024;
/// The number of slots that a value may be in.
const WAYS: usize = 4;

/// A cache of a thread. Of the slots that a value may be in, the first has the one that was added
/// last.
pub struct Recent<T>(Vec<Option<T>>);

impl<T> Default for Recent<T> {
    fn default() -> Self {
        Recent(Vec::new())
    }
}

impl<T> Recent<T> {
    /// The value with this number for which `is` returns `true`.
    #[inline]
    pub fn find(&self, number: u64, is: impl Fn(&T) -> bool) -> Option<&T> {
        let slots = self.0.get(slots_of(number))?;
        slots.iter().flatten().find(|value| is(value))
    }

    /// Adds a value with this number. Another one may go.
    pub fn add(&mut self, number: u64, value: T) {
        self.0.resize_with(SLOTS, || None);
        let slots = &mut self.0[slots_of(number)];
        slots.rotate_right(1);
        slots[0] = Some(value);
    }
}

#[inline]
fn slots_of(number: u64) -> Range<usize> {
    let slot = (number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as usize % SLOTS;
    let first = slot / WAYS * WAYS;
    first..first + WAYS
}
