//! Bitmap leaves and full leaves: the last byte of dense indexes.
//!
//! ```text
//! set:  | 64 bits | 64 bits | 64 bits | 64 bits |                          4 words
//! map:  | 64 bits | address | … four times                                 8 words: one cache line
//!                      └─→ | value | value | …   as many as bits are set (none: null),
//!                                                in a block of their class
//!
//! full set:  no block at all        full map:  256 values, the last byte is their place
//! ```

use std::marker::PhantomData;

use super::immed::{words_insert, words_remove};
use super::{Form, Full, Jp, Tag, Word};
use crate::layout::{class, Kind};
use crate::raw::mem::Mem;

/// The words of a bitmap leaf's block.
const fn words<K: Kind>() -> usize {
    if K::VALUES {
        8
    } else {
        4
    }
}

/// A bitmap leaf, for reading.
pub(crate) struct Bits<'a, K> {
    block: *const u64,
    life: PhantomData<&'a K>,
}

/// A quarter of a map's bitmap leaf.
#[repr(C)]
#[derive(Clone, Copy)]
struct LeafQuarter {
    bits: u64,
    values: *mut u64,
}

impl<'a, K: Kind> Bits<'a, K> {
    /// The bits of a quarter.
    #[inline]
    pub(crate) fn bits(&self, quarter: usize) -> u64 {
        assert!(quarter < 4);
        if K::VALUES {
            // SAFETY: the block is four quarters.
            unsafe { (*self.block.cast::<LeafQuarter>().add(quarter)).bits }
        } else {
            // SAFETY: the block is four words of bits.
            unsafe { *self.block.add(quarter) }
        }
    }

    pub(crate) fn len(&self) -> usize {
        (0..4).map(|q| self.bits(q).count_ones() as usize).sum()
    }

    /// The index at a place: the place's one bit among those set.
    pub(crate) fn key(&self, at: usize) -> u64 {
        // Pass quarters until the one that has the place.
        let mut left = at;
        for quarter in 0..4 {
            let bits = self.bits(quarter);
            let here = bits.count_ones() as usize;
            if left < here {
                return (quarter * 64) as u64 + nth_bit(bits, left) as u64;
            }
            left -= here;
        }
        unreachable!("a place beyond the population")
    }

    #[inline]
    pub(crate) fn value(&self, at: usize) -> Option<&'a u64> {
        // As in `key`.
        let mut left = at;
        for quarter in 0..4 {
            let here = self.bits(quarter).count_ones() as usize;
            if left < here {
                return self.value_in(quarter, left);
            }
            left -= here;
        }
        None
    }

    /// The value of the `at`th bit set in a quarter.
    #[inline]
    fn value_in(&self, quarter: usize, at: usize) -> Option<&'a u64> {
        if !K::VALUES {
            return None;
        }
        debug_assert!(at < self.bits(quarter).count_ones() as usize);
        // SAFETY: a quarter's block has a value for every bit that is set. The callers give a place
        // below their number.
        Some(unsafe {
            &*(*self.block.cast::<LeafQuarter>().add(quarter))
                .values
                .add(at)
        })
    }

    /// The value of an index. The outer option is `None` if the index is missing, the inner one in
    /// a set.
    #[inline]
    pub(crate) fn get(&self, low: u8) -> Option<Option<&'a u64>> {
        let quarter = low as usize >> 6;
        let at = place(self.bits(quarter), low & 63)?;
        Some(self.value_in(quarter, at))
    }

    /// The place of an index in the whole leaf, or where it would be.
    #[inline]
    pub(crate) fn search(&self, low: u64) -> Result<usize, usize> {
        // Two bits of the byte are the quarter, and six are the place in it.
        let (quarter, bit) = (low as usize >> 6 & 3, low as u8 & 63);
        let before: usize = (0..quarter)
            .map(|q| self.bits(q).count_ones() as usize)
            .sum();
        let bits = self.bits(quarter);
        let at = before + below(bits, bit);
        if bits >> bit & 1 == 1 {
            Ok(at)
        } else {
            Err(at)
        }
    }

    /// The nearest index from `low` on, itself included, upwards or downwards, and its value.
    #[inline]
    pub(crate) fn seek<const UP: bool>(&self, low: u8) -> Option<(u64, Option<&'a u64>)> {
        let (quarter, bit) = nearest::<UP>(low, |quarter| self.bits(quarter))?;
        // A set has no values, so the place isn't needed.
        let at = if K::VALUES {
            below(self.bits(quarter), bit)
        } else {
            0
        };
        Some((quarter as u64 * 64 + bit as u64, self.value_in(quarter, at)))
    }

    /// The nearest index from `low` on, itself included, that is *not* there.
    pub(crate) fn seek_missing<const UP: bool>(&self, low: u8) -> Option<u64> {
        let (quarter, bit) = nearest::<UP>(low, |quarter| !self.bits(quarter))?;
        Some(quarter as u64 * 64 + bit as u64)
    }

    /// Calls `each` with every index and its value, in order.
    #[inline]
    pub(crate) fn for_each(&self, mut each: impl FnMut(u64, Option<&'a u64>)) {
        for quarter in 0..4 {
            let mut bits = self.bits(quarter);
            for at in 0..bits.count_ones() as usize {
                let low = quarter as u64 * 64 + bits.trailing_zeros() as u64;
                each(low, self.value_in(quarter, at));
                // Clear the lowest bit that is set.
                bits &= bits - 1;
            }
        }
    }
}

