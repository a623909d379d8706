//! The methods that a layer over an index delegates to it.
//!
//! Secondary indexes ([`indexes`](crate::indexes)) and versions ([`versions`](crate::versions)) are
//! layers: types that implement an index's trait over another index, their field `index`, and add
//! something to its writes. Scans and positions stay as they are. Each macro is used in an `impl`
//! of the trait that it is named after, and implements these methods.

/// The methods of [`Container`](larder_index::Container) that say how much there is.
macro_rules! delegate_container {
    () => {
        fn len(&self) -> usize {
            self.index.len()
        }

        fn stats(&self) -> larder_index::Stats {
            self.index.stats()
        }

        fn limit(&self) -> Option<usize> {
            self.index.limit()
        }

        fn expect_keys(&self, now: usize, soon: usize) {
            self.index.expect_keys(now, soon);
        }

        fn freeze(&self, on: bool) {
            self.index.freeze(on);
        }
    };
}

/// The methods that [`Unique`](larder_index::Unique) and [`Multi`](larder_index::Multi) both have.
macro_rules! delegate_scans {
    () => {
        fn prefetch(&self, guard: &larder_index::Guard, keys: &[larder_index::Key<'_>]) {
            self.index.prefetch(guard, keys);
        }

        fn scan<'g>(
            &'g self,
            guard: &'g larder_index::Guard,
            start: larder_index::Start<'_>,
            direction: larder_index::Direction,
            batch: &mut larder_index::Batch<'g>,
        ) {
            self.index.scan(guard, start, direction, batch);
        }

        fn is_unchanged(
            &self,
            guard: &larder_index::Guard,
            key: larder_index::Key<'_>,
            seen: larder_index::Seen,
        ) -> bool {
            self.index.is_unchanged(guard, key, seen)
        }
    };
}

/// The methods of [`Unique`](larder_index::Unique) that go from entry to entry.
macro_rules! delegate_unique {
    () => {
        $crate::delegate::delegate_scans!();

        fn is_ordered(&self) -> bool {
            self.index.is_ordered()
        }

        fn step<'g>(
            &'g self,
            guard: &'g larder_index::Guard,
            key: Option<larder_index::Key<'_>>,
            direction: larder_index::Direction,
            batch: &mut larder_index::Batch<'g>,
        ) -> bool {
            self.index.step(guard, key, direction, batch)
        }

        fn sample<'g>(
            &'g self,
            guard: &'g larder_index::Guard,
            point: u64,
            batch: &mut larder_index::Batch<'g>,
        ) -> u64 {
            self.index.sample(guard, point, batch)
        }

        fn ranked(&self) -> Option<&dyn larder_index::Ranked> {
            self.index.ranked()
        }

        fn position(&self, key: larder_index::Key<'_>, out: &mut Vec<u8>) {
            self.index.position(key, out);
        }
    };
}

/// The methods of [`Multi`](larder_index::Multi) that go from entry to entry.
macro_rules! delegate_multi {
    () => {
        $crate::delegate::delegate_scans!();

        fn step<'g>(
            &'g self,
            guard: &'g larder_index::Guard,
            key: Option<larder_index::Key<'_>>,
            batch: &mut larder_index::Batch<'g>,
        ) -> bool {
            self.index.step(guard, key, batch)
        }

        fn first_position(&self, key: larder_index::Key<'_>, out: &mut Vec<u8>) {
            self.index.first_position(key, out);
        }

        fn last_position(&self, key: larder_index::Key<'_>, out: &mut Vec<u8>) {
            self.index.last_position(key, out);
        }

        fn entry_position(&self, batch: &larder_index::Batch, i: usize, out: &mut Vec<u8>) {
            self.index.entry_position(batch, i, out);
        }

        fn push_entry(
            &self,
            batch: &mut larder_index::Batch,
            key: &[u8],
            value: &[u8],
            number: u64,
        ) {
            self.index.push_entry(batch, key, value, number);
        }

        fn entry_number(&self, batch: &larder_index::Batch, i: usize) -> u64 {
            self.index.entry_number(batch, i)
        }

        fn key_position<'p>(&self, position: &'p [u8]) -> &'p [u8] {
            self.index.key_position(position)
        }

        fn comparable<'p>(&self, position: &'p [u8]) -> &'p [u8] {
            self.index.comparable(position)
        }
    };
}

/// The methods of [`Objects`](larder_index::Objects) that change no object. The field with the
/// objects is `objects`.
macro_rules! delegate_objects {
    () => {
        fn count(&self) -> usize {
            self.objects.count()
        }

        fn is_empty(&self) -> bool {
            self.objects.is_empty()
        }

        fn each(&self, f: &mut dyn FnMut(usize, &[u8]) -> bool) {
            self.objects.each(f);
        }

        fn each_numbered(&self, f: &mut dyn FnMut(u64, &[u8])) {
            self.objects.each_numbered(f);
        }

        fn begin_change(&mut self) {
            self.objects.begin_change();
        }

        fn find(&self, value: &[u8], same: &mut dyn FnMut(&[u8]) -> bool) -> bool {
            self.objects.find(value, same)
        }
    };
}

pub(crate) use {
    delegate_container, delegate_multi, delegate_objects, delegate_scans, delegate_unique,
};
