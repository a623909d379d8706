//! Scans of a bag: they walk over the entries in hash order, and return the objects of each list.
//!
//! ```text
//!  read       key | count | object, number | object, number | …   one entry of the hash order
//!              ↑             ↑                ↑
//!  unpacked   key           object 1         object 2              one entry for each object
//! ```
//!
//! 1. Read the entries of a leaf at one instant, as a scan of a set does.
//! 2. Turn each list into entries of the batch, one for each object. Nothing is copied or moved:
//!    the entries share the key, and point into the copy of the list, or into the outside object
//!    that the list is.
//! 3. A tree key ends the batch. If it is the first key of the batch, the batch consists of objects
//!    of this key alone, which are read from the tree.
//! 4. An unordered scan reads a leaf as it is, and unpacks its keys in that order. The objects of
//!    tree keys are copied from the tree. If they are too many for one batch, the leaf is read
//!    again in order.
//!
//! Invariants (docs/design.md §4.5):
//! * G4: An object keeps its number when a list moves to the tree or back. So a scan that resumes
//!   within a key knows which objects it has returned, whether the key is a list or a tree key by
//!   then.
//! * **G5** Each object of a batch is followed by its number, as in a list. Key and number together
//!   are the object's position.
//! * **G6** The objects of one key in a batch are of one instant: lists of one version of the leaf,
//!   and those of a tree key of one version of its stripe, which is read later.
//! * **G7** A forward scan resumes at its `resume`, a backward scan strictly before it.

use super::list::{self, read_number, TreeHeader};
use super::position::{
    self, parse, push_number, BagPosition, NumberBound, BEFORE_NUMBERS, PAST_NUMBERS,
};
use super::Bag;
use crate::btree::ScanRequest;
use crate::traits::{with_batch, BatchEntry, HASH};
use crate::{Batch, Direction, Key, KeyRule, Start, StepEntry, Stepped, Unique};
use crossbeam_epoch::Guard;
use std::ops::Bound;

/// A batch is full when copies of objects have more bytes than this.
const BATCH_BYTES: usize = 1 << 20;

/// The number of objects of a tree key that are read at once, unless they have more bytes than
/// [`TREE_BYTES`].
const FEW_IN_TREE: usize = 1024;

/// Once more bytes than this have been copied from trees, no further object is.
const TREE_BYTES: usize = 64 << 10;

/// Where a scan begins.
struct ScanStart {
    /// The hash and the key; empty at the edge.
    prefix: Vec<u8>,
    /// Which objects of the key belong to the scan.
    within: StartFilter,
}

/// Which objects of the key at which a scan begins belong to the scan.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StartFilter {
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
        // The sides of a key change places with the direction. A forward scan that starts before a
        // key has yet to return all of its objects, a backward one none.
        let forward = direction == Direction::Forward;
        let (position, past) = match start {
            Start::Edge => {
                return ScanStart {
                    prefix: Vec::new(),
                    within: StartFilter::Edge,
                }
            }
            Start::At(position) => (position, false),
            Start::Past(position) => (position, true),
        };
        // A position names a key, and one of its objects or a side of all of them.
        let BagPosition { prefix, bound } = parse(position);
        let within = match bound {
            NumberBound::Before if forward => StartFilter::All,
            NumberBound::Before => StartFilter::None,
            NumberBound::After if forward => StartFilter::None,
            NumberBound::After => StartFilter::All,
            // Numbers are whole: strictly past one is at the next. There is none past the last.
            NumberBound::Number(n) if !past => StartFilter::From(n),
            NumberBound::Number(n) if forward => n
                .checked_add(1)
                .map_or(StartFilter::None, StartFilter::From),
            NumberBound::Number(n) => n
                .checked_sub(1)
                .map_or(StartFilter::None, StartFilter::From),
        };
        ScanStart {
            prefix: prefix.to_vec(),
            within,
        }
    }

    /// Where the scan of the entries begins.
    fn start(&self) -> Start<'_> {
        match self.within {
            StartFilter::Edge => Start::Edge,
            StartFilter::None => Start::Past(&self.prefix),
            StartFilter::All | StartFilter::From(_) => Start::At(&self.prefix),
        }
    }

    /// Continues past all objects of a key.
    fn go_past(&mut self, prefix: &[u8]) {
        prefix.clone_into(&mut self.prefix);
        self.within = StartFilter::None;
    }

    /// If only some objects of this key belong to the scan: the number of the first of them, in the
    /// direction of the scan.
    #[inline]
    fn bound(&self, key: &[u8]) -> Option<u64> {
        match self.within {
            StartFilter::From(n) if self.prefix.get(HASH..) == Some(key) => Some(n),
            _ => None,
        }
    }
}

