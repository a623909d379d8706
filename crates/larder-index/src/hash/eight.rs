//! The vector arithmetic of `tags`, which searches the slot entries of a bucket eight at a time.
//!
//! A vector has eight numbers of 15 bits, one in each *column*. They are slot entries without the
//! flag [`OUTSIDE`](super::shape::OUTSIDE), or ranks that are computed from them.
//!
//! There are two implementations: by the vector instructions of SSE2, which every x86-64 processor
//! has, and by two words. Each function does the same in all of the eight columns. The tests of
//! `tags` compare both.

/// Eight numbers of 15 bits.
pub(super) trait Eight: Copy {
    /// The numbers in two words. Their top bits are arbitrary, so only `and` may follow.
    fn words(words: [u64; 2]) -> Self;
    /// Eight times this number.
    fn splat(number: u16) -> Self;
    /// The first number.
    fn first(self) -> u16;
    fn and(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    /// The sums, which have at most 15 bits.
    fn plus(self, other: Self) -> Self;
    /// The differences. Their top bits are arbitrary, so only `and` may follow.
    fn minus(self, other: Self) -> Self;
    fn min(self, other: Self) -> Self;
    fn max(self, other: Self) -> Self;
    /// [`NONE`] where a number is greater than the other one, and 0 elsewhere.
    fn exceeds(self, other: Self) -> Self;
    /// [`NONE`] where both are equal, and 0 elsewhere.
    fn equals(self, other: Self) -> Self;
    /// A bit for each column: whether it is [`NONE`]. The others are 0.
    fn columns(self) -> u8;
    /// Moves the upper half of the first columns to the place of the lower half.
    fn upper_half(self, columns: Columns) -> Self;
}

/// The greatest number.
pub(super) const NONE: u16 = 0x7FFF;

/// How many of the first columns [`Eight::upper_half`] halves.
#[derive(Clone, Copy)]
pub(super) enum Columns {
    Eight,
    Four,
    Two,
}

#[cfg(target_arch = "x86_64")]
pub(super) use sse2::Sse2 as Vector;

#[cfg(not(target_arch = "x86_64"))]
pub(super) use Portable as Vector;

#[cfg(target_arch = "x86_64")]
mod sse2 {
    use super::{Columns, Eight};
    use std::arch::x86_64::*;

    /// Eight numbers in a register.
    #[derive(Clone, Copy)]
    pub(in crate::hash) struct Sse2(__m128i);

    /// Applies an instruction.
    macro_rules! sse2 {
        ($instruction:expr) => {
            // SAFETY: All processors of this architecture have the instructions of SSE2, and these
            // access registers alone.
            Sse2(unsafe { $instruction })
        };
    }

    impl Eight for Sse2 {
        #[inline]
        fn words([low, high]: [u64; 2]) -> Self {
            sse2!(_mm_set_epi64x(high as i64, low as i64))
        }
        #[inline]
        fn splat(number: u16) -> Self {
            sse2!(_mm_set1_epi16(number as i16))
        }
        #[inline]
        fn first(self) -> u16 {
            // SAFETY: as in `sse2`.
            unsafe { _mm_cvtsi128_si32(self.0) as u16 }
        }
        #[inline]
        fn and(self, other: Self) -> Self {
            sse2!(_mm_and_si128(self.0, other.0))
        }
        #[inline]
        fn or(self, other: Self) -> Self {
            sse2!(_mm_or_si128(self.0, other.0))
        }
        #[inline]
        fn plus(self, other: Self) -> Self {
            sse2!(_mm_add_epi16(self.0, other.0))
        }
        #[inline]
        fn minus(self, other: Self) -> Self {
            sse2!(_mm_sub_epi16(self.0, other.0))
        }
        #[inline]
        fn min(self, other: Self) -> Self {
            // Numbers of 15 bits are in the order of the signed ones.
            sse2!(_mm_min_epi16(self.0, other.0))
        }
        #[inline]
        fn max(self, other: Self) -> Self {
            sse2!(_mm_max_epi16(self.0, other.0))
        }
        #[inline]
        fn exceeds(self, other: Self) -> Self {
            // All bits are set where it is true. Clear the top ones.
            sse2!(_mm_srli_epi16::<1>(_mm_cmpgt_epi16(self.0, other.0)))
        }
        #[inline]
        fn equals(self, other: Self) -> Self {
            sse2!(_mm_srli_epi16::<1>(_mm_cmpeq_epi16(self.0, other.0)))
        }
        #[inline]
        fn columns(self) -> u8 {
            // Twice a number of 15 bits that are all set is -2, whose byte has its top bit set.
            // SAFETY: as in `sse2`.
            unsafe {
                let bytes = _mm_packs_epi16(_mm_slli_epi16::<1>(self.0), self.0);
                _mm_movemask_epi8(bytes) as u8
            }
        }
        #[inline]
        fn upper_half(self, columns: Columns) -> Self {
            match columns {
                Columns::Eight => sse2!(_mm_shuffle_epi32::<0b11_10_11_10>(self.0)),
                Columns::Four => sse2!(_mm_shuffle_epi32::<0b01_01_01_01>(self.0)),
                Columns::Two => sse2!(_mm_srli_epi32::<16>(self.0)),
            }
        }
    }
}

/// Eight numbers in two words.
#[cfg(any(test, not(target_arch = "x86_64")))]
#[derive(Clone, Copy)]
pub(super) struct Portable([u64; 2]);

#[cfg(any(test, not(target_arch = "x86_64")))]
mod portable {
    use super::{Columns, Eight, Portable, NONE};
    use crate::hash::bucket::ENTRY_LSBS;

