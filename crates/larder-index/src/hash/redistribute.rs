//! How leaves of small rows, which nearly all are, are replaced: each row goes straight from the
//! old leaf to its place in the new one.
//!
//! What the new leaf should be follows from what the old one's head says of its rows. What can't be
//! done so (rows outside, long rows, told keys, hashes that are much alike, a new leaf that turns
//! out too small) is not done: then all is gathered first (`gather`, `build`).

use super::build::{plan_rows, Plan, Rows, Why};
use super::key_rule::{KeyRule, Keys};
use super::plain;
use super::shape::{Shape, HASH_BITS, LANE};
use crate::hash::leaf::{Locked, NewLeaf};
use crate::hash::trie::split::Part;
use crate::hash::HashOrder;
use crossbeam_epoch::Guard;

/// In the high byte of a lane: the object is outside.
const OUTSIDE: u8 = (super::shape::OUTSIDE >> 8) as u8;

/// Calls `each` with all rows of a leaf of small rows, and their hashes, until it answers None.
/// None if one is of another kind, too.
#[inline(always)]
fn pour<R: KeyRule>(
    keys: &Keys<R>,
    leaf: &Locked<'_>,
    mut each: impl FnMut(u64, &[u8]) -> Option<()>,
) -> Option<()> {
    let size = leaf.leaf().shape().bucket();
    for bucket in leaf.bytes().chunks_exact(size) {
        let (mut end, lanes) = (size, LANE * usize::from(bucket[0]));
        for lane in bucket.get(LANE..LANE + lanes)?.chunks_exact(LANE) {
            if lane[1] & OUTSIDE != 0 {
                return None;
            }
            let from = usize::from(lane[0]);
            let body = bucket.get(from..end)?;
            end = from;
            each(keys.hash(&body[keys.key_in(body)]), body)?;
        }
    }
    Some(())
}

impl<R: KeyRule> HashOrder<R> {
    /// What a leaf is told to have.
    fn rows(leaf: &Locked<'_>) -> Rows {
        Rows {
            count: leaf.leaf().count(),
            bytes: leaf.leaf().live(),
        }
    }

    fn plan_rows(&self, rows: Rows, shape: Shape, hash: u64, why: Why, depth: u8) -> Option<Plan> {
        if self.keys.told {
            return None;
        }
        plan_rows(rows, shape.class, (hash, depth), &self.sizes, why)
    }

    /// A leaf of all rows of some leaves, and one more row if there is one: `rows` in all.
    fn poured(
        &self,
        (plan, rows): (Plan, Rows),
        (hash, depth): (u64, u8),
        leaves: &[&Locked<'_>],
        more: Option<&[u8]>,
    ) -> Option<NewLeaf> {
        let shape = plan.shape(depth);
        let mut new = self.sizes.empty(shape, hash);
        let bytes = new.bytes();
        let mut take = |hash, body: &[u8]| plain::put_small(bytes, shape, hash, body).then_some(());
        for leaf in leaves {
            pour(&self.keys, leaf, &mut take)?;
        }
        if let Some(body) = more {
            take(hash, body)?;
        }
        new.filled(rows.count, rows.bytes);
        Some(new)
    }

    /// As `make_room`, for a body of a row under the hash. The leaf comes back if it can't be done
    /// so.
    pub(crate) fn make_room_by_pouring<'g>(
        &self,
        guard: &Guard,
        (hash, body): (u64, &[u8]),
        leaf: Locked<'g>,
    ) -> Result<(), Locked<'g>> {
        let (shape, mut rows) = (leaf.leaf().shape(), Self::rows(&leaf));
        rows.count += 1;
        rows.bytes += body.len() + LANE;
        let plan = self.plan_rows(rows, shape, hash, Why::Grows(shape), shape.depth);
        let Some(plan) = plan else {
            return Err(leaf);
        };
        if plan.splits {
            let Some(parts) = self.poured_in_two(rows, (hash, body), &leaf) else {
                return Err(leaf);
            };
            self.trie.split(&self.shared, leaf, parts, guard);
            return Ok(());
        }
        let Some(new) = self.poured((plan, rows), (hash, shape.depth), &[&leaf], Some(body)) else {
            return Err(leaf);
        };
        self.trie.replace(&self.shared, leaf, hash, new, guard);
        Ok(())
    }

    /// Two leaves of the rows of one, and one more row.
    fn poured_in_two(
        &self,
        rows: Rows,
        (hash, body): (u64, &[u8]),
        leaf: &Locked<'_>,
    ) -> Option<Vec<Part>> {
        let shape = leaf.leaf().shape();
        if u32::from(shape.depth) >= HASH_BITS {
            return None;
        }
        let (depth, bit) = (shape.depth + 1, 63 - u32::from(shape.depth));
        let half = Rows {
            count: rows.count / 2,
            bytes: rows.bytes / 2,
        };
        let first = shape.first_hash(hash);
        let part = |hash: u64| {
            let plan = self.plan_rows(half, shape, hash, Why::Splits, depth)?;
            let leaf = self.sizes.empty(plan.shape(depth), hash);
            Some(Part { hash, leaf })
        };
        let (mut left, mut right) = (part(first)?, part(first | 1 << bit)?);
        let shapes = [left.leaf.shape(), right.leaf.shape()];
        let mut to = [left.leaf.bytes(), right.leaf.bytes()];
        let mut r = Rows::default();
        let mut take = |hash: u64, body: &[u8]| {
            let which = (hash >> bit & 1) as usize;
            r.count += which;
            r.bytes += which * (body.len() + LANE);
            plain::put_small(to[which], shapes[which], hash, body).then_some(())
        };
        pour(&self.keys, leaf, &mut take)?;
        take(hash, body)?;
        let l = Rows {
            count: rows.count - r.count,
            bytes: rows.bytes - r.bytes,
        };
        if l.count == 0 || r.count == 0 {
            return None;
        }
        left.leaf.filled(l.count, l.bytes);
        right.leaf.filled(r.count, r.bytes);
        Some(vec![left, right])
    }

    /// As `shrink`. The leaf comes back if it can't be done so.
    pub(crate) fn shrink_by_pouring<'g>(
        &self,
        guard: &Guard,
        hash: u64,
        leaf: Locked<'g>,
    ) -> Result<(), Locked<'g>> {
        let (shape, rows) = (leaf.leaf().shape(), Self::rows(&leaf));
        let plan = self.plan_rows(rows, shape, hash, Why::Shrinks, shape.depth);
        let Some(plan) = plan else {
            return Err(leaf);
        };
        if plan.is_as(shape) {
            return Ok(());
        }
        let Some(new) = self.poured((plan, rows), (hash, shape.depth), &[&leaf], None) else {
            return Err(leaf);
        };
        self.trie.replace(&self.shared, leaf, hash, new, guard);
        Ok(())
    }

    /// One leaf of the rows of two buddies; None if it can't be done so.
    pub(crate) fn united_by_pouring(
        &self,
        hash: u64,
        [leaf, buddy]: [&Locked<'_>; 2],
    ) -> Option<NewLeaf> {
        let (shape, depth) = (leaf.leaf().shape(), leaf.leaf().shape().depth - 1);
        if buddy.leaf().class() != shape.class {
            return None;
        }
        let (ours, theirs) = (Self::rows(leaf), Self::rows(buddy));
        let rows = Rows {
            count: ours.count + theirs.count,
            bytes: ours.bytes + theirs.bytes,
        };
        let plan = self.plan_rows(rows, shape, hash, Why::Shrinks, depth)?;
        self.poured((plan, rows), (hash, depth), &[leaf, buddy], None)
    }
}
