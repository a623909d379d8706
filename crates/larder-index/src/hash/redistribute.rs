//! Replacing leaves of small rows, as nearly all leaves are: each row is copied directly from the
//! old leaf to its place in the new one.
//!
//! ```text
//!  old leaf   bucket | bucket | …      each row: key → hash → home bucket and tag
//!               ↓        ↓
//!  new leaf   bucket | bucket | …      mostly appended to its home: rows come in the hashes' order
//! ```
//!
//! 1. Plan the size of the new leaf by the count and the live bytes in the old leaf's head.
//! 2. Hash each row, and append it to its home bucket, or to one behind it.
//! 3. Replace the old leaf by the new one.
//!
//! Invariant: the new leaf is published after all rows are in it. If a row doesn't fit, or isn't a
//! small row, the new leaf is dropped, and the old one is still locked and unchanged.
//!
//! When not to use it: for outside objects, long rows, keys whose length is stored, hashes that
//! share many bits, or if the new leaf turns out to be too small. In each of these cases the old
//! leaf is returned to the caller, who gathers its entries first (`gather`, `build`).

use super::build::{plan_rows, Plan, Reason, Rows};
use super::key_rule::{KeyRule, Keys};
use super::plain;
use super::shape::{LeafRange, Shape, HASH_BITS, SLOT_ENTRY};
use crate::hash::leaf::{LockedHashLeaf, NewHashLeaf};
use crate::hash::trie::split::SplitPart;
use crate::hash::HashOrder;
use crossbeam_epoch::Guard;

/// The mark of an outside object, in the high byte of a slot entry.
const OUTSIDE: u8 = (super::shape::OUTSIDE >> 8) as u8;

/// Calls `each` with the hash and the body of each row of a leaf of small rows. `None` if `each`
/// returns `None`, or if an object is outside.
#[inline]
fn redistribute<R: KeyRule>(
    keys: &Keys<R>,
    leaf: &LockedHashLeaf<'_>,
    mut each: impl FnMut(u64, &[u8]) -> Option<()>,
) -> Option<()> {
    let size = leaf.leaf().shape().bucket();
    // Walk over the buckets in order, and over the objects of each from its end downwards.
    for bucket in leaf.bytes().chunks_exact(size) {
        let (mut end, slots) = (size, SLOT_ENTRY * usize::from(bucket[0]));
        for slot in bucket
            .get(SLOT_ENTRY..SLOT_ENTRY + slots)?
            .chunks_exact(SLOT_ENTRY)
        {
            // The key of an outside object isn't in the leaf, and the object may fit inside now.
            if slot[1] & OUTSIDE != 0 {
                return None;
            }
            // The unit is a byte, so the low byte of the slot entry is the object's place, and no
            // byte of the object is unused.
            let from = usize::from(slot[0]);
            let body = bucket.get(from..end)?;
            end = from;
            // The leaf only has the tag, so compute the hash again.
            each(keys.hash(&body[keys.key_in(body)]), body)?;
        }
    }
    Some(())
}

impl<R: KeyRule> HashOrder<R> {
    /// The count and the live bytes in the head of a leaf.
    fn rows(leaf: &LockedHashLeaf<'_>) -> Rows {
        Rows {
            count: leaf.leaf().count(),
            bytes: leaf.leaf().live_bytes(),
        }
    }

    /// Step 1: plans a leaf of this range for rows of a leaf of this shape. `None` if they can't be
    /// redistributed.
    fn plan_rows(
        &self,
        rows: Rows,
        shape: Shape,
        range: LeafRange,
        reason: Reason,
    ) -> Option<Plan> {
        // Small rows are a self-delimiting key and the value, without a length.
        if self.keys.length_prefixed {
            return None;
        }
        plan_rows(rows, shape.class, range, &self.sizes, reason)
    }

