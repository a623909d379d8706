//! The default for bags: any number of values under a key, in order of arrival.
//!
//! ```text
//!  position   top 48 bits of the hash (6 bytes, big endian) | key | number of the arrival
//!  number     0..=127: one byte; else 0x80+n, n bytes (big endian), 0x80+n
//! ```
//!
//! The entries live in the B+-tree of the key order, so that a million values under one key are a run of leaves like any other. A number
//! can be told from the end of a position, and longer numbers sort after shorter ones.
//!
//! *One instant.* Writers of one key exclude each other by a *stripe*: a lock and a version, found by the hash, shared by all indexes. A
//! writer makes the version odd before its first change and even after its last. A reader takes the version, reads leaf after
//! leaf, and looks at the version again; when that fails too often it takes the lock.

use crate::raw::btree::Btree;
use crate::run::{with_run, Run};
use crate::sync::atomic::{fence, AtomicU64, AtomicUsize, Ordering::*};
use crate::sync::Backoff;
use crate::traits::HASH;
use crate::tree::{Tree, Wish};
use crate::{Batch, Change, Direction, Key, LeafConfig, Multi, Objects, Start, Stats};
use crossbeam_epoch::Guard;
use crossbeam_utils::CachePadded;
use parking_lot::{Mutex, MutexGuard};
use smallvec::SmallVec;

const STRIPES: usize = 256;
/// How often a reader tries without the lock.
const TRIES: usize = 8;
/// Sorts after every number of an arrival.
const PAST_NUMBERS: u8 = 0xFF;

/// A position, or what all positions of a key begin with; mostly without memory of its own.
type Position = SmallVec<[u8; 104]>;

struct Stripe {
    writer: Mutex<()>,
    version: AtomicU64,
}

static ALL: [CachePadded<Stripe>; STRIPES] = [const {
    CachePadded::new(Stripe {
        writer: Mutex::new(()),
        version: AtomicU64::new(0),
    })
}; STRIPES];

/// Any number of values under a key, in order of arrival.
pub struct Bag {
    tree: Tree<Btree>,
    /// So that equal keys of different indexes use different stripes.
    salt: usize,
}

impl Bag {
    /// An empty index.
    pub fn new(config: LeafConfig) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        Bag {
            tree: Tree::new(config, Btree::new),
            // Ordering: Relaxed, only a number of its own.
            salt: NEXT.fetch_add(37, Relaxed),
        }
    }

    fn stripe(&self, key: Key<'_>) -> &'static Stripe {
        &ALL[((key.hash >> 40) as usize).wrapping_add(self.salt) % STRIPES]
    }

    /// Does a read of one key that sees one instant.
    fn stable<T>(&self, key: Key<'_>, mut read: impl FnMut() -> T) -> T {
        let stripe = self.stripe(key);
        let backoff = Backoff::new();
        for _ in 0..TRIES {
            // Ordering: Acquire, pairs with the store that ends a write: its changes are seen.
            let before = stripe.version.load(Acquire);
            if before % 2 == 0 {
                let result = read();
                // Ordering: Acquire fence, pairs with the fence that begins a write: who saw a change sees the odd version.
                fence(Acquire);
                // Ordering: Relaxed, the fence keeps it after the reads.
                if stripe.version.load(Relaxed) == before {
                    return result;
                }
            }
            backoff.snooze();
        }
        let _no_writer = stripe.writer.lock();
        read()
    }

    /// Calls `f` with runs of the key's entries, in order, until it answers false.
    fn runs(&self, guard: &Guard, prefix: &[u8], limit: usize, f: &mut dyn FnMut(&Run) -> bool) {
        let mut start: Position = prefix.into();
        let mut resume = Vec::new();
        with_run(|run| loop {
            let wish = Wish {
                start: Start::At(&start),
                direction: Direction::Forward,
                within: prefix,
                limit,
            };
            let done = self.tree.scan(guard, &wish, run, &mut resume);
            if (run.len() > 0 && !f(run)) || done {
                return;
            }
            start = Position::from_slice(&resume);
        });
    }
}

