//! A bucket as words. Accesses to the memory of published buckets are in this file, except two: a
//! body that is inserted is written by [`words::Writer`], and the lock's holder may read a leaf as
//! plain bytes (`LockedHashLeaf::bytes`).
//!
//! The number of words is a power of two, and indices are taken modulo that number. So an index
//! that was computed from torn bytes leads to other bytes of the same bucket, never outside it. No
//! read needs a bounds check: validating the version afterwards detects that the bytes were wrong.

use crate::hash::shape::SLOT_ENTRY;
use crate::seqlock::words::{self, loaded};
use crate::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::marker::PhantomData;
use std::ptr::NonNull;

/// The number of slot entries in a word.
pub(super) const ENTRIES_PER_WORD: usize = 8 / SLOT_ENTRY;
/// The bits of the tag, and the flag of displaced entries, in each slot entry of a word.
const TAG_BITS: u64 = 0x7F00_7F00_7F00_7F00;
/// The lowest bit of each slot entry of a word.
pub(super) const ENTRY_LSBS: u64 = 0x0001_0001_0001_0001;
/// The top bit of each slot entry of a word.
const ENTRY_MSBS: u64 = 0x8000_8000_8000_8000;

// Ordering, for all of this file: Relaxed. Only the lock's holder writes, and readers validate the
// version (see `seqlock`).

/// The words of one bucket, alive for `'g`.
#[derive(Clone, Copy)]
pub(crate) struct Bucket<'g> {
    first: NonNull<AtomicU64>,
    /// One less than the number of words, which is a power of two.
    mask: usize,
    alive: PhantomData<&'g [AtomicU64]>,
}

/// A mask of the low bytes of a word, of which there is at least one.
#[inline]
fn low_bytes(bytes: usize) -> u64 {
    u64::MAX >> (64 - 8 * bytes)
}

impl<'g> Bucket<'g> {
    /// The bucket that begins at `first` and has this number of words.
    ///
    /// # Safety
    /// 1. `words` is a power of two; 2. that number of words is there, alive for `'g`.
    #[inline]
    pub(super) unsafe fn at(first: NonNull<AtomicU64>, words: usize) -> Self {
        debug_assert!(words.is_power_of_two());
        Bucket {
            first,
            mask: words - 1,
            alive: PhantomData,
        }
    }

    /// The number of bytes.
    #[inline]
    pub(super) fn len(self) -> usize {
        (self.mask + 1) * 8
    }