    const TOPS: u64 = 0x8000 * ENTRY_LSBS;
    const BELOW_TOPS: u64 = NONE as u64 * ENTRY_LSBS;

    impl Portable {
        fn with(self, other: Self, f: impl Fn(u64, u64) -> u64) -> Self {
            Portable([f(self.0[0], other.0[0]), f(self.0[1], other.0[1])])
        }
    }

    /// [`NONE`] where a number is at least the other one, and 0 elsewhere.
    fn at_least(a: u64, b: u64) -> u64 {
        // Subtract all four at once. The top bits are set in `a`, so no difference borrows from its
        // neighbour, and a top bit stays set exactly where `a >= b`. Then widen these bits.
        let tops = ((a | TOPS) - b) & TOPS;
        tops - (tops >> 15)
    }

    impl Eight for Portable {
        fn words(words: [u64; 2]) -> Self {
            Portable(words)
        }
        fn splat(number: u16) -> Self {
            Portable([u64::from(number) * ENTRY_LSBS; 2])
        }
        fn first(self) -> u16 {
            self.0[0] as u16
        }
        fn and(self, other: Self) -> Self {
            self.with(other, |a, b| a & b)
        }
        fn or(self, other: Self) -> Self {
            self.with(other, |a, b| a | b)
        }
        fn plus(self, other: Self) -> Self {
            self.with(other, |a, b| a + b)
        }
        fn minus(self, other: Self) -> Self {
            self.with(other, |a, b| (a | TOPS) - b)
        }
        fn min(self, other: Self) -> Self {
            self.with(other, |a, b| {
                let at_least = at_least(a, b);
                b & at_least | a & !at_least
            })
        }
        fn max(self, other: Self) -> Self {
            self.with(other, |a, b| {
                let at_least = at_least(a, b);
                a & at_least | b & !at_least
            })
        }
        fn exceeds(self, other: Self) -> Self {
            self.with(other, |a, b| !at_least(b, a) & BELOW_TOPS)
        }
        fn equals(self, other: Self) -> Self {
            self.with(other, |a, b| at_least(a, b) & at_least(b, a))
        }
        fn columns(self) -> u8 {
            // The lowest bits are 16 bits apart. The product has them all side by side, at its top.
            let four = |word: u64| (word & ENTRY_LSBS).wrapping_mul(0x1000_2000_4000_8000) >> 60;
            (four(self.0[0]) | four(self.0[1]) << 4) as u8
        }
        fn upper_half(self, columns: Columns) -> Self {
            let [low, high] = self.0;
            match columns {
                Columns::Eight => Portable([high; 2]),
                Columns::Four => Portable([low >> 32; 2]),
                Columns::Two => Portable([low >> 16 & NONE as u64; 2]),
            }
        }
    }
}
