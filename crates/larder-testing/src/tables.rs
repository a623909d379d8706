//! Histories of a table: one object under a key, with operations on several keys at once, so that
//! the whole table is one part.

use crate::history::{Recorder, Specification, Subject};

/// Keys that are used: few, so that threads meet and histories can be searched.
pub const KEYS: u64 = 3;

/// What a table holds: under each key a number, or none.
pub type Rows = [Option<u64>; KEYS as usize];

/// An operation on a table. Its result is `None` when it is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// The number under a key.
    Read(u64, Option<Option<u64>>),
    /// Whether there is one.
    Has(u64, Option<bool>),
    /// Stores one.
    Put(u64, u64),
    /// Stores one if there is none; answers whether there was none.
    PutNew(u64, u64, Option<bool>),
    /// Adds to the number under a key; 0 where there is none. Answers the sum.
    Add(u64, u64, Option<u64>),
    /// Replaces the number under a key; answers whether there was one.
    Replace(u64, u64, Option<bool>),
    /// Removes it; answers whether there was one, where the interface says.
    Remove(u64, Option<bool>),
    /// Removes it and answers it.
    Take(u64, Option<Option<u64>>),
    /// Removes it if it is this number; answers whether it was.
    RemoveObject(u64, u64, Option<bool>),
    /// Stores the same number under all keys at once.
    PutAll(u64),
    /// Stores the same number under all keys at once if there is nothing under any; answers whether
    /// it did.
    PutAllNew(u64, Option<bool>),
    /// Removes everything at once.
    Clear,
    /// All numbers as of one instant.
    Snapshot(Option<Rows>),
}

/// The specification of a table: what each operation returns if they come one after the other.
pub struct Table;

impl Specification for Table {
    type State = Rows;
    type Operation = Op;

    fn init() -> Rows {
        [None; KEYS as usize]
    }

    fn apply(op: &Op, state: &Rows) -> (bool, Rows) {
        // What the specification says for each operation: the state afterwards, and whether the
        // recorded result is right. `None` stands for an operation that hasn't returned.
        let mut now = *state;
        let right = match *op {
            Op::Read(k, seen) => seen.is_none_or(|seen| seen == state[k as usize]),
            Op::Has(k, seen) => seen.is_none_or(|seen| seen == state[k as usize].is_some()),
            Op::Put(k, value) => {
                now[k as usize] = Some(value);
                true
            }
            Op::PutNew(k, value, new) => {
                let old = state[k as usize];
                now[k as usize] = Some(old.unwrap_or(value));
                new.is_none_or(|new| new == old.is_none())
            }
            Op::Add(k, by, sum) => {
                let right = state[k as usize].unwrap_or(0) + by;
                now[k as usize] = Some(right);
                sum.is_none_or(|sum| sum == right)
            }
            Op::Replace(k, value, was) => {
                let old = state[k as usize];
                now[k as usize] = old.map(|_| value);
                was.is_none_or(|was| was == old.is_some())
            }
            Op::Remove(k, was) => {
                let old = now[k as usize].take();
                was.is_none_or(|was| was == old.is_some())
            }
            Op::Take(k, seen) => {
                let old = now[k as usize].take();
                seen.is_none_or(|seen| seen == old)
            }
            Op::RemoveObject(k, value, was) => {
                let same = state[k as usize] == Some(value);
                now[k as usize] = state[k as usize].filter(|_| !same);
                was.is_none_or(|was| was == same)
            }
            // All keys at once: no other operation may see some of them changed and others not.
            Op::PutAll(value) => {
                now = [Some(value); KEYS as usize];
                true
            }
            Op::PutAllNew(value, new) => {
                let none = state.iter().all(Option::is_none);
                now = if none {
                    [Some(value); KEYS as usize]
                } else {
                    now
                };
                new.is_none_or(|new| new == none)
            }
            Op::Clear => {
                now = [None; KEYS as usize];
                true
            }
            Op::Snapshot(seen) => seen.is_none_or(|seen| seen == *state),
        };
        (right, now)
    }
}

/// A table that executes operations, and fills in their results.
pub trait Tabular: Send + Sync {
    /// Executes the operation. Returns it with its result.
    fn apply(&self, op: Op) -> Op;
}

/// The operations of a table, of which one in the given number takes a snapshot.
pub struct WithSnapshots<T>(pub On<T>, pub u64);

impl<T: Tabular> Subject for WithSnapshots<T> {
    type Op = Op;
    type Spec = Table;

    fn step(&self, recorder: &mut Recorder<'_, Op>, random: u64) {
        if !(random >> 50).is_multiple_of(self.1) {
            return self.0.step(recorder, random);
        }
        let called = Op::Snapshot(None);
        recorder.record(0, called, || self.0 .0.apply(called));
    }

    fn finish(&self, recorder: &mut Recorder<'_, Op>) {
        self.0.finish(recorder);
    }
}

/// The operations of a table, of which one in the given number is on all keys.
pub struct On<T>(pub T, pub u64);

impl<T: Tabular> Subject for On<T> {
    type Op = Op;
    type Spec = Table;

    fn step(&self, recorder: &mut Recorder<'_, Op>, random: u64) {
        // Few keys and few values, so that operations meet one another.
        let (k, value) = (random % KEYS, random >> 40 & 3);
        // One in so many operations is on all keys.
        let called = if (random >> 20).is_multiple_of(self.1) {
            match random >> 32 & 3 {
                0 | 1 => Op::PutAll(value),
                2 => Op::PutAllNew(value, None),
                _ => Op::Clear,
            }
        } else {
            match random >> 32 & 15 {
                0..=3 => Op::Read(k, None),
                4 => Op::Has(k, None),
                5 | 6 => Op::Put(k, value),
                7 => Op::PutNew(k, value, None),
                8 | 9 => Op::Add(k, 1 + value, None),
                10 => Op::Replace(k, value, None),
                11 | 12 => Op::Remove(k, None),
                13 | 14 => Op::Take(k, None),
                _ => Op::RemoveObject(k, value, None),
            }
        };
        // All keys are one part of the history, since operations on several keys join them.
        recorder.record(0, called, || self.0.apply(called));
    }

    fn finish(&self, recorder: &mut Recorder<'_, Op>) {
        for k in 0..KEYS {
            let op = Op::Read(k, None);
            recorder.record(0, op, || self.0.apply(op));
        }
    }
}
