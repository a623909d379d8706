//! Atoms: interned texts of the whole process. They are never removed.

use crate::interner::Interner;
use std::{fmt, sync::LazyLock};

/// An interned text. Two atoms are equal if their texts are. `Ord` is Erlang's order, by the text.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Atom(u32);

/// The reason why a text can't be an atom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtomError {
    /// The text has more than 255 characters.
    TooLong,
    /// All four billion ids are in use.
    Full,
}

impl fmt::Display for AtomError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AtomError::TooLong => "an atom has at most 255 characters",
            AtomError::Full => "there are too many atoms",
        })
    }
}

impl std::error::Error for AtomError {}

/// The greatest number of characters of an atom.
pub const MAX_CHARS: usize = 255;

static INTERNER: LazyLock<Interner> = LazyLock::new(|| Interner::new(atoms::TEXTS));

impl Atom {
    /// The atom with this text.
    ///
    /// # Panics
    /// Panics if the text can't be an atom. For texts that the program doesn't choose, use
    /// [`Atom::try_new`].
    pub fn new(text: &str) -> Atom {
        Atom::try_new(text).expect("text of an atom")
    }

    /// The atom with this text, or the reason why it can't be one.
    ///
    /// # Errors
    /// [`AtomError::TooLong`] if the text has more than 255 characters. [`AtomError::Full`] if all
    /// ids are in use.
    pub fn try_new(text: &str) -> Result<Atom, AtomError> {
        // A character has at least one byte. So characters are only counted in a text of more bytes
        // than that.
        if text.len() > MAX_CHARS && text.chars().count() > MAX_CHARS {
            return Err(AtomError::TooLong);
        }
        INTERNER.find_or_add(text).map(Atom).ok_or(AtomError::Full)
    }

    /// The atom with this text, if there is one already. Adds none.
    pub fn existing(text: &str) -> Option<Atom> {
        INTERNER.find(text).map(Atom)
    }

    /// The text.
    #[inline]
    // An invalid id has no text; see `trusted`.
    pub fn text(self) -> &'static str {
        INTERNER.text(self.0).unwrap_or("")
    }

    /// The id of the atom. It stays the same until the process ends, but not longer.
    #[inline]
    pub const fn id(self) -> u32 {
        self.0
    }

    /// The atom with this id, if there is one.
    #[inline]
    pub fn from_id(id: u32) -> Option<Atom> {
        INTERNER.text(id).map(|_| Atom(id))
    }

    /// The atom with an id that is known to be valid, as ids in encoded bytes are. If it isn't, the
    /// atom's text is empty.
    #[inline]
    pub const fn trusted(id: u32) -> Atom {
        Atom(id)
    }

    /// The number of atoms.
    pub fn count() -> usize {
        INTERNER.count() as usize
    }
}

impl From<bool> for Atom {
    #[inline]
    fn from(value: bool) -> Atom {
        if value {
            atoms::TRUE
        } else {
            atoms::FALSE
        }
    }
}

impl PartialOrd for Atom {
    fn partial_cmp(&self, other: &Atom) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Atom {
    fn cmp(&self, other: &Atom) -> std::cmp::Ordering {
        if self.0 == other.0 {
            return std::cmp::Ordering::Equal;
        }
        self.text().cmp(other.text())
    }
}

impl fmt::Display for Atom {
    /// The atom as Erlang prints it, in quotes if necessary.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        crate::text::write_atom(f, self.text())
    }
}

impl fmt::Debug for Atom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}#{}", self.0)
    }
}

/// Atoms that every process has, with ids that are known at compile time.
pub mod atoms {
    use super::Atom;

    macro_rules! atoms {
        ($($index:literal $name:ident $text:literal),* $(,)?) => {
            $(#[doc = concat!("`", $text, "`")] pub const $name: Atom = Atom($index);)*
            pub(super) const TEXTS: &[&str] = &[$($text),*];
        };
    }

    atoms! {
        0 FALSE "false", 1 TRUE "true", 2 UNDEFINED "undefined", 3 OK "ok", 4 ERROR "error", 5 NIL "nil",
        6 EXIT "EXIT", 7 UNDERSCORE "_", 8 DOLLAR_UNDERSCORE "$_", 9 DOLLAR_DOLLAR "$$", 10 END_OF_TABLE "$end_of_table",
        11 NONODE "nonode@nohost", 12 EMPTY "", 13 NONE "none", 14 INFINITY "infinity", 15 CONST "const",
        16 ELEMENT "element", 17 AND "and", 18 OR "or", 19 NOT "not", 20 XOR "xor", 21 ANDALSO "andalso", 22 ORELSE "orelse",
        23 EQ "==", 24 EXACT_EQ "=:=", 25 NE "/=", 26 EXACT_NE "=/=", 27 LT "<", 28 LE "=<", 29 GT ">", 30 GE ">=",
        31 PLUS "+", 32 MINUS "-", 33 TIMES "*", 34 SLASH "/", 35 DIV "div", 36 REM "rem", 37 BAND "band", 38 BOR "bor",
        39 BXOR "bxor", 40 BNOT "bnot", 41 BSL "bsl", 42 BSR "bsr", 43 BADARG "badarg", 44 BADARITH "badarith",
        45 V1 "$1", 46 V2 "$2", 47 V3 "$3", 48 V4 "$4", 49 V5 "$5", 50 BIND "bind",
    }

    #[cfg(test)]
    mod tests {
        #[test]
        fn constants_have_their_texts() {
            for (id, text) in super::TEXTS.iter().enumerate() {
                assert_eq!(super::Atom::new(text).id() as usize, id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_text_one_id_in_all_threads() {
        let ids = |_| {
            std::thread::spawn(|| {
                (0..500)
                    .map(|i| Atom::new(&format!("thread_{i}")).id())
                    .collect::<Vec<_>>()
            })
        };
        let threads: Vec<_> = (0..4).map(ids).collect();
        let all: Vec<_> = threads.into_iter().map(|t| t.join().unwrap()).collect();
        assert!(all.windows(2).all(|w| w[0] == w[1]));
        let again = Atom::new("thread_7");
        assert_eq!(Atom::from_id(again.id()), Some(again));
        assert_eq!(again.text(), "thread_7");
    }

    #[test]
    fn long_texts_are_refused_by_characters() {
        assert!(Atom::try_new(&"é".repeat(255)).is_ok());
        assert_eq!(Atom::try_new(&"e".repeat(256)), Err(AtomError::TooLong));
        assert_eq!(Atom::from_id(u32::MAX), None);
        assert_eq!(Atom::existing("no such atom, surely"), None);
    }
}
