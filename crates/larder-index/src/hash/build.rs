//! How large leaves are, and how they are filled.
//!
//! A leaf grows by steps: when it is [`FULL`] it is replaced by one in which the same entries take
//! about [`FILL`] of the room; when that would be larger than a leaf may be, by two. So a leaf is
//! between FILL and FULL all its life. All leaves of a table see the same number of hashes, and
//! would take their steps together: each adds a part to FILL that follows from the hashes it has,
//! and each has an end of its own, so that at any time as many split as at any other. So a table
//! grows evenly, and what some leaves give back others take.
//!
//! The size of buckets follows from the rows: about [`A_BUCKET`] of them, and most bytes of larger
//! rows inside.

use super::gather::{Gather, GatheredEntry};
use super::plain;
use super::shape::*;
use crate::config::{size_class, LeafConfig};
use crate::hash::leaf::{LiveBounds, NewHashLeaf};
use crate::outside::Handle;
use crate::shared::Shared;
use smallvec::SmallVec;

/// The part of a leaf's room that is taken when it is new, in 1024ths: the least, where buckets are
/// larger, and how much it varies.
const FILL: usize = 680;
const FILL_LARGE: usize = 750;
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
/// How many larger rows a bucket should hold: it has more lines than are prefetched at once
/// anyway.
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

    /// The buckets of the leaves of this class that split, on the average.
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
    fn max_capacity(&self, class: u8) -> usize {
        self.top(class) * usable(class)
    }

    /// How far the leaf of this depth that has the hash grows before it splits: between 0.7 and 1.4
    /// times the average, as its bits say.
    fn end(&self, class: u8, hash: u64, depth: u8) -> LastStep {
        let bits = lead(hash, depth) ^ u64::from(depth);
        let chance = (bits ^ bits >> 32).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 54;
        // 1024 times the buckets.
        let target = (self.top(class) * (1024 + chance as usize) * 181 / 256).max(2 * 1024);
        let bytes = size_class(memory(target.div_ceil(1024), class));
        LastStep {
            buckets: buckets_of(bytes, class),
            full: target * usable(class) / 1024 * FULL / 1024,
        }
    }

    /// An empty leaf of this shape, which has the hash in its range.
    pub(crate) fn empty(&self, shape: Shape, hash: u64) -> NewHashLeaf {
        NewHashLeaf::empty(shape, self.bounds(shape, hash))
    }

    fn bounds(&self, shape: Shape, hash: u64) -> LiveBounds {
        let end = self.end(shape.class, hash, shape.depth);
        let most = match shape.buckets {
            ..FEW_BUCKETS => usize::MAX,
            buckets if buckets as usize == end.buckets => end.full,
            _ => capacity(shape) * FULL / 1024,
        };
        let mergeable = match shape.depth {
            0 => 0,
            _ => self.max_capacity(shape.class) / 4 + 1,
        };
        let clamped = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX);
        LiveBounds {
            least: clamped(sparse_below(shape).max(mergeable)),
            most: clamped(most),
        }
    }

    /// Whether two leaves with this many bytes in all should be one.
    pub(crate) fn fits_one(&self, class: u8, live: usize) -> bool {
        live * 2 <= self.max_capacity(class)
    }

    /// Whether a leaf with this many bytes is small enough to look for a neighbour.
    pub(crate) fn mergeable(&self, class: u8, live: usize) -> bool {
        live * 4 <= self.max_capacity(class)
    }
}

/// The last of a leaf's steps.
#[derive(Clone, Copy)]
struct LastStep {
    /// Its buckets: of one of the allocator's sizes.
    buckets: usize,
    /// The bytes of objects and slot entries at which it splits: it may not use all of its last
    /// step.
    full: usize,
}

/// Whether a leaf is so empty that it should be smaller, or have smaller buckets.
pub(crate) fn is_sparse(shape: Shape, live: usize) -> bool {
    live < sparse_below(shape)
}

/// The bytes below which a leaf should be smaller, or have smaller buckets.
///
/// It goes down two of the allocator's sizes at once: between one step and the next a quarter of
/// its rows go, so that each has few others to move.
fn sparse_below(shape: Shape) -> usize {
    if shape.buckets == 1 {
        return if shape.class > 1 {
            capacity(shape).div_ceil(8)
        } else {
            0
        };
    }
    let bytes = memory(shape.buckets as usize, shape.class);
    let smaller = bytes - bytes.next_power_of_two() / STEPS_DOWN;
    let smaller = buckets_of(smaller, shape.class).clamp(1, shape.buckets as usize - 1);
    (smaller * usable(shape.class) * SPARSE).div_ceil(1024)
}

