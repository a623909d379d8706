//! The adapter for indexes with one value per key: makes a [`Unique`] of a scheme whose words are
//! objects.

use crate::counts::Counts;
use crate::fill;
use crate::position::Order;
use crate::scheme::{delegate_to_scheme, Scheme};
use crate::sequential::Act;
use crate::word::{Object, Word};
use crate::Cut;
use larder_index::{
    Batch, Change, Container, Direction, Guard, Key, Start, Stats, Unique, Updater,
};
use std::cell::Cell;

/// An index with one value per key, on any scheme.
pub struct UniqueAdapter<C> {
    scheme: C,
    order: Order,
    counts: Counts,
}

impl<C: Scheme<Object>> UniqueAdapter<C> {
    /// An index on an empty scheme. A hash-ordered structure needs [`Order::Hash`].
    pub fn new(scheme: C, order: Order) -> Self {
        UniqueAdapter {
            scheme,
            order,
            counts: Counts::default(),
        }
    }
}

/// Calls `f` with an empty buffer, whose memory is kept for the thread's next call.
fn with_scratch<R>(f: impl FnOnce(&mut Vec<u8>) -> R) -> R {
    thread_local! {
        static SCRATCH: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
    }
    let mut scratch = SCRATCH.take();
    scratch.clear();
    let result = f(&mut scratch);
    if scratch.capacity() <= 1 << 16 {
        SCRATCH.set(scratch);
    }
    result
}

impl<C: Scheme<Object>> Unique for UniqueAdapter<C> {
    fn is_ordered(&self) -> bool {
        self.order == Order::Key
    }

    fn get(&self, guard: &Guard, key: Key<'_>, out: &mut Vec<u8>) -> bool {
        let mut found = false;
        self.order.with(key, |position| {
            self.scheme.read(guard, position, &mut |object| {
                if let Some(object) = object {
                    out.extend_from_slice(object.bytes());
                    found = true;
                }
            });
        });
        found
    }

    fn contains(&self, guard: &Guard, key: Key<'_>) -> bool {
        self.order
            .with(key, |position| self.scheme.has(guard, position))
    }

    fn update(&self, guard: &Guard, key: Key<'_>, f: &mut Updater<'_>) -> bool {
        // Differences of the counts. They are computed under the lock, and added after it.
        let (mut len, mut bytes, mut changed) = (0, 0, false);
        let contended = with_scratch(|scratch| {
            self.order.with(key, |position| {
                self.scheme.change(guard, position, &mut |old| {
                    let old = old.word();
                    let held = old.map_or(0, |object| object.heap_bytes() as isize);
                    let there = isize::from(old.is_some());
                    // `f` sees bytes. The scheme stores an object, which is immutable, so a new
                    // value is always a new object.
                    let old = old.map(Object::bytes);
                    let change = f(old, scratch).whole(old, scratch);
                    if let Change::Keep = change {
                        return Act::Keep;
                    }
                    let new = change.value(scratch).map(Object::new);
                    // A value that replaces another is a change, too, although the number of
                    // entries stays.
                    changed = new.is_some() || there == 1;
                    len = isize::from(new.is_some()) - there;
                    bytes = new
                        .as_ref()
                        .map_or(0, |object| object.heap_bytes() as isize)
                        - held;
                    new.map_or(Act::Remove, Act::Put)
                })
            })
        });
        if contended {
            self.counts.contended();
        }
        self.counts.add(len, bytes);
        changed
    }

    fn scan<'g>(
        &'g self,
        guard: &'g Guard,
        start: Start<'_>,
        direction: Direction,
        batch: &mut Batch<'g>,
    ) {
        batch.clear();
        let prefix_len = self.order.prefix_len();
        let cut = Cut::new(start, direction);
        let done = self.scheme.walk(guard, cut, &mut |position, object| {
            batch.push(&position[prefix_len..], object.bytes());
            // The batch says where it ends after each entry: the walk may stop anywhere.
            let full = fill::is_full(batch);
            fill::resume_after(&[position], direction, &mut batch.resume);
            !full
        });
        fill::end(batch, done);
    }

    fn position(&self, key: Key<'_>, out: &mut Vec<u8>) {
        self.order.write(key, out);
    }
}

impl<C: Scheme<Object>> Container for UniqueAdapter<C> {
    fn free_some(&self, guard: &Guard, limit: usize, f: &mut dyn FnMut(&[u8])) -> bool {
        let (mut len, mut bytes) = (0, 0);
        let empty = self.scheme.pop(guard, limit, &mut |object| {
            f(object.bytes());
            len -= 1;
            bytes -= object.heap_bytes() as isize;
        });
        self.counts.add(len, bytes);
        empty
    }

    delegate_to_scheme!();
}
