//! How large leaves are, and how they are filled.
//!
//! A leaf grows by steps: when it is [`FULL`] it is replaced by one in which the same entries take about [`FILL`] of the room; when that would be larger
//! than a leaf may be, by two. So a leaf is between FILL and FULL all its life. All leaves of a table see the same number of
//! hashes, and would take their steps together: each adds a part to FILL that follows from the hashes it has, so that a table's memory grows evenly.
//!
//! The size of buckets follows from the rows: about [`A_BUCKET`] of them, and most bytes of larger rows inside.

use super::gather::{Gather, Item, MOST_INSIDE};
use super::plain;
use super::shape::*;
use crate::raw::bucket_leaf::NewLeaf;
use crate::raw::outside::Handle;
use crate::route::{size_class, LeafConfig, Shared};
use smallvec::SmallVec;

/// The part of a leaf's room that is taken when it is new, in 1024ths: the least, and how much the least varies.
const FILL: usize = 750;
const FILL_VARIES: usize = 60;
/// The part of a leaf's room at which it grows, in 1024ths.
const FULL: usize = 950;
/// The part that may be taken when it is new and as large as a leaf may be.
const NEARLY_FULL: usize = 880;
/// The part that may be taken when it is new because removals have left it room.
const SHRUNK: usize = 840;
/// A leaf shrinks when this part of the next smaller size would hold it.
const SPARSE: usize = 820;
/// A leaf shrinks by so much of a power of two: two of the allocator's steps.
const STEPS_DOWN: usize = 4;
/// A leaf of fewer buckets is full when no bucket has room.
const FEW_BUCKETS: u32 = 3;
/// How many rows a bucket should hold.
const A_BUCKET: usize = 5;
/// How many larger rows a bucket should hold: it has more lines than can be asked for at once anyway.
const A_LARGE_BUCKET: usize = 7;
/// The least number of buckets at which a leaf splits.
const LEAST_TOP: usize = 14;
/// How many times as large as others a leaf may get before it splits, if its hashes begin alike.
const TIMES: usize = 16;

/// Sizes of leaves, as a configuration says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    most: usize,
    least_class: u8,
    top_class: u8,
    /// Buckets of the first leaf.
    first: u32,
}

impl Sizes {
    pub(crate) fn new(config: &LeafConfig) -> Sizes {
        let tiny = config.most < 1024;
        let least_class = if tiny { 0 } else { 1 };
        Sizes {
            most: config.most,
            first: config.first.div_ceil(SMALLEST << least_class).max(1) as u32,
            least_class,
            top_class: if tiny { 1 } else { TOP_CLASS },
        }
    }

    /// The most buckets of a leaf of this class that could split.
    fn top(&self, class: u8) -> usize {
        let least = if self.top_class < TOP_CLASS {
            2
        } else {
            LEAST_TOP
        };
        (self.most / (SMALLEST << class)).max(least)
    }

    /// The shape of the first leaf of an index.
    pub(crate) fn first(&self) -> Shape {
        Shape {
            buckets: self.first,
            ..self.least(0)
        }
    }

    /// The smallest shape.
    pub(crate) fn least(&self, depth: u8) -> Shape {
        Shape {
            buckets: 1,
            class: self.least_class,
            depth,
        }
    }

    /// Bytes of room in the largest leaf of this class.
    fn room(&self, class: u8) -> usize {
        self.top(class) * usable(class)
    }

    /// Whether two leaves with this many bytes in all should be one.
    pub(crate) fn unite(&self, class: u8, live: usize) -> bool {
        live * 2 <= self.room(class)
    }

    /// Whether a leaf with this many bytes is small enough to look for a neighbour.
    pub(crate) fn lonely(&self, class: u8, live: usize) -> bool {
        live * 4 <= self.room(class)
    }
}

/// Whether an entry that needs this many bytes may be added to what is live in a leaf.
#[inline]
pub(crate) fn has_room(shape: Shape, live: usize, need: usize) -> bool {
    shape.buckets < FEW_BUCKETS || (live + need) * 1024 <= room(shape) * FULL
}

/// Whether a leaf is so empty that it should be smaller, or have smaller buckets.
///
/// It goes down two of the allocator's sizes at once: between one step and the next a quarter of its rows go, so that each has few others to move.
#[inline]
pub(crate) fn is_sparse(shape: Shape, live: usize) -> bool {
    if shape.buckets == 1 {
        return shape.class > 1 && live * 8 < room(shape);
    }
    let bytes = memory(shape.buckets as usize, shape.class);
    let smaller = bytes - bytes.next_power_of_two() / STEPS_DOWN;
    let smaller = buckets_of(smaller, shape.class).clamp(1, shape.buckets as usize - 1);
    live * 1024 < smaller * usable(shape.class) * SPARSE
}

fn room(shape: Shape) -> usize {
    shape.buckets as usize * usable(shape.class)
}

/// What a leaf for some entries should be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    class: u8,
    buckets: usize,
    /// It has more than a leaf should.
    pub(crate) splits: bool,
    /// It has so much more that it splits however alike its hashes are.
    pub(crate) huge: bool,
}

impl Plan {
    /// Whether a leaf has this shape already.
    pub(crate) fn is_as(&self, shape: Shape) -> bool {
        (self.class, self.buckets) == (shape.class, shape.buckets as usize)
    }
}

/// Bytes of the items in a leaf of this class.
fn need(items: &[Item], class: u8) -> usize {
    let most = most_body(class).min(MOST_INSIDE);
    let one = |item: &Item| match item.len() {
        len if (1..=most).contains(&len) => object_size(len, class) + LANE,
        _ => HANDLE + LANE,
    };
    items.iter().map(one).sum()
}

