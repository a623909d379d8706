//! A tree of byte strings: word arrays whose values lead to other word arrays.
//!
//! ```text
//!   root array        "judy arr", goes on ──→ array     "ay"        value
//!                                                       "ows"       value
//!                     "judy1"                value
//!                     "other st", goes on ──→ short-cut leaf  "ring, however long", value
//! ```
//!
//! Invariants:
//!
//! * **JU5** If a string ends with the word of an index, the index has the string's value.
//!   Otherwise it has a [`Link`].
//! * **JU6** An array below the root has at least two strings. A single string is in a short-cut
//!   leaf.
//!
//! So the set of strings determines which arrays there are. The forms within each array also depend
//! on earlier changes. Strings may be long, so nothing here recurses over their length.

mod cpu;

use std::marker::PhantomData;

use smallvec::SmallVec;

use super::below::{Below, Link, Lone};
use super::cpu::{seek, Plain};
use super::jp::{Jp, View};
use super::mem::Mem;
use crate::chunks::Chunks;
use crate::layout::Parts;
use crate::ops::find::get_by;
use crate::ops::free::Doomed;
use crate::ops::seek::{seek_by, Found};
use crate::ops::stats::stats;
use crate::ops::{Cpu, ROOT};
use crate::stats::TextStats;

/// A tree of byte strings, cut into words by `C`.
pub(crate) struct Text<C: Chunks> {
    root: Jp<Parts>,
    len: u64,
    mem: Mem,
    doomed: Doomed<Parts>,
    cut: PhantomData<C>,
}

/// Arrays from the root's down, each with the word taken there.
type Path = SmallVec<[(*mut Jp<Parts>, u64); 8]>;

/// An array in the tree, for reading.
///
/// # Safety
///
/// The pointer is a live array's of the tree, which is not written for `'a`.
#[inline]
pub(super) unsafe fn array<'a>(pair: *mut Jp<Parts>) -> &'a Jp<Parts> {
    // SAFETY: the caller's contract.
    unsafe { &*pair }
}

/// Inserts a word into an array, and returns its value's place.
///
/// # Safety
///
/// The pointer is a live array's of a tree that the caller has exclusively, and `mem` is the
/// tree's.
#[inline(always)]
unsafe fn put<'a>(
    cpu: impl Cpu,
    pair: *mut Jp<Parts>,
    word: u64,
    mem: &mut Mem,
) -> (&'a mut u64, bool) {
    // SAFETY: the caller's contract.
    let (slot, new) = cpu.insert(unsafe { &mut *pair }, ROOT, word, mem);
    match slot {
        Some(slot) => (slot, new),
        None => unreachable!("a map has values"),
    }
}

impl<C: Chunks> Text<C> {
    pub(crate) const fn new() -> Self {
        Text {
            root: Jp::NULL,
            len: 0,
            mem: Mem::new(),
            doomed: Doomed::new(),
            cut: PhantomData,
        }
    }

    #[inline]
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// The root array.
    pub(super) fn root(&self) -> &Jp<Parts> {
        &self.root
    }

    pub(crate) fn memory_used(&self) -> usize {
        self.mem.bytes()
    }

    /// The value of a string. The key may be one that no string of the kind can be: it has none.
    #[inline]
    pub(crate) fn get(&self, key: &[u8]) -> Option<&u64> {
        cpu::get(self, key)
    }

    /// What [`get`](Self::get) is compiled from.
    #[inline(always)]
    pub(super) fn get_by(&self, key: &[u8]) -> Option<&u64> {
        let (mut jp, mut rest) = (&self.root, key);
        loop {
            // Cut the next word off the key. `next` is what follows it, if the key goes on.
            let (word, next) = C::cut(rest);
            if C::misfits(word, rest, next.is_some()) {
                return None;
            }
            // Without this word here, no string of the tree begins like the key.
            let value = get_by(jp, word).flatten()?;
            // The last word of the key has the value itself (JU5).
            let Some(next) = next else { return Some(value) };
            // SAFETY: the word fits what it was cut from, so it goes on. So its value is a link
            // (JU5). What it leads to is alive as long as the tree is lent.
            unsafe {
                match Link::from_word(*value).open() {
                    Below::Array(below) => jp = array(below),
                    Below::Lone(lone) => return (lone.rest() == next).then(|| &*lone.value()),
                }
            }
            rest = next;
        }
    }

