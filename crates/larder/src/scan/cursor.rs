//! The scan cursor: where a scan goes, and how far it has come.
//!
//! # Definitions
//!
//! - *Path*: where the program can find something: nowhere, under some keys, in a range of an
//!   ordered_set, everywhere. It follows from the program's plan.
//! - *Place*: how far the scan has come on its path, as a position of the index. A position is
//!   bytes (its key, or its hash and its key); it stays a place whatever happens to the table.
//! - *Batch*: the entries of a leaf or less, which the index copied at one instant.
//!
//! # Steps
//!
//! 1. `fill` reads the next batch from the place on, and moves the place behind it.
//! 2. The scan deals with the entries one by one. If it stops among them, `stop` moves the place
//!    back behind the last that was dealt with.
//! 3. Between slices the place is all that is kept. `to_bytes` and `go_to` write it into a
//!    continuation and read it again.
//!
//! # Batches without order
//!
//! A scan of everything that nobody wants in order takes leaves as they are (`Batch::any_order`). A
//! batch then has no order in which "behind entry i" is a place. If such a scan stops within a
//! batch, the cursor goes back to where the batch began, and remembers the entries that were dealt
//! with: by their keys, in a bag by their positions. From there on it reads in order and leaves
//! those out, until it is behind the batch.
//!
//! ```text
//!   batch, from p to q     k7 k2 k9 │ k4 k1        stops behind k9
//!   cursor                 Resume(p), passed {k7 k2 k9}, until q
//!   the next batches       k1 k4                   in order; from q on in any order again
//! ```
//!
//! # Invariants
//!
//! 1. An entry that is there throughout is given once: entries before the place were given, or are
//!    not on the path; those behind it were not, unless `passed` names them.
//! 2. `passed` names entries between the place and its `until` alone.

use crate::budget::Budget;
use crate::error::Error;
use crate::index::Index;
use crate::indexes::{self, Candidates, Gathered};
use crate::ops::Operation;
use crate::table::Table;
use larder_index::{Batch, Direction, Start};
use larder_matchspec::{KeyOrder, Plan, Program};
use larder_term::object::KeyForm;
use std::collections::HashSet;
use std::ops::Bound;

/// Entries asked of the index at a time when the caller wants few results: results may be rarer
/// than entries.
const FEW: usize = 16;

/// The path of a scan: see the module.
enum Path {
    Nothing,
    /// Under these index keys, in this order.
    Keys(Vec<Vec<u8>>),
    /// Between two order keys.
    Range(Bound<Vec<u8>>, Bound<Vec<u8>>),
    Full,
    /// Under keys that an index tells, which are being gathered.
    Gathering(Box<Candidates>),
    /// Under the keys that an index told: positions of theirs, in the order of the scan, and keys.
    Gathered(Vec<(Vec<u8>, Vec<u8>)>),
}

/// How far a scan has come on its path. On a path of keys it is a place under the current key.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    /// At the beginning (of the current key).
    Begin,
    /// Past the entry with this position.
    Past(Vec<u8>),
    /// Where a batch said that the next begins.
    Resume(Vec<u8>),
    /// At the end of everything.
    End,
}

/// Entries that a scan leaves out, until it is behind all of them.
struct Passed {
    /// What `name` says of them.
    names: HashSet<Vec<u8>>,
    /// The position behind all of them; the end if there is none.
    until: Option<Vec<u8>>,
}

/// A place on a path.
pub(crate) struct Cursor {
    path: Path,
    direction: Direction,
    place: Place,
    /// The place at which the last batch began, and the current key then.
    began: (Place, usize),
    /// The entries behind `place` that were dealt with already; see the module.
    passed: Option<Passed>,
    /// The current key of a path of keys, or of those that were gathered.
    key: usize,
    /// Whether keys come in order; see `is_over`.
    ordered: bool,
}

impl Cursor {
    /// At the beginning of where `program` may find something in `table`; everywhere for no
    /// program. `limit` is how many results are wanted at first.
    pub(crate) fn new(
        table: &Table,
        program: Option<&Program>,
        direction: Direction,
        limit: Option<usize>,
    ) -> Self {
        let direction = table.way(direction);
        let path = match program {
            Some(program) => path(table, program, direction, limit),
            None => Path::Full,
        };
        Cursor {
            path,
            direction,
            place: Place::Begin,
            began: (Place::Begin, 0),
            passed: None,
            key: 0,
            ordered: table.kind().is_ordered(),
        }
    }

