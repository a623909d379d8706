//! Larder's index, through the trait that tables use: values under keys of eight bytes.

use super::{Handle, Map, Named, Shared, Store};
use larder_index::{
    pin, Batch, Change, Direction, Guard, Key, KeyRule, Lookup, Previous, Start, Unique,
    UniqueKind, SHORT_VALUE,
};
use larder_term::hash::Seed;
use std::borrow::Borrow;
use std::cell::RefCell;
use std::rc::{Rc, Weak};

/// The hash of keys, and whether all keys have eight bytes. The index stores the length of others.
struct Rule {
    seed: Seed,
    eight: bool,
}

impl KeyRule for Rule {
    fn hash(&self, key: &[u8]) -> u64 {
        self.seed.hash(key)
    }
    fn is_self_delimiting(&self) -> bool {
        self.eight
    }
    fn key_len(&self, bytes: &[u8]) -> usize {
        match self.eight {
            true => 8,
            false => bytes.len(),
        }
    }
}

/// An index in key order, or in the order of hashes, for keys of eight bytes or of any length.
pub fn index(ordered: bool, seed: &Seed, eight: bool) -> Box<dyn Unique> {
    // Key order needs neither a hash nor a rule for the end of keys.
    if ordered {
        return larder_index::unique(UniqueKind::Ordered);
    }
    let seed = seed.clone();
    larder_index::unique_hashed(Rule { seed, eight })
}

pub fn key<'a>(seed: &Seed, bytes: &'a [u8]) -> Key<'a> {
    let hash = seed.hash(bytes);
    Key { bytes, hash }
}

/// Operations under one pin of the epoch. None of them pays for the fence of a pin.
const OPERATIONS_PER_PIN: u32 = 16;

/// A pin of the epoch, and how many operations may still use it.
type Pinned = RefCell<(Guard, u32)>;

/// The pin of this thread. All maps of a thread share it: nested pins can't be renewed, so the
/// epoch would never advance. The last map of the thread drops it.
struct ThreadPin(Rc<Pinned>);

thread_local! {
    static PIN: RefCell<Weak<Pinned>> = const { RefCell::new(Weak::new()) };
}

impl ThreadPin {
    fn get() -> Self {
        PIN.with_borrow_mut(|shared| {
            let pinned = shared.upgrade();
            let pinned = pinned.unwrap_or_else(|| Rc::new((pin(), OPERATIONS_PER_PIN).into()));
            *shared = Rc::downgrade(&pinned);
            ThreadPin(pinned)
        })
    }

    #[inline]
    fn with<T>(&self, work: impl FnOnce(&Guard) -> T) -> T {
        let (guard, left) = &mut *self.0.borrow_mut();
        *left -= 1;
        // Renewing the pin lets the epoch advance.
        if *left == 0 {
            *left = OPERATIONS_PER_PIN;
            guard.repin_after(|| ());
        }
        work(guard)
    }
}

pub struct Index {
    index: Box<dyn Unique>,
    seed: Seed,
}

impl Index {
    /// Wraps an index of any structure, whose keys are hashed by the seed.
    pub fn new(index: Box<dyn Unique>, seed: Seed) -> Index {
        Index { index, seed }
    }

    /// Larder's default structure, in key order or in the order of hashes.
    pub fn default_structure(ordered: bool) -> Index {
        let seed = Seed::random();
        Index::new(index(ordered, &seed, true), seed)
    }

    /// Calls `work` with the index and the key of a number.
    #[inline]
    fn at<T>(&self, number: u64, work: impl FnOnce(&dyn Unique, Key<'_>) -> T) -> T {
        // Big-endian bytes have the order of the numbers.
        let bytes = number.to_be_bytes();
        work(&*self.index, key(&self.seed, &bytes))
    }

    pub fn put(&self, guard: &Guard, number: u64, value: &[u8]) {
        self.at(number, |index, key| {
            index.put(guard, key, value, &mut |_| true)
        });
    }

    pub fn word(&self, guard: &Guard, number: u64) -> Option<u64> {
        let mut value = [0; SHORT_VALUE];
        // Values of eight bytes are short: they are copied without an allocation.
        let found = self.at(number, |index, key| {
            index.get_into(guard, key, &mut value, None)
        });
        match found {
            Lookup::Short(len) => Some(word(&value[..len])),
            Lookup::Absent => None,
            Lookup::Long => unreachable!("values have eight bytes"),
        }
    }

    pub fn remove(&self, guard: &Guard, number: u64) -> bool {
        let previous = self.at(number, |index, key| index.remove(guard, key, &mut |_| true));
        matches!(previous, Previous::Present)
    }

    /// Adds one to the word under a number, under the lock of its leaf.
    pub fn increment(&self, guard: &Guard, number: u64) {
        self.at(number, |index, key| {
            index.update(guard, key, &mut |old, new| {
                let sum = old.map_or(0, word).wrapping_add(1);
                new.extend_from_slice(&sum.to_le_bytes());
                Change::Put
            })
        });
    }

    /// Appends to the bytes under a number, or replaces them if they would be more than `most`.
    pub fn append(&self, guard: &Guard, number: u64, piece: &[u8], most: usize) {
        self.at(number, |index, key| {
            index.update(guard, key, &mut |old, new| {
                let fits = |old: &&[u8]| old.len() + piece.len() <= most;
                new.extend_from_slice(old.filter(fits).unwrap_or_default());
                new.extend_from_slice(piece);
                Change::Put
            })
        });
    }

    /// Appends the bytes under a number to `out`. Returns whether there are any.
    pub fn read(&self, guard: &Guard, number: u64, out: &mut Vec<u8>) -> bool {
        self.at(number, |index, key| index.get(guard, key, out))
    }

    /// Visits numbers and words, from a number on if one is given, until `visit` returns false.
    /// Reads `want` entries at once, or a default number if it is 0.
    pub fn walk(&self, from: Option<u64>, want: usize, mut visit: impl FnMut(u64, u64) -> bool) {
        let (guard, mut batch) = (pin(), Batch::default().with_want(want));
        // The bytes of a key are also its position in an ordered index.
        let mut at = from.map_or(Vec::new(), |from| from.to_be_bytes().to_vec());
        loop {
            let start = match at.is_empty() {
                true => Start::Edge,
                false => Start::At(&at),
            };
            self.index
                .scan(&guard, start, Direction::Forward, &mut batch);
            for i in 0..batch.len() {
                let key = batch.key(i).try_into().expect("keys have eight bytes");
                if !visit(u64::from_be_bytes(key), word(batch.value(i))) {
                    return;
                }
            }
            if batch.done {
                return;
            }
            // The next batch begins where this one ended.
            std::mem::swap(&mut at, &mut batch.resume);
        }
    }
}

impl Store for Index {
    fn put(&mut self, number: u64, value: &[u8]) {
        Index::put(self, &pin(), number, value);
    }
    fn append(&mut self, number: u64, piece: &[u8], most: usize) {
        Index::append(self, &pin(), number, piece, most);
    }
    fn get(&mut self, number: u64, out: &mut Vec<u8>) -> bool {
        self.read(&pin(), number, out)
    }
    fn bytes(&self) -> Option<usize> {
        Some(self.index.memory())
    }
}

/// Larder's default index, shared by threads.
pub struct SharedIndex<const ORDERED: bool>(Index);

/// A thread's handle to an index that it borrows or owns.
pub struct IndexHandle<const ORDERED: bool, I> {
    index: I,
    pin: ThreadPin,
}

/// Larder's default index, owned by one thread.
pub type Owned<const ORDERED: bool> = IndexHandle<ORDERED, SharedIndex<ORDERED>>;

fn word(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().expect("values have eight bytes"))
}