    /// The value of a string, to be written. The key may be one that no string of the kind can be:
    /// it has none.
    pub(crate) fn get_mut(&mut self, key: &[u8]) -> Option<&mut u64> {
        let (mut pair, mut rest): (*mut Jp<Parts>, _) = (&mut self.root, key);
        loop {
            let (word, next) = C::cut(rest);
            if C::misfits(word, rest, next.is_some()) {
                return None;
            }
            // SAFETY: the tree is borrowed exclusively. The array is one of its own, and alive.
            let value = crate::ops::find::get_mut(unsafe { &mut *pair }, word).flatten()?;
            // The last word of the string has the value itself.
            let Some(next) = next else { return Some(value) };
            // SAFETY: as `get`.
            unsafe {
                match Link::from_word(*value).open() {
                    Below::Array(below) => pair = below,
                    Below::Lone(lone) => return (lone.rest() == next).then(|| &mut *lone.value()),
                }
            }
            rest = next;
        }
    }

    /// Inserts a string, with value zero if it is new, and says whether it is.
    ///
    /// 1. Go down word by word. If a word is new, everything after it goes into a short-cut leaf.
    /// 2. If there is a short-cut leaf of another string, replace it by an array for both.
    #[inline]
    pub(crate) fn insert(&mut self, key: &[u8]) -> (&mut u64, bool) {
        cpu::insert(self, key)
    }

    /// What [`insert`](Self::insert) is compiled from.
    #[inline(always)]
    pub(super) fn insert_by(&mut self, cpu: impl Cpu, key: &[u8]) -> (&mut u64, bool) {
        let (mut pair, mut rest): (*mut Jp<Parts>, _) = (&mut self.root, key);
        loop {
            let (word, next) = C::cut(rest);
            // SAFETY: the tree is borrowed exclusively. The array is one of its own, and alive.
            let (value, new) = unsafe { put(cpu, pair, word, &mut self.mem) };
            let Some(next) = next else {
                self.len += new as u64;
                return (value, new);
            };
            // No other string has this word. All that follows goes into a short-cut leaf.
            if new {
                let (link, lone) = Lone::new(next, &[], 0, &mut self.mem);
                *value = link.word();
                self.len += 1;
                // SAFETY: the leaf is the tree's own, borrowed exclusively.
                return (unsafe { &mut *lone.value() }, true);
            }
            // SAFETY: as `get`.
            unsafe {
                match Link::from_word(*value).open() {
                    Below::Array(below) => (pair, rest) = (below, next),
                    Below::Lone(lone) if lone.rest() == next => return (&mut *lone.value(), false),
                    Below::Lone(lone) => {
                        (pair, rest) = Self::part(value, lone, next, &mut self.mem)
                    }
                }
            }
        }
    }

