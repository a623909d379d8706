//! Merging a batch in hash order with an undo index of chains, in place.
//!
//! ```text
//!  batch      a 1 │ b 7 │ c 3 │ d 4          as the table is now
//!  chains     b 2, d –, e 5                  as of the snapshot's number, in no order
//!  merged     a 1 │ b 2 │ c 3 │ e 5
//! ```
//!
//! A version is looked for in the batch by the hash that its node has (`Batch::find`). So no entry
//! is touched whose key has not changed, and versions need not be sorted.
//!
//! # Steps
//!
//! 1. Walk over the versions in the range of the batch. If the batch has entries of the version's
//!    key, and the version has as many, replace them where they are.
//! 2. Otherwise remove the entries of the key, if there are any, after the walk. In an unordered
//!    batch the version's entries are appended at once.
//! 3. In an ordered batch they are added after the walk, in the order of their positions. A version
//!    without an entry is that of a removed key. Of such a key, the position is compared with the
//!    ends of the batch, as those may have the same hash.
//! 4. If there are many versions, or many records without one for this reader, the batch has to be
//!    cut. Then the caller reads it again, and merges as it does with other overrides.
//!
//! An ordered batch of a bag may begin and end between the objects of a key. The version of such a
//! key is added as in step 3, without the objects that are outside of the range. An unordered one
//! doesn't (`Merged::begins_among_objects`).

use super::merged::{MergeInput, Merged};
use super::scan::{partition_point, ViewRange, MOST, MOST_PASSED};
use super::undo::Override;
use larder_index::{Batch, Chains, Direction, Guard, Key, Start};
use smallvec::SmallVec;
use std::ops::Bound;

/// What is done after the walk.
#[derive(Default)]
struct Rest<'g> {
    /// The numbers of entries that go.
    removed: SmallVec<[usize; 8]>,
    /// The key and the value of what comes into an ordered batch.
    added: SmallVec<[(Key<'g>, Override<'g>); 4]>,
}

impl<I: MergeInput + ?Sized> Merged<I> {
    /// Whether a batch of the base, read in this direction, can be merged in place.
    pub(super) fn merges_in_place(&self, batch: &Batch, direction: Direction) -> bool {
        direction == Direction::Forward && batch.has_homes()
    }

