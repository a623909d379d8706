//! Counting strings: how many are before a given one, and which one is the n-th.
//!
//! ```text
//!   root array    "ann"        value     1 string
//!                 "judy arr" ──→ "ay"    value
//!                                "ows"   value
//! ```
//!
//! The rank of "judy array" counts the words before "judy arr" in the root array, with all that is
//! below them, and the words before "ay" in the array below.
//!
//! A word array knows how many *words* it has, but any number of strings may be below a word that
//! goes on. So each word beside the path is visited, and what is below it is counted run by run. No
//! string is composed.

use super::below::{Below, Link};
use super::cpu::get;
use super::jp::Jp;
use super::text::{array, each_run, links, Text};
use crate::chunks::Chunks;
use crate::layout::Parts;
use crate::ops::cursor::Cursor;

/// The number of strings in an array and below it. If there are more than `enough`, stops counting,
/// and returns any number above `enough`.
fn total<C: Chunks>(top: &Jp<Parts>, enough: u64) -> u64 {
    // A stack of arrays, not recursion: strings may be long.
    let (mut sum, mut waiting) = (0, vec![top]);
    while let Some(jp) = waiting.pop() {
        sum += jp.pop();
        // No array is empty.
        let least = sum + waiting.len() as u64;
        if least > enough {
            return least;
        }
        each_run(jp, &mut |run| {
            links::<C>(run, |link| {
                if let Below::Array(pair) = link.open() {
                    // The word stands for the strings below it, which are counted when their array
                    // is.
                    sum -= 1;
                    // SAFETY: the link's array is alive as long as the tree is lent.
                    waiting.push(unsafe { array(pair) });
                }
            })
        });
    }
    sum
}

/// The number of strings that begin with a word of an array, counted as by [`total`].
fn weight<C: Chunks>(word: u64, value: u64, enough: u64) -> u64 {
    if !C::goes_on(word) {
        return 1;
    }
    // SAFETY: the word goes on, so its value is a link. What it leads to is alive as long as the
    // tree is lent.
    match unsafe { Link::from_word(value) }.open() {
        Below::Lone(_) => 1,
        // SAFETY: as above.
        Below::Array(pair) => total::<C>(unsafe { array(pair) }, enough),
    }
}

/// The words of an array in order, each with its value.
fn words(jp: &Jp<Parts>) -> impl Iterator<Item = (u64, u64)> + '_ {
    let mut cursor = Cursor::<Parts, true>::from(jp, 0);
    std::iter::from_fn(move || {
        cursor
            .step()
            .map(|(word, value)| (word, value.copied().unwrap_or(0)))
    })
}

impl<C: Chunks> Text<C> {
    /// The number of strings before this one, which may be missing.
    pub(crate) fn rank(&self, key: &[u8]) -> u64 {
        let (mut jp, mut rest, mut sum) = (self.root(), key, 0);
        loop {
            let (word, next) = C::cut(rest);
            // All strings below a smaller word are before the key.
            let before = words(jp).take_while(|(w, _)| *w < word);
            sum += before
                .map(|(w, value)| weight::<C>(w, value, u64::MAX))
                .sum::<u64>();
            // If the word is missing, or the key ends with it, no string below it is before the
            // key.
            let (Some(value), Some(next)) = (get(jp, word).flatten(), next) else {
                return sum;
            };
            // SAFETY: the word goes on, so its value is a link. What it leads to is alive as long
            // as the tree is lent.
            unsafe {
                match Link::from_word(*value).open() {
                    Below::Array(below) => jp = array(below),
                    // The one string below the word is before the key if its rest is.
                    Below::Lone(lone) => return sum + (lone.rest() < next) as u64,
                }
            }
            rest = next;
        }
    }

    /// Finds the string with `n` others before it, and sets `key` to it. Returns its value.
    pub(crate) fn nth(&self, mut n: u64, key: &mut Vec<u8>) -> Option<&u64> {
        if n >= self.len() {
            return None;
        }
        key.clear();
        let mut jp = self.root();
        loop {
            // Pass words until the one that holds the string. A word that goes on weighs as much as
            // there is below it.
            let alone = jp.pop() == 1;
            let (word, value) = words(jp).find(|&(word, value)| {
                // An array's only word leads to the string whatever its weight.
                let weight = if alone {
                    n + 1
                } else {
                    weight::<C>(word, value, n)
                };
                // `n` becomes the number of strings in front, below the word that was found.
                let here = n < weight;
                n -= if here { 0 } else { weight };
                here
            })?;
            C::push(word, key);
            if !C::goes_on(word) {
                return get(jp, word).flatten();
            }
            // SAFETY: the word goes on, so its value is a link. What it leads to is alive as long
            // as the tree is lent.
            unsafe {
                match Link::from_word(value).open() {
                    Below::Array(below) => jp = array(below),
                    Below::Lone(lone) => {
                        key.extend_from_slice(lone.rest());
                        return Some(&*lone.value());
                    }
                }
            }
        }
    }
}