    /// Moves the cursor to a position of a path that is everywhere, going forward.
    pub(crate) fn begin_at(&mut self, position: Vec<u8>) {
        debug_assert!(matches!(self.path, Path::Full));
        self.place = Place::Resume(position);
    }

    /// Confines a scan that has not begun to a range of an ordered_set.
    pub(crate) fn confine(&mut self, low: Bound<Vec<u8>>, high: Bound<Vec<u8>>) {
        debug_assert!(self.ordered && self.place == Place::Begin);
        self.path = Path::Range(low, high);
    }

    /// Gathers the keys that an index tells, if that is the path; false if the budget is used up
    /// before all are there. Then the next call goes on.
    #[inline]
    pub(crate) fn gather(
        &mut self,
        table: &Table,
        op: &Operation<'_>,
        budget: &mut Budget,
    ) -> bool {
        match &mut self.path {
            Path::Gathering(candidates) => {
                let gathered = candidates.gather(op, budget);
                self.use_gathered(gathered, table, op)
            }
            _ => true,
        }
    }

    #[cold]
    fn use_gathered(&mut self, gathered: Gathered, table: &Table, op: &Operation<'_>) -> bool {
        let keys = match gathered {
            Gathered::More => return false,
            // A place is a position of the table, whatever the path is.
            Gathered::Scan => {
                self.path = Path::Full;
                return true;
            }
            Gathered::Keys(keys) => keys,
        };
        // Behind the place, in the order of positions.
        let mut gathered = Vec::with_capacity(keys.len());
        for key in keys {
            let mut position = Vec::new();
            op.store.index.position(table.key(&key), &mut position);
            gathered.push((position, key));
        }
        gathered.sort_unstable();
        if self.direction == Direction::Backward {
            gathered.reverse();
        }
        let index = &op.store.index;
        let place = match &self.place {
            Place::Begin | Place::End => None,
            Place::Past(place) | Place::Resume(place) => Some(index.key_position(place).to_vec()),
        };
        if let Some(place) = place {
            // In a bag, more objects of the key at the place may be wanted. Elsewhere its one
            // object was dealt with, unless the place is where a batch began.
            let stays = !index.is_unique() || matches!(self.place, Place::Resume(_));
            let is_at_place = |own: &[u8]| index.key_position(own) == place;
            gathered.retain(|(position, _)| match self.direction {
                _ if is_at_place(position) => stays,
                Direction::Forward => *position > place,
                Direction::Backward => *position < place,
            });
            let is_first = gathered.first().is_some_and(|(own, _)| is_at_place(own));
            if !is_first || index.is_unique() {
                self.place = Place::Begin;
            }
        }
        (self.key, self.path) = (0, Path::Gathered(gathered));
        true
    }

