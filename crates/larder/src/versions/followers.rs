//! The followers of a feed.
//!
//! There may be thousands of them. Each reads each event, and writers wait for the queue's lock
//! meanwhile. So the least position and the greatest limit are found in O(log n): positions and
//! limits are kept in multisets of their own.

use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Called when there may be events for a follower that has found none. The writing thread may hold
/// locks of keys. So a waker must neither call the table nor block.
pub type Waker = Arc<dyn Fn() + Send + Sync>;

/// A follower.
pub(super) struct Follower {
    /// The position of the next event that it reads.
    pub(super) position: u64,
    /// How many events it may lag behind.
    pub(super) limit: usize,
    /// Whether its last loss has ended within a group. It doesn't get the rest of that.
    pub(super) is_cut: bool,
    /// The number of its snapshot.
    pub(super) since: u64,
    waker: Waker,
}

/// Numbers with how often each of them is there.
#[derive(Default)]
struct Multiset(BTreeMap<u64, usize>);

impl Multiset {
    fn add(&mut self, number: u64) {
        *self.0.entry(number).or_default() += 1;
    }

    fn remove(&mut self, number: u64) {
        if let Some(count) = self.0.get_mut(&number) {
            *count -= 1;
            if *count == 0 {
                self.0.remove(&number);
            }
        }
    }
}

/// The followers, by their ids.
#[derive(Default)]
pub(super) struct Followers {
    by_id: BTreeMap<u64, Follower>,
    positions: Multiset,
    limits: Multiset,
    /// Those that have found nothing and are to be woken.
    asleep: BTreeSet<u64>,
    last_id: u64,
}

impl Followers {
    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// Adds a follower at a position, and returns its id.
    pub(super) fn add(&mut self, position: u64, limit: usize, waker: Waker) -> u64 {
        self.last_id += 1;
        let follower = Follower {
            position,
            limit,
            is_cut: false,
            since: 0,
            waker,
        };
        self.by_id.insert(self.last_id, follower);
        self.positions.add(position);
        self.limits.add(limit as u64);
        self.last_id
    }

    /// Takes a follower out. Its waker is the host's, so the caller drops it without a lock.
    pub(super) fn remove(&mut self, id: u64) -> Option<Follower> {
        let follower = self.by_id.remove(&id)?;
        self.asleep.remove(&id);
        self.positions.remove(follower.position);
        self.limits.remove(follower.limit as u64);
        Some(follower)
    }

    pub(super) fn get(&self, id: u64) -> Option<&Follower> {
        self.by_id.get(&id)
    }

    pub(super) fn set_snapshot_number(&mut self, id: u64, number: u64) {
        if let Some(follower) = self.by_id.get_mut(&id) {
            follower.since = number;
        }
    }

    /// Moves a follower to a position. `is_cut`: see `Follower`.
    pub(super) fn go_to(&mut self, id: u64, position: u64, is_cut: bool) {
        let Some(follower) = self.by_id.get_mut(&id) else {
            return;
        };
        follower.is_cut = is_cut;
        let before = std::mem::replace(&mut follower.position, position);
        if before != position {
            self.positions.remove(before);
            self.positions.add(position);
        }
    }

    /// The least position; `None` if there are no followers.
    pub(super) fn first_position(&self) -> Option<u64> {
        self.positions.0.first_key_value().map(|(&first, _)| first)
    }

    /// The greatest limit; 0 if there are no followers.
    pub(super) fn limit(&self) -> usize {
        let greatest = self.limits.0.last_key_value();
        greatest.map_or(0, |(&limit, _)| limit as usize)
    }

    pub(super) fn any_asleep(&self) -> bool {
        !self.asleep.is_empty()
    }

    /// Records that a follower is asleep.
    pub(super) fn fall_asleep(&mut self, id: u64) {
        self.asleep.insert(id);
    }

    /// The wakers of those that are asleep before a position. They count as awake from now on.
    pub(super) fn wake_before(&mut self, end: u64) -> SmallVec<[Waker; 2]> {
        let mut wakers: SmallVec<[Waker; 2]> = SmallVec::new();
        let by_id = &self.by_id;
        // A follower that has read everything before `end` has found nothing new, and sleeps on.
        self.asleep.retain(|id| match by_id.get(id) {
            Some(follower) if follower.position < end => {
                wakers.push(follower.waker.clone());
                false
            }
            _ => true,
        });
        wakers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_of_all_is_that_of_each() {
        let mut followers = Followers::default();
        let mut each: Vec<(u64, u64, usize, bool)> = Vec::new();
        let mut random = 1u64;
        for _ in 0..10_000 {
            random = random
                .wrapping_mul(0x5851_F42D_4C95_7F2D)
                .wrapping_add(0x1405_7B7E_F767_814F);
            let (what, number) = (random >> 60, random >> 33 & 15);
            let chosen = (random >> 40) as usize % each.len().max(1);
            match (what, each.get_mut(chosen)) {
                (0..=3, _) => {
                    let id = followers.add(number, number as usize + 1, Arc::new(|| ()));
                    each.push((id, number, number as usize + 1, false));
                }
                (4..=6, Some(_)) => {
                    let (id, position, ..) = each.swap_remove(chosen);
                    let removed = followers.remove(id).map(|follower| follower.position);
                    assert_eq!(removed, Some(position));
                }
                (7..=11, Some((id, position, ..))) => {
                    *position = number;
                    followers.go_to(*id, number, false);
                }
                (12..=13, Some((id, .., asleep))) => {
                    *asleep = true;
                    followers.fall_asleep(*id);
                }
                (_, Some(_)) => {
                    let mut woken = 0;
                    for (_, position, _, asleep) in &mut each {
                        let wakes = *asleep && *position < number;
                        woken += usize::from(wakes);
                        *asleep &= !wakes;
                    }
                    assert_eq!(followers.wake_before(number).len(), woken);
                }
                _ => {}
            }
            let first = each.iter().map(|follower| follower.1).min();
            let limit = each.iter().map(|follower| follower.2).max();
            assert_eq!(followers.first_position(), first);
            assert_eq!(followers.limit(), limit.unwrap_or(0));
            assert_eq!(
                followers.any_asleep(),
                each.iter().any(|follower| follower.3)
            );
            assert_eq!(followers.len(), each.len());
        }
        assert!(followers.remove(u64::MAX).is_none());
    }
}
