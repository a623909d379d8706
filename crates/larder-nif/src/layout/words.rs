//! Words: what the bits of a term say without access to memory; and lists and tuples, the two kinds
//! of terms that have no rare form.
//!
//! ```text
//!  ......value......  1111   small integer (60 bits)
//!  ......index....  00 1011  atom
//!  ....address....      01   list cell
//!  ....address....      10   boxed: anything else that lies on a heap, a header first
//!  .......pid.....    0011   local pid; the rest says id and serial, in a way that depends on
//!                            the emulator's settings
//!  ......port.....    0111   local port, likewise
//!               00 111011    []
//!
//!  cell     head, tail                        tuple    arity << 6, elements…
//! ```
//!
//! This layout hasn't changed since R13. The library refuses to load if [`prove_words`] finds
//! another one. So no other function checks whether it is known.

use crate::sys::*;

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

/// Whether the word is a complete term, and not a pointer.
#[inline]
pub fn is_immediate(word: Word) -> bool {
    word & 3 == 3
}

/// The bits of a header that identify the kind of the term.
pub const HEADER: Word = 0x3F;

/// The address of a term on a heap. All three low bits are tags: some emulators mark literals with
/// the third.
#[inline]
pub fn pointer(word: Word) -> *const Word {
    (word & !7) as *const Word
}

/// The term at this address, which begins with its header.
#[inline]
pub fn boxed(address: *const Word) -> Word {
    address as Word | 2
}

/// The list whose first cell is at this address.
#[inline]
pub fn cell_word(address: *const Word) -> Word {
    address as Word | 1
}

/// The header of a tuple.
#[inline]
pub fn arity_header(arity: usize) -> Word {
    arity << 6
}

/// The elements of a tuple. They live as long as the term. `None` for any other term.
#[inline]
pub fn tuple<'a>(word: Word) -> Option<&'a [Word]> {
    if !is_boxed(word) {
        return None;
    }
    // SAFETY:
    // 1. A boxed term of the running call points at its header.
    // 2. The elements of a tuple follow its header. The header says how many there are.
    //    `prove_words` has verified this layout.
    unsafe {
        let header = *pointer(word);
        let elements = || std::slice::from_raw_parts(pointer(word).add(1), header >> 6);
        (header & HEADER == 0).then(elements)
    }
}

/// The head and the tail of a list that isn't empty. `None` for any other term.
#[inline]
pub fn cell(word: Word) -> Option<(Word, Word)> {
    // SAFETY: a list cell of the running call is two adjacent words, the head and the tail.
    // `prove_words` has verified this layout.
    is_cell(word).then(|| unsafe { (*pointer(word), *pointer(word).add(1)) })
}

/// The elements of a list, as far as it has cells. `rest` is what follows them: `[]` at the end of
/// a proper list.
pub struct Elements {
    pub rest: Word,
}

/// The elements of a list; none of any other term.
#[inline]
pub fn elements(list: Word) -> Elements {
    Elements { rest: list }
}

impl Iterator for Elements {
    type Item = Word;

    #[inline]
    fn next(&mut self) -> Option<Word> {
        let (head, tail) = cell(self.rest)?;
        self.rest = tail;
        Some(head)
    }
}

/// Whether the word points at a list cell.
#[inline]
pub fn is_cell(word: Word) -> bool {
    word & 3 == 1
}

/// Whether the word points at any term but a list cell.
#[inline]
pub fn is_boxed(word: Word) -> bool {
    word & 3 == 2
}

/// The value, if the word is a small integer.
#[inline]
pub fn small(word: Word) -> Option<i64> {
    (word & 0xF == 0xF).then_some(word as i64 >> 4)
}

/// The word of an integer, if it is a small one.
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

/// Whether the word is a port of this node.
#[inline]
pub fn is_local_port(word: Word) -> bool {
    word & 0xF == PORT
}

/// The low bits of a local port's word.
const PORT: Word = 0x7;

/// Verifies the layout of words on the running emulator. An error says what differs.
pub fn prove_words(env: *mut Env) -> Result<(), &'static str> {
    check_integers(env)?;
    check_atoms(env)?;
    // SAFETY: `env` is the environment of the running load callback.
    let empty = unsafe { enif_make_list_from_array(env, std::ptr::null(), 0) };
    if empty != NIL {
        return Err("the empty list is another word than expected");
    }
    check_pointers(env)
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

fn check_pointers(env: *mut Env) -> Result<(), &'static str> {
    // Samples of all kinds of pointers, made by the emulator.
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
    // Read the cell and the tuple back, and build their words again from the pointers.
    let cells = self::cell(cell) == Some((NIL, NIL));
    let back = boxed(pointer(tuple)) == tuple && cell_word(pointer(cell)) == cell;
    if !cells || !back || self::tuple(tuple) != Some(&[NIL]) {
        return Err("lists and tuples have another layout than expected");
    }
    Ok(())
}
