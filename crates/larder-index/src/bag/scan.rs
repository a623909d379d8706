//! Scans of a bag: they walk the entries in hash order, and give the objects of each list.
//!
//! ```text
//!  read      key | count | object, number | object, number | …    one entry of the hash order
//!  unpacked          key | object, number                          the first object: the key moves
//!            …  key | object, number | key | object, number        copies of the others, behind all
//! ```
//!
//! 1. The entries of a leaf are read at one instant, as a scan of a set reads them.
//! 2. Each list becomes entries of the batch, one for each object. The first object of a list stays
//!    where it was read: the key is moved to it, over the bytes between them. The others are copied
//!    behind all, each with its key.
//! 3. A tree key ends a batch. If it is the first of a batch, the batch has objects of the tree key
//!    alone, read from the tree.
//! 4. A scan in any order takes a leaf as it is, and makes objects of its lists in that order. If
//!    the leaf has a tree key, or is too much for one batch, it is read again, in order.
//!
//! Invariants:
//! 1. Behind each object of a batch lies the number of its arrival, as in a list: with the key it
//!    is the position of the object.
//! 2. A number stays when a list moves to the tree or back. So a scan that goes on within a key
//!    knows what it has given, whether the key is a list then or a tree key.
//! 3. The objects of one batch are of one instant: of a leaf's version, or of a stripe's.
//! 4. A scan goes on forward at its `resume`, backward strictly before it.

use super::list::{self, read_number, ListItem, TreeHeader};
use super::position::{self, parse, push_number, NumberBound, BEFORE_NUMBERS, PAST_NUMBERS};
use super::Bag;
use crate::btree::run::with_run;
use crate::btree::ScanRequest;
use crate::traits::HASH;
use crate::{Batch, Direction, Key, KeyRule, Start, Unique};
use crossbeam_epoch::Guard;
use smallvec::SmallVec;
use std::ops::{Bound, Range};

/// Once copies have added more bytes than this to a batch, it takes no further list.
const BATCH_BYTES: usize = 1 << 20;

/// An entry as it was read: where its key begins, where its list does, and where that ends.
type RawEntry = (usize, usize, usize);

/// Where a scan begins.
struct ScanStart {
    /// Hash and key; nothing for the edge.
    prefix: Vec<u8>,
    /// Which of the key's objects come first.
    within: Within,
}

/// Which objects of the key where a scan begins belong to it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    /// The scan begins at the edge.
    Edge,
    /// All.
    All,
    /// None.
    None,
    /// Those from the number on, in the direction of the scan.
    From(u64),
}

impl ScanStart {
    fn new(start: Start<'_>, direction: Direction) -> Self {
        let forward = direction == Direction::Forward;
        let (position, past) = match start {
            Start::Edge => {
                return ScanStart {
                    prefix: Vec::new(),
                    within: Within::Edge,
                }
            }
            Start::At(position) => (position, false),
            Start::Past(position) => (position, true),
        };
        // A position names a key, and one of its objects or a side of all of them.
        let (prefix, spot) = parse(position);
        let within = match spot {
            NumberBound::Before if forward => Within::All,
            NumberBound::Before => Within::None,
            NumberBound::Behind if forward => Within::None,
            NumberBound::Behind => Within::All,
            // Numbers are whole: strictly behind one is at the next. There is none behind the last.
            NumberBound::Number(n) if !past => Within::From(n),
            NumberBound::Number(n) if forward => {
                n.checked_add(1).map_or(Within::None, Within::From)
            }
            NumberBound::Number(n) => n.checked_sub(1).map_or(Within::None, Within::From),
        };
        ScanStart {
            prefix: prefix.to_vec(),
            within,
        }
    }

    /// Where the scan of the entries begins.
    fn start(&self) -> Start<'_> {
        match self.within {
            Within::Edge => Start::Edge,
            Within::None => Start::Past(&self.prefix),
            Within::All | Within::From(_) => Start::At(&self.prefix),
        }
    }

    /// On from behind all objects of a key.
    fn go_behind(&mut self, prefix: &[u8]) {
        prefix.clone_into(&mut self.prefix);
        self.within = Within::None;
    }

    /// The number of the first object of this key, in the direction of the scan, that belongs to
    /// it, if not all do.
    #[inline]
    fn bound(&self, key: &[u8]) -> Option<u64> {
        match self.within {
            Within::From(n) if self.prefix.get(HASH..) == Some(key) => Some(n),
            _ => None,
        }
    }
}

