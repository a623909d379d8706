//! Reading many entries: a leaf at a time, each as of one instant, and on from its fence.

use super::Tree;
use crate::raw::sought::Sought;
use crate::raw::view::View;
use crate::raw::words::Torn;
use crate::route::{End, Found, Route, Seek};
use crate::run::Run;
use crate::sync::Backoff;
use crate::{Batch, Direction, Start};
use crossbeam_epoch::Guard;

/// A scan's batch ends before its bytes pass this, if it has an entry.
const BATCH_BYTES: usize = 1 << 20;

/// What a scan wants.
pub(crate) struct Wish<'a> {
    pub(crate) start: Start<'a>,
    pub(crate) direction: Direction,
    /// Entries whose positions begin so; the first other one ends the scan.
    pub(crate) within: &'a [u8],
    /// The most entries.
    pub(crate) limit: usize,
}

impl<R: Route> Tree<R> {
    /// Appends the values of all entries whose positions begin so to `run`, without their positions, as of one instant, if it can be told from one leaf which those
    /// are. Otherwise false, whatever was appended: then `scan` must do it.
    #[inline]
    pub(crate) fn values_within(&self, guard: &Guard, within: &[u8], run: &mut Run) -> bool {
        // What begins so comes after `within` itself: none is in a leaf before the one that would have that.
        let Ok(view) = self.route.find(Sought::new(within), guard).read() else {
            return false;
        };
        let copy = || -> Result<bool, Torn> {
            let (first, _) = view.search_any(within)?;
            let Some(sought) = view.behind_prefix(within) else {
                return Ok(first < view.len());
            };
            for i in first..view.len() {
                if !view.begins_with(i, sought)? {
                    return Ok(true);
                }
                let from = run.bytes.len();
                view.copy_value(&view.record_of(i)?, &mut run.bytes)?;
                run.end_entry(from, from, None);
            }
            // The next leaf may have more.
            Ok(false)
        };
        matches!({ copy }(), Ok(true)) && view.holds()
    }

    /// As `scan` into a batch, for one entry that lies in the same leaf as the position it is sought from. Otherwise false: then `scan` must do it.
    #[inline]
    pub(crate) fn scan_one(
        &self,
        guard: &Guard,
        start: Start<'_>,
        direction: Direction,
        batch: &mut Batch,
    ) -> bool {
        let (position, past) = match start {
            Start::Edge => return false,
            Start::At(position) => (position, false),
            Start::Past(position) => (position, true),
        };
        let forward = direction == Direction::Forward;
        let sought = Sought::new(position);
        let leaf = self.route.find(sought, guard);
        let prefix = leaf.prefix_len();
        let (Ok(view), Some(suffix)) = (leaf.read(), sought.suffix(prefix)) else {
            return false;
        };
        let look = || -> Result<bool, Torn> {
            let spot = view.search(sought.head(prefix), suffix)?;
            let (i, found) = (spot.i, spot.record.is_some());
            let i = match forward {
                true => Some(i + usize::from(found && past)).filter(|&i| i < view.len()),
                false => (i + usize::from(found && !past)).checked_sub(1),
            };
            batch.clear();
            i.map_or(Ok(false), |i| view.only(i, batch).map(|()| true))
        };
        if !matches!({ look }(), Ok(true)) || !view.holds() {
            return false;
        }
        let Batch {
            bytes,
            entries,
            resume,
            ..
        } = batch;
        resume.extend_from_slice(&bytes[..entries[0].1]);
        if forward {
            // Positions are prefix-free: nothing lies between.
            resume.push(0);
        }
        true
    }

