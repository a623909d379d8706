//! Larder's own structures: keys and values of eight bytes, through the trait that tables use, too.

use super::{Hand, Map, Shared, Store};
use larder_index::{
    pin, Batch, Change, Direction, Guard, Key, KeyRule, Lookup, Previous, Start, Unique,
    UniqueKind, SHORT_VALUE,
};
use larder_term::hash::Seed;
use std::borrow::Borrow;
use std::cell::RefCell;
use std::rc::{Rc, Weak};

/// How a bench's keys are hashed, and whether they all have eight bytes (then they tell their own
/// end, as a table's keys do).
struct Rule {
    seed: Seed,
    eight: bool,
}

impl KeyRule for Rule {
    fn hash(&self, key: &[u8]) -> u64 {
        self.seed.hash(key)
    }
    fn ends_itself(&self) -> bool {
        self.eight
    }
    fn key_len(&self, bytes: &[u8]) -> usize {
        // A key of eight bytes tells its own end. Of another one, the index stores the length.
        if self.eight {
            8
        } else {
            bytes.len()
        }
    }
}

/// An index in key order or in the order of the seed's hashes, for keys of `eight` bytes or of any
/// length.
pub fn index(ordered: bool, seed: &Seed, eight: bool) -> Box<dyn Unique> {
    // In key order no hash is needed, nor a rule for the end of keys.
    if ordered {
        return larder_index::unique(UniqueKind::Ordered);
    }
    let seed = seed.clone();
    larder_index::unique_hashed(Rule { seed, eight })
}

/// A key as the index wants it, hashed as tables hash theirs.
pub fn key<'a>(seed: &Seed, bytes: &'a [u8]) -> Key<'a> {
    Key {
        bytes,
        hash: seed.hash(bytes),
    }
}

/// Operations under one pin of the epoch. What is removed meanwhile isn't freed, and none pays for
/// the fence of a pin of its own.
const A_PIN: u32 = 16;

/// A thread's pin of the epoch, renewed now and then.
struct Pinned {
    guard: Guard,
    left: u32,
}

impl Pinned {
    fn new() -> Self {
        Pinned {
            guard: pin(),
            left: A_PIN,
        }
    }

    #[inline]
    fn guard(&mut self) -> &Guard {
        // The pin is renewed now and then, so that the epoch can advance.
        self.left -= 1;
        if self.left == 0 {
            self.left = A_PIN;
            self.guard.repin_after(|| ());
        }
        &self.guard
    }
}

/// The thread's pin, which all maps of a thread have together: a pin within another one can't be
/// renewed, and with two of them nothing would ever be freed. It goes with the last of them.
struct Pin(Rc<RefCell<Pinned>>);

thread_local! {
    static MINE: RefCell<Weak<RefCell<Pinned>>> = const { RefCell::new(Weak::new()) };
}

impl Pin {
    fn mine() -> Self {
        MINE.with_borrow_mut(|mine| {
            // Another map of this thread may have a pin already. It is shared.
            let pinned = mine.upgrade().unwrap_or_else(|| {
                let new = Rc::new(RefCell::new(Pinned::new()));
                *mine = Rc::downgrade(&new);
                new
            });
            Pin(pinned)
        })
    }

    #[inline]
    fn with<T>(&self, work: impl FnOnce(&Guard) -> T) -> T {
        work(self.0.borrow_mut().guard())
    }
}

/// An index with the seed of its hashes: bytes under numbers.
pub struct Index {
    index: Box<dyn Unique>,
    seed: Seed,
}

impl Index {
    /// An index of a structure whose keys are hashed by the seed.
    pub fn new(index: Box<dyn Unique>, seed: Seed) -> Index {
        Index { index, seed }
    }

    /// Larder's default, in key order or in that of the hashes.
    pub fn larder(ordered: bool) -> Index {
        let seed = Seed::random();
        Index::new(index(ordered, &seed, true), seed)
    }