    #[inline]
    fn atomic(self, i: usize) -> &'g AtomicU64 {
        // SAFETY:
        // 1. the index is below the number of words, since that is a power of two;
        // 2. alive for `'g`, says `at`.
        unsafe { &*self.first.as_ptr().add(i & self.mask) }
    }

    /// All words.
    #[inline]
    pub(super) fn words(self) -> &'g [AtomicU64] {
        // SAFETY: `at` requires that this number of words is there, alive for `'g`.
        unsafe { std::slice::from_raw_parts(self.first.as_ptr(), self.mask + 1) }
    }

    /// All bytes.
    ///
    /// # Safety
    /// Nobody writes to it during `'a`.
    #[inline]
    pub(super) unsafe fn plain<'a>(self) -> &'a [u8]
    where
        'g: 'a,
    {
        // SAFETY:
        // 1. `at` requires that this number of bytes is there, alive for `'g`.
        // 2. The caller says that nobody writes to them. Other threads only load.
        unsafe { std::slice::from_raw_parts(self.address(), self.len()) }
    }

    /// The address of the first byte.
    #[inline]
    pub(super) fn address(self) -> *const u8 {
        self.first.as_ptr().cast()
    }

    /// Word `i`.
    #[inline]
    pub(super) fn word(self, i: usize) -> u64 {
        loaded(self.atomic(i))
    }

    /// The first words, as this number of pairs; fewer if the bucket has fewer.
    #[inline]
    pub(super) fn pairs(self, pairs: usize) -> impl Iterator<Item = [u64; 2]> + use<'g> {
        let words = self.words().chunks_exact(2).take(pairs);
        words.map(|pair| [loaded(&pair[0]), loaded(&pair[1])])
    }

    /// Writes word `i`. The caller holds the leaf's lock, as for all functions that write.
    #[inline]
    pub(super) fn set_word(self, i: usize, word: u64) {
        // Ordering: Relaxed, see above.
        self.atomic(i).store(word.to_le(), Relaxed);
    }

    /// Loads eight bytes from byte `at` on, little endian. Bytes that would be after the bucket
    /// are arbitrary.
    #[inline]
    pub(super) fn load(self, at: usize) -> u64 {
        let (i, shift) = (at / 8, at % 8 * 8);
        let both = u128::from(self.word(i + 1)) << 64 | u128::from(self.word(i));
        (both >> shift) as u64
    }

    /// Writes the `bytes` (1 to 8) low bytes of `bits` from byte `at` on. The other bytes of `bits`
    /// are zero.
    #[inline(always)]
    pub(super) fn store(self, at: usize, bits: u64, bytes: usize) {
        // The bytes may begin in the middle of a word, and may extend to the next one.
        let (i, shift, mask) = (at / 8, at % 8 * 8, low_bytes(bytes));
        self.set_word(i, self.word(i) & !(mask << shift) | bits << shift);
        // What doesn't fit in the first word goes to the beginning of the next.
        if shift + 8 * bytes > 64 {
            let back = 64 - shift;
            let next = self.word(i + 1);
            self.set_word(i + 1, next & !(mask >> back) | bits >> back);
        }
    }

    /// Loads sixteen bytes from byte `at` on, little endian. Bytes that would be after the bucket
    /// are arbitrary.
    #[inline(always)]
    fn load_pair(self, at: usize) -> u128 {
        let (i, shift) = (at / 8, at % 8 * 8);
        let middle = u128::from(self.word(i + 1));
        let low = (middle << 64 | u128::from(self.word(i))) >> shift;
        let high = (u128::from(self.word(i + 2)) << 64 | middle) >> shift;
        high << 64 | u128::from(low as u64)
    }

    /// Writes the `bytes` (1 to 16) low bytes of `bits` from byte `at` on, without a branch. The
    /// other bytes of `bits` are zero.
    #[inline(always)]
    pub(super) fn store_pair(self, at: usize, bits: u128, bytes: usize) {
        let (i, shift) = (at / 8, at % 8 * 8);
        let low = low_bytes(bytes.min(8));
        let high =
            low_bytes(bytes.saturating_sub(8).max(1)) & ((bytes <= 8) as u64).wrapping_sub(1);
        // Shifts 16 bytes to their place in three words.
        let parts = |low: u64, high: u64| {
            let middle = (u128::from(high) << 64 | u128::from(low)) << shift >> 64;
            // Shift in two steps, since a shift by 64 isn't defined.
            [low << shift, middle as u64, high >> (63 - shift) >> 1]
        };
        let mask = parts(low, high);
        let bits = parts(bits as u64, (bits >> 64) as u64);
        // Merge the bytes into the three words. A word that has none of our bytes is stored
        // unchanged; it may also be a word at the beginning of the bucket.
        for k in 0..mask.len() {
            self.set_word(i + k, self.word(i + k) & !mask[k] | bits[k]);
        }
    }

    /// Copies `len` bytes from byte `from` to byte `to`. The two don't overlap.
    #[inline(always)]
    pub(super) fn copy(self, from: usize, to: usize, len: usize) {
        // Short objects are one store, which may touch two words.
        if len <= 8 && len > 0 {
            return self.store(to, self.load(from) & low_bytes(len), len);
        }
        let mut done = 0;
        // Pairs of words. Each is loaded and stored as a whole.
        while len - done > 16 {
            self.store_pair(to + done, self.load_pair(from + done), 16);
            done += 16;
        }
        // The rest, without the bytes after it.
        if len > done {
            let bytes = len - done;
            let rest = self.load_pair(from + done) & (u128::MAX >> (128 - 8 * bytes));
            self.store_pair(to + done, rest, bytes);
        }
    }

    /// Writes bytes from byte `at` on. They must not reach beyond the end of the bucket.
    #[inline(always)]
    pub(super) fn store_bytes(self, at: usize, bytes: &[u8]) {
        let (mut at, mut rest) = (at, bytes);
        // Short bytes are one store, which may touch two words. Longer ones are aligned first.
        if rest.len() > 8 {
            // Write up to the next word boundary, then whole words.
            let (lead, after) = rest.split_at(at.wrapping_neg() % 8);
            if !lead.is_empty() {
                self.store(at, words::little(lead), lead.len());
            }
            (at, rest) = (at + lead.len(), after);
            while let Some((word, after)) = rest.split_first_chunk() {
                self.set_word(at / 8, u64::from_le_bytes(*word));
                (at, rest) = (at + 8, after);
            }
        }
        if !rest.is_empty() {
            self.store(at, words::little(rest), rest.len());
        }
    }

    /// Calls `word` with the `len` bytes from byte `at` on, eight bytes at a time, and with the
    /// offset of each eight. The last call may include bytes after the end.
    #[inline]
    pub(super) fn each_word(self, at: usize, len: usize, mut word: impl FnMut(usize, u64)) {
        // The bytes may begin in the middle of a word, so each eight are from two words.
        let (mut i, shift) = (at / 8, at % 8 * 8);
        let (mut low, mut done) = (self.word(i), 0);
        while done < len {
            i += 1;
            let high = self.word(i);
            let both = u128::from(high) << 64 | u128::from(low);
            word(done, (both >> shift) as u64);
            low = high;
            done += 8;
        }
    }

    /// Moves the bytes from `from` to `end` up by `gap`, overwriting what is there.
    #[inline]
    pub(super) fn move_up(self, from: usize, end: usize, gap: usize) {
        if from == end {
            return;
        }
        let (first, last) = ((from + gap) / 8, (end + gap - 1) / 8);
        // Moving by `gap` bytes is moving by `up` words and shifting by `shift` bits. So the new
        // bytes of a word come from two neighbouring words.
        let (up, shift) = (gap / 8, gap % 8 * 8);
        let joined = |low, high| ((u128::from(high) << 64 | u128::from(low)) << shift >> 64) as u64;
        // The bytes of the first and of the last word that are preserved.
        let below = !(u64::MAX << ((from + gap) % 8 * 8));
        let mut above = !low_bytes((end + gap - 1) % 8 + 1);
        let mut high = self.word(last.wrapping_sub(up));
        // Write the words from the top down, since those below haven't been read yet.
        if first < last {
            let low = self.word(last - up - 1);
            self.merge_word(last, joined(low, high), above);
            (high, above) = (low, 0);
            // The words between the last one and the first are overwritten.
            let words = self.words();
            let (to, lows) = (&words[first + 1..last], &words[first - up..last - up - 1]);
            for (to, low) in to.iter().zip(lows).rev() {
                let low = loaded(low);
                // Ordering: Relaxed, see above.
                to.store(joined(low, high).to_le(), Relaxed);
                high = low;
            }
        }
        let low = self.word(first.wrapping_sub(up + 1));
        self.merge_word(first, joined(low, high), below | above);
    }

    /// Moves the bytes from `from` to `end` down by `gap`, overwriting what is there.
    #[inline]
    pub(super) fn move_down(self, from: usize, end: usize, gap: usize) {
        if from == end {
            return;
        }
        let (first, last) = ((from - gap) / 8, (end - gap - 1) / 8);
        let (down, shift) = (gap / 8, gap % 8 * 8);
        let joined = |low, high| ((u128::from(high) << 64 | u128::from(low)) >> shift) as u64;
        // The bytes of the first and of the last word that are preserved.
        let mut below = !(u64::MAX << ((from - gap) % 8 * 8));
        let above = !low_bytes((end - gap - 1) % 8 + 1);
        let mut low = self.word(first + down);
        // Write the words from the bottom up, since those above haven't been read yet.
        if first < last {
            let high = self.word(first + down + 1);
            self.merge_word(first, joined(low, high), below);
            (low, below) = (high, 0);
            // The words between the first one and the last are overwritten.
            let words = self.words();
            let (to, highs) = (
                &words[first + 1..last],
                &words[first + down + 2..last + down + 1],
            );
            for (to, high) in to.iter().zip(highs) {
                let high = loaded(high);
                // Ordering: Relaxed, see above.
                to.store(joined(low, high).to_le(), Relaxed);
                low = high;
            }
        }
        let high = self.word(last + down + 1);
        self.merge_word(last, joined(low, high), below | above);
    }

    /// Writes word `i`, except the bits of `kept`.
    #[inline]
    fn merge_word(self, i: usize, word: u64, kept: u64) {
        self.set_word(i, word & !kept | self.word(i) & kept);
    }
}

