//! Typed keys: types whose values are terms that Erlang orders as Rust orders the values.
//!
//! | type | term |
//! |---|---|
//! | integers, `char` | an integer |
//! | `f32`, `f64` | a float; not NaN and not infinite; −0.0 is the key 0.0 |
//! | `bool` | `false`, `true` |
//! | `String`, `str`, `Vec<u8>`, `[u8]`, `[u8; N]` | a binary |
//! | `Vec<T>`, `[T]` | a list |
//! | tuples, `[T; N]` | a tuple |
//! | `Option<T>` | `{}`, `{T}` |
//! | structs that derive | the field, of one with a single one and no name for it; else a tuple |
//! | enums that derive | the variant's number, from 0; with fields `{Number, {Fields}}` |
//!
//! An ordered_set keeps keys in the order of terms, so that is the order of the type's values.

use crate::error::Error;
use larder_term::{utf8, BigRef, Encoder, TermRef, View};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;

/// A type whose values can be looked up in a typed table: an [`OrderedKey`], or a type that one can
/// be borrowed as, such as `str`.
///
/// Both traits are derived by `#[derive(OrderedKey)]`, for structs and enums whose fields are keys.
/// Other implementations must satisfy the requirements of [`OrderedKey`].
pub trait EncodeKey {
    /// How the values of the type are written, as far as they are lists of others.
    #[doc(hidden)]
    const SHAPE: Shape = Shape::Other;

    /// Writes the key as one term.
    ///
    /// # Errors
    /// [`Error::WrongType`] for a value that is an invalid key, such as NaN; see [`bad_key`].
    fn encode_key(&self, out: &mut Encoder<'_>) -> Result<(), Error>;

    /// The simple form of the key, if it has one. Its index key is then made in registers.
    #[doc(hidden)]
    #[inline]
    fn leaf(&self) -> Leaf<'_> {
        Leaf::Other
    }

    /// The bytes of a slice, if the values are bytes.
    #[doc(hidden)]
    #[inline]
    fn bytes_of(_values: &[Self]) -> Option<&[u8]>
    where
        Self: Sized,
    {
        None
    }
}