    /// Merges a batch of the base that begins at `start`, and has homes. Returns the number of
    /// records without a version for this reader. If there are too many of these or of versions in
    /// its range, returns `None`; the batch has to be read again then.
    pub(super) fn merge_in_place<'g>(
        &'g self,
        guard: &'g Guard,
        chains: &'g Chains,
        start: Start<'_>,
        batch: &mut Batch<'g>,
    ) -> Option<usize> {
        let (mut rest, mut versions, mut passed) = (Rest::default(), 0, 0);
        let first = match start {
            Start::Edge => None,
            Start::At(position) | Start::Past(position) => Some(position),
        };
        let resume = std::mem::take(&mut batch.resume);
        let end = (!batch.done).then_some(&resume[..]);
        let until = batch.until.clone();
        let last = match (end, &until) {
            (None, Bound::Included(position) | Bound::Excluded(position)) => Some(&position[..]),
            (end, _) => end,
        };
        let range = self.range(start, Direction::Forward, end);
        // (1)
        let walked = chains.each_between(guard, first, last, &mut |hash, bytes, record| {
            let Some(value) = self.overrides.read(record) else {
                passed += 1;
                return passed < MOST_PASSED;
            };
            versions += 1;
            self.put_version(&range, Key { bytes, hash }, value, batch, &mut rest);
            // (4)
            versions < MOST
        });
        // (2), (3)
        if walked {
            self.finish_in_place(&range, rest, batch);
        }
        batch.forget_homes();
        batch.resume = resume;
        walked.then_some(passed)
    }

    /// Step 1 for one version.
    #[inline]
    fn put_version<'g>(
        &self,
        range: &ViewRange<'_>,
        key: Key<'g>,
        value: Override<'g>,
        batch: &mut Batch,
        rest: &mut Rest<'g>,
    ) {
        let (len, found) = (batch.len(), batch.find(key.hash, key.bytes));
        if let (true, Some(i), Override::Value(value)) = (self.base.has_one_each(), found, value) {
            return batch.replace(i, key.bytes, value);
        }
        if found.is_none() {
            match batch.unordered {
                // The key was absent, too.
                _ if value == Override::Absent => return,
                // (3)
                false => return rest.added.push((key, value)),
                // It may have the hash at which the next batch begins.
                true if self.position_within(range, key).is_none() => return,
                true => {}
            }
        }
        self.base.push(key.bytes, value, Direction::Forward, batch);
        let first = found.unwrap_or(len);
        let there = match found {
            None => 0,
            Some(_) if self.base.has_one_each() => 1,
            // The entries of a key are adjacent.
            Some(i) => {
                1 + (i + 1..len)
                    .take_while(|&i| batch.has_key(i, key.bytes))
                    .count()
            }
        };
        // The first key of an ordered batch, and the last one, may have objects outside of it.
        let may_be_cut = !batch.unordered && !self.base.has_one_each();
        let is_at_end = may_be_cut && (first == 0 || first + there == len);
        let is_cut = is_at_end && self.is_cut(range, key);
        if batch.len() - len != there || is_cut {
            // (2)
            rest.removed.extend(first..first + there);
            // (3) In a batch without order, what was pushed stays where it is.
            if !batch.unordered {
                batch.truncate(len);
                rest.added.push((key, value));
            }
            return;
        }
        // Each is the last one when its turn comes.
        for i in (first..first + there).rev() {
            batch.swap_remove(i);
        }
    }

    /// Whether the range of an ordered batch may begin or end between the entries of a key.
    #[inline(never)]
    fn is_cut(&self, range: &ViewRange<'_>, key: Key<'_>) -> bool {
        let mut prefix = Vec::new();
        self.base.key_start(key, &mut prefix);
        range.cuts(&prefix)
    }

    /// What the positions of a key's entries begin with, if some of them may be in the range.
    #[cold]
    fn position_within(&self, range: &ViewRange<'_>, key: Key<'_>) -> Option<Vec<u8>> {
        let mut position = Vec::new();
        self.base.key_start(key, &mut position);
        let is_within = match self.base.has_one_each() {
            true => range.has_begun(&position) && !range.is_past_end(&position),
            false => range.has_begun_prefix(&position) && !range.is_prefix_past_end(&position),
        };
        is_within.then_some(position)
    }

    /// Steps 2 and 3 after the walk.
    fn finish_in_place<'g>(&self, range: &ViewRange<'_>, rest: Rest<'g>, batch: &mut Batch<'g>) {
        let Rest { mut removed, added } = rest;
        removed.sort_unstable();
        if batch.unordered && self.base.has_one_each() {
            // From the last one on, so that the numbers of the others stay what they are.
            removed.iter().rev().for_each(|&i| batch.swap_remove(i));
        } else if !removed.is_empty() || !added.is_empty() {
            self.rebuild_in_order(range, &removed, &added, batch);
        }
    }

    /// Steps 2 and 3 of an ordered batch.
    #[cold]
    fn rebuild_in_order<'g>(
        &self,
        range: &ViewRange<'_>,
        removed: &[usize],
        added: &[(Key<'g>, Override<'g>)],
        batch: &mut Batch<'g>,
    ) {
        // For each that comes in: the number of the entry before which it does, and its position.
        let (mut added_at, mut there) = (Vec::with_capacity(added.len()), Vec::new());
        for &(key, value) in added {
            let Some(position) = self.position_within(range, key) else {
                continue;
            };
            // The key may be of a leaf before that of the batch, whose last entries were removed.
            let at = partition_point(0..batch.len(), |i| {
                let entry_key = self.overrides.key(batch.key(i));
                self.base.key_start(entry_key, &mut there);
                there < position
            });
            added_at.push((at, position, key.bytes, value));
        }
        added_at.sort_unstable_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
        batch.replace_entries(|batch, base| {
            let (mut added_at, mut removed) = (added_at.iter().peekable(), removed.iter());
            let (mut from, mut next_removed) = (0, removed.next());
            loop {
                let next = added_at.peek().map_or(base.len(), |next| next.0);
                // What lies before it, without what goes.
                while let Some(&i) = next_removed.filter(|&&i| i < next) {
                    batch.push_entries(base, from..i);
                    (from, next_removed) = (i + 1, removed.next());
                }
                batch.push_entries(base, from..next);
                from = next;
                match added_at.next() {
                    Some(&(_, _, key, value)) => {
                        self.push_within(range, key, value, batch, &mut there);
                    }
                    None => break,
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::api::{Larder, Table};
    use larder_index::Direction;
    use larder_term::hash::Seed;
    use larder_term::{term, Term};
    use larder_testing::random::Random;

    /// Pairs of keys whose hashes have the same 48 bits, with the seed that tables have in unit
    /// tests.
    #[rustfmt::skip]
    const TIES: [(i64, i64); 27] = [
        (18_070_314, 42_762_461), (61_123_568, 111_219_803), (97_915_942, 135_682_149),
        (78_452_237, 131_142_787), (126_556_111, 136_723_646), (35_065_075, 35_671_234),
        (18_722_802, 140_889_058), (51_520_383, 89_997_374), (109_023_585, 135_686_038),
        (102_277_991, 142_156_992), (32_016_600, 114_658_560), (81_362_966, 129_566_001),
        (50_085_948, 150_303_315), (29_930_590, 116_707_152), (52_077_604, 78_370_742),
        (36_261_486, 69_713_499), (44_034_936, 66_817_063), (63_530_585, 69_788_076),
        (116_755_798, 121_325_527), (118_668_982, 132_615_349), (75_145_946, 99_877_422),
        (29_774_109, 81_807_967), (66_042_157, 91_031_943), (141_702_103, 147_711_620),
        (41_315_602, 87_144_912), (69_131_833, 130_496_865), (20_182_631, 143_504_895),
    ];

    fn all(table: &Table, page: usize) -> Vec<Term> {
        let mut rows = table.all_rows(Direction::Forward).expect("a table");
        let pages = std::iter::from_fn(|| {
            let page = rows.page(page).expect("a table");
            (!page.is_empty()).then_some(page)
        });
        pages.flatten().collect()
    }

    /// What a snapshot shows of keys of equal hashes, in pages that end between them, too.
    fn check(snapshot: &Table, had: &[Term]) {
        for page in [1, 2, 3, 1000] {
            assert_eq!(all(snapshot, page), had, "pages of {page}");
        }
        // This reads in any order.
        let mut rows = snapshot.to_vec().expect("a table");
        let mut had = had.to_vec();
        rows.sort();
        had.sort();
        assert_eq!(rows, had);
    }

    #[test]
    fn keys_of_equal_hashes_are_merged() {
        let seed = Seed::from_number(1);
        let hash = |key: i64| seed.hash(Term::from(key).bytes()) >> 16;
        assert!(TIES.iter().all(|&(a, b)| hash(a) == hash(b)));
        for kind in ["set", "bag"] {
            let larder = Larder::new();
            let builder = larder.table(kind);
            let table = match kind {
                "set" => builder.set().create(),
                _ => builder.bag().create(),
            };
            let table = table.expect("a table");
            let mut random = Random(7);
            for round in 0..300i64 {
                // Some keys are there: none, one or both of a pair.
                let change = |random: &mut Random, most: u64| {
                    for (a, b) in TIES {
                        for key in [a, b] {
                            match random.below(most) {
                                0 => drop(table.delete(&term!((key))).expect("a table")),
                                1 => table.insert(&term!({(key), (round)})).expect("a table"),
                                2 => table.insert(&term!({(key), (-round)})).expect("a table"),
                                _ => {}
                            }
                        }
                    }
                };
                change(&mut random, 4);
                let had = all(&table, 1000);
                let snapshot = table.snapshot().expect("a table");
                // From then on a few keys change, or most.
                change(&mut random, [4, 9, 40][round as usize % 3]);
                check(&snapshot, &had);
            }
        }
    }
}
