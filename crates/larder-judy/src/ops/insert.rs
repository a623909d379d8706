//! Inserting an index.
//!
//! 1. Go down as `find` does. If the bytes that a node's indexes share are different in the new
//!    index, *part* the node (below).
//! 2. In a branch without a child for the byte, add a child: a pair with the index in it. If there
//!    is a child, go on there. If the index was new, increment the count of each branch on the way
//!    back.
//! 3. Insert the index into the run, if it has room. Otherwise build a larger form.
//!
//! Parting a node: if the node's indexes and the new one fit into one leaf, build that leaf.
//! Otherwise build a branch at the first byte that differs. Its children are the node and the new
//! index.
//!
//! ```text
//!   slot of level 7                          slot of level 7
//!   └── leaf of level 2, bytes 7…3: aaaac    └── branch of level 4, bytes 7…5: aaa
//!                                                ├─ a: leaf of level 2, bytes 7…3: aaaac
//!         + aaabbxy                              └─ b: one, aaabbxy
//! ```

use super::build::{build, drop_small, parting, Pile};
use super::find::{get_mut, place};
use super::Cpu;
use super::ROOT;
use crate::layout::{digit, mask, Kind, MOST_IMMEDIATE};
use crate::raw::jp::branch::Children;
use crate::raw::jp::{Form, Jp, View};
use crate::raw::mem::Mem;

/// The value of an inserted index (`None` in a set), and whether the index is new.
pub(crate) type Inserted<'a> = (Option<&'a mut u64>, bool);

/// Inserts an index into a slot. A new index has the value zero.
/// [`cpu::insert`](crate::raw::cpu::insert) is compiled from this.
#[inline(always)]
pub(crate) fn insert_by<'a, K: Kind>(
    cpu: impl Cpu,
    jp: &'a mut Jp<K>,
    slot: usize,
    key: u64,
    mem: &mut Mem,
) -> Inserted<'a> {
    // The most common forms come first: nearly all inserts go through branches.
    match jp.form() {
        Form::Linear(k) => branch_insert(cpu, jp, k, slot, key, mem),
        // A bitmap branch that is inserted into is made wide if it has grown enough for that.
        Form::Bitmap(k) => {
            jp.widen_out(k, mem);
            branch_insert(cpu, jp, k, slot, key, mem)
        }
        Form::Wide(k) => branch_insert(cpu, jp, k, slot, key, mem),
        Form::Null => {
            *jp = build(slot, &[key], &[0], mem);
            inserted(jp, key)
        }
        Form::One if jp.is_one_of(key) => (jp.one_mut(), false),
        Form::One => pair_up(jp, slot, key, mem),
        // Immediates are in the pair. They spill into a leaf when the pair has no room.
        Form::Immed { n, k } => match place(jp, k, key) {
            Ok(at) => (jp.immed_value_mut(at), false),
            Err(at) if !Jp::<K>::immed_fits(n + 1, k) => spill(jp, at, key, mem),
            Err(at) => {
                jp.immed_insert(at, key, mem);
                (jp.immed_value_mut(at), true)
            }
        },
        Form::Leaf(k) => leaf_insert(jp, k, slot, key, mem),
        Form::Bits | Form::Full => dense_insert(jp, slot, key, mem),
    }
}

/// Steps 1 and 2. Inlined once for each form of a branch, so that the form is known.
#[inline(always)]
fn branch_insert<'a, K: Kind>(
    cpu: impl Cpu,
    jp: &'a mut Jp<K>,
    k: usize,
    slot: usize,
    key: u64,
    mem: &mut Mem,
) -> Inserted<'a> {
    if jp.strays(k, key) {
        return part(jp, k, slot, key, mem);
    }
    let byte = digit(key, k);
    if !jp.has_child(byte) {
        return add_one(jp, byte, key, mem);
    }
    let Some((tally, child)) = jp.child_mut(byte) else {
        unreachable!("a child just found")
    };
    // Count on the way back, and only if the index was new.
    let inserted = cpu.insert(child, k - 1, key, mem);
    if inserted.1 {
        tally.add_one();
    }
    inserted
}

#[inline(always)]
fn leaf_insert<'a, K: Kind>(
    jp: &'a mut Jp<K>,
    k: usize,
    slot: usize,
    key: u64,
    mem: &mut Mem,
) -> Inserted<'a> {
    if jp.strays(k, key) {
        return part(jp, k, slot, key, mem);
    }
    match place(jp, k, key) {
        // There already. The caller may change its value.
        Ok(at) => (jp.leaf_value_mut(at), false),
        // The leaf is full: build a larger form.
        Err(_) if jp.pop() as usize == K::LEAF_MOST[k] => grow(jp, slot, key, mem),
        Err(at) => {
            jp.leaf_insert(at, key, mem);
            (jp.leaf_value_mut(at), true)
        }
    }
}