/// Appends all bytes of some buckets to `out`.
#[inline]
pub(super) fn copy_all(words: &[AtomicU64], out: &mut Vec<u8>) {
    let (from, len) = (out.len(), words.len() * 8);
    out.reserve(len);
    // SAFETY: `from` is within the vector's memory.
    let to = unsafe { out.as_mut_ptr().add(from) };
    for (i, word) in words.iter().enumerate() {
        // Ordering: Relaxed, see above.
        let word = word.load(Relaxed);
        // SAFETY: there is room for all words from there on. They are kept in the order of memory.
        unsafe { to.add(8 * i).cast::<u64>().write_unaligned(word) };
    }
    // SAFETY:
    // 1. there is room;
    // 2. all `len` bytes were written.
    unsafe { out.set_len(from + len) };
}

/// The home of a hash in a leaf: its home bucket and its tag.
#[derive(Clone, Copy)]
pub(crate) struct Home<'g> {
    pub(super) bucket: Bucket<'g>,
    pub(super) tag: u8,
}

/// Appends the bytes of a bucket from `at` to `end` to `out`.
#[inline]
pub(super) fn copy_out(bucket: Bucket<'_>, at: usize, end: usize, out: &mut Vec<u8>) {
    let (from, len) = (out.len(), end - at);
    // Whole words are written, and the last one may reach beyond the end.
    out.reserve(len + 8);
    // SAFETY: `from` is within the vector's memory.
    let to = unsafe { out.as_mut_ptr().add(from) };
    bucket.each_word(at, len, |done, word| {
        // SAFETY: `done < len`, and there is room for `len + 8` bytes.
        unsafe { to.add(done).cast::<u64>().write_unaligned(word.to_le()) };
    });
    // SAFETY:
    // 1. there is room;
    // 2. all `len` bytes were written.
    unsafe { out.set_len(from + len) };
}

