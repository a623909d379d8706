//! What this crate knows about the bits of a term, and the proof, made at load, that the running
//! emulator agrees.
//!
//! The official functions answer everything, at a few nanoseconds a call. Small integers, atoms,
//! pids and list ends are so common that looking at the word pays:
//!
//! ```text
//!  ......value......  1111   small integer (60 bits)
//!  ......index....  00 1011  atom
//!  ....address....      01   list cell
//!  ....address....      10   anything else that lies on a heap
//!  .......pid.....    0011   local pid; the rest says id and serial, in a way that depends on
//!                            the emulator's settings
//!  ......port.....    0111   local port, likewise
//!               00 111011    []
//! ```
//!
//! Tuples, cells, small maps and binaries that lie on a heap whole are read where they lie:
//!
//! ```text
//!  cell     head, tail                        tuple    arity << 6, elements…
//!  map      header, size, keys (a tuple), values…      binary   header, size, bytes…
//!  float    header, bits
//! ```
//!
//! They are written so, too (see `heap`).
//!
//! Small integers, atoms and `[]` have looked like this since R13; [`check`] refuses to load if
//! they do not. For pids a formula is looked for with pids that are made for the purpose; if none
//! fits, pids go through the external format, which is slower and right.

use crate::binaries;
use crate::boxed::{self, Kind};
use crate::sys::*;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::OnceLock;

/// `[]`.
pub const NIL: Word = 0x3B;

/// Whether the word is an atom.
#[inline]
pub fn is_atom(word: Word) -> bool {
    word & 0x3F == 0x0B
}

/// An atom's number in the emulator's table.
#[inline]
pub fn atom_index(word: Word) -> u32 {
    (word >> 6) as u32
}

/// The atom with this number.
#[inline]
pub fn atom_word(index: u32) -> Word {
    (index as Word) << 6 | 0x0B
}

/// Whether the word is a whole term, which points nowhere.
#[inline]
pub fn is_immediate(word: Word) -> bool {
    word & 3 == 3
}

/// Those bits of a header that say what it is the header of.
pub const HEADER: Word = 0x3F;
/// What they are for a binary that lies on a heap whole; 0, which is a tuple's, before that was
/// looked at.
static HEAP_BINARY: AtomicUsize = AtomicUsize::new(0);
/// How many of these units, as a power of two, its size has in a byte: releases differ.
static HEAP_BINARY_UNIT: AtomicUsize = AtomicUsize::new(0);
/// As `HEAP_BINARY`, if the rest of the header is how many words follow it.
static HEAP_BINARY_HEAD: AtomicUsize = AtomicUsize::new(0);
/// The header of a float; 0 if that is not known.
static FLOAT: AtomicUsize = AtomicUsize::new(0);

/// Which headers, by the bits of `HEADER`, begin terms of the commonest kinds: tuples, numbers,
/// binaries, maps and references of this node.
static COMMON: AtomicU64 = AtomicU64::new(0);

/// Whether the word points at a term that is of none of the commonest kinds: a port, a fun, an
/// identifier of another node, or something that came with a later release.
#[inline]
pub fn is_strange(word: Word) -> bool {
    // SAFETY: a boxed term of the running call points at its header.
    // Ordering: Relaxed, as in `heap_binary`.
    is_boxed(word) && COMMON.load(Ordering::Relaxed) >> (unsafe { *place(word) } & HEADER) & 1 == 0
}

/// Where a term that lies on a heap lies. All three low bits are for tags: some emulators mark
/// literals with the third.
#[inline]
pub fn place(word: Word) -> *const Word {
    (word & !7) as *const Word
}

/// The term that lies there and begins with its header.
#[inline]
pub fn boxed(place: *const Word) -> Word {
    place as Word | 2
}

/// The list whose first cell lies there.
#[inline]
pub fn cell_word(place: *const Word) -> Word {
    place as Word | 1
}

/// The header of a tuple.
#[inline]
pub fn arity_header(arity: usize) -> Word {
    arity << 6
}

