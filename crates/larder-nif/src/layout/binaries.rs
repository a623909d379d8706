//! Binaries and bitstrings.
//!
//! ```text
//!  heap         header, size, bytes…                       lies on a heap whole; since OTP 27,
//!                                                          bitstrings of up to 64 bytes, too
//!
//!  until OTP 26:
//!  shared       header, size, •, Binary, bytes, flags      a binary that is counted
//!  part         header, size, offset, bits, binary         a part of a binary, or a bitstring
//!
//!  since OTP 27:
//!  range        header, base, start, end, holder           some or all bits of a counted binary
//!  holder       header, Binary, •                          no term by itself
//!
//!  Binary       …, count, …, size, bytes…                  what is counted, outside all heaps
//! ```
//!
//! The two lowest bits of `base` are flags, and `start` and `end` count bits from the address
//! without them. If the second flag is set, the emulator may have appended to the binary, and moved
//! its bytes: they are where the `Binary` says. With the first flag alone it is no term.

use super::kinds::*;
use super::words::*;
use crate::sys::external::from_external_format;
use crate::sys::*;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The bits of the header of a binary on a heap that identify its kind; 0, which are those of a
/// tuple, if they aren't known.
static HEAP_BINARY: AtomicUsize = AtomicUsize::new(0);
/// The number of units of size in a byte, as a power of two. It differs between releases.
static HEAP_BINARY_UNIT: AtomicUsize = AtomicUsize::new(0);
/// As `HEAP_BINARY`, if the rest of the header is the number of words that follow it.
static HEAP_BINARY_HEAD: AtomicUsize = AtomicUsize::new(0);

/// The header of a binary of this number of bytes on a heap, and the word after it. `None` if they
/// aren't known.
#[inline]
pub fn heap_binary_head(bytes: usize) -> Option<(Word, Word)> {
    // Ordering: Relaxed, both, as in `heap_binary`.
    let kind = HEAP_BINARY_HEAD.load(Ordering::Relaxed);
    let unit = HEAP_BINARY_UNIT.load(Ordering::Relaxed);
    let words = 1 + bytes.div_ceil(size_of::<Word>());
    (kind != 0).then_some((words << 6 | kind, bytes << unit))
}

/// The bytes of a binary on a heap. They live as long as the term. `None` for any other term,
/// including other binaries.
#[inline]
pub fn heap_binary<'a>(word: Word) -> Option<&'a [u8]> {
    // Ordering: Relaxed, both; written at load, before any other function of the library can run.
    let kind = HEAP_BINARY.load(Ordering::Relaxed);
    let unit = HEAP_BINARY_UNIT.load(Ordering::Relaxed);
    if !is_boxed(word) || kind == 0 {
        return None;
    }
    // SAFETY: a boxed term of the running call points at its header. That of such a binary is
    // followed by its size and its bytes. `prove_heap_binaries` has verified it.
    unsafe {
        let header = *pointer(word);
        if header & HEADER != kind {
            return None;
        }
        let size = *pointer(word).add(1);
        let bytes = || std::slice::from_raw_parts(pointer(word).add(2).cast::<u8>(), size >> unit);
        (size & ((1 << unit) - 1) == 0).then(bytes)
    }
}

/// The bits of a binary on a heap, or of a bitstring there, which newer releases have.
#[inline]
fn heap_bits<'a>(word: Word) -> Bits<'a> {
    // Ordering: Relaxed, as in `heap_binary`.
    let unit = HEAP_BINARY_UNIT.load(Ordering::Relaxed);
    // SAFETY: the size and the bytes lie after the header, as `prove_heap_binaries` has verified.
    unsafe {
        let size = *pointer(word).add(1);
        let len = size.div_ceil(1 << unit);
        Bits {
            bytes: std::slice::from_raw_parts(pointer(word).add(2).cast(), len),
            more: size & ((1 << unit) - 1),
            shared: None,
        }
    }
}

/// Whether a bitstring on a heap is a binary there with another size.
static HEAP_BITSTRINGS: AtomicBool = AtomicBool::new(false);

