//! The read set of a transaction in one table: keys, ranges of positions, and entries of secondary
//! indexes.
//!
//! Absence counts as read, too: a key that was looked up and not found, and the whole of a range
//! that was scanned. So an object that is inserted into the range later, a phantom, is detected.
//!
//! A range consists of the positions of keys from `low` to `high`, both included. It may cover
//! slightly more than was read, but never less.
//!
//! Entries that were read are unchanged if their counts of changes are the same
//! (`indexes::changes`). The rows that they led to are among the keys that were read. If a lookup
//! at the commit would find other rows, these have been added since, and so have their entries.

use super::super::history::History;
use super::super::key_locks;
use super::super::sorted_key::SortedKey;
use super::super::undo;
use crate::indexes::{EntriesRead, Indexes};
use crate::resume_point::ResumePoint;
use larder_index::sync::{planted, Fault};
use larder_index::{Batch, Direction, Guard, Key, Start};
use std::collections::BTreeSet;

/// An undo index of at most this number of bytes is scanned for changed keys, without waiting for
/// all writes first.
const FEW_BYTES: usize = if cfg!(larder_model) { 0 } else { 64 << 10 };

/// Ranges in which scans have passed no more entries than this have few changed keys.
const FEW_PASSED: usize = 1_000;

/// A range of positions. An end that is `None` is unbounded.
struct ReadRange {
    low: Option<Vec<u8>>,
    high: Option<Vec<u8>>,
}

/// The lower and the upper end of a range.
type Ends<'r> = (Option<&'r [u8]>, Option<&'r [u8]>);

impl ReadRange {
    fn ends(&self) -> Ends<'_> {
        (self.low.as_deref(), self.high.as_deref())
    }
}

/// The read set of a transaction in one table.
#[derive(Default)]
pub(super) struct Reads {
    /// The keys, each after its hash.
    keys: BTreeSet<SortedKey>,
    ranges: Vec<ReadRange>,
    entries: Vec<EntriesRead>,
    /// How many entries the scans of the ranges have passed.
    passed: usize,
}

impl Reads {
    /// Adds a key with this hash.
    pub(super) fn key(&mut self, key: &[u8], hash: u64) {
        self.keys.insert(SortedKey::of_hash(hash, key));
    }

    /// Adds a range that a scan has read, from one position to another in this direction. It has
    /// passed this number of entries.
    pub(super) fn range(
        &mut self,
        from: Option<&[u8]>,
        to: Option<&[u8]>,
        direction: Direction,
        passed: usize,
    ) {
        self.passed += passed;
        // In a backward scan the later end is the lower one.
        let (low, high) = match direction {
            Direction::Forward => (from, to),
            Direction::Backward => (to, from),
        };
        // A range whose ends are the wrong way round has no position, so nothing was read.
        if low.zip(high).is_some_and(|(low, high)| low > high) {
            return;
        }
        if let Some(last) = self.ranges.last_mut() {
            // A scan that is repeated adds nothing.
            let (last_low, last_high) = last.ends();
            let ends_within = last_high.is_none() || (high.is_some() && high <= last_high);
            if last_low <= low && ends_within {
                return;
            }
            // If the scan has continued where the last range ends, extend that range.
            match direction {
                Direction::Forward if last.high.is_some() && last.high.as_deref() == low => {
                    last.high = high.map(<[u8]>::to_vec);
                    return;
                }
                Direction::Backward if last.low.is_some() && last.low.as_deref() == high => {
                    last.low = low.map(<[u8]>::to_vec);
                    return;
                }
                _ => {}
            }
        }
        self.ranges.push(ReadRange {
            low: low.map(<[u8]>::to_vec),
            high: high.map(<[u8]>::to_vec),
        });
    }

    /// Adds entries of a secondary index.
    pub(super) fn entries(&mut self, read: EntriesRead) {
        // If the entries were read before, keep the count of the first read: nothing may have
        // changed since then.
        if !self.entries.iter().any(|other| read.is_within(other)) {
            self.entries.push(read);
        }
    }