impl<const ORDERED: bool, I: Borrow<SharedIndex<ORDERED>>> IndexHandle<ORDERED, I> {
    /// Calls `work` with the index and the pin of the thread.
    #[inline]
    fn with<T>(&self, work: impl FnOnce(&Index, &Guard) -> T) -> T {
        let index = &self.index.borrow().0;
        self.pin.with(|guard| work(index, guard))
    }
}

impl<const ORDERED: bool, I: Borrow<SharedIndex<ORDERED>>> Handle for IndexHandle<ORDERED, I> {
    fn insert(&mut self, key: u64, value: u64) {
        self.with(|index, guard| index.put(guard, key, &value.to_le_bytes()));
    }
    fn get(&mut self, key: u64) -> Option<u64> {
        self.with(|index, guard| index.word(guard, key))
    }
    fn remove(&mut self, key: u64) -> bool {
        self.with(|index, guard| index.remove(guard, key))
    }
    fn own_bytes(&mut self) -> Option<usize> {
        self.index.borrow().0.bytes()
    }
}

impl<const ORDERED: bool> Named for SharedIndex<ORDERED> {
    const NAME: &'static str = ["larder hash", "larder ordered"][ORDERED as usize];
    const ORDERED: bool = ORDERED;
}

impl<const ORDERED: bool> Named for Owned<ORDERED> {
    const NAME: &'static str = SharedIndex::<ORDERED>::NAME;
    const ORDERED: bool = ORDERED;
}

impl<const ORDERED: bool> Map for Owned<ORDERED> {
    fn empty() -> Self {
        let (index, pin) = (Shared::empty(), ThreadPin::get());
        IndexHandle { index, pin }
    }
    fn scan(&mut self, mut each: impl FnMut(u64, u64)) {
        self.index.0.walk(None, 0, |key, value| {
            each(key, value);
            true
        });
    }
}

/// The same under the pin of the thread, for a store beside a map of the thread.
impl<const ORDERED: bool> Store for Owned<ORDERED> {
    fn put(&mut self, number: u64, value: &[u8]) {
        self.with(|index, guard| index.put(guard, number, value));
    }
    fn append(&mut self, number: u64, piece: &[u8], most: usize) {
        self.with(|index, guard| index.append(guard, number, piece, most));
    }
    fn get(&mut self, number: u64, out: &mut Vec<u8>) -> bool {
        self.with(|index, guard| index.read(guard, number, out))
    }
    fn bytes(&self) -> Option<usize> {
        self.index.0.bytes()
    }
}

impl<const ORDERED: bool> Shared for SharedIndex<ORDERED> {
    type Handle<'a> = IndexHandle<ORDERED, &'a SharedIndex<ORDERED>>;
    fn empty() -> Self {
        SharedIndex(Index::default_structure(ORDERED))
    }
    fn handle(&self) -> Self::Handle<'_> {
        let (index, pin) = (self, ThreadPin::get());
        IndexHandle { index, pin }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    /// What a store retires is freed although a map of the same thread has a pin.
    #[test]
    fn a_store_beside_a_map_lets_the_epoch_advance() {
        let (_map, mut store) = (Owned::<false>::empty(), Owned::<true>::empty());
        let freed = Arc::new(AtomicBool::new(false));
        let free = Arc::clone(&freed);
        // Ordering, both: Relaxed, in a test.
        store
            .pin
            .with(|guard| guard.defer(move || free.store(true, Relaxed)));
        let begin = Instant::now();
        while !freed.load(Relaxed) {
            let late = begin.elapsed() > Duration::from_secs(30);
            assert!(!late, "the epoch doesn't advance");
            store.append(1, b"a piece", 100);
            pin().flush();
        }
    }
}