    /// Fills `run` (cleared first) with the next entries as wished, all of one leaf and of one instant: none only at the end. `resume` gets
    /// the position from which to go on. Returns whether the end was reached.
    pub(crate) fn scan(
        &self,
        guard: &Guard,
        wish: &Wish<'_>,
        run: &mut Run,
        resume: &mut Vec<u8>,
    ) -> bool {
        let forward = wish.direction == Direction::Forward;
        let end = if forward { End::High } else { End::Low };
        let mut cursor = Cursor::new(wish);
        let backoff = Backoff::new();
        loop {
            run.clear();
            let Some(Found { leaf, fence }) = self.route.find_fenced(cursor.seek(), end, guard)
            else {
                resume.clear();
                return true;
            };
            let Ok(view) = leaf.read() else {
                backoff.snooze();
                continue;
            };
            let collected = collect(&view, &cursor, wish, run);
            if !view.holds() {
                backoff.snooze();
                continue;
            }
            let Ok(stopped) = collected else {
                continue;
            };
            match (stopped, fence) {
                (Some(Stop::Outside), _) | (None, None) => {
                    resume.clear();
                    return true;
                }
                (Some(Stop::Full), _) => {
                    resume.clear();
                    resume.extend_from_slice(run.position(run.len() - 1));
                    if forward {
                        // Positions are prefix-free: nothing lies between.
                        resume.push(0);
                    }
                    return false;
                }
                (None, Some(fence)) if run.len() > 0 => {
                    *resume = fence;
                    return false;
                }
                (None, Some(fence)) => cursor.go_on(fence),
            }
        }
    }
}

/// Why the copying of a leaf's entries stopped before its end.
enum Stop {
    /// The batch is full.
    Full,
    /// An entry is beyond what the scan wants.
    Outside,
}

/// How far a scan has come.
struct Cursor<'a> {
    start: Start<'a>,
    forward: bool,
    /// The fence that it goes on from, once it has left the first leaf.
    fence: Option<Vec<u8>>,
}

impl<'a> Cursor<'a> {
    fn new(wish: &Wish<'a>) -> Self {
        Cursor {
            start: wish.start,
            forward: wish.direction == Direction::Forward,
            fence: None,
        }
    }

    fn go_on(&mut self, fence: Vec<u8>) {
        self.fence = Some(fence);
    }

    /// The leaf to look at.
    fn seek(&self) -> Seek<'_> {
        match (&self.fence, self.start, self.forward) {
            (Some(fence), _, true) => Seek::At(fence),
            (Some(fence), _, false) => Seek::Before(fence),
            (None, Start::Edge, true) => Seek::First,
            (None, Start::Edge, false) => Seek::Last,
            (None, Start::Past(p), false) => Seek::Before(p),
            (None, Start::At(p) | Start::Past(p), _) => Seek::At(p),
        }
    }

    /// The entries of the leaf that the scan has before it.
    fn range(&self, view: &View<'_>) -> Result<(usize, usize), Torn> {
        let n = view.len();
        let start = match &self.fence {
            // All of a leaf that was reached over its fence lies before the scan; but when the leaf at hand is a new and larger one, not all.
            Some(fence) if self.forward => Start::At(fence),
            Some(fence) => Start::Past(fence),
            None => self.start,
        };
        let (position, past) = match start {
            Start::Edge => return Ok((0, n)),
            Start::At(p) => (p, false),
            Start::Past(p) => (p, true),
        };
        let (i, found) = view.search_any(position)?;
        Ok(match (self.forward, past) {
            (true, past) => (i + usize::from(found && past), n),
            (false, past) => (0, i + usize::from(found && !past)),
        })
    }
}

/// Copies the entries that the scan wants from a leaf. None: up to its end.
fn collect(
    view: &View<'_>,
    cursor: &Cursor<'_>,
    wish: &Wish<'_>,
    run: &mut Run,
) -> Result<Option<Stop>, Torn> {
    let (from, to) = cursor.range(view)?;
    run.reserve(to.saturating_sub(from).min(wish.limit));
    let mut one = |i: usize| {
        if run.len() >= wish.limit || run.bytes.len() > BATCH_BYTES {
            return Ok(Some(Stop::Full));
        }
        view.collect_whole(i, run)?;
        let within = wish.within.is_empty() || run.last_begins_with(wish.within);
        if !within {
            run.pop();
            return Ok(Some(Stop::Outside));
        }
        Ok(None)
    };
    let mut in_order = from..to;
    loop {
        let next = if cursor.forward {
            in_order.next()
        } else {
            in_order.next_back()
        };
        let Some(i) = next else { return Ok(None) };
        if let Some(stop) = one(i)? {
            return Ok(Some(stop));
        }
    }
}
