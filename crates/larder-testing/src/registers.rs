//! Histories of an index with one value under a key: each key is a register of its own.

use crate::history::{Recorder, Specification, Subject};
use crate::{key, put, remove, Hashes};
use larder_index::{
    pin, Batch, Change, Direction, Hint, Key, Lookup, Previous, ShortValues, Start, Unique,
    SHORT_VALUE,
};

/// An operation on the value under one key. What it answered is None in the event of its call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegisterOp {
    /// Reads the value.
    Read(Option<Option<u64>>),
    /// Asks whether there is a value.
    Has(Option<bool>),
    /// Stores a value.
    Put(u64),
    /// Stores a value if there is none; answers whether there was none.
    PutNew(u64, Option<bool>),
    /// Adds to the value (0 if there is none); answers the sum.
    Add(u64, Option<u64>),
    /// Removes the value; answers whether there was one.
    Remove(Option<bool>),
    /// Removes the value if it is even; answers what was there.
    RemoveEven(Option<Option<u64>>),
}

/// The value under a key, one operation after the other.
pub struct Register;

impl Specification for Register {
    type State = Option<u64>;
    type Operation = RegisterOp;

    fn init() -> Self::State {
        None
    }

    fn apply(operation: &RegisterOp, state: &Self::State) -> (bool, Self::State) {
        let there = state.is_some();
        // `None` as a result stands for an operation that hasn't returned: any result is right.
        match *operation {
            RegisterOp::Read(seen) => (seen.is_none_or(|seen| seen == *state), *state),
            RegisterOp::Has(seen) => (seen.is_none_or(|seen| seen == there), *state),
            RegisterOp::Put(value) => (true, Some(value)),
            // The state keeps its value if there is one.
            RegisterOp::PutNew(value, new) => (
                new.is_none_or(|new| new != there),
                Some(state.unwrap_or(value)),
            ),
            RegisterOp::Add(by, sum) => {
                let now = state.unwrap_or(0) + by;
                (sum.is_none_or(|sum| sum == now), Some(now))
            }
            RegisterOp::Remove(was) => (was.is_none_or(|was| was == there), None),
            RegisterOp::RemoveEven(was) => (
                // Even values go, odd ones stay.
                was.is_none_or(|was| was == *state),
                state.filter(|v| v % 2 == 1),
            ),
        }
    }
}

/// What histories of registers are recorded of.
pub trait Registers: Send + Sync {
    /// The value under a key.
    fn read(&self, k: u64) -> Option<u64>;
    /// The same, found by a scan that begins at the key.
    fn scan(&self, k: u64) -> Option<u64>;
    /// Whether there is one.
    fn has(&self, k: u64) -> bool;
    /// Stores.
    fn put(&self, k: u64, value: u64);
    /// Stores, if there is none; whether there was none.
    fn put_new(&self, k: u64, value: u64) -> bool;
    /// Adds, and gives the sum.
    fn add(&self, k: u64, by: u64) -> u64;
    /// Removes; whether there was a value.
    fn remove(&self, k: u64) -> bool;
    /// Removes an even value; what was there.
    fn remove_even(&self, k: u64) -> Option<u64>;
}

/// The value in eight bytes.
pub fn number(bytes: &[u8]) -> u64 {
    u64::from_be_bytes(bytes.try_into().expect("a value has eight bytes"))
}

impl Registers for Box<dyn Unique> {
    // Each operation takes the path of the general form for some keys, and of the short form for
    // others.

    fn read(&self, k: u64) -> Option<u64> {
        let (bytes, other, guard) = (k.to_be_bytes(), (k + 1).to_be_bytes(), pin());
        let [key, other] = [&bytes, &other].map(|bytes| key(bytes, Hashes::Good));
        let short = |got: Lookup, out: &[u8; SHORT_VALUE]| match got {
            Lookup::Absent => None,
            Lookup::Short(len) => Some(number(&out[..len])),
            Lookup::Long => panic!("a value has eight bytes"),
        };
        // The ways to read must agree, so each key uses another one.
        match k % 4 {
            0 | 2 => {
                let mut out = [0; SHORT_VALUE];
                short(self.get_into(&guard, key, &mut out, None), &out)
            }
            1 => {
                // Together with another key, as lookups in bulk do.
                let mut short_values = ShortValues::default();
                self.get_many(&guard, &[other, key], true, &mut short_values);
                let (got, out) = short_values.get(1);
                short(got, out)
            }
            _ => {
                let mut out = Vec::new();
                self.get(&guard, key, &mut out).then(|| number(&out))
            }
        }
    }

    fn scan(&self, k: u64) -> Option<u64> {
        let (bytes, guard) = (k.to_be_bytes(), pin());
        // A scan that begins at the key's position, and may see more entries after it. One entry
        // is read in another way than two.
        let (mut position, mut batch) = (Vec::new(), Batch::default());
        self.position(key(&bytes, Hashes::Good), &mut position);
        batch.want = 1 + ((k + 1) % 3) as usize;
        let start = Start::At(&position);
        Unique::scan(&**self, &guard, start, Direction::Forward, &mut batch);
        // If the key is absent, the scan begins with a later one.
        let found = !batch.is_empty() && batch.key(0) == bytes;
        found.then(|| number(batch.value(0)))
    }

    fn has(&self, k: u64) -> bool {
        // Half of the keys ask by `contains`, and half by a step.
        let bytes = k.to_be_bytes();
        if k.is_multiple_of(2) {
            return self.contains(&pin(), key(&bytes, Hashes::Good));
        }
        let mut batch = Batch::default();
        self.step(
            &pin(),
            Some(key(&bytes, Hashes::Good)),
            Direction::Forward,
            &mut batch,
        )
    }