#[inline(always)]
fn dense_insert<'a, K: Kind>(
    jp: &'a mut Jp<K>,
    slot: usize,
    key: u64,
    mem: &mut Mem,
) -> Inserted<'a> {
    if jp.strays(1, key) {
        return part(jp, 1, slot, key, mem);
    }
    // The last byte is the place.
    let low = key as u8;
    let new = jp.dense_mut(low).is_none();
    if new {
        jp.bits_insert(low, mem);
    }
    (jp.dense_mut(low).flatten(), new)
}

/// The place of an index that was just inserted.
fn inserted<K: Kind>(jp: &mut Jp<K>, key: u64) -> Inserted<'_> {
    (get_mut(jp, key).flatten(), true)
}

/// Step 2: adds a child with one index.
fn add_one<'a, K: Kind>(jp: &'a mut Jp<K>, byte: u8, key: u64, mem: &mut Mem) -> Inserted<'a> {
    jp.add_child(byte, Jp::one(key, 0), mem);
    let Some((tally, child)) = jp.child_mut(byte) else {
        unreachable!("a child just added")
    };
    tally.add_one();
    (child.one_mut(), true)
}

/// Step 3: a pair with one index gets a second one.
fn pair_up<'a, K: Kind>(jp: &'a mut Jp<K>, slot: usize, key: u64, mem: &mut Mem) -> Inserted<'a> {
    let (low, value) = match jp.view(slot).0 {
        View::Run(run) => (run.key(0), run.value(0).copied().unwrap_or(0)),
        _ => unreachable!("the pair is an index"),
    };
    // The pair's own index, with the bytes above it, which it shares with the new one.
    let other = key & !mask(slot) | low;
    // The two must be in order, and the value of the old one stays with it.
    let after = (key > other) as usize;
    let (keys, values) = if after == 1 {
        ([other, key], [value, 0])
    } else {
        ([key, other], [0, value])
    };
    *jp = build(slot, &keys, &values, mem);
    // `build` has made a leaf of them, or put them into the pair.
    let slot = if let Form::Leaf(_) = jp.form() {
        jp.leaf_value_mut(after)
    } else {
        jp.immed_value_mut(after)
    };
    (slot, true)
}

/// Step 3: immediates become a leaf, together with one more index, which belongs at `at`.
fn spill<'a, K: Kind>(jp: &'a mut Jp<K>, at: usize, key: u64, mem: &mut Mem) -> Inserted<'a> {
    // The new index is put in its place among the old ones, which keep their values.
    let (mut keys, mut values) = ([key; MOST_IMMEDIATE + 1], [0; MOST_IMMEDIATE + 1]);
    let (View::Run(run), k) = jp.view(ROOT) else {
        unreachable!("the pair is a run")
    };
    let n = run.len();
    for from in 0..n {
        let to = from + (from >= at) as usize;
        keys[to] = key & !mask(k) | run.key(from);
        values[to] = run.value(from).copied().unwrap_or(0);
    }
    // What the immediates had as a block of values goes back before the leaf is made.
    jp.drop_run(mem);
    *jp = build(k, &keys[..=n], &values[..=n], mem);
    let value = if let Form::Leaf(_) = jp.form() {
        jp.leaf_value_mut(at)
    } else {
        None
    };
    (value, true)
}

/// Step 3: rebuilds a run with one more index.
#[cold]
#[inline(never)]
fn grow<'a, K: Kind>(jp: &'a mut Jp<K>, slot: usize, key: u64, mem: &mut Mem) -> Inserted<'a> {
    let mut pile = Pile::of(jp, slot, key);
    pile.add(key);
    jp.drop_run(mem);
    *jp = build(slot, &pile.keys, &pile.values, mem);
    inserted(jp, key)
}

/// Step 1: inserts an index that differs from the bytes that a node of level `k` shares.
#[cold]
#[inline(never)]
fn part<'a, K: Kind>(
    jp: &'a mut Jp<K>,
    k: usize,
    slot: usize,
    key: u64,
    mem: &mut Mem,
) -> Inserted<'a> {
    // The bytes that the subtree shares, and the first one in which the new index differs.
    let base = jp.base(k, key);
    let byte = parting(base, key);
    // Few indexes in all: one leaf of the higher level takes them.
    let pop = jp.pop() + 1;
    if pop <= K::LEAF_MOST[byte] as u64 {
        let mut pile = Pile::of(jp, slot, key);
        pile.add(key);
        drop_small(jp, mem);
        *jp = Jp::leaf(byte, &pile.keys, &pile.values, mem);
        return inserted(jp, key);
    }
    // Otherwise a branch at that byte has the old subtree and the new index as its two children.
    // The subtree itself is not touched.
    let mut children = Children::new();
    children.push((digit(base, byte), jp.take()));
    let one = (digit(key, byte), Jp::one(key, 0));
    children.insert((one.0 > children[0].0) as usize, one);
    *jp = Jp::branch(byte, key, pop, children, mem);
    inserted(jp, key)
}