/// Makes a bitstring of a binary that was just made on a heap: of the last byte, the first `more`
/// bits count. Returns `false` if bitstrings don't lie on a heap like that.
///
/// # Safety
/// `heap_binary_head` was used for the binary, and nobody else has seen it.
pub unsafe fn shorten(binary: Word, more: usize) -> bool {
    // Ordering: Relaxed, as in `heap_binary`.
    let is_known = HEAP_BITSTRINGS.load(Ordering::Relaxed);
    if is_known {
        // SAFETY: the caller's promise; the size counts bits.
        unsafe { *pointer(binary).add(1).cast_mut() -= 8 - more }
    }
    is_known
}

/// Verifies the layout of binaries on a heap. If it isn't that of any known release, each binary is
/// read through an official function.
pub fn prove_heap_binaries(env: *mut Env) {
    // Test binaries of no bytes, of part of a word, of whole words, and the longest ones.
    let samples = [0, 1, 8, 13, 64].map(|size| {
        let (mut word, bytes) = (NIL, vec![0x5A_u8; size]);
        // SAFETY: `env` is the environment of the running load callback; the call gives memory for
        // as many bytes as asked.
        unsafe {
            let data = enif_make_new_binary(env, size, &mut word);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), data, size);
        }
        (word, bytes)
    });
    // SAFETY: a binary that was just made is a boxed term.
    let kind = unsafe { *pointer(samples[0].0) } & HEADER;
    // Ordering: Relaxed, all, as in `heap_binary`.
    HEAP_BINARY.store(kind, Ordering::Relaxed);
    // Older releases store the size in bytes, newer ones in bits.
    let fits = |unit: usize| {
        HEAP_BINARY_UNIT.store(unit, Ordering::Relaxed);
        samples
            .iter()
            .all(|(word, bytes)| heap_binary(*word) == Some(bytes))
    };
    if !fits(0) && !fits(3) {
        HEAP_BINARY.store(0, Ordering::Relaxed);
        return;
    }
    // They can be read. They can also be written, if the whole header is known.
    HEAP_BINARY_HEAD.store(kind, Ordering::Relaxed);
    let heads = samples.iter().all(|(word, bytes)| {
        // SAFETY: a binary that was just made is a boxed term; a size follows the header, as was
        // seen above.
        let head = unsafe { (*pointer(*word), *pointer(*word).add(1)) };
        heap_binary_head(bytes.len()) == Some(head)
    });
    if !heads {
        HEAP_BINARY_HEAD.store(0, Ordering::Relaxed);
        return;
    }
    // A bitstring of a byte and five bits.
    let bitstring = from_external_format(env, &[131, 77, 0, 0, 0, 2, 5, 1, 0xF8]);
    let is_like = |word: Word| {
        // SAFETY: a boxed term points at its header, which is that of a binary of two bytes.
        is_boxed(word)
            && heap_binary_head(2).map(|head| head.0) == Some(unsafe { *pointer(word) })
            && matches!(
                heap_bits(word),
                Bits {
                    bytes: [1, 0xF8],
                    more: 5,
                    ..
                }
            )
    };
    HEAP_BITSTRINGS.store(bitstring.is_some_and(is_like), Ordering::Relaxed);
}

/// A reference-counted binary, or a part of one.
#[derive(Clone, Copy)]
pub struct SharedBinary {
    /// The emulator's object that has the count.
    pub binary: *mut Counted,
    /// The address of all bytes of the binary, and their number.
    pub whole: (*const u8, usize),
    /// Whether the emulator may write after its bytes, or move them.
    pub is_written: bool,
}

/// The emulator's header of a reference-counted binary.
#[repr(C)]
pub struct Counted {
    _opaque: [u8; 0],
}

/// A run of bits: whole bytes, then `more` bits of the next byte. Also the shared binary that
/// contains them, if there is one.
#[derive(Clone, Copy)]
pub struct Bits<'a> {
    pub bytes: &'a [u8],
    pub more: usize,
    pub shared: Option<SharedBinary>,
}

