//! Texts under ids: a text is stored once, is found by its id and by its characters, and is never
//! removed.
//!
//! ```text
//!             table: slots of a hash table           runs of 64, 128, 256, … texts
//!  text ────▶ [ 0 │ hash, id + 1 │ 0 │ … ] ── id ──▶ [ &'static str │ … ]
//! ```
//!
//! Searches take no lock. To add a text takes a mutex, so that no text gets two ids.
//!
//! Invariants:
//! * **IN1** An id always stands for the same text. Ids are dense from 0.
//! * **IN2** A slot is written once, when its id has its text. So whoever finds an id finds the
//!   text.
//! * **IN3** At most half of the slots of a table are used. So a search, which goes from slot to
//!   slot, comes to an empty one.
//! * **IN4** A table that is too small is copied to one of twice the size, and stays for the
//!   searches that are in it. All earlier tables together are smaller than the current one.

use crate::hash::Seed;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::OnceLock;

/// The number of slots of the first table.
const FIRST_TABLE: usize = 1 << 8;
/// The number of tables until one has room for four billion ids.
const TABLES: usize = 26;
/// The number of texts in the first run.
const FIRST_RUN: u64 = 1 << 6;
/// The number of runs until there are four billion texts.
const RUNS: usize = 27;

/// A hash in the upper half, an id + 1 in the lower half; 0 if empty.
type Slot = AtomicU64;

/// Texts under ids.
pub(crate) struct Interner {
    seed: Seed,
    texts: Texts,
    tables: [OnceLock<Box<[Slot]>>; TABLES],
    /// The number of the current table.
    current: AtomicUsize,
    /// The number of texts.
    count: AtomicU32,
    adding: Mutex<()>,
}

impl Interner {
    /// With these texts, whose ids are their indices.
    pub(crate) fn new(texts: &[&'static str]) -> Interner {
        let interner = Interner {
            seed: Seed::random(),
            texts: Texts([const { OnceLock::new() }; RUNS]),
            tables: [const { OnceLock::new() }; TABLES],
            current: AtomicUsize::new(0),
            count: AtomicU32::new(0),
            adding: Mutex::new(()),
        };
        // In order, so that the first texts get the ids that constants in the code have.
        for text in texts {
            interner.add(text, interner.hash(text));
        }
        interner
    }

    /// The number of texts.
    pub(crate) fn count(&self) -> u32 {
        // Ordering: Relaxed; a number only.
        self.count.load(Ordering::Relaxed)
    }

    /// The text of an id.
    #[inline]
    pub(crate) fn text(&self, id: u32) -> Option<&'static str> {
        self.texts.get(id)
    }

    /// The id of a text.
    pub(crate) fn find(&self, text: &str) -> Option<u32> {
        self.search(text, self.hash(text))
    }

    /// The id of a text, which is stored if it is new; `None` if there are no more ids.
    pub(crate) fn find_or_add(&self, text: &str) -> Option<u32> {
        let hash = self.hash(text);
        if let Some(id) = self.search(text, hash) {
            return Some(id);
        }
        let _adding = self.adding.lock();
        // Another thread may have added the text between the first search and the lock.
        if let Some(id) = self.search(text, hash) {
            return Some(id);
        }
        // Texts are never removed, so they may be leaked.
        (self.count() < u32::MAX).then(|| self.add(Box::leak(Box::from(text)), hash))
    }

    fn hash(&self, text: &str) -> u32 {
        (self.seed.hash(text.as_bytes()) >> 32) as u32
    }

    fn search(&self, text: &str, hash: u32) -> Option<u32> {
        // Ordering: Acquire; pairs with the Release in `table_for`, so that the table is there. A
        // thread that finds the table before searches as of then.
        let table = self.tables[self.current.load(Ordering::Acquire)].get()?;
        probe(table, hash)
            // Ordering: Acquire; pairs with the Release in `add`, so that the text is there.
            .map(|slot| slot.load(Ordering::Acquire))
            .take_while(|slot| *slot != 0)
            .filter(|slot| (slot >> 32) as u32 == hash)
            .map(|slot| slot as u32 - 1)
            .find(|id| self.text(*id) == Some(text))
    }

    /// Stores a text that is new, while no other thread adds one.
    fn add(&self, text: &'static str, hash: u32) -> u32 {
        let id = self.count();
        self.texts.set(id, text);
        let table = self.table_for(id as usize + 1);
        // Ordering: Release; pairs with the Acquire in `search` (IN2).
        put(
            table,
            u64::from(hash) << 32 | u64::from(id + 1),
            Ordering::Release,
        );
        // Ordering: Relaxed; a number only.
        self.count.store(id + 1, Ordering::Relaxed);
        id
    }

