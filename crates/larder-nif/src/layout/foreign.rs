//! Identifiers of other nodes.
//!
//! ```text
//!  pid         header, Node, •, id | serial << 32
//!  port        header, Node, •, number
//!  reference   header, Node, •, count | number 0 << 32, number 1 | number 2 << 32, …
//!  Node        …, name, creation, …       in the emulator's table of nodes
//! ```
//!
//! A term holds its entry in the table of nodes. So one can be read here, but not made: `Foreign`
//! terms are copied from others by the emulator, and get other data (`terms::foreign`).

use super::kinds::*;
use super::words::*;
use crate::sys::external::from_external_format;
use crate::sys::*;
use smallvec::SmallVec;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The words of an identifier that say which one of its node it is.
pub type Data = SmallVec<[Word; 3]>;

/// The words after the header that come before the data.
const HEAD: usize = 2;
/// The most words of a node's entry that are searched for its name.
const SEARCHED: usize = 5;
/// Where the name of a node lies in its entry, in words; the creation lies after it.
static NAME: AtomicUsize = AtomicUsize::new(0);

/// The node of an identifier: its name, an atom, and its creation.
#[inline]
pub fn foreign_node(word: Word) -> (Word, u32) {
    // Ordering: Relaxed, as in `kind`.
    let at = NAME.load(Ordering::Relaxed);
    // SAFETY: an identifier points at the entry of its node, and holds it. The entry has a name and
    // a creation there, as `prove_foreign` has verified.
    unsafe {
        let node = words(word, 1)[0] as *const Word;
        (*node.add(at), *node.add(at + 1) as u32)
    }
}

/// The data of an identifier.
#[inline]
pub fn foreign_data<'a>(word: Word) -> &'a [Word] {
    // SAFETY: as many words follow the header as it says, of which there are more than `HEAD`.
    unsafe { &words(word, arity(word))[HEAD..] }
}

/// Replaces the data of an identifier by as many other words.
///
/// # Safety
/// The term was just made, and nobody else has seen it.
pub unsafe fn set_foreign_data(word: Word, data: &[Word]) {
    debug_assert_eq!(foreign_data(word).len(), data.len());
    // SAFETY: the caller's promise; the data are the last words of the term.
    unsafe {
        let at = pointer(word).add(1 + HEAD).cast_mut();
        at.copy_from_nonoverlapping(data.as_ptr(), data.len());
    }
}

/// The data of a pid.
pub fn pid_data(id: u32, serial: u32) -> Data {
    Data::from_slice(&[id as Word | (serial as Word) << 32])
}

/// The data of a reference with these numbers.
pub fn reference_data(numbers: impl ExactSizeIterator<Item = u32>) -> Data {
    let mut halves = std::iter::once(numbers.len() as u32).chain(numbers);
    let mut data = Data::new();
    while let Some(low) = halves.next() {
        data.push(low as Word | (halves.next().unwrap_or(0) as Word) << 32);
    }
    data
}

/// The numbers of a reference of another node.
pub fn foreign_numbers(word: Word) -> impl Iterator<Item = u32> {
    let data = foreign_data(word);
    let half = move |i: usize| (data[i / 2] >> (32 * (i % 2))) as u32;
    // What the count says lies within the term, even if it were no count.
    let count = half(0) as usize;
    (1..=count.min(2 * data.len() - 1)).map(half)
}

/// Verifies the layout of identifiers of other nodes, on those of two nodes that don't exist. A
/// kind whose proof fails isn't known.
pub fn prove_foreign(env: *mut Env) {
    let nodes = [
        ("larder-a@nowhere", 0x01020304_u32),
        ("larder-b@nowhere", 5),
    ];
    let make = |tag: u8, (name, creation): (&str, u32), numbers: &[u32]| {
        let mut format = vec![131, tag];
        if tag == REFERENCE {
            format.extend([0, numbers.len() as u8]);
        }
        format.extend([100, 0, name.len() as u8]);
        format.extend(name.bytes());
        // The creation precedes the numbers of a reference, and follows others.
        let first = (tag == REFERENCE).then_some(creation);
        let last = (tag != REFERENCE).then_some(creation);
        let numbers = first.into_iter().chain(numbers.iter().copied()).chain(last);
        format.extend(numbers.flat_map(u32::to_be_bytes));
        from_external_format(env, &format).filter(|&word| is_boxed(word))
    };
    let samples: [(u8, Kind, &[u32], Data); 4] = [
        (PID, Kind::ForeignPid, &[7, 9], pid_data(7, 9)),
        (PORT, Kind::ForeignPort, &[11], Data::from_slice(&[11])),
        (
            REFERENCE,
            Kind::ForeignReference,
            &[1, 2, 3],
            reference_data([1, 2, 3].into_iter()),
        ),
        (
            REFERENCE,
            Kind::ForeignReference,
            &[5, 4, 3, 2, 1],
            reference_data([5, 4, 3, 2, 1].into_iter()),
        ),
    ];
    for node in nodes {
        // SAFETY: `env` is the environment of the running load callback; the name has that length.
        let name = unsafe { enif_make_atom_len(env, node.0.as_ptr().cast(), node.0.len()) };
        for (tag, kind, numbers, data) in &samples {
            let fits = |word: Word| {
                arity(word) == HEAD + data.len()
                    && foreign_data(word) == &data[..]
                    && find_name(word, name)
                    && foreign_node(word) == (name, node.1)
            };
            match make(*tag, node, numbers).filter(|&word| fits(word)) {
                Some(word) => note(word, *kind),
                None => {
                    samples.iter().for_each(|sample| forget(sample.1));
                    return;
                }
            }
        }
    }
}

/// The tags of identifiers in the external format.
const PID: u8 = 88;
const PORT: u8 = 89;
const REFERENCE: u8 = 90;

/// Searches for the place of a node's name in its entry. It must be where others were found.
fn find_name(word: Word, name: Word) -> bool {
    // SAFETY: the term is one of a node. An entry has at least six words: two of the table's, a
    // count, name, creation, and the address of the connection.
    let entry = unsafe { std::slice::from_raw_parts(words(word, 1)[0] as *const Word, SEARCHED) };
    // Ordering: Relaxed, both, as in `kind`.
    let known = NAME.load(Ordering::Relaxed);
    let found = entry.iter().rposition(|&word| word == name);
    let fits = found.is_some_and(|at| known == 0 || known == at);
    if let (true, Some(at)) = (fits, found) {
        NAME.store(at, Ordering::Relaxed);
    }
    fits
}
