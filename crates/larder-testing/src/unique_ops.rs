//! Random sequences of operations on an index with one value under a key, against the oracle.

use crate::OracleUnique;
use crate::*;
use larder_index::{
    pin, Batch, Change, Container, Key, Lookup, Previous, ShortValues, Start, Stats, StepEntry,
    Unique, HEAD, MAX_KEYS_PER_LOOKUP, SHORT_VALUE,
};
use proptest::prelude::*;

/// An operation on the key with this number.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum UniqueOp {
    Put(u16, usize),
    PutScratch(u16, usize),
    Remove(u16),
    Keep(u16),
    Get(u16),
    GetInto(u16),
    /// From which key on, how many, and whether to prefetch them first.
    GetMany(u16, usize, bool),
    PutIf(u16, usize, bool),
    PutNew(u16, usize, bool),
    RemoveIf(u16, bool),
    UpdateWith(u16, usize),
    UpdatePresent(u16, usize),
    /// Whether the part keeps its length.
    Splice(u16, usize, bool),
    Step(Option<u16>, u8),
    /// From where, and how many are wanted.
    Scan(u16, u8, usize),
    /// How many keys are said to be there, and to come, rightly or wrongly.
    Expect(usize, usize),
}

/// Random operations on a number of keys.
pub fn op(keys: u16) -> impl Strategy<Value = UniqueOp> {
    // Most values are small. Some are large enough to be stored outside the leaf.
    let size = || prop_oneof![8 => 0..20usize, 3 => 20..200usize, 1 => 200..3000usize];
    let size2 = prop_oneof![8 => 0..20usize, 1 => 200..900usize];
    // About as many insertions as removals, so that an index grows and shrinks.
    prop_oneof![
        6 => (0..keys, size()).prop_map(|(k, n)| UniqueOp::Put(k, n)),
        2 => (0..keys, size2).prop_map(|(k, n)| UniqueOp::PutScratch(k, n)),
        5 => (0..keys).prop_map(UniqueOp::Remove),
        1 => (0..keys).prop_map(UniqueOp::Keep),
        2 => (0..keys).prop_map(UniqueOp::Get),
        2 => (0..keys).prop_map(UniqueOp::GetInto),
        1 => (0..keys, 0..=MAX_KEYS_PER_LOOKUP, any::<bool>()).prop_map(|(k, n, prefetch_first)| UniqueOp::GetMany(k, n, prefetch_first)),
        6 => (0..keys, size(), prop::bool::weighted(0.8)).prop_map(|(k, n, holds)| UniqueOp::PutIf(k, n, holds)),
        2 => (0..keys, size(), prop::bool::weighted(0.8)).prop_map(|(k, n, holds)| UniqueOp::PutNew(k, n, holds)),
        4 => (0..keys, prop::bool::weighted(0.8)).prop_map(|(k, holds)| UniqueOp::RemoveIf(k, holds)),
        2 => (0..keys, 0..70usize).prop_map(|(k, n)| UniqueOp::UpdateWith(k, n)),
        2 => (0..keys, 0..70usize).prop_map(|(k, n)| UniqueOp::UpdatePresent(k, n)),
        3 => (0..keys, 0..70usize, prop::bool::weighted(0.7)).prop_map(|(k, n, same)| UniqueOp::Splice(k, n, same)),
        2 => (0..keys, 0..2u8).prop_map(|(k, direction)| UniqueOp::Step(Some(k), direction)),
        1 => (0..2u8).prop_map(|direction| UniqueOp::Step(None, direction)),
        1 => (0..keys, 0..6u8, 0..4usize).prop_map(|(k, how, want)| UniqueOp::Scan(k, how, want)),
        1 => (0..9u32, 0..20u32)
            .prop_map(|(now, soon)| UniqueOp::Expect((1 << now) - 1, (1 << soon) - 1)),
    ]
}

fn value(k: u16, n: usize) -> Vec<u8> {
    (0..n)
        .map(|i| (i as u8).wrapping_mul(31).wrapping_add(k as u8))
        .collect()
}

/// What was under a key, in a form that can be noted.
fn was_bytes(was: Previous) -> Option<&'static [u8]> {
    match was {
        Previous::Refused => None,
        Previous::Absent => Some(&[0]),
        Previous::Present => Some(&[1]),
    }
}

fn note(seen: &mut Rows, old: Option<&[u8]>) {
    let there = vec![u8::from(old.is_some())];
    seen.push((there, old.unwrap_or_default().to_vec()));
}

