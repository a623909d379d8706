//! New leaves for the entries of old ones.
//!
//! ```text
//!  old leaf   bucket | bucket | …      each entry: key → hash → the new leaf, its bucket, its tag
//!               ↓        ↓
//!  new leaf   bucket | bucket | …      mostly appended: entries come in the order of the hashes
//! ```
//!
//! 1. Add up the lengths of the bodies, which decide the class of buckets (`Rebuild::new`). Plan
//!    one or two new leaves.
//! 2. Hash each key, which the old leaf doesn't store, and put the body into its place.
//! 3. If a new leaf has no room, drop it, and fill a larger one.
//!
//! Invariants:
//! * **H11** The old leaves stay locked, and aren't changed. So nothing has happened before a
//!   caller publishes the new ones.
//! * **H12** An entry is outside in a new leaf if and only if its body is too long for the class of
//!   that leaf, whatever it was in the old one. All new leaves of one call have the same class.

use super::key_rule::{KeyProperties, KeyRule};
use super::plain::{self, SlotBody};
use super::shape::*;
use super::sizes::{Plan, Reason, Sizes};
use crate::hash::leaf::{LockedHashLeaf, NewHashLeaf};
use crate::outside::{Handle, Outside};
use crate::shared::Shared;
use smallvec::SmallVec;
use std::convert::Infallible;

/// The entries that are to be moved.
struct Moved<'l, R> {
    leaves: &'l [&'l LockedHashLeaf<'l>],
    /// A bucket of the first leaf's shape with one more entry, or no bytes.
    more: &'l [u8],
    keys: &'l KeyProperties<R>,
}

/// Buckets whose entries are moved.
struct MovedBuckets<'l> {
    bytes: &'l [u8],
    /// The shape of their leaf.
    shape: Shape,
}

/// A leaf that is to be built.
#[derive(Clone, Copy)]
struct PlannedLeaf {
    plan: Plan,
    range: LeafRange,
}

/// The leading bits that all hashes of some entries share.
pub(crate) struct CommonBits {
    /// One of the hashes.
    pub(crate) hash: u64,
    /// The number of the bits.
    pub(crate) bits: u32,
}

