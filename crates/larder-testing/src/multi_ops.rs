//! Random sequences of operations on an index with many values under a key, against the oracle.

use crate::unique_ops::assert_is_entry;
use crate::OracleMulti;
use crate::*;
use larder_index::{pin, Batch, Container, Multi, Objects, Start, Stats, StepEntry};
use proptest::prelude::*;

/// An operation on the key with this number.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum MultiOp {
    Push(u16, Vec<usize>),
    RemoveIf(u16, u8),
    Replace(u16, usize, usize),
    Mixed(u16, usize),
    /// As a bag inserts: unless it is there.
    Once(u16, Vec<usize>),
    RemoveSame(u16, Vec<usize>),
    /// Unless the key is there.
    New(u16, Vec<usize>),
    Get(u16),
    /// From where, and how many are wanted.
    Scan(u16, u8, usize),
    Step(Option<u16>),
    /// How many keys are said to be there, and to come, rightly or wrongly.
    Expect(usize, usize),
}

/// Random operations on a number of keys.
pub fn op(keys: u16) -> impl Strategy<Value = MultiOp> {
    // Most objects are small. Some don't fit in a leaf, and are stored outside it.
    let size = || prop_oneof![8 => 0..20usize, 1 => 200..900usize];
    // More pushes than removals, so that lists grow through all representations.
    prop_oneof![
        8 => (0..keys, prop::collection::vec(size(), 1..12)).prop_map(|(k, n)| MultiOp::Push(k, n)),
        4 => (0..keys, 0..6u8).prop_map(|(k, n)| MultiOp::RemoveIf(k, n)),
        1 => (0..keys, 0..12usize, size()).prop_map(|(k, i, n)| MultiOp::Replace(k, i, n)),
        1 => (0..keys, size()).prop_map(|(k, n)| MultiOp::Mixed(k, n)),
        2 => (0..keys, prop::collection::vec(size(), 1..12)).prop_map(|(k, n)| MultiOp::Once(k, n)),
        2 => (0..keys, prop::collection::vec(size(), 1..4)).prop_map(|(k, n)| MultiOp::RemoveSame(k, n)),
        2 => (0..keys, prop::collection::vec(size(), 1..3)).prop_map(|(k, n)| MultiOp::New(k, n)),
        2 => (0..keys).prop_map(MultiOp::Get),
        1 => (0..keys, 0..10u8, 0..4usize).prop_map(|(k, how, want)| MultiOp::Scan(k, how, want)),
        2 => (0..keys).prop_map(|k| MultiOp::Step(Some(k))),
        1 => Just(MultiOp::Step(None)),
        1 => (0..9u32, 0..20u32)
            .prop_map(|(now, soon)| MultiOp::Expect((1 << now) - 1, (1 << soon) - 1)),
    ]
}

fn sized(n: usize) -> Vec<u8> {
    vec![n as u8; n]
}

/// Applies an operation to the objects of a key. Returns what can be seen of it.
fn change(objects: &mut dyn Objects, op: &MultiOp) -> Vec<usize> {
    let mut seen = Vec::new();
    match op {
        MultiOp::Push(_, sizes) | MultiOp::New(_, sizes) => {
            sizes.iter().for_each(|n| objects.push(&sized(*n)))
        }
        MultiOp::RemoveIf(_, n) => {
            // A fifth of the objects by their lengths, or all of them.
            seen.push(objects.remove_if(&mut |v| *n == 5 || v.len() % 5 == usize::from(*n)));
        }
        MultiOp::Replace(_, i, n) => objects.replace(*i, &vec![99; *n]),
        MultiOp::Mixed(_, n) => {
            // Several changes in one closure. Later ones must see earlier ones, though none is
            // published yet.
            objects.push(b"first");
            objects.remove_if(&mut |v| v.len() > 100);
            objects.push(&vec![1; *n]);
            let mut sum = 0;
            objects.each(&mut |i, v| {
                sum += i + v.len();
                // Stop early, which must not visit more objects.
                i < 5
            });
            seen.push(sum);
        }
        MultiOp::Once(_, sizes) => {
            for value in sizes.iter().map(|n| sized(*n)) {
                let found = objects.find(&value, &mut |v| v == value);
                if !found {
                    objects.push(&value);
                }
                seen.push(usize::from(found));
            }
        }
        MultiOp::RemoveSame(_, sizes) => {
            for value in sizes.iter().map(|n| sized(*n)) {
                seen.push(objects.remove_same(&value, &mut |v| v == value));
            }
        }
        MultiOp::Get(_) | MultiOp::Scan(..) | MultiOp::Step(_) | MultiOp::Expect(..) => {}
    }
    // What the closure sees at its end, too.
    seen.extend([objects.count(), usize::from(objects.is_empty())]);
    seen
}

