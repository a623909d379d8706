//! How leaves of small rows, which nearly all are, are replaced: each row goes straight from the
//! old leaf to its place in the new one.
//!
//! ```text
//!  old leaf   bucket | bucket | …      each row: key → hash → home bucket and tag
//!               ↓        ↓
//!  new leaf   bucket | bucket | …      mostly appended to its home: rows come in the hashes' order
//! ```
//!
//! 1. What the new leaf should be follows from what the old one's head says of its rows.
//! 2. Each row is hashed and appended to its home bucket, or to one behind it.
//! 3. The new leaf takes the old one's place.
//!
//! Invariant: nothing is published before all rows are in. If a row doesn't fit, or is of another
//! kind, the new leaf is dropped and the old one, still locked, is as it was.
//!
//! When not to use it: for rows outside, long rows, keys with their lengths, hashes that are much
//! alike, or a new leaf that turns out too small. Each of these gives the leaf back, and all is
//! gathered first (`gather`, `build`).

use super::build::{plan_rows, Plan, Reason, Rows};
use super::key_rule::{KeyRule, Keys};
use super::plain;
use super::shape::{Shape, HASH_BITS, SLOT_ENTRY};
use crate::hash::leaf::{LockedHashLeaf, NewHashLeaf};
use crate::hash::trie::split::SplitPart;
use crate::hash::HashOrder;
use crossbeam_epoch::Guard;

/// In the high byte of a slot entry: the object is outside.
const OUTSIDE: u8 = (super::shape::OUTSIDE >> 8) as u8;

/// Calls `each` with all rows of a leaf of small rows, and their hashes, until it answers None.
/// None if one is of another kind, too.
#[inline(always)]
fn redistribute<R: KeyRule>(
    keys: &Keys<R>,
    leaf: &LockedHashLeaf<'_>,
    mut each: impl FnMut(u64, &[u8]) -> Option<()>,
) -> Option<()> {
    let size = leaf.leaf().shape().bucket();
    // Buckets in order, and in each the objects from its end downwards.
    for bucket in leaf.bytes().chunks_exact(size) {
        let (mut end, slots) = (size, SLOT_ENTRY * usize::from(bucket[0]));
        for slot in bucket
            .get(SLOT_ENTRY..SLOT_ENTRY + slots)?
            .chunks_exact(SLOT_ENTRY)
        {
            // A handle would have to be followed for its key, and its object may fit inside now.
            if slot[1] & OUTSIDE != 0 {
                return None;
            }
            // The unit is a byte, so the place is the slot entry's low byte, and no byte is left
            // over.
            let from = usize::from(slot[0]);
            let body = bucket.get(from..end)?;
            end = from;
            // A leaf has no hash of it but the tag: it is made anew.
            each(keys.hash(&body[keys.key_in(body)]), body)?;
        }
    }
    Some(())
}

impl<R: KeyRule> HashOrder<R> {
    /// What a leaf says that it has.
    fn rows(leaf: &LockedHashLeaf<'_>) -> Rows {
        Rows {
            count: leaf.leaf().count(),
            bytes: leaf.leaf().live(),
        }
    }

    fn plan_rows(
        &self,
        rows: Rows,
        shape: Shape,
        hash: u64,
        reason: Reason,
        depth: u8,
    ) -> Option<Plan> {
        // Without lengths, a body is a key that ends itself, and the value.
        if self.keys.length_prefixed {
            return None;
        }
        plan_rows(rows, shape.class, (hash, depth), &self.sizes, reason)
    }