/// The nearest bit that is set from `low`'s on, itself included, upwards or downwards, in four
/// quarters: its quarter and its place there.
#[inline]
pub(in crate::raw) fn nearest<const UP: bool>(
    low: u8,
    bits_of: impl Fn(usize) -> u64,
) -> Option<(usize, u8)> {
    let (mut quarter, bit) = (low as usize >> 6, low & 63);
    // Bits before the starting one are masked out.
    let whole = bits_of(quarter);
    let mut bits = if UP {
        whole & (!0 << bit)
    } else {
        whole & (!0 >> (63 - bit))
    };
    // Go on quarter by quarter, until there is a bit or no quarter left.
    while bits == 0 {
        if quarter == if UP { 3 } else { 0 } {
            return None;
        }
        quarter = if UP { quarter + 1 } else { quarter - 1 };
        bits = bits_of(quarter);
    }
    let bit = if UP {
        bits.trailing_zeros()
    } else {
        63 - bits.leading_zeros()
    };
    Some((quarter, bit as u8))
}

/// The place of a bit among those that are set, if it is set itself.
#[inline]
pub(in crate::raw) fn place(bits: u64, bit: u8) -> Option<usize> {
    // With the bit on top of those below it, its test is that of a sign.
    let up_to = bits << (63 - bit);
    ((up_to as i64) < 0).then(|| up_to.count_ones() as usize - 1)
}

/// The number of bits that are set below a bit.
#[inline]
pub(in crate::raw) fn below(bits: u64, bit: u8) -> usize {
    (bits & ((1 << bit) - 1)).count_ones() as usize
}

/// The `at`th bit set.
fn nth_bit(mut bits: u64, at: usize) -> u32 {
    // Clear the lower bits that are set, one by one.
    for _ in 0..at {
        bits &= bits - 1;
    }
    bits.trailing_zeros()
}

impl<'a> Full<'a> {
    /// The value of an index.
    #[inline]
    pub(crate) fn get(&self, low: u8) -> Option<&'a u64> {
        self.values.map(|v| &v[low as usize])
    }
}