/// The type of a typed table's keys.
///
/// ```
/// use larder::prelude::*;
///
/// #[derive(OrderedKey, Debug, PartialEq, PartialOrd)]
/// struct Seat {
///     row: u16,
///     number: u16,
/// }
///
/// # fn main() -> Result<(), larder::Error> {
/// let seats = Larder::new().typed::<Seat, String>("seats")?;
/// seats.insert(Seat { row: 2, number: 1 }, "Ann".into())?;
/// seats.insert(Seat { row: 1, number: 9 }, "Bob".into())?;
/// assert_eq!(seats.first()?, Some((Seat { row: 1, number: 9 }, "Bob".into())));
/// // What is stored is a term, so that others can use it.
/// assert_eq!(seats.table().first()?, Some(term!({1, 9})));
/// # Ok(()) }
/// ```
///
/// # Requirements for an implementation
///
/// * The terms of values have the same order in Erlang as the values, and equal values have equal
///   terms. If the type is `Ord` or `PartialOrd`, that is its order.
/// * Decoding the term of a value returns the value.
/// * If the type can be borrowed as another one ([`Borrow`](std::borrow::Borrow)) that is a key,
///   both have the same term.
///
/// If a type violates this, no data is lost, but its keys may not be found, or may be out of order.
///
/// # Arrays
///
/// An array can be borrowed as a slice, which has another term unless its elements are bytes, and
/// may have another length. So a row under an array isn't looked up by a slice, and none is
/// inserted by one. A call that does it doesn't compile:
///
/// ```compile_fail,E0080
/// # use larder::prelude::*;
/// # fn main() -> Result<(), larder::Error> {
/// let cells = Larder::new().typed::<[u32; 2], String>("cells")?;
/// cells.get(&[1, 2][..])?;
/// # Ok(()) }
/// ```
///
/// An array of bytes is found by a slice, too:
///
/// ```
/// # use larder::prelude::*;
/// # fn main() -> Result<(), larder::Error> {
/// let cells = Larder::new().typed::<[u8; 2], String>("cells")?;
/// cells.put(&[1, 2], &"cell".into())?;
/// assert_eq!(cells.get(&[1, 2][..])?, Some("cell".into()));
/// # Ok(()) }
/// ```
///
/// ```compile_fail,E0080
/// # use larder::prelude::*;
/// # fn main() -> Result<(), larder::Error> {
/// let cells = Larder::new().typed::<[u8; 2], String>("cells")?;
/// cells.put(&[1, 2, 3][..], &"no cell".into())?;
/// # Ok(()) }
/// ```
pub trait OrderedKey: EncodeKey + Sized {
    /// Decodes a key; `None` if the term is none of this type's.
    fn decode_key(term: TermRef<'_>) -> Option<Self>;

    /// The key of a simple form, if the type has one, without a term: the inverse of `leaf`.
    #[doc(hidden)]
    #[inline]
    fn of_leaf(_leaf: Leaf<'_>) -> Option<Self> {
        None
    }

    /// The value of a byte, if the type is that of bytes.
    #[doc(hidden)]
    #[inline]
    fn from_bytes(_bytes: &[u8]) -> Option<Vec<Self>> {
        None
    }
}

/// How the values of a type of keys are written.
#[derive(Clone, Copy)]
pub enum Shape {
    /// A byte, which is an element of a binary.
    Byte,
    /// An array: a binary, or a tuple, of a certain length.
    Array,
    /// A slice of bytes: a binary of any length.
    Bytes,
    /// Any other slice: a list of any length.
    List,
    /// Anything.
    Other,
}

/// Doesn't compile if rows under keys `K` aren't found by values of `Q`, as which the keys can be
/// borrowed.
pub(super) const fn found_by<K: EncodeKey, Q: EncodeKey + ?Sized>() {
    let is_found = !matches!((K::SHAPE, Q::SHAPE), (Shape::Array, Shape::List));
    assert!(is_found, "rows under arrays are looked up by arrays");
}

/// Doesn't compile if a value of `Q` may be none of the keys `K`, which can be borrowed as such.
pub(super) const fn inserted_by<K: EncodeKey, Q: EncodeKey + ?Sized>() {
    let is_slice = matches!(Q::SHAPE, Shape::List | Shape::Bytes);
    let is_key = !(is_slice && matches!(K::SHAPE, Shape::Array));
    assert!(is_key, "rows under arrays are inserted by arrays");
}

/// A simple key.
#[doc(hidden)]
pub enum Leaf<'k> {
    /// An integer.
    Int(i64),
    /// An integer that is too large for an `i64`.
    Large(u64),
    /// A binary.
    Binary(&'k [u8]),
    /// Anything.
    Other,
}

impl<'k> Leaf<'k> {
    #[inline]
    fn int(&self) -> Option<i64> {
        match *self {
            Leaf::Int(n) => Some(n),
            _ => None,
        }
    }

    #[inline]
    fn binary(&self) -> Option<&'k [u8]> {
        match *self {
            Leaf::Binary(bytes) => Some(bytes),
            _ => None,
        }
    }
}

/// The error for a value that is an invalid key, with the reason.
pub fn bad_key(why: &str) -> Error {
    Error::WrongType(format!("not a key: {why}").into())
}

/// The methods of a key that is written as what it dereferences to.
macro_rules! as_target {
    () => {
        #[inline]
        fn encode_key(&self, out: &mut Encoder<'_>) -> Result<(), Error> {
            (**self).encode_key(out)
        }

        #[inline]
        fn leaf(&self) -> Leaf<'_> {
            (**self).leaf()
        }
    };
}

macro_rules! integers {
    ($($type:ty),*) => {$(
        impl EncodeKey for $type {
            #[inline]
            fn encode_key(&self, out: &mut Encoder<'_>) -> Result<(), Error> {
                // An integer that doesn't fit into an `i64` is written by its magnitude.
                match self.leaf() {
                    Leaf::Int(n) => out.int(n),
                    _ => out.big(false, &self.to_le_bytes()),
                }
                Ok(())
            }

            #[inline]
            fn leaf(&self) -> Leaf<'_> {
                // Only `u64` and `usize` have values beyond `i64`, all of them positive.
                let large = u64::try_from(*self).map_or(Leaf::Other, Leaf::Large);
                i64::try_from(*self).map_or(large, Leaf::Int)
            }
        }

        impl OrderedKey for $type {
            #[inline]
            fn decode_key(term: TermRef<'_>) -> Option<Self> {
                // A number outside the range of the type is none of its keys.
                match term.as_int() {
                    Some(n) => Self::try_from(n).ok(),
                    None => Self::try_from(unsigned(term)?).ok(),
                }
            }

            #[inline]
            fn of_leaf(leaf: Leaf<'_>) -> Option<Self> {
                Self::try_from(leaf.int()?).ok()
            }
        }
    )*};
}