/// Where a body is.
#[derive(Clone, Copy)]
enum MovedBody<'l> {
    /// These are its bytes.
    Inside(&'l [u8]),
    /// Its object is outside, and has this handle.
    Outside(Handle, Outside<'l>),
}

impl<'l, R: KeyRule> Moved<'l, R> {
    /// The buckets of the leaves, and `more`.
    #[inline]
    fn sources(&self) -> impl Iterator<Item = MovedBuckets<'l>> {
        let shape = self.leaves[0].leaf().shape();
        let leaves = self.leaves.iter().map(|leaf| MovedBuckets {
            bytes: leaf.bytes(),
            shape: leaf.leaf().shape(),
        });
        leaves.chain([MovedBuckets {
            bytes: self.more,
            shape,
        }])
    }

    /// Calls `each` with all bodies, until it fails.
    #[inline]
    fn each_body<E>(&self, mut each: impl FnMut(MovedBody<'l>) -> Result<(), E>) -> Result<(), E> {
        for MovedBuckets { bytes, shape } in self.sources() {
            for bucket in bytes.chunks_exact(shape.bucket()) {
                for SlotBody { slot, from, end } in plain::slot_entries(bucket, 0, shape) {
                    each(self.body(&bucket[from..end], slot))?;
                }
            }
        }
        Ok(())
    }

    /// The body of an entry with these bytes and this slot entry.
    #[inline]
    fn body(&self, bytes: &'l [u8], slot: u16) -> MovedBody<'l> {
        if slot & OUTSIDE == 0 {
            MovedBody::Inside(bytes)
        } else {
            let handle = Handle::from_bits(plain::handle_bits(bytes));
            MovedBody::Outside(handle, self.leaves[0].object(handle))
        }
    }

    /// Calls `each` with the hash and the body of each entry, until it fails.
    #[inline]
    fn each<E>(&self, mut each: impl FnMut(u64, MovedBody<'l>) -> Result<(), E>) -> Result<(), E> {
        self.each_body(|body| {
            let key = match body {
                MovedBody::Inside(bytes) => &bytes[self.keys.key_in(bytes)],
                MovedBody::Outside(_, object) => object.position(),
            };
            each(self.keys.hash(key), body)
        })
    }

    /// Calls `each` with the length that each body has inside a leaf.
    #[cold]
    #[inline(never)]
    fn each_len(&self, each: &mut dyn FnMut(usize)) {
        let Ok(()) = self.each_body(|body| -> Result<(), Infallible> {
            each(self.len(body));
            Ok(())
        });
    }

    /// The length that a body has inside a leaf.
    #[inline]
    fn len(&self, body: MovedBody<'_>) -> usize {
        match body {
            MovedBody::Inside(bytes) => bytes.len(),
            MovedBody::Outside(_, object) => {
                let (key, value) = (object.position().len(), object.value().len());
                body_size(key, value, self.keys.length_prefixed)
            }
        }
    }

    /// Adds up the lengths, bucket by bucket where all objects are inside.
    fn sum(&self) -> Sum {
        let mut sum = Sum::default();
        for MovedBuckets { bytes, shape } in self.sources() {
            for bucket in bytes.chunks_exact(shape.bucket()) {
                // Where a bucket's objects begin and end says how many bytes they have together. So
                // nothing but the slot entries is read.
                let of_bucket = plain::sum(bucket, shape);
                if of_bucket.flags & OUTSIDE == 0 {
                    let (n, bytes) = (of_bucket.entries, of_bucket.bytes);
                    sum.entries += n;
                    sum.count += n;
                    sum.bytes += bytes + SLOT_ENTRY * n - unused(n, shape.class).min(bytes);
                    sum.longest = sum.longest.max(most_body(shape.class));
                } else {
                    // The bucket has handles: each length is looked up.
                    for SlotBody { slot, from, end } in plain::slot_entries(bucket, 0, shape) {
                        sum.add(self.len(self.body(&bucket[from..end], slot)));
                    }
                }
            }
        }
        sum
    }

    /// The bytes of the bodies that are only inside in buckets of a larger class.
    fn above(&self, sum: &Sum, class: u8) -> usize {
        let mut above = 0;
        // Usually no body is that long.
        if sum.longest > most_body(class) {
            self.each_len(&mut |len| {
                if fits_inside(len) && len > most_body(class) {
                    above += len;
                }
            });
        }
        above
    }

    /// The bytes that the entries take in a leaf of this class, about.
    fn need(&self, sum: &Sum, class: u8) -> usize {
        // No body is too long for the class: those that can be inside a leaf are, and the sums
        // suffice.
        let outside = HANDLE + SLOT_ENTRY;
        if sum.longest <= most_body(class) {
            let unused = unused(sum.count, class);
            return sum.bytes + unused + (sum.entries - sum.count) * outside;
        }
        // Otherwise look at each length.
        let mut need = 0;
        self.each_len(&mut |len| {
            need += match lives_inside(len, class) {
                true => object_size(len, class) + SLOT_ENTRY,
                false => outside,
            };
        });
        need
    }
}

/// The bytes of objects beside their bodies, in buckets of this class, about. In larger units, each
/// has a byte that says how many bytes at its end are unused: half of the others of a unit on
/// average.
fn unused(objects: usize, class: u8) -> usize {
    match unit_shift(class) {
        0 => 0,
        unit_shift => objects * ((1 << unit_shift) + 1) / 2,
    }
}

/// Sums over entries.
#[derive(Default)]
struct Sum {
    entries: usize,
    /// The number of entries that can be inside a leaf, and the bytes of these, together with their
    /// slot entries.
    count: usize,
    bytes: usize,
    /// None of these is longer.
    longest: usize,
}

impl Sum {
    fn add(&mut self, len: usize) {
        self.entries += 1;
        // Long objects go outside, where they take no bytes of the leaf.
        if fits_inside(len) {
            self.count += 1;
            self.bytes += len + SLOT_ENTRY;
            self.longest = self.longest.max(len);
        }
    }
}

/// Building new leaves.
pub(crate) struct Rebuild<'l, R> {
    moved: Moved<'l, R>,
    shared: &'l Shared,
    sizes: &'l Sizes,
    /// The class of the new leaves, and the bytes that the entries take in them.
    class: u8,
    need: usize,
    /// The number of entries that are moved.
    entries: usize,
    /// The objects that were made because they are outside in the new leaves, in the order of their
    /// entries. If a leaf is filled again, it gets the same objects.
    made: Vec<Handle>,
}

/// New leaves.
pub(crate) struct Built<const N: usize> {
    pub(crate) leaves: [NewHashLeaf; N],
    /// The handles of outside objects that were moved inside. They are in no new leaf.
    pub(crate) inside_now: SmallVec<[Handle; 4]>,
}

/// The buckets of a new leaf while it is filled, as plain bytes: nobody else can reach them yet.
struct NewBuckets<'b> {
    bytes: &'b mut [u8],
    shape: Shape,
    /// The number of entries so far, and the bytes of their bodies and slot entries.
    count: usize,
    live: usize,
}

/// Why there are no new leaves.
enum Failure {
    /// The leaf of this number has no room.
    Full(usize),
    /// A leaf has no entries.
    OneSided,
}

impl<'l, R: KeyRule> Rebuild<'l, R> {
    /// (1) Begins with the entries of these leaves. `more` has no bytes, or is a bucket of the
    /// first leaf's shape with one more entry.
    pub(crate) fn new(
        leaves: &'l [&'l LockedHashLeaf<'l>],
        more: &'l [u8],
        keys: &'l KeyProperties<R>,
        shared: &'l Shared,
        sizes: &'l Sizes,
    ) -> Self {
        let moved = Moved { leaves, more, keys };
        // Objects that could be inside some leaf decide how large buckets are.
        let sum = moved.sum();
        let class = sizes.class(sum.count, sum.bytes, |class| moved.above(&sum, class));
        // The class decides which objects are inside (H12). So only now is it known how many bytes
        // the entries need.
        let need = moved.need(&sum, class);
        Rebuild {
            moved,
            shared,
            sizes,
            class,
            need,
            entries: sum.entries,
            made: Vec::new(),
        }
    }

    /// The bytes that the entries of a range will soon take, of which `need` are there.
    fn soon(&self, need: usize, range: LeafRange) -> usize {
        let soon = match self.shared.expected.mostly_new() {
            // There are too few entries to tell from them how many the range will have. But hashes
            // are spread evenly, so its share of the entries is that of its range of all hashes.
            Some(all) => {
                let share = all.checked_shr(range.depth.into()).unwrap_or(0);
                self.need.saturating_mul(share) / self.entries.max(1)
            }
            None => self.shared.expected.grown(need),
        };
        // The caller's number may be any. A leaf is far smaller than this.
        soon.min(1 << 32)
    }

    /// Plans one leaf of this range.
    pub(crate) fn plan(&self, range: LeafRange, reason: Reason) -> Plan {
        let soon = self.soon(self.need, range);
        self.sizes.plan(self.need, soon, self.class, range, reason)
    }

    /// The leading bits that all hashes share.
    #[cold]
    #[inline(never)]
    pub(crate) fn common_bits(&self) -> CommonBits {
        let (mut first, mut differ) = (None, 0);
        // A bit is set in `differ` if some hash has another one there than the first hash has.
        let Ok(()) = self.moved.each(|hash, _| -> Result<(), Infallible> {
            differ |= hash ^ *first.get_or_insert(hash);
            Ok(())
        });
        CommonBits {
            hash: first.unwrap_or_default(),
            bits: differ.leading_zeros().min(HASH_BITS),
        }
    }

    /// Builds one leaf of this range.
    pub(crate) fn build(&mut self, mut plan: Plan, range: LeafRange) -> Built<1> {
        loop {
            match self.fill([PlannedLeaf { plan, range }], 0) {
                Ok(built) => return built,
                // (3) Even if the sum of the bytes fits, each bucket may be left with less room
                // than the next body needs.
                Err(_) => plan.enlarge(16),
            }
        }
    }

    /// Builds two leaves of these ranges, which differ in the bit after their first `bit` bits.
    /// `None` if all hashes have the same one there.
    pub(crate) fn build_two(&mut self, ranges: [LeafRange; 2], bit: u32) -> Option<Built<2>> {
        // Plan each leaf for half of the entries. How many they are is counted when they are moved.
        let mut plans = ranges.map(|range| {
            let half = self.need / 2;
            let soon = self.soon(half, range);
            let reason = Reason::Splits;
            let plan = self.sizes.plan(half, soon, self.class, range, reason);
            PlannedLeaf { plan, range }
        });
        loop {
            match self.fill(plans, bit) {
                Ok(built) => return Some(built),
                // One of the leaves was full before all entries were moved. If all hashes have the
                // same bit here, it would get all entries, however large it were made.
                Err(Failure::Full(_)) if self.common_bits().bits > bit => return None,
                // (3) Otherwise it gets more than half of the entries. Fill a larger one.
                Err(Failure::Full(leaf)) => plans[leaf].plan.enlarge(4),
                // One leaf had room for all entries, and the other one got none.
                Err(Failure::OneSided) => return None,
            }
        }
    }

    /// (2) Moves all entries to new leaves.
    fn fill<const N: usize>(
        &mut self,
        plans: [PlannedLeaf; N],
        bit: u32,
    ) -> Result<Built<N>, Failure> {
        let (sizes, keys) = (self.sizes, self.moved.keys);
        // Leaves that don't get all of their entries are dropped when this fails.
        let mut leaves = plans
            .map(|PlannedLeaf { plan, range }| sizes.empty(plan.shape(range.depth), range.hash));
        let mut to = leaves.each_mut().map(|leaf| NewBuckets {
            shape: leaf.shape(),
            bytes: leaf.bytes(),
            count: 0,
            live: 0,
        });
        let (mut inside_now, mut used) = (SmallVec::new(), 0);
        let most = most_body(self.class).min(MOST_INSIDE);
        self.moved.each(|hash, body| {
            // All hashes share the first `bit` bits. The next one chooses the leaf.
            let which = match N {
                1 => 0,
                _ => (hash >> (63 - bit) & 1) as usize,
            };
            let NewBuckets {
                bytes,
                shape,
                count,
                live,
            } = &mut to[which];
            let shape = *shape;
            let size = match body {
                // The usual case: the body is copied as it lies, with the key's length if it has
                // one.
                MovedBody::Inside(body) if body.len() <= most => {
                    plain::put(bytes, shape, hash, body)
                }
                // A body that was inside the old leaf is too long for the buckets of this one. Its
                // object goes outside. An attempt that failed may have made it already: attempts
                // meet the entries in the same order, so they take the same handles.
                MovedBody::Inside(body) => {
                    if used == self.made.len() {
                        let key = keys.key_in(body);
                        let (handle, size) = Handle::new(&body[key.clone()], &body[key.end..]);
                        self.shared.counters.add_bytes(size as isize);
                        self.made.push(handle);
                    }
                    used += 1;
                    plain::put_handle(bytes, shape, hash, self.made[used - 1])
                }
                // If an object that was outside fits inside this leaf, its handle is retired once
                // the leaf is published: readers of the old one may still follow it. Otherwise the
                // handle moves.
                MovedBody::Outside(handle, object) => {
                    if lives_inside(self.moved.len(body), shape.class) {
                        inside_now.push(handle);
                        let (key, value) = (object.position(), object.value());
                        plain::put_whole(bytes, shape, hash, key, value, keys.length_prefixed)
                    } else {
                        plain::put_handle(bytes, shape, hash, handle)
                    }
                }
            };
            *count += 1;
            // `None`: no bucket of the leaf has room. The caller begins again with a larger leaf.
            *live += size.ok_or(Failure::Full(which))? + SLOT_ENTRY;
            Ok(())
        })?;
        // Two leaves need entries each. If all hashes have the same bit there, it is no split.
        let sums = to.map(|to| (to.count, to.live));
        if N > 1 && sums.iter().any(|&(count, _)| count == 0) {
            return Err(Failure::OneSided);
        }
        for (leaf, (count, live)) in leaves.iter_mut().zip(sums) {
            leaf.filled(count, live);
        }
        Ok(Built { leaves, inside_now })
    }
}
