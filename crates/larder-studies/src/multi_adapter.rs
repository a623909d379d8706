//! The adapter for indexes with many values per key: makes a [`Multi`] of a scheme whose words are
//! value lists.
//!
//! ```text
//!   entry of the structure     hash | key            a list: (number, object), (number, object), …
//!   entry of the index         hash | key | number   one object
//! ```
//!
//! A scan may stop between two objects of a key. It resumes *around* a position, which is that of
//! the value list followed by a number: with the objects of the list that are past the number. If
//! the list has been removed, it resumes with the next one.

use crate::counts::Counts;
use crate::fill;
use crate::position::{Asked, Order, HASH};
use crate::scheme::{delegate_to_scheme, Old, Scheme};
use crate::sequential::Act;
use crate::word::{Object, ValueList, Word};
use crate::Cut;
use larder_index::{Batch, Container, Direction, Guard, Key, Multi, Objects, Start, Stats, Values};

/// Sorts after all numbers of arrivals.
const PAST_NUMBERS: [u8; 9] = [0xFF; 9];

/// An index with many values per key, on any scheme.
pub struct MultiAdapter<C> {
    scheme: C,
    counts: Counts,
}

impl<C: Scheme<ValueList>> MultiAdapter<C> {
    /// An index on an empty scheme.
    pub fn new(scheme: C) -> Self {
        MultiAdapter {
            scheme,
            counts: Counts::default(),
        }
    }
}

/// The value list of a key during a change. If other threads may be reading the list, it is copied
/// before the first change.
struct EditedList<'c> {
    place: CowList<'c>,
    before: usize,
}

/// A value list that is copied on write. A new one says whether it is such a copy.
enum CowList<'c> {
    Mine(&'c mut ValueList),
    Shared(&'c ValueList),
    New(ValueList, bool),
}

impl<'c> EditedList<'c> {
    fn new(old: Old<'c, ValueList>) -> Self {
        let before = old.word().map_or(0, ValueList::len);
        let place = match old {
            Old::Absent => CowList::New(ValueList::default(), false),
            Old::Mine(list) => CowList::Mine(list),
            Old::Shared(list) => CowList::Shared(list),
        };
        EditedList { place, before }
    }

    fn values(&self) -> &ValueList {
        match &self.place {
            CowList::Mine(list) => list,
            CowList::Shared(list) => list,
            CowList::New(list, _) => list,
        }
    }

    fn change(&mut self) -> &mut ValueList {
        // Readers may be using a shared list. So change a copy, which replaces it at the end.
        if let CowList::Shared(list) = self.place {
            self.place = CowList::New(list.clone(), true);
        }
        match &mut self.place {
            CowList::Mine(list) => list,
            CowList::New(list, _) => list,
            CowList::Shared(_) => unreachable!("a shared list was just copied"),
        }
    }

    /// The change of the entry in the scheme.
    fn end(self) -> Act<ValueList> {
        match self.place {
            CowList::Mine(list) if list.is_empty() => Act::Remove,
            CowList::New(list, true) if list.is_empty() => Act::Remove,
            CowList::New(list, _) if !list.is_empty() => Act::Put(list),
            _ => Act::Keep,
        }
    }
}

impl Objects for EditedList<'_> {
    fn count(&self) -> usize {
        self.values().len()
    }

    fn each(&self, f: &mut dyn FnMut(usize, &[u8]) -> bool) {
        self.values().each(f);
    }

    fn push(&mut self, value: &[u8]) {
        self.change().push(value);
    }

    fn remove_if(&mut self, f: &mut dyn FnMut(&[u8]) -> bool) -> usize {
        self.change().remove_if(f)
    }

    fn replace(&mut self, ordinal: usize, value: &[u8]) {
        self.change().replace(ordinal, value);
    }
}

/// Appends entries of one key to a batch until it is full. Returns whether there is still room.
fn take<'c>(
    batch: &mut Batch,
    position: &[u8],
    mut part: impl DoubleEndedIterator<Item = (u64, &'c Object)>,
    direction: Direction,
) -> bool {
    let (hash, key) = position.split_at(HASH);
    let mut push = |(number, object): (u64, &Object)| {
        let number = number.to_be_bytes();
        // Put the hash before the entry and the number after it, for `entry_position`. They aren't
        // part of the key or the value.
        batch.push_between(hash, key, object.bytes(), &number);
        // The batch resumes after this entry, or before it, if the direction is backward.
        fill::resume_after(&[position, &number], direction, &mut batch.resume);
        // The entry that fills the batch is in it, so each batch makes progress.
        !fill::is_full(batch)
    };
    match direction {
        Direction::Forward => part.all(&mut push),
        Direction::Backward => part.rev().all(&mut push),
    }
}