    /// A leaf of all rows of some leaves, and one more row if there is one: `rows` in all.
    fn redistributed(
        &self,
        (plan, rows): (Plan, Rows),
        (hash, depth): (u64, u8),
        leaves: &[&LockedHashLeaf<'_>],
        more: Option<&[u8]>,
    ) -> Option<NewHashLeaf> {
        let shape = plan.shape(depth);
        let mut new = self.sizes.empty(shape, hash);
        let bytes = new.bytes();
        // (2) A home that is full passes the row on; None when the whole leaf is full.
        let mut take = |hash, body: &[u8]| plain::put_small(bytes, shape, hash, body).then_some(());
        for leaf in leaves {
            redistribute(&self.keys, leaf, &mut take)?;
        }
        if let Some(body) = more {
            take(hash, body)?;
        }
        // All rows were put, so the sums of the old heads are the new head's.
        new.filled(rows.count, rows.bytes);
        Some(new)
    }

    /// As `make_room`, for a body of a row under the hash. The leaf comes back if it can't be done
    /// so.
    pub(crate) fn make_room_by_redistributing<'g>(
        &self,
        guard: &Guard,
        (hash, body): (u64, &[u8]),
        leaf: LockedHashLeaf<'g>,
    ) -> Result<(), LockedHashLeaf<'g>> {
        // (1) What the leaf will have, with the row that has no room.
        let (shape, mut rows) = (leaf.leaf().shape(), Self::rows(&leaf));
        rows.count += 1;
        rows.bytes += body.len() + SLOT_ENTRY;
        let plan = self.plan_rows(rows, shape, hash, Reason::Grows(shape), shape.depth);
        let Some(plan) = plan else {
            return Err(leaf);
        };
        // It would be larger than a leaf may be: two leaves of one bit more.
        if plan.splits {
            let Some(parts) = self.redistributed_in_two(rows, (hash, body), &leaf) else {
                return Err(leaf);
            };
            self.trie.split(&self.shared, leaf, parts, guard);
            return Ok(());
        }
        // (2) Otherwise one of more buckets.
        let Some(new) = self.redistributed((plan, rows), (hash, shape.depth), &[&leaf], Some(body))
        else {
            return Err(leaf);
        };
        // (3)
        self.trie.replace(&self.shared, leaf, hash, new, guard);
        Ok(())
    }

    /// Two leaves of the rows of one, and one more row.
    fn redistributed_in_two(
        &self,
        rows: Rows,
        (hash, body): (u64, &[u8]),
        leaf: &LockedHashLeaf<'_>,
    ) -> Option<Vec<SplitPart>> {
        let shape = leaf.leaf().shape();
        // No bit is left that counts.
        if u32::from(shape.depth) >= HASH_BITS {
            return None;
        }
        let (depth, bit) = (shape.depth + 1, 63 - u32::from(shape.depth));
        let half = Rows {
            count: rows.count / 2,
            bytes: rows.bytes / 2,
        };
        // What each half is to be is planned for half of the rows; what it has is counted below.
        let first = shape.first_hash(hash);
        let part = |hash: u64| {
            let plan = self.plan_rows(half, shape, hash, Reason::Splits, depth)?;
            let leaf = self.sizes.empty(plan.shape(depth), hash);
            Some(SplitPart { hash, leaf })
        };
        let (mut left, mut right) = (part(first)?, part(first | 1 << bit)?);
        let shapes = [left.leaf.shape(), right.leaf.shape()];
        let mut to = [left.leaf.bytes(), right.leaf.bytes()];
        // Each row goes by the first bit behind the old leaf's depth. The right one's are counted,
        // the left one has the others.
        let mut r = Rows::default();
        let mut take = |hash: u64, body: &[u8]| {
            let which = (hash >> bit & 1) as usize;
            r.count += which;
            r.bytes += which * (body.len() + SLOT_ENTRY);
            plain::put_small(to[which], shapes[which], hash, body).then_some(())
        };
        redistribute(&self.keys, leaf, &mut take)?;
        take(hash, body)?;
        let l = Rows {
            count: rows.count - r.count,
            bytes: rows.bytes - r.bytes,
        };
        // If one half is empty, hashes share more bits than the depth says: that is for the general
        // split, which cuts at the bit where they differ.
        if l.count == 0 || r.count == 0 {
            return None;
        }
        left.leaf.filled(l.count, l.bytes);
        right.leaf.filled(r.count, r.bytes);
        Some(vec![left, right])
    }

    /// As `shrink`. The leaf comes back if it can't be done so.
    pub(crate) fn shrink_by_redistributing<'g>(
        &self,
        guard: &Guard,
        hash: u64,
        leaf: LockedHashLeaf<'g>,
    ) -> Result<(), LockedHashLeaf<'g>> {
        let (shape, rows) = (leaf.leaf().shape(), Self::rows(&leaf));
        let plan = self.plan_rows(rows, shape, hash, Reason::Shrinks, shape.depth);
        let Some(plan) = plan else {
            return Err(leaf);
        };
        // The same size again would save nothing: the leaf is unlocked as it is.
        if plan.is_as(shape) {
            return Ok(());
        }
        let Some(new) = self.redistributed((plan, rows), (hash, shape.depth), &[&leaf], None)
        else {
            return Err(leaf);
        };
        self.trie.replace(&self.shared, leaf, hash, new, guard);
        Ok(())
    }

    /// One leaf of the rows of two buddies; None if it can't be done so.
    pub(crate) fn merged_by_redistributing(
        &self,
        hash: u64,
        [leaf, buddy]: [&LockedHashLeaf<'_>; 2],
    ) -> Option<NewHashLeaf> {
        let (shape, depth) = (leaf.leaf().shape(), leaf.leaf().shape().depth - 1);
        // Bodies of another class may have a byte in front of them, or be outside in one and not in
        // the other.
        if buddy.leaf().class() != shape.class {
            return None;
        }
        let (ours, theirs) = (Self::rows(leaf), Self::rows(buddy));
        let rows = Rows {
            count: ours.count + theirs.count,
            bytes: ours.bytes + theirs.bytes,
        };
        let plan = self.plan_rows(rows, shape, hash, Reason::Shrinks, depth)?;
        self.redistributed((plan, rows), (hash, depth), &[leaf, buddy], None)
    }
}