/// See [`Multi::scan`](crate::Multi::scan).
pub(super) fn scan<'g, R: KeyRule>(
    bag: &'g Bag<R>,
    guard: &'g Guard,
    start: Start<'_>,
    direction: Direction,
    batch: &mut Batch<'g>,
) {
    let mut from = ScanStart::new(start, direction);
    loop {
        // (3) A scan that resumes within a tree key needs no entry of the leaf.
        let key = match from.within {
            StartFilter::From(_) => from.prefix.get(HASH..).map(<[u8]>::to_vec),
            _ => None,
        };
        if let Some(key) = key {
            scan_tree(bag, guard, &mut from, &key, direction, batch);
            if !batch.is_empty() {
                return;
            }
        }
        // (1) Read entries.
        bag.entries.scan(guard, from.start(), direction, batch);
        end_resume(direction, batch);
        match unpack(bag, guard, &from, direction, batch) {
            // The scan of the entries has paused (`Batch::may_pause`).
            Unpacked::All if batch.is_empty() && batch.skipped > 0 => return,
            Unpacked::All if batch.is_empty() && !batch.done => {
                // All objects that were read are of the first key and lie before the scan's start.
                // An empty batch would mean the end of the scan, so read on.
                let resume = std::mem::take(&mut batch.resume);
                from = match direction {
                    Direction::Forward => ScanStart::new(Start::At(&resume), direction),
                    Direction::Backward => ScanStart::new(Start::Past(&resume), direction),
                };
            }
            Unpacked::All => return,
            // (4) Discard the unordered batch, and read the leaf again in order.
            Unpacked::Unordered => batch.any_order = false,
            Unpacked::InTree(key) => {
                // (3) Read objects from the tree.
                scan_tree(bag, guard, &mut from, &key, direction, batch);
                // If the batch is empty, the key has no objects past the bound, and `from` is
                // past the key now. Or the key is no longer a tree key, and `from` is unchanged,
                // so its list is read.
                if !batch.is_empty() {
                    return;
                }
            }
        }
    }
}

/// Turns the position at which the scan of entries resumes into a position of the bag. It is the
/// first hash of a leaf, or the position after a key.
fn end_resume(direction: Direction, batch: &mut Batch) {
    if batch.done {
        return;
    }
    if direction == Direction::Forward && batch.resume.len() > HASH {
        // The position after a key ends with a zero byte, which would be the beginning of a number
        // here. Replace it by what means "after all objects of the key".
        batch.resume.pop();
        batch.resume.push(PAST_NUMBERS);
    } else {
        batch.resume.push(BEFORE_NUMBERS);
    }
}

/// The result of unpacking the entries that were read.
enum Unpacked {
    /// The batch has their objects, as far as it has room.
    All,
    /// The first entry is that of this tree key.
    InTree(Vec<u8>),
    /// They are unordered, and too much for one batch.
    Unordered,
}

