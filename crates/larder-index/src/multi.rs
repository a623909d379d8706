//! The default for bags: any number of values under a key, in order of arrival.
//!
//! ```text
//!  position   top 48 bits of the hash (6 bytes, big endian) | key | number of the arrival
//!  number     0..=127: one byte; else 0x80+n, n bytes (big endian), 0x80+n
//! ```
//!
//! The entries live in the B+-tree of the key order, so that a million values under one key are a
//! run of leaves like any other. A number can be told from the end of a position, and longer
//! numbers sort after shorter ones.
//!
//! *Marks.* To find an object among many equal keys, a key with more than 64 objects has *marks* in
//! a second tree: one for each object, by its hash, that tells its number, and one for their count.
//! So an object is found, added and removed in O(log n) however many there are.
//!
//! ```text
//!  marks   hash | key | 0                                  their count
//!          hash | key | 1 | 48 bits of the object's hash | number
//! ```
//!
//! A key whose objects become few loses its marks. Only writers, who hold the key's stripe, look at
//! marks.
//!
//! *One instant.* Writers of one key exclude each other by a *stripe*: a lock and a version, found
//! by the hash, shared by all indexes. A writer makes the version odd before its first change and
//! even after its last. A reader takes the version, reads leaf after leaf, and looks at the version
//! again; when that fails too often it takes the lock.

mod held;
mod position;

use crate::raw::btree::Btree;
use crate::run::{with_run, Run};
use crate::sync::atomic::{fence, AtomicBool, AtomicU64, AtomicUsize, Ordering::*};
use crate::sync::{Backoff, Mutex};
use crate::traits::{step_keys_by_scan, HASH};
use crate::tree::{From, Tree, Wish};
use crate::{Batch, Direction, Key, LeafConfig, Multi, ObjectHash, Objects, Start, Stats};
use crossbeam_epoch::Guard;
use crossbeam_utils::CachePadded;
use held::Held;
use position::{number_len, prefix, Position, PAST_NUMBERS};
use std::sync::OnceLock;

const STRIPES: usize = 256;
/// How often a reader tries without the lock.
const TRIES: usize = 8;

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
    /// For keys with many objects, which of them have which hash.
    /// None before a key has had that many.
    marks: OnceLock<Box<Tree<Btree>>>,
    config: LeafConfig,
    hash: ObjectHash,
    /// So that equal keys of different indexes use different stripes.
    salt: usize,
    /// `free_some` has freed all values, and goes on with the marks.
    freed: AtomicBool,
}

