//! The pointer pair, of which a Judy array is made (Judy's JP).
//!
//! ```text
//!  word (8 bytes)                 meta (8 bytes, as one little-endian integer)
//! ┌──────────────────────────┐   ┌─────┬────────────────────────────────────────┐
//! │ the node's address, or   │   │ tag │ field, 7 bytes                         │
//! │ a value, or index bytes  │   └─────┴────────────────────────────────────────┘
//! └──────────────────────────┘    bits 0..8   bits 8..64
//!
//! field of a node of level k:   low k bytes: population - 1;
//!                               the others: the bytes 7 … k+1 of every index below
//! field of ONE:                 the low seven bytes of the index; word: its value
//! field of IMMED, map:          n × k bytes of indexes;           word: address of n values
//! field + word of IMMED, set:   n × k bytes of indexes, up to 15
//! ```
//!
//! A node has *level* k if k bytes of an index have not been decoded above it. A pair in a slot of
//! level L may lead to a node of a lower level k (a *narrow pointer*). Then the bytes L … k+1 are
//! equal in the whole subtree, and are stored in the field. The eighth byte doesn't fit in the
//! field. So the root's node, in the only slot of level 8, is never narrow.

pub(crate) mod bits;
pub(crate) mod branch;
pub(crate) mod immed;
pub(crate) mod leaf;

use std::fmt;
use std::marker::PhantomData;

use self::bits::Bits;
use self::branch::Branch;
use self::immed::Immed;
use self::leaf::Leaf;
use crate::layout::{mask, Kind};

/// The tag of a pair: the low byte of its meta word.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tag(pub(super) u8);

impl Tag {
    pub(super) const ONE: Tag = Tag(1);
    pub(super) const BITS: Tag = Tag(2);
    pub(super) const FULL: Tag = Tag(3);

    // The high four bits are the form, the low four bits the level.
    pub(super) const fn linear(k: usize) -> Tag {
        Tag(0x10 | k as u8)
    }
    pub(super) const fn bitmap(k: usize) -> Tag {
        Tag(0x20 | k as u8)
    }
    pub(super) const fn wide(k: usize) -> Tag {
        Tag(0x30 | k as u8)
    }
    pub(super) const fn leaf(k: usize) -> Tag {
        Tag(0x40 | k as u8)
    }
    pub(super) const fn immed(n: usize, k: usize) -> Tag {
        // The highest bit marks immediates. Their number takes four bits, and `k` three.
        Tag(0x80 | (n << 3 | k) as u8)
    }
}

impl fmt::Debug for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", Form::of(self.0 as u64))
    }
}

/// A decoded tag: the form of the pair, and its level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// The pair is empty.
    Null,
    /// The pair itself has one index.
    One,
    /// The pair itself has `n` indexes of `k` bytes.
    Immed { n: usize, k: usize },
    /// A sorted array of indexes of `k` bytes.
    Leaf(usize),
    /// A bitmap leaf, level 1.
    Bits,
    /// A leaf with all 256 indexes of level 1.
    Full,
    /// A branch with at most seven children.
    Linear(usize),
    /// A branch with a bitmap of its children.
    Bitmap(usize),
    /// A branch with 256 pairs.
    Wide(usize),
}

impl Form {
    #[inline]
    pub(crate) fn of(meta: u64) -> Form {
        // The low four bits are a level or a detail of the form, the high four the form itself.
        let low = (meta & 0xf) as usize;
        match (meta as u8) >> 4 {
            0 => match low {
                0 => Form::Null,
                1 => Form::One,
                2 => Form::Bits,
                _ => Form::Full,
            },
            1 => Form::Linear(low),
            2 => Form::Bitmap(low),
            3 => Form::Wide(low),
            4 => Form::Leaf(low),
            // Immediates need more bits for their number, so their tags take all that are left.
            _ => Form::Immed {
                n: (meta >> 3 & 0xf) as usize,
                k: (meta & 7) as usize,
            },
        }
    }