/// Step 2: unpacks the keys of a batch, up to the first one that ends it, or until it is full.
fn unpack<R: KeyRule>(
    bag: &Bag<R>,
    guard: &Guard,
    from: &ScanStart,
    direction: Direction,
    batch: &mut Batch,
) -> Unpacked {
    // The objects of lists are already in the bytes, so only those of trees count.
    let (full, limit) = (batch.bytes.len() + BATCH_BYTES, batch.limit());
    let mut tree_bytes = TREE_BYTES;
    let mut homes = batch.homes.take();
    // The entries that were read are replaced by those of their objects.
    batch.replace_entries(|batch, read| {
        // If the scan begins within a key, that is the first one. No other key has a bound.
        let mut bound = match read.0.first() {
            Some(first) => from.bound(first.parts(&batch.bytes).0),
            None => None,
        };
        for (i, entry) in read.0.iter().enumerate() {
            homes.replace(i, batch.entries.len());
            // Unpack the list, unless the batch is full.
            let stops = batch.bytes.len() > full || batch.entries.len() >= limit;
            if !stops && spread(entry, bound, direction, batch) {
                bound = None;
                continue;
            }
            let (key, list) = entry.parts(&batch.bytes);
            let (key, tree) = (key.to_vec(), TreeHeader::of(list));
            if batch.unordered {
                // (4) All keys of the leaf, or none: an unordered batch has no place to stop at.
                let fits = tree.is_some_and(|tree| tree.count <= FEW_IN_TREE);
                if !stops && fits && spread_tree(bag, guard, &key, &mut tree_bytes, batch) {
                    batch.from_tree = true;
                    continue;
                }
                return Unpacked::Unordered;
            }
            // (3) The batch ends before this key, because it is full, or because this is a tree
            // key. If it is the first key, read the tree. Otherwise the next batch begins with it.
            if batch.is_empty() {
                return Unpacked::InTree(key);
            }
            stop(bag, &key, before(direction), batch);
            break;
        }
        batch.homes.put(homes, read.0.len(), batch.entries.len());
        Unpacked::All
    })
}

/// The marker, in place of a number, for "before all objects of a key" in this direction.
fn before(direction: Direction) -> u8 {
    match direction {
        Direction::Forward => BEFORE_NUMBERS,
        Direction::Backward => PAST_NUMBERS,
    }
}

/// The marker, in place of a number, for "after all objects of a key" in this direction.
fn after(direction: Direction) -> u8 {
    match direction {
        Direction::Forward => PAST_NUMBERS,
        Direction::Backward => BEFORE_NUMBERS,
    }
}

/// Ends the batch. The scan resumes before or after the objects of a key, as the marker says.
fn stop<R: KeyRule>(bag: &Bag<R>, key: &[u8], marker: u8, batch: &mut Batch) {
    // Replace the position at which the scan of entries would resume. It may be after objects that
    // were read but aren't in the batch.
    let mut resume = std::mem::take(&mut batch.resume);
    hash_and_key(bag, key, &mut resume);
    resume.push(marker);
    batch.resume = resume;
    batch.done = false;
}

/// Writes the hash and the key, with which all positions of the key begin, to `out`. Clears `out`
/// first.
fn hash_and_key<R: KeyRule>(bag: &Bag<R>, key: &[u8], out: &mut Vec<u8>) {
    let hash = bag.entries.keys.hash(key);
    bag.entries.position(Key { bytes: key, hash }, out);
}

/// Step 2: unpacks a list, from the object with the number `bound` on, in the direction of the
/// scan. The objects stay where they are. Returns `false` if the entry is a tree header.
#[inline(always)]
fn spread<'g>(
    entry: &BatchEntry<'g>,
    bound: Option<u64>,
    direction: Direction,
    batch: &mut Batch<'g>,
) -> bool {
    let Batch {
        bytes,
        entries,
        firsts,
        ..
    } = batch;
    // The list lies in the batch's bytes, or in an outside object.
    let (list, before) = (entry.value(), entries.len());
    let bytes = &entry.base(bytes)[..list.end];
    if list::is_in_tree(&bytes[list.start..]) {
        return false;
    }
    for item in list::items_from(bytes, list.start + 1) {
        let belongs = bound.is_none_or(|bound| match direction {
            Direction::Forward => item.number >= bound,
            Direction::Backward => item.number <= bound,
        });
        if belongs {
            // The same key, and the object's place in the list as the value.
            entries.push(entry.with_value(item.object));
            // Only the first object of each key is wanted.
            if *firsts && direction == Direction::Forward {
                return true;
            }
        }
    }
    // A list can only be walked in ascending order.
    if direction == Direction::Backward {
        entries[before..].reverse();
    }
    true
}

