//! The external term format, which every release reads and writes. Terms whose layout wasn't
//! verified are converted through it.

use super::*;
use smallvec::SmallVec;

/// Calls `f` with a term's external format.
pub fn external_format<R>(env: *mut Env, word: Word, f: impl FnOnce(&[u8]) -> R) -> R {
    let mut binary = Binary::empty();
    // SAFETY: `env` and the term are the running call's; the binary is filled in or left empty.
    let made = unsafe { enif_term_to_binary(env, word, &mut binary) };
    if made == 0 || binary.data.is_null() {
        return f(&[]);
    }
    // SAFETY: the call above filled in the binary, which lives until it is released below.
    let result = f(unsafe { std::slice::from_raw_parts(binary.data, binary.size) });
    // SAFETY: made above, released once.
    unsafe { enif_release_binary(&mut binary) };
    result
}

/// Makes a term of its external format.
pub fn from_external_format(env: *mut Env, etf: &[u8]) -> Option<Word> {
    let mut word = 0;
    // SAFETY: the bytes and their length belong together; `env` is the running call's.
    let read = unsafe { enif_binary_to_term(env, etf.as_ptr(), etf.len(), &mut word, 0) };
    (read != 0).then_some(word)
}

/// The numbers of a reference.
pub type ReferenceNumbers = SmallVec<[u32; 5]>;

/// Reads a big-endian number of four bytes.
pub fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let word = bytes.get(at..at + 4)?;
    Some(u32::from_be_bytes([word[0], word[1], word[2], word[3]]))
}

/// Reads an atom of the external format. Returns its text and the offset after it.
pub fn atom_at(etf: &[u8], at: usize) -> Option<(String, usize)> {
    // The length has two bytes in some formats and one in others. Both are read, and the tag
    // chooses.
    let wide = usize::from(*etf.get(at + 1)?) << 8 | usize::from(*etf.get(at + 2)?);
    let narrow = usize::from(*etf.get(at + 1)?);
    let (start, length, latin1) = match etf.get(at)? {
        // ATOM_EXT, SMALL_ATOM_EXT, ATOM_UTF8_EXT, SMALL_ATOM_UTF8_EXT.
        100 => (at + 3, wide, true),
        115 => (at + 2, narrow, true),
        118 => (at + 3, wide, false),
        119 => (at + 2, narrow, false),
        _ => return None,
    };
    let bytes = etf.get(start..start + length)?;
    let text = if latin1 {
        bytes.iter().map(|&b| char::from(b)).collect()
    } else {
        String::from_utf8_lossy(bytes).into_owned()
    };
    Some((text, start + length))
}

/// Reads a reference: the name and the creation of its node, and its numbers.
pub fn parse_reference(etf: &[u8]) -> Option<(String, u32, ReferenceNumbers)> {
    // The tag of references with numbers of 32 bits.
    if etf.get(1) != Some(&90) {
        return None;
    }
    let count = usize::from(etf[2]) << 8 | usize::from(etf[3]);
    let (text, at) = atom_at(etf, 4)?;
    let creation = u32_at(etf, at)?;
    let words: Option<ReferenceNumbers> = (0..count).map(|i| u32_at(etf, at + 4 + 4 * i)).collect();
    Some((text, creation, words?))
}
