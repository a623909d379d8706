//! Branches: 256-way nodes in three forms.
//!
//! ```text
//! linear:  | 7 digits, count | pair | pair | …   up to 7 children, sorted by digit; 5 to 15 words
//! bitmap:  | 64 bits | address | … four times    8 words: one cache line
//!                         └─→ | pair | pair | …  as many as bits are set (none: null)
//! wide:    | pair | pair | … | pair |            256 pairs, 4 KiB; a missing child is a null pair
//! ```

use smallvec::SmallVec;

use super::bits::{below, nearest, place};
use super::{Form, Jp, Tag, View};
use crate::layout::{
    deserves_wide, linear_words, quarter_pairs, time_to_ask, Kind, LINEAR_AGAIN, LINEAR_MOST,
    WIDE_AGAIN,
};
use crate::raw::mem::Mem;

/// A quarter of a bitmap branch.
#[repr(C)]
pub(crate) struct BranchQuarter<K> {
    bits: u64,
    pairs: *mut Jp<K>,
}

/// A branch, for reading.
pub(crate) enum Branch<'a, K> {
    Linear(u64, &'a [Jp<K>]),
    Bitmap(&'a [BranchQuarter<K>; 4]),
    Wide(&'a [Jp<K>; 256]),
}

/// Children with their digits, in order. Rarely more than a leaf has indexes.
pub(crate) type Children<K> = SmallVec<[(u8, Jp<K>); 40]>;

/// The number of children, from the head of a linear branch.
#[inline]
fn count(head: u64) -> usize {
    (head >> 56) as usize
}

/// The place of a digit in the head of a linear branch, or where it would be.
#[inline]
fn find(head: u64, digit: u8) -> Result<usize, usize> {
    // Look for the digit in all seven bytes at once.
    const ONES: u64 = 0x0101_0101_0101_0101;
    let differ = head ^ (ONES * digit as u64);
    // The lowest byte that is zero has the lowest of these bits.
    let zero = differ.wrapping_sub(ONES) & !differ & (ONES << 7);
    let at = zero.trailing_zeros() as usize / 8;
    // The bytes after the digits may be equal, too. Such a place is no hit.
    let n = count(head);
    if at < n {
        return Ok(at);
    }
    // The digit is missing. Count those below it, which is its place.
    Err((0..n)
        .take_while(|at| ((head >> (8 * at)) as u8) < digit)
        .count())
}

impl<K> BranchQuarter<K> {
    #[inline]
    fn pairs(&self) -> &[Jp<K>] {
        let n = self.bits.count_ones() as usize;
        // An empty quarter has no block. Its address is null.
        if n == 0 {
            return &[];
        }
        // SAFETY: a quarter's block holds a pair for every bit that is set. The branch owns it.
        unsafe { std::slice::from_raw_parts(self.pairs, n) }
    }
}

impl<'a, K: Kind> Branch<'a, K> {
    /// The child of a digit, if there is one.
    #[inline]
    pub(crate) fn child(&self, digit: u8) -> Option<&'a Jp<K>> {
        match self {
            Branch::Linear(head, pairs) => find(*head, digit).ok().map(|at| &pairs[at]),
            Branch::Bitmap(quarters) => {
                let quarter = &quarters[digit as usize >> 6];
                let at = place(quarter.bits, digit & 63)?;
                // SAFETY: a quarter's block holds a pair for every bit that is set, in the order of
                // the bits.
                Some(unsafe { &*quarter.pairs.add(at) })
            }
            // A wide branch has a null pair for each missing child.
            Branch::Wide(pairs) => Some(&pairs[digit as usize]).filter(|jp| !jp.is_null()),
        }
    }

    /// The nearest child from a digit on, itself included, upwards or downwards.
    #[inline(always)]
    pub(crate) fn seek<const UP: bool>(&self, digit: u8) -> Option<(u8, &'a Jp<K>)> {
        match self {
            // Digits are sorted, so the neighbour in the direction is next to the place.
            Branch::Linear(head, pairs) => {
                let at = match find(*head, digit) {
                    Ok(at) => at,
                    Err(at) if UP => at,
                    Err(at) => at.checked_sub(1)?,
                };
                pairs.get(at).map(|jp| ((head >> (8 * at)) as u8, jp))
            }
            // The bit says which quarter, and how many bits are below it says which pair.
            Branch::Bitmap(quarters) => {
                let (at, bit) = nearest::<UP>(digit, |at| quarters[at].bits)?;
                let quarter = &quarters[at];
                let child = &quarter.pairs()[below(quarter.bits, bit)];
                Some((at as u8 * 64 + bit, child))
            }
            // A wide branch is searched pair by pair.
            Branch::Wide(pairs) => {
                let found = |at: &usize| !pairs[*at].is_null();
                let at = if UP {
                    (digit as usize..256).find(found)
                } else {
                    (0..=digit as usize).rev().find(found)
                };
                at.map(|at| (at as u8, &pairs[at]))
            }
        }
    }

    /// The child with a digit above (or below) this one.
    #[inline(always)]
    pub(crate) fn beyond<const UP: bool>(&self, digit: u8) -> Option<(u8, &'a Jp<K>)> {
        // Nothing is beyond the last digit in the direction: the addition, or subtraction, fails.
        let from = if UP {
            digit.checked_add(1)?
        } else {
            digit.checked_sub(1)?
        };
        self.seek::<UP>(from)
    }

    /// All children in order.
    pub(crate) fn children(&self) -> impl Iterator<Item = (u8, &'a Jp<K>)> + '_ {
        // The next child is found one step ahead.
        let mut next = self.seek::<true>(0);
        std::iter::from_fn(move || {
            let now = next?;
            next = self.beyond::<true>(now.0);
            Some(now)
        })
    }

    /// All children, the last one first.
    pub(crate) fn children_down(&self) -> impl Iterator<Item = (u8, &'a Jp<K>)> + '_ {
        let mut next = self.seek::<false>(255);
        std::iter::from_fn(move || {
            let now = next?;
            next = self.beyond::<false>(now.0);
            Some(now)
        })
    }

    /// The number of children.
    pub(crate) fn len(&self) -> usize {
        match self {
            Branch::Linear(_, pairs) => pairs.len(),
            Branch::Bitmap(quarters) => quarters.iter().map(|q| q.bits.count_ones() as usize).sum(),
            // A wide branch doesn't count its children.
            Branch::Wide(pairs) => pairs.iter().filter(|jp| !jp.is_null()).count(),
        }
    }
}

/// The count of a branch's indexes, which must be changed together with its children.
pub(crate) struct Tally<'a>(&'a mut u64);

impl Tally<'_> {
    #[inline]
    pub(crate) fn add_one(self) {
        // The population begins after the eight bits of the tag.
        *self.0 = self.0.wrapping_add(1 << 8);
    }

    #[inline]
    pub(crate) fn take_one(self) {
        *self.0 = self.0.wrapping_sub(1 << 8);
    }
}

impl<K: Kind> Jp<K> {
    #[inline]
    pub(crate) fn as_linear(&self) -> Branch<'_, K> {
        // SAFETY: a linear branch's block is its head, and as many pairs as the head counts.
        unsafe {
            let head = *self.block();
            Branch::Linear(
                head,
                std::slice::from_raw_parts(self.block().add(1).cast(), count(head)),
            )
        }
    }

    #[inline]
    pub(crate) fn as_bitmap(&self) -> Branch<'_, K> {
        // SAFETY: a bitmap branch's block is four quarters.
        Branch::Bitmap(unsafe { &*self.block().cast() })
    }

    #[inline]
    pub(crate) fn as_wide(&self) -> Branch<'_, K> {
        // SAFETY: a wide branch's block is 256 pairs.
        Branch::Wide(unsafe { &*self.block().cast() })
    }

    #[inline]
    fn quarter_mut(&mut self, quarter: usize) -> &mut BranchQuarter<K> {
        debug_assert!(matches!(self.form(), Form::Bitmap(_)) && quarter < 4);
        // SAFETY: this is called for bitmap branches only, with a quarter from 0 to 3. The block is
        // four quarters.
        unsafe { &mut *self.block().cast::<BranchQuarter<K>>().add(quarter) }
    }

    /// Whether this is a branch that has a child of the digit.
    #[inline]
    pub(crate) fn has_child(&self, digit: u8) -> bool {
        // Only the form matters here, so any level of the slot will do.
        matches!(self.view(8).0, View::Branch(branch) if branch.child(digit).is_some())
    }

    /// The child of a digit, if this is a branch that has it, and the branch's count beside it.
    #[inline]
    pub(crate) fn child_mut(&mut self, digit: u8) -> Option<(Tally<'_>, &mut Jp<K>)> {
        let block = self.block();
        // SAFETY: each form's block holds pairs as the module's drawing says. The digit is looked
        // up among those that are there. The branch owns them, and is borrowed exclusively. The
        // count lies in the branch's own pair.
        let child = unsafe {
            match self.form() {
                Form::Linear(_) => {
                    let at = find(*block, digit).ok()?;
                    &mut *block.add(1).cast::<Jp<K>>().add(at)
                }
                Form::Bitmap(_) => {
                    let quarter = &*block.cast::<BranchQuarter<K>>().add(digit as usize >> 6);
                    &mut *quarter.pairs.add(place(quarter.bits, digit & 63)?)
                }
                Form::Wide(_) => {
                    let child = &mut *block.cast::<Jp<K>>().add(digit as usize);
                    if child.is_null() {
                        return None;
                    }
                    child
                }
                _ => return None,
            }
        };
        Some((Tally(&mut self.meta), child))
    }

    /// Makes a branch of level `k` with these children, at least one. They have `pop` indexes,
    /// which share the bytes of `key` above the level.
    pub(crate) fn branch(
        k: usize,
        key: u64,
        pop: u64,
        children: Children<K>,
        mem: &mut Mem,
    ) -> Self {
        let n = children.len();
        assert!((2..=8).contains(&k) && (1..=256).contains(&n));
        // A form that is chosen by the number of children, and by how many indexes are below them.
        let meta = Self::field(k, key, pop, Tag::linear(k));
        if n <= LINEAR_MOST {
            return Self::new_linear(meta, children, mem);
        }
        if deserves_wide::<K>(n, pop) {
            return Self::new_wide(meta, k, children, mem);
        }
        Self::new_bitmap(meta, k, children, mem)
    }

    fn new_linear(meta: u64, children: Children<K>, mem: &mut Mem) -> Self {
        let n = children.len();
        let block = mem.take(linear_words(n));
        // The head has the count in its highest byte, and the digits below it in order.
        let mut head = (n as u64) << 56;
        for (at, (digit, child)) in children.into_iter().enumerate() {
            head |= (digit as u64) << (8 * at);
            // SAFETY: the block has room for `n` pairs after its head.
            unsafe { block.add(1).cast::<Jp<K>>().add(at).write(child) };
        }
        // SAFETY: the block has at least a word.
        unsafe { *block = head };
        Jp::with_block(block, meta)
    }

    fn new_wide(meta: u64, k: usize, children: Children<K>, mem: &mut Mem) -> Self {
        let block = mem.take(512);
        // SAFETY: the block has 512 words. Zeros are null pairs.
        unsafe { block.write_bytes(0, 512) };
        // The digit is the place.
        for (digit, child) in children {
            // SAFETY: the block is 256 pairs.
            unsafe { block.cast::<Jp<K>>().add(digit as usize).write(child) };
        }
        let mut jp = Jp::with_block(block, meta);
        jp.retag(Tag::wide(k));
        jp
    }

    fn new_bitmap(meta: u64, k: usize, children: Children<K>, mem: &mut Mem) -> Self {
        let block = mem.take(8);
        // Count the children of each quarter, to take blocks of the right sizes at once.
        let mut counts = [0; 4];
        children
            .iter()
            .for_each(|(digit, _)| counts[*digit as usize >> 6] += 1);
        // Each quarter has a block of its own, as large as its children need.
        for (quarter, &n) in counts.iter().enumerate() {
            let pairs = if n == 0 {
                std::ptr::null_mut()
            } else {
                mem.take(2 * quarter_pairs(n)).cast()
            };
            // SAFETY: the block is four quarters.
            unsafe {
                block
                    .cast::<BranchQuarter<K>>()
                    .add(quarter)
                    .write(BranchQuarter { bits: 0, pairs })
            };
        }
        let mut jp = Jp::with_block(block, meta);
        jp.retag(Tag::bitmap(k));
        // Children are in order, so each pair goes after those that the quarter already has.
        for (digit, child) in children {
            let quarter = jp.quarter_mut(digit as usize >> 6);
            let at = quarter.bits.count_ones() as usize;
            quarter.bits |= 1 << (digit & 63);
            // SAFETY: the quarter's block has room for all its children. Children come in order.
            unsafe { quarter.pairs.add(at).write(child) };
        }
        jp
    }

    /// Adds a child for a digit that has none, without counting its indexes. May change the form of
    /// the branch.
    pub(crate) fn add_child(&mut self, digit: u8, child: Jp<K>, mem: &mut Mem) {
        match self.form() {
            Form::Linear(k) => self.linear_add(k, digit, child, mem),
            Form::Bitmap(k) => {
                self.bitmap_add(digit, child, mem);
                // A wide branch takes 4 KiB, which many children or indexes justify.
                let children = self.as_bitmap().len();
                if deserves_wide::<K>(children, self.pop_at(k)) {
                    self.rebuild(mem);
                }
            }
            // SAFETY: a wide branch's block is 256 pairs. The one at this place is null, and owns
            // nothing.
            Form::Wide(_) => unsafe {
                self.block()
                    .cast::<Jp<K>>()
                    .add(digit as usize)
                    .write(child)
            },
            _ => debug_assert!(false, "no branch"),
        }
    }

    fn linear_add(&mut self, k: usize, digit: u8, child: Jp<K>, mem: &mut Mem) {
        // SAFETY: a linear branch's first word is its head.
        let head = unsafe { *self.block() };
        let n = count(head);
        let Err(at) = find(head, digit) else { return };
        // A head of seven digits is full: the branch becomes a bitmap branch.
        if n == LINEAR_MOST {
            let mut children = self.take_children(mem);
            children.insert(at, (digit, child));
            *self = Self::new_bitmap(self.meta, k, children, mem);
            return;
        }
        // Digits from the place on move up by one byte. The count is in the highest byte.
        let low = (1 << (8 * at)) - 1;
        let digits = head & (!0 >> 8);
        let head = (digits & low)
            | (digit as u64) << (8 * at)
            | (digits & !low) << 8
            | (n as u64 + 1) << 56;
        // Blocks come in few sizes, so the new pair often fits into the old block.
        let (old, new) = (linear_words(n), linear_words(n + 1));
        let block = self.block();
        // SAFETY:
        // 1. The block holds `n` pairs after its head. The block for one more has room for it.
        // 2. A fresh block overlaps no other.
        // 3. The old one is of the class that its count says.
        unsafe {
            let pairs = block.add(1).cast::<Jp<K>>();
            let mut target = block;
            if old == new {
                pairs.add(at).copy_to(pairs.add(at + 1), n - at);
            } else {
                target = mem.take(new);
                let fresh = target.add(1).cast::<Jp<K>>();
                fresh.copy_from_nonoverlapping(pairs, at);
                fresh
                    .add(at + 1)
                    .copy_from_nonoverlapping(pairs.add(at), n - at);
                mem.give(block, old);
            }
            target.add(1).cast::<Jp<K>>().add(at).write(child);
            *target = head;
            self.word.block = target;
        }
    }

    fn bitmap_add(&mut self, digit: u8, child: Jp<K>, mem: &mut Mem) {
        let quarter = self.quarter_mut(digit as usize >> 6);
        // A quarter's pairs are as many as its bits, in the order of the bits.
        let n = quarter.bits.count_ones() as usize;
        let at = below(quarter.bits, digit & 63);
        let (old, new) = (quarter_pairs(n), quarter_pairs(n + 1));
        // SAFETY: as in `linear_add`, with the quarter's block.
        unsafe {
            // Make room in the block, or copy the pairs to a larger one with a gap at the place.
            if old == new {
                quarter
                    .pairs
                    .add(at)
                    .copy_to(quarter.pairs.add(at + 1), n - at);
            } else {
                let fresh = mem.take(2 * new).cast::<Jp<K>>();
                if n > 0 {
                    fresh.copy_from_nonoverlapping(quarter.pairs, at);
                    fresh
                        .add(at + 1)
                        .copy_from_nonoverlapping(quarter.pairs.add(at), n - at);
                    mem.give(quarter.pairs.cast(), 2 * old);
                }
                quarter.pairs = fresh;
            }
            quarter.pairs.add(at).write(child);
        }
        quarter.bits |= 1 << (digit & 63);
    }

    /// Removes a child that has become null. May change the form of the branch. A branch without
    /// children becomes null.
    pub(crate) fn remove_null(&mut self, digit: u8, mem: &mut Mem) {
        // A branch that has become small gets a smaller form, but not at once: the bounds for
        // growing and shrinking differ, so that one index doesn't flip the form to and fro.
        let few = match self.form() {
            Form::Linear(_) => {
                self.linear_remove(digit, mem);
                false
            }
            Form::Bitmap(_) if self.has_child(digit) => {
                self.bitmap_remove(digit, mem);
                self.as_bitmap().len() <= LINEAR_AGAIN
            }
            Form::Wide(_) => self.as_wide().children().nth(LINEAR_AGAIN).is_none(),
            _ => false,
        };
        if few {
            self.rebuild(mem);
        }
    }

    /// Makes a bitmap branch of level `k` a wide one, if it has become populous. That is checked
    /// now and then only.
    #[inline]
    pub(crate) fn widen_out(&mut self, k: usize, mem: &mut Mem) {
        if time_to_ask(self.pop_at(k)) && deserves_wide::<K>(self.as_bitmap().len(), self.pop_at(k))
        {
            self.rebuild(mem);
        }
    }

    /// How many children a linear branch has.
    #[inline]
    pub(crate) fn linear_count(&self) -> usize {
        match self.view(8).0 {
            View::Branch(Branch::Linear(head, _)) => count(head),
            _ => 0,
        }
    }

    /// Makes a wide branch that has become too sparse a smaller one.
    pub(crate) fn narrow_down(&mut self, mem: &mut Mem) {
        if matches!(self.form(), Form::Wide(k) if self.pop_at(k) <= WIDE_AGAIN) {
            self.rebuild(mem);
        }
    }

    /// Removes the pair of a null child from a linear branch.
    fn linear_remove(&mut self, digit: u8, mem: &mut Mem) {
        let block = self.block();
        // SAFETY: as in `linear_add`. The branch has the place `at`.
        unsafe {
            let head = *block;
            // The pair of the child is removed. The last one takes the branch with it.
            let Ok(at) = find(head, digit) else { return };
            let n = count(head);
            let pairs = block.add(1).cast::<Jp<K>>();
            if n == 1 {
                mem.give(block, linear_words(1));
                *self = Jp::NULL;
                return;
            }
            // The digits after the place move down by one byte.
            let low = (1 << (8 * at)) - 1;
            let digits = head & (!0 >> 8);
            let (old, new) = (linear_words(n), linear_words(n - 1));
            let mut target = block;
            // Remove the pair in place, if the smaller block would be of the same size.
            if old == new {
                pairs.add(at + 1).copy_to(pairs.add(at), n - 1 - at);
            } else {
                target = mem.take(new);
                let fresh = target.add(1).cast::<Jp<K>>();
                fresh.copy_from_nonoverlapping(pairs, at);
                fresh
                    .add(at)
                    .copy_from_nonoverlapping(pairs.add(at + 1), n - 1 - at);
                mem.give(block, old);
            }
            *target = (digits & low) | (digits >> 8 & !low) | (n as u64 - 1) << 56;
            self.word.block = target;
        }
    }

    /// Removes the pair of a null child from a bitmap branch.
    fn bitmap_remove(&mut self, digit: u8, mem: &mut Mem) {
        let quarter = self.quarter_mut(digit as usize >> 6);
        let n = quarter.bits.count_ones() as usize;
        let at = below(quarter.bits, digit & 63);
        let (old, new) = (quarter_pairs(n), quarter_pairs(n - 1));
        quarter.bits &= !(1 << (digit & 63));
        // SAFETY: as in `linear_add`, with the quarter's block. The digit's child is the `at`th.
        unsafe {
            // The pairs after the place move down within the block, if it stays.
            if old == new {
                quarter
                    .pairs
                    .add(at + 1)
                    .copy_to(quarter.pairs.add(at), n - 1 - at);
                return;
            }
            // An empty quarter has no block.
            let mut fresh = std::ptr::null_mut();
            if new > 0 {
                fresh = mem.take(2 * new).cast::<Jp<K>>();
                fresh.copy_from_nonoverlapping(quarter.pairs, at);
                fresh
                    .add(at)
                    .copy_from_nonoverlapping(quarter.pairs.add(at + 1), n - 1 - at);
            }
            mem.give(quarter.pairs.cast(), 2 * old);
            quarter.pairs = fresh;
        }
    }

    /// Builds a branch again, in the form that suits its children and population.
    #[cold]
    #[inline(never)]
    fn rebuild(&mut self, mem: &mut Mem) {
        let meta = self.meta;
        let Some(k) = self.form().level() else { return };
        // Take the children out, and put them into the form that fits.
        let children = self.take_children(mem);
        let n = children.len();
        // The population less one, in the low bytes of the field. It fits into seven bytes.
        let pop = ((meta >> 8) & crate::layout::mask(k.min(7))) + 1;
        *self = if n == 0 {
            Jp::NULL
        } else if n <= LINEAR_MOST {
            let mut jp = Self::new_linear(meta, children, mem);
            jp.retag(Tag::linear(k));
            jp
        } else if deserves_wide::<K>(n, pop) {
            Self::new_wide(meta, k, children, mem)
        } else {
            Self::new_bitmap(meta, k, children, mem)
        };
    }

    /// Frees the blocks of a branch, and returns its children. The pair keeps its meta word, which
    /// the caller still needs, but owns nothing any more.
    fn take_children(&mut self, mem: &mut Mem) -> Children<K> {
        let mut children = Children::new();
        let meta = self.meta;
        self.dismantle(mem, |digit, child| children.push((digit, child)));
        self.meta = meta;
        children
    }

    /// Frees the blocks of a branch, and makes it null. Its children are passed to the caller.
    pub(crate) fn dismantle(&mut self, mem: &mut Mem, mut child: impl FnMut(u8, Jp<K>)) {
        // Move the children out first. The blocks themselves own nothing then.
        let jp = self.take();
        if let (View::Branch(branch), _) = jp.view(8) {
            for (digit, pair) in branch.children() {
                // SAFETY: each pair is read once. Its place in the block is never read again: the
                // block is given back below.
                child(digit, unsafe { std::ptr::read(pair) });
            }
        }
        // SAFETY: each block is of the class that its form or a count in it says. The pair is gone,
        // so nobody uses them again.
        unsafe {
            match jp.form() {
                Form::Linear(_) => mem.give(jp.block(), linear_words(count(*jp.block()))),
                Form::Wide(_) => mem.give(jp.block(), 512),
                Form::Bitmap(_) => {
                    for quarter in 0..4 {
                        let quarter = &*jp.block().cast::<BranchQuarter<K>>().add(quarter);
                        if quarter.bits != 0 {
                            let n = quarter.bits.count_ones() as usize;
                            mem.give(quarter.pairs.cast(), 2 * quarter_pairs(n));
                        }
                    }
                    mem.give(jp.block(), 8);
                }
                _ => *self = jp,
            }
        }
    }
}