/// Step 4: appends all objects of a tree key, if they have no more than `bytes`, which it lowers by
/// what they have. Returns `false` if not, or if the key is no longer a tree key.
#[cold]
fn spread_tree<R: KeyRule>(
    bag: &Bag<R>,
    guard: &Guard,
    key: &[u8],
    bytes: &mut usize,
    batch: &mut Batch<'_>,
) -> bool {
    let before = batch.bytes.len();
    let limit = if batch.firsts { 1 } else { FEW_IN_TREE + 1 };
    let mut prefix = Vec::new();
    hash_and_key(bag, key, &mut prefix);
    let request = TreeRequest {
        key,
        prefix: &prefix,
        // An unordered scan begins at the edge of a leaf, before all objects of the key, and is
        // forward.
        bound: None,
        direction: Direction::Forward,
        limit,
        most: *bytes,
    };
    let read = read_tree(bag, guard, request, batch);
    *bytes = bytes.saturating_sub(batch.bytes.len() - before);
    read.is_some_and(|read| read.done || batch.firsts)
}

/// The numbers of the lists that have the chosen objects of a batch, among the entries of the leaf
/// that was read. `None` if not all objects of such a list are chosen, or if the batch isn't that
/// of a whole leaf of lists.
pub(super) fn whole_lists(batch: &Batch, chosen: &[u32]) -> Option<Vec<u32>> {
    if !batch.unordered || batch.from_tree || batch.firsts {
        return None;
    }
    let (mut lists, mut chosen) = (Vec::with_capacity(chosen.len()), chosen.iter().copied());
    let (mut next, mut first, mut list) = (chosen.next()?, 0, 0);
    // The objects of a list are side by side, and the lists are in the order of the leaf.
    loop {
        let key = batch.key(first);
        let mut end = first + 1;
        while end < batch.len() && batch.key(end) == key {
            end += 1;
        }
        // The first chosen object that is left is one of this list. All of the list must be chosen.
        if (next as usize) < end {
            for object in first..end {
                if next as usize != object {
                    return None;
                }
                // The next one, or after all objects.
                next = chosen.next().unwrap_or(u32::MAX);
            }
            lists.push(list);
            if next == u32::MAX {
                return Some(lists);
            }
        }
        (first, list) = (end, list + 1);
    }
}

/// The result of reading a tree key.
struct ReadTree {
    /// The number of the last object; `None` if there is none after the bound.
    last: Option<u64>,
    /// Whether it is the last one in the direction of the scan.
    done: bool,
}

/// Which objects of a tree key are read.
struct TreeRequest<'a> {
    key: &'a [u8],
    /// What all positions of the key begin with.
    prefix: &'a [u8],
    /// The number of the object at which the scan begins; `None` for all objects.
    bound: Option<u64>,
    direction: Direction,
    /// The most objects.
    limit: usize,
    /// Once they have more bytes than this, no further object is read.
    most: usize,
}