/// Applies the operation to one index, and returns everything that can be observed of it.
pub fn apply(index: &dyn Multi, op: &MultiOp, how: Hashes) -> Rows {
    let k = match op {
        MultiOp::Scan(k, which, want) => return scan(index, *k, *which, *want, how),
        MultiOp::Step(k) => return step(index, *k, how),
        MultiOp::Expect(now, soon) => {
            index.expect_keys(*now, *soon);
            return Rows::new();
        }
        MultiOp::Get(k)
        | MultiOp::Push(k, _)
        | MultiOp::RemoveIf(k, _)
        | MultiOp::Replace(k, ..) => *k,
        MultiOp::Mixed(k, _) | MultiOp::Once(k, _) => *k,
        MultiOp::RemoveSame(k, _) | MultiOp::New(k, _) => *k,
    };
    let bytes = key_bytes(k);
    let mut seen = Rows::new();
    let (guard, key, mut expected) = (pin(), key(&bytes, how), 1);
    let mut f = |objects: &mut dyn Objects| {
        seen.push((format!("{:?}", change(objects, op)).into_bytes(), vec![]));
    };
    // All but `Get` change the key, and the closure must be called exactly once; not at all by a
    // removal of what isn't there, or by an insert under a key that is.
    match op {
        MultiOp::Get(_) => expected = 0,
        MultiOp::RemoveIf(..) | MultiOp::RemoveSame(..) => {
            expected = usize::from(index.contains(&guard, key));
            index.update_present(&guard, key, &mut f);
        }
        MultiOp::New(..) => {
            expected = usize::from(!index.contains(&guard, key));
            index.update_absent(&guard, key, &mut f);
        }
        _ => index.update(&guard, key, &mut f),
    }
    assert_eq!(seen.len(), expected);
    // Afterwards, what readers see must agree with the change and with one another.
    let mut values = Vec::new();
    let n = index.get(&guard, key, &mut |v| values.push(v.to_vec()));
    assert_eq!(n, values.len());
    assert_eq!(index.contains(&guard, key), n > 0);
    seen.extend(values.into_iter().map(|v| (vec![], v)));
    seen
}

/// Whether the key is there, and the first entry of the next.
fn step(index: &dyn Multi, k: Option<u16>, how: Hashes) -> Rows {
    let (bytes, guard, mut batch) = (k.map(key_bytes), pin(), Batch::default());
    // A step is a scan of one entry, whose answer says whether the key itself is there.
    let from = bytes.as_ref().map(|bytes| key(bytes, how));
    let here = index.step(&guard, from, &mut batch);
    let there = from.is_some_and(|key| index.contains(&guard, key));
    assert_eq!(here, there);
    assert!(!batch.is_empty() || batch.done);
    // A single attempt says the same, if it is decided.
    let mut entry = StepEntry::default();
    if let Some(stepped) = index.try_step(&guard, from, &mut entry) {
        assert_eq!(
            (stepped.is_present, stepped.found),
            (here, !batch.is_empty())
        );
        if stepped.found {
            assert_is_entry(&entry, batch.key(0), batch.value(0));
        }
    }
    // How many entries follow is up to the index. Compare the first one only.
    let found = (0..batch.len()).take(1);
    found
        .map(|i| (batch.key(i).to_vec(), batch.value(i).to_vec()))
        .collect()
}

fn scan(index: &dyn Multi, k: u16, which: u8, want: usize, how: Hashes) -> Rows {
    // Even numbers: the position of the key's first object. Odd ones: that of its last.
    let mut position = Vec::new();
    if which.is_multiple_of(2) {
        index.first_position(key(&key_bytes(k), how), &mut position);
    } else {
        index.last_position(key(&key_bytes(k), how), &mut position);
    }
    let start = match which / 2 {
        0 | 1 => Start::Past(&position),
        2 | 3 => Start::At(&position),
        _ => Start::Edge,
    };
    let direction = DIRECTIONS[usize::from(which / 2 % 2)];
    let mut step = |start: Start<'_>, batch: &mut Batch<'static>| {
        batch.want = want;
        let guard = pin();
        batch.lend_owned(|batch| index.scan(&guard, start, direction, batch));
    };
    scan_all(&mut step, start, direction)
}

/// Runs the operations on the index, which is empty, and on the oracle, and compares all that can
/// be seen; then empties the index. What it still holds must be no more than `rest` says of its
/// figures.
pub fn run(
    index: &dyn Multi,
    name: &str,
    how: Hashes,
    ops: &[MultiOp],
    rest: impl Fn(&Stats) -> usize,
) {
    // The index may have fixed costs, which it may keep.
    let empty = index.memory();
    let oracle = OracleMulti::new();
    // After each operation, both indexes show the same.
    for op in ops {
        let (real, right) = (apply(index, op, how), apply(&oracle, op, how));
        assert_eq!(real, right, "{name} {how:?} {op:?}");
        assert_eq!(index.len(), oracle.len(), "{name} {how:?} {op:?}");
    }
    let all = scan_multi(&oracle, Start::Edge, DIRECTIONS[0]);
    assert_eq!(scan_multi(index, Start::Edge, DIRECTIONS[0]), all, "{name}");
    positions_resume(index, &all);
    let mut freed = Vec::new();
    // In batches of five, as the reaper does.
    while !index.free_some(&pin(), 5, &mut |v| freed.push(v.to_vec())) {}
    // In any order, but each one once.
    let mut expect: Vec<_> = all.into_iter().map(|(_, v)| v).collect();
    freed.sort();
    expect.sort();
    assert_eq!(freed, expect, "{name}");
    assert_eq!(index.len(), 0);
    // The memory of the entries has been released.
    let stats = index.stats();
    assert!(
        index.memory() <= empty + rest(&stats),
        "{name} {} {stats:?}",
        index.memory()
    );
}

/// The position of each entry takes up the scan there, or just after it.
fn positions_resume(index: &dyn Multi, all: &[(Vec<u8>, Vec<u8>)]) {
    let (guard, mut batch) = (pin(), Batch::default());
    index.scan(&guard, Start::Edge, DIRECTIONS[0], &mut batch);
    let mut position = Vec::new();
    for i in 0..batch.len() {
        index.entry_position(&batch, i, &mut position);
        // A position stands for its entry: `At` begins with it, and `Past` after it.
        let from = |start| scan_multi(index, start, DIRECTIONS[0]);
        assert_eq!(from(Start::At(&position)), all[i..]);
        assert_eq!(from(Start::Past(&position)), all[i + 1..]);
        // Backward, exactly the entries before it follow.
        let back = scan_multi(index, Start::Past(&position), DIRECTIONS[1]);
        assert_eq!(back.len(), i);
    }
}
