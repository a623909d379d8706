//! Conversions between terms and the types of Rust's standard library.
//!
//! | Rust | term |
//! |---|---|
//! | integers of all sizes, `char` | an integer |
//! | `f64`, `f32` | a float; only finite ones are terms, so this is a `TryFrom` |
//! | `bool` | `true`, `false` |
//! | texts: `&str`, `String`, `Box<str>`, `Cow<str>` | a binary |
//! | bytes: `&[u8]`, `&[u8; N]`, `Vec<u8>`, `Box<[u8]>`, `Cow<[u8]>` | a binary |
//! | `Vec<Term>`, `&[Term]`, `[Term; N]` | a list |
//! | tuples of up to twelve elements, `()` | a tuple |
//!
//! A term is converted back by `TryFrom`, from a [`TermRef`], a [`Term`] or a reference to one: to
//! integers, `f64`, `bool`, `char`, `Atom`, `&str`, `String`, `Box<str>`, `&[u8]`, `Vec<u8>`,
//! `Vec<Term>` and tuples. A [`HashMap`] and a [`BTreeMap`] can be made of a map; [`Term::map`]
//! makes the term. Text must be UTF-8. A float is also made of an integer of 64 bits that it can
//! hold exactly.
//!
//! `Option` has no conversion, because programs say in different ways that there is nothing
//! (`undefined`, `nil`, `none`, a shorter tuple).
//!
//! ```
//! use larder_term::{term, Term, TryFromTermError};
//!
//! let row = Term::from((17, "Ann", vec![term!(admin), term!(staff)]));
//! assert_eq!(row, term!({17, "Ann", [admin, staff]}));
//!
//! let (id, name, roles): (u32, String, Vec<Term>) = row.try_into()?;
//! assert_eq!((id, &name[..], roles.len()), (17, "Ann", 2));
//!
//! let error = u8::try_from(term!(300)).unwrap_err();
//! assert_eq!(error.to_string(), "300 is not an integer from 0 to 255");
//! # Ok::<(), TryFromTermError>(())
//! ```

use crate::{
    atom::Atom,
    term::{NotFinite, Term},
    text::beginning,
    view::{TermRef, View},
};
use num_bigint::BigInt;
use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
    fmt,
    hash::{BuildHasher, Hash},
    str,
};

/// The error that a term isn't what was asked for. Its text says what the term is, and what was
/// expected. Of a tuple or a map, it names the element, key or value that doesn't fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TryFromTermError {
    /// The beginning of the term's text.
    found: Box<str>,
    expected: Cow<'static, str>,
}

impl fmt::Display for TryFromTermError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not {}", self.found, self.expected)
    }
}

impl std::error::Error for TryFromTermError {}

impl TryFromTermError {
    #[cold]
    fn new(term: TermRef<'_>, expected: impl Into<Cow<'static, str>>) -> Self {
        /// The greatest number of characters that are shown of a term, which may be large.
        const MOST: usize = 80;
        TryFromTermError {
            found: beginning(term, MOST).into(),
            expected: expected.into(),
        }
    }
}

impl From<TermRef<'_>> for Term {
    fn from(term: TermRef<'_>) -> Term {
        // The bytes are copied, and the handles in them are counted once more.
        Term::of(|enc| enc.term(term))
    }
}

impl From<Atom> for Term {
    fn from(atom: Atom) -> Term {
        // An atom is encoded by its id.
        Term::of(|enc| enc.atom(atom))
    }
}

impl From<bool> for Term {
    fn from(value: bool) -> Term {
        Term::from(Atom::from(value))
    }
}

impl From<char> for Term {
    /// The code point.
    fn from(c: char) -> Term {
        Term::from(u32::from(c))
    }
}

macro_rules! from_small_integers {
    ($($type:ty)*) => {
        $(impl From<$type> for Term {
            fn from(n: $type) -> Term {
                Term::int(i64::from(n))
            }
        })*
    };
}

macro_rules! from_large_integers {
    ($($type:ty)*) => {
        $(impl From<$type> for Term {
            fn from(n: $type) -> Term {
                // Most values fit into an `i64`, which needs no allocation.
                match i64::try_from(n) {
                    Ok(n) => Term::int(n),
                    Err(_) => Term::bigint(&BigInt::from(n)),
                }
            }
        })*
    };
}

from_small_integers!(i8 i16 i32 i64 u8 u16 u32);
from_large_integers!(isize usize u64 i128 u128);

impl TryFrom<f64> for Term {
    type Error = NotFinite;

    fn try_from(x: f64) -> Result<Term, NotFinite> {
        Term::float(x)
    }
}

impl TryFrom<f32> for Term {
    type Error = NotFinite;

    fn try_from(x: f32) -> Result<Term, NotFinite> {
        Term::float(f64::from(x))
    }
}

/// Types that are converted to a binary, each with the expression for its bytes.
macro_rules! from_bytes {
    ($($type:ty, $bytes:ident;)*) => {
        $(impl From<$type> for Term {
            /// A binary; a text in UTF-8, like a string in Elixir. For atoms, see [`Term::atom`].
            fn from(bytes: $type) -> Term {
                Term::binary(bytes.$bytes())
            }
        })*
    };
}

