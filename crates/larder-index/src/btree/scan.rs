//! Scans: they read a leaf at a time, each as of one instant, and continue at its fence.
//!
//! ```text
//!  leaves     [ a  b  c ][ d  e ][ f  g  h ]
//!                ↑      ↑
//!           cursor      fence                  of the leaf at hand, at its far end
//! ```
//!
//! 1. Find the leaf that contains the cursor, together with the fence at its far end.
//! 2. Copy its entries, starting at the cursor, up to the end of what is requested.
//! 3. Validate the leaf's version. If it has changed, start again at the cursor.
//! 4. Store where the scan continues: after the last entry if the batch is full, otherwise at the
//!    fence.
//!
//! Invariants:
//! * **B23** When a scan continues at a position or a fence, it has returned all entries before
//!   that place and none after it. So it misses nothing and repeats nothing, even if leaves were
//!   replaced.
//! * **B24** The fence belongs to the leaf with which it was found. A leaf that isn't obsolete has
//!   the range that the path to it says, and a validated view shows that it wasn't obsolete.
//! * **B25** The entries that a call returns are those of one version of one leaf.
//!
//! Deviation: there are no links between leaves, so each leaf is found from the root.

use super::BPlusTree;
use crate::btree::inner::{FencedLeaf, RangeEnd, Seek};
use crate::btree::leaf::TreeLeaf;
use crate::btree::search_key::SearchKey;
use crate::btree::view::TreeView;
use crate::seqlock::words::Torn;
use crate::sync::Backoff;
use crate::{Batch, Direction, Start, StepEntry, Stepped};
use crossbeam_epoch::Guard;
use std::ops::{Bound, Range};

/// Once a batch has more bytes than this, it takes no further entry. Its reader then finds the
/// copies in the processor's caches.
const BATCH_BYTES: usize = 32 << 10;

/// The request of a scan.
pub(crate) struct ScanRequest<'a> {
    pub(crate) start: Start<'a>,
    pub(crate) direction: Direction,
    /// The bound beyond which nothing is needed, in the scan's direction.
    pub(crate) until: Bound<&'a [u8]>,
    /// The maximum number of entries.
    pub(crate) limit: usize,
    /// The number of bytes of each value that are needed.
    pub(crate) value_limit: usize,
}

/// The start of [`BPlusTree::try_step`].
#[derive(Clone, Copy)]
pub(crate) enum StepStart<'a> {
    /// At the first position of the direction.
    Edge,
    /// At this one.
    Position(&'a [u8]),
}

/// The bound from which a step in a leaf goes on. Forward, it is the number of the first entry
/// after `from`. Backward, it is one more than the number of the last entry before `from`. Also
/// returns whether there is an entry at `from`.
#[inline]
fn step_from(
    view: &TreeView<'_>,
    from: StepStart<'_>,
    forward: bool,
) -> Result<(usize, bool), Torn> {
    Ok(match from {
        StepStart::Edge if forward => (0, false),
        StepStart::Edge => (view.len(), false),
        StepStart::Position(bytes) => {
            // Backward, the entries before `i` are those before the position, whether it is there
            // or not.
            let (i, found) = view.search_any(bytes)?;
            (i + usize::from(found && forward), found)
        }
    })
}

impl BPlusTree {
    /// See [`Unique::try_step`](crate::Unique::try_step).
    #[inline]
    pub(crate) fn try_step(
        &self,
        guard: &Guard,
        from: StepStart<'_>,
        direction: Direction,
        entry: &mut StepEntry,
    ) -> Option<Stepped> {
        let forward = direction == Direction::Forward;
        let leaf = match from {
            StepStart::Edge => self.edge(forward, guard),
            StepStart::Position(bytes) => self.inner.find(SearchKey::new(bytes), guard),
        };
        // Try only once. If the leaf is torn or obsolete, the scan handles it.
        let view = leaf.read().ok()?;
        let (spot, is_present) = step_from(&view, from, forward).ok()?;
        // Within the leaf the neighbour is beside the bound. Beyond the end of the leaf it is in
        // the next one.
        let next = match forward {
            true => Some(spot).filter(|&i| i < view.len()),
            false => spot.checked_sub(1),
        };
        match next {
            Some(i) => view.copy_entry(i, entry).ok()?,
            // There is nothing beyond the last leaf, whose range has no end. The validation below
            // shows that it is still the last one: a leaf that was split is obsolete.
            None if leaf.is(self.edge(!forward, guard)) => {}
            None => return None,
        }
        entry.seen = None;
        let found = next.is_some();
        // Everything, including `is_present`, is of the view's version.
        view.is_valid().then_some(Stepped { is_present, found })
    }