impl Bag {
    /// An empty index. Values that `Objects::find` may take for the same have the same `hash`.
    pub fn new(config: LeafConfig, hash: ObjectHash) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        Bag {
            tree: Tree::new(config, Btree::new).under_locks(),
            marks: OnceLock::new(),
            config,
            hash,
            // Ordering: Relaxed, only a number of its own.
            salt: NEXT.fetch_add(37, Relaxed),
            freed: AtomicBool::new(false),
        }
    }

    /// The tree of marks, for who is about to write some.
    fn marks(&self) -> &Tree<Btree> {
        if let Some(marks) = self.marks.get() {
            return marks;
        }
        let new = Tree::new(self.config, Btree::new).under_locks();
        // If another thread was first, its tree counts.
        let _ = self.marks.set(Box::new(new));
        self.marks.get().expect("one of two threads has set it")
    }

    /// The stripe is free again.
    fn free_large(&self, guard: &Guard) {
        self.tree.free_large(guard);
        if let Some(marks) = self.marks.get() {
            marks.free_large(guard);
        }
    }

    fn stripe(&self, key: Key<'_>) -> &'static Stripe {
        &ALL[((key.hash >> 40) as usize).wrapping_add(self.salt) % STRIPES]
    }

    /// Copies all values of a key, of one instant, if they lie in one leaf and no writer is at
    /// work: as nearly all do. Otherwise false, and what was copied is of no use.
    #[inline]
    fn get_quick(&self, guard: &Guard, key: Key<'_>, prefix: &[u8], all: &mut Run) -> bool {
        let stripe = self.stripe(key);
        // Ordering: Acquire, as in `stable`.
        let before = stripe.version.load(Acquire);
        if !before.is_multiple_of(2) || !self.tree.values_within(guard, prefix, all) {
            return false;
        }
        // Ordering: Acquire fence, as in `stable`.
        fence(Acquire);
        // Ordering: Relaxed, the fence keeps it after the reads.
        stripe.version.load(Relaxed) == before
    }

    /// As `get_quick`, wherever they lie.
    #[inline(never)]
    fn get_slowly(&self, guard: &Guard, key: Key<'_>, prefix: &[u8], all: &mut Run) {
        self.stable(key, || {
            all.clear();
            runs(
                &self.tree,
                guard,
                (prefix, prefix),
                usize::MAX,
                &mut |run| {
                    for i in 0..run.len() {
                        let from = all.bytes.len();
                        all.bytes.extend_from_slice(run.value(i));
                        all.end_entry(from, from, None);
                    }
                    true
                },
            );
        });
    }

    /// Whether there is an entry whose position begins so.
    #[inline]
    fn has_any(&self, guard: &Guard, prefix: &[u8]) -> bool {
        match self.tree.any_within(guard, prefix) {
            Some(any) => any,
            None => self.has_any_anywhere(guard, prefix),
        }
    }

    /// As `has_any`, where it can't be told from one leaf.
    #[inline(never)]
    fn has_any_anywhere(&self, guard: &Guard, prefix: &[u8]) -> bool {
        let mut found = false;
        runs(&self.tree, guard, (prefix, prefix), 1, &mut |_| {
            found = true;
            false
        });
        found
    }

    /// Does a read of one key that sees one instant.
    #[inline]
    fn stable<T>(&self, key: Key<'_>, mut read: impl FnMut() -> T) -> T {
        let stripe = self.stripe(key);
        let backoff = Backoff::new();
        for _ in 0..TRIES {
            // Ordering: Acquire, pairs with the store that ends a write: its changes are seen.
            let before = stripe.version.load(Acquire);
            if before.is_multiple_of(2) {
                let result = read();
                // Ordering: Acquire fence, pairs with the fence that begins a write: who saw a
                // change sees the odd version.
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
}

/// Calls `f` with runs of the entries whose positions begin with `prefix`, in order from `start`
/// on, until it answers false.
fn runs(
    tree: &Tree<Btree>,
    guard: &Guard,
    (start, prefix): (&[u8], &[u8]),
    limit: usize,
    f: &mut dyn FnMut(&Run) -> bool,
) {
    let scan = |start: &[u8], run: &mut Run, resume: &mut Vec<u8>| {
        let wish = Wish {
            start: Start::At(start),
            direction: Direction::Forward,
            within: prefix,
            limit,
        };
        tree.scan(guard, &wish, run, resume)
    };
    let (mut resume, mut next) = (Vec::new(), Vec::new());
    with_run(|run| {
        let mut done = scan(start, run, &mut resume);
        while (run.len() == 0 || f(run)) && !done {
            std::mem::swap(&mut next, &mut resume);
            done = scan(&next, run, &mut resume);
        }
    });
}

impl Multi for Bag {
    fn get(&self, guard: &Guard, key: Key<'_>, f: &mut dyn FnMut(&[u8])) -> usize {
        let prefix = prefix(key);
        // Nothing is handed out before it is known to be of one instant.
        with_run(|all| {
            all.clear();
            if !self.get_quick(guard, key, &prefix, all) {
                self.get_slowly(guard, key, &prefix, all);
            }
            (0..all.len()).for_each(|i| f(all.value(i)));
            all.len()
        })
    }

    fn contains(&self, guard: &Guard, key: Key<'_>) -> bool {
        let prefix = prefix(key);
        self.stable(key, || self.has_any(guard, &prefix))
    }

    fn prefetch(&self, guard: &Guard, keys: &[Key<'_>]) {
        let positions: Vec<_> = keys.iter().map(|&key| prefix(key)).collect();
        self.tree
            .prefetch(guard, positions.iter().map(|position| &position[..]));
    }

    fn update(&self, guard: &Guard, key: Key<'_>, f: &mut dyn FnMut(&mut dyn Objects)) {
        f(&mut Held::new(self, guard, key));
        self.free_large(guard);
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

    fn step(&self, guard: &Guard, key: Option<Key<'_>>, batch: &mut Batch) -> bool {
        let mut bytes: Position;
        let from = match key {
            Some(key) => {
                bytes = prefix(key);
                let within = bytes.len();
                bytes.push(PAST_NUMBERS);
                let bytes = &bytes[..];
                From::Behind { bytes, within }
            }
            None => From::Edge,
        };
        let Some(found) = self.tree.step(guard, from, Direction::Forward, batch) else {
            return step_keys_by_scan(self, guard, key, batch);
        };
        if let Some((_, middle, end)) = batch.entries.first_mut() {
            // The number lies between the key and the value: of no use to anybody.
            let number = number_len(&batch.bytes[..*middle]);
            batch.bytes.drain(*middle - number..*middle);
            (*middle, *end) = (*middle - number, *end - number);
            batch.entries[0].0 = HASH;
        }
        found
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
        // Ordering: Relaxed, nobody else frees. Were the tree asked again, it would begin at its
        // first leaf each time.
        let emptied = self.freed.load(Relaxed) || self.tree.free_some(guard, limit, f);
        let done = emptied
            && self
                .marks
                .get()
                .is_none_or(|marks| marks.free_some(guard, limit, &mut |_| ()));
        // Ordering: Relaxed, as above. What came in spite of all would be freed as this was.
        self.freed.store(emptied && !done, Relaxed);
        self.free_large(guard);
        done
    }

    fn len(&self) -> usize {
        self.tree.len()
    }

    fn memory(&self) -> usize {
        let marks = self.marks.get();
        let marks = marks.map_or(0, |marks| size_of::<Tree<Btree>>() + marks.memory());
        size_of::<Self>() + self.tree.memory() + marks
    }

    fn stats(&self) -> Stats {
        self.tree.stats()
    }
}