integers!(u16, u32, u64, usize, i8, i16, i32, i64, isize);

/// The magnitude of a large integer, unless it has more than 128 bits.
fn magnitude(big: BigRef<'_>) -> Option<u128> {
    // It is little-endian, without leading zeros.
    let mut bytes = [0; 16];
    let place = bytes.get_mut(..big.magnitude.len())?;
    place.copy_from_slice(big.magnitude);
    Some(u128::from_le_bytes(bytes))
}

/// A term that is an integer of up to 128 bits, zero or above.
pub(super) fn unsigned(term: TermRef<'_>) -> Option<u128> {
    // Numbers of up to 64 bits are stored as such, and others by sign and magnitude.
    match term.view() {
        View::Big(big) => magnitude(big).filter(|_| !big.negative),
        _ => term.as_int().and_then(|n| n.try_into().ok()),
    }
}

/// A term that is an integer of up to 128 bits.
pub(super) fn signed(term: TermRef<'_>) -> Option<i128> {
    match term.view() {
        // The least value has no positive counterpart, so the sign is applied to the unsigned
        // magnitude.
        View::Big(big) if big.negative => 0i128.checked_sub_unsigned(magnitude(big)?),
        View::Big(big) => i128::try_from(magnitude(big)?).ok(),
        _ => term.as_int().map(i128::from),
    }
}

impl EncodeKey for u128 {
    fn encode_key(&self, out: &mut Encoder<'_>) -> Result<(), Error> {
        out.big(false, &self.to_le_bytes());
        Ok(())
    }
}

impl OrderedKey for u128 {
    fn decode_key(term: TermRef<'_>) -> Option<Self> {
        unsigned(term)
    }
}

impl EncodeKey for i128 {
    fn encode_key(&self, out: &mut Encoder<'_>) -> Result<(), Error> {
        out.big(*self < 0, &self.unsigned_abs().to_le_bytes());
        Ok(())
    }
}

impl OrderedKey for i128 {
    fn decode_key(term: TermRef<'_>) -> Option<Self> {
        signed(term)
    }
}

impl EncodeKey for u8 {
    const SHAPE: Shape = Shape::Byte;

    #[inline]
    fn encode_key(&self, out: &mut Encoder<'_>) -> Result<(), Error> {
        out.int(i64::from(*self));
        Ok(())
    }

    #[inline]
    fn leaf(&self) -> Leaf<'_> {
        Leaf::Int(i64::from(*self))
    }

    #[inline]
    fn bytes_of(values: &[Self]) -> Option<&[u8]> {
        // A slice of bytes is a binary, and not a list of integers.
        Some(values)
    }
}

impl OrderedKey for u8 {
    #[inline]
    fn decode_key(term: TermRef<'_>) -> Option<Self> {
        term.as_int()?.try_into().ok()
    }

    #[inline]
    fn of_leaf(leaf: Leaf<'_>) -> Option<Self> {
        leaf.int()?.try_into().ok()
    }

    #[inline]
    fn from_bytes(bytes: &[u8]) -> Option<Vec<Self>> {
        Some(bytes.to_vec())
    }
}

impl EncodeKey for char {
    #[inline]
    fn encode_key(&self, out: &mut Encoder<'_>) -> Result<(), Error> {
        u32::from(*self).encode_key(out)
    }

    #[inline]
    fn leaf(&self) -> Leaf<'_> {
        Leaf::Int(i64::from(u32::from(*self)))
    }
}

impl OrderedKey for char {
    fn decode_key(term: TermRef<'_>) -> Option<Self> {
        char::from_u32(u32::decode_key(term)?)
    }

    #[inline]
    fn of_leaf(leaf: Leaf<'_>) -> Option<Self> {
        char::from_u32(u32::of_leaf(leaf)?)
    }
}