/// Makes a change in the general form. Returns whether there was one.
fn update(index: &dyn Unique, k: u16, how: Hashes, op: &UniqueOp, seen: &mut Rows) -> bool {
    let (bytes, guard, mut calls) = (key_bytes(k), pin(), 0);
    let mut f = |old: Option<&[u8]>, scratch: &mut Vec<u8>| {
        // What the closure is given is part of what is compared.
        calls += 1;
        note(seen, old);
        assert!(scratch.is_empty());
        match op {
            UniqueOp::Put(k, n) => {
                scratch.extend(value(*k, *n));
                Change::Put
            }
            UniqueOp::PutScratch(k, n) => {
                // A value that is made of the old one, in the buffer of the index.
                scratch.extend(old.unwrap_or_default().iter().take(50));
                scratch.extend(value(*k, *n));
                Change::Put
            }
            UniqueOp::UpdateWith(k, n) | UniqueOp::UpdatePresent(k, n) => {
                // A closure may fill the buffer, and then decide to keep the entry.
                scratch.extend(value(*k, *n));
                if n % 5 == 4 {
                    Change::Keep
                } else {
                    Change::Put
                }
            }
            UniqueOp::Splice(k, n, same) => {
                let Some(old) = old else {
                    return Change::Keep;
                };
                // Any part of the value, also an empty one or all of it.
                let at = n % (old.len() + 1);
                let len = (usize::from(*k) + n) % (old.len() - at + 1);
                scratch.extend(value(k + 1, if *same { len } else { n % 20 }));
                Change::splice(old, at, len, scratch)
            }
            UniqueOp::Remove(_) => Change::Remove,
            _ => Change::Keep,
        }
    };
    let key = key(&bytes, how);
    // The caller's buffer isn't empty before: the index must clear it.
    let (mut buffer, mut expected) = (vec![9; 3], 1);
    let changed = match op {
        UniqueOp::UpdateWith(..) => index.update_with(&guard, key, &mut buffer, &mut f),
        UniqueOp::UpdatePresent(..) | UniqueOp::Splice(..) => {
            expected = usize::from(index.contains(&guard, key));
            index.update_present(&guard, key, &mut buffer, &mut f)
        }
        _ => index.update(&guard, key, &mut f),
    };
    // Exactly once, whatever the index tried before.
    assert_eq!(calls, expected);
    changed
}

/// Does a change by `put`, `put_new` or `remove`, if its predicate holds.
fn change_if(
    index: &dyn Unique,
    op: &UniqueOp,
    how: Hashes,
    (k, holds): (u16, bool),
    seen: &mut Rows,
) -> bool {
    let (bytes, guard) = (key_bytes(k), pin());
    // The predicate sees the current value, and decides.
    let mut predicate = |old: Option<&[u8]>| {
        note(seen, old);
        holds
    };
    let key = key(&bytes, how);
    let was = match op {
        UniqueOp::PutIf(_, n, _) => index.put(&guard, key, &value(k, *n), &mut predicate),
        UniqueOp::PutNew(_, n, _) => index.put_new(&guard, key, &value(k, *n), &mut predicate),
        _ => index.remove(&guard, key, &mut |old| predicate(Some(old))),
    };
    note(seen, was_bytes(was));
    was != Previous::Refused
}

fn get(index: &dyn Unique, k: u16, how: Hashes, seen: &mut Rows) {
    let (bytes, guard) = (key_bytes(k), pin());
    let mut out = vec![1, 2, 3];
    let found = index.get(&guard, key(&bytes, how), &mut out);
    assert_eq!(found, index.contains(&guard, key(&bytes, how)));
    assert_eq!(&out[..3], &[1, 2, 3]);
    note(seen, found.then_some(&out[3..]));
}

fn get_into(index: &dyn Unique, k: u16, how: Hashes, seen: &mut Rows) -> bool {
    let (bytes, mut out, mut long, mut whole) =
        (key_bytes(k), [7; SHORT_VALUE], vec![9], Vec::new());
    // Buffers begin with recognisable bytes, to see what is written and what isn't.
    let got = index.get_into(&pin(), key(&bytes, how), &mut out, Some(&mut long));
    let found = index.get(&pin(), key(&bytes, how), &mut whole);
    get_or_lend(index, key(&bytes, how), found.then_some(&whole[..]));
    // A long value goes to the vector. Otherwise the vector is unchanged.
    assert_eq!(
        long,
        if got == Lookup::Long {
            &whole[..]
        } else {
            &[9]
        }
    );
    note_short(got, &out, seen)
}