impl<K: Kind> Jp<K> {
    #[inline]
    pub(crate) fn as_bits(&self) -> Bits<'_, K> {
        Bits {
            block: self.block(),
            life: PhantomData,
        }
    }

    #[inline]
    pub(crate) fn as_full(&self) -> Full<'_> {
        Full {
            values: if K::VALUES {
                // SAFETY: a full leaf of a map has a block of 256 values.
                Some(unsafe { &*self.block().cast() })
            } else {
                None
            },
        }
    }

    /// Makes a bitmap leaf or a full one of these sorted indexes, which differ only in the last
    /// byte.
    pub(crate) fn dense(keys: &[u64], values: &[u64], mem: &mut Mem) -> Self {
        let n = keys.len();
        assert!((1..=256).contains(&n) && (!K::VALUES || values.len() == n));
        let meta = Self::field(1, keys[0], n as u64, Tag::BITS);
        // 256 indexes need no bitmap at all.
        let mut jp = if n == 256 {
            Self::full(meta, mem)
        } else {
            Self::empty_bits(meta, mem)
        };
        if n == 256 {
            if K::VALUES {
                // SAFETY: a full leaf's block has 256 words, and so has `values`. A fresh block
                // overlaps nothing.
                unsafe { jp.block().copy_from_nonoverlapping(values.as_ptr(), 256) };
            }
            return jp;
        }
        // The indexes are sorted, so those of a quarter are neighbours.
        let mut from = 0;
        for quarter in 0..4 {
            let rest = &keys[from..];
            let here = rest
                .iter()
                .take_while(|&&key| key as usize >> 6 & 3 == quarter)
                .count();
            let bits = rest[..here]
                .iter()
                .fold(0, |bits, key| bits | 1 << (key & 63));
            jp.fill_quarter(
                quarter,
                bits,
                if K::VALUES {
                    &values[from..from + here]
                } else {
                    &[]
                },
                mem,
            );
            from += here;
        }
        jp
    }

    fn empty_bits(meta: u64, mem: &mut Mem) -> Self {
        let block = mem.take(words::<K>());
        // SAFETY: the block has these words. Zero stands for no bits, and for the null address.
        unsafe { block.write_bytes(0, words::<K>()) };
        Jp::with_block(block, meta)
    }

    fn full(meta: u64, mem: &mut Mem) -> Self {
        let mut jp = Jp {
            word: Word { value: 0 },
            meta,
            kind: PhantomData,
        };
        // A full set needs no block.
        if K::VALUES {
            jp.word.block = mem.take(256);
        }
        jp.retag(Tag::FULL);
        jp
    }

    fn fill_quarter(&mut self, quarter: usize, bits: u64, values: &[u64], mem: &mut Mem) {
        debug_assert!(!K::VALUES || bits.count_ones() as usize == values.len());
        // SAFETY:
        // 1. The block is four quarters, or four words.
        // 2. The block of the values has room for all of them. A fresh block overlaps nothing.
        unsafe {
            if !K::VALUES {
                *self.block().add(quarter) = bits;
            } else if bits != 0 {
                let block = mem.take(class(values.len()));
                block.copy_from_nonoverlapping(values.as_ptr(), values.len());
                *self.block().cast::<LeafQuarter>().add(quarter) = LeafQuarter {
                    bits,
                    values: block,
                };
            }
        }
    }

    /// The value of an index of a bitmap leaf or full leaf. The outer option is `None` if the index
    /// is missing, the inner one in a set.
    #[inline]
    pub(crate) fn dense_mut(&mut self, low: u8) -> Option<Option<&mut u64>> {
        let (quarter, bit) = (low as usize >> 6, low & 63);
        match self.form() {
            // A full set has each index, and no block.
            Form::Full if !K::VALUES => Some(None),
            // SAFETY: a full leaf of a map has a block of 256 values.
            Form::Full => Some(Some(unsafe { &mut *self.block().add(low as usize) })),
            Form::Bits => {
                let at = place(self.as_bits().bits(quarter), bit)?;
                if !K::VALUES {
                    return Some(None);
                }
                // SAFETY: a quarter's block has a value for every bit that is set, in the order of
                // the bits.
                Some(Some(unsafe {
                    &mut *(*self.block().cast::<LeafQuarter>().add(quarter))
                        .values
                        .add(at)
                }))
            }
            _ => None,
        }
    }

    /// Inserts an index that is missing from a bitmap leaf. Its value is zero at first. With the
    /// 256th index, the leaf becomes a full one.
    #[inline]
    pub(crate) fn bits_insert(&mut self, low: u8, mem: &mut Mem) {
        let (quarter, bit) = (low as usize >> 6, low & 63);
        let bits = self.as_bits().bits(quarter);
        assert!(self.form() == Form::Bits && bits >> bit & 1 == 0);
        // SAFETY:
        // 1. The block is four words of bits, or four quarters.
        // 2. A quarter's block has a value for every bit that is set, and is of the class of their
        //    number. One bit is not set, so there are at most 63.
        unsafe {
            if K::VALUES {
                let quarter = &mut *self.block().cast::<LeafQuarter>().add(quarter);
                let n = bits.count_ones() as usize;
                quarter.values = words_insert(quarter.values, n, below(bits, bit), mem);
                quarter.bits |= 1 << bit;
            } else {
                *self.block().add(quarter) |= 1 << bit;
            }
        }
        // The field has the population less one, which has not been incremented yet.
        if self.pop_at(1) == 255 {
            self.fill_up(mem);
        }
        self.meta += 1 << 8;
    }

    /// Makes a bitmap leaf whose bits are all set a full one.
    fn fill_up(&mut self, mem: &mut Mem) {
        // Join the values of the four quarters. The place of each is its index's last byte.
        let mut full = Self::full(self.meta, mem);
        if K::VALUES {
            for quarter in 0..4 {
                // SAFETY: 64 bits are set in each quarter, so it has 64 values. A full leaf has
                // room for four times 64.
                unsafe {
                    let values = (*self.block().cast::<LeafQuarter>().add(quarter)).values;
                    full.block()
                        .add(64 * quarter)
                        .copy_from_nonoverlapping(values, 64);
                }
            }
        }
        std::mem::swap(self, &mut full);
        full.drop_bits(mem);
    }

    /// Makes a full leaf a bitmap leaf.
    pub(crate) fn thin_out(&mut self, mem: &mut Mem) {
        assert!(self.form() == Form::Full);
        // Every bit is set at first. The caller removes the one that goes.
        let mut thin = Self::empty_bits(self.meta, mem);
        thin.retag(Tag::BITS);
        for quarter in 0..4 {
            let values = self
                .as_full()
                .values
                .map_or(&[][..], |v| &v[64 * quarter..][..64]);
            thin.fill_quarter(quarter, !0, values, mem);
        }
        std::mem::swap(self, &mut thin);
        thin.drop_run(mem);
    }

    /// Removes an index from a bitmap leaf of at least two. Returns its value.
    pub(crate) fn bits_remove(&mut self, low: u8, mem: &mut Mem) -> u64 {
        let (quarter, bit) = (low as usize >> 6, low & 63);
        let bits = self.as_bits().bits(quarter);
        assert!(self.form() == Form::Bits && bits >> bit & 1 == 1 && self.pop_at(1) > 1);
        let mut value = 0;
        // SAFETY:
        // 1. The block is four words of bits, or four quarters.
        // 2. A quarter's block has a value for every bit that is set, and is of the class of their
        //    number. This value is the `below`th.
        unsafe {
            if K::VALUES {
                let quarter = &mut *self.block().cast::<LeafQuarter>().add(quarter);
                let n = bits.count_ones() as usize;
                (quarter.values, value) = words_remove(quarter.values, n, below(bits, bit), mem);
                quarter.bits &= !(1 << bit);
            } else {
                *self.block().add(quarter) &= !(1 << bit);
            }
        }
        self.meta -= 1 << 8;
        value
    }

    /// Frees the blocks of a bitmap leaf.
    pub(in crate::raw) fn drop_bits(self, mem: &mut Mem) {
        // The quarters of a set have no blocks.
        for quarter in 0..if K::VALUES { 4 } else { 0 } {
            // SAFETY: the block is four quarters. A quarter that has values has a block of their
            // class.
            unsafe {
                let quarter = *self.block().cast::<LeafQuarter>().add(quarter);
                if quarter.bits != 0 {
                    mem.give(quarter.values, class(quarter.bits.count_ones() as usize));
                }
            }
        }
        // SAFETY: the block has these words. The pair is gone, so nobody uses it again.
        unsafe { mem.give(self.block(), words::<K>()) };
    }
}