fn capacity(shape: Shape) -> usize {
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
    /// The shape of such a leaf at this depth.
    pub(crate) fn shape(&self, depth: u8) -> Shape {
        Shape {
            buckets: self.buckets as u32,
            class: self.class,
            depth,
        }
    }

    /// Whether a leaf has this shape already.
    pub(crate) fn is_as(&self, shape: Shape) -> bool {
        (self.class, self.buckets) == (shape.class, shape.buckets as usize)
    }
}

/// Rows that live inside a leaf, and their bytes with their slot entries.
#[derive(Clone, Copy, Default)]
pub(crate) struct Rows {
    pub(crate) count: usize,
    pub(crate) bytes: usize,
}

impl Rows {
    /// Whether enough of them go into a bucket of this class.
    fn fill(self, class: u8) -> bool {
        let a_bucket = if class > 1 { A_LARGE_BUCKET } else { A_BUCKET };
        self.bytes * a_bucket <= self.count * usable(class)
    }
}

/// Some items, summed up.
struct Sum<'a> {
    items: &'a [GatheredEntry],
    /// Those of them that some leaf has room for.
    rows: Rows,
    /// The longest of these.
    longest: usize,
}

impl<'a> Sum<'a> {
    fn new(items: &'a [GatheredEntry]) -> Self {
        let (mut rows, mut longest) = (Rows::default(), 0);
        for len in items
            .iter()
            .map(GatheredEntry::len)
            .filter(|&len| fits_inside(len))
        {
            rows.count += 1;
            rows.bytes += len + SLOT_ENTRY;
            longest = longest.max(len);
        }
        Sum {
            items,
            rows,
            longest,
        }
    }

    /// Bytes of the items in a leaf of this class.
    fn need(&self, class: u8) -> usize {
        let most = most_body(class).min(MOST_INSIDE);
        if self.longest <= most && unit(class) == 0 {
            return self.rows.bytes + (self.items.len() - self.rows.count) * (HANDLE + SLOT_ENTRY);
        }
        let one = |item: &GatheredEntry| match item.len() {
            len if (1..=most).contains(&len) => object_size(len, class) + SLOT_ENTRY,
            _ => HANDLE + SLOT_ENTRY,
        };
        self.items.iter().map(one).sum()
    }

    /// Bytes of the rows that only a class above this one has inside.
    fn above(&self, class: u8) -> usize {
        if self.longest <= most_body(class) {
            return 0;
        }
        let lengths = self.items.iter().map(GatheredEntry::len);
        lengths
            .filter(|&len| fits_inside(len) && len > most_body(class))
            .sum()
    }