/// The header of a binary of so many bytes that lies on a heap whole, and the word behind it; None
/// if that is not known.
#[inline]
pub fn heap_binary_head(bytes: usize) -> Option<(Word, Word)> {
    // Ordering: Relaxed, both, as in `heap_binary`.
    let kind = HEAP_BINARY_HEAD.load(Ordering::Relaxed);
    let unit = HEAP_BINARY_UNIT.load(Ordering::Relaxed);
    let words = 1 + bytes.div_ceil(size_of::<Word>());
    (kind != 0).then_some((words << 6 | kind, bytes << unit))
}

/// The header of a float, behind which its bits lie; None if that is not known.
#[inline]
pub fn float_header() -> Option<Word> {
    // Ordering: Relaxed, as in `heap_binary`.
    Some(FLOAT.load(Ordering::Relaxed)).filter(|&header| header != 0)
}

/// The header of a small map; None if that is not known.
#[inline]
pub fn flatmap_header() -> Option<Word> {
    // Ordering: Relaxed, as in `heap_binary`.
    Some(FLATMAP.load(Ordering::Relaxed)).filter(|&header| header != 0)
}

/// The elements of a tuple; None for another term. They live as long as the term.
#[inline]
pub fn tuple<'a>(word: Word) -> Option<&'a [Word]> {
    if !is_boxed(word) {
        return None;
    }
    // SAFETY: a boxed term of the running call points at its header; a tuple's elements lie behind
    // that, as many as it says. `check` saw it.
    unsafe {
        let header = *place(word);
        let elements = || std::slice::from_raw_parts(place(word).add(1), header >> 6);
        (header & HEADER == 0).then(elements)
    }
}

/// Head and tail of a list that is not empty; None for another term.
#[inline]
pub fn cell(word: Word) -> Option<(Word, Word)> {
    // SAFETY: a cell of the running call is two words, the head and the tail. `check` saw it.
    is_cell(word).then(|| unsafe { (*place(word), *place(word).add(1)) })
}

/// The bytes of a binary that lies on a heap whole; None for another term, also for another binary.
/// They live as long as the term.
#[inline]
pub fn heap_binary<'a>(word: Word) -> Option<&'a [u8]> {
    // Ordering: Relaxed, both; written at load, before any other function of the library can run.
    let kind = HEAP_BINARY.load(Ordering::Relaxed);
    let unit = HEAP_BINARY_UNIT.load(Ordering::Relaxed);
    if !is_boxed(word) || kind == 0 {
        return None;
    }
    // SAFETY: a boxed term of the running call points at its header. That of such a binary is
    // followed by its size and its bytes. `check` saw it.
    unsafe {
        let header = *place(word);
        if header & HEADER != kind {
            return None;
        }
        let size = *place(word).add(1);
        let bytes = || std::slice::from_raw_parts(place(word).add(2).cast::<u8>(), size >> unit);
        (size & ((1 << unit) - 1) == 0).then(bytes)
    }
}

/// The header of a small map; 0 if that is not known.
static FLATMAP: AtomicUsize = AtomicUsize::new(0);

/// The keys of a small map and their values, in the emulator's order; None for another term. They
/// live as long as the term.
#[inline]
pub fn flatmap<'a>(word: Word) -> Option<(&'a [Word], &'a [Word])> {
    // Ordering: Relaxed, as in `heap_binary`.
    let header = FLATMAP.load(Ordering::Relaxed);
    if !is_boxed(word) || header == 0 {
        return None;
    }
    // SAFETY: a boxed term of the running call points at its header. That of a small map is
    // followed by its size, a tuple of its keys, and its values. `check` saw it.
    unsafe {
        if *place(word) != header {
            return None;
        }
        let (size, keys) = (*place(word).add(1), *place(word).add(2));
        let values = std::slice::from_raw_parts(place(word).add(3), size);
        Some((tuple(keys)?, values))
    }
}

/// Whether the term holds on to nothing else and equals no other: an immediate, a large integer, a
/// float with a fraction, a reference that keeps nothing alive, a binary that is no small part of
/// another, or a short tuple of immediates.
#[inline]
pub fn is_compact(word: Word) -> bool {
    is_immediate(word) || (is_boxed(word) && is_compact_boxed(word))
}