    /// (2) of `insert`: replaces a short-cut leaf by arrays, one for each word that its string
    /// shares with the other one. The last array has what is left of the string. Returns that array
    /// and what is left of the other string.
    ///
    /// # Safety
    ///
    /// `value` is the place of the link to `lone`, in a tree that the caller has exclusively.
    unsafe fn part<'k>(
        value: &mut u64,
        lone: Lone,
        other: &'k [u8],
        mem: &mut Mem,
    ) -> (*mut Jp<Parts>, &'k [u8]) {
        // SAFETY: the leaf is alive until it is given back, at the end.
        let (mut old, old_value) = unsafe { (lone.rest(), *lone.value()) };
        let (mut new, mut place): (_, *mut u64) = (other, value);
        loop {
            // Make an array, and insert the next word of the lone string.
            let (link, pair) = Link::array(mem);
            // SAFETY: the place is the caller's, or is in the array that was just made. The new
            // array is the tree's own.
            let (slot, _) = unsafe {
                *place = link.word();
                put(Plain, pair, C::cut(old).0, mem)
            };
            let (word, old_next) = C::cut(old);
            // If the next words are the same and both strings go on, both go into one more array.
            match (old_next, C::cut(new)) {
                (Some(old_next), (other, Some(new_next))) if word == other => {
                    (old, new, place) = (old_next, new_next, slot);
                }
                (old_next, _) => {
                    // They part here. What is left of the lone string is a leaf again, or its value
                    // if nothing is left. The caller inserts the other string.
                    *slot = match old_next {
                        Some(rest) => Lone::new(rest, &[], old_value, mem).0.word(),
                        None => old_value,
                    };
                    // SAFETY: no link leads to the leaf any more, and `old` is not used again.
                    unsafe { lone.drop(mem) };
                    return (pair, new);
                }
            }
        }
    }

    /// Removes a string, and returns its value.
    ///
    /// 1. Go down, and note the path. The string ends in a word, or in a short-cut leaf.
    /// 2. Remove its last word from the last array. If that fails, the string is missing: the word
    ///    isn't searched before, to save a search.
    /// 3. If one string is left there, put it into a short-cut leaf. The leaf replaces the highest
    ///    array that has no other string.
    ///
    /// The key may be one that no string of the kind can be.
    #[inline]
    pub(crate) fn remove(&mut self, key: &[u8]) -> Option<u64> {
        cpu::remove(self, key)
    }

    /// What [`remove`](Self::remove) is compiled from.
    #[inline(always)]
    pub(super) fn remove_by(&mut self, cpu: impl Cpu, key: &[u8]) -> Option<u64> {
        let mut path = Path::new();
        let (mut pair, mut rest): (*mut Jp<Parts>, _) = (&mut self.root, key);
        // 1. Go down to the word, or the leaf, that ends the string.
        let value = loop {
            let (word, next) = C::cut(rest);
            if C::misfits(word, rest, next.is_some()) {
                return None;
            }
            path.push((pair, word));
            let Some(next) = next else {
                // 2. The string ends in a word of this array.
                // SAFETY: the array is the tree's own and alive, and nothing else borrows it. The
                // word ends its string (JU5), so its value is no link.
                break unsafe { cpu.remove(&mut *pair, ROOT, word, &mut self.mem) }?;
            };
            // SAFETY: the array is the tree's own and alive, and nothing else borrows it.
            let value = *get_by(unsafe { array(pair) }, word).flatten()?;
            // SAFETY: the word fits what it was cut from, so it goes on. So its value is a link
            // (JU5).
            unsafe {
                match Link::from_word(value).open() {
                    Below::Array(below) => pair = below,
                    Below::Lone(lone) if lone.rest() != next => return None,
                    Below::Lone(lone) => {
                        let value = *lone.value();
                        lone.drop(&mut self.mem);
                        // 2. The word is that of the link to the leaf just given back.
                        cpu.remove(&mut *pair, ROOT, word, &mut self.mem);
                        break value;
                    }
                }
            }
            rest = next;
        };
        self.len -= 1;
        // 3. Put a string that is left alone into a short-cut leaf.
        // SAFETY: the path is that of the tree, which is borrowed exclusively.
        unsafe { Self::fold(cpu, &mut path, &mut self.mem) };
        Some(value)
    }

    /// (3) of `remove`, if the last array has only one word left.
    ///
    /// # Safety
    ///
    /// The path leads from the root's array down, by the words noted but for the last, in a tree
    /// that the caller has exclusively, and `mem` is the tree's.
    #[inline]
    unsafe fn fold(cpu: impl Cpu, path: &mut Path, mem: &mut Mem) {
        let Some((last, _)) = path.pop() else { return };
        // SAFETY: the arrays on the path are alive.
        unsafe {
            if !path.is_empty() && array(last).pop() == 1 {
                Self::fold_last(cpu, path, last, mem);
            }
        }
    }

    /// (3) of `remove`. The last array has only one word left.
    ///
    /// # Safety
    ///
    /// The path leads from the root's array to the last, by the words noted, in a tree that the
    /// caller has exclusively, and `mem` is the tree's.
    #[inline(never)]
    unsafe fn fold_last(cpu: impl Cpu, path: &mut Path, last: *mut Jp<Parts>, mem: &mut Mem) {
        // SAFETY: the arrays are alive.
        let only = seek::<true, Parts>(unsafe { array(last) }, 0).map(pair);
        let Some((word, value)) = only else { return };
        let mut tail = None;
        if C::goes_on(word) {
            // SAFETY: the word goes on, so its value is a link (JU5).
            match unsafe { Link::from_word(value) }.open() {
                Below::Array(_) => return,
                Below::Lone(lone) => tail = Some(lone),
            }
        }
        // Go up over the arrays that lead nowhere else. The root's array stays in any case.
        let mut from = path.len();
        // SAFETY: as above.
        while from > 1 && unsafe { array(path[from - 1].0) }.pop() == 1 {
            from -= 1;
        }
        // The rest of the string: the words of these arrays, and what a leaf below had.
        let mut front = Vec::new();
        path[from..]
            .iter()
            .for_each(|&(_, word)| C::push(word, &mut front));
        C::push(word, &mut front);
        // SAFETY: the leaf is alive until it is given back below. Its value and its rest go into
        // the new one.
        let (back, value) = tail.map_or((&[][..], value), |lone| unsafe {
            (lone.rest(), *lone.value())
        });
        let (link, _) = Lone::new(&front, back, value, mem);
        if let Some(lone) = tail {
            // SAFETY: the array that has the link is emptied next.
            unsafe { lone.drop(mem) };
        }
        // Each of these arrays has this one word only. Empty them, and give them back.
        for &(pair, word) in path[from..].iter().chain([&(last, word)]) {
            // SAFETY: the array holds this one word only. The link to the array is overwritten
            // below, or emptied here.
            unsafe {
                cpu.remove(&mut *pair, ROOT, word, mem);
                Link::drop_array(pair, mem);
            }
        }
        // The leaf takes the place of the link to the highest of these arrays.
        let (pair, word) = path[from - 1];
        // SAFETY: the array is alive and has the word.
        *unsafe { put(cpu, pair, word, mem) }.0 = link.word();
    }

    /// Replaces `key` by the nearest string from it on, upwards or downwards, itself only if
    /// `inclusive`. The key may be one that no string of the kind can be.
    ///
    /// 1. Go down by the words of `key`, noting the arrays, to where its path ends.
    /// 2. If there is a short-cut leaf, it may have the string or one beyond it.
    /// 3. Otherwise find the nearest word beyond, in the lowest array on the path that has one. The
    ///    edge below that word is the string.
    #[inline]
    pub(crate) fn seek<const UP: bool>(&self, key: &mut Vec<u8>, inclusive: bool) -> Option<&u64> {
        cpu::seek::<UP, C>(self, key, inclusive)
    }

    /// What [`seek`](Self::seek) is compiled from.
    #[inline(always)]
    pub(super) fn seek_by<const UP: bool>(
        &self,
        key: &mut Vec<u8>,
        inclusive: bool,
    ) -> Option<&u64> {
        let mut path: SmallVec<[&Jp<Parts>; 8]> = SmallVec::new();
        let mut jp = &self.root;
        // 1. Go down by the words of `key`.
        loop {
            // An array at this depth has the word that begins here.
            let at = path.len() * C::STEP;
            path.push(jp);
            let (word, next) = C::cut(&key[at..]);
            if C::misfits(word, &key[at..], next.is_some()) {
                return self.seek_stray::<UP>(key);
            }
            // The key itself is not wanted, so what is found is past this word in the direction of
            // the search.
            if next.is_none() && !inclusive {
                break;
            }
            let Some(value) = get_by(jp, word).flatten() else {
                break;
            };
            let Some(next) = next else { return Some(value) };
            // SAFETY: the word goes on, so its value is a link (JU5). What it leads to is alive as
            // long as the tree is lent.
            match unsafe { Link::from_word(*value) }.open() {
                // SAFETY: as above.
                Below::Array(below) => jp = unsafe { array(below) },
                Below::Lone(lone) => {
                    // 2. Compare what is left of `key` with the leaf's string.
                    // SAFETY: as above.
                    let rest = unsafe { lone.rest() };
                    if if UP { rest > next } else { rest < next } || inclusive && rest == next {
                        key.truncate(at + C::STEP);
                        key.extend_from_slice(rest);
                        // SAFETY: as above.
                        return Some(unsafe { &*lone.value() });
                    }
                    break;
                }
            }
        }
        // 3. Climb to an array with a word beyond.
        while let Some(jp) = path.pop() {
            // Each array on the path has taken one word of the key.
            let at = path.len() * C::STEP;
            let word = C::cut(&key[at..]).0;
            let beyond = if UP {
                word.checked_add(1)
            } else {
                word.checked_sub(1)
            };
            if let Some(found) = beyond.and_then(|word| seek_by::<UP, Parts>(jp, word)) {
                key.truncate(at);
                return self.edge::<UP>(found, key);
            }
        }
        None
    }

    /// The nearest string from a key that contains a byte which no string of the kind has. The key
    /// is directly after the part before that byte: no string is between the two.
    #[cold]
    fn seek_stray<const UP: bool>(&self, key: &mut Vec<u8>) -> Option<&u64> {
        let Some(at) = C::stray(key) else {
            unreachable!("a word misfits for a byte that strays")
        };
        // Seek from what is before the stray byte. Upwards, that string itself would be too low.
        let tail = key.split_off(at);
        let found = self.seek::<UP>(key, !UP);
        if found.is_none() {
            key.extend_from_slice(&tail);
        }
        found
    }

    /// The first (last) string of all, put into `key`.
    pub(crate) fn first<const UP: bool>(&self, key: &mut Vec<u8>) -> Option<&u64> {
        // Nothing is before the least word, nor after the greatest.
        let found = seek::<UP, Parts>(&self.root, if UP { 0 } else { u64::MAX })?;
        key.clear();
        self.edge::<UP>(found, key)
    }

    /// The first (last) string below a word, added to `key` with the word.
    #[inline]
    fn edge<'a, const UP: bool>(&'a self, found: Found<'a>, key: &mut Vec<u8>) -> Option<&'a u64> {
        let mut found = found;
        loop {
            let (word, value) = (found.0, found.1?);
            C::push(word, key);
            // A word that ends its string has the value. Any other leads further down.
            if !C::goes_on(word) {
                return Some(value);
            }
            // SAFETY: the word goes on, so its value is a link (JU5). What it leads to is alive as
            // long as the tree is lent.
            unsafe {
                match Link::from_word(*value).open() {
                    // The edge of the array below comes next. A lone string is at its end.
                    Below::Array(below) => {
                        found = seek::<UP, Parts>(array(below), if UP { 0 } else { u64::MAX })?
                    }
                    Below::Lone(lone) => {
                        key.extend_from_slice(lone.rest());
                        return Some(&*lone.value());
                    }
                }
            }
        }
    }

    /// Empties the tree. Its nodes wait until `free_some` frees them.
    pub(crate) fn clear_later(&mut self) {
        self.doomed.add(self.root.take());
        self.len = 0;
    }

    /// Frees at most `limit` of the waiting nodes. Returns whether there are more.
    pub(crate) fn free_some(&mut self, limit: usize) -> bool {
        // The nodes of the arrays are given back run by run. What a run leads to is taken over
        // first.
        self.doomed.free(limit, &mut self.mem, |run, below, mem| {
            links::<C>(run, |link| {
                // SAFETY: the run is about to be given back, so nobody uses its links again. What
                // they lead to is taken over.
                unsafe {
                    match link.open() {
                        Below::Lone(lone) => lone.drop(mem),
                        Below::Array(pair) => {
                            below.push((*pair).take());
                            Link::drop_array(pair, mem);
                        }
                    }
                }
            })
        });
        !self.doomed.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.clear_later();
        self.free_some(usize::MAX);
    }

    /// Counts the nodes by form.
    pub(crate) fn stats(&self) -> TextStats {
        let mut all = TextStats {
            arrays: 1,
            ..TextStats::default()
        };
        // A stack of arrays, not recursion: strings may be long.
        let mut arrays = vec![&self.root];
        while let Some(jp) = arrays.pop() {
            stats(jp, ROOT, 1, &mut all.words);
            each_run(jp, &mut |run| {
                links::<C>(run, |link| match link.open() {
                    Below::Lone(_) => all.short_cuts += 1,
                    Below::Array(pair) => {
                        all.arrays += 1;
                        // SAFETY: the link's array is alive as long as the tree is lent.
                        arrays.push(unsafe { array(pair) });
                    }
                })
            });
        }
        all
    }

    /// Checks every array (JU1 to JU4), and JU6.
    #[cfg(test)]
    pub(crate) fn check(&self) {
        let mut arrays = vec![(&self.root, true)];
        let mut strings = 0;
        while let Some((jp, root)) = arrays.pop() {
            let pop = crate::ops::stats::check(jp, ROOT, 0);
            let before = arrays.len();
            // Each link is a string, or an array of at least two.
            let (mut links_, mut lone) = (0, 0);
            each_run(jp, &mut |run| {
                links::<C>(run, |link| {
                    links_ += 1;
                    match link.open() {
                        Below::Lone(_) => lone += 1,
                        // SAFETY: the link's array is alive as long as the tree is lent.
                        Below::Array(pair) => arrays.push((unsafe { array(pair) }, false)),
                    }
                })
            });
            // Words that go on are no strings of their own. Lone strings are.
            strings += pop - links_ + lone;
            assert!(root || pop > 1 || arrays.len() > before, "2");
        }
        assert_eq!(strings, self.len);
    }
}

fn pair((word, value): Found<'_>) -> (u64, u64) {
    (word, value.copied().unwrap_or(0))
}

/// Calls `each` with every run below a pair.
pub(super) fn each_run<'a>(jp: &'a Jp<Parts>, each: &mut impl FnMut(&'a Jp<Parts>)) {
    match jp.view(ROOT).0 {
        View::Branch(branch) => branch
            .children()
            .for_each(|(_, child)| each_run(child, each)),
        _ => each(jp),
    }
}

/// Calls `each` with every link of a run. The last byte of a word, which every form keeps, says
/// whether its string goes on.
pub(super) fn links<C: Chunks>(run: &Jp<Parts>, mut each: impl FnMut(Link)) {
    let View::Run(run) = run.view(ROOT).0 else {
        return;
    };
    run.for_each(|key, value| {
        if let (true, Some(&value)) = (C::goes_on(key), value) {
            // SAFETY: the word goes on, so its value is a link (JU5).
            each(unsafe { Link::from_word(value) });
        }
    });
}

impl<C: Chunks> Drop for Text<C> {
    fn drop(&mut self) {
        self.clear();
    }
}