from_bytes! {
    &str, as_bytes;
    String, as_bytes;
    &String, as_bytes;
    Box<str>, as_bytes;
    Cow<'_, str>, as_bytes;
    &[u8], as_ref;
    Vec<u8>, as_slice;
    &Vec<u8>, as_slice;
    Box<[u8]>, as_ref;
    Cow<'_, [u8]>, as_ref;
}

impl<const N: usize> From<&[u8; N]> for Term {
    /// A binary.
    fn from(bytes: &[u8; N]) -> Term {
        Term::binary(bytes)
    }
}

impl From<&[Term]> for Term {
    fn from(elements: &[Term]) -> Term {
        Term::list(elements)
    }
}

impl From<Vec<Term>> for Term {
    fn from(elements: Vec<Term>) -> Term {
        Term::list(elements)
    }
}

impl<const N: usize> From<[Term; N]> for Term {
    fn from(elements: [Term; N]) -> Term {
        Term::list(elements)
    }
}

impl From<()> for Term {
    fn from((): ()) -> Term {
        Term::tuple::<Term>([])
    }
}

/// Converts also from an owned term and from a reference to one what converts from a [`TermRef`].
macro_rules! try_from_term {
    ($($type:ty;)*) => {
        $(impl TryFrom<Term> for $type {
            type Error = TryFromTermError;

            fn try_from(term: Term) -> Result<Self, TryFromTermError> {
                Self::try_from(term.as_ref())
            }
        }

        impl TryFrom<&Term> for $type {
            type Error = TryFromTermError;

            fn try_from(term: &Term) -> Result<Self, TryFromTermError> {
                Self::try_from(term.as_ref())
            }
        })*
    };
}

/// As `try_from_term`, for types with parameters that are converted, too.
macro_rules! try_from_term_of {
    ($type:ty, [$($part:ident $({$($bound:tt)*})?),*] $($other:ident: $other_bound:path)?) => {
        impl<$($part,)* $($other)?> TryFrom<Term> for $type
        where
            $($part: for<'a> TryFrom<TermRef<'a>, Error = TryFromTermError> $(+ $($bound)*)?,)*
            $($other: $other_bound + Default,)?
        {
            type Error = TryFromTermError;

            fn try_from(term: Term) -> Result<Self, TryFromTermError> {
                Self::try_from(term.as_ref())
            }
        }

        impl<'a, $($part,)* $($other)?> TryFrom<&'a Term> for $type
        where
            $($part: TryFrom<TermRef<'a>, Error = TryFromTermError> $(+ $($bound)*)?,)*
            $($other: $other_bound + Default,)?
        {
            type Error = TryFromTermError;

            fn try_from(term: &'a Term) -> Result<Self, TryFromTermError> {
                Self::try_from(term.as_ref())
            }
        }
    };
}

macro_rules! try_into_integers {
    ($($type:ty)*) => {
        $(impl TryFrom<TermRef<'_>> for $type {
            type Error = TryFromTermError;

            fn try_from(term: TermRef<'_>) -> Result<$type, TryFromTermError> {
                // The integer decides whether the type can hold it.
                let found = match term.view() {
                    View::Int(n) => <$type>::try_from(n).ok(),
                    View::Big(n) => <$type>::try_from(n.to_bigint()).ok(),
                    _ => None,
                };
                found.ok_or_else(|| {
                    // The error names the range, since it depends on the type.
                    let (least, most) = (<$type>::MIN, <$type>::MAX);
                    TryFromTermError::new(term, format!("an integer from {least} to {most}"))
                })
            }
        })*
        try_from_term!($($type;)*);
    };
}

try_into_integers!(i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize);

/// Implements a conversion from a [`TermRef`] that may fail: what is expected, and the function.
macro_rules! try_into {
    ($($type:ty, $expected:literal, $convert:expr;)*) => {
        $(impl TryFrom<TermRef<'_>> for $type {
            type Error = TryFromTermError;

            fn try_from(term: TermRef<'_>) -> Result<$type, TryFromTermError> {
                // A function pointer tells the closure its types.
                let convert: fn(TermRef<'_>) -> Option<$type> = $convert;
                convert(term).ok_or_else(|| TryFromTermError::new(term, $expected))
            }
        })*
        try_from_term!($($type;)*);
    };
}

try_into! {
    f64, "a float, or an integer of 64 bits that a float can hold", float;
    bool, "true or false", |term| [false, true].into_iter().find(|&b| term.as_atom() == Some(b.into()));
    char, "a Unicode code point", |term| char::from_u32(u32::try_from(term.as_int()?).ok()?);
    Atom, "an atom", |term| term.as_atom();
    String, "a binary of UTF-8", |term| text(term).map(String::from);
    Box<str>, "a binary of UTF-8", |term| text(term).map(Box::from);
    Vec<u8>, "a binary", |term| term.as_binary().map(Vec::from);
    Vec<Term>, "a proper list", |term| Some(term.as_list()?.map(Term::from).collect());
    (), "{}", |term| (term.as_tuple()?.arity() == 0).then_some(());
}

