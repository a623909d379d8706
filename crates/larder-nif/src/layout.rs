//! What this crate knows about the bits of a term, and the proof, made at load, that the running emulator agrees.
//!
//! The official functions answer everything, at a few nanoseconds a call. Small integers, atoms, pids and list ends are so common that
//! looking at the word pays:
//!
//! ```text
//!  ......value......  1111   small integer (60 bits)
//!  ......index....  00 1011  atom
//!  ....address....      01   list cell
//!  ....address....      10   anything else that lies on a heap
//!  .......pid.....    0011   local pid; the rest says id and serial, in a way that depends on the emulator's settings
//!               00 111011    []
//! ```
//!
//! Small integers, atoms and `[]` have looked like this since R13; [`check`] refuses to load if they do not. For pids a formula is
//! looked for with pids that are made for the purpose; if none fits, pids go through the external format, which is slower and right.

use crate::sys::*;
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

/// How a local pid's word holds its id and serial.
pub struct Pids {
    /// The bits of the id, in the lowest part of the pid's data.
    id_bits: u32,
    /// The bits of the serial, above.
    serial_bits: u32,
    /// What each bit of id and serial adds to the word of the pid with neither.
    zero: Word,
    bits: [Word; 64],
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
        let mut left = u64::from(serial) << 32 | u64::from(id);
        let mut word = self.zero;
        while left != 0 {
            word ^= self.bits[left.trailing_zeros() as usize];
            left &= left - 1;
        }
        Some(word)
    }

    /// Looks for the formula. `make` gives the word of the local pid with an id and serial, through the external format.
    fn find(make: &dyn Fn(u32, u32) -> Option<Word>) -> Option<Pids> {
        let zero = make(0, 0)?;
        [(15, 13), (28, 32), (28, 13)]
            .into_iter()
            .filter_map(|(id_bits, serial_bits)| Pids::with(zero, id_bits, serial_bits, make))
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
        Some(Pids {
            id_bits,
            serial_bits,
            zero,
            bits,
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
        Pids::find(&|id, serial| crate::identifiers::make_local_pid(env, id, serial))
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
    let boxed = [bytes, tuple, float, map];
    let fits = is_cell(cell)
        && !is_boxed(cell)
        && boxed.iter().all(|&word| is_boxed(word) && !is_cell(word));
    fits.then_some(())
        .ok_or("lists and boxed terms are other words than expected")
}

fn check_atoms(env: *mut Env) -> Result<(), &'static str> {
    for text in [
        "true",
        "larder",
        "larder_nif",
        "a_text_that_hardly_any_program_has",
    ] {
        // SAFETY: `env` is the environment of the running load callback, and the text has the length given.
        let word = unsafe { enif_make_atom_len(env, text.as_ptr().cast(), text.len()) };
        if !is_atom(word) || atom_word(atom_index(word)) != word {
            return Err("atoms are other words than expected");
        }
    }
    Ok(())
}