    /// Takes the keys out.
    pub(super) fn take_keys(&mut self) -> impl ExactSizeIterator<Item = SortedKey> + Send {
        std::mem::take(&mut self.keys).into_iter()
    }

    /// The keys that were read, with their hashes.
    pub(super) fn keys(&self) -> impl Iterator<Item = (&[u8], u64)> {
        self.keys.iter().map(|key| (key.bytes(), key.word()))
    }

    /// The number of keys and ranges that were read.
    pub(super) fn count(&self) -> usize {
        self.keys.len() + self.ranges.len()
    }

    /// Whether validation may have to look at every key of the table that has changed.
    pub(super) fn is_wide(&self) -> bool {
        let is_open = |range: &ReadRange| range.low.is_none() || range.high.is_none();
        !self.entries.is_empty() || self.passed > FEW_PASSED || self.ranges.iter().any(is_open)
    }

    /// The ranges that were read, in order. Those that overlap or adjoin are one, so that no key is
    /// looked at twice.
    fn disjoint_ranges(&self) -> Vec<Ends<'_>> {
        let mut ranges: Vec<Ends<'_>> = self.ranges.iter().map(ReadRange::ends).collect();
        ranges.sort_unstable();
        let mut disjoint: Vec<Ends<'_>> = Vec::new();
        for (low, high) in ranges {
            match disjoint.last_mut() {
                Some((_, end)) if end.is_none() || low <= *end => {
                    if end.is_some() && (high.is_none() || high > *end) {
                        *end = high;
                    }
                }
                _ => disjoint.push((low, high)),
            }
        }
        disjoint
    }

    /// Whether anything was read that is not protected by the lock of a key.
    pub(super) fn has_predicates(&self) -> bool {
        !self.ranges.is_empty() || !self.entries.is_empty()
    }

    /// Whether reading the secondary indexes again would find the same entries. `now` are the
    /// indexes that the table has now.
    ///
    /// 1. If there are many versions, most of them may be older than the snapshot. Then wait for
    ///    all writes of one key, by the locks of keys. If the counts are the same after that, so
    ///    are the entries.
    /// 2. If no key of the table has changed since the snapshot, the entries are the same, whatever
    ///    the counts are.
    /// 3. Otherwise wait for the write of each key that has changed. Its entries have then been
    ///    changed and counted, so the counts decide.
    pub(super) fn entries_are_valid(
        &self,
        history: &History,
        now: Option<&Indexes>,
        guard: &Guard,
        number: u64,
    ) -> bool {
        if self.entries.is_empty() {
            return true;
        }
        // An index that was dropped doesn't count any more, so its entries are treated as changed.
        let is_counted = |read: &EntriesRead| {
            let mut each = now.iter().flat_map(|now| &now.each);
            each.any(|entries| read.is_of(&entries.changes))
        };
        let counts_are_same = || {
            let mut each = self.entries.iter();
            each.all(|read| is_counted(read) && read.holds())
        };
        // (1) The commit has drawn its number before, and waited for those with lesser numbers.
        if history.undo_bytes() > FEW_BYTES && history.all_lock.holds() {
            if !planted(Fault::UnsettledEntry) {
                key_locks::wait_for_writes();
            }
            if counts_are_same() {
                return true;
            }
        }
        // (2) Look for changed keys. Reading such a key waits for its writer, which holds the lock
        // of its leaf until it has counted its entries.
        let mut has_changed = false;
        let objects = &history.store().index;
        each_changed((None, None), history, guard, number, &mut |key| {
            has_changed = true;
            if !planted(Fault::UnsettledEntry) {
                objects.contains_after_writer(guard, key);
            }
            true
        });
        // (3) The writes that were waited for have counted their entries.
        !has_changed || counts_are_same()
    }

    /// Whether no key in the ranges has changed since the snapshot with this number. Looks at each
    /// key with versions once, however often it was read.
    pub(super) fn ranges_are_valid(&self, history: &History, guard: &Guard, number: u64) -> bool {
        let is_unchanged = |range: Ends<'_>| {
            let mut holds = true;
            each_changed(range, history, guard, number, &mut |_| {
                // The first changed key decides, so the scan stops there.
                holds = false;
                false
            });
            holds
        };
        self.disjoint_ranges().into_iter().all(is_unchanged)
    }
}