#[inline]
fn shared<'a>(word: Word) -> Bits<'a> {
    // SAFETY: five words lie after the header, as `prove_shared` has verified; the bytes are there
    // while the term is.
    unsafe {
        let words = words(word, 5);
        let (start, size) = (words[3] as *const u8, words[0]);
        Bits {
            bytes: std::slice::from_raw_parts(start, size),
            more: 0,
            shared: Some(SharedBinary {
                binary: words[2] as *mut Counted,
                whole: (start, size),
                is_written: words[4] != 0,
            }),
        }
    }
}

/// The bits of a binary or bitstring. `None` for any other term, and if they don't begin at a byte
/// boundary.
#[inline]
pub fn bits<'a>(word: Word) -> Option<Bits<'a>> {
    // Each layout has its own way to the bytes.
    match kind(word) {
        Kind::HeapBinary => Some(heap_bits(word)),
        Kind::SharedBinary => Some(shared(word)),
        Kind::PartOfBinary => part(word),
        Kind::RangeOfBinary => range(word),
        _ => None,
    }
}

#[inline]
fn part<'a>(word: Word) -> Option<Bits<'a>> {
    // SAFETY: four words lie after the header, as `prove_parts` has verified.
    let words = unsafe { words(word, 4) };
    let (size, offset, whole) = (words[0], words[1], words[3]);
    // The flags have the number of bits in the last byte, and the number of bits that are skipped
    // in the first.
    let (more, skipped) = (words[2] & 0xFF, words[2] >> 8 & 0xFF);
    if skipped != 0 || !is_boxed(whole) {
        // A part that begins within a byte is left to the official functions.
        return None;
    }
    // The whole is a heap binary or a shared one. Nothing else can have parts.
    let whole = match kind(whole) {
        Kind::HeapBinary => bits(whole)?,
        Kind::SharedBinary => shared(whole),
        _ => return None,
    };
    let all = size + usize::from(more > 0);
    // SAFETY: a part lies within its whole; the byte of more bits, too.
    let bytes = unsafe { std::slice::from_raw_parts(whole.bytes.as_ptr().add(offset), all) };
    Some(Bits {
        bytes,
        more,
        shared: whole.shared,
    })
}

/// The flags in the base of a range: both, which the emulator sets while it builds a binary by
/// appending; the one of a binary that may have been appended to; and the other one alone.
const RANGE_FLAGS: Word = 3;
const WRITTEN: Word = 2;
const NO_TERM: Word = 1;

#[inline]
fn range<'a>(word: Word) -> Option<Bits<'a>> {
    // SAFETY: four words lie after the header, and the last one is a holder, whose second word is
    // the counted binary, as `prove_shared` has verified.
    let (words, binary) = unsafe {
        let words = words(word, 4);
        (words, *pointer(words[3]).add(1) as *mut Counted)
    };
    let (flags, start, end) = (words[0] & RANGE_FLAGS, words[1], words[2]);
    if start % 8 != 0 || flags == NO_TERM {
        // A range that begins within a byte is left to the official functions.
        return None;
    }
    let (own, is_written) = (own_bytes(binary as usize), flags & WRITTEN != 0);
    let base = if is_written {
        own
    } else {
        words[0] as *const u8
    };
    let (skipped, count) = (start / 8, end - start);
    let (len, more) = (count.div_ceil(8), count % 8);
    // SAFETY: the range lies within the binary, which the term holds.
    let bytes = unsafe { std::slice::from_raw_parts(base.wrapping_add(skipped), len) };
    // A binary of a resource has its bytes elsewhere: nothing is known about them but the range.
    let before = (bytes.as_ptr() as usize).wrapping_sub(own as usize);
    // SAFETY: the size lies before the bytes, as `prove_shared` has verified.
    let size = unsafe { *own.cast::<usize>().sub(1) };
    let whole = match before.saturating_add(len) <= size {
        // The size is that of the memory; what is written of it is known only up to here.
        true if is_written => (own, before + len),
        true => (own, size),
        false => (bytes.as_ptr(), len),
    };
    Some(Bits {
        bytes,
        more,
        shared: Some(SharedBinary {
            binary,
            whole,
            is_written,
        }),
    })
}

