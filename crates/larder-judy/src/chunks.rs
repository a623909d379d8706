//! Cutting byte strings into words, such that the order of the words is the order of the strings.
//!
//! ```text
//! zero-terminated:   8 bytes a word, big-endian; the last word has a zero byte at its end
//!                    "judy array" = |j u d y _ a r r| |a y 0 0 0 0 0 0|
//!                    "judy arr"   = |j u d y _ a r r| |0 …|
//!
//! any bytes:         7 bytes and a count a word; 8 says that there is more
//!                    "judy array" = |j u d y _ a r 8| |r a y 0 0 0 0 3|
//!                    ""           = |0 0 0 0 0 0 0 0|
//! ```
//!
//! Why the order is kept: words whose bytes differ compare as the strings do. If one string ends
//! within the word and the other has the same bytes up to there, the first must be less. In the
//! first form it has a zero where the other has a byte that is not zero. In the second form its
//! padding is not greater than the bytes of the other, and its count is less.

mod sealed {
    /// Only this crate knows ways to cut strings that keep the arrays' invariants.
    pub trait Sealed {}
    impl Sealed for super::Terminated {}
    impl Sealed for super::Counted {}
}

/// A way to cut strings into words: which strings a [`StringArray`](crate::StringArray) takes.
/// There are two, [`Terminated`] and [`Counted`].
pub trait Chunks: sealed::Sealed + Sized + Send + Sync + 'static {
    /// The bytes that a word takes of a string that goes on after it.
    const STEP: usize;

    /// Where the first byte is that no string of the kind can have, if there is one.
    fn stray(key: &[u8]) -> Option<usize>;

    /// The first word of what is left of a string, and what is left after it, if it goes on.
    fn cut(rest: &[u8]) -> (u64, Option<&[u8]>);

    /// Whether the string goes on after this word.
    fn goes_on(word: u64) -> bool;

    /// How many bytes of the string a word holds.
    fn held(word: u64) -> usize;

    /// Whether the word says otherwise than what it was cut from (`rest`, and whether that goes on
    /// after it): then no string of the kind has it there. A string that passes in all its words
    /// may still be of no string of the kind, but then one of its words is one that no such string
    /// has.
    fn misfits(word: u64, rest: &[u8], goes_on: bool) -> bool;

    /// Adds a word's bytes to a string.
    #[inline]
    fn push(word: u64, out: &mut Vec<u8>) {
        // A copy of eight bytes is a single store. A copy of a number of bytes that isn't known
        // beforehand is a call.
        let length = out.len() + Self::held(word);
        out.extend_from_slice(&word.to_be_bytes());
        out.truncate(length);
    }
}

/// Strings without zero bytes, eight bytes a word: those of a [`JudySL`](crate::JudySL).
#[derive(Debug)]
pub enum Terminated {}

/// Strings of any bytes, seven bytes a word: those of a [`JudyESL`](crate::JudyESL).
#[derive(Debug)]
pub enum Counted {}

impl Chunks for Terminated {
    const STEP: usize = 8;

    #[inline]
    fn stray(key: &[u8]) -> Option<usize> {
        zero_at(key)
    }

    #[inline]
    fn cut(rest: &[u8]) -> (u64, Option<&[u8]>) {
        match rest.split_first_chunk::<8>() {
            Some((word, rest)) => (u64::from_be_bytes(*word), Some(rest)),
            None => (padded(rest), None),
        }
    }

    #[inline]
    fn goes_on(word: u64) -> bool {
        word as u8 != 0
    }

    #[inline]
    fn held(word: u64) -> usize {
        8 - word.trailing_zeros() as usize / 8
    }

    #[inline]
    fn misfits(word: u64, rest: &[u8], goes_on: bool) -> bool {
        // A zero byte at the end of a word that goes on, or of what the last word holds.
        if goes_on {
            !Self::goes_on(word)
        } else {
            Self::held(word) != rest.len()
        }
    }
}