impl<'a> TryFrom<TermRef<'a>> for &'a str {
    type Error = TryFromTermError;

    fn try_from(term: TermRef<'a>) -> Result<&'a str, TryFromTermError> {
        text(term).ok_or_else(|| TryFromTermError::new(term, "a binary of UTF-8"))
    }
}

impl<'a> TryFrom<TermRef<'a>> for &'a [u8] {
    type Error = TryFromTermError;

    fn try_from(term: TermRef<'a>) -> Result<&'a [u8], TryFromTermError> {
        let bytes = term.as_binary();
        bytes.ok_or_else(|| TryFromTermError::new(term, "a binary"))
    }
}

impl<'a> TryFrom<&'a Term> for &'a str {
    type Error = TryFromTermError;

    fn try_from(term: &'a Term) -> Result<&'a str, TryFromTermError> {
        <&str>::try_from(term.as_ref())
    }
}

impl<'a> TryFrom<&'a Term> for &'a [u8] {
    type Error = TryFromTermError;

    fn try_from(term: &'a Term) -> Result<&'a [u8], TryFromTermError> {
        <&[u8]>::try_from(term.as_ref())
    }
}

fn text(term: TermRef<'_>) -> Option<&str> {
    str::from_utf8(term.as_binary()?).ok()
}

/// A float, or an integer that is one exactly.
fn float(term: TermRef<'_>) -> Option<f64> {
    // The conversion to a float may round. The way back shows whether it did. It is to `i128`,
    // since a rounded float may be beyond `i64`.
    let exact = |n: i64| Some(n as f64).filter(|&x| x as i128 == i128::from(n));
    term.as_float().or_else(|| exact(term.as_int()?))
}

/// The pairs of a map, converted.
fn pairs<'a, K, V, M>(term: TermRef<'a>) -> Result<M, TryFromTermError>
where
    K: TryFrom<TermRef<'a>, Error = TryFromTermError>,
    V: TryFrom<TermRef<'a>, Error = TryFromTermError>,
    M: FromIterator<(K, V)>,
{
    let View::Map(map) = term.view() else {
        return Err(TryFromTermError::new(term, "a map"));
    };
    // The first pair that can't be converted ends the walk.
    let pair = |(key, value)| Ok((K::try_from(key)?, V::try_from(value)?));
    map.iter().map(pair).collect()
}

impl<'a, K, V, S> TryFrom<TermRef<'a>> for HashMap<K, V, S>
where
    K: TryFrom<TermRef<'a>, Error = TryFromTermError> + Hash + Eq,
    V: TryFrom<TermRef<'a>, Error = TryFromTermError>,
    S: BuildHasher + Default,
{
    type Error = TryFromTermError;

    fn try_from(term: TermRef<'a>) -> Result<Self, TryFromTermError> {
        pairs(term)
    }
}

impl<'a, K, V> TryFrom<TermRef<'a>> for BTreeMap<K, V>
where
    K: TryFrom<TermRef<'a>, Error = TryFromTermError> + Ord,
    V: TryFrom<TermRef<'a>, Error = TryFromTermError>,
{
    type Error = TryFromTermError;

    fn try_from(term: TermRef<'a>) -> Result<Self, TryFromTermError> {
        pairs(term)
    }
}

try_from_term_of!(HashMap<K, V, S>, [K {Hash + Eq}, V] S: BuildHasher);
try_from_term_of!(BTreeMap<K, V>, [K {Ord}, V]);

/// Tuples: their elements, and how many there are.
macro_rules! tuples {
    ($($n:literal: $($type:ident)*;)*) => {
        $(impl<$($type: Into<Term>),*> From<($($type,)*)> for Term {
            fn from(tuple: ($($type,)*)) -> Term {
                #[allow(non_snake_case, reason = "an element has the name of its type")]
                let ($($type,)*) = tuple;
                Term::tuple::<Term>([$($type.into()),*])
            }
        }

        impl<'a, $($type),*> TryFrom<TermRef<'a>> for ($($type,)*)
        where
            $($type: TryFrom<TermRef<'a>, Error = TryFromTermError>,)*
        {
            type Error = TryFromTermError;

            fn try_from(term: TermRef<'a>) -> Result<Self, TryFromTermError> {
                let tuple = term.as_tuple().filter(|tuple| tuple.arity() == $n);
                let Some(mut elements) = tuple.map(|tuple| tuple.iter()) else {
                    let expected = concat!("a tuple of arity ", $n);
                    return Err(TryFromTermError::new(term, expected));
                };
                // The arity was checked, so there is an element for each type.
                let mut next = || elements.next().unwrap_or(term);
                Ok(($($type::try_from(next())?,)*))
            }
        }

        try_from_term_of!(($($type,)*), [$($type),*]);
        )*
    };
}

tuples! {
    1: A;
    2: A B;
    3: A B C;
    4: A B C D;
    5: A B C D E;
    6: A B C D E F;
    7: A B C D E F G;
    8: A B C D E F G H;
    9: A B C D E F G H I;
    10: A B C D E F G H I J;
    11: A B C D E F G H I J K;
    12: A B C D E F G H I J K L;
}
