//! The data of a table's policy, which is one of three, for the number of objects that the table
//! has now. Limits may be changed, so data of another policy or size may replace them.

use super::heat::{Policy, Recency, Sketch};
use super::sieve::Sieve;
use crate::options::Evict;
use crate::raw::EpochCell;
use crate::reclaim::{reaper, Reaped};
use larder_index::sync::Mutex;
use larder_index::{Guard, HeldFlushes};

/// The data of a policy.
#[expect(clippy::large_enum_variant, reason = "a table has one")]
pub(super) enum PolicyData {
    Recency(Recency),
    Sketch(Sketch),
    Sieve(Sieve),
}

impl PolicyData {
    /// Those of this policy, or of `Lru`.
    fn new(evict: Evict, objects: usize) -> Self {
        match evict {
            Evict::TinyLfu => PolicyData::Sketch(Sketch::new(objects)),
            Evict::Sieve => PolicyData::Sieve(Sieve::new(objects)),
            Evict::None | Evict::Lru => PolicyData::Recency(Recency::new(objects)),
        }
    }

    #[inline]
    fn evict(&self) -> Evict {
        match self {
            PolicyData::Recency(_) => Evict::Lru,
            PolicyData::Sketch(_) => Evict::TinyLfu,
            PolicyData::Sieve(_) => Evict::Sieve,
        }
    }

    pub(super) fn policy(&self) -> &dyn Policy {
        match self {
            PolicyData::Recency(data) => data,
            PolicyData::Sketch(data) => data,
            PolicyData::Sieve(data) => data,
        }
    }

    /// Halves the counts of `tinylfu`.
    #[cfg(test)]
    pub(super) fn end_epoch(&self) {
        if let PolicyData::Sketch(data) = self {
            data.end_epoch(1);
        }
    }

    /// See `Policy`. Reads come here, so it is inlined.
    #[inline]
    pub(super) fn record_use(&self, hash: u64) {
        match self {
            PolicyData::Recency(data) => data.record_use(hash),
            PolicyData::Sketch(data) => data.record_use(hash),
            PolicyData::Sieve(data) => data.record_use(hash),
        }
    }
}

struct DataOfSize {
    level: usize,
    data: PolicyData,
}

/// They may be large, so no caller waits for their end.
impl Reaped for DataOfSize {
    fn memory(&self) -> usize {
        self.data.policy().memory()
    }

    fn free_some(&mut self, _: usize) -> bool {
        true
    }
}

/// The current data, if there are any.
pub(super) struct CurrentPolicy {
    current: EpochCell<DataOfSize>,
    /// Held by the thread that replaces the data. They may be large, so only one makes them.
    replaces: Mutex<()>,
}

impl Default for CurrentPolicy {
    fn default() -> Self {
        CurrentPolicy {
            current: EpochCell::empty(),
            replaces: Mutex::new(()),
        }
    }
}

/// The exponent of the power of two for this number of objects.
fn level(objects: usize) -> usize {
    let up = objects.clamp(1 << 6, 1 << 40).next_power_of_two();
    up.trailing_zeros() as usize
}

impl CurrentPolicy {
    /// The data of this policy for this number of objects, if they exist.
    #[inline]
    pub(super) fn get<'g>(
        &self,
        evict: Evict,
        objects: usize,
        guard: &'g Guard,
    ) -> Option<&'g PolicyData> {
        let made = self.current.load(guard).get()?;
        let is_right = made.level == level(objects) && made.data.evict() == evict;
        is_right.then_some(&made.data)
    }

    /// The data of this policy, which isn't `None`, for this number of objects. They are created if
    /// they don't exist.
    pub(super) fn make<'g>(
        &self,
        evict: Evict,
        objects: usize,
        guard: &'g Guard,
    ) -> &'g PolicyData {
        debug_assert!(evict != Evict::None);
        loop {
            if let Some(data) = self.get(evict, objects, guard) {
                return data;
            }
            // No destructor of a host runs under the lock.
            let _held = HeldFlushes::begin(guard);
            let _replaces = self.replaces.lock();
            // Another thread may have made them since.
            if self.get(evict, objects, guard).is_none() {
                let level = level(objects);
                let data = PolicyData::new(evict, 1 << level);
                let made = DataOfSize { level, data };
                // It succeeds, unless the data are dropped meanwhile.
                let replaced = self.current.replace(self.current.load(guard), made, guard);
                if let Ok(Some(before)) = replaced {
                    reaper::free(before, guard);
                }
            }
        }
    }

    /// Drops the data of other policies than this one.
    pub(super) fn keep_only(&self, evict: Evict, guard: &Guard) {
        let made = self.current.load(guard).get();
        if made.is_some_and(|made| made.data.evict() != evict) {
            if let Some(before) = self.current.take(guard) {
                reaper::free(before, guard);
            }
        }
    }

    pub(super) fn memory(&self) -> usize {
        let guard = larder_index::pin();
        let made = self.current.load(&guard).get();
        made.map_or(0, |made| made.data.policy().memory())
    }
}
