//! Sizes of leaves, and building new leaves.
//!
//! A leaf grows in steps. When it is [`FULL`], it is replaced by a leaf in which the same entries
//! take about [`FILL`] of the capacity. If that would be larger than a leaf may be, it is replaced
//! by two. Until something is removed, a leaf is filled between FILL and FULL.
//!
//! All leaves of a table get entries at the same rate, so they would all take their steps at the
//! same time. To prevent this, the hash bits of a leaf's range determine an addition to its FILL,
//! and the size at which it splits. At any time about equally many leaves are split. So a table
//! grows evenly, and memory that some leaves give back is used by others.
//!
//! The size of buckets follows from the rows: a bucket should hold about [`A_BUCKET`] rows, and
//! most bytes of larger rows should be inside.

use super::gather::{Gather, GatheredEntry};
use super::plain;
use super::shape::*;
use crate::config::{size_class, LeafConfig};
use crate::hash::leaf::{LiveBounds, NewHashLeaf};
use crate::outside::Handle;
use crate::shared::Shared;
use smallvec::SmallVec;

/// The fill factor of a new leaf, in 1024ths: the least value.
const FILL: usize = 680;
/// The least fill factor of a new leaf with larger buckets.
const FILL_LARGE: usize = 750;
/// How much the fill factor varies between leaves.
const FILL_VARIES: usize = 60;
/// The fill factor at which a leaf grows, in 1024ths.
const FULL: usize = 950;
/// The greatest fill factor of a new leaf of the largest size.
const NEARLY_FULL: usize = 880;
/// The fill factor of a new leaf that replaces a sparse one.
const SHRUNK: usize = 840;
/// A leaf shrinks if the size two size classes below would have this fill factor.
const SPARSE: usize = 820;
/// A leaf shrinks by this fraction of a power of two, which is two of the allocator's size classes.
const STEPS_DOWN: usize = 4;
/// A leaf of fewer buckets than this is full when no bucket has room.
const FEW_BUCKETS: u32 = 3;
/// The number of rows that a bucket should hold.
const A_BUCKET: usize = 5;
/// The number of rows that a larger bucket should hold. It has more cache lines than are
/// prefetched at once in any case.
const A_LARGE_BUCKET: usize = 7;
/// The least number of buckets at which a leaf splits.
const LEAST_TOP: usize = 14;
/// If the hashes of a leaf share many bits, it may get this many times as large as others before it
/// splits.
const TIMES: usize = 16;

/// Sizes of leaves, as they follow from a configuration.
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
        // Tests use leaves so small that they need classes of their own.
        let tiny = config.most < 1024;
        let least_class = if tiny { 0 } else { 1 };
        Sizes {
            most: config.most,
            first: config.first.div_ceil(SMALLEST << least_class).max(1) as u32,
            least_class,
            top_class: if tiny { 1 } else { TOP_CLASS },
        }
    }

    /// The average number of buckets at which leaves of this class split.
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

    /// The capacity of the largest leaf of this class.
    fn max_capacity(&self, class: u8) -> usize {
        self.top(class) * usable(class)
    }

    /// The size at which the leaf of this depth whose range has the hash splits. It is between 0.7
    /// and 1.4 times the average.
    fn end(&self, class: u8, hash: u64, depth: u8) -> LastStep {
        // Ten pseudo-random bits that are determined by the leaf's range.
        let bits = prefix(hash, depth) ^ u64::from(depth);
        let chance = (bits ^ bits >> 32).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 54;
        // The target is 1024 times a number of buckets: the average, times 1 to 2, times 0.7.
        let target = (self.top(class) * (1024 + chance as usize) * 181 / 256).max(2 * 1024);
        let bytes = size_class(memory(target.div_ceil(1024), class));
        LastStep {
            buckets: buckets_of(bytes, class),
            full: target * usable(class) / 1024 * FULL / 1024,
        }
    }

    /// An empty leaf of this shape whose range has the hash.
    pub(crate) fn empty(&self, shape: Shape, hash: u64) -> NewHashLeaf {
        NewHashLeaf::empty(shape, self.bounds(shape, hash))
    }

    /// The bounds of the live bytes of a leaf: below the lower one it shrinks or merges, and above
    /// the upper one it grows or splits.
    fn bounds(&self, shape: Shape, hash: u64) -> LiveBounds {
        let end = self.end(shape.class, hash, shape.depth);
        // A leaf of few buckets is never full by its bytes: it grows when an entry finds no bucket.
        let most = match shape.buckets {
            ..FEW_BUCKETS => usize::MAX,
            buckets if buckets as usize == end.buckets => end.full,
            _ => capacity(shape) * FULL / 1024,
        };
        // A leaf of depth 0 covers everything, so it has no buddy to merge with.
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

    /// Whether two leaves with this number of live bytes together should be merged.
    pub(crate) fn fits_one(&self, class: u8, live: usize) -> bool {
        live * 2 <= self.max_capacity(class)
    }

    /// Whether a leaf with this number of live bytes should try to merge.
    pub(crate) fn mergeable(&self, class: u8, live: usize) -> bool {
        live * 4 <= self.max_capacity(class)
    }
}