/// The size of buckets for the items.
fn class(items: &[Item], sizes: &Sizes) -> u8 {
    let (mut rows, mut bytes) = (0, 0);
    // Bytes of the rows that only a class above this one has inside.
    let mut above = [0usize; TOP_CLASS as usize + 1];
    for item in items
        .iter()
        .filter(|i| (1..=MOST_INSIDE).contains(&i.len()))
    {
        rows += 1;
        bytes += item.len() + LANE;
        for class in sizes.least_class..sizes.top_class {
            above[usize::from(class)] += if item.len() > most_body(class) {
                item.len()
            } else {
                0
            };
        }
    }
    (sizes.least_class..sizes.top_class)
        .find(|&class| {
            let a_bucket = if class > 1 { A_LARGE_BUCKET } else { A_BUCKET };
            bytes * a_bucket <= rows * usable(class) && above[usize::from(class)] * 8 <= bytes
        })
        .unwrap_or(if rows == 0 {
            sizes.least_class
        } else {
            sizes.top_class
        })
}

/// Bytes of memory of a leaf.
fn memory(buckets: usize, class: u8) -> usize {
    HEAD + buckets * (SMALLEST << class)
}

/// How many buckets a leaf of so many bytes has.
fn buckets_of(memory: usize, class: u8) -> usize {
    (memory - HEAD) >> (SMALLEST << class).trailing_zeros()
}

/// Why a leaf is made.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Why {
    /// One of this shape has no room.
    Grows(Shape),
    /// One of two that take the place of one that was full.
    Splits,
    /// Removals have left room.
    Shrinks,
}

/// What a leaf for the items should be.
pub(crate) fn plan(items: &[Item], sizes: &Sizes, why: Why) -> Plan {
    let class = class(items, sizes);
    let varies = items
        .first()
        .map_or(0, |i| (i.hash >> 16) as usize % FILL_VARIES);
    let fill = match why {
        Why::Shrinks => SHRUNK,
        _ => FILL + varies,
    };
    let buckets = (need(items, class) * 1024)
        .div_ceil(usable(class) * fill)
        .max(1);
    let buckets = match why {
        Why::Grows(old) if old.class == class => buckets.max(old.buckets as usize + 1),
        _ => buckets,
    };
    let top = sizes.top(class);
    // A last step that is small is better than an early split.
    let fits = need(items, class) * 1024 <= top * usable(class) * NEARLY_FULL;
    let buckets = if buckets > top
        && fits
        && why != Why::Splits
        && !matches!(why, Why::Grows(old) if old.buckets as usize >= top)
    {
        top
    } else {
        buckets
    };
    // The allocator's sizes are steps: what it would leave unused is buckets, too.
    let buckets = if buckets < top {
        buckets_of(size_class(memory(buckets, class)), class).min(top)
    } else {
        buckets
    };
    Plan {
        class,
        buckets,
        splits: buckets > top,
        huge: buckets > top * TIMES,
    }
}

/// A new leaf, and the handles of those whose objects it took inside.
pub(crate) struct Built {
    pub(crate) leaf: NewLeaf,
    pub(crate) inside_now: SmallVec<[Handle; 4]>,
}

/// Makes a leaf of the items.
pub(crate) fn build(
    gather: &Gather,
    items: &[Item],
    plan: Plan,
    depth: u8,
    shared: &Shared,
    split: &KeySplit<'_>,
) -> Built {
    // Handles of bodies that have no room in such a leaf; made once, however often the leaf has to be larger.
    let mut made: Vec<(usize, Handle)> = Vec::new();
    for (i, item) in items.iter().enumerate() {
        if item.handle.is_none() && item.len() > most_body(plan.class).min(MOST_INSIDE) {
            let body = gather.body(item);
            let (key, value) = split(body);
            let (handle, bytes) = Handle::new(key, value);
            shared.counters.add_bytes(bytes as isize);
            made.push((i, handle));
        }
    }
    let mut buckets = plan.buckets;
    loop {
        let shape = Shape {
            buckets: buckets as u32,
            class: plan.class,
            depth,
        };
        if let Some(leaf) = fill(gather, items, shape, &made) {
            let most = most_body(plan.class).min(MOST_INSIDE);
            let fits = |i: &&Item| (1..=most).contains(&i.len());
            let inside_now = items.iter().filter(fits).filter_map(|i| i.handle).collect();
            return Built { leaf, inside_now };
        }
        buckets += 1 + buckets / 16;
    }
}

/// Cuts a body into key and value.
pub(crate) type KeySplit<'a> = dyn Fn(&[u8]) -> (&[u8], &[u8]) + 'a;

/// A leaf of this shape with the items, if they have room.
fn fill(
    gather: &Gather,
    items: &[Item],
    shape: Shape,
    made: &[(usize, Handle)],
) -> Option<NewLeaf> {
    let most = most_body(shape.class).min(MOST_INSIDE);
    let mut new = NewLeaf::empty(shape);
    let bytes = new.bytes();
    let mut made = made.iter().peekable();
    let mut live = 0;
    for (i, item) in items.iter().enumerate() {
        let done = if (1..=most).contains(&item.len()) {
            live += object_size(item.len(), shape.class) + LANE;
            plain::put(bytes, shape, item.hash, gather.body(item), false)
        } else {
            let handle = match made.next_if(|(j, _)| *j == i) {
                Some((_, handle)) => *handle,
                None => item.handle?,
            };
            live += HANDLE + LANE;
            plain::put(bytes, shape, item.hash, &handle.bits().to_le_bytes(), true)
        };
        if !done {
            return None;
        }
    }
    new.filled(items.len(), live);
    Some(new)
}
