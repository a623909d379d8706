//! Histories of an index with many values under a key. Each key is a separate list, in order of
//! arrival. There are no scans among the operations, since a scan may see a part of an update.

use crate::history::{Recorder, Specification, Subject};
use crate::registers::number;
use crate::{key, Hashes};
use larder_index::{pin, Multi, Objects};

/// An operation on the values under one key, with its result, which is `None` in the event of its
/// call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueListOp {
    /// Reads the values.
    Read(Option<Vec<u64>>),
    /// Whether there are values.
    Has(Option<bool>),
    /// Appends a value. The result is the number of values.
    Push(u64, Option<usize>),
    /// Appends a value unless it is present. The result says whether it was appended.
    Once(u64, Option<bool>),
    /// Removes all values equal to this one. The result is their number.
    RemoveSame(u64, Option<usize>),
    /// Removes all values, and appends this one twice.
    Renew(u64),
    /// Removes all values. They are the result.
    Take(Option<Vec<u64>>),
    /// Replaces the first value equal to the first argument by the second, in its place. The result
    /// says whether there was one.
    Replace(u64, u64, Option<bool>),
    /// Appends the numbers from the first argument up to the second, which is excluded. The result
    /// is the number of values.
    Fill(u64, u64, Option<usize>),
    /// Keeps the first values, this many, and removes the others. The result is the number of
    /// removed values.
    Truncate(usize, Option<usize>),
}

/// The sequential specification of the values under a key.
pub struct ValueList;

impl Specification for ValueList {
    type State = Vec<u64>;
    type Operation = ValueListOp;

    fn init() -> Self::State {
        Vec::new()
    }

    fn apply(operation: &ValueListOp, state: &Self::State) -> (bool, Self::State) {
        // The specification is a list. `right` says whether the recorded result agrees with it, and
        // `None` is the result of an operation that hasn't returned.
        let mut now = state.clone();
        let right = match operation {
            ValueListOp::Read(seen) => seen.as_ref().is_none_or(|seen| seen == state),
            ValueListOp::Has(seen) => seen.is_none_or(|seen| seen != state.is_empty()),
            ValueListOp::Push(value, count) => {
                now.push(*value);
                count.is_none_or(|count| count == now.len())
            }
            // Push it unless it is there, in one step.
            ValueListOp::Once(value, new) => {
                let there = state.contains(value);
                now.extend(Some(*value).filter(|_| !there));
                new.is_none_or(|new| new != there)
            }
            ValueListOp::RemoveSame(value, count) => {
                now.retain(|v| v != value);
                count.is_none_or(|count| count == state.len() - now.len())
            }
            // Replace all objects by two equal ones: no reader may see one only, or three.
            ValueListOp::Renew(value) => {
                now = vec![*value, *value];
                true
            }
            ValueListOp::Take(seen) => {
                now.clear();
                seen.as_ref().is_none_or(|seen| seen == state)
            }
            ValueListOp::Replace(old, new, there) => {
                // The first of the equal ones.
                let place = now.iter_mut().find(|v| *v == old);
                let right = there.is_none_or(|there| there == place.is_some());
                if let Some(place) = place {
                    *place = *new;
                }
                right
            }
            ValueListOp::Fill(from, to, count) => {
                now.extend(*from..*to);
                count.is_none_or(|count| count == now.len())
            }
            ValueListOp::Truncate(left, count) => {
                // Keep so many from the beginning.
                now.truncate(*left);
                count.is_none_or(|count| count == state.len() - now.len())
            }
        };
        (right, now)
    }
}

/// An index, and the number of keys that are used. There are few values under each key.
pub struct ValueListSubject(pub Box<dyn Multi>, pub u64);

/// A [`ValueListSubject`] with up to some hundred values under a key. They are added and removed by
/// the dozen. So an index that keeps many values in another form changes between the two forms.
pub struct Large(pub ValueListSubject);

fn values(objects: &dyn Objects) -> Vec<u64> {
    let mut values = Vec::new();
    objects.each(&mut |_, v| {
        values.push(number(v));
        true
    });
    values
}

impl ValueListSubject {
    fn change<T: Default>(&self, k: u64, f: impl Fn(&mut dyn Objects) -> T) -> T {
        let mut answer = T::default();
        let bytes = k.to_be_bytes();
        self.0
            .update(&pin(), key(&bytes, Hashes::Few), &mut |objects| {
                answer = f(objects)
            });
        answer
    }

    fn read(&self, k: u64) -> Vec<u64> {
        let (bytes, mut values) = (k.to_be_bytes(), Vec::new());
        let n = self.0.get(&pin(), key(&bytes, Hashes::Few), &mut |v| {
            values.push(number(v))
        });
        assert_eq!(n, values.len());
        values
    }