/// Visits the keys in a range that have changed since the snapshot with this number, until `visit`
/// returns `false`. A changed key has a version with the snapshot's number or a greater one.
fn each_changed(
    (low, high): Ends<'_>,
    history: &History,
    guard: &Guard,
    number: u64,
    visit: &mut dyn FnMut(Key<'_>) -> bool,
) {
    // No version was kept in this history, so nothing has changed.
    let Some(index) = history.undo() else {
        return;
    };
    let (mut batch, mut position) = (Batch::default(), Vec::new());
    let (first, forward) = (low.map_or(Start::Edge, Start::At), Direction::Forward);
    let mut resume = ResumePoint::Begin;
    while resume != ResumePoint::End {
        // The undo index has the same order as the table's, so a range of positions is a range in
        // it, too.
        index.scan(guard, resume.start(first, forward), forward, &mut batch);
        for i in 0..batch.len() {
            let (bytes, record) = batch.entry(i);
            let key = history.key(bytes);
            index.position(key, &mut position);
            if high.is_some_and(|high| &position[..] > high) {
                return;
            }
            // The record's newest version decides: a change since the snapshot has left one.
            if undo::newest(record) >= number && !visit(key) {
                return;
            }
        }
        resume.move_past(&mut batch);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds a range. Ends that are empty are unbounded.
    fn read(reads: &mut Reads, low: &str, high: &str) {
        let [low, high] = [low, high].map(|end| (!end.is_empty()).then_some(end.as_bytes()));
        reads.range(low, high, Direction::Forward, 1);
    }

    fn disjoint(ranges: &[(&str, &str)]) -> Vec<(String, String)> {
        let mut reads = Reads::default();
        for (low, high) in ranges {
            read(&mut reads, low, high);
        }
        let text = |end: Option<&[u8]>| String::from_utf8_lossy(end.unwrap_or(b"")).into_owned();
        let ranges = reads.disjoint_ranges().into_iter();
        ranges.map(|(low, high)| (text(low), text(high))).collect()
    }

    #[test]
    fn no_key_is_in_two_ranges() {
        type Ranges = &'static [(&'static str, &'static str)];
        let cases: [(Ranges, Ranges); 7] = [
            (&[("e", "g"), ("a", "b")], &[("a", "b"), ("e", "g")]),
            (&[("e", "g"), ("a", "e")], &[("a", "g")]),
            (
                &[("c", "g"), ("a", "f"), ("i", "k")],
                &[("a", "g"), ("i", "k")],
            ),
            (
                &[("a", "k"), ("m", "n"), ("c", "d")],
                &[("a", "k"), ("m", "n")],
            ),
            (&[("c", ""), ("a", "d"), ("f", "g")], &[("a", "")]),
            (
                &[("", "c"), ("f", "g"), ("", "d")],
                &[("", "d"), ("f", "g")],
            ),
            (&[("c", "d"), ("", ""), ("c", "d")], &[("", "")]),
        ];
        for (ranges, expected) in cases {
            let found = disjoint(ranges);
            let found: Vec<(&str, &str)> = found.iter().map(|(l, h)| (&l[..], &h[..])).collect();
            assert_eq!(found, expected, "{ranges:?}");
        }
    }

    #[test]
    fn a_repeated_scan_is_one_range() {
        let mut reads = Reads::default();
        for i in 0..FEW_PASSED {
            read(&mut reads, "a", ["k", "d"][i % 2]);
        }
        assert_eq!((reads.count(), reads.is_wide()), (1, false));
        // What has passed many entries may have many that have changed.
        read(&mut reads, "b", "c");
        assert_eq!((reads.count(), reads.is_wide()), (1, true));
    }
}