/// As `Multi::scan`.
pub(super) fn scan<R: KeyRule>(
    bag: &Bag<R>,
    guard: &Guard,
    start: Start<'_>,
    direction: Direction,
    batch: &mut Batch,
) {
    let mut from = ScanStart::new(start, direction);
    loop {
        // (1)
        bag.entries.scan(guard, from.start(), direction, batch);
        end_resume(direction, batch);
        match unpack(bag, &from, direction, batch) {
            Unpacked::All if batch.is_empty() && !batch.done => {
                // All that was read lies before the scan: objects of its first key. An empty batch
                // would say that there is no more, so the scan goes on.
                let resume = std::mem::take(&mut batch.resume);
                from = match direction {
                    Direction::Forward => ScanStart::new(Start::At(&resume), direction),
                    Direction::Backward => ScanStart::new(Start::Past(&resume), direction),
                };
            }
            Unpacked::All => return,
            // (4) From the same start: nothing of the unordered batch was given.
            Unpacked::Unordered => batch.any_order = false,
            Unpacked::InTree(key) => {
                // (3)
                scan_tree(bag, guard, &mut from, &key, direction, batch);
                // Empty: the key has no object behind the bound, and `from` is behind it; or it is
                // no tree key any more, and its list is read from the same start.
                if !batch.is_empty() {
                    return;
                }
            }
        }
    }
}

/// Makes a position of the bag of the position from which a scan of the entries goes on: the first
/// hash of a leaf, or behind a key.
fn end_resume(direction: Direction, batch: &mut Batch) {
    if batch.done {
        return;
    }
    if direction == Direction::Forward && batch.resume.len() > HASH {
        // A zero byte put it behind the key. Here it would be read as a number: behind all of the
        // key's objects is what it means.
        batch.resume.pop();
        batch.resume.push(PAST_NUMBERS);
    } else {
        batch.resume.push(BEFORE_NUMBERS);
    }
}

/// What became of the entries that were read.
enum Unpacked {
    /// Their objects are the batch, as far as they are in it.
    All,
    /// The first of them is of this key, which is a tree key.
    InTree(Vec<u8>),
    /// They came in no order, and one of them is a tree key, or they are too much for a batch.
    Unordered,
}

/// Step 2: makes objects of the lists of a batch, up to the first tree key, or until it is full.
fn unpack<R: KeyRule>(
    bag: &Bag<R>,
    from: &ScanStart,
    direction: Direction,
    batch: &mut Batch,
) -> Unpacked {
    // The entries that were read become raw ones, over the same bytes; objects are pushed in their
    // place.
    let mut raw = std::mem::take(&mut batch.raw);
    raw.clear();
    std::mem::swap(&mut raw, &mut batch.entries);
    // What was read is in the bytes already: only copies count.
    let (full, limit) = (batch.bytes.len() + BATCH_BYTES, batch.limit());
    let mut unpacked = Unpacked::All;
    // The key within which the scan begins, if it does, is the first: the entries are read from its
    // position on. No other key has a bound.
    let mut bound = match raw.first() {
        Some(&(key, list, _)) => from.bound(&batch.bytes[key..list]),
        None => None,
    };
    for &(key, list, end) in &raw {
        // A tree key, or a full batch, ends the batch here.
        let stops = batch.bytes.len() > full || batch.entries.len() >= limit;
        if !stops && !list::is_in_tree(&batch.bytes[list..end]) {
            let bound = bound.take();
            match direction {
                Direction::Forward => spread((key, list, end), bound, batch),
                Direction::Backward => spread_backward((key, list, end), bound, batch),
            }
            continue;
        }
        let key = batch.bytes[key..list].to_vec();
        // No object of this key was given. The rest goes on from here: by the tree if the key is
        // the first, else in the next batch.
        if batch.unordered {
            unpacked = Unpacked::Unordered;
        } else if batch.is_empty() {
            unpacked = Unpacked::InTree(key);
        } else {
            stop(bag, &key, before(direction), batch);
        }
        break;
    }
    batch.raw = raw;
    unpacked
}

/// In the place of a number: before all objects of a key, in this direction.
fn before(direction: Direction) -> u8 {
    match direction {
        Direction::Forward => BEFORE_NUMBERS,
        Direction::Backward => PAST_NUMBERS,
    }
}

/// In the place of a number: behind all objects of a key, in this direction.
fn behind(direction: Direction) -> u8 {
    match direction {
        Direction::Forward => PAST_NUMBERS,
        Direction::Backward => BEFORE_NUMBERS,
    }
}

/// The batch ends here: the scan goes on before or behind the objects of a key.
fn stop<R: KeyRule>(bag: &Bag<R>, key: &[u8], spot: u8, batch: &mut Batch) {
    // What it said before may lie behind objects that were read and not given.
    let mut resume = std::mem::take(&mut batch.resume);
    hash_and_key(bag, key, &mut resume);
    resume.push(spot);
    batch.resume = resume;
    batch.done = false;
}

