//! Boxed terms: which kind a header begins, and where the parts of each kind lie.
//!
//! ```text
//!  integer    arity << 6 | sign, digits of 64 bits, low ones first
//!  reference  header, mark | number 0 << 32, number 1 | number 2 << 32; of an alias its pid behind them
//!  shared     header, size, •, Binary, bytes, flags        a binary that is counted
//!  part       header, size, offset, bits, binary           a part of a binary, or a bitstring
//!  fun        header, entry, •, …, free variables
//! ```
//!
//! Each kind is proved at load on samples that the emulator makes (OTP 25 has them so; later
//! releases differ in some). A kind whose proof fails is [`Kind::Other`] for ever: its terms go
//! through official functions, and the other kinds don't notice. The environment variable
//! `LARDER_UNPROVED`, a list of kinds separated by commas, makes the proofs of these fail; it is
//! for tests.

use crate::identifiers::{external_format, from_external_format, parse_reference};
use crate::layout::{self, place, HEADER};
use crate::sys::*;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

/// What a boxed term is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Something else, or of a kind that was not proved.
    Other,
    Tuple,
    Float,
    HeapBinary,
    Map,
    Positive,
    Negative,
    Reference,
    SharedBinary,
    PartOfBinary,
    Fun,
}

const KINDS: [Kind; 11] = [
    Kind::Other,
    Kind::Tuple,
    Kind::Float,
    Kind::HeapBinary,
    Kind::Map,
    Kind::Positive,
    Kind::Negative,
    Kind::Reference,
    Kind::SharedBinary,
    Kind::PartOfBinary,
    Kind::Fun,
];

/// By the bits of a header that say what it is the header of.
static BY_HEADER: [AtomicU8; 64] = [const { AtomicU8::new(Kind::Other as u8) }; 64];

/// The kind of a boxed term.
#[inline(always)]
pub fn kind(word: Word) -> Kind {
    debug_assert!(layout::is_boxed(word));
    // Ordering: Relaxed; written at load, before any other function of the library can run.
    // SAFETY: a boxed term of the running call points at its header.
    let at = unsafe { *place(word) } & HEADER;
    KINDS[usize::from(BY_HEADER[at].load(Ordering::Relaxed)) % KINDS.len()]
}

/// Notes that headers like that of this term begin terms of this kind.
fn note(word: Word, kind: Kind) {
    // SAFETY: a sample is a boxed term that was just made.
    let at = unsafe { *place(word) } & HEADER;
    // Ordering: Relaxed, as in `kind`.
    BY_HEADER[at].store(kind as u8, Ordering::Relaxed);
}

/// Takes back what was noted of a kind.
pub fn forget(kind: Kind) {
    for place in &BY_HEADER {
        // Ordering: Relaxed, as in `kind`.
        if place.load(Ordering::Relaxed) == kind as u8 {
            place.store(Kind::Other as u8, Ordering::Relaxed);
        }
    }
}

/// The words of a boxed term behind its header, so many.
///
/// # Safety
/// The term has so many, and lives for `'a`.
#[inline(always)]
unsafe fn words<'a>(word: Word, count: usize) -> &'a [Word] {
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(place(word).add(1), count) }
}

/// How many words a header says follow it.
#[inline(always)]
fn arity(word: Word) -> usize {
    // SAFETY: a boxed term of the running call points at its header.
    unsafe { *place(word) >> 6 }
}

/// The digits of a large integer, of 64 bits, low ones first.
#[inline]
pub fn digits<'a>(word: Word) -> &'a [Word] {
    debug_assert!(matches!(kind(word), Kind::Positive | Kind::Negative));
    // SAFETY: as many digits lie behind the header as it says, saw `find_integers`.
    unsafe { words(word, arity(word)) }
}

static POSITIVE: AtomicUsize = AtomicUsize::new(0);
static NEGATIVE: AtomicUsize = AtomicUsize::new(0);

/// The header of a large integer of so many digits; None if that is not known.
#[inline]
pub fn integer_header(negative: bool, digits: usize) -> Option<Word> {
    let sign = if negative { &NEGATIVE } else { &POSITIVE };
    // Ordering: Relaxed, as in `kind`.
    let sign = sign.load(Ordering::Relaxed);
    (sign != 0).then_some(digits << 6 | sign)
}

/// The bits of a float.
#[inline(always)]
pub fn float_bits(word: Word) -> u64 {
    debug_assert_eq!(kind(word), Kind::Float);
    // SAFETY: behind the header lie the bits, saw `layout::check`.
    unsafe { words(word, 1)[0] as u64 }
}

