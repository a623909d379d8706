//! Mapping between the emulator's atoms and the engine's.
//!
//! Both sides number their atoms densely and never remove one. So two growing arrays map the
//! numbers of each side to those of the other. A look-up is one load. If a pair isn't there yet, it
//! is found by the atom's text and recorded. Recording a pair twice writes the same values.

use crate::layout;
use crate::sys::external::{external_format, from_external_format};
use crate::sys::*;
use larder_term::Atom;
use std::ffi::c_char;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};

const CHUNK: usize = 1 << 14;

type Chunk = [AtomicU32; CHUNK];

/// Maps numbers to numbers, in chunks that are allocated when they are first written, and never
/// freed. Values are stored plus one, as 0 stands for none.
struct NumberMap<const CHUNKS: usize> {
    chunks: [AtomicPtr<Chunk>; CHUNKS],
}

impl<const CHUNKS: usize> NumberMap<CHUNKS> {
    const fn new() -> Self {
        NumberMap {
            chunks: [const { AtomicPtr::new(std::ptr::null_mut()) }; CHUNKS],
        }
    }

    #[inline]
    fn get(&self, at: u32) -> Option<u32> {
        let slot = self.chunks.get(at as usize / CHUNK)?;
        // Ordering: Acquire, pairs with the exchange in `chunk`: the chunk's zeroes are seen before
        // it is read.
        let chunk = slot.load(Ordering::Acquire);
        // SAFETY: the pointer is null or came from `Box::into_raw` in `chunk`, and chunks are never
        // freed.
        let chunk = unsafe { chunk.as_ref() }?;
        // Ordering: Acquire, pairs with the Release in `set`: whoever finds the number of an atom
        // finds the atom's text, which the other thread may just have added.
        chunk[at as usize % CHUNK]
            .load(Ordering::Acquire)
            .checked_sub(1)
    }

    /// Sets a value. Returns whether there was none.
    fn set(&self, at: u32, value: u32) -> bool {
        let Some(slot) = self.chunks.get(at as usize / CHUNK) else {
            return false;
        };
        // Ordering: Release, see `get`.
        Self::chunk(slot)[at as usize % CHUNK].swap(value + 1, Ordering::Release) == 0
    }

    fn chunk(slot: &AtomicPtr<Chunk>) -> &'static Chunk {
        // Ordering: Acquire, as in `get`.
        let mut chunk = slot.load(Ordering::Acquire);
        if chunk.is_null() {
            let fresh = Box::into_raw(Box::new([const { AtomicU32::new(0) }; CHUNK]));
            // Ordering: AcqRel; Release publishes the zeroes of a fresh chunk, Acquire is for the
            // chunk of whoever was quicker.
            match slot.compare_exchange(chunk, fresh, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => chunk = fresh,
                Err(other) => {
                    // SAFETY: `fresh` came from `Box::into_raw` above and was published nowhere.
                    drop(unsafe { Box::from_raw(fresh) });
                    chunk = other;
                }
            }
        }
        // SAFETY: not null, from `Box::into_raw`, never freed.
        unsafe { &*chunk }
    }
}

/// The engine's numbers, by the emulator's; up to 2³¹.
static TO_ENGINE: NumberMap<{ 1 << 17 }> = NumberMap::new();
/// The emulator's numbers, by the engine's; up to 2³².
static TO_HOST: NumberMap<{ 1 << 18 }> = NumberMap::new();
/// How many numbers are in `TO_HOST`.
static KNOWN: AtomicUsize = AtomicUsize::new(0);

/// The engine's atom of an atom's word.
#[inline]
pub fn from_word(env: *mut Env, word: Word) -> Atom {
    match TO_ENGINE
        .get(layout::atom_index(word))
        .and_then(Atom::from_id)
    {
        Some(atom) => atom,
        None => learn(env, word),
    }
}

/// The engine's number of an atom's word.
#[inline]
pub fn id_of(env: *mut Env, word: Word) -> u32 {
    match TO_ENGINE.get(layout::atom_index(word)) {
        Some(id) => id,
        None => learn(env, word).id(),
    }
}

#[cold]
fn learn(env: *mut Env, word: Word) -> Atom {
    let atom = Atom::new(&text(env, word));
    note(word, atom);
    atom
}

fn note(word: Word, atom: Atom) {
    TO_ENGINE.set(layout::atom_index(word), atom.id());
    if TO_HOST.set(atom.id(), layout::atom_index(word)) {
        // Ordering: Relaxed; a figure. Of two threads that record a pair, one finds it unset.
        KNOWN.fetch_add(1, Ordering::Relaxed);
    }
}