    /// Fills `batch` with the next entries on the path and gives how many of them lie on it, 0 at
    /// its end. `few` is how many the caller could use (0: any number), and `any_order` says that
    /// it wants all and in no order. The cursor stands behind those entries then; `stop` moves it
    /// back among them.
    pub(crate) fn fill(
        &mut self,
        table: &Table,
        op: &Operation<'_>,
        (few, any_order): (usize, bool),
        batch: &mut Batch,
    ) -> usize {
        batch.want = if few == 0 { 0 } else { few.max(FEW) };
        loop {
            batch.clear();
            // Behind the batch in which the scan stopped there is nothing left to leave out.
            if self.passed.is_some() {
                self.forget_passed();
            }
            batch.any_order = any_order && self.passed.is_none();
            // `stop` goes back to here, if the batch has no order or no entry of it was dealt with.
            self.began = (self.place.clone(), self.key);
            let mut usable = None;
            if self.place == Place::End {
                return 0;
            }
            match &mut self.path {
                Path::Nothing => self.place = Place::End,
                // The place is one under the current key; `Begin` again says that the key is done.
                Path::Keys(keys) => match keys.get(self.key) {
                    None => self.place = Place::End,
                    Some(key) => {
                        let found = under_key(table, op, key, &self.place, batch);
                        usable = Some(found.0);
                        self.place = found.1;
                        if self.place == Place::Begin {
                            self.key += 1;
                        }
                    }
                },
                Path::Gathered(keys) => match keys.get(self.key) {
                    None => self.place = Place::End,
                    Some((_, key)) => {
                        let found = under_key(table, op, key, &self.place, batch);
                        usable = Some(found.0);
                        self.place = found.1;
                        if self.place == Place::Begin {
                            self.key += 1;
                        }
                    }
                },
                Path::Gathering(_) => return 0,
                Path::Range(low, high) => {
                    // The scan starts at the near end, or where the last batch ended, and goes to
                    // the far end.
                    let (near, far) = match self.direction {
                        Direction::Forward => (low, high),
                        Direction::Backward => (high, low),
                    };
                    let start = start(&self.place, near, self.direction);
                    // The far end is lent to the batch: a hint to the index, so that it copies
                    // nothing beyond. What an index has copied beyond all the same is cut.
                    std::mem::swap(&mut batch.until, far);
                    op.store.index.scan(op.guard, start, self.direction, batch);
                    std::mem::swap(&mut batch.until, far);
                    cut(batch, far, self.direction);
                    self.go_behind(batch);
                }
                Path::Full => {
                    let start = start(&self.place, &Bound::Unbounded, self.direction);
                    op.store.index.scan(op.guard, start, self.direction, batch);
                    if self.passed.is_some() {
                        self.leave_out(op, batch);
                    }
                    self.go_behind(batch);
                }
            }
            // A batch of which nothing lies on the path, or all was dealt with, is no end: the
            // place is behind it, and the next is read.
            let usable = usable.unwrap_or(batch.len());
            if usable > 0 {
                return usable;
            }
        }
    }

    /// Moves the cursor behind a batch, whose memory for a position it exchanges for its own.
    fn go_behind(&mut self, batch: &mut Batch) {
        match &mut self.place {
            Place::Resume(position) if !batch.done => {
                std::mem::swap(position, &mut batch.resume);
            }
            place => *place = behind(batch),
        }
    }

    /// Leaves out what was dealt with already.
    #[cold]
    fn leave_out(&mut self, op: &Operation<'_>, batch: &mut Batch) {
        let Some(passed) = &self.passed else {
            return;
        };
        let wanted: Vec<bool> = (0..batch.len())
            .map(|i| !passed.names.contains(&name(op, batch, i)))
            .collect();
        let mut wanted = wanted.into_iter();
        batch.entries.retain(|_| wanted.next() == Some(true));
    }

    /// Forgets what was dealt with already, if that lies behind.
    #[cold]
    fn forget_passed(&mut self) {
        if let (Some(passed), Place::Resume(here)) = (&self.passed, &self.place) {
            if passed.until.as_ref().is_some_and(|until| here >= until) {
                self.passed = None;
            }
        }
    }

    /// Whether nothing is left on the path.
    #[inline]
    pub(crate) fn is_at_end(&self) -> bool {
        self.place == Place::End
    }

    /// Whether the path is one of keys, and it has been under all of them. Several keys of an
    /// ordered_set are a part of it as any other, as in `ets`: there one learns only by going on
    /// that nothing is left.
    pub(crate) fn is_over(&self) -> bool {
        match &self.path {
            Path::Keys(keys) if self.ordered && keys.len() > 1 => false,
            Path::Keys(keys) => self.place == Place::Begin && self.key == keys.len(),
            _ => false,
        }
    }

    /// Moves the cursor to just behind the first `dealt` entries of the batch that it filled last.
    pub(crate) fn stop(&mut self, table: &Table, op: &Operation<'_>, batch: &Batch, dealt: usize) {
        if batch.unordered {
            return self.stop_unordered(op, batch, dealt);
        }
        let Some(last) = dealt.checked_sub(1) else {
            (self.place, self.key) = self.began.clone();
            return;
        };
        // In order, the place is behind the last entry that was dealt with, wherever that lies in
        // the table by the time the scan is resumed.
        let mut position = Vec::new();
        let key = table.key(batch.key(last));
        op.store
            .index
            .entry_position(batch, last, key, &mut position);
        // The batch may have been the last of its key: back to that key.
        let key = match &self.path {
            Path::Keys(keys) => keys.iter().position(|key| key == batch.key(last)),
            Path::Gathered(keys) => keys.iter().position(|(_, key)| key == batch.key(last)),
            _ => None,
        };
        self.key = key.unwrap_or(self.key);
        self.place = Place::Past(position);
    }