/// The numbers of a reference of this node.
pub type Numbers = [u32; 3];

/// The header of a reference and the mark behind it, of one that is nothing else and of an alias.
static REFERENCE: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];
static ALIAS: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];
/// What the second number of an alias has, and no other reference's.
const ALIAS_BIT: u32 = 1 << 16;

fn load_pair(pair: &[AtomicUsize; 2]) -> (Word, Word) {
    // Ordering: Relaxed, both, as in `kind`.
    (
        pair[0].load(Ordering::Relaxed),
        pair[1].load(Ordering::Relaxed),
    )
}

fn store_pair(pair: &[AtomicUsize; 2], first: Word, second: Word) {
    // Ordering: Relaxed, both, as in `kind`.
    pair[0].store(first, Ordering::Relaxed);
    pair[1].store(second, Ordering::Relaxed);
}

/// The numbers of a reference of this node that keeps nothing alive; None of another.
#[inline]
pub fn reference(word: Word) -> Option<Numbers> {
    debug_assert_eq!(kind(word), Kind::Reference);
    // SAFETY: a reference points at its header, behind which lie two words at least, saw
    // `find_references`.
    let (header, words) = unsafe { (*place(word), words(word, 2)) };
    let seen = (header, words[0] & 0xFFFF_FFFF);
    (seen == load_pair(&REFERENCE) || seen == load_pair(&ALIAS)).then_some([
        (words[0] >> 32) as u32,
        words[1] as u32,
        (words[1] >> 32) as u32,
    ])
}

/// The words of a reference of this node that keeps nothing alive, as it lies; None of an alias,
/// whose pid is not among its numbers, and if it is not known.
#[inline]
pub fn reference_words(numbers: Numbers) -> Option<[Word; 3]> {
    let (header, mark) = load_pair(&REFERENCE);
    let [a, b, c] = numbers.map(|n| n as Word);
    let is_plain = header != 0 && numbers[1] & ALIAS_BIT == 0;
    is_plain.then_some([header, mark | a << 32, b | c << 32])
}

/// A binary that is counted, or a part of one.
#[derive(Clone, Copy)]
pub struct SharedBinary {
    /// What is counted.
    pub binary: *mut Counted,
    /// Where all its bytes are, and how many.
    pub whole: (*const u8, usize),
    /// The emulator may write behind its bytes, or move them.
    pub is_written: bool,
}

/// The emulator's own header of a binary.
#[repr(C)]
pub struct Counted {
    _opaque: [u8; 0],
}

/// A run of bits: whole bytes, then so many bits of the byte behind them; and the shared binary it
/// is of.
#[derive(Clone, Copy)]
pub struct Bits<'a> {
    pub bytes: &'a [u8],
    pub more: usize,
    pub shared: Option<SharedBinary>,
}