impl<C: Scheme<ValueList>> Multi for MultiAdapter<C> {
    fn read(&self, guard: &Guard, key: Key<'_>, values: &mut Values) -> usize {
        let mut found = 0;
        Order::Hash.with(key, |position| {
            self.scheme.read(guard, position, &mut |list| {
                if let Some(list) = list {
                    found = list.len();
                    list.iter()
                        .for_each(|(_, object)| values.push(object.bytes()));
                }
            });
        });
        found
    }

    fn contains(&self, guard: &Guard, key: Key<'_>) -> bool {
        // A value list without objects is never left behind.
        Order::Hash.with(key, |position| self.scheme.has(guard, position))
    }

    fn update(&self, guard: &Guard, key: Key<'_>, f: &mut dyn FnMut(&mut dyn Objects)) {
        // Differences of the counts. They are computed under the lock, and added after it.
        let (mut len, mut bytes) = (0, 0);
        let contended = Order::Hash.with(key, |position| {
            self.scheme.change(guard, position, &mut |old| {
                // Asked first: a list that is changed in place is another afterwards.
                let bytes_before = old.word().map_or(0, Word::heap_bytes);
                let mut list = EditedList::new(old);
                f(&mut list);
                // The list may have become shorter or longer, or be absent now.
                let after = list.values();
                len = after.len() as isize - list.before as isize;
                let bytes_after = if after.is_empty() {
                    0
                } else {
                    after.heap_bytes()
                };
                bytes = bytes_after as isize - bytes_before as isize;
                list.end()
            })
        });
        if contended {
            self.counts.contended();
        }
        self.counts.add(len, bytes);
    }

    fn scan<'g>(
        &'g self,
        guard: &'g Guard,
        start: Start<'_>,
        direction: Direction,
        batch: &mut Batch<'g>,
    ) {
        batch.clear();
        let forward = direction == Direction::Forward;
        let entries = Cut::new(start, direction);
        // If the start is between two objects of a key, the walk begins with that key's list.
        let cut = match entries.bytes() {
            None => entries,
            Some(bytes) => Cut::around(bytes, direction),
        };
        let mut last = Asked::new();
        let mut visit = |position: &[u8], list: &ValueList| {
            last.clear();
            last.extend_from_slice(position);
            // Of the list in which the start is, only take the numbers past the start. Of any other
            // list, take all.
            let inside = entries
                .bytes()
                .filter(|bytes| bytes.starts_with(position))
                .map(|_| entries.skip(position.len()));
            let part = list.part(
                &|number| inside.is_none_or(|cut| cut.admits(number)),
                forward,
            );
            take(batch, position, part, direction)
        };
        let mut done = self.scheme.walk(guard, cut, &mut visit);
        if batch.is_empty() && !done {
            // The walk visited one list, which has no number past the start. Continue after it,
            // since a batch must not be empty before the end.
            let past = last.clone();
            let cut = Cut::new(Start::Past(&past), direction);
            done = self.scheme.walk(guard, cut, &mut |position, list| {
                take(batch, position, list.part(&|_| true, forward), direction)
            });
        }
        fill::end(batch, done);
    }

    fn first_position(&self, key: Key<'_>, out: &mut Vec<u8>) {
        Order::Hash.write(key, out);
    }

    fn last_position(&self, key: Key<'_>, out: &mut Vec<u8>) {
        Order::Hash.write(key, out);
        out.extend_from_slice(&PAST_NUMBERS);
    }

    fn entry_position(&self, batch: &Batch, i: usize, out: &mut Vec<u8>) {
        let (before, after) = batch.around(i);
        out.clear();
        out.extend_from_slice(&before[before.len() - HASH..]);
        out.extend_from_slice(batch.key(i));
        out.extend_from_slice(&after[..size_of::<u64>()]);
    }
}

impl<C: Scheme<ValueList>> Container for MultiAdapter<C> {
    fn free_some(&self, guard: &Guard, limit: usize, f: &mut dyn FnMut(&[u8])) -> bool {
        let (mut len, mut bytes) = (0, 0);
        let empty = self.scheme.pop(guard, limit, &mut |list| {
            list.iter().for_each(|(_, object)| f(object.bytes()));
            len -= list.len() as isize;
            bytes -= list.heap_bytes() as isize;
        });
        self.counts.add(len, bytes);
        empty
    }

    delegate_to_scheme!();
}