/// The value that is copied or lent is the one under the key.
fn get_or_lend(index: &dyn Unique, key: Key<'_>, value: Option<&[u8]>) {
    let (guard, mut lent) = (pin(), None);
    let (mut out, mut long) = ([7; SHORT_VALUE], vec![9]);
    let found = match index.get_or_lend(&guard, key, &mut out, &mut long, &mut lent) {
        Lookup::Absent => None,
        Lookup::Short(len) => Some(&out[..len]),
        Lookup::Long => Some(lent.unwrap_or(&long)),
    };
    assert_eq!(found, value);
}

/// Notes what a short lookup found; whether it was long.
fn note_short(got: Lookup, out: &[u8; SHORT_VALUE], seen: &mut Rows) -> bool {
    let len = match got {
        Lookup::Short(len) => Some(len),
        Lookup::Long => Some(0),
        Lookup::Absent => None,
    };
    note(seen, len.map(|len| &out[..len]));
    got == Lookup::Long
}

fn get_many(
    index: &dyn Unique,
    k: u16,
    count: usize,
    prefetch_first: bool,
    how: Hashes,
    seen: &mut Rows,
) -> bool {
    // Neighbouring keys, some of which are there and some not.
    let bytes: Vec<_> = (0..count as u16)
        .map(|i| key_bytes(k.wrapping_add(i)))
        .collect();
    let keys: Vec<_> = bytes.iter().map(|bytes| key(bytes, how)).collect();
    let mut short_values = ShortValues::default();
    index.get_many(&pin(), &keys, prefetch_first, &mut short_values);
    // Compare all of them, and say whether one was long.
    let found = (0..count).map(|i| short_values.get(i));
    found.fold(false, |long, (got, out)| note_short(got, out, seen) || long)
}

fn step(index: &dyn Unique, k: Option<u16>, how: Hashes, which: u8, seen: &mut Rows) -> bool {
    let (bytes, guard, mut batch) = (k.map(key_bytes), pin(), Batch::default());
    let from = bytes.as_ref().map(|bytes| key(bytes, how));
    let direction = DIRECTIONS[usize::from(which % 2)];
    let here = index.step(&guard, from, direction, &mut batch);
    // The step says whether the key is there, as `contains` does.
    let there = from.is_some_and(|key| index.contains(&guard, key));
    assert_eq!(here, there);
    let first = (!batch.is_empty()).then(|| (batch.key(0), batch.value(0)));
    // An empty batch is only allowed at the end.
    assert!(first.is_some() || batch.done);
    // A single attempt says the same, if it is decided.
    for heads in [false, true] {
        let mut entry = StepEntry::default();
        entry.heads = heads;
        let Some(stepped) = index.try_step(&guard, from, direction, &mut entry) else {
            continue;
        };
        assert_eq!((stepped.is_present, stepped.found), (here, first.is_some()));
        if let Some((key, value)) = first {
            assert_is_entry(&entry, key, value);
        }
    }
    note(seen, first.map(|(key, _)| key));
    note(seen, first.map(|(_, value)| value));
    here
}

/// Asserts that a step has found this entry. Of the value it may have copied the head alone.
pub(crate) fn assert_is_entry(entry: &StepEntry, key: &[u8], value: &[u8]) {
    assert_eq!(entry.key(), key);
    let copied = entry.value();
    assert!(value.starts_with(copied));
    assert!(copied.len() == value.len() || entry.heads && copied.len() == HEAD);
}

fn scan(index: &dyn Unique, k: u16, how: Hashes, which: u8, want: usize) -> Rows {
    let mut position = Vec::new();
    index.position(key(&key_bytes(k), how), &mut position);
    // From an edge, from the key, or from after it, in either direction.
    let start = match which % 3 {
        0 => Start::Edge,
        1 => Start::At(&position),
        _ => Start::Past(&position),
    };
    let direction = DIRECTIONS[usize::from(which / 3)];
    let mut step = |start: Start<'_>, batch: &mut Batch<'static>| {
        batch.want = want;
        let guard = pin();
        batch.lend_owned(|batch| index.scan(&guard, start, direction, batch));
    };
    scan_all(&mut step, start, direction)
}