fn is_compact_boxed(word: Word) -> bool {
    match boxed::kind(word) {
        Kind::Tuple => tuple(word).is_some_and(|elements| {
            elements.len() <= 8 && elements.iter().all(|&e| is_immediate(e))
        }),
        Kind::HeapBinary | Kind::Positive | Kind::Negative => true,
        // Equal integers, and zeros of either sign, are other terms.
        Kind::Float => f64::from_bits(boxed::float_bits(word)).fract() != 0.0,
        Kind::SharedBinary | Kind::PartOfBinary => binaries::is_most_of_its_binary(word),
        Kind::Reference => boxed::reference(word).is_some(),
        _ => false,
    }
}

/// Whether the word points at a list cell.
#[inline]
pub fn is_cell(word: Word) -> bool {
    word & 3 == 1
}

/// Whether the word points at something else than a list cell.
#[inline]
pub fn is_boxed(word: Word) -> bool {
    word & 3 == 2
}

/// The value, if the word is a small integer.
#[inline]
pub fn small(word: Word) -> Option<i64> {
    (word & 0xF == 0xF).then_some(word as i64 >> 4)
}

/// The word of an integer, if it is small enough to be one.
#[inline]
pub fn small_word(value: i64) -> Option<Word> {
    let word = (value as Word) << 4 | 0xF;
    (word as i64 >> 4 == value).then_some(word)
}

/// Whether the word is a pid of this node.
#[inline]
pub fn is_local_pid(word: Word) -> bool {
    word & 0xF == 0x3
}

/// How a local pid's word holds its id and serial, or a local port's its number.
pub struct Pids {
    /// The bits of the id, in the lowest part of the pid's data.
    id_bits: u32,
    /// The bits of the serial, above.
    serial_bits: u32,
    /// The word of the pid with neither, and what each byte of id and serial adds to it.
    zero: Word,
    bytes: Box<[[Word; 256]; 8]>,
}

impl Pids {
    /// Id and serial of a local pid's word.
    #[inline]
    pub fn parts(&self, word: Word) -> (u32, u32) {
        let data = word as u64 >> 4;
        let id = data & ((1 << self.id_bits) - 1);
        let serial = data >> self.id_bits & ((1 << self.serial_bits) - 1);
        (id as u32, serial as u32)
    }

    /// The word of the local pid with this id and serial; None if the emulator has no such pid.
    #[inline]
    pub fn word(&self, id: u32, serial: u32) -> Option<Word> {
        if u64::from(id) >> self.id_bits != 0 || u64::from(serial) >> self.serial_bits != 0 {
            return None;
        }
        let [a, b, c, d] = id.to_le_bytes().map(usize::from);
        let [e, f, g, h] = serial.to_le_bytes().map(usize::from);
        let of = &self.bytes;
        let id = of[0][a] ^ of[1][b] ^ of[2][c] ^ of[3][d];
        Some(self.zero ^ id ^ of[4][e] ^ of[5][f] ^ of[6][g] ^ of[7][h])
    }

    /// Looks for the formula among those with so many bits of id and serial. `make` gives the word
    /// of the local pid with an id and serial, through the external format.
    fn find(sizes: &[(u32, u32)], make: &dyn Fn(u32, u32) -> Option<Word>) -> Option<Pids> {
        let zero = make(0, 0)?;
        sizes
            .iter()
            .filter_map(|&(id_bits, serial_bits)| Pids::with(zero, id_bits, serial_bits, make))
            .find(|pids| pids.holds(make))
    }

    fn with(
        zero: Word,
        id_bits: u32,
        serial_bits: u32,
        make: &dyn Fn(u32, u32) -> Option<Word>,
    ) -> Option<Pids> {
        let mut bits = [0; 64];
        for bit in 0..id_bits {
            bits[bit as usize] = make(1 << bit, 0)? ^ zero;
        }
        for bit in 0..serial_bits {
            bits[32 + bit as usize] = make(0, 1 << bit)? ^ zero;
        }
        let mut bytes = Box::new([[0; 256]; 8]);
        for (table, bits) in bytes.iter_mut().zip(bits.chunks(8)) {
            for (byte, sum) in table.iter_mut().enumerate() {
                let set = bits.iter().enumerate().filter(|(i, _)| byte >> i & 1 == 1);
                *sum = set.fold(0, |sum, (_, bit)| sum ^ bit);
            }
        }
        Some(Pids {
            id_bits,
            serial_bits,
            zero,
            bytes,
        })
    }