/// The number of words that follow the header of a part, according to it. The binary isn't counted.
const PART_ARITY: usize = 3;
/// The header of a part of a binary; 0 if it isn't known.
static PART: AtomicUsize = AtomicUsize::new(0);

/// The header of a part of a binary. `None` if it isn't known.
#[inline]
pub fn part_header() -> Option<Word> {
    // Ordering: Relaxed, as in `kind`.
    Some(PART.load(Ordering::Relaxed)).filter(|&header| header != 0)
}

/// The offset of the count in a reference-counted binary, in words; `usize::MAX` if it isn't known.
static COUNT: AtomicUsize = AtomicUsize::new(usize::MAX);

/// The offset of the binary's own bytes in a reference-counted binary.
static OWN_BYTES: AtomicUsize = AtomicUsize::new(0);

/// The address of the own bytes of a reference-counted binary.
#[inline]
pub fn own_bytes(address: usize) -> *const u8 {
    // Ordering: Relaxed, as in `kind`.
    (address + OWN_BYTES.load(Ordering::Relaxed)) as *const u8
}

/// Whether `start` is the address of the binary's own bytes.
#[inline]
pub fn is_whole(binary: *mut Counted, start: *const u8) -> bool {
    // Ordering: Relaxed, as in `kind`.
    start as usize == binary as usize + OWN_BYTES.load(Ordering::Relaxed)
}

/// Whether counts of binaries can be taken and given back.
#[inline]
pub fn are_counts_known() -> bool {
    // Ordering: Relaxed, as in `kind`.
    COUNT.load(Ordering::Relaxed) != usize::MAX
}

/// Where the count of a binary is.
///
/// # Safety
/// `are_counts_known`.
#[inline]
unsafe fn count_of(binary: *mut Counted) -> *const AtomicUsize {
    // Ordering: Relaxed, as in `kind`.
    let at = COUNT.load(Ordering::Relaxed);
    // SAFETY: the count lies there, as `prove_shared` has verified.
    unsafe { binary.cast::<AtomicUsize>().add(at) }
}

/// Takes a count of a binary.
///
/// # Safety
/// Somebody holds the binary during the call; `are_counts_known`.
#[inline]
pub unsafe fn retain(binary: *mut Counted) {
    // Ordering: Relaxed, the first, as in `kind`; the second, because whoever holds the binary
    // keeps it alive meanwhile, and its bytes were seen through that holder: as `Arc` does.
    unsafe {
        // SAFETY: the count lies there, as `prove_shared` has verified.
        (*count_of(binary)).fetch_add(1, Ordering::Relaxed);
    }
}

/// The count of a binary.
///
/// # Safety
/// As for `retain`.
pub unsafe fn count(binary: *mut Counted) -> usize {
    // SAFETY: as in `retain`.
    // Ordering: Relaxed, both, as there; the caller wants no more than the number.
    unsafe { (*count_of(binary)).load(Ordering::Relaxed) }
}

/// Gives back a count of a binary.
///
/// # Safety
/// The caller holds it, and uses it no more; `are_counts_known`. The bytes are those of the binary.
pub unsafe fn release(counted: *mut Counted, data: *const u8, size: usize) {
    let mut binary = Binary::of(size, data.cast_mut(), counted.cast());
    // SAFETY: as `enif_alloc_binary` would have filled it in, as `prove_shared` has verified.
    unsafe { enif_release_binary(&mut binary) }
}

/// Makes a term of a whole binary, which takes over the caller's count.
///
/// # Safety
/// As for `release`.
#[inline]
pub unsafe fn counted_term(
    env: *mut Env,
    counted: *mut Counted,
    data: *const u8,
    size: usize,
) -> Word {
    let mut binary = Binary::of(size, data.cast_mut(), counted.cast());
    // SAFETY: as above.
    unsafe { enif_make_binary(env, &mut binary) }
}

