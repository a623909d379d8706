//! The run of inserts that a leaf records in its statistics.

/// The statistics of a leaf: its contention counter, and the current run of inserts.
///
/// ```text
///  bits 0..32    the contention counter
///  bits 32..48   the length of the run: the number of inserts that each went beside the one before
///  bit 48        the run descends
///  bits 49..64   the slot of the last insert, modulo 2^15
/// ```
#[derive(Clone, Copy)]
pub(super) struct InsertRun(u64);

const LENGTH_AT: u32 = 32;
const DESCENDS_AT: u32 = 48;
const SLOT_AT: u32 = 49;
const MAX_LENGTH: u64 = 0xFFFF;
const MAX_SLOT: u64 = 0x7FFF;

impl InsertRun {
    /// The run that the statistics record.
    #[inline]
    pub(super) fn of(statistics: u64) -> Self {
        InsertRun(statistics)
    }

    /// The slot of the last insert, modulo 2^15.
    #[inline]
    pub(super) fn last_slot(self) -> usize {
        (self.0 >> SLOT_AT) as usize
    }

    /// Whether the run descends.
    #[inline]
    pub(super) fn descends(self) -> bool {
        self.0 >> DESCENDS_AT & 1 == 1
    }

    /// The length of the run; 0 if none is going on.
    #[inline]
    pub(super) fn length(self) -> usize {
        (self.0 >> LENGTH_AT & MAX_LENGTH) as usize
    }

    /// Whether a run is going on that doesn't descend.
    #[inline]
    pub(super) fn ascends(self) -> bool {
        // A run goes on if its length is 1..=0xFFFF. Bit 16 of the masked number is the *descends*
        // bit. A descending run therefore has a number above that range and fails the test.
        (1..=MAX_LENGTH).contains(&(self.0 >> LENGTH_AT & 0x1_FFFF))
    }

    /// The run after an insert at slot `i`.
    #[inline]
    pub(super) fn after(self, i: usize) -> Self {
        let (slot, last) = (i as u64 & MAX_SLOT, self.last_slot() as u64);
        let up = slot == (last + 1) & MAX_SLOT;
        let down = slot == last;
        // The second insert of a run determines its direction. Every further one must follow it.
        let length = match self.length() as u64 {
            0 if up || down => 1,
            n if n > 0 && (if self.descends() { down } else { up }) => (n + 1).min(MAX_LENGTH),
            _ => 0,
        };
        let descends = if length == 1 { down } else { self.descends() };
        let run = slot << SLOT_AT | u64::from(descends) << DESCENDS_AT | length << LENGTH_AT;
        InsertRun(self.0 & 0xFFFF_FFFF | run)
    }

    /// The same run, with its last insert at slot `i`.
    pub(super) fn at_slot(self, i: usize) -> Self {
        let others = self.0 & !(MAX_SLOT << SLOT_AT);
        InsertRun(others | (i as u64 & MAX_SLOT) << SLOT_AT)
    }

    /// The statistics that record the run.
    #[inline]
    pub(super) fn into_bits(self) -> u64 {
        self.0
    }
}