    /// Tries the formula both ways on a spread of pids.
    fn holds(&self, make: &dyn Fn(u32, u32) -> Option<Word>) -> bool {
        let mut x = 0x9E37_79B9_7F4A_7C15u64;
        (0..64).all(|_| {
            x = x
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            let id = (x >> 33) as u32 & (((1u64 << self.id_bits) - 1) as u32);
            let serial = (x >> 11) as u32 & (((1u64 << self.serial_bits) - 1) as u32);
            let word = make(id, serial);
            word.is_some()
                && word == self.word(id, serial)
                && self.parts(word.unwrap_or(0)) == (id, serial)
        })
    }
}

static PIDS: OnceLock<Option<Pids>> = OnceLock::new();

/// The formula for local pids, if one was found.
#[inline]
pub fn pids() -> Option<&'static Pids> {
    PIDS.get().and_then(Option::as_ref)
}

/// Whether the word is a port of this node.
#[inline]
pub fn is_local_port(word: Word) -> bool {
    word & 0xF == PORT
}

/// The low bits of a local port's word.
const PORT: Word = 0x7;
static PORTS: OnceLock<Option<Pids>> = OnceLock::new();

/// The formula for local ports, if one was found: a port's number is an id without a serial.
#[inline]
pub fn ports() -> Option<&'static Pids> {
    PORTS.get().and_then(Option::as_ref)
}

/// Tries what this module says of words on the running emulator; what does not fit, in words.
pub fn check(env: *mut Env) -> Result<(), &'static str> {
    check_integers(env)?;
    check_atoms(env)?;
    // SAFETY: `env` is the environment of the running load callback.
    let empty = unsafe { enif_make_list_from_array(env, std::ptr::null(), 0) };
    if empty != NIL {
        return Err("the empty list is another word than expected");
    }
    check_pointers(env)?;
    PIDS.get_or_init(|| {
        let make = |id, serial| crate::identifiers::make_local_pid(env, id, serial);
        Pids::find(&[(15, 13), (28, 32), (28, 13)], &make)
    });
    PORTS.get_or_init(|| {
        let make = |id, _serial| crate::identifiers::make_local_port(env, id);
        let is_wanted = boxed::is_wanted("port");
        is_wanted.then(|| Pids::find(&[(28, 0)], &make)).flatten()
    });
    Ok(())
}

fn check_integers(env: *mut Env) -> Result<(), &'static str> {
    for value in [0, 1, -1, 127, -128, 1 << 40, (1 << 59) - 1, -(1 << 59)] {
        // SAFETY: `env` is the environment of the running load callback.
        let word = unsafe { enif_make_int64(env, value) };
        if small_word(value) != Some(word) || small(word) != Some(value) {
            return Err("small integers are other words than expected");
        }
    }
    // SAFETY: as above.
    let big = unsafe { enif_make_int64(env, 1 << 59) };
    if small(big).is_some() || small_word(1 << 59).is_some() {
        return Err("small integers have another size than expected");
    }
    Ok(())
}

fn check_pointers(env: *mut Env) -> Result<(), &'static str> {
    let mut bytes = NIL;
    // SAFETY: `env` is the environment of the running load callback.
    let (cell, tuple, float, map) = unsafe {
        enif_make_new_binary(env, 1, &mut bytes);
        (
            enif_make_list_cell(env, NIL, NIL),
            enif_make_tuple_from_array(env, [NIL].as_ptr(), 1),
            enif_make_double(env, 0.5),
            enif_make_new_map(env),
        )
    };
    let pointers = [bytes, tuple, float, map];
    let fits = is_cell(cell)
        && !is_boxed(cell)
        && pointers
            .iter()
            .all(|&word| is_boxed(word) && !is_cell(word));
    if !fits {
        return Err("lists and boxed terms are other words than expected");
    }
    let cells = self::cell(cell) == Some((NIL, NIL));
    let back = boxed(place(tuple)) == tuple && cell_word(place(cell)) == cell;
    if !cells || !back || self::tuple(tuple) != Some(&[NIL]) {
        return Err("lists and tuples have another layout than expected");
    }
    // SAFETY: a float that was just made is a boxed term, and takes two words at least on any
    // machine of 64 bits.
    let (header, bits) = unsafe { (*place(float), *place(float).add(1)) };
    if bits as u64 == 0.5f64.to_bits() {
        // Ordering: Relaxed, as in `heap_binary`.
        FLOAT.store(header, Ordering::Relaxed);
    }
    find_heap_binaries(env);
    find_flatmaps(env);
    find_common(env, &[tuple, float, map, bytes]);
    Ok(())
}