    /// The level of the node. `None` if there is no node: what is in the pair itself has the level
    /// of its slot.
    #[inline]
    pub(crate) fn level(self) -> Option<usize> {
        match self {
            Form::Null | Form::One | Form::Immed { .. } => None,
            Form::Bits | Form::Full => Some(1),
            Form::Leaf(k) | Form::Linear(k) | Form::Bitmap(k) | Form::Wide(k) => Some(k),
        }
    }
}

/// Dispatches on the form of a pair in a slot. There is code for an empty pair, for a run with its
/// level (and whether the pair may be narrow), and for a branch with its level. The code is written
/// once and compiled once for each form, so that the form is a constant in it.
macro_rules! on_form {
    ($jp:expr, $slot:expr, Null => $null:expr, Run($run:pat, $k:pat, $narrow:pat) => $on_run:expr,
     Branch($branch:pat, $level:pat) => $on_branch:expr) => {
        match $jp.form() {
            $crate::raw::jp::Form::Null => $null,
            $crate::raw::jp::Form::One => {
                let ($run, $k, $narrow) = (
                    $jp.run($crate::raw::jp::Run::One($jp.as_one($slot))),
                    $slot,
                    false,
                );
                $on_run
            }
            $crate::raw::jp::Form::Immed { n, k } => {
                let ($run, $k, $narrow) = (
                    $jp.run($crate::raw::jp::Run::Immed($jp.as_immed(n, k))),
                    k,
                    false,
                );
                $on_run
            }
            $crate::raw::jp::Form::Leaf(k) => {
                let ($run, $k, $narrow) =
                    ($jp.run($crate::raw::jp::Run::Leaf($jp.as_leaf(k))), k, true);
                $on_run
            }
            $crate::raw::jp::Form::Bits => {
                let ($run, $k, $narrow) =
                    ($jp.run($crate::raw::jp::Run::Bits($jp.as_bits())), 1, true);
                $on_run
            }
            $crate::raw::jp::Form::Full => {
                let ($run, $k, $narrow) =
                    ($jp.run($crate::raw::jp::Run::Full($jp.as_full())), 1, true);
                $on_run
            }
            $crate::raw::jp::Form::Linear(k) => {
                let ($branch, $level) = ($jp.as_linear(), k);
                $on_branch
            }
            $crate::raw::jp::Form::Bitmap(k) => {
                let ($branch, $level) = ($jp.as_bitmap(), k);
                $on_branch
            }
            $crate::raw::jp::Form::Wide(k) => {
                let ($branch, $level) = ($jp.as_wide(), k);
                $on_branch
            }
        }
    };
}
pub(crate) use on_form;

/// A pair's first word.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) union Word {
    pub(super) block: *mut u64,
    pub(super) value: u64,
}

/// A pointer pair. It owns what is below it. It has no destructor: a pair that is only dropped
/// leaks what is below it, and `ops::free` frees it.
#[repr(C)]
pub(crate) struct Jp<K> {
    pub(super) word: Word,
    pub(super) meta: u64,
    pub(super) kind: PhantomData<K>,
}

// SAFETY: a pair owns its block as a `Box` does, and the block is plain memory. `&Jp` only reads
// it.
unsafe impl<K> Send for Jp<K> {}
// SAFETY: as above: nothing behind `&Jp` is ever written.
unsafe impl<K> Sync for Jp<K> {}