/// Does the operation on one index and says all that it can be seen to do.
pub fn apply(index: &dyn Unique, op: &UniqueOp, how: Hashes) -> Rows {
    let mut seen = Rows::new();
    // The result of the operation, and all that its closures saw.
    let changed = match *op {
        UniqueOp::Put(k, _)
        | UniqueOp::PutScratch(k, _)
        | UniqueOp::UpdateWith(k, _)
        | UniqueOp::UpdatePresent(k, _)
        | UniqueOp::Splice(k, ..)
        | UniqueOp::Remove(k)
        | UniqueOp::Keep(k) => update(index, k, how, op, &mut seen),
        UniqueOp::Get(k) => {
            get(index, k, how, &mut seen);
            false
        }
        UniqueOp::GetInto(k) => get_into(index, k, how, &mut seen),
        UniqueOp::GetMany(k, n, prefetch_first) => {
            get_many(index, k, n, prefetch_first, how, &mut seen)
        }
        UniqueOp::PutIf(k, _, holds)
        | UniqueOp::PutNew(k, _, holds)
        | UniqueOp::RemoveIf(k, holds) => change_if(index, op, how, (k, holds), &mut seen),
        UniqueOp::Step(k, which) => step(index, k, how, which, &mut seen),
        UniqueOp::Scan(k, which, want) => return scan(index, k, how, which, want),
        UniqueOp::Expect(now, soon) => {
            index.expect_keys(now, soon);
            false
        }
    };
    seen.push((vec![u8::from(changed)], Vec::new()));
    seen
}

/// Runs the operations on the index, which is empty, and on the oracle, and compares all that can
/// be seen; then empties the index. What it still holds must be no more than `rest` says of its
/// figures.
pub fn run(
    index: &dyn Unique,
    name: &str,
    how: Hashes,
    ops: &[UniqueOp],
    rest: impl Fn(&Stats) -> usize,
) {
    let empty = index.memory();
    let oracle = OracleUnique::new(index.is_ordered());
    for op in ops {
        let (real, right) = (apply(index, op, how), apply(&oracle, op, how));
        assert_eq!(real, right, "{name} {how:?} {op:?}");
        assert_eq!(index.len(), oracle.len(), "{name} {how:?} {op:?}");
        // The index may say that it is not empty without looking closely. It may not say that it is
        // if it isn't.
        let seems_empty = index.is_seen_empty(&pin());
        assert!(!seems_empty || oracle.len() == 0, "{name} {how:?} {op:?}");
    }
    // Scans in both directions see the same entries in the same order.
    for direction in DIRECTIONS {
        let expect = scan_unique(&oracle, Start::Edge, direction);
        assert_eq!(scan_unique(index, Start::Edge, direction), expect, "{name}");
    }
    // Both ways to empty an index, in turns.
    drain(index, how, ops.len().is_multiple_of(2));
    let stats = index.stats();
    assert!(
        index.memory() <= empty + rest(&stats),
        "{name} {} {stats:?}",
        index.memory()
    );
}

/// Removes all, one by one or by the reaper's way; then nothing is left.
fn drain(index: &dyn Unique, how: Hashes, singly: bool) {
    let all = scan_unique(index, Start::Edge, DIRECTIONS[0]);
    if singly {
        for (bytes, _) in &all {
            assert!(remove(index, key(bytes, how)));
        }
        assert!(scan_unique(index, Start::Edge, DIRECTIONS[1]).is_empty());
    } else {
        let mut values = Vec::new();
        while !index.free_some(&pin(), 3, &mut |v| values.push(v.to_vec())) {}
        let mut expect: Vec<_> = all.into_iter().map(|(_, v)| v).collect();
        values.sort();
        expect.sort();
        assert_eq!(values, expect);
    }
    assert_eq!(index.len(), 0);
}

/// A closure that panics leaves the entry as it was, and unlocked.
pub fn a_panic_changes_nothing(index: &dyn Unique) {
    let k = key(b"k", Hashes::Good);
    // With and without an entry, whose locks differ in some indexes.
    for there in [false, true] {
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            index.update(&pin(), k, &mut |_, _| panic!("as it should"))
        }));
        assert!(result.is_err());
        let mut out = Vec::new();
        assert_eq!(index.get(&pin(), k, &mut out), there);
        // The entry is as it was: absent, or as it was put.
        let expect: &[u8] = if there { b"before" } else { b"" };
        assert_eq!((&out[..], index.len()), (expect, usize::from(there)));
        // It is unlocked, since another change succeeds.
        assert!(put(index, k, b"before"));
    }
}