/// Remembers the headers of these terms and of samples of the other common kinds.
fn find_common(env: *mut Env, known: &[Word]) {
    let mut large = NIL;
    // SAFETY: `env` is the environment of the running load callback. The binary has a kilobyte,
    // whose last bytes are a part of it.
    let samples = unsafe {
        enif_make_new_binary(env, 1024, &mut large).write_bytes(0, 1024);
        let part = enif_make_sub_binary(env, large, 1000, 24);
        let integers = [1 << 60, -(1 << 60)].map(|value| enif_make_int64(env, value));
        [large, part, integers[0], integers[1], enif_make_ref(env)]
    };
    let kinds = known.iter().chain(&samples).fold(0, |kinds, &word| {
        // SAFETY: each is a boxed term that was just made.
        kinds | 1 << (unsafe { *place(word) } & HEADER)
    });
    // Ordering: Relaxed, as in `heap_binary`.
    COMMON.store(kinds, Ordering::Relaxed);
}

/// Looks how binaries lie on a heap. Where it is not as in any release known, they are asked for
/// one by one.
fn find_heap_binaries(env: *mut Env) {
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
    let kind = unsafe { *place(samples[0].0) } & HEADER;
    // Ordering: Relaxed, all, as in `heap_binary`.
    HEAP_BINARY.store(kind, Ordering::Relaxed);
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
    HEAP_BINARY_HEAD.store(kind, Ordering::Relaxed);
    let heads = samples.iter().all(|(word, bytes)| {
        // SAFETY: a binary that was just made is a boxed term; a size follows the header, as was
        // seen above.
        let head = unsafe { (*place(*word), *place(*word).add(1)) };
        heap_binary_head(bytes.len()) == Some(head)
    });
    if !heads {
        HEAP_BINARY_HEAD.store(0, Ordering::Relaxed);
    }
}

/// Looks how small maps lie on a heap. Where it is not as in any release known, the emulator walks
/// over them.
fn find_flatmaps(env: *mut Env) {
    // The largest is the largest that is written here.
    let samples = [0, 1, 3, 8, crate::heap::MOST_IN_ORDER as i64].map(|size| {
        let keys: Vec<Word> = (0..size).filter_map(small_word).collect();
        let values: Vec<Word> = keys.iter().map(|key| key + (1 << 10)).collect();
        let mut map = NIL;
        // SAFETY: `env` is the environment of the running load callback; the arrays have as many
        // words as said.
        unsafe {
            enif_make_map_from_arrays(env, keys.as_ptr(), values.as_ptr(), keys.len(), &mut map)
        };
        (map, keys, values)
    });
    // SAFETY: a map that was just made is a boxed term.
    let header = unsafe { *place(samples[0].0) };
    // SAFETY: as above; behind the header of a small map, of any layout, lie at least two words.
    let sizes = samples.iter().all(|(map, keys, _)| unsafe {
        *place(*map) == header && *place(*map).add(1) == keys.len()
    });
    if !sizes {
        return;
    }
    // Ordering: Relaxed, both, as in `heap_binary`.
    FLATMAP.store(header, Ordering::Relaxed);
    let fits = samples
        .iter()
        .all(|(map, keys, values)| flatmap(*map) == Some((keys, values)));
    if !fits {
        FLATMAP.store(0, Ordering::Relaxed);
    }
}

fn check_atoms(env: *mut Env) -> Result<(), &'static str> {
    for text in [
        "true",
        "larder",
        "larder_nif",
        "a_text_that_hardly_any_program_has",
    ] {
        // SAFETY: `env` is the environment of the running load callback, and the text has the
        // length given.
        let word = unsafe { enif_make_atom_len(env, text.as_ptr().cast(), text.len()) };
        if !is_atom(word) || atom_word(atom_index(word)) != word {
            return Err("atoms are other words than expected");
        }
    }
    Ok(())
}