impl EncodeKey for f64 {
    fn encode_key(&self, out: &mut Encoder<'_>) -> Result<(), Error> {
        if !self.is_finite() {
            return Err(bad_key(
                "NaN and the infinities are in no order with other terms",
            ));
        }
        // In the order of terms −0.0 and 0.0 are equal, so they are one key.
        out.float(if *self == 0.0 { 0.0 } else { *self });
        Ok(())
    }
}

impl OrderedKey for f64 {
    fn decode_key(term: TermRef<'_>) -> Option<Self> {
        match term.view() {
            View::Float(x) => Some(x),
            _ => None,
        }
    }
}

impl EncodeKey for f32 {
    fn encode_key(&self, out: &mut Encoder<'_>) -> Result<(), Error> {
        f64::from(*self).encode_key(out)
    }
}

impl OrderedKey for f32 {
    fn decode_key(term: TermRef<'_>) -> Option<Self> {
        let x = f64::decode_key(term)?;
        // An f64 that is none of f32's would come back as another.
        (f64::from(x as f32) == x).then_some(x as f32)
    }
}

impl EncodeKey for bool {
    fn encode_key(&self, out: &mut Encoder<'_>) -> Result<(), Error> {
        out.atom((*self).into());
        Ok(())
    }
}

impl OrderedKey for bool {
    #[inline]
    fn decode_key(term: TermRef<'_>) -> Option<Self> {
        let atom = term.as_atom()?;
        let is_true = atom == true.into();
        (is_true || atom == false.into()).then_some(is_true)
    }
}

impl EncodeKey for str {
    #[inline]
    fn encode_key(&self, out: &mut Encoder<'_>) -> Result<(), Error> {
        out.binary(self.as_bytes());
        Ok(())
    }

    #[inline]
    fn leaf(&self) -> Leaf<'_> {
        Leaf::Binary(self.as_bytes())
    }
}

impl EncodeKey for String {
    as_target!();
}

impl OrderedKey for String {
    #[inline]
    fn decode_key(term: TermRef<'_>) -> Option<Self> {
        utf8(term.as_binary()?).map(str::to_owned)
    }

    #[inline]
    fn of_leaf(leaf: Leaf<'_>) -> Option<Self> {
        utf8(leaf.binary()?).map(str::to_owned)
    }
}

impl<T: EncodeKey> EncodeKey for [T] {
    const SHAPE: Shape = match T::SHAPE {
        Shape::Byte => Shape::Bytes,
        _ => Shape::List,
    };

    fn encode_key(&self, out: &mut Encoder<'_>) -> Result<(), Error> {
        // A slice of bytes is a binary. Any other is a list.
        if let Some(bytes) = T::bytes_of(self) {
            out.binary(bytes);
            return Ok(());
        }
        out.begin_list(self.len());
        self.iter().try_for_each(|key| key.encode_key(out))
    }

    #[inline]
    fn leaf(&self) -> Leaf<'_> {
        T::bytes_of(self).map_or(Leaf::Other, Leaf::Binary)
    }
}

impl<T: EncodeKey> EncodeKey for Vec<T> {
    as_target!();
}

impl<T: OrderedKey> OrderedKey for Vec<T> {
    fn decode_key(term: TermRef<'_>) -> Option<Self> {
        // The type of the elements decides, so an empty slice shows which of the two it is.
        if T::bytes_of(&[]).is_some() {
            return T::from_bytes(term.as_binary()?);
        }
        term.as_list()?.map(T::decode_key).collect()
    }

    #[inline]
    fn of_leaf(leaf: Leaf<'_>) -> Option<Self> {
        T::from_bytes(leaf.binary()?)
    }
}

impl<T: EncodeKey, const N: usize> EncodeKey for [T; N] {
    const SHAPE: Shape = Shape::Array;

    fn encode_key(&self, out: &mut Encoder<'_>) -> Result<(), Error> {
        // An array of bytes is a binary. Any other has a fixed number of elements, like a tuple.
        if let Some(bytes) = T::bytes_of(self) {
            out.binary(bytes);
            return Ok(());
        }
        out.begin_tuple(N);
        self.iter().try_for_each(|key| key.encode_key(out))
    }