    #[cold]
    fn stop_unordered(&mut self, op: &Operation<'_>, batch: &Batch, dealt: usize) {
        // The place behind the batch is where nothing has to be left out any more.
        self.passed = Some(Passed {
            names: (0..dealt).map(|i| name(op, batch, i)).collect(),
            until: match &self.place {
                Place::Past(position) | Place::Resume(position) => Some(position.clone()),
                Place::Begin | Place::End => None,
            },
        });
        self.place = self.began.0.clone();
    }

    /// The place, as bytes. None within a batch without order.
    pub(crate) fn to_bytes(&self) -> Option<Vec<u8>> {
        if self.passed.is_some() {
            return None;
        }
        let Path::Gathered(keys) = &self.path else {
            return Some(self.place.to_bytes(self.key));
        };
        // What was gathered is gathered anew when the scan goes on. So the place is a position of
        // the table, not the number of a key.
        let between = self.place == Place::Begin && self.key > 0;
        let place = match (keys.get(self.key), self.direction) {
            _ if !between => self.place.clone(),
            (None, _) => Place::End,
            (Some((next, _)), Direction::Forward) => Place::Resume(next.clone()),
            (Some(_), Direction::Backward) => Place::Past(keys[self.key - 1].0.clone()),
        };
        Some(place.to_bytes(0))
    }

    /// Goes to a place that `to_bytes` wrote for the same path.
    pub(crate) fn go_to(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let (Some((tag, rest)), true) = (bytes.split_first(), bytes.len() >= 9) else {
            return Err(Error::BadContinuation);
        };
        let (number, position) = rest.split_at(8);
        let number = number.try_into().map_or(0, u64::from_le_bytes);
        let keys = match &self.path {
            Path::Keys(keys) => keys.len() as u64,
            // The path had keys, maybe, when the table had objects.
            Path::Nothing => u64::MAX,
            _ => 0,
        };
        if number > keys {
            return Err(Error::BadContinuation);
        }
        self.key = number as usize;
        self.place = match (tag, position.is_empty()) {
            (0, true) => Place::Begin,
            (1, false) => Place::Past(position.to_vec()),
            (2, false) => Place::Resume(position.to_vec()),
            (3, true) => Place::End,
            _ => return Err(Error::BadContinuation),
        };
        Ok(())
    }
}

impl Place {
    /// A tag, the number of the key, the position.
    fn to_bytes(&self, key: usize) -> Vec<u8> {
        let (tag, position): (u8, &[u8]) = match self {
            Place::Begin => (0, &[]),
            Place::Past(p) => (1, p),
            Place::Resume(p) => (2, p),
            Place::End => (3, &[]),
        };
        let mut bytes = vec![tag];
        bytes.extend_from_slice(&(key as u64).to_le_bytes());
        bytes.extend_from_slice(position);
        bytes
    }
}

/// What identifies entry `i` of a batch in its table: its key, in a bag its position.
fn name(op: &Operation<'_>, batch: &Batch, i: usize) -> Vec<u8> {
    match &op.store.index {
        Index::Unique(_) => batch.key(i).to_vec(),
        Index::Multi(ix) => {
            let mut position = Vec::new();
            ix.entry_position(batch, i, &mut position);
            position
        }
    }
}

/// Whether the table had no object at an instant of the call, if one look tells.
fn is_seen_empty(table: &Table) -> bool {
    let guard = larder_index::pin();
    // A list that is being inserted has objects that are not all in the index.
    let Ok(op) = table.begin(&guard) else {
        return false;
    };
    match &op.store.index {
        Index::Unique(ix) => ix.is_seen_empty(&guard),
        Index::Multi(_) => false,
    }
}

