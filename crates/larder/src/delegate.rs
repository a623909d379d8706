//! The methods that a layer over an index delegates to it.
//!
//! Secondary indexes ([`indexes`](crate::indexes)) and versions ([`versions`](crate::versions)) are
//! layers: types that implement an index's trait over another index, one of their fields, and add
//! something to its writes. Scans and positions mostly stay as they are. Each macro is used in an
//! `impl` of a trait, and implements some of its methods by those of the field.

/// The methods of [`Container`](larder_index::Container) about the room that there is.
macro_rules! delegate_room {
    ($index:ident) => {
        fn limit(&self) -> Option<usize> {
            self.$index.limit()
        }

        fn expect_keys(&self, now: usize, soon: usize) {
            self.$index.expect_keys(now, soon);
        }

        fn freeze(&self, on: bool) {
            self.$index.freeze(on);
        }
    };
}

/// The methods of [`Container`](larder_index::Container) that say how much there is.
macro_rules! delegate_container {
    ($index:ident) => {
        fn len(&self) -> usize {
            self.$index.len()
        }

        fn stats(&self) -> larder_index::Stats {
            self.$index.stats()
        }

        $crate::delegate::delegate_room!($index);
    };
}

/// The methods that [`Unique`](larder_index::Unique) and [`Multi`](larder_index::Multi) both have.
macro_rules! delegate_scans {
    ($index:ident) => {
        fn prefetch(&self, guard: &larder_index::Guard, keys: &[larder_index::Key<'_>]) {
            self.$index.prefetch(guard, keys);
        }

        fn scan<'g>(
            &'g self,
            guard: &'g larder_index::Guard,
            start: larder_index::Start<'_>,
            direction: larder_index::Direction,
            batch: &mut larder_index::Batch<'g>,
        ) {
            self.$index.scan(guard, start, direction, batch);
        }

        fn is_unchanged(
            &self,
            guard: &larder_index::Guard,
            key: larder_index::Key<'_>,
            seen: larder_index::Seen,
        ) -> bool {
            self.$index.is_unchanged(guard, key, seen)
        }
    };
}

/// The methods of [`Unique`](larder_index::Unique) about the order of its entries.
macro_rules! delegate_order {
    ($index:ident) => {
        fn is_ordered(&self) -> bool {
            self.$index.is_ordered()
        }

        fn position(&self, key: larder_index::Key<'_>, out: &mut Vec<u8>) {
            self.$index.position(key, out);
        }
    };
}

/// The methods of [`Unique`](larder_index::Unique) that go from entry to entry.
macro_rules! delegate_unique {
    ($index:ident) => {
        $crate::delegate::delegate_scans!($index);
        $crate::delegate::delegate_order!($index);

        fn step<'g>(
            &'g self,
            guard: &'g larder_index::Guard,
            key: Option<larder_index::Key<'_>>,
            direction: larder_index::Direction,
            batch: &mut larder_index::Batch<'g>,
        ) -> bool {
            self.$index.step(guard, key, direction, batch)
        }

        fn try_step(
            &self,
            guard: &larder_index::Guard,
            key: Option<larder_index::Key<'_>>,
            direction: larder_index::Direction,
            entry: &mut larder_index::StepEntry,
        ) -> Option<larder_index::Stepped> {
            self.$index.try_step(guard, key, direction, entry)
        }

        fn sample<'g>(
            &'g self,
            guard: &'g larder_index::Guard,
            point: u64,
            batch: &mut larder_index::Batch<'g>,
        ) -> u64 {
            self.$index.sample(guard, point, batch)
        }

        fn ranked(&self) -> Option<&dyn larder_index::Ranked> {
            self.$index.ranked()
        }
    };
}

/// The methods of [`Multi`](larder_index::Multi) about positions and numbers of entries.
macro_rules! delegate_positions {
    ($index:ident) => {
        fn first_position(&self, key: larder_index::Key<'_>, out: &mut Vec<u8>) {
            self.$index.first_position(key, out);
        }

        fn last_position(&self, key: larder_index::Key<'_>, out: &mut Vec<u8>) {
            self.$index.last_position(key, out);
        }

        fn entry_position(&self, batch: &larder_index::Batch, i: usize, out: &mut Vec<u8>) {
            larder_index::Multi::entry_position(&*self.$index, batch, i, out);
        }

        fn push_entry(
            &self,
            batch: &mut larder_index::Batch,
            key: &[u8],
            value: &[u8],
            number: u64,
        ) {
            self.$index.push_entry(batch, key, value, number);
        }

        fn entry_number(&self, batch: &larder_index::Batch, i: usize) -> u64 {
            self.$index.entry_number(batch, i)
        }

        fn key_position<'p>(&self, position: &'p [u8]) -> &'p [u8] {
            larder_index::Multi::key_position(&*self.$index, position)
        }

        fn comparable<'p>(&self, position: &'p [u8]) -> &'p [u8] {
            larder_index::Multi::comparable(&*self.$index, position)
        }
    };
}

/// The methods of [`Multi`](larder_index::Multi) that go from entry to entry.
macro_rules! delegate_multi {
    ($index:ident) => {
        $crate::delegate::delegate_scans!($index);

        fn step<'g>(
            &'g self,
            guard: &'g larder_index::Guard,
            key: Option<larder_index::Key<'_>>,
            batch: &mut larder_index::Batch<'g>,
        ) -> bool {
            self.$index.step(guard, key, batch)
        }

        fn try_step(
            &self,
            guard: &larder_index::Guard,
            key: Option<larder_index::Key<'_>>,
            entry: &mut larder_index::StepEntry,
        ) -> Option<larder_index::Stepped> {
            self.$index.try_step(guard, key, entry)
        }

        $crate::delegate::delegate_positions!($index);
    };
}

pub(crate) use {
    delegate_container, delegate_multi, delegate_order, delegate_positions, delegate_room,
    delegate_scans, delegate_unique,
};