    /// The size of buckets for the items.
    fn class(&self, sizes: &Sizes) -> u8 {
        let fits = |class: &u8| self.rows.fill(*class) && self.above(*class) * 8 <= self.rows.bytes;
        let class = (sizes.least_class..sizes.top_class).find(fits);
        class.unwrap_or(if self.rows.count == 0 {
            sizes.least_class
        } else {
            sizes.top_class
        })
    }
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
pub(crate) enum Reason {
    /// One of this shape has no room.
    Grows(Shape),
    /// One of two that take the place of one that was full.
    Splits,
    /// Removals have left room.
    Shrinks,
}

/// What a leaf for the items should be.
pub(crate) fn plan(items: &[GatheredEntry], sizes: &Sizes, reason: Reason, depth: u8) -> Plan {
    let sum = Sum::new(items);
    let class = sum.class(sizes);
    let hash = items.first().map_or(0, |i| i.hash);
    plan_bytes(sum.need(class), class, (hash, depth), sizes, reason)
}

/// As `plan`, for rows that all live in a leaf of this class, if its unit is a byte. None if that
/// is not surely the class that they should have.
pub(crate) fn plan_rows(
    rows: Rows,
    class: u8,
    at: (u64, u8),
    sizes: &Sizes,
    reason: Reason,
) -> Option<Plan> {
    let mut classes = sizes.least_class..sizes.top_class;
    let known = unit(class) == 0 && classes.find(|&c| rows.fill(c)) == Some(class);
    known.then(|| plan_bytes(rows.bytes, class, at, sizes, reason))
}

/// The part of a leaf of this class that is taken when it is new. Small rows are many, and each
/// step moves all of them: their steps are longer.
fn filled(class: u8) -> usize {
    if class > 1 {
        FILL_LARGE
    } else {
        FILL
    }
}

/// What a leaf of this class should be that has so many bytes of objects and slot entries, the hash
/// in its range, and this depth.
fn plan_bytes(
    need: usize,
    class: u8,
    (hash, depth): (u64, u8),
    sizes: &Sizes,
    reason: Reason,
) -> Plan {
    let fill = match reason {
        Reason::Shrinks => SHRUNK,
        _ => filled(class) + (hash >> 16) as usize % FILL_VARIES,
    };
    let buckets = (need * 1024).div_ceil(usable(class) * fill).max(1);
    // A leaf that has no room must grow, whatever the sum of its bytes says.
    let buckets = match reason {
        Reason::Grows(old) if old.class == class => buckets.max(old.buckets as usize + 1),
        _ => buckets,
    };
    let LastStep { buckets: top, full } = sizes.end(class, hash, depth);
    // A last step that is small is better than an early split: unless it was made already, or the
    // leaf is one of a split.
    let fits = need * FULL <= full * NEARLY_FULL;
    let buckets = if buckets > top
        && fits
        && reason != Reason::Splits
        && !matches!(reason, Reason::Grows(old) if old.buckets as usize >= top)
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
    pub(crate) leaf: NewHashLeaf,
    pub(crate) inside_now: SmallVec<[Handle; 4]>,
}

/// Makes a leaf of the items.
pub(crate) fn build(
    gather: &Gather,
    items: &[GatheredEntry],
    plan: Plan,
    depth: u8,
    (shared, sizes): (&Shared, &Sizes),
    (split, hash): (&KeySplit<'_>, u64),
) -> Built {
    // Handles of bodies that have no room in such a leaf; made once, however often the leaf has to
    // be larger.
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
    // The sum of bytes may fit and the leaf be too small: each bucket may be left with less room
    // than the next body needs. A try that fails is dropped; the loop ends, as each has more room.
    let mut buckets = plan.buckets;
    loop {
        let shape = Plan { buckets, ..plan }.shape(depth);
        if let Some(leaf) = fill(gather, items, sizes.empty(shape, hash), &made) {
            // The new leaf has no handle of these any more: they are the caller's to retire.
            let most = most_body(plan.class).min(MOST_INSIDE);
            let fits = |i: &&GatheredEntry| (1..=most).contains(&i.len());
            let inside_now = items.iter().filter(fits).filter_map(|i| i.handle).collect();
            return Built { leaf, inside_now };
        }
        buckets += 1 + buckets / 16;
    }
}

/// Cuts a body into key and value.
pub(crate) type KeySplit<'a> = dyn Fn(&[u8]) -> (&[u8], &[u8]) + 'a;

/// The leaf, which is empty, with the items, if they have room.
fn fill(
    gather: &Gather,
    items: &[GatheredEntry],
    mut new: NewHashLeaf,
    made: &[(usize, Handle)],
) -> Option<NewHashLeaf> {
    let shape = new.shape();
    let (most, small) = (most_body(shape.class).min(MOST_INSIDE), shape.unit() == 0);
    let bytes = new.bytes();
    // `made` is in the order of items, so one pass over both finds the handles.
    let mut made = made.iter().peekable();
    let mut live = 0;
    for (i, item) in items.iter().enumerate() {
        let done = if (1..=most).contains(&item.len()) && small {
            live += item.len() + SLOT_ENTRY;
            plain::put_small(bytes, shape, item.hash, gather.body(item))
        } else if (1..=most).contains(&item.len()) {
            live += object_size(item.len(), shape.class) + SLOT_ENTRY;
            plain::put(bytes, shape, item.hash, gather.body(item), false)
        } else {
            // It was outside before, or has become so in this leaf: one of the two has the handle.
            let handle = match made.next_if(|(j, _)| *j == i) {
                Some((_, handle)) => *handle,
                None => item.handle?,
            };
            live += HANDLE + SLOT_ENTRY;
            plain::put(bytes, shape, item.hash, &handle.bits().to_le_bytes(), true)
        };
        if !done {
            return None;
        }
    }
    new.filled(items.len(), live);
    Some(new)
}