    /// The first leaf or the last. It may be obsolete.
    fn edge<'g>(&self, first: bool, guard: &'g Guard) -> TreeLeaf<'g> {
        let end = if first { RangeEnd::Low } else { RangeEnd::High };
        self.inner.find_edge(end, guard)
    }

    /// Fills `batch`, which is cleared first, with the next requested entries, all of one leaf and
    /// of one instant. There are none only at the end. Of the batch's hints only `any_order` is
    /// used, to decide whether to set `seen`.
    pub(crate) fn scan<'g>(
        &'g self,
        guard: &'g Guard,
        request: &ScanRequest<'_>,
        batch: &mut Batch<'g>,
    ) {
        let forward = request.direction == Direction::Forward;
        let end = if forward {
            RangeEnd::High
        } else {
            RangeEnd::Low
        };
        let mut cursor = Cursor::new(request);
        let backoff = Backoff::new();
        loop {
            // (1) Discard the entries of a failed attempt (B25).
            batch.clear();
            let FencedLeaf { leaf, fence } = self.inner.find_fenced(cursor.seek(), end, guard);
            // An obsolete leaf has successors, which a new descent finds, with their fences.
            let Ok(view) = leaf.read() else {
                backoff.snooze();
                continue;
            };
            // (2), (3) Validate before anything that was collected is used, including an error.
            let collected = collect(&view, &cursor, request, batch);
            if !view.is_valid() {
                backoff.snooze();
                continue;
            }
            let Ok(stopped) = collected else {
                continue;
            };
            // A caller that uses the whole scan in any order may remove what it has read
            // (`remove_scanned`).
            batch.seen = view.seen(self.shared.number.0).filter(|_| batch.any_order);
            // (4) The copies are as the leaf was at the view's version, and the fence is its own.
            match (stopped, fence) {
                // The request ends within the leaf, or the leaf is the last one.
                (Some(Stop::Outside), _) | (None, None) => {
                    batch.done = true;
                    return;
                }
                // Continue after the last entry. A backward scan continues strictly before
                // `resume`.
                (Some(Stop::Full), _) => {
                    let mut resume = std::mem::take(&mut batch.resume);
                    resume.extend_from_slice(batch.key(batch.len() - 1));
                    if forward {
                        // Positions are prefix-free, so there is nothing in between.
                        resume.push(0);
                    }
                    batch.resume = resume;
                    return;
                }
                // The whole leaf was returned: everything before the fence.
                (None, Some(fence)) if !batch.is_empty() => {
                    batch.resume.extend_from_slice(fence);
                    return;
                }
                // The leaf has no entry for the scan. Continue, since no entries would mean the
                // end.
                (None, Some(fence)) => cursor.go_on(fence),
            }
        }
    }
}

/// The reason why copying the entries of a leaf stopped before its end.
enum Stop {
    /// The batch is full.
    Full,
    /// An entry is beyond what the scan requests.
    Outside,
}

/// The entries of a leaf that a scan has not passed.
struct Span {
    /// Their numbers.
    entries: Range<usize>,
    /// Whether the leaf has others beyond them, which the scan doesn't request.
    cut: bool,
}

/// The progress of a scan.
struct Cursor<'a> {
    start: Start<'a>,
    forward: bool,
    /// The fence at which it continues, once it has left the first leaf.
    fence: Option<&'a [u8]>,
}

impl<'a> Cursor<'a> {
    fn new(request: &ScanRequest<'a>) -> Self {
        Cursor {
            start: request.start,
            forward: request.direction == Direction::Forward,
            fence: None,
        }
    }