    /// Does something with the key of a number.
    #[inline]
    fn at<T>(&self, number: u64, work: impl FnOnce(&dyn Unique, Key<'_>) -> T) -> T {
        // Big-endian, so that the index has the order of the numbers.
        let bytes = number.to_be_bytes();
        work(&*self.index, key(&self.seed, &bytes))
    }

    /// Puts bytes under a number.
    pub fn put(&self, guard: &Guard, number: u64, value: &[u8]) {
        self.at(number, |index, key| {
            index.put(guard, key, value, &mut |_| true)
        });
    }

    /// The word under a number.
    pub fn word(&self, guard: &Guard, number: u64) -> Option<u64> {
        let mut value = [0; SHORT_VALUE];
        // A value of eight bytes is short, so it is read without an allocation.
        let found = self.at(number, |index, key| {
            index.get_into(guard, key, &mut value, None)
        });
        match found {
            Lookup::Short(len) => Some(word(&value[..len])),
            Lookup::Absent => None,
            Lookup::Long => unreachable!("values have eight bytes"),
        }
    }

    /// Removes a number; whether it was there.
    pub fn remove(&self, guard: &Guard, number: u64) -> bool {
        let was = self.at(number, |index, key| index.remove(guard, key, &mut |_| true));
        matches!(was, Previous::Present)
    }

    /// Adds one to the word under a number.
    pub fn count(&self, guard: &Guard, number: u64) {
        self.at(number, |index, key| {
            // The sum is made in the scratch buffer, under the lock of the leaf.
            index.update(guard, key, &mut |old, new| {
                let sum = old.map_or(0, word).wrapping_add(1);
                new.extend_from_slice(&sum.to_le_bytes());
                Change::Put
            })
        });
    }

    /// Visits numbers and words from a number on, or all, until `visit` answers false; reads so
    /// many at once, if that is said.
    pub fn walk(&self, from: Option<u64>, want: usize, mut visit: impl FnMut(u64, u64) -> bool) {
        let mut batch = Batch {
            want,
            ..Batch::default()
        };
        // Keys are fixed in length and big-endian, so a key's bytes are its position in a sorted
        // index.
        let mut at = from.map_or(Vec::new(), |from| from.to_be_bytes().to_vec());
        loop {
            let start = match at.is_empty() {
                true => Start::Edge,
                false => Start::At(&at),
            };
            self.index
                .scan(&pin(), start, Direction::Forward, &mut batch);
            for i in 0..batch.len() {
                let key = batch.key(i).try_into().expect("keys have eight bytes");
                if !visit(u64::from_be_bytes(key), word(batch.value(i))) {
                    return;
                }
            }
            if batch.done {
                return;
            }
            // Continue where the batch ended. Both vectors keep their memory.
            std::mem::swap(&mut at, &mut batch.resume);
        }
    }
}

impl Store for Index {
    fn put(&mut self, number: u64, value: &[u8]) {
        Index::put(self, &pin(), number, value);
    }

    fn append(&mut self, number: u64, piece: &[u8], most: usize) {
        self.at(number, |index, key| {
            index.update(&pin(), key, &mut |old, scratch| {
                // A value that would get too long begins again with the piece.
                let fits = |old: &&[u8]| old.len() + piece.len() <= most;
                scratch.extend_from_slice(old.filter(fits).unwrap_or_default());
                scratch.extend_from_slice(piece);
                Change::Put
            })
        });
    }

    fn get(&mut self, number: u64, out: &mut Vec<u8>) -> bool {
        self.at(number, |index, key| index.get(&pin(), key, out))
    }

    fn bytes(&self) -> Option<usize> {
        Some(self.index.memory())
    }
}

/// An index in hash order or in key order, for many threads.
pub struct Larder<const ORDERED: bool>(Index);

/// A thread's way to an index: borrowed from it, or its own.
pub struct Way<const ORDERED: bool, L> {
    larder: L,
    pin: Pin,
}

/// An index for the thread that has it for itself.
pub type Alone<const ORDERED: bool> = Way<ORDERED, Larder<ORDERED>>;

fn word(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().expect("values have eight bytes"))
}

impl<const ORDERED: bool, L: Borrow<Larder<ORDERED>>> Hand for Way<ORDERED, L> {
    fn insert(&mut self, key: u64, value: u64) {
        let index = &self.larder.borrow().0;
        let value = value.to_le_bytes();
        self.pin.with(|guard| index.put(guard, key, &value));
    }

    fn get(&mut self, key: u64) -> Option<u64> {
        let index = &self.larder.borrow().0;
        self.pin.with(|guard| index.word(guard, key))
    }

    fn remove(&mut self, key: u64) -> bool {
        let index = &self.larder.borrow().0;
        self.pin.with(|guard| index.remove(guard, key))
    }
}

impl<const ORDERED: bool> Map for Alone<ORDERED> {
    const NAME: &'static str = name(ORDERED);
    const ORDERED: bool = ORDERED;

    fn empty() -> Self {
        Way {
            larder: Shared::empty(),
            pin: Pin::mine(),
        }
    }

    fn scan(&mut self, mut each: impl FnMut(u64, u64)) {
        // All entries, in batches of the default size.
        self.larder.0.walk(None, 0, |key, value| {
            each(key, value);
            true
        });
    }

    fn own_bytes(&mut self) -> Option<usize> {
        self.larder.0.bytes()
    }
}

impl<const ORDERED: bool> Shared for Larder<ORDERED> {
    const NAME: &'static str = name(ORDERED);
    const ORDERED: bool = ORDERED;
    type Hand<'a> = Way<ORDERED, &'a Larder<ORDERED>>;

    fn empty() -> Self {
        Larder(Index::larder(ORDERED))
    }
    fn hand(&self) -> Self::Hand<'_> {
        Way {
            larder: self,
            pin: Pin::mine(),
        }
    }
}

const fn name(ordered: bool) -> &'static str {
    if ordered {
        "larder ordered"
    } else {
        "larder hash"
    }
}
