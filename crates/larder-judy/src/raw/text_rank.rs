//! Counting strings: how many lie before one, and which has so many before it.
//!
//! ```text
//!   root array    "ann"        value     1 string      rank of "judy array":   the words before "judy arr" in the root array, with all that is below them,
//!                 "judy arr" ──→ "ay"    value                                  and the words before "ay" in the array below
//!                                "ows"   value
//! ```
//!
//! A word array tells at once how many *words* it has, but a word that goes on stands for any
//! number of strings. So what is counted is each word beside the path, and of what is below it each
//! run; no string is put together.

use super::below::{Below, Link};
use super::cpu::get;
use super::jp::Jp;
use super::text::{array, each_run, links, Text};
use crate::chunks::Chunks;
use crate::layout::Parts;
use crate::ops::cursor::Cursor;

/// Strings in an array and below it, or, if there are more than `enough`, any number above that:
/// then it stops counting. Nothing here recurses over a string's length.
fn total<C: Chunks>(top: &Jp<Parts>, enough: u64) -> u64 {
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
                    sum -= 1;
                    // SAFETY: the link's array is alive as long as the tree is lent.
                    waiting.push(unsafe { array(pair) });
                }
            })
        });
    }
    sum
}

/// Strings that a word of an array stands for, as [`total`] counts them.
fn weight<C: Chunks>(word: u64, value: u64, enough: u64) -> u64 {
    if !C::goes_on(word) {
        return 1;
    }
    // SAFETY: the word goes on, so its value is a link, to something alive as long as the tree is
    // lent.
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
    /// How many strings lie before this one, which need not be there.
    pub(crate) fn rank(&self, key: &[u8]) -> u64 {
        let (mut jp, mut rest, mut sum) = (self.root(), key, 0);
        loop {
            let (word, next) = C::cut(rest);
            let before = words(jp).take_while(|(w, _)| *w < word);
            sum += before
                .map(|(w, value)| weight::<C>(w, value, u64::MAX))
                .sum::<u64>();
            let (Some(value), Some(next)) = (get(jp, word).flatten(), next) else {
                return sum;
            };
            // SAFETY: the word goes on, so its value is a link, to something alive as long as the
            // tree is lent.
            unsafe {
                match Link::from_word(*value).open() {
                    Below::Array(below) => jp = array(below),
                    Below::Lone(lone) => return sum + (lone.rest() < next) as u64,
                }
            }
            rest = next;
        }
    }

    /// The string that has `n` before it, put into `key`, and its value.
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
            // SAFETY: the word goes on, so its value is a link, to something alive as long as the
            // tree is lent.
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
