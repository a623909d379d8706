//! Sizes of leaves.
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
//! The size of buckets follows from the objects: a bucket should hold about [`OBJECTS_PER_BUCKET`]
//! of them, and most bytes of larger objects should be inside.

use super::shape::*;
use crate::config::{size_class, LeafConfig};
use crate::hash::leaf::{LiveBounds, NewHashLeaf};

/// The fill factor of a new leaf, in 1024ths: the least value.
const FILL: usize = 680;
/// The least fill factor of a new leaf with larger buckets.
const FILL_LARGE: usize = 750;
/// The fill factor of a new leaf of a small table.
const FILL_SMALL: usize = 520;
/// A leaf of at most this depth is in a small table: one of about eight leaves at most. Its leaves
/// grow twofold, and shrink to a quarter, so that few entries are moved: about one for each that is
/// inserted, and one for three that are removed.
const SMALL_DEPTH: u8 = 3;
/// How much the fill factor varies between leaves.
const FILL_VARIES: usize = 60;
/// The fill factor at which a leaf grows, in 1024ths.
const FULL: usize = 950;
/// The greatest fill factor of a new leaf of the largest size.
const NEARLY_FULL: usize = 880;
/// The fill factor of a new leaf that replaces a sparse one.
const SHRUNK: usize = 840;
/// A leaf shrinks if the smaller size would have this fill factor.
const SPARSE: usize = 820;
/// A leaf shrinks by a power of two divided by this: by two size classes of leaves.
const STEPS_DOWN: usize = 4;
/// A leaf of fewer buckets than this is full when no bucket has room.
const FEW_BUCKETS: u32 = 3;
/// The number of objects that a bucket should hold.
const OBJECTS_PER_BUCKET: usize = 5;
/// The number of objects that a larger bucket should hold. It has more cache lines than are
/// prefetched at once in any case.
const OBJECTS_PER_LARGE_BUCKET: usize = 7;
/// The least number of buckets at which a leaf splits.
const LEAST_SPLIT_BUCKETS: usize = 14;
/// If the hashes of a leaf share many bits, it may get this many times as large as others before it
/// splits.
const MAX_GROWTH_FACTOR: usize = 16;

/// Sizes of leaves, as they follow from a configuration.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    most: usize,
    least_class: u8,
    top_class: u8,
    /// The number of buckets of the first leaf.
    first_buckets: u32,
}

impl Sizes {
    pub(crate) fn new(config: &LeafConfig) -> Sizes {
        // Tests use leaves so small that they need classes of their own.
        let tiny = config.most < 1024;
        let least_class = if tiny { 0 } else { 1 };
        Sizes {
            most: config.most,
            first_buckets: config.first.div_ceil(SMALLEST << least_class).max(1) as u32,
            least_class,
            top_class: if tiny { 1 } else { TOP_CLASS },
        }
    }

    /// The average number of buckets at which leaves of this class split.
    fn average_split_buckets(&self, class: u8) -> usize {
        let least = if self.top_class < TOP_CLASS {
            2
        } else {
            LEAST_SPLIT_BUCKETS
        };
        (self.most / (SMALLEST << class)).max(least)
    }

