//! Judy arrays over byte strings: `judysl` and `judyesl` of the study of 2003, here in key order.
//!
//! ```text
//!   array     "ann"  -> 3                       maps positions to numbers
//!             "anne" -> 0
//!   words     [ word | word | free | word ]     maps numbers to words
//! ```
//!
//! Positions are only stored in the array, which restores them in a walk.
//!
//! *Zero bytes.* Strings of JudySL end with a zero byte, so they can't contain one. A zero byte of
//! a position is encoded as 01 01, and a byte 01 as 01 02. This preserves the order. Strings of
//! JudyESL have a length, so positions aren't encoded.
//!
//! Invariant: the array has the string of a position if and only if there is an entry. Its value is
//! the number of the entry's word.
//!
//! Steps of a change:
//! 1. Look up the number.
//! 2. Let the caller decide.
//! 3. Insert into the array, or remove from it.
//!
//! Source: S. L. Fritchie, "A study of Erlang ETS table implementations and performance", Erlang
//! workshop 2003, and its future work (keys in bytes that sort as terms do make these tables
//! ordered); the arrays are [`larder_judy::JudySL`] and [`larder_judy::JudyESL`], two kinds of
//! [`StringArray`]. Deviations: a value is a number, not an address. A split or a join moves the
//! entries of one part one by one.
//!
//! When to use it: for many keys with common prefixes, which take little memory. When not to use
//! it: for many writers, since there is one lock; for walks of single steps, since each step
//! descends from the root; for lookups of random keys, which a hash table finds in fewer steps.

use crate::sequential::{Act, Actor, Divisible, Sequential, Visitor};
use crate::slab::Slab;
use crate::{Cut, Position};
use larder_index::Stats;
use larder_judy::{Chunks, Counted, StringArray, Terminated};
use smallvec::SmallVec;

/// A position, encoded as a string of an array.
type Written = SmallVec<[u8; 120]>;

/// The destination of a step through an array.
#[derive(Clone, Copy, Debug)]
enum Destination {
    /// To the least string.
    First,
    /// To the greatest string.
    Last,
    /// To the greatest string that isn't above the given one.
    AtOrBefore,
    /// To the next string above.
    After,
    /// To the next string below.
    Before,
}

/// A kind of strings, and the encoding of positions as such strings, which preserves the order.
pub trait Strings: Chunks {
    /// Calls `f` with the string of a position.
    fn with<R>(position: &[u8], f: impl FnOnce(&[u8]) -> R) -> R;

    /// The position of a string. `buffer` may be used for the result.
    fn position<'b>(string: &'b [u8], buffer: &'b mut Vec<u8>) -> &'b [u8];

    /// Stores a number under a string.
    fn put(array: &mut StringArray<Self>, string: &[u8], number: u64);
}

/// `judyesl`: strings may contain any bytes.
impl Strings for Counted {
    #[inline]
    fn with<R>(position: &[u8], f: impl FnOnce(&[u8]) -> R) -> R {
        f(position)
    }

    #[inline]
    fn position<'b>(string: &'b [u8], _buffer: &'b mut Vec<u8>) -> &'b [u8] {
        string
    }

    fn put(array: &mut StringArray<Self>, string: &[u8], number: u64) {
        array.insert(string, number);
    }
}

/// The first byte of the encodings of a zero byte, and of itself.
const ESCAPE: u8 = 1;

/// `judysl`: strings without zero bytes.
impl Strings for Terminated {
    fn with<R>(position: &[u8], f: impl FnOnce(&[u8]) -> R) -> R {
        if position.iter().all(|byte| *byte > ESCAPE) {
            return f(position);
        }
        // Rare: there is a byte to encode, as described above.
        let mut string = Written::new();
        for &byte in position {
            if byte <= ESCAPE {
                string.push(ESCAPE);
            }
            string.push(byte + u8::from(byte <= ESCAPE));
        }
        f(&string)
    }