/// Appends the requested objects of a tree key to the batch, in the direction of the scan: at least
/// one, if there is one. `None` if the key is no longer a tree key.
fn read_tree<R: KeyRule>(
    bag: &Bag<R>,
    guard: &Guard,
    request: TreeRequest<'_>,
    batch: &mut Batch<'_>,
) -> Option<ReadTree> {
    let TreeRequest {
        key,
        prefix,
        bound,
        direction,
        limit,
        most,
    } = request;
    let mut start = prefix.to_vec();
    // A position in the tree is the prefix and a number. A backward scan without a bound starts at
    // a position that sorts after all numbers.
    match (bound, direction) {
        (Some(bound), _) => push_number(bound, &mut start),
        (None, Direction::Forward) => {}
        (None, Direction::Backward) => start.push(PAST_NUMBERS),
    }
    // The end of the key's positions in the direction.
    let mut end = prefix.to_vec();
    if direction == Direction::Forward {
        end.push(PAST_NUMBERS);
    }
    let tree_key = Key {
        bytes: key,
        hash: bag.entries.keys.hash(key),
    };
    let (bytes, entries) = (batch.bytes.len(), batch.entries.len());
    let value_limit = batch.value_limit();
    with_batch(|found| {
        // Read the tree as of one instant, by the version of the stripe (G6).
        let read = bag.read_in_tree(guard, tree_key, |value_trees| {
            // Discard what a failed attempt has read.
            batch.bytes.truncate(bytes);
            batch.entries.truncate(entries);
            let mut read = ReadTree {
                last: None,
                done: false,
            };
            let mut from = start.clone();
            // Each turn reads from one leaf of the tree.
            'leaves: while !read.done && batch.entries.len() < entries + limit {
                let request = ScanRequest {
                    start: match (read.last, direction) {
                        (Some(_), Direction::Backward) => Start::Past(&from),
                        _ => Start::At(&from),
                    },
                    direction,
                    until: Bound::Excluded(&end),
                    limit: entries + limit - batch.entries.len(),
                    value_limit,
                };
                value_trees.tree.scan(guard, &request, found);
                // Add the objects, each followed by its number, so that the scan can resume after
                // any of them.
                for i in 0..found.len() {
                    if batch.bytes.len() - bytes > most {
                        break 'leaves;
                    }
                    let (number, value) = (position::number(found.key(i)), found.value(i));
                    batch.push(key, &value[..value.len().min(value_limit)]);
                    list::push_number(number, &mut batch.bytes);
                    read.last = Some(number);
                }
                read.done = found.done;
                std::mem::swap(&mut from, &mut found.resume);
            }
            read
        });
        if read.is_none() {
            batch.bytes.truncate(bytes);
            batch.entries.truncate(entries);
        }
        read
    })
}

/// Step 3: fills the batch with the next objects of a tree key. The batch stays empty in two cases.
/// If the key has no objects that belong to the scan, `from` is moved past the key. If the key
/// is no longer a tree key, `from` stays as it is.
#[cold]
fn scan_tree<R: KeyRule>(
    bag: &Bag<R>,
    guard: &Guard,
    from: &mut ScanStart,
    key: &[u8],
    direction: Direction,
    batch: &mut Batch<'_>,
) {
    // Discard the entries that were read: they are of another instant than the tree.
    batch.clear();
    let mut prefix = Vec::new();
    hash_and_key(bag, key, &mut prefix);
    let limit = if batch.firsts {
        1
    } else {
        batch.limit().min(FEW_IN_TREE)
    };
    let request = TreeRequest {
        key,
        prefix: &prefix,
        bound: from.bound(key),
        direction,
        limit,
        most: TREE_BYTES,
    };
    let Some(read) = read_tree(bag, guard, request, batch) else {
        return;
    };
    // The scan resumes after the last object, or after the key.
    match read.last {
        None => from.go_past(&prefix),
        // Nothing more of this key is wanted.
        Some(_) if read.done || batch.firsts => stop(bag, key, after(direction), batch),
        Some(last) => {
            batch.resume.clone_from(&prefix);
            // Forward, resume at the next number; backward, strictly before the last one (G7).
            let next = last + u64::from(direction == Direction::Forward);
            push_number(next, &mut batch.resume);
        }
    }
}

