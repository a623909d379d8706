//! Larder's own: eight bytes of key and eight of value, through the same trait as every table's.

use super::{Map, Operations, Shared};
use larder_index::{
    pin, Batch, Direction, Guard, Key, KeyRule, Lookup, Start, Unique, UniqueKind, SHORT,
};
use larder_term::hash::Seed;
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

/// An index in hash order or in key order, for many threads.
pub struct Larder<const ORDERED: bool> {
    index: Box<dyn Unique>,
    seed: Seed,
}

/// The same for the thread that has it for itself.
pub struct Alone<const ORDERED: bool> {
    larder: Larder<ORDERED>,
    pin: Pin,
}

/// In hash order.
pub type Hash = Larder<false>;
/// In key order.
pub type Ordered = Larder<true>;

fn word(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().expect("values have eight bytes"))
}

fn insert(index: &dyn Unique, seed: &Seed, pin: &Pin, number: u64, value: u64) {
    let (bytes, value) = (number.to_be_bytes(), value.to_le_bytes());
    pin.with(|guard| index.put(guard, key(seed, &bytes), &value, &mut |_| true));
}

fn get(index: &dyn Unique, seed: &Seed, pin: &Pin, number: u64) -> Option<u64> {
    let mut value = [0; SHORT];
    let bytes = number.to_be_bytes();
    match pin.with(|guard| index.get_short(guard, key(seed, &bytes), &mut value, None)) {
        Lookup::Short(len) => Some(word(&value[..len])),
        Lookup::Absent => None,
        Lookup::Long => unreachable!("values have eight bytes"),
    }
}

fn remove(index: &dyn Unique, seed: &Seed, pin: &Pin, number: u64) {
    let bytes = number.to_be_bytes();
    pin.with(|guard| index.remove(guard, key(seed, &bytes), &mut |_| true));
}

impl<const ORDERED: bool> Operations for Alone<ORDERED> {
    fn insert(&mut self, key: u64, value: u64) {
        let Larder { index, seed } = &self.larder;
        insert(&**index, seed, &self.pin, key, value);
    }
    fn get(&mut self, key: u64) -> Option<u64> {
        let Larder { index, seed } = &self.larder;
        get(&**index, seed, &self.pin, key)
    }
    fn remove(&mut self, key: u64) {
        let Larder { index, seed } = &self.larder;
        remove(&**index, seed, &self.pin, key);
    }
}

impl<const ORDERED: bool> Map for Alone<ORDERED> {
    const NAME: &'static str = name(ORDERED);
    const ORDERED: bool = ORDERED;

    fn empty() -> Self {
        Alone {
            larder: Shared::empty(),
            pin: Pin::mine(),
        }
    }

    fn scan(&mut self, mut each: impl FnMut(u64, u64)) {
        let mut batch = Batch::default();
        let mut at = Vec::new();
        loop {
            let start = if at.is_empty() {
                Start::Edge
            } else {
                Start::At(&at)
            };
            let index = &self.larder.index;
            index.scan(&pin(), start, Direction::Forward, &mut batch);
            for i in 0..batch.len() {
                let key = batch.key(i).try_into().expect("keys have eight bytes");
                each(u64::from_be_bytes(key), word(batch.value(i)));
            }
            if batch.done {
                return;
            }
            at.clone_from(&batch.resume);
        }
    }

    fn own_bytes(&mut self) -> Option<usize> {
        Some(self.larder.index.memory())
    }
}

/// A thread's way to an index.
pub struct Hand<'a> {
    index: &'a dyn Unique,
    seed: &'a Seed,
    pin: Pin,
}

impl Operations for Hand<'_> {
    fn insert(&mut self, key: u64, value: u64) {
        insert(self.index, self.seed, &self.pin, key, value);
    }
    fn get(&mut self, key: u64) -> Option<u64> {
        get(self.index, self.seed, &self.pin, key)
    }
    fn remove(&mut self, key: u64) {
        remove(self.index, self.seed, &self.pin, key);
    }
}

impl<const ORDERED: bool> Shared for Larder<ORDERED> {
    const NAME: &'static str = name(ORDERED);
    const ORDERED: bool = ORDERED;
    type Hand<'a> = Hand<'a>;

    fn empty() -> Self {
        let seed = Seed::random();
        Larder {
            index: index(ORDERED, &seed, true),
            seed,
        }
    }
    fn hand(&self) -> Hand<'_> {
        Hand {
            index: &*self.index,
            seed: &self.seed,
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