    fn put(&self, k: u64, value: u64) {
        let (bytes, value) = (k.to_be_bytes(), value.to_be_bytes());
        let key = key(&bytes, Hashes::Good);
        if k.is_multiple_of(3) {
            put(&**self, key, &value);
        } else {
            Unique::put(&**self, &pin(), key, &value, &mut |_| true);
        }
    }

    fn put_new(&self, k: u64, value: u64) -> bool {
        let (bytes, value, guard) = (k.to_be_bytes(), value.to_be_bytes(), pin());
        let key = key(&bytes, Hashes::Good);
        // Put only where there is nothing. The predicate is called under the lock of the entry.
        let predicate = &mut |old: Option<&[u8]>| old.is_none();
        let was = match k % 2 {
            0 => Unique::put_new(&**self, &guard, key, &value, predicate),
            _ => Unique::put(&**self, &guard, key, &value, predicate),
        };
        was == Previous::Absent
    }

    fn add(&self, k: u64, by: u64) -> u64 {
        let mut sum = 0;
        let bytes = k.to_be_bytes();
        // Half of the keys add without a lock, and half by an update under it. Both must be atomic.
        if !k.is_multiple_of(2) {
            return add_without_lock(&**self, key(&bytes, Hashes::Good), by);
        }
        self.update(&pin(), key(&bytes, Hashes::Good), &mut |old, scratch| {
            sum = old.map_or(0, number) + by;
            scratch.extend_from_slice(&sum.to_be_bytes());
            Change::Put
        });
        sum
    }

    fn remove(&self, k: u64) -> bool {
        let bytes = k.to_be_bytes();
        let key = key(&bytes, Hashes::Good);
        if k % 3 == 1 {
            return remove(&**self, key);
        }
        Unique::remove(&**self, &pin(), key, &mut |_| true) == Previous::Present
    }

    fn remove_even(&self, k: u64) -> Option<u64> {
        let (bytes, mut was) = (k.to_be_bytes(), None);
        Unique::remove(&**self, &pin(), key(&bytes, Hashes::Good), &mut |old| {
            let v = number(old);
            was = Some(v);
            v.is_multiple_of(2)
        });
        was
    }
}

/// Adds to a value that is read first, and replaced if it is still the same.
fn add_without_lock(index: &dyn Unique, key: Key<'_>, by: u64) -> u64 {
    let (guard, mut out) = (pin(), [0; SHORT_VALUE]);
    // Read, compute, and put if the value is still what was read. Otherwise, read again.
    loop {
        let mut hint = Hint::default();
        let found = index.get_with_hint(&guard, key, &mut out, None, &mut hint);
        let old = match found {
            Lookup::Absent => None,
            Lookup::Short(len) => Some(&out[..len]),
            Lookup::Long => panic!("a value has eight bytes"),
        };
        let sum = old.map_or(0, number) + by;
        let new = sum.to_be_bytes();
        // The hint of the lookup says where the entry is, so that `put_with_hint` needn't search.
        let was = index.put_with_hint(&guard, key, &new, &hint, &mut |now| now == old);
        if was != Previous::Refused {
            assert_eq!(was == Previous::Present, old.is_some());
            return sum;
        }
    }
}

/// Registers, and the number of them that are used.
pub struct RegisterSubject<R>(pub R, pub u64);

impl<R: Registers> Subject for RegisterSubject<R> {
    type Op = RegisterOp;
    type Spec = Register;

    fn step(&self, recorder: &mut Recorder<'_, RegisterOp>, random: u64) {
        let RegisterSubject(subject, keys) = self;
        let (k, value) = (random % keys, random >> 40);
        // Reads and additions are frequent, since their results say most about the state.
        let called = match random >> 32 & 15 {
            0..=3 => RegisterOp::Read(None),
            4 => RegisterOp::Has(None),
            5..=7 => RegisterOp::Add(1 + value % 5, None),
            8..=10 => RegisterOp::Put(value),
            11 => RegisterOp::PutNew(value, None),
            12 => RegisterOp::RemoveEven(None),
            _ => RegisterOp::Remove(None),
        };
        // Record the call before the operation and the result after it. A fourth of the reads are
        // scans.
        recorder.record(k, called, || match called {
            RegisterOp::Read(_) if value % 4 == 0 => RegisterOp::Read(Some(subject.scan(k))),
            RegisterOp::Read(_) => RegisterOp::Read(Some(subject.read(k))),
            RegisterOp::Has(_) => RegisterOp::Has(Some(subject.has(k))),
            RegisterOp::Add(by, _) => RegisterOp::Add(by, Some(subject.add(k, by))),
            RegisterOp::Put(value) => {
                subject.put(k, value);
                called
            }
            RegisterOp::PutNew(value, _) => {
                RegisterOp::PutNew(value, Some(subject.put_new(k, value)))
            }
            RegisterOp::Remove(_) => RegisterOp::Remove(Some(subject.remove(k))),
            RegisterOp::RemoveEven(_) => RegisterOp::RemoveEven(Some(subject.remove_even(k))),
        });
    }

    fn finish(&self, recorder: &mut Recorder<'_, RegisterOp>) {
        for k in 0..self.1 {
            recorder.record(k, RegisterOp::Read(None), || {
                RegisterOp::Read(Some(self.0.read(k)))
            });
        }
    }
}