    /// The current table, which is replaced if it hasn't the slots for `count` texts.
    fn table_for(&self, count: usize) -> &[Slot] {
        // Ordering: Relaxed; only the holder of the lock changes it.
        let current = self.current.load(Ordering::Relaxed);
        let table = self.tables[current].get_or_init(|| empty(FIRST_TABLE));
        if 2 * count <= table.len() {
            return table;
        }
        let next = self.tables[current + 1].get_or_init(|| {
            let larger = empty(2 * table.len());
            for slot in table {
                // Ordering: Relaxed, twice; no other thread changes the old table, and none has the
                // new one yet.
                let slot = slot.load(Ordering::Relaxed);
                if slot != 0 {
                    put(&larger, slot, Ordering::Relaxed);
                }
            }
            larger
        });
        // Ordering: Release; pairs with the Acquire in `search`.
        self.current.store(current + 1, Ordering::Release);
        next
    }
}

fn empty(slots: usize) -> Box<[Slot]> {
    (0..slots).map(|_| Slot::new(0)).collect()
}

/// The slots in which a text of this hash may be, in turn.
fn probe(table: &[Slot], hash: u32) -> impl Iterator<Item = &Slot> {
    let (before, from) = table.split_at(hash as usize & (table.len() - 1));
    from.iter().chain(before)
}

/// Writes the first empty slot of those for the hash.
fn put(table: &[Slot], slot: u64, ordering: Ordering) {
    // Ordering: Relaxed; only the holder of the lock writes.
    let mut vacant = probe(table, (slot >> 32) as u32).filter(|s| s.load(Ordering::Relaxed) == 0);
    vacant
        .next()
        .expect("half of the slots are empty")
        .store(slot, ordering);
}

/// The texts by their ids. Each run has twice as many as the one before, so that no text moves.
struct Texts([OnceLock<Box<[OnceLock<&'static str>]>>; RUNS]);

impl Texts {
    /// The run of an id, and the index there.
    #[inline]
    fn place(id: u32) -> (usize, usize) {
        let n = u64::from(id) + FIRST_RUN;
        let run = n.ilog2() - FIRST_RUN.ilog2();
        (run as usize, (n - (FIRST_RUN << run)) as usize)
    }

    #[inline]
    fn get(&self, id: u32) -> Option<&'static str> {
        let (run, at) = Self::place(id);
        self.0[run].get()?.get(at)?.get().copied()
    }

    /// Sets the text of an id that has none.
    fn set(&self, id: u32, text: &'static str) {
        let (run, at) = Self::place(id);
        let length = FIRST_RUN << run;
        let run = self.0[run].get_or_init(|| (0..length).map(|_| OnceLock::new()).collect());
        run[at].set(text).expect("an id has one text");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::scope;

    #[test]
    fn ids_are_dense_and_found_both_ways() {
        let interner = Interner::new(&["a", "b"]);
        assert_eq!((interner.find("b"), interner.find("c")), (Some(1), None));
        // Many more than the first table and the first run have room for.
        for n in 2..5000 {
            assert_eq!(interner.find_or_add(&n.to_string()), Some(n));
        }
        for n in 2..5000 {
            let text = n.to_string();
            assert_eq!(interner.find(&text), Some(n));
            assert_eq!(interner.text(n), Some(text.as_str()));
        }
        assert_eq!((interner.count(), interner.text(5000)), (5000, None));
    }

    #[test]
    fn texts_of_one_hash_are_told_apart() {
        let interner = Interner::new(&[]);
        for text in ["a", "b", "c"] {
            interner.add(text, u32::MAX);
        }
        let found = ["a", "b", "c", "d"].map(|text| interner.search(text, u32::MAX));
        assert_eq!(found, [Some(0), Some(1), Some(2), None]);
    }

    #[test]
    fn the_last_id_has_a_place() {
        assert_eq!(Texts::place(0), (0, 0));
        assert_eq!(Texts::place(63), (0, 63));
        assert_eq!(Texts::place(64), (1, 0));
        assert!(Texts::place(u32::MAX).0 < RUNS);
    }

    /// Threads add the same texts in the same order. What one has added or found stays found with
    /// that id, while others make tables grow.
    #[test]
    fn threads_agree_while_tables_grow() {
        const TEXTS: u32 = 3000;
        let interner = Interner::new(&[]);
        let ids = |_| {
            let add = |n: u32| interner.find_or_add(&n.to_string()).unwrap();
            let mut ids = Vec::new();
            for n in 0..TEXTS {
                ids.push(add(n));
                let earlier = n / 2;
                assert_eq!(
                    interner.find(&earlier.to_string()),
                    Some(ids[earlier as usize])
                );
                assert_eq!(interner.text(ids[n as usize]), Some(n.to_string().as_str()));
            }
            ids
        };
        let all: Vec<_> = scope(|s| {
            let threads: Vec<_> = (0..3).map(|n| s.spawn(move || ids(n))).collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        });
        assert!(all.windows(2).all(|two| two[0] == two[1]));
        assert_eq!(interner.count(), TEXTS);
    }
}