/// The contents of a pair, for reading.
pub(crate) enum View<'a, K> {
    Null,
    Run(Run<'a, K>),
    Branch(Branch<'a, K>),
}

/// A sorted run of indexes in one of its forms.
pub(crate) enum Run<'a, K> {
    One(One<'a>),
    Immed(Immed<'a, K>),
    Leaf(Leaf<'a, K>),
    Bits(Bits<'a, K>),
    Full(Full<'a>),
}

/// One index in the pair.
#[derive(Clone, Copy)]
pub(crate) struct One<'a> {
    key: u64,
    value: &'a u64,
}

/// All 256 indexes of level 1; a map's values, or nothing.
#[derive(Clone, Copy)]
pub(crate) struct Full<'a> {
    pub(super) values: Option<&'a [u64; 256]>,
}

impl<K: Kind> Jp<K> {
    /// The empty pair.
    pub(crate) const NULL: Jp<K> = Jp {
        word: Word { value: 0 },
        meta: 0,
        kind: PhantomData,
    };

    #[inline]
    pub(super) fn with_block(block: *mut u64, meta: u64) -> Self {
        // The level of the node is in the tag of `meta`.
        Jp {
            word: Word { block },
            meta,
            kind: PhantomData,
        }
    }

    /// One index and its value, for a slot of any level below 8.
    #[inline]
    pub(crate) fn one(key: u64, value: u64) -> Self {
        // Seven bytes of the index fit into the field. The eighth is in the path, as the slot is
        // not the root's.
        Jp {
            word: Word { value },
            meta: key << 8 | Tag::ONE.0 as u64,
            kind: PhantomData,
        }
    }

    #[inline]
    pub(crate) fn form(&self) -> Form {
        Form::of(self.meta)
    }

    #[inline]
    pub(crate) fn is_null(&self) -> bool {
        self.meta == 0
    }

    /// Takes the pair out, and leaves the empty pair.
    #[inline]
    pub(crate) fn take(&mut self) -> Self {
        std::mem::replace(self, Self::NULL)
    }

    #[inline]
    pub(super) fn block(&self) -> *mut u64 {
        // SAFETY: every bit pattern of the union is a valid pointer value. Only code that has read
        // a block's tag follows it.
        unsafe { self.word.block }
    }

    /// The pair's first word as an integer: a value, or a set's index bytes.
    #[inline]
    pub(super) fn word_value(&self) -> &u64 {
        // SAFETY: this is called for ONE and for a set's IMMED only. Their word was written as an
        // integer.
        unsafe { &self.word.value }
    }

    #[inline]
    pub(super) fn word_value_mut(&mut self) -> &mut u64 {
        // SAFETY: as `word_value`.
        unsafe { &mut self.word.value }
    }

    /// The population: the number of indexes below.
    #[inline]
    pub(crate) fn pop(&self) -> u64 {
        // The number is in the tag if the indexes are in the pair, and in the field if there is a
        // node.
        match self.form() {
            Form::Null => 0,
            Form::One => 1,
            Form::Immed { n, .. } => n as u64,
            Form::Full => 256,
            Form::Bits => self.pop_at(1),
            Form::Leaf(k) | Form::Linear(k) | Form::Bitmap(k) | Form::Wide(k) => self.pop_at(k),
        }
    }

    /// The population in the field of a node of level `k`. That of the root is modulo 2⁵⁶.
    #[inline]
    pub(super) fn pop_at(&self, k: usize) -> u64 {
        // A node is never empty. So the field has the population minus one, and the greatest
        // population, 256^k, fits into `k` bytes.
        ((self.meta >> 8) & mask(k.min(7))) + 1
    }

    /// Whether the index differs from all indexes below in a byte above level `k`, which is the
    /// level of the node.
    #[inline]
    pub(crate) fn strays(&self, k: usize, key: u64) -> bool {
        // Compare with the field. The tag, and the byte that doesn't fit in the field, are ignored.
        k < 8 && (key.rotate_left(8) ^ self.meta).wrapping_shr(8 * k as u32) > 0xff
    }

    /// The least index of the node's range. `k` is its level. `path` has the byte that doesn't fit
    /// in the field.
    #[inline]
    pub(crate) fn base(&self, k: usize, path: u64) -> u64 {
        // A node of level 8 is the root's, whose range is that of all indexes.
        if k == 8 {
            return 0;
        }
        // The eighth byte is the path's, and the shared bytes are the field's. The bytes below are
        // zero.
        (path & !mask(7)) | ((self.meta >> 8) & !mask(k))
    }

    /// The meta word of a node of level `k` with `pop` indexes, which share the upper bytes of
    /// `key`.
    #[inline]
    pub(super) fn field(k: usize, key: u64, pop: u64, tag: Tag) -> u64 {
        // The low `k` bytes of the field are the population minus one. Above them are the shared
        // bytes of the key.
        let low = mask(k.min(7));
        ((key & !low) | ((pop - 1) & low)) << 8 | tag.0 as u64
    }

    /// Changes the tag.
    #[inline]
    pub(super) fn retag(&mut self, tag: Tag) {
        self.meta = self.meta & !0xff | tag.0 as u64;
    }

    /// Returns a run of this pair. It only determines the type of the runs in the macro.
    #[inline]
    pub(crate) fn run<'a>(&'a self, run: Run<'a, K>) -> Run<'a, K> {
        run
    }

    /// The node in a slot of level `slot`, and its own level.
    #[inline]
    pub(crate) fn view(&self, slot: usize) -> (View<'_, K>, usize) {
        on_form!(self, slot,
            Null => (View::Null, slot),
            Run(run, k, _) => (View::Run(run), k),
            Branch(branch, k) => (View::Branch(branch), k))
    }

    #[inline]
    pub(crate) fn as_one(&self, slot: usize) -> One<'_> {
        // Only the bytes below the slot are the index of the run. Those above are the path.
        One {
            key: (self.meta >> 8) & mask(slot.min(7)),
            value: self.word_value(),
        }
    }

    /// Whether a pair of the form ONE has this index.
    #[inline]
    pub(crate) fn is_one_of(&self, key: u64) -> bool {
        // The eighth byte needn't be compared. It is the path's, since no such pair is in the
        // root's slot.
        self.meta >> 8 == key & mask(7)
    }

    /// The value of a pair of the form ONE.
    pub(crate) fn one_mut(&mut self) -> Option<&mut u64> {
        match self.form() {
            Form::One if K::VALUES => Some(self.word_value_mut()),
            _ => None,
        }
    }
}

impl<'a, K: Kind> Run<'a, K> {
    /// The number of indexes.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        match self {
            Run::One(_) => 1,
            Run::Immed(r) => r.len(),
            Run::Leaf(r) => r.len(),
            Run::Bits(r) => r.len(),
            Run::Full(_) => 256,
        }
    }

    /// The low bytes of the index at a place.
    #[inline(always)]
    pub(crate) fn key(&self, at: usize) -> u64 {
        match self {
            Run::One(r) => r.key,
            Run::Immed(r) => r.key(at),
            Run::Leaf(r) => r.key(at),
            Run::Bits(r) => r.key(at),
            Run::Full(_) => at as u64,
        }
    }

    /// The value of an index, given its low bytes. The outer `Option` is `None` if the index is
    /// absent, the inner one in a set.
    #[inline(always)]
    pub(crate) fn get(&self, low: u64) -> Option<Option<&'a u64>> {
        // In a bitmap the byte itself is the place, so nothing has to be searched.
        match self {
            Run::Bits(bits) => bits.get(low as u8),
            Run::Full(full) => Some(full.get(low as u8)),
            _ => self.search(low).ok().map(|at| self.value(at)),
        }
    }

    /// The value at a place; `None` in a set.
    #[inline(always)]
    pub(crate) fn value(&self, at: usize) -> Option<&'a u64> {
        if !K::VALUES {
            return None;
        }
        match self {
            Run::One(r) => Some(r.value),
            Run::Immed(r) => r.value(at),
            Run::Leaf(r) => r.value(at),
            Run::Bits(r) => r.value(at),
            Run::Full(r) => r.values.and_then(|v| v.get(at)),
        }
    }

    /// Calls `each` with the low bytes and the value of every index, in order.
    #[inline]
    pub(crate) fn for_each(&self, mut each: impl FnMut(u64, Option<&'a u64>)) {
        // A walk over the bits is faster than finding the place of each index.
        match self {
            Run::Bits(bits) => bits.for_each(each),
            _ => (0..self.len()).for_each(|at| each(self.key(at), self.value(at))),
        }
    }

    /// The place of an index, given its low bytes, or the place where it would be inserted.
    #[inline(always)]
    pub(crate) fn search(&self, low: u64) -> Result<usize, usize> {
        // A single index is found, or is before or after the place.
        match self {
            Run::One(r) if r.key == low => Ok(0),
            Run::One(r) => Err((r.key < low) as usize),
            Run::Immed(r) => r.search(low),
            Run::Leaf(r) => r.search(low),
            Run::Bits(r) => r.search(low),
            Run::Full(_) => Ok(low as usize & 0xff),
        }
    }
}