/// Compares the tags and displaced flags of four slot entries with those of `wanted`. Returns the
/// top bit of each slot entry for which they are equal.
#[inline]
pub(super) fn matches(word: u64, wanted: u64) -> u64 {
    // A difference in one of the seven bits, plus 0x7F, carries into the top bit. Without a
    // difference the top bit stays clear. No carry reaches the next slot entry.
    !(((word ^ wanted) & TAG_BITS) + TAG_BITS) & ENTRY_MSBS
}

/// Slot entry `i`.
#[inline]
pub(super) fn slot_entry(bucket: Bucket<'_>, i: usize) -> usize {
    (bucket.word(i / ENTRIES_PER_WORD) >> (i % ENTRIES_PER_WORD * 16)) as usize & 0xFFFF
}

/// Where the object of a slot entry begins.
#[inline]
pub(super) fn object_offset(slot: usize, unit_shift: u32) -> usize {
    (slot & 0xFF) << unit_shift
}

/// The number of entries of a bucket, from its first word.
#[inline]
pub(super) fn entries(head: u64) -> usize {
    head as usize & 0xFF
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    fn with(f: impl Fn(Bucket<'_>)) {
        with_words(&[0; 8], f);
    }

    /// Calls `f` with a bucket of these words, whose number is a power of two.
    pub(in crate::hash) fn with_words(words: &[u64], f: impl Fn(Bucket<'_>)) {
        let words: Vec<AtomicU64> = words.iter().map(|&word| AtomicU64::new(word)).collect();
        assert!(words.len().is_power_of_two());
        // SAFETY: 1. asserted above; 2. alive until the end of this.
        let bucket = unsafe { Bucket::at(NonNull::from(&words[0]), words.len()) };
        let bucket = Bucket {
            // From the whole slice, so that all of it may be reached.
            first: NonNull::new(words.as_ptr().cast_mut()).expect("a slice has an address"),
            ..bucket
        };
        f(bucket);
    }

    fn bytes(bucket: Bucket<'_>) -> Vec<u8> {
        (0..8).flat_map(|i| bucket.word(i).to_le_bytes()).collect()
    }

    #[test]
    fn a_store_changes_its_bytes_alone() {
        for (at, len) in (0..64).flat_map(|at| (0..=64 - at).map(move |len| (at, len))) {
            with(|bucket| {
                let stored: Vec<u8> = (0..len as u8).map(|b| b | 0x80).collect();
                bucket.store_bytes(at, &stored);
                let mut expect = vec![0; 64];
                expect[at..at + len].copy_from_slice(&stored);
                assert_eq!(bytes(bucket), expect);
                let mut back = Vec::new();
                bucket.each_word(at, len, |_, word| back.extend(word.to_le_bytes()));
                assert_eq!(&back[..len], &stored);
            });
        }
    }

    #[test]
    fn pairs_change_their_bytes_alone() {
        for (at, len) in (0..64).flat_map(|at| (1..=16.min(64 - at)).map(move |len| (at, len))) {
            with(|bucket| {
                bucket.store_bytes(0, &(1..=64).collect::<Vec<u8>>());
                let mut expect = bytes(bucket);
                let ones = u128::from_le_bytes(std::array::from_fn(|i| (i < len).into()));
                bucket.store_pair(at, ones * 0xEE, len);
                expect[at..at + len].fill(0xEE);
                assert_eq!(bytes(bucket), expect, "{at} {len}");
                assert_eq!(
                    bucket.load_pair(at) << (128 - 8 * len) >> (128 - 8 * len),
                    ones * 0xEE
                );
            });
        }
    }

    #[test]
    fn a_copy_is_that_of_slices() {
        for (len, from, to) in (0..30).flat_map(|len| [(len, 0, 31), (len, 33, 3), (len, 32, len)])
        {
            if from < to + len && to < from + len {
                continue;
            }
            with(|bucket| {
                bucket.store_bytes(0, &(1..=64).collect::<Vec<u8>>());
                let mut expect = bytes(bucket);
                expect.copy_within(from..from + len, to);
                bucket.copy(from, to, len);
                assert_eq!(bytes(bucket), expect, "{from} {to} {len}");
            });
        }
    }

    #[test]
    fn a_move_is_that_of_slices() {
        for gap in 1..20 {
            for (from, end) in (0..40).flat_map(|from| (from..40).map(move |end| (from, end))) {
                with(|bucket| {
                    bucket.store_bytes(0, &(1..=64).collect::<Vec<u8>>());
                    let mut expect = bytes(bucket);
                    expect.copy_within(from..end, from + gap);
                    bucket.move_up(from, end, gap);
                    assert_eq!(bytes(bucket), expect, "{from} {end} {gap}");
                });
                with(|bucket| {
                    bucket.store_bytes(0, &(1..=64).collect::<Vec<u8>>());
                    let (mut expect, from, end) = (bytes(bucket), from + gap, end + gap);
                    expect.copy_within(from..end, from - gap);
                    bucket.move_down(from, end, gap);
                    assert_eq!(bytes(bucket), expect, "{from} {end} {gap}");
                });
            }
        }
    }

    #[test]
    fn no_offset_leads_out() {
        with(|bucket| {
            bucket.set_word(0, 7);
            assert_eq!(bucket.load(64), 7);
            assert_eq!(bucket.word(usize::MAX), bucket.word(7));
        });
    }
}