/// What all positions of the key begin with.
fn prefix(key: Key<'_>) -> Position {
    let mut prefix = Position::new();
    prefix.extend_from_slice(&key.hash.to_be_bytes()[..HASH]);
    prefix.extend_from_slice(key.bytes);
    prefix
}

/// Appends the number of an arrival.
fn push_number(n: u64, out: &mut Position) {
    if n < 0x80 {
        out.push(n as u8);
        return;
    }
    let bytes = n.to_be_bytes();
    let skip = n.leading_zeros() as usize / 8;
    let mark = 0x80 + (8 - skip) as u8;
    out.push(mark);
    out.extend_from_slice(&bytes[skip..]);
    out.push(mark);
}

/// Bytes of the number at the end of a position.
fn number_len(position: &[u8]) -> usize {
    match position.last() {
        Some(mark) if *mark >= 0x80 => usize::from(mark - 0x80) + 2,
        _ => 1,
    }
}

/// The number at the end of a position.
fn number(position: &[u8]) -> u64 {
    let bytes = &position[position.len() - number_len(position)..];
    match bytes {
        [small] => u64::from(*small),
        [_, middle @ .., _] => middle.iter().fold(0, |n, b| n << 8 | u64::from(*b)),
        [] => 0,
    }
}

/// The objects of a key whose stripe is locked.
struct Held<'a> {
    bag: &'a Bag,
    guard: &'a Guard,
    prefix: Position,
    /// The number of the next arrival, once it is known.
    next: Option<u64>,
    stripe: &'static Stripe,
    wrote: bool,
    _writer: MutexGuard<'static, ()>,
}

impl Held<'_> {
    /// Before every change: readers of the key shall read again.
    fn write(&mut self, position: &[u8], change: Change<'_>) {
        if !self.wrote {
            self.wrote = true;
            // Ordering: Relaxed, only the lock's holder writes it; the fence orders it.
            self.stripe.version.fetch_add(1, Relaxed);
            // Ordering: Release fence, pairs with the reader's: who sees a change sees the odd version.
            fence(Release);
        }
        self.bag
            .tree
            .update(self.guard, position, &mut |_, _| change);
    }

    /// The number of the next arrival.
    fn next(&self) -> u64 {
        let mut end = self.prefix.clone();
        end.push(PAST_NUMBERS);
        let wish = Wish {
            start: Start::Past(&end),
            direction: Direction::Backward,
            within: &self.prefix,
            limit: 1,
        };
        with_run(|run| {
            self.bag.tree.scan(self.guard, &wish, run, &mut Vec::new());
            if run.len() == 0 {
                0
            } else {
                number(run.position(0)) + 1
            }
        })
    }

    /// Calls `f` with position and value of each entry, until it answers false.
    fn entries(&self, f: &mut dyn FnMut(&[u8], &[u8]) -> bool) {
        self.bag
            .runs(self.guard, &self.prefix, usize::MAX, &mut |run| {
                (0..run.len()).all(|i| f(run.position(i), run.value(i)))
            });
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if self.wrote {
            // Ordering: Release, pairs with a reader's first load: who sees it even again sees the changes. The lock is still held.
            self.stripe.version.fetch_add(1, Release);
        }
    }
}

impl Objects for Held<'_> {
    fn count(&self) -> usize {
        let mut n = 0;
        self.bag
            .runs(self.guard, &self.prefix, usize::MAX, &mut |run| {
                n += run.len();
                true
            });
        n
    }

    fn each(&self, f: &mut dyn FnMut(usize, &[u8]) -> bool) {
        let mut ordinal = 0;
        self.entries(&mut |_, value| {
            ordinal += 1;
            f(ordinal - 1, value)
        });
    }

    fn push(&mut self, value: &[u8]) {
        let next = self.next.unwrap_or_else(|| self.next());
        let mut position = self.prefix.clone();
        push_number(next, &mut position);
        self.write(&position, Change::Put(value));
        self.next = Some(next + 1);
    }

    fn remove_if(&mut self, f: &mut dyn FnMut(&[u8]) -> bool) -> usize {
        let mut gone: Vec<u64> = Vec::new();
        self.entries(&mut |position, value| {
            if f(value) {
                gone.push(number(position));
            }
            true
        });
        for n in &gone {
            let mut position = self.prefix.clone();
            push_number(*n, &mut position);
            self.write(&position, Change::Remove);
        }
        self.next = None;
        gone.len()
    }

    fn replace(&mut self, ordinal: usize, value: &[u8]) {
        let mut found: Option<Position> = None;
        let mut i = 0;
        self.entries(&mut |position, _| {
            if i == ordinal {
                found = Some(position.into());
            }
            i += 1;
            found.is_none()
        });
        if let Some(position) = found {
            self.write(&position, Change::Put(value));
        }
    }
}