/// See [`Multi::scan_key`](crate::Multi::scan_key). A list is short, and is unpacked as a whole.
pub(super) fn scan_key<'g, R: KeyRule>(
    bag: &'g Bag<R>,
    guard: &'g Guard,
    key: Key<'_>,
    batch: &mut Batch<'g>,
) -> bool {
    batch.clear();
    // As a scan of the entries leaves it: the key, and the list after it.
    batch.bytes.extend_from_slice(key.bytes);
    let list = batch.bytes.len();
    // A key without an entry has no object (G1).
    if !bag.entries.get(guard, key, &mut batch.bytes) {
        return true;
    }
    // Replace the entry by one for each object of the list. The objects of a tree key may be many.
    let entry = BatchEntry::copied(0, list, batch.bytes.len());
    let is_list = spread(&entry, None, Direction::Forward, batch);
    if !is_list {
        batch.clear();
    }
    is_list
}

/// See [`Multi::step`](crate::Multi::step).
#[inline]
pub(super) fn step<'g, R: KeyRule>(
    bag: &'g Bag<R>,
    guard: &'g Guard,
    key: Option<Key<'_>>,
    batch: &mut Batch<'g>,
) -> bool {
    loop {
        let is_present = bag.entries.step(guard, key, Direction::Forward, batch);
        // If there is an entry of the hash order, replace it by the entry of its first object.
        let Some(entry) = batch.entries.pop() else {
            return is_present;
        };
        let firsts = std::mem::replace(&mut batch.firsts, true);
        let is_list = spread(&entry, None, Direction::Forward, batch);
        batch.firsts = firsts;
        if !is_list {
            let key = entry.parts(&batch.bytes).0.to_vec();
            first_in_tree(bag, guard, &key, batch);
        }
        // The batch is only empty if a tree key has become a list, or was removed, in between. Then
        // repeat the step.
        if !batch.is_empty() {
            return is_present;
        }
    }
}

/// See [`Multi::try_step`](crate::Multi::try_step). Undecided if the next key is a tree key.
#[inline]
pub(super) fn try_step<R: KeyRule>(
    bag: &Bag<R>,
    guard: &Guard,
    key: Option<Key<'_>>,
    entry: &mut StepEntry,
) -> Option<Stepped> {
    let next = bag
        .entries
        .try_step(guard, key, Direction::Forward, entry)?;
    if next.found {
        // Of a list only the beginning may have been copied. `None`: this is a tree header, or too
        // little was copied.
        let (list, limit) = (entry.value.clone(), entry.value_limit());
        let object = list::first_object(&entry.bytes[..list.end], list.start)?;
        // The value becomes the first object, as far as it is wanted and was copied.
        let end = object.start.saturating_add(limit).min(list.end);
        entry.value = object.start..object.end.min(end);
    }
    Some(next)
}

/// Fills the batch with the first object of a tree key. It stays empty if the key is no longer a
/// tree key.
#[cold]
fn first_in_tree<'g, R: KeyRule>(
    bag: &'g Bag<R>,
    guard: &'g Guard,
    key: &[u8],
    batch: &mut Batch<'g>,
) {
    let mut from = ScanStart {
        prefix: Vec::new(),
        within: StartFilter::Edge,
    };
    // Request a single object.
    let want = std::mem::replace(&mut batch.want, 1);
    scan_tree(bag, guard, &mut from, key, Direction::Forward, batch);
    batch.want = want;
}

/// See [`Multi::entry_position`](crate::Multi::entry_position).
pub(super) fn entry_position<R: KeyRule>(bag: &Bag<R>, batch: &Batch, i: usize, out: &mut Vec<u8>) {
    hash_and_key(bag, batch.key(i), out);
    push_number(number(batch, i), out);
}

/// The number of an object of a batch (G5).
pub(super) fn number(batch: &Batch, i: usize) -> u64 {
    read_number(batch.around(i).1, 0).map_or(0, |read| read.number)
}

/// Counts all objects.
pub(super) fn count<R: KeyRule>(bag: &Bag<R>) -> usize {
    let (guard, mut batch) = (crate::pin(), Batch::default());
    let (mut sum, mut from) = (0, Vec::new());
    bag.entries
        .scan(&guard, Start::Edge, Direction::Forward, &mut batch);
    loop {
        for i in 0..batch.len() {
            // A tree header has the number of its objects, so no tree is read. The entries of a
            // leaf are of one instant, but the sum isn't.
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