    fn position<'b>(string: &'b [u8], buffer: &'b mut Vec<u8>) -> &'b [u8] {
        // Most strings have no escapes, and are the positions themselves.
        if !string.contains(&ESCAPE) {
            return string;
        }
        buffer.clear();
        let mut bytes = string.iter().copied();
        while let Some(byte) = bytes.next() {
            buffer.push(match byte {
                // The next byte is 1 or 2.
                ESCAPE => bytes.next().map_or(0, |byte| byte - 1),
                byte => byte,
            });
        }
        buffer
    }

    fn put(array: &mut StringArray<Self>, string: &[u8], number: u64) {
        let put = array.insert(string, number);
        debug_assert!(put.is_ok(), "written without zero bytes");
    }
}

/// A Judy array over byte strings, which maps positions to words.
pub struct JudyText<C: Strings, W> {
    array: StringArray<C>,
    words: Slab<W>,
}

impl<C: Strings, W> Default for JudyText<C, W> {
    fn default() -> Self {
        Self::new()
    }
}

impl<C: Strings, W> JudyText<C, W> {
    /// An empty array.
    pub fn new() -> Self {
        JudyText {
            array: StringArray::new(),
            words: Slab::new(),
        }
    }

    /// Goes from a string to another one. Returns its number.
    fn step(&self, to: Destination, string: &mut Vec<u8>) -> Option<u64> {
        match to {
            Destination::First => self.array.first(string),
            Destination::Last => self.array.last(string),
            Destination::AtOrBefore => self.array.at_or_before(string),
            Destination::After => self.array.after(string),
            Destination::Before => self.array.before(string),
        }
    }

    /// Finds the first entry of a walk. Returns its number, and writes its string to `string`.
    fn begin(&self, cut: Cut<'_>, string: &mut Vec<u8>) -> Option<u64> {
        let forward = cut.is_forward();
        let (edge, on) = match forward {
            true => (Destination::First, Destination::After),
            false => (Destination::Last, Destination::Before),
        };
        let Some(bytes) = cut.bytes() else {
            return self.step(edge, string);
        };
        C::with(bytes, |bytes| string.extend_from_slice(bytes));
        // Any kind of cut at some bytes is directly before or directly after the last entry that
        // isn't past these bytes. So find that entry, and then check on which side of the cut it
        // is.
        match self.step(Destination::AtOrBefore, string) {
            None if forward => self.step(edge, string),
            None => None,
            Some(number) => {
                let admitted = cut.admits(C::position(string, &mut Vec::new()));
                match admitted {
                    true => Some(number),
                    false => self.step(on, string),
                }
            }
        }
    }

    /// Removes the last entry, and writes its string to `string`.
    fn take_last(&mut self, string: &mut Vec<u8>) -> Option<W> {
        string.clear();
        self.step(Destination::Last, string)?;
        let number = self.array.remove(string)?;
        Some(self.words.remove(number as u32))
    }

    fn put_new(&mut self, string: &[u8], word: W) {
        let number = self.words.insert(word);
        C::put(&mut self.array, string, u64::from(number));
    }
}

impl<C: Strings, W: Send + Sync> Sequential<W> for JudyText<C, W> {
    fn get(&self, position: &[u8]) -> Option<&W> {
        let number = C::with(position, |string| self.array.get(string))?;
        Some(&self.words[number as u32])
    }

    fn change(&mut self, position: &[u8], f: &mut Actor<'_, W>) {
        C::with(position, |string| {
            // (1), (2)
            // The array has a number for the string, and `words` has the word of that number.
            let Some(number) = self.array.get(string) else {
                if let Act::Put(word) = f(None) {
                    self.put_new(string, word);
                }
                return;
            };
            let number = number as u32;
            // (3)
            match f(Some(&mut self.words[number])) {
                Act::Keep => {}
                Act::Put(word) => self.words[number] = word,
                Act::Remove => {
                    // Remove both, so that the number can be used again.
                    self.array.remove(string);
                    self.words.remove(number);
                }
            }
        });
    }