impl Multi for Bag {
    fn get(&self, guard: &Guard, key: Key<'_>, f: &mut dyn FnMut(&[u8])) -> usize {
        let prefix = prefix(key);
        // Nothing is handed out before it is known to be of one instant.
        with_run(|all| {
            self.stable(key, || {
                all.clear();
                self.runs(guard, &prefix, usize::MAX, &mut |run| {
                    for i in 0..run.len() {
                        let from = all.bytes.len();
                        all.bytes.extend_from_slice(run.value(i));
                        all.end_entry(from, from, None);
                    }
                    true
                });
            });
            (0..all.len()).for_each(|i| f(all.value(i)));
            all.len()
        })
    }

    fn contains(&self, guard: &Guard, key: Key<'_>) -> bool {
        let prefix = prefix(key);
        self.stable(key, || {
            let mut found = false;
            self.runs(guard, &prefix, 1, &mut |_| {
                found = true;
                false
            });
            found
        })
    }

    fn update(&self, guard: &Guard, key: Key<'_>, f: &mut dyn FnMut(&mut dyn Objects)) {
        let stripe = self.stripe(key);
        f(&mut Held {
            bag: self,
            guard,
            prefix: prefix(key),
            next: None,
            stripe,
            wrote: false,
            _writer: stripe.writer.lock(),
        });
    }

    fn scan(&self, guard: &Guard, start: Start<'_>, direction: Direction, batch: &mut Batch) {
        batch.clear();
        with_run(|run| {
            let wish = Wish {
                start,
                direction,
                within: &[],
                limit: batch.limit(),
            };
            batch.done = self.tree.scan(guard, &wish, run, &mut batch.resume);
            for i in 0..run.len() {
                let position = run.position(i);
                let (hash, rest) = position.split_at(HASH);
                let (key, number) = rest.split_at(rest.len() - number_len(position));
                batch.push_around(hash, key, run.value(i), number);
            }
        });
    }

    fn first_position(&self, key: Key<'_>, out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(&prefix(key));
    }

    fn last_position(&self, key: Key<'_>, out: &mut Vec<u8>) {
        self.first_position(key, out);
        out.push(PAST_NUMBERS);
    }

    fn entry_position(&self, batch: &Batch, i: usize, out: &mut Vec<u8>) {
        batch.position_around(i, out);
    }

    fn free_some(&self, guard: &Guard, limit: usize, f: &mut dyn FnMut(&[u8])) -> bool {
        self.tree.free_some(guard, limit, f)
    }

    fn len(&self) -> usize {
        self.tree.len()
    }

    fn memory(&self) -> usize {
        size_of::<Self>() + self.tree.memory()
    }

    fn stats(&self) -> Stats {
        self.tree.stats()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_sort_and_come_back() {
        let samples = [
            0,
            1,
            127,
            128,
            129,
            255,
            256,
            65_535,
            65_536,
            1 << 40,
            u64::MAX - 1,
        ];
        let mut last = Position::new();
        for n in samples {
            let mut position: Position = (&b"key"[..]).into();
            push_number(n, &mut position);
            assert!(position > last, "{n}");
            assert_eq!(number(&position), n);
            assert_eq!(number_len(&position), position.len() - 3);
            assert!(position[3] < PAST_NUMBERS);
            last = position;
        }
    }
}