/// The text of an atom. Version 2.15 of the interface only has Latin-1 texts. All others are read
/// through the external format.
fn text(env: *mut Env, word: Word) -> String {
    let mut latin1 = [0u8; 256];
    // SAFETY: the buffer has the size given; `env` is the caller's.
    let written =
        unsafe { enif_get_atom(env, word, latin1.as_mut_ptr().cast::<c_char>(), 256, LATIN1) };
    // Each character takes one byte, and there is a zero byte at the end.
    if written > 0 {
        return latin1[..written as usize - 1]
            .iter()
            .map(|&b| char::from(b))
            .collect();
    }
    external_format(env, word, |etf| match etf {
        [131, 118, high, low, text @ ..] => utf8(text, usize::from(*high) << 8 | usize::from(*low)),
        [131, 119, length, text @ ..] => utf8(text, usize::from(*length)),
        _ => String::new(),
    })
}

fn utf8(text: &[u8], length: usize) -> String {
    String::from_utf8_lossy(&text[..length.min(text.len())]).into_owned()
}

/// The word of an engine's atom.
#[inline]
pub fn to_word(env: *mut Env, atom: Atom) -> Word {
    match TO_HOST.get(atom.id()) {
        Some(index) => layout::atom_word(index),
        None => make(env, atom),
    }
}

/// The emulator's number of an atom of the engine, by which newer releases order the keys of maps.
/// An atom that the emulator doesn't know, as in a file or in the external format, is made now: the
/// pairs of a map are sorted once, so the numbers of their keys must not change afterwards.
pub fn index(atom: Atom) -> u32 {
    TO_HOST.get(atom.id()).unwrap_or_else(|| introduce(atom))
}

/// The number of the engine's atoms that the emulator doesn't know yet, as those of a file of which
/// no object was read yet. It will have to make them. O(1).
pub fn unknown_count() -> usize {
    // Ordering: Relaxed; atoms may be added meanwhile in any case.
    Atom::count().saturating_sub(KNOWN.load(Ordering::Relaxed))
}

#[cold]
fn introduce(atom: Atom) -> u32 {
    // SAFETY: a fresh environment, which is ours alone and is freed once. The word of an atom
    // belongs to no environment.
    let word = unsafe {
        let env = enif_alloc_env();
        let word = make(env, atom);
        enif_free_env(env);
        word
    };
    layout::atom_index(word)
}

/// The word of the atom with this number of the engine's. There must be such an atom.
#[inline]
pub fn id_to_word(env: *mut Env, id: u32) -> Word {
    match TO_HOST.get(id) {
        Some(index) => layout::atom_word(index),
        None => make_by_id(env, id),
    }
}

/// As `id_to_word`, for an atom that isn't in the map yet.
#[cold]
#[inline(never)]
fn make_by_id(env: *mut Env, id: u32) -> Word {
    Atom::from_id(id).map_or(UNDEFINED.word(), |atom| make(env, atom))
}

#[cold]
fn make(env: *mut Env, atom: Atom) -> Word {
    let text = atom.text();
    let word = if text.is_ascii() {
        // SAFETY: the text has the length given, at most 255, and is Latin-1.
        unsafe { enif_make_atom_len(env, text.as_ptr().cast(), text.len()) }
    } else {
        // Other characters go through the external format: the official function takes Latin-1
        // only.
        let mut etf = vec![131, 118];
        etf.extend_from_slice(&(text.len() as u16).to_be_bytes());
        etf.extend_from_slice(text.as_bytes());
        from_external_format(env, &etf).unwrap_or(layout::NIL)
    };
    // Remember the pair. The next look-up is one load.
    if layout::is_atom(word) {
        note(word, atom);
    }
    word
}