/// Makes a reference-counted binary of 1,000 bytes, and verifies the layout of its term and the
/// place of its count. Returns the kind of the term.
///
/// 1. The term is a shared binary, or a range that is the whole of one. Size, counted object and
///    bytes are those that the official functions return.
/// 2. Of the words between the beginning of the binary and its bytes, one is greater by one while a
///    copy of the term exists, and no other changes. That is the count.
/// 3. A count that is added there can be given back by an official function, and can be taken over
///    by a term.
pub fn prove_shared(env: *mut Env) -> Option<Kind> {
    const SIZE: usize = 1000;
    let mut binary = Binary::empty();
    // The binary is allocated by an official function, so its bytes and its counted object are
    // known.
    // SAFETY: the call fills in the binary, whose bytes are then written once, before anybody can
    // see them. It is turned into a term of the load callback's environment, which holds it from
    // then on.
    let (word, data, counted) = unsafe {
        if enif_alloc_binary(SIZE, &mut binary) == 0 {
            return None;
        }
        binary.data.write_bytes(0x5A, SIZE);
        let (data, counted) = (binary.data, binary.counted);
        (enif_make_binary(env, &mut binary), data, counted)
    };
    if counted.is_null() || !is_boxed(word) {
        return None;
    }
    if (counted as usize) >= data as usize || data as usize - counted as usize > 64 {
        return None;
    }
    let kind = kind_of_whole(word, counted as Word, (data as Word, SIZE))?;
    // (2) Compare the words in front of the bytes before a second term exists, meanwhile, and
    // afterwards.
    let head = (data as usize - counted as usize) / size_of::<Word>();
    // SAFETY: the words between the binary's beginning and its bytes; nobody else has the binary.
    let look = || unsafe { std::slice::from_raw_parts(counted.cast::<Word>(), head).to_vec() };
    let before = look();
    // SAFETY: a fresh environment, which is ours alone and is freed once.
    let during = unsafe {
        let env = enif_alloc_env();
        enif_make_copy(env, word);
        let during = look();
        enif_free_env(env);
        during
    };
    let after = look();
    // Exactly one word differs, by one, and has its old value after the copy is gone.
    let changed: Vec<usize> = (0..head).filter(|&i| before[i] != during[i]).collect();
    let &[at] = &changed[..] else { return None };
    if before != after || during[at] != before[at] + 1 {
        return None;
    }
    // Ordering: Relaxed, as in `kind`; forgotten again below if it can't be used.
    COUNT.store(at, Ordering::Relaxed);
    // (3) Take counts and give them back.
    // SAFETY: the term holds the binary; what is counted here is given back, or given to another
    // term.
    let works = unsafe {
        let counted = counted.cast::<Counted>();
        retain(counted);
        release(counted, data, SIZE);
        let given_back = look() == before;
        retain(counted);
        let other = counted_term(env, counted, data, SIZE);
        given_back && look()[at] == before[at] + 1 && enif_is_identical(word, other) != 0
    };
    if !works {
        // Ordering: as above.
        COUNT.store(usize::MAX, Ordering::Relaxed);
        return None;
    }
    // Ordering: Relaxed, as in `kind`.
    OWN_BYTES.store(data as usize - counted as usize, Ordering::Relaxed);
    note(word, kind);
    Some(kind)
}

/// The kind of a term that is the whole of a counted binary with these bytes.
fn kind_of_whole(word: Word, counted: Word, (data, size): (Word, usize)) -> Option<Kind> {
    // SAFETY: the caller has made the term, which is boxed. A boxed term points at its header, and
    // has as many words more as that says. So has the holder of a range.
    unsafe {
        match arity(word) {
            5 => {
                let words = words(word, 5);
                let fits = (words[0], words[2], words[3], words[4]) == (size, counted, data, 0);
                fits.then_some(Kind::SharedBinary)
            }
            4 => {
                let (range, holder) = (words(word, 4), words(word, 4)[3]);
                let fits = range[..3] == [data, 0, 8 * size]
                    && is_boxed(holder)
                    && arity(holder) == 2
                    && words(holder, 1) == [counted]
                    // The size of the binary lies before its bytes.
                    && *(data as *const usize).sub(1) == size;
                fits.then_some(Kind::RangeOfBinary)
            }
            _ => None,
        }
    }
}