#[inline]
fn shared<'a>(word: Word) -> Bits<'a> {
    // SAFETY: five words lie behind the header, saw `find_shared`; the bytes are there while the
    // term is.
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

/// The bits of a binary or bitstring; None for another term, and for one that does not begin with a
/// whole byte.
#[inline]
pub fn bits<'a>(word: Word) -> Option<Bits<'a>> {
    match kind(word) {
        Kind::HeapBinary => Some(Bits {
            bytes: layout::heap_binary(word)?,
            more: 0,
            shared: None,
        }),
        Kind::SharedBinary => Some(shared(word)),
        Kind::PartOfBinary => part(word),
        _ => None,
    }
}

#[inline]
fn part<'a>(word: Word) -> Option<Bits<'a>> {
    // SAFETY: four words lie behind the header, saw `find_parts`.
    let words = unsafe { words(word, 4) };
    let (size, offset, whole) = (words[0], words[1], words[3]);
    let (more, skipped) = (words[2] & 0xFF, words[2] >> 8 & 0xFF);
    if skipped != 0 || !layout::is_boxed(whole) {
        return None;
    }
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

/// What the header of a part says: the binary that it is of is not counted.
const PART_ARITY: usize = 3;
/// The header of a part of a binary; 0 if that is not known.
static PART: AtomicUsize = AtomicUsize::new(0);

/// The header of a part of a binary; None if that is not known.
#[inline]
pub fn part_header() -> Option<Word> {
    // Ordering: Relaxed, as in `kind`.
    Some(PART.load(Ordering::Relaxed)).filter(|&header| header != 0)
}

/// Which word behind the header of a fun is its first free variable; 0 if that is not known.
static FREE: AtomicUsize = AtomicUsize::new(0);

/// A fun: what it is a fun of, and so many free variables.
#[inline]
pub fn fun<'a>(word: Word, free: usize) -> &'a [Word] {
    debug_assert_eq!(kind(word), Kind::Fun);
    if free == 0 {
        return &[];
    }
    // Ordering: Relaxed, as in `kind`.
    let first = FREE.load(Ordering::Relaxed);
    // SAFETY: the free variables lie behind the other words, saw `find_funs`; the caller knows how
    // many this one has.
    unsafe { &words(word, first + free)[first..] }
}

/// Whether funs can be read and made.
#[inline]
pub fn is_fun_known() -> bool {
    // Ordering: Relaxed, as in `kind`.
    FREE.load(Ordering::Relaxed) != 0
}

/// What a fun is a fun of: the same word for the same code, while such a fun lives.
#[inline]
pub fn fun_entry(word: Word) -> Word {
    // SAFETY: the word behind the header of a term that has one, saw `find_funs`.
    unsafe { words(word, 1)[0] }
}

/// Terms that the Erlang module gives to look at, as far as its release has them: an alias, a fun
/// with two free variables, these, and two times `fun M:F/A`, for different functions.
#[derive(Default)]
pub struct Samples {
    pub alias: Option<Word>,
    pub fun: Option<Word>,
    pub free: [Word; 2],
    pub exports: [Option<Word>; 2],
    /// `ets` takes a key with a map for itself, not for a pattern.
    pub exact_map_keys: bool,
}

impl Samples {
    /// Those of `[Alias, Fun, Free1, Free2, Export1, Export2, ExactMapKeys]`.
    pub fn of(list: Word) -> Samples {
        let mut rest = list;
        let mut next = || {
            let (head, tail) = layout::cell(rest)?;
            rest = tail;
            Some(head)
        };
        let (alias, fun) = (next(), next());
        let free = [(); 2].map(|()| next().unwrap_or(layout::NIL));
        Samples {
            alias,
            fun,
            free,
            exports: [(); 2].map(|()| next()),
            exact_map_keys: next() == Some(crate::atoms::TRUE.word()),
        }
    }
}

/// Whether the proof of something is to be tried.
pub fn is_wanted(kind: &str) -> bool {
    std::env::var("LARDER_UNPROVED").map_or(true, |kinds| kinds.split(',').all(|k| k != kind))
}

/// Tries what this module says on the running emulator.
pub fn check(env: *mut Env, samples: &Samples) {
    // SAFETY: `env` is the environment of the running load callback.
    unsafe {
        note(
            enif_make_tuple_from_array(env, [layout::NIL].as_ptr(), 1),
            Kind::Tuple,
        );
        if layout::float_header().is_some() {
            note(enif_make_double(env, 0.5), Kind::Float);
        }
        if layout::flatmap_header().is_some() {
            note(enif_make_new_map(env), Kind::Map);
        }
        let mut bytes = layout::NIL;
        enif_make_new_binary(env, 1, &mut bytes).write(7);
        if layout::heap_binary(bytes) == Some(&[7]) {
            note(bytes, Kind::HeapBinary);
        }
    }
    if is_wanted("integer") {
        find_integers(env);
    }
    if is_wanted("reference") {
        find_references(env, samples.alias);
    }
    if is_wanted("binary") && find_shared(env).is_some() {
        find_parts(env);
    }
    if is_wanted("fun") {
        let _unknown_otherwise = find_funs(samples);
    }
}

fn find_integers(env: *mut Env) {
    let samples: [&[u64]; 4] = [&[1 << 60], &[5, 1], &[u64::MAX, 7, 9], &[3; 31]];
    let make = |negative: bool, digits: &[u64]| {
        let mut etf = vec![131, 110, 8 * digits.len() as u8, u8::from(negative)];
        digits
            .iter()
            .for_each(|digit| etf.extend_from_slice(&digit.to_le_bytes()));
        from_external_format(env, &etf)
    };
    for (negative, sign) in [(false, &POSITIVE), (true, &NEGATIVE)] {
        let mut heads = Vec::new();
        for digits in samples {
            let Some(word) = make(negative, digits).filter(|&word| layout::is_boxed(word)) else {
                return;
            };
            // SAFETY: a large integer has as many words as its digits take, in any layout.
            let (header, words) = unsafe { (*place(word), words(word, digits.len())) };
            if header >> 6 != digits.len()
                || !words
                    .iter()
                    .eq(digits.iter().map(|&d| d as Word).collect::<Vec<_>>().iter())
            {
                return;
            }
            heads.push((word, header & HEADER));
        }
        if heads.iter().any(|head| head.1 != heads[0].1) {
            return;
        }
        note(
            heads[0].0,
            if negative {
                Kind::Negative
            } else {
                Kind::Positive
            },
        );
        // Ordering: Relaxed, as in `kind`.
        sign.store(heads[0].1, Ordering::Relaxed);
    }
}

fn find_references(env: *mut Env, alias: Option<Word>) {
    let numbers = |word| external_format(env, word, parse_reference).map(|parsed| parsed.2);
    let mut first = None;
    for _ in 0..8 {
        // SAFETY: `env` is the environment of the running load callback.
        let word = unsafe { enif_make_ref(env) };
        // SAFETY: a reference is a boxed term of three words at least.
        let (header, words) = unsafe { (*place(word), words(word, 2)) };
        let here = [words[0] >> 32, words[1] & 0xFFFF_FFFF, words[1] >> 32];
        let same = numbers(word).is_some_and(|n| n.iter().map(|&n| n as Word).eq(here));
        let seen = (header, words[0] & 0xFFFF_FFFF);
        let is_marked = here[1] as u32 & ALIAS_BIT != 0;
        if !same || is_marked || header >> 6 != 2 || *first.get_or_insert(seen) != seen {
            return;
        }
        note(word, Kind::Reference);
    }
    let Some((header, mark)) = first else { return };
    store_pair(&REFERENCE, header, mark);
    let Some(word) = alias.filter(|&word| layout::is_boxed(word)) else {
        return;
    };
    // SAFETY: a reference is a boxed term that points at its header.
    let header = unsafe { *place(word) };
    if header >> 6 != 3 || header & HEADER != load_pair(&REFERENCE).0 & HEADER {
        return;
    }
    // SAFETY: the header says that three words follow.
    let words = unsafe { words(word, 3) };
    let here = [words[0] >> 32, words[1] & 0xFFFF_FFFF, words[1] >> 32];
    let same = numbers(word).is_some_and(|n| n.iter().map(|&n| n as Word).eq(here));
    if same && here[1] as u32 & ALIAS_BIT != 0 {
        store_pair(&ALIAS, header, words[0] & 0xFFFF_FFFF);
    }
}

/// Where the count of a counted binary lies, in words; `usize::MAX` if that is not known.
static COUNT: AtomicUsize = AtomicUsize::new(usize::MAX);

/// How many bytes a counted binary's own bytes lie behind its beginning.
static OWN_BYTES: AtomicUsize = AtomicUsize::new(0);

/// Where the own bytes of a counted binary begin.
#[inline]
pub fn own_bytes(address: usize) -> *const u8 {
    // Ordering: Relaxed, as in `kind`.
    (address + OWN_BYTES.load(Ordering::Relaxed)) as *const u8
}

/// Whether the bytes that begin at `start` are the binary's own, from the first on.
#[inline]
pub fn is_whole(binary: *mut Counted, start: *const u8) -> bool {
    // Ordering: Relaxed, as in `kind`.
    start as usize == binary as usize + OWN_BYTES.load(Ordering::Relaxed)
}

/// Whether counted binaries can be taken and given back.
#[inline]
pub fn is_counted_known() -> bool {
    // Ordering: Relaxed, as in `kind`.
    COUNT.load(Ordering::Relaxed) != usize::MAX
}

/// Counts one more holder of a binary.
///
/// # Safety
/// Somebody holds the binary during the call; `is_counted_known`.
#[inline]
pub unsafe fn hold(binary: *mut Counted) {
    // Ordering: Relaxed, the first, as in `kind`; the second, because whoever holds the binary
    // keeps it alive meanwhile, and its bytes were seen through that holder: as `Arc` does.
    unsafe {
        // SAFETY: the count lies there, saw `find_shared`.
        let count = binary
            .cast::<AtomicUsize>()
            .add(COUNT.load(Ordering::Relaxed));
        (*count).fetch_add(1, Ordering::Relaxed);
    }
}

/// Makes a counted binary of 1,000 bytes and looks how its term lies and where its count is.
fn find_shared(env: *mut Env) -> Option<()> {
    const SIZE: usize = 1000;
    let mut binary = Binary::empty();
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
    if counted.is_null() || !layout::is_boxed(word) {
        return None;
    }
    // SAFETY: a boxed term points at its header; the term has five words more if its header says
    // so.
    let fits = unsafe {
        *place(word) >> 6 == 5 && {
            let words = words(word, 5);
            words[0] == SIZE
                && words[2] == counted as Word
                && words[3] == data as Word
                && words[4] == 0
        }
    };
    if !fits || (counted as usize) >= data as usize || data as usize - counted as usize > 64 {
        return None;
    }
    let head = (data as usize - counted as usize) / size_of::<Word>();
    // SAFETY: the words between the binary's beginning and its bytes; nobody else has the binary.
    let look = || unsafe { std::slice::from_raw_parts(counted.cast::<Word>(), head).to_vec() };
    let before = look();
    // SAFETY: a fresh environment, which is ours alone and is freed once.
    let during = unsafe {
        let own = enif_alloc_env();
        enif_make_copy(own, word);
        let during = look();
        enif_free_env(own);
        during
    };
    let after = look();
    let changed: Vec<usize> = (0..head).filter(|&i| before[i] != during[i]).collect();
    let &[at] = &changed[..] else { return None };
    if before != after || during[at] != before[at] + 1 {
        return None;
    }
    // Ordering: Relaxed, as in `kind`; forgotten again below if it can't be used.
    COUNT.store(at, Ordering::Relaxed);
    // SAFETY: the term holds the binary; what is counted here is given back, or given to another
    // term.
    let works = unsafe {
        let counted = counted.cast::<Counted>();
        hold(counted);
        release(counted, data, SIZE);
        let given_back = look() == before;
        hold(counted);
        let other = term_of(env, counted, data, SIZE);
        given_back && look()[at] == before[at] + 1 && enif_is_identical(word, other) != 0
    };
    if !works {
        // Ordering: as above.
        COUNT.store(usize::MAX, Ordering::Relaxed);
        return None;
    }
    // Ordering: Relaxed, as in `kind`.
    OWN_BYTES.store(data as usize - counted as usize, Ordering::Relaxed);
    note(word, Kind::SharedBinary);
    Some(())
}

/// Gives one count of a binary back.
///
/// # Safety
/// The caller holds it, and uses it no more; `is_counted_known`. The bytes are those of the binary.
pub unsafe fn release(counted: *mut Counted, data: *const u8, size: usize) {
    let mut binary = Binary::of(size, data.cast_mut(), counted.cast());
    // SAFETY: as `enif_alloc_binary` would have filled it in, saw `find_shared`.
    unsafe { enif_release_binary(&mut binary) }
}

/// The term of a whole binary, which takes the caller's count over.
///
/// # Safety
/// As for `release`.
#[inline]
pub unsafe fn term_of(env: *mut Env, counted: *mut Counted, data: *const u8, size: usize) -> Word {
    let mut binary = Binary::of(size, data.cast_mut(), counted.cast());
    // SAFETY: as above.
    unsafe { enif_make_binary(env, &mut binary) }
}

fn find_parts(env: *mut Env) {
    let (mut heap, mut large) = (layout::NIL, layout::NIL);
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
            layout::is_boxed(word)
                && *place(word) >> 6 == PART_ARITY
                && words(word, 4)[..2] == [size, offset]
                && words(word, 4)[2] & 0xFFFF == 0
                && words(word, 4)[3] == whole
        };
        if !fits {
            return;
        }
    }
    // Two bytes and five bits.
    let Some(word) = from_external_format(env, &[131, 77, 0, 0, 0, 3, 5, 1, 2, 0xF8]) else {
        return;
    };
    // SAFETY: as above.
    let fits = unsafe {
        layout::is_boxed(word)
            && *place(word) >> 6 == PART_ARITY
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
        PART.store(unsafe { *place(word) }, Ordering::Relaxed);
    }
}

fn find_funs(samples: &Samples) -> Option<()> {
    let word = samples.fun.filter(|&word| layout::is_boxed(word))?;
    // The words that are known to be there: of a small boxed term, behind which others of the call
    // lie.
    const LOOKED_AT: usize = 6;
    // SAFETY: a fun with two free variables has eight words in any release, header included.
    let words = unsafe { words(word, LOOKED_AT + 1) };
    let [a, b] = samples.free;
    let are_there = |i: &usize| words[*i..i + 2] == [a, b] || words[*i..i + 2] == [b, a];
    let free = (2..LOOKED_AT).find(are_there)?;
    // Ordering: Relaxed, as in `kind`.
    FREE.store(free, Ordering::Relaxed);
    note(word, Kind::Fun);
    let exports = [samples.exports[0]?, samples.exports[1]?];
    let is_boxed = exports.iter().all(|&word| layout::is_boxed(word));
    if is_boxed && kind(exports[0]) == Kind::Other && fun_entry(exports[0]) != fun_entry(exports[1])
    {
        note(exports[0], Kind::Fun);
    }
    Some(())
}