/// Defines the atoms that the library itself uses, each with its word, which is made when the
/// library is loaded.
macro_rules! known {
    ($($name:ident $text:literal),* $(,)?) => {
        #[allow(non_camel_case_types, clippy::upper_case_acronyms, missing_docs)]
        // This is as wide as a word, so that results that contain it are passed in registers.
        #[repr(usize)]
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Known { $($name),* }
        const TEXTS: &[&str] = &[$($text),*];
        static WORDS: [std::sync::atomic::AtomicUsize; TEXTS.len()] = [const { std::sync::atomic::AtomicUsize::new(0) }; TEXTS.len()];
        $(#[doc = concat!("`", $text, "`")] pub const $name: Known = Known::$name;)*
    };
}

known! {
    TRUE "true", FALSE "false", UNDEFINED "undefined", NONE "none", END_OF_TABLE "$end_of_table", LARDER "larder", TRANSFER "ETS-TRANSFER",
    MORE "more", OK "ok", ERROR "error",
    ID "id", ACCESS "access", BADKEY "badkey", ITSELF "itself", KEYPOS "keypos", POSITION "position", TYPE "type", TABLE_TYPE "table_type", OWNER "owner",
    NOT_OWNER "not_owner", ALREADY_EXISTS "already_exists", DEFAULT "default", SYSTEM_LIMIT "system_limit", INTERNAL "larder_internal", FULL "full",
    SET "set", ORDERED_SET "ordered_set", BAG "bag", DUPLICATE_BAG "duplicate_bag", PUBLIC "public", PROTECTED "protected", PRIVATE "private",
    NAMED_TABLE "named_table", COMPRESSED "compressed", HEIR "heir", WRITE_CONCURRENCY "write_concurrency",
    READ_CONCURRENCY "read_concurrency", DECENTRALIZED_COUNTERS "decentralized_counters", STRUCTURE "structure", AUTO "auto",
    FORWARD "forward", BACKWARD "backward", MATCH "match", MATCH_OBJECT "match_object",
    NOT_LARDER "not_larder", NEWER_VERSION "newer_version", CUT_SHORT "cut_short", DAMAGED "damaged", COUNT "count", IO "io",
    ENOENT "enoent", EACCES "eacces", EEXIST "eexist", EIO "eio", ENOSPC "enospc", EFBIG "efbig", EISDIR "eisdir", ENOTDIR "enotdir", EROFS "erofs", ENAMETOOLONG "enametoolong", EDQUOT "edquot",
    EPERM "eperm", EMFILE "emfile", ENFILE "enfile", ELOOP "eloop", EINVAL "einval", ENXIO "enxio", ENODEV "enodev", ENOMEM "enomem", EBUSY "ebusy", ETXTBSY "etxtbsy", ESTALE "estale",
    PROTECTION "protection",
    WAIT "wait", LOST "lost", VIEW "view", OWN "own",
    CHECK "check", INSERT_NEW "insert_new", DELETE_OBJECT "delete_object",
    UPDATE_COUNTER "update_counter", UPDATE_ELEMENT "update_element",
    ALL "all", WAKE "larder_wake", SOME "some", NOTHING "nothing", WAITS "waits", OVER "over",
    CLEAR "clear", OVERFLOW "overflow", GONE "gone",
    SIZE "size", MEMORY "memory", NAME "name", FIXED "fixed", SAFE_FIXED "safe_fixed", STATS "stats",
    READ_ONLY "read_only", NOT_SNAPSHOT "not_snapshot", IS_SNAPSHOT "is_snapshot", OTHER_TABLE "other_table",
    UNRANKED "unranked",
    SNAPSHOT "snapshot", SNAPSHOTS "snapshots", SNAPSHOT_MEMORY "snapshot_memory",
    INSERT "insert", REPLACE "replace", DELETE "delete", EXPIRE "expire",
    TTL "ttl", IDLE "idle", BOUNDS "bounds", INFINITY "infinity", UNBOUNDED "unbounded",
    MAX_SIZE "max_size", MAX_MEMORY "max_memory", EVICT "evict", LRU "lru", TINYLFU "tinylfu", SIEVE "sieve", UNLIMITED "unlimited",
    INDEX "index", INDEXES "indexes", UNIQUE "unique", EACH "each", ORDERED "ordered",
    KEY "key", RANGE "range", SCAN "scan", UNKNOWN "unknown",
    NOT_UNIQUE "not_unique", NO_INDEX "no_index",
    BADMAP "badmap", BAD_MAP_KEY "badmapkey",
}

impl Known {
    /// The atom's word.
    #[inline]
    pub fn word(self) -> Word {
        // Ordering: Relaxed; written at load, before any other function of the library can run.
        WORDS[self as usize].load(Ordering::Relaxed)
    }
}

/// Makes the known atoms.
pub fn load(env: *mut Env) {
    for (text, word) in TEXTS.iter().zip(&WORDS) {
        // Ordering: Relaxed, see `Known::word`.
        word.store(to_word(env, Atom::new(text)), Ordering::Relaxed);
    }
}