impl Chunks for Counted {
    const STEP: usize = 7;

    #[inline]
    fn stray(_key: &[u8]) -> Option<usize> {
        None
    }

    #[inline]
    fn cut(rest: &[u8]) -> (u64, Option<&[u8]>) {
        match rest.first_chunk::<8>() {
            Some(word) => (u64::from_be_bytes(*word) & !0xff | 8, Some(&rest[7..])),
            None => (padded(rest) | rest.len() as u64, None),
        }
    }

    #[inline]
    fn goes_on(word: u64) -> bool {
        word as u8 == 8
    }

    #[inline]
    fn held(word: u64) -> usize {
        (word as u8).min(7) as usize
    }

    #[inline]
    fn misfits(_word: u64, _rest: &[u8], _goes_on: bool) -> bool {
        false
    }
}

/// Up to seven bytes as the high bytes of a word.
#[inline]
fn padded(rest: &[u8]) -> u64 {
    let n = rest.len();
    // Load words of fixed sizes instead of copying a number of bytes that varies.
    if n >= 4 {
        let four = |at: usize| {
            u32::from_be_bytes([rest[at], rest[at + 1], rest[at + 2], rest[at + 3]]) as u64
        };
        // The two halves overlap where they are equal.
        return four(0) << 32 | four(n - 4) << (64 - 8 * n);
    }
    // Fewer than four bytes: the first, the middle and the last one cover them all.
    if n == 0 {
        return 0;
    }
    let byte = |at: usize| (rest[at] as u64) << (56 - 8 * at);
    byte(0) | byte(n / 2) | byte(n - 1)
}

/// Whether a string has a zero byte, and where the first one is.
#[inline]
fn zero_at(key: &[u8]) -> Option<usize> {
    // A word has a zero byte if subtracting one from each byte borrows in a byte whose high bit was
    // clear.
    let has =
        |word: u64| word.wrapping_sub(0x0101_0101_0101_0101) & !word & 0x8080_8080_8080_8080 != 0;
    let mut words = key.chunks_exact(8);
    let whole = words.by_ref().all(|word| {
        word.first_chunk()
            .is_some_and(|&word| !has(u64::from_ne_bytes(word)))
    });
    let rest = words.remainder();
    // The bytes after the rest are set to ones, so that padding isn't mistaken for a zero byte.
    if whole && !has(padded(rest) | !0 >> (8 * rest.len())) {
        return None;
    }
    key.iter().position(|&byte| byte == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn words<C: Chunks>(key: &[u8]) -> Vec<u64> {
        let (mut words, mut rest) = (Vec::new(), Some(key));
        while let Some(now) = rest {
            let (word, next) = C::cut(now);
            assert_eq!(C::goes_on(word), next.is_some());
            words.push(word);
            rest = next;
        }
        words
    }

    fn back<C: Chunks>(words: &[u64]) -> Vec<u8> {
        let mut out = Vec::new();
        words.iter().for_each(|&word| C::push(word, &mut out));
        out
    }

    proptest! {
        #[test]
        fn words_keep_order_and_bytes(
            a in prop::collection::vec(0..4u8, 0..30),
            b in prop::collection::vec(0..4u8, 0..30),
        ) {
            prop_assert_eq!(words::<Counted>(&a).cmp(&words::<Counted>(&b)), a.cmp(&b));
            prop_assert_eq!(back::<Counted>(&words::<Counted>(&a)), a.clone());
            prop_assert_eq!(zero_at(&a), a.iter().position(|&x| x == 0));
            let (a, b) = (a.iter().map(|x| x + 1).collect::<Vec<_>>(), b.iter().map(|x| x + 1).collect::<Vec<_>>());
            prop_assert_eq!(words::<Terminated>(&a).cmp(&words::<Terminated>(&b)), a.cmp(&b));
            prop_assert_eq!(back::<Terminated>(&words::<Terminated>(&a)), a.clone());
            prop_assert_eq!(zero_at(&a), None);
        }
    }
}