/// Where the program's objects can be.
fn path(table: &Table, program: &Program, direction: Direction, limit: Option<usize>) -> Path {
    // What comes in later was not there throughout the scan.
    if is_seen_empty(table) {
        return Path::Nothing;
    }
    let order = match table.key_form() {
        KeyForm::Ordered => KeyOrder::Ordered,
        KeyForm::Hash { .. } => KeyOrder::Hash,
    };
    match program.plan(table.keypos(), order) {
        Plan::Nothing => Path::Nothing,
        Plan::Full => match indexes::candidates(table, program, limit, false) {
            Some(candidates) => Path::Gathering(Box::new(candidates)),
            None => Path::Full,
        },
        Plan::Range { low, high } => match indexes::candidates(table, program, limit, true) {
            Some(candidates) => Path::Gathering(Box::new(candidates)),
            None => Path::Range(low, high),
        },
        Plan::Keys(terms) => {
            let mut keys = Vec::with_capacity(terms.len());
            for term in terms {
                let mut key = Vec::new();
                table.encode_key(term.as_ref(), &mut key);
                keys.push(key);
            }
            distinct(&mut keys, table.kind().is_ordered(), direction);
            Path::Keys(keys)
        }
    }
}

/// Leaves each key once, in the scan's order for an ordered_set.
fn distinct(keys: &mut Vec<Vec<u8>>, ordered: bool, direction: Direction) {
    keys.sort_unstable();
    keys.dedup();
    if ordered && direction == Direction::Backward {
        keys.reverse();
    }
}

/// Reads objects under one key. Gives how many of the batch's first entries they are, and the place
/// behind them: `Begin` when the key is done.
fn under_key(
    table: &Table,
    op: &Operation<'_>,
    key: &[u8],
    place: &Place,
    batch: &mut Batch,
) -> (usize, Place) {
    let indexed = table.key(key);
    match &op.store.index {
        Index::Unique(ix) => {
            if *place == Place::Begin {
                let mut value = Vec::new();
                if ix.get(op.guard, indexed, &mut value) {
                    batch.push(key, &value);
                }
            }
            (batch.len(), Place::Begin)
        }
        Index::Multi(ix) => {
            if *place == Place::Begin && batch.want == 0 {
                // Most keys have few objects, and those behind them are of no use.
                batch.want = FEW;
            }
            let mut first = Vec::new();
            ix.first_position(indexed, &mut first);
            let start = match place {
                Place::Past(position) => Start::Past(position),
                Place::Resume(position) => Start::At(position),
                Place::Begin | Place::End => Start::At(&first),
            };
            ix.scan(op.guard, start, Direction::Forward, batch);
            match (0..batch.len()).position(|i| batch.key(i) != key) {
                Some(others) => (others, Place::Begin),
                None if batch.done => (batch.len(), Place::Begin),
                None => (batch.len(), behind(batch)),
            }
        }
    }
}

/// Where the next batch starts: at the place, or at the near end of the range if the scan is at its
/// beginning.
fn start<'p>(place: &'p Place, near: &'p Bound<Vec<u8>>, direction: Direction) -> Start<'p> {
    match (place, near) {
        (Place::Past(position), _) => Start::Past(position),
        (Place::Resume(position), _) if direction == Direction::Forward => Start::At(position),
        // Going backward, a batch resumes below the fence at which the last one ended.
        (Place::Resume(position), _) => Start::Past(position),
        (_, Bound::Included(position)) => Start::At(position),
        (_, Bound::Excluded(position)) => Start::Past(position),
        (_, Bound::Unbounded) => Start::Edge,
    }
}

/// Drops the entries beyond the far bound of a range. A batch that reached it is the last.
fn cut(batch: &mut Batch, far: &Bound<Vec<u8>>, direction: Direction) {
    let beyond = |key: &[u8]| match (far, direction) {
        (Bound::Unbounded, _) => false,
        (Bound::Included(end), Direction::Forward) => key > end.as_slice(),
        (Bound::Excluded(end), Direction::Forward) => key >= end.as_slice(),
        (Bound::Included(end), Direction::Backward) => key < end.as_slice(),
        (Bound::Excluded(end), Direction::Backward) => key <= end.as_slice(),
    };
    if batch.is_empty() || !beyond(batch.key(batch.len() - 1)) {
        return;
    }
    let (mut low, mut high) = (0, batch.len());
    while low < high {
        let middle = (low + high) / 2;
        if beyond(batch.key(middle)) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    batch.entries.truncate(low);
    batch.done = true;
}

/// The place behind a batch.
fn behind(batch: &Batch) -> Place {
    if batch.done {
        Place::End
    } else {
        Place::Resume(batch.resume.clone())
    }
}