    #[inline]
    fn leaf(&self) -> Leaf<'_> {
        T::bytes_of(self).map_or(Leaf::Other, Leaf::Binary)
    }
}

impl<T: OrderedKey, const N: usize> OrderedKey for [T; N] {
    fn decode_key(term: TermRef<'_>) -> Option<Self> {
        // As for `Vec`.
        if T::bytes_of(&[]).is_some() {
            return T::from_bytes(term.as_binary()?)?.try_into().ok();
        }
        // Others may have written a tuple of another size to the table.
        let elements = term.as_tuple().filter(|tuple| tuple.arity() == N)?;
        let keys: Option<SmallVec<[T; N]>> = elements.iter().map(T::decode_key).collect();
        keys?.into_inner().ok()
    }

    #[inline]
    fn of_leaf(leaf: Leaf<'_>) -> Option<Self> {
        T::from_bytes(leaf.binary()?)?.try_into().ok()
    }
}

impl<T: EncodeKey> EncodeKey for Option<T> {
    fn encode_key(&self, out: &mut Encoder<'_>) -> Result<(), Error> {
        // A tuple of fewer elements is less.
        out.begin_tuple(usize::from(self.is_some()));
        self.iter().try_for_each(|key| key.encode_key(out))
    }
}

impl<T: OrderedKey> OrderedKey for Option<T> {
    fn decode_key(term: TermRef<'_>) -> Option<Self> {
        let tuple = term.as_tuple()?;
        // `{}` is `None`, and `{Key}` is `Some`.
        match (tuple.arity(), tuple.get(0)) {
            (0, _) => Some(None),
            (1, Some(key)) => T::decode_key(key).map(Some),
            _ => None,
        }
    }
}

macro_rules! tuples {
    ($(($count:literal $($name:ident $at:tt)*))*) => {$(
        impl<$($name: EncodeKey),*> EncodeKey for ($($name,)*) {
            fn encode_key(&self, out: &mut Encoder<'_>) -> Result<(), Error> {
                out.begin_tuple($count);
                $(self.$at.encode_key(out)?;)*
                Ok(())
            }
        }

        impl<$($name: OrderedKey),*> OrderedKey for ($($name,)*) {
            fn decode_key(term: TermRef<'_>) -> Option<Self> {
                let elements = term.as_tuple().filter(|tuple| tuple.arity() == $count)?;
                #[allow(unused_mut, unused_variables, reason = "of a tuple without elements")]
                let mut elements = elements.iter();
                Some(($($name::decode_key(elements.next()?)?,)*))
            }
        }
    )*};
}

tuples! {
    (0)
    (1 A 0)
    (2 A 0 B 1)
    (3 A 0 B 1 C 2)
    (4 A 0 B 1 C 2 D 3)
    (5 A 0 B 1 C 2 D 3 E 4)
    (6 A 0 B 1 C 2 D 3 E 4 F 5)
    (7 A 0 B 1 C 2 D 3 E 4 F 5 G 6)
    (8 A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7)
}

macro_rules! pointers {
    ($($pointer:ident: $from:path),*) => {$(
        impl<T: EncodeKey + ?Sized> EncodeKey for $pointer<T> {
            as_target!();
        }

        impl<T: OrderedKey> OrderedKey for $pointer<T> {
            fn decode_key(term: TermRef<'_>) -> Option<Self> {
                T::decode_key(term).map($from)
            }

            #[inline]
            fn of_leaf(leaf: Leaf<'_>) -> Option<Self> {
                T::of_leaf(leaf).map($from)
            }
        }

        impl OrderedKey for $pointer<str> {
            fn decode_key(term: TermRef<'_>) -> Option<Self> {
                String::decode_key(term).map($pointer::from)
            }

            #[inline]
            fn of_leaf(leaf: Leaf<'_>) -> Option<Self> {
                String::of_leaf(leaf).map($pointer::from)
            }
        }
    )*};
}

pointers!(Box: Box::new, Rc: Rc::new, Arc: Arc::new);

impl<T: EncodeKey + ?Sized> EncodeKey for &T {
    as_target!();
}

impl<T: EncodeKey + ToOwned + ?Sized> EncodeKey for Cow<'_, T> {
    as_target!();
}