    // Executes the operation on the index, each as one update, and returns it with its result.
    fn apply(&self, k: u64, op: &ValueListOp) -> ValueListOp {
        match op {
            ValueListOp::Read(_) => ValueListOp::Read(Some(self.read(k))),
            ValueListOp::Has(_) => ValueListOp::Has(Some(
                self.0.contains(&pin(), key(&k.to_be_bytes(), Hashes::Few)),
            )),
            ValueListOp::Push(value, _) => ValueListOp::Push(
                *value,
                Some(self.change(k, |objects| {
                    objects.push(&value.to_be_bytes());
                    objects.count()
                })),
            ),
            ValueListOp::Once(value, _) => ValueListOp::Once(
                *value,
                Some(self.change(k, |objects| {
                    let bytes = value.to_be_bytes();
                    let new = !objects.find(&bytes, &mut |v| v == bytes);
                    if new {
                        objects.push(&bytes);
                    }
                    new
                })),
            ),
            ValueListOp::RemoveSame(value, _) => ValueListOp::RemoveSame(
                *value,
                Some(self.change(k, |objects| {
                    let bytes = value.to_be_bytes();
                    objects.remove_same(&bytes, &mut |v| v == bytes)
                })),
            ),
            ValueListOp::Renew(value) => {
                self.change(k, |objects| {
                    objects.remove_if(&mut |_| true);
                    objects.push(&value.to_be_bytes());
                    objects.push(&value.to_be_bytes());
                });
                op.clone()
            }
            ValueListOp::Take(_) => ValueListOp::Take(Some(self.change(k, |objects| {
                let taken = values(objects);
                objects.remove_if(&mut |_| true);
                taken
            }))),
            ValueListOp::Replace(old, new, _) => {
                ValueListOp::Replace(*old, *new, Some(self.change(k, |o| replace(o, *old, *new))))
            }
            ValueListOp::Fill(from, to, _) => ValueListOp::Fill(
                *from,
                *to,
                Some(self.change(k, |objects| {
                    (*from..*to).for_each(|value| objects.push(&value.to_be_bytes()));
                    objects.count()
                })),
            ),
            ValueListOp::Truncate(left, _) => ValueListOp::Truncate(
                *left,
                Some(self.change(k, |objects| {
                    let mut met = 0;
                    // The closure is called in order of arrival, so all after the first `left` go.
                    objects.remove_if(&mut |_| {
                        met += 1;
                        met > *left
                    })
                })),
            ),
        }
    }

    fn record(&self, recorder: &mut Recorder<'_, ValueListOp>, k: u64, called: ValueListOp) {
        recorder.record(k, called.clone(), || self.apply(k, &called));
    }
}

/// The first that is `old` becomes `new`; says whether there was one.
fn replace(objects: &mut dyn Objects, old: u64, new: u64) -> bool {
    let mut at = None;
    // Find the ordinal first, since `each` gives no way to change an object.
    objects.each(&mut |ordinal, v| {
        at = Some(ordinal).filter(|_| number(v) == old);
        at.is_none()
    });
    if let Some(ordinal) = at {
        objects.replace(ordinal, &new.to_be_bytes());
    }
    at.is_some()
}

impl Subject for ValueListSubject {
    type Op = ValueListOp;
    type Spec = ValueList;

    fn step(&self, recorder: &mut Recorder<'_, ValueListOp>, random: u64) {
        // Four values, so that lists often have equal ones.
        let (k, value) = (random % self.1, random >> 40 & 3);
        let called = match random >> 32 & 15 {
            0..=3 => ValueListOp::Read(None),
            4 => ValueListOp::Replace(value, random >> 42 & 3, None),
            5 => ValueListOp::Has(None),
            6..=8 => ValueListOp::Push(value, None),
            9 | 10 => ValueListOp::Once(value, None),
            11 | 12 => ValueListOp::RemoveSame(value, None),
            13 => ValueListOp::Renew(value),
            _ => ValueListOp::Take(None),
        };
        self.record(recorder, k, called);
    }

    fn finish(&self, recorder: &mut Recorder<'_, ValueListOp>) {
        (0..self.1).for_each(|k| self.record(recorder, k, ValueListOp::Read(None)));
    }
}

impl Subject for Large {
    type Op = ValueListOp;
    type Spec = ValueList;

    fn step(&self, recorder: &mut Recorder<'_, ValueListOp>, random: u64) {
        // Thirty-two values, and lists that grow and shrink by many at once.
        let (k, value) = (random % self.0 .1, random >> 40 & 31);
        let called = match random >> 32 & 15 {
            0..=3 => ValueListOp::Read(None),
            4 => ValueListOp::Replace(value, random >> 45 & 31, None),
            5 => ValueListOp::Has(None),
            6 => ValueListOp::Push(value, None),
            7 | 8 => ValueListOp::Once(value, None),
            9..=11 => ValueListOp::RemoveSame(value, None),
            12..=14 => ValueListOp::Fill(value, 32, None),
            _ => ValueListOp::Truncate(value as usize / 2, None),
        };
        self.0.record(recorder, k, called);
    }

    fn finish(&self, recorder: &mut Recorder<'_, ValueListOp>) {
        self.0.finish(recorder);
    }
}