    /// Step 2: a new leaf with all rows of some leaves, and with the row `more`, if it is given.
    /// `rows` counts all of them.
    fn redistributed(
        &self,
        plan: Plan,
        rows: Rows,
        range: LeafRange,
        leaves: &[&LockedHashLeaf<'_>],
        more: Option<&[u8]>,
    ) -> Option<NewHashLeaf> {
        let LeafRange { hash, depth } = range;
        let shape = plan.shape(depth);
        let mut new = self.sizes.empty(shape, hash);
        let bytes = new.bytes();
        // If a home is full, the row overflows to the next bucket. If all buckets are full, give
        // up.
        let mut put = |hash, body: &[u8]| plain::put_small(bytes, shape, hash, body).then_some(());
        for leaf in leaves {
            redistribute(&self.keys, leaf, &mut put)?;
        }
        if let Some(body) = more {
            put(hash, body)?;
        }
        // All rows are in the new leaf, so its sums are known.
        new.filled(rows.count, rows.bytes);
        Some(new)
    }

    /// `make_room` for a small row, given its hash and its body.
    ///
    /// # Errors
    /// The leaf, still locked, if its rows can't be redistributed.
    pub(crate) fn make_room_by_redistributing<'g>(
        &self,
        guard: &Guard,
        hash: u64,
        body: &[u8],
        leaf: LockedHashLeaf<'g>,
    ) -> Result<(), LockedHashLeaf<'g>> {
        // (1) Plan a leaf for the rows of the old one, and the new row.
        let (shape, mut rows) = (leaf.leaf().shape(), Self::rows(&leaf));
        rows.count += 1;
        rows.bytes += body.len() + SLOT_ENTRY;
        let depth = shape.depth;
        let range = LeafRange { hash, depth };
        let plan = self.plan_rows(rows, shape, range, Reason::Grows(shape));
        let Some(plan) = plan else {
            return Err(leaf);
        };
        // (2), (3) It would be larger than a leaf may be: split it into two leaves, one bit deeper.
        if plan.splits {
            let Some(parts) = self.redistributed_in_two(rows, hash, body, &leaf) else {
                return Err(leaf);
            };
            self.trie.split(&self.shared, leaf, parts, guard);
            return Ok(());
        }
        // (2) Otherwise build one leaf with more buckets.
        let Some(new) = self.redistributed(plan, rows, range, &[&leaf], Some(body)) else {
            return Err(leaf);
        };
        // (3) Mark the old leaf obsolete, and publish the new one.
        self.trie.replace(&self.shared, leaf, hash, new, guard);
        Ok(())
    }

    /// Step 2 of a split: two new leaves with the rows of a leaf, and one more row. `rows` counts
    /// all of them.
    fn redistributed_in_two(
        &self,
        rows: Rows,
        hash: u64,
        body: &[u8],
        leaf: &LockedHashLeaf<'_>,
    ) -> Option<Vec<SplitPart>> {
        let shape = leaf.leaf().shape();
        // All bits of the hash are used up.
        if u32::from(shape.depth) >= HASH_BITS {
            return None;
        }
        let (depth, bit) = (shape.depth + 1, 63 - u32::from(shape.depth));
        let half = Rows {
            count: rows.count / 2,
            bytes: rows.bytes / 2,
        };
        // Plan each leaf for half of the rows. The actual numbers are counted below.
        let first = shape.first_hash(hash);
        let part = |hash: u64| {
            let plan = self.plan_rows(half, shape, LeafRange { hash, depth }, Reason::Splits)?;
            let leaf = self.sizes.empty(plan.shape(depth), hash);
            Some(SplitPart { hash, leaf })
        };
        let (mut left, mut right) = (part(first)?, part(first | 1 << bit)?);
        let shapes = [left.leaf.shape(), right.leaf.shape()];
        let mut to = [left.leaf.bytes(), right.leaf.bytes()];
        // The first bit behind the old leaf's depth decides which leaf a row goes to. Count the
        // rows of the right leaf; the left one has the others.
        let mut r = Rows::default();
        let mut put = |hash: u64, body: &[u8]| {
            let which = (hash >> bit & 1) as usize;
            r.count += which;
            r.bytes += which * (body.len() + SLOT_ENTRY);
            plain::put_small(to[which], shapes[which], hash, body).then_some(())
        };
        redistribute(&self.keys, leaf, &mut put)?;
        put(hash, body)?;
        let l = Rows {
            count: rows.count - r.count,
            bytes: rows.bytes - r.bytes,
        };
        // If one leaf is empty, all hashes share this bit, too. The general split cuts at the first
        // bit in which they differ.
        if l.count == 0 || r.count == 0 {
            return None;
        }
        left.leaf.filled(l.count, l.bytes);
        right.leaf.filled(r.count, r.bytes);
        Some(vec![left, right])
    }

    /// `shrink` for a leaf of small rows.
    ///
    /// # Errors
    /// The leaf, still locked, if its rows can't be redistributed.
    pub(crate) fn shrink_by_redistributing<'g>(
        &self,
        guard: &Guard,
        hash: u64,
        leaf: LockedHashLeaf<'g>,
    ) -> Result<(), LockedHashLeaf<'g>> {
        let (shape, rows) = (leaf.leaf().shape(), Self::rows(&leaf));
        let depth = shape.depth;
        let range = LeafRange { hash, depth };
        let plan = self.plan_rows(rows, shape, range, Reason::Shrinks);
        let Some(plan) = plan else {
            return Err(leaf);
        };
        // A leaf of the same shape would save nothing. The old one is unlocked as it is.
        if plan.is_as(shape) {
            return Ok(());
        }
        let Some(new) = self.redistributed(plan, rows, range, &[&leaf], None) else {
            return Err(leaf);
        };
        self.trie.replace(&self.shared, leaf, hash, new, guard);
        Ok(())
    }

    /// A new leaf with the rows of two buddies. `None` if they can't be redistributed.
    pub(crate) fn merged_by_redistributing(
        &self,
        hash: u64,
        [leaf, buddy]: [&LockedHashLeaf<'_>; 2],
    ) -> Option<NewHashLeaf> {
        let (shape, depth) = (leaf.leaf().shape(), leaf.leaf().shape().depth - 1);
        // In buckets of another class, bodies may be stored in another form: with an extra byte, or
        // outside.
        if buddy.leaf().class() != shape.class {
            return None;
        }
        // The heads have the sums of all buckets, so the plan needs no pass over the rows.
        let (ours, theirs) = (Self::rows(leaf), Self::rows(buddy));
        let rows = Rows {
            count: ours.count + theirs.count,
            bytes: ours.bytes + theirs.bytes,
        };
        let range = LeafRange { hash, depth };
        // The merged leaf is planned as one that shrinks: it has room for what both have, and
        // little more.
        let plan = self.plan_rows(rows, shape, range, Reason::Shrinks)?;
        self.redistributed(plan, rows, range, &[leaf, buddy], None)
    }
}