    fn go_on(&mut self, fence: &'a [u8]) {
        self.fence = Some(fence);
    }

    /// The next leaf.
    fn seek(&self) -> Seek<'a> {
        // After the first leaf, the fence says where the next one begins. Before it, the start
        // does.
        match (self.fence, self.start, self.forward) {
            (Some(fence), _, true) => Seek::At(fence),
            (Some(fence), _, false) => Seek::Before(fence),
            (None, Start::Edge, true) => Seek::First,
            (None, Start::Edge, false) => Seek::Last,
            (None, Start::Past(p), false) => Seek::Before(p),
            (None, Start::At(p) | Start::Past(p), _) => Seek::At(p),
        }
    }

    /// The entries of the leaf that the scan has not passed, up to `until`.
    fn span(&self, view: &TreeView<'_>, until: Bound<&[u8]>) -> Result<Span, Torn> {
        let (mut from, mut to) = self.range(view)?;
        let (position, included) = match until {
            Bound::Included(position) if from < to => (position, true),
            Bound::Excluded(position) if from < to => (position, false),
            // There is no bound, or nothing that it could shorten.
            _ => {
                let entries = from..to;
                return Ok(Span {
                    entries,
                    cut: false,
                });
            }
        };
        // The slot where `until` is or would be among the leaf's entries. Forward, it is mostly
        // near `from`. `until` only shortens the span, and never below zero.
        let whole = (from, to);
        if self.forward {
            let (i, found) = view.search_from(from, position)?;
            to = to.min(i + usize::from(found && included)).max(from);
        } else {
            let (i, found) = view.search_any(position)?;
            from = from.max(i + usize::from(found && !included)).min(to);
        }
        Ok(Span {
            entries: from..to,
            cut: (from, to) != whole,
        })
    }

    /// Like `span`, without a bound: the first entry, and the one after the last.
    fn range(&self, view: &TreeView<'_>) -> Result<(usize, usize), Torn> {
        let n = view.len();
        let start = match self.fence {
            // A leaf that begins at the fence has only entries that were not returned. A leaf that
            // has replaced it since may begin before the fence, and have entries that were
            // returned.
            Some(fence) if self.forward => Start::At(fence),
            Some(fence) => Start::Past(fence),
            None => self.start,
        };
        let (position, past) = match start {
            Start::At(p) if n > 0 => (p, false),
            Start::Past(p) if n > 0 => (p, true),
            _ => return Ok((0, n)),
        };
        let (i, found) = view.search_any(position)?;
        // `i` is the position's own slot, or that of the first entry after it.
        Ok(match (self.forward, past) {
            (true, past) => (i + usize::from(found && past), n),
            (false, past) => (0, i + usize::from(found && !past)),
        })
    }
}

/// Copies the requested entries from a leaf. Returns why it stopped, or `None` if it has copied
/// all entries up to the end of the leaf.
fn collect<'g>(
    view: &TreeView<'g>,
    cursor: &Cursor<'_>,
    request: &ScanRequest<'_>,
    batch: &mut Batch<'g>,
) -> Result<Option<Stop>, Torn> {
    let Span { entries, cut } = cursor.span(view, request.until)?;
    let wanted = entries.len().min(request.limit);
    batch.entries.reserve(wanted);
    let front = view.front();
    // In the scan's direction.
    let (mut i, step) = match cursor.forward {
        true => (entries.start, 1),
        false => (entries.end.wrapping_sub(1), usize::MAX),
    };
    for _ in 0..wanted {
        if batch.bytes.len() > BATCH_BYTES {
            return Ok(Some(Stop::Full));
        }
        view.add_to(batch, i, &front, request.value_limit)?;
        i = i.wrapping_add(step);
    }
    // The limit is reached, and the next entry is requested, too: the scan continues after the last
    // one.
    if wanted < entries.len() {
        return Ok(Some(Stop::Full));
    }
    // Entries beyond `until` mean that there are none for the scan in later leaves either.
    Ok(cut.then_some(Stop::Outside))
}