/// Writes what all positions of a key begin with to `out`, which is cleared first.
fn hash_and_key<R: KeyRule>(bag: &Bag<R>, key: &[u8], out: &mut Vec<u8>) {
    let hash = bag.entries.keys.hash(key);
    bag.entries.position(Key { bytes: key, hash }, out);
}

/// Makes objects of a list, those from a number on. The first stays where it is.
#[inline(always)]
fn spread((key, list, end): RawEntry, bound: Option<u64>, batch: &mut Batch) {
    // A list begins with its count. Numbers ascend, so what belongs to the scan is the list's end.
    let mut at = list + 1;
    let first = loop {
        let Some(item) = list::items_from(&batch.bytes[..end], at).next() else {
            return;
        };
        at = item.end;
        if bound.is_none_or(|bound| item.number >= bound) {
            break item.object;
        }
    };
    let moved = first.start - (list - key);
    // From here on the key lies in front of its first object, over the count and the objects before
    // the bound. The rest of the list is untouched, and is copied with the key from there.
    keep_first(key..list, first, batch);
    if at < end && !batch.firsts {
        copy_rest(moved..moved + (list - key), at..end, batch);
    }
}

/// Copies the objects that lie there, each behind a copy of its key.
#[inline(never)]
fn copy_rest(key: Range<usize>, rest: Range<usize>, batch: &mut Batch) {
    let mut at = rest.start;
    while let Some(item) = list::items_from(&batch.bytes[..rest.end], at).next() {
        at = item.end;
        copy(key.clone(), &item, batch);
    }
}

/// As `spread`, in descending order.
fn spread_backward((key, list, end): RawEntry, bound: Option<u64>, batch: &mut Batch) {
    // Items can only be walked upwards, so they are noted first. All objects are copied: no key is
    // moved over the list while it is needed.
    let items: SmallVec<[ListItem; 16]> = list::items_from(&batch.bytes[..end], list + 1).collect();
    for item in items.iter().rev() {
        if bound.is_none_or(|bound| item.number <= bound) {
            copy(key..list, item, batch);
        }
    }
}

/// Makes an entry of the first object of a list that belongs to the scan, where it lies: the key
/// comes before it, over what nobody needs any more.
#[inline(always)]
fn keep_first(key: Range<usize>, object: Range<usize>, batch: &mut Batch) {
    let moved = object.start - key.len();
    move_up(&mut batch.bytes, key, moved);
    batch.entries.push((moved, object.start, object.end));
}

/// Moves some bytes, which are mostly few.
#[inline(always)]
fn move_up(bytes: &mut [u8], from: Range<usize>, to: usize) {
    /// Moves as many bytes as two arrays have that may share some.
    fn ends<const N: usize>(bytes: &mut [u8], from: Range<usize>, to: usize) -> Option<()> {
        let own = bytes.get(from)?;
        // Both are read before either is written: the new place may overlap the old one.
        let (first, last): ([u8; N], [u8; N]) = (*own.first_chunk()?, *own.last_chunk()?);
        let len = own.len();
        let new = bytes.get_mut(to..to + len)?;
        *new.first_chunk_mut()? = first;
        *new.last_chunk_mut()? = last;
        Some(())
    }
    // Two loads and two stores for nearly all keys; a call for the others.
    let moved = match from.len() {
        2..=3 => ends::<2>(bytes, from.clone(), to),
        4..=8 => ends::<4>(bytes, from.clone(), to),
        9..=16 => ends::<8>(bytes, from.clone(), to),
        _ => None,
    };
    if moved.is_none() {
        bytes.copy_within(from, to);
    }
}

/// Makes an entry of a copy of an object, with what lies behind it, behind a copy of its key.
#[inline]
fn copy(key: Range<usize>, item: &ListItem, batch: &mut Batch) {
    let bytes = &mut batch.bytes;
    // The number comes along: `entry_position` reads it behind the object (invariant 1).
    let (from, value) = (bytes.len(), bytes.len() + key.len());
    bytes.extend_from_within(key);
    bytes.extend_from_within(item.object.start..item.end);
    batch.entries.push((from, value, value + item.object.len()));
}