/// The last of a leaf's steps before it splits.
#[derive(Clone, Copy)]
struct LastStep {
    /// The number of buckets. The leaf has one of the allocator's size classes.
    buckets: usize,
    /// The live bytes at which the leaf splits, which may be less than it could hold.
    full: usize,
}

/// Whether a leaf should be replaced by a smaller one, or by one with smaller buckets.
pub(crate) fn is_sparse(shape: Shape, live: usize) -> bool {
    live < sparse_below(shape)
}

/// The number of live bytes below which a leaf is sparse.
///
/// A leaf shrinks by two size classes at once. So between two steps a quarter of its rows are
/// removed, and each removal pays for moving few other rows.
fn sparse_below(shape: Shape) -> usize {
    // A leaf of one bucket can't lose buckets. It may get a smaller class.
    if shape.buckets == 1 {
        return if shape.class > 1 {
            capacity(shape).div_ceil(8)
        } else {
            0
        };
    }
    // The size two classes below. A leaf that would fill it by `SPARSE` shrinks to it.
    let bytes = memory(shape.buckets as usize, shape.class);
    let smaller = bytes - bytes.next_power_of_two() / STEPS_DOWN;
    let smaller = buckets_of(smaller, shape.class).clamp(1, shape.buckets as usize - 1);
    (smaller * usable(shape.class) * SPARSE).div_ceil(1024)
}

fn capacity(shape: Shape) -> usize {
    shape.buckets as usize * usable(shape.class)
}

/// The size of a new leaf for some entries.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    class: u8,
    buckets: usize,
    /// It would be larger than a leaf should be.
    pub(crate) splits: bool,
    /// It would be so large that it must split, however many bits its hashes share.
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

    /// Whether a leaf of this shape already has the planned size.
    pub(crate) fn is_as(&self, shape: Shape) -> bool {
        (self.class, self.buckets) == (shape.class, shape.buckets as usize)
    }
}

/// A number of rows inside a leaf, and their bytes together with their slot entries.
#[derive(Clone, Copy, Default)]
pub(crate) struct Rows {
    pub(crate) count: usize,
    pub(crate) bytes: usize,
}

impl Rows {
    /// Whether a bucket of this class holds enough of them.
    fn fill(self, class: u8) -> bool {
        let a_bucket = if class > 1 { A_LARGE_BUCKET } else { A_BUCKET };
        self.bytes * a_bucket <= self.count * usable(class)
    }
}

/// Statistics of some items.
struct Sum<'a> {
    items: &'a [GatheredEntry],
    /// The items that can be inside a leaf.
    rows: Rows,
    /// The length of the longest of these.
    longest: usize,
}