    fn walk(&self, cut: Cut<'_>, f: &mut Visitor<'_, W>) -> bool {
        // Two buffers for the whole walk: the string of the current entry, and its position if that
        // differs.
        let (mut string, mut position) = (Vec::new(), Vec::new());
        let on = match cut.is_forward() {
            true => Destination::After,
            false => Destination::Before,
        };
        // The array has no cursor. Each step searches again, from the string of the last entry.
        let mut at = self.begin(cut, &mut string);
        while let Some(number) = at {
            let position = C::position(&string, &mut position);
            if !f(position, &self.words[number as u32]) {
                return false;
            }
            at = self.step(on, &mut string);
        }
        true
    }

    fn pop(&mut self) -> Option<W> {
        self.take_last(&mut Vec::new())
    }

    fn len(&self) -> usize {
        self.words.len()
    }

    fn memory(&self) -> usize {
        self.array.memory_used() + self.words.memory()
    }

    fn stats(&self, stats: &mut Stats) {
        let more = [("judy_bytes", self.array.memory_used() as u64)];
        stats.more.extend(more);
    }
}

impl<C: Strings, W: Send + Sync> Divisible<W> for JudyText<C, W> {
    fn like(&self) -> Self {
        JudyText::new()
    }

    fn divide(&mut self) -> Option<(Position, Self)> {
        let (mut upper, mut string) = (self.like(), Vec::new());
        for _ in 0..self.len() / 2 {
            let word = self.take_last(&mut string)?;
            upper.put_new(&string, word);
        }
        if upper.is_empty() {
            return None;
        }
        // The string that was moved last is the first one of the upper part.
        let first = Position::from_slice(C::position(&string, &mut Vec::new()));
        Some((first, upper))
    }

    fn join(&mut self, mut right: Self) {
        if right.len() > self.len() {
            // Move the entries of the smaller part. The array sorts them in any case.
            std::mem::swap(self, &mut right);
        }
        let mut string = Vec::new();
        while let Some(word) = right.take_last(&mut string) {
            self.put_new(&string, word);
        }
    }
}

#[cfg(all(test, not(larder_model)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(position: &[u8]) -> Vec<u8> {
        Terminated::with(position, <[u8]>::to_vec)
    }

    proptest! {
        #[test]
        fn strings_without_zeros_keep_order_and_bytes(
            a in prop::collection::vec(0..4u8, 0..30),
            b in prop::collection::vec(0..4u8, 0..30),
        ) {
            let (x, y) = (written(&a), written(&b));
            prop_assert!(!x.contains(&0));
            prop_assert_eq!(x.cmp(&y), a.cmp(&b));
            prop_assert_eq!(x.starts_with(&y), a.starts_with(&b));
            let mut buffer = vec![9; 3];
            prop_assert_eq!(Terminated::position(&x, &mut buffer), &a[..]);
        }
    }

    fn divides_and_joins<C: Strings>() {
        let mut low = JudyText::<C, u16>::new();
        for n in 0..500u16 {
            low.insert(&n.to_be_bytes(), n);
        }
        let (first, high) = low.divide().unwrap();
        assert_eq!(
            (low.len(), high.len(), &first[..]),
            (250, 250, &[0, 250][..])
        );
        for n in 0..500u16 {
            let there = (low.get(&n.to_be_bytes()), high.get(&n.to_be_bytes()));
            assert_eq!(
                there,
                if n < 250 {
                    (Some(&n), None)
                } else {
                    (None, Some(&n))
                }
            );
        }
        (10..250u16).for_each(|n| assert!(low.remove(&n.to_be_bytes())));
        low.join(high);
        let left: Vec<_> = std::iter::from_fn(|| low.pop()).collect();
        assert!(left.into_iter().rev().eq((0..10).chain(250..500)));
        assert_eq!((low.memory(), low.divide().is_none()), (0, true));
        low.insert(b"one", 1);
        assert!(low.divide().is_none() && low.len() == 1);
    }

    #[test]
    fn parts_are_divided_and_joined() {
        divides_and_joins::<Terminated>();
        divides_and_joins::<Counted>();
    }
}