/// Step 3: makes the next objects of a tree key the batch. If there are none from where the scan
/// begins, the scan goes on behind the tree key; if the key is no tree key any more, from where it
/// began.
#[cold]
fn scan_tree<R: KeyRule>(
    bag: &Bag<R>,
    guard: &Guard,
    from: &mut ScanStart,
    key: &[u8],
    direction: Direction,
    batch: &mut Batch,
) {
    // What was read of the entries isn't of the tree's instant.
    batch.clear();
    let mut prefix = Vec::new();
    hash_and_key(bag, key, &mut prefix);
    let mut start = prefix.clone();
    // Positions of the tree are the prefix and a number. Backward without a bound, the start is
    // what sorts after every number.
    match (from.bound(key), direction) {
        (Some(bound), _) => push_number(bound, &mut start),
        (None, Direction::Forward) => {}
        (None, Direction::Backward) => start.push(PAST_NUMBERS),
    }
    let request = ScanRequest {
        start: Start::At(&start),
        direction,
        within: &prefix,
        until: Bound::Unbounded,
        limit: if batch.firsts { 1 } else { batch.limit() },
    };
    let own = Key {
        bytes: key,
        hash: bag.entries.keys.hash(key),
    };
    with_run(|run| {
        let mut resume = std::mem::take(&mut batch.resume);
        // Read as of one instant, under the stripe's version (invariant 3).
        let done = bag.read_in_tree(guard, own, |value_trees| {
            value_trees.tree.scan(guard, &request, run, &mut resume)
        });
        batch.resume = resume;
        // No tree key any more: the batch stays empty, and `from` where it was.
        let Some(done) = done else {
            return;
        };
        // Each with its number behind it: the scan can stop and go on behind any.
        for i in 0..run.len() {
            batch.push(key, run.value(i));
            list::push_number(position::number(run.position(i)), &mut batch.bytes);
        }
        // Where the scan goes on: behind the key, or behind the last object.
        let last = run
            .len()
            .checked_sub(1)
            .map(|i| position::number(run.position(i)));
        match (last, done) {
            (None, _) => from.go_behind(&prefix),
            // Nothing more of this key is wanted.
            (Some(_), done) if done || batch.firsts => stop(bag, key, behind(direction), batch),
            (Some(last), _) => {
                batch.resume.clone_from(&prefix);
                // Forward at the next number, backward strictly before the last (invariant 4).
                let next = last + u64::from(direction == Direction::Forward);
                push_number(next, &mut batch.resume);
            }
        }
    });
}

/// As `Multi::step`.
#[inline]
pub(super) fn step<R: KeyRule>(
    bag: &Bag<R>,
    guard: &Guard,
    key: Option<Key<'_>>,
    batch: &mut Batch,
) -> bool {
    loop {
        let here = bag.entries.step(guard, key, Direction::Forward, batch);
        // What was read is an entry of the hash order, if there is one: its first object is to be
        // the batch.
        let Some((key, list, end)) = batch.entries.pop() else {
            return here;
        };
        if list::is_in_tree(&batch.bytes[list..end]) {
            let key = batch.bytes[key..list].to_vec();
            first_in_tree(bag, guard, &key, batch);
        } else if let Some(item) = list::items_from(&batch.bytes[..end], list + 1).next() {
            keep_first(key..list, item.object, batch);
        }
        // Empty only if a tree key became a list, or went, in between: then the step is made again.
        if !batch.is_empty() {
            return here;
        }
    }
}

/// Makes the first object of a tree key the batch; nothing if the key is no tree key any more.
#[cold]
fn first_in_tree<R: KeyRule>(bag: &Bag<R>, guard: &Guard, key: &[u8], batch: &mut Batch) {
    let mut from = ScanStart {
        prefix: Vec::new(),
        within: Within::Edge,
    };
    // The batch's limit is the request's: one object of this key is enough.
    let want = std::mem::replace(&mut batch.want, 1);
    scan_tree(bag, guard, &mut from, key, Direction::Forward, batch);
    batch.want = want;
}

/// As `Multi::entry_position`.
pub(super) fn entry_position<R: KeyRule>(bag: &Bag<R>, batch: &Batch, i: usize, out: &mut Vec<u8>) {
    hash_and_key(bag, batch.key(i), out);
    push_number(number(batch, i), out);
}

/// The number of the arrival of an object of a batch (invariant 1).
pub(super) fn number(batch: &Batch, i: usize) -> u64 {
    let (_, _, end) = batch.entries[i];
    read_number(&batch.bytes, end).map_or(0, |(number, _)| number)
}

/// How many objects there are.
pub(super) fn count<R: KeyRule>(bag: &Bag<R>) -> usize {
    let (guard, mut batch) = (crate::pin(), Batch::default());
    let (mut sum, mut from) = (0, Vec::new());
    bag.entries
        .scan(&guard, Start::Edge, Direction::Forward, &mut batch);
    loop {
        for i in 0..batch.len() {
            // A tree header counts for its objects, so no tree is read. Each leaf is of one
            // instant, the sum isn't.
            let entry = batch.value(i);
            let tree = TreeHeader::of(entry);
            sum += tree.map_or_else(|| list::count(entry), |tree| tree.count);
        }
        if batch.done {
            return sum;
        }
        std::mem::swap(&mut from, &mut batch.resume);
        let start = Start::At(&from);
        bag.entries
            .scan(&guard, start, Direction::Forward, &mut batch);
    }
}