impl<'a> Sum<'a> {
    fn new(items: &'a [GatheredEntry]) -> Self {
        // Sums that decide the class and the size of the leaf.
        let (mut rows, mut longest) = (Rows::default(), 0);
        // Long objects go outside, where they take no bytes of the leaf.
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

    /// The bytes that the items take in a leaf of this class.
    fn need(&self, class: u8) -> usize {
        // If all rows have the same form in this class, the sum is known.
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

    /// The bytes of the rows that are only inside in buckets of a larger class.
    fn above(&self, class: u8) -> usize {
        // No row is that long.
        if self.longest <= most_body(class) {
            return 0;
        }
        let lengths = self.items.iter().map(GatheredEntry::len);
        lengths
            .filter(|&len| fits_inside(len) && len > most_body(class))
            .sum()
    }

    /// The class of buckets for the items: the smallest one that holds enough rows, and has most
    /// bytes of the rows inside.
    fn class(&self, sizes: &Sizes) -> u8 {
        let fits = |class: &u8| self.rows.fill(*class) && self.above(*class) * 8 <= self.rows.bytes;
        let class = (sizes.least_class..sizes.top_class).find(fits);
        // A leaf without rows inside has the least class. One whose rows are all too long has the
        // greatest.
        class.unwrap_or(if self.rows.count == 0 {
            sizes.least_class
        } else {
            sizes.top_class
        })
    }
}

/// The memory of a leaf.
fn memory(buckets: usize, class: u8) -> usize {
    HEAD + buckets * (SMALLEST << class)
}

/// The number of buckets of a leaf with this memory.
fn buckets_of(memory: usize, class: u8) -> usize {
    (memory - HEAD) >> (SMALLEST << class).trailing_zeros()
}

/// Why a leaf is built.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Reason {
    /// A leaf of this shape has no room.
    Grows(Shape),
    /// It is one of two that replace a full leaf.
    Splits,
    /// It replaces a sparse leaf.
    Shrinks,
}

/// Plans a leaf for the items.
pub(crate) fn plan(items: &[GatheredEntry], sizes: &Sizes, reason: Reason, depth: u8) -> Plan {
    let sum = Sum::new(items);
    let class = sum.class(sizes);
    let hash = items.first().map_or(0, |i| i.hash);
    let range = LeafRange { hash, depth };
    plan_bytes(sum.need(class), class, range, sizes, reason)
}

/// Plans a leaf for rows that are all inside a leaf of this class now. `None` if the class has a
/// larger unit than a byte, or if it isn't certain that the new leaf should have this class.
pub(crate) fn plan_rows(
    rows: Rows,
    class: u8,
    range: LeafRange,
    sizes: &Sizes,
    reason: Reason,
) -> Option<Plan> {
    let mut classes = sizes.least_class..sizes.top_class;
    let known = unit(class) == 0 && classes.find(|&c| rows.fill(c)) == Some(class);
    known.then(|| plan_bytes(rows.bytes, class, range, sizes, reason))
}

/// The fill factor of a new leaf of this class. A leaf has many small rows, and each step moves all
/// of them, so steps of small rows are longer.
fn filled(class: u8) -> usize {
    if class > 1 {
        FILL_LARGE
    } else {
        FILL
    }
}

/// Plans a leaf of this class and range for `need` bytes of objects and slot entries.
fn plan_bytes(need: usize, class: u8, range: LeafRange, sizes: &Sizes, reason: Reason) -> Plan {
    let LeafRange { hash, depth } = range;
    // Choose the number of buckets by the fill factor.
    let fill = match reason {
        Reason::Shrinks => SHRUNK,
        _ => filled(class) + (hash >> 16) as usize % FILL_VARIES,
    };
    let buckets = (need * 1024).div_ceil(usable(class) * fill).max(1);
    // A leaf without room must grow, even if the sum of its bytes would fit: the room may be in
    // other buckets.
    let buckets = match reason {
        Reason::Grows(old) if old.class == class => buckets.max(old.buckets as usize + 1),
        _ => buckets,
    };
    let LastStep { buckets: top, full } = sizes.end(class, hash, depth);
    // If the leaf would become larger than the size at which it splits, but its entries fit in that
    // size, make that the last step, even if it is a small one. Don't do so if the old leaf already
    // has this size, or if the new one comes from a split.
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
    // Round up to the allocator's size class, and use all of it for buckets.
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

/// A new leaf, and the handles of the outside objects that were moved inside it.
pub(crate) struct Built {
    pub(crate) leaf: NewHashLeaf,
    pub(crate) inside_now: SmallVec<[Handle; 4]>,
}

/// Builds a leaf of the items.
pub(crate) fn build(
    gather: &Gather,
    items: &[GatheredEntry],
    plan: Plan,
    range: LeafRange,
    shared: &Shared,
    sizes: &Sizes,
    split: &KeySplit<'_>,
) -> Built {
    // Allocate outside objects for the bodies that don't fit in such a leaf. This is done once,
    // even if the leaf has to be enlarged below.
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
    // Fill the leaf. Even if the sum of the bytes fits, each bucket may be left with less room than
    // the next body needs. Then drop the leaf, and try again with more buckets.
    let mut buckets = plan.buckets;
    loop {
        let shape = Plan { buckets, ..plan }.shape(range.depth);
        if let Some(leaf) = fill(gather, items, sizes.empty(shape, range.hash), &made) {
            // Collect the handles of objects that were moved inside. The caller retires them.
            let most = most_body(plan.class).min(MOST_INSIDE);
            let fits = |i: &&GatheredEntry| (1..=most).contains(&i.len());
            let inside_now = items.iter().filter(fits).filter_map(|i| i.handle).collect();
            return Built { leaf, inside_now };
        }
        buckets += 1 + buckets / 16;
    }
}

/// Splits a body into its key and its value.
pub(crate) type KeySplit<'a> = dyn Fn(&[u8]) -> (&[u8], &[u8]) + 'a;

/// Fills an empty leaf with the items. `None` if there isn't enough room.
fn fill(
    gather: &Gather,
    items: &[GatheredEntry],
    mut new: NewHashLeaf,
    made: &[(usize, Handle)],
) -> Option<NewHashLeaf> {
    let shape = new.shape();
    // A row that fits inside some leaf may be too long for the buckets of this one.
    let (most, small) = (most_body(shape.class).min(MOST_INSIDE), shape.unit() == 0);
    let bytes = new.bytes();
    // `made` is in the order of the items, so walk over both in parallel.
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
            // The object is outside: either it has become so for this leaf, or it was before.
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