    /// The shape of the first leaf of an index.
    pub(crate) fn first_shape(&self) -> Shape {
        Shape {
            buckets: self.first_buckets,
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
        self.average_split_buckets(class) * usable(class)
    }

    /// The size at which the leaf of this depth whose range has the hash splits. It is between 0.7
    /// and 1.4 times the average.
    fn split_size(&self, class: u8, hash: u64, depth: u8) -> LastStep {
        // Ten pseudo-random bits that are determined by the leaf's range.
        let bits = prefix(hash, depth) ^ u64::from(depth);
        let chance = (bits ^ bits >> 32).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 54;
        // The target is 1024 times a number of buckets: the average, times 1 to 2, times 0.7.
        let target = (self.average_split_buckets(class) * (1024 + chance as usize) * 181 / 256)
            .max(2 * 1024);
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
        let last = self.split_size(shape.class, hash, shape.depth);
        // A leaf of few buckets is never full by its bytes: it grows when an entry finds no bucket.
        let most = match shape.buckets {
            ..FEW_BUCKETS => usize::MAX,
            buckets if buckets as usize == last.buckets => last.full,
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

    /// The class of buckets for objects: the smallest one that holds enough of them, and has most
    /// of their bytes inside. `count` and `bytes` are of the objects that fit inside some leaf,
    /// together with their slot entries. `above` says how many of these bytes aren't inside in a
    /// class.
    pub(crate) fn class(&self, count: usize, bytes: usize, above: impl Fn(u8) -> usize) -> u8 {
        let holds = |class: u8| {
            let a_bucket = if class > 1 {
                OBJECTS_PER_LARGE_BUCKET
            } else {
                OBJECTS_PER_BUCKET
            };
            bytes * a_bucket <= count * usable(class)
        };
        let fits = |class: &u8| holds(*class) && above(*class) * 8 <= bytes;
        let class = (self.least_class..self.top_class).find(fits);
        // A leaf without objects inside has the least class. One whose objects are all too long
        // has the greatest.
        class.unwrap_or(if count == 0 {
            self.least_class
        } else {
            self.top_class
        })
    }

    /// Plans a leaf of this class and range for `need` bytes of objects and slot entries, which
    /// will soon be about `soon` bytes, if that is more.
    pub(crate) fn plan(
        &self,
        need: usize,
        soon: usize,
        class: u8,
        range: LeafRange,
        reason: Reason,
    ) -> Plan {
        // What the entries need that are there now.
        let plan = self.plan_for(need, class, range, reason);
        // Either no more are expected, or entries were removed lately.
        if soon <= need || reason == Reason::Shrinks {
            return plan;
        }
        // What they will need when the expected ones are there, too.
        let later = self.plan_for(soon, class, range, Reason::Expects);
        let splits = later.splits && reason != Reason::Splits;
        match later.splits {
            // One leaf won't do then. So this one splits now, while it has few entries; or it is
            // itself a part of a split, and will split when it is full.
            true => Plan { splits, ..plan },
            // One leaf will do. Make it so large at once.
            false => Plan {
                buckets: plan.buckets.max(later.buckets),
                ..plan
            },
        }
    }

    fn plan_for(&self, need: usize, class: u8, range: LeafRange, reason: Reason) -> Plan {
        let LeafRange { hash, depth } = range;
        // Choose the number of buckets by the fill factor.
        let fill = match reason {
            Reason::Shrinks | Reason::Expects => SHRUNK,
            _ if depth <= SMALL_DEPTH => FILL_SMALL,
            _ => filled(class) + (hash >> 16) as usize % FILL_VARIES,
        };
        let buckets = (need * 1024).div_ceil(usable(class) * fill).max(1);
        // A leaf without room must grow, even if the sum of its bytes would fit: the room may be in
        // other buckets.
        let buckets = match reason {
            Reason::Grows(old) if old.class == class => buckets.max(old.buckets as usize + 1),
            _ => buckets,
        };
        let LastStep { buckets: top, full } = self.split_size(class, hash, depth);
        // If the leaf would become larger than the size at which it splits, but its entries fit in
        // that size, make that the last step, even if it is a small one. Don't do so if the old
        // leaf already has this size, or if the new one comes from a split.
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
        // Round up to a size class of leaves, and use all of it for buckets.
        let buckets = if buckets < top {
            buckets_of(size_class(memory(buckets, class)), class).min(top)
        } else {
            buckets
        };
        Plan {
            class,
            buckets,
            splits: buckets > top,
            huge: buckets > top * MAX_GROWTH_FACTOR,
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
    /// The number of buckets. The leaf has a size class of leaves.
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
/// A leaf shrinks by two size classes at once. So between two steps a quarter of its objects are
/// removed, and each removal pays for moving few other objects. In a small table three quarters of
/// them are.
fn sparse_below(shape: Shape) -> usize {
    // A leaf of one bucket can't lose buckets. It may get a smaller class.
    if shape.buckets == 1 {
        return if shape.class > 1 {
            capacity(shape).div_ceil(8)
        } else {
            0
        };
    }
    // The size two classes below, or a quarter. A leaf that would fill it by `SPARSE` gets it.
    let bytes = memory(shape.buckets as usize, shape.class);
    let smaller = match shape.depth {
        ..=SMALL_DEPTH => bytes / 4,
        _ => bytes - bytes.next_power_of_two() / STEPS_DOWN,
    };
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

    /// Plans a leaf that is larger by one part of this number.
    pub(crate) fn enlarge(&mut self, parts: usize) {
        self.buckets += 1 + self.buckets / parts;
    }

    /// Whether a leaf of this shape already has the planned size.
    pub(crate) fn is_as(&self, shape: Shape) -> bool {
        (self.class, self.buckets) == (shape.class, shape.buckets as usize)
    }
}

/// The memory of a leaf.
fn memory(buckets: usize, class: u8) -> usize {
    HEAD + buckets * (SMALLEST << class)
}

/// The number of buckets of a leaf with this memory. 0 if that is less than a head.
fn buckets_of(memory: usize, class: u8) -> usize {
    memory.saturating_sub(HEAD) >> (SMALLEST << class).trailing_zeros()
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
    /// It will soon have more entries.
    Expects,
}

/// The fill factor of a new leaf of this class. A leaf has many small objects, and each step moves
/// all of them, so steps of small objects are longer.
fn filled(class: u8) -> usize {
    if class > 1 {
        FILL_LARGE
    } else {
        FILL
    }
}