/// Verifies the layout of parts of binaries, and of bitstrings, until OTP 26.
///
/// 1. A part of a binary on a heap and one of a reference-counted binary: size, offset, no bits,
///    and the term of the whole.
/// 2. A bitstring of two bytes and five bits, and reading it by `bits`.
pub fn prove_parts(env: *mut Env) {
    let (mut heap, mut large) = (NIL, NIL);
    // (1) Make both parts.
    // SAFETY: `env` is the environment of the running load callback; the calls give memory for as
    // many bytes as asked.
    let parts = unsafe {
        let bytes = enif_make_new_binary(env, 60, &mut heap);
        (0..60u8).for_each(|i| bytes.add(usize::from(i)).write(i));
        let bytes = enif_make_new_binary(env, 1024, &mut large);
        (0..1024usize).for_each(|i| bytes.add(i).write(i as u8));
        [
            (enif_make_sub_binary(env, heap, 7, 50), heap, 7, 50),
            (enif_make_sub_binary(env, large, 300, 700), large, 300, 700),
        ]
    };
    for (word, whole, offset, size) in parts {
        // SAFETY: a boxed term that was just made; four words follow its header if that says so.
        let fits = unsafe {
            is_boxed(word)
                && *pointer(word) >> 6 == PART_ARITY
                && words(word, 4)[..2] == [size, offset]
                && words(word, 4)[2] & 0xFFFF == 0
                && words(word, 4)[3] == whole
        };
        if !fits {
            return;
        }
    }
    // (2) Make a bitstring of two bytes and five bits.
    let Some(word) = from_external_format(env, &[131, 77, 0, 0, 0, 3, 5, 1, 2, 0xF8]) else {
        return;
    };
    // SAFETY: as above.
    let fits = unsafe {
        is_boxed(word)
            && *pointer(word) >> 6 == PART_ARITY
            && words(word, 4)[..2] == [2, 0]
            && words(word, 4)[2] & 0xFFFF == 5
    };
    if fits {
        parts
            .iter()
            .for_each(|part| note(part.0, Kind::PartOfBinary));
        if bits(word).is_none_or(|bits| bits.bytes != [1, 2, 0xF8] || bits.more != 5) {
            forget(Kind::PartOfBinary);
            return;
        }
        // SAFETY: a boxed term points at its header.
        // Ordering: Relaxed, as in `kind`.
        PART.store(unsafe { *pointer(word) }, Ordering::Relaxed);
    }
}

/// Verifies the layout of ranges: of a part of a reference-counted binary, and of a bitstring. A
/// range that is the whole of a binary was verified by `prove_shared`. If these differ, neither is
/// known.
pub fn prove_ranges(env: *mut Env) {
    const SIZE: usize = 1024;
    let mut large = NIL;
    // SAFETY: `env` is the environment of the running load callback; the call gives memory for as
    // many bytes as asked, and the part lies within them.
    let (data, part) = unsafe {
        let data = enif_make_new_binary(env, SIZE, &mut large);
        (0..SIZE).for_each(|i| data.add(i).write(i as u8));
        (data, enif_make_sub_binary(env, large, 301, 700))
    };
    let is_part = |bits: &Bits<'_>| {
        let whole = bits.shared.map(|shared| (shared.whole, shared.is_written));
        let from = data.wrapping_add(301).cast_const();
        (bits.bytes.as_ptr(), bits.bytes.len(), bits.more) == (from, 700, 0)
            && whole == Some(((data.cast_const(), SIZE), false))
    };
    // A bitstring of a hundred bytes, of whose last one five bits count.
    let mut format = vec![131, 77, 0, 0, 0, 100, 5];
    format.extend((0..99).chain([0xF8]));
    let is_bitstring =
        |bits: &Bits<'_>| (bits.bytes, bits.more) == (&format[7..], 5) && bits.shared.is_some();
    let bitstring = from_external_format(env, &format);
    if !bits(part).is_some_and(|bits| is_part(&bits))
        || !bitstring
            .and_then(bits)
            .is_some_and(|bits| is_bitstring(&bits))
    {
        forget(Kind::RangeOfBinary);
        // Ordering: Relaxed, as in `kind`.
        COUNT.store(usize::MAX, Ordering::Relaxed);
    }
}
