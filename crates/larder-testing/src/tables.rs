//! Histories of a table: one object under a key, with operations on several keys at once, so that
//! the whole table is one part.

use crate::history::{Recorder, Specification, Subject};

/// Keys that are used: few, so that threads meet and histories can be searched.
pub const KEYS: u64 = 3;

/// What a table holds: under each key a number, or none.
pub type TableState = [Option<u64>; KEYS as usize];

/// An operation on a table. Its result is `None` when it is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableOp {
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
    Snapshot(Option<TableState>),
}

/// The specification of a table: what each operation returns if they come one after the other.
pub struct Table;

impl Specification for Table {
    type State = TableState;
    type Operation = TableOp;

    fn init() -> TableState {
        [None; KEYS as usize]
    }

    fn apply(op: &TableOp, state: &TableState) -> (bool, TableState) {
        // What the specification says for each operation: the state afterwards, and whether the
        // recorded result is right. `None` stands for an operation that hasn't returned.
        let mut now = *state;
        let right = match *op {
            TableOp::Read(k, seen) => seen.is_none_or(|seen| seen == state[k as usize]),
            TableOp::Has(k, seen) => seen.is_none_or(|seen| seen == state[k as usize].is_some()),
            TableOp::Put(k, value) => {
                now[k as usize] = Some(value);
                true
            }
            TableOp::PutNew(k, value, new) => {
                let old = state[k as usize];
                now[k as usize] = Some(old.unwrap_or(value));
                new.is_none_or(|new| new == old.is_none())
            }
            TableOp::Add(k, by, sum) => {
                let right = state[k as usize].unwrap_or(0) + by;
                now[k as usize] = Some(right);
                sum.is_none_or(|sum| sum == right)
            }
            TableOp::Replace(k, value, was) => {
                let old = state[k as usize];
                now[k as usize] = old.map(|_| value);
                was.is_none_or(|was| was == old.is_some())
            }
            TableOp::Remove(k, was) => {
                let old = now[k as usize].take();
                was.is_none_or(|was| was == old.is_some())
            }
            TableOp::Take(k, seen) => {
                let old = now[k as usize].take();
                seen.is_none_or(|seen| seen == old)
            }
            TableOp::RemoveObject(k, value, was) => {
                let same = state[k as usize] == Some(value);
                now[k as usize] = state[k as usize].filter(|_| !same);
                was.is_none_or(|was| was == same)
            }
            // All keys at once: no other operation may see some of them changed and others not.
            TableOp::PutAll(value) => {
                now = [Some(value); KEYS as usize];
                true
            }
            TableOp::PutAllNew(value, new) => {
                let none = state.iter().all(Option::is_none);
                now = if none {
                    [Some(value); KEYS as usize]
                } else {
                    now
                };
                new.is_none_or(|new| new == none)
            }
            TableOp::Clear => {
                now = [None; KEYS as usize];
                true
            }
            TableOp::Snapshot(seen) => seen.is_none_or(|seen| seen == *state),
        };
        (right, now)
    }
}

/// A table that executes operations, and fills in their results.
pub trait Tabular: Send + Sync {
    /// Executes the operation. Returns it with its result.
    fn apply(&self, op: TableOp) -> TableOp;
}

/// The operations of a table, of which one in the given number takes a snapshot.
pub struct WithSnapshots<T>(pub TableSubject<T>, pub u64);

impl<T: Tabular> Subject for WithSnapshots<T> {
    type Op = TableOp;
    type Spec = Table;

    fn step(&self, recorder: &mut Recorder<'_, TableOp>, random: u64) {
        if !(random >> 50).is_multiple_of(self.1) {
            return self.0.step(recorder, random);
        }
        let called = TableOp::Snapshot(None);
        recorder.record(0, called, || self.0 .0.apply(called));
    }

    fn finish(&self, recorder: &mut Recorder<'_, TableOp>) {
        self.0.finish(recorder);
    }
}

/// The operations of a table, of which one in the given number is on all keys.
pub struct TableSubject<T>(pub T, pub u64);

impl<T: Tabular> Subject for TableSubject<T> {
    type Op = TableOp;
    type Spec = Table;

    fn step(&self, recorder: &mut Recorder<'_, TableOp>, random: u64) {
        // Few keys and few values, so that operations meet one another.
        let (k, value) = (random % KEYS, random >> 40 & 3);
        // One in so many operations is on all keys.
        let called = if (random >> 20).is_multiple_of(self.1) {
            match random >> 32 & 3 {
                0 | 1 => TableOp::PutAll(value),
                2 => TableOp::PutAllNew(value, None),
                _ => TableOp::Clear,
            }
        } else {
            match random >> 32 & 15 {
                0..=3 => TableOp::Read(k, None),
                4 => TableOp::Has(k, None),
                5 | 6 => TableOp::Put(k, value),
                7 => TableOp::PutNew(k, value, None),
                8 | 9 => TableOp::Add(k, 1 + value, None),
                10 => TableOp::Replace(k, value, None),
                11 | 12 => TableOp::Remove(k, None),
                13 | 14 => TableOp::Take(k, None),
                _ => TableOp::RemoveObject(k, value, None),
            }
        };
        // All keys are one part of the history, since operations on several keys join them.
        recorder.record(0, called, || self.0.apply(called));
    }

    fn finish(&self, recorder: &mut Recorder<'_, TableOp>) {
        for k in 0..KEYS {
            let op = TableOp::Read(k, None);
            recorder.record(0, op, || self.0.apply(op));
        }
    }
}
