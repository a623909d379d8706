//! Values to terms, by serde, written straight to an object's bytes.
//!
//! | value | term |
//! |---|---|
//! | integers, `char` | an integer |
//! | floats | a float; `nan`, `infinity`, `'-infinity'` for what Erlang has no float for |
//! | `bool` | `true`, `false` |
//! | texts, bytes | a binary |
//! | sequences | a list |
//! | tuples, structs | a tuple of the elements, of the fields in order |
//! | a struct that wraps one value without a name | that value |
//! | maps | a map |
//! | a variant | its name, an atom; with fields `{Name, Fields…}` |
//! | `None` | `undefined` |
//! | `Some(x)` | a number, `bool`, text, bytes, sequence or map `x`: `x`; else `{some, x}` |
//! | `()` | `{}` |
//!
//! `{some, x}` keeps `Some(None)` and `Some(())` apart from `None` and `()`.

use super::plain::{is_plain, DEPTH};
use crate::error::Error;
use larder_term::{Atom, Encoder, Term};
use serde::ser::{self, Serialize};
use std::fmt::{self, Display};

/// The atom that marks a value as present, where the value alone wouldn't show it.
pub(super) const SOME: &str = "some";
/// The atom of a missing value.
pub(super) const NONE: &str = "undefined";

/// The atoms of floats that Erlang doesn't have.
pub(super) const NAN: &str = "nan";
pub(super) const INFINITY: &str = "infinity";
pub(super) const MINUS_INFINITY: &str = "-infinity";

/// Why a value is no term, or a term no value.
#[derive(Debug)]
pub(super) struct ValueError(String);

impl ValueError {
    pub(super) fn new(text: impl Display) -> Self {
        ValueError(text.to_string())
    }

    fn incomplete() -> Self {
        ValueError::new("its Serialize gave another number of elements than it announced")
    }

    pub(super) fn too_deep() -> Self {
        ValueError(format!("it is nested deeper than {DEPTH} levels"))
    }
}

impl Display for ValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ValueError {}

impl ser::Error for ValueError {
    fn custom<T: Display>(text: T) -> Self {
        ValueError::new(text)
    }
}

/// Writes a value as one term.
///
/// # Errors
/// `WrongType` if it can't be one.
#[inline]
pub(super) fn write<V: Serialize + ?Sized>(value: &V, enc: &mut Encoder<'_>) -> Result<(), Error> {
    let writer = ValueWriter { enc, depth: 0 };
    value.serialize(writer).map_err(not_a_value)
}

#[cold]
fn not_a_value(why: ValueError) -> Error {
    Error::WrongType(format!("not a value: {why}").into())
}

/// The error of a value whose `Serialize` announced more, or fewer, elements than it gave.
#[cold]
pub(super) fn incomplete() -> Error {
    not_a_value(ValueError::incomplete())
}

/// Writes one term.
struct ValueWriter<'e, 'b> {
    enc: &'e mut Encoder<'b>,
    depth: u16,
}

fn atom(text: &str) -> Result<Atom, ValueError> {
    Atom::try_new(text).map_err(ValueError::new)
}

impl<'e, 'b> ValueWriter<'e, 'b> {
    fn atom(self, text: &str) -> Result<(), ValueError> {
        self.enc.atom(atom(text)?);
        Ok(())
    }

    #[inline]
    fn deeper(&self) -> Result<u16, ValueError> {
        // Depth is limited, so that a recursive value fails before the stack is used up.
        match self.depth {
            DEPTH.. => Err(ValueError::too_deep()),
            depth => Ok(depth + 1),
        }
    }

    /// Begins a tuple of this number of elements, which follow.
    #[inline]
    fn elements(self, n: usize) -> Result<ElementsSerializer<'e, 'b>, ValueError> {
        let depth = self.deeper()?;
        self.enc.begin_tuple(n);
        Ok(ElementsSerializer {
            enc: self.enc,
            depth,
        })
    }

    /// Begins the tuple of a variant with this number of fields.
    #[inline]
    fn variant(self, name: &str, fields: usize) -> Result<ElementsSerializer<'e, 'b>, ValueError> {
        // The name of the variant is the first element.
        let elements = self.elements(fields + 1)?;
        elements.enc.atom(atom(name)?);
        Ok(elements)
    }
}

/// Writes the elements of a tuple, or of a list whose length was known.
pub(super) struct ElementsSerializer<'e, 'b> {
    enc: &'e mut Encoder<'b>,
    depth: u16,
}

impl ElementsSerializer<'_, '_> {
    #[inline]
    fn push<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), ValueError> {
        value.serialize(ValueWriter {
            enc: &mut *self.enc,
            depth: self.depth,
        })
    }
}

macro_rules! small_integers {
    ($($name:ident $type:ty),*) => {$(
        #[inline]
        fn $name(self, n: $type) -> Result<(), ValueError> {
            self.enc.int(i64::from(n));
            Ok(())
        }
    )*};
}

macro_rules! tuples {
    ($($name:ident($($ignored:ty)?)),*) => {$(
        #[inline]
        fn $name(self, $(_: $ignored,)? n: usize) -> Result<ElementsSerializer<'e, 'b>, ValueError> {
            self.elements(n)
        }
    )*};
}

macro_rules! variants {
    ($($name:ident),*) => {$(
        fn $name(
            self,
            _: &'static str,
            _: u32,
            variant: &'static str,
            n: usize,
        ) -> Result<ElementsSerializer<'e, 'b>, ValueError> {
            self.variant(variant, n)
        }
    )*};
}

impl<'e, 'b> ser::Serializer for ValueWriter<'e, 'b> {
    type Ok = ();
    type Error = ValueError;
    type SerializeSeq = Sequence<'e, 'b>;
    type SerializeTuple = ElementsSerializer<'e, 'b>;
    type SerializeTupleStruct = ElementsSerializer<'e, 'b>;
    type SerializeTupleVariant = ElementsSerializer<'e, 'b>;
    type SerializeMap = MapSerializer<'e, 'b>;
    type SerializeStruct = ElementsSerializer<'e, 'b>;
    type SerializeStructVariant = ElementsSerializer<'e, 'b>;

    small_integers!(serialize_i8 i8, serialize_i16 i16, serialize_i32 i32, serialize_i64 i64,
        serialize_u8 u8, serialize_u16 u16, serialize_u32 u32);

    #[inline]
    fn serialize_u64(self, n: u64) -> Result<(), ValueError> {
        match i64::try_from(n) {
            Ok(n) => self.enc.int(n),
            Err(_) => self.enc.big(false, &n.to_le_bytes()),
        }
        Ok(())
    }

    fn serialize_i128(self, n: i128) -> Result<(), ValueError> {
        self.enc.big(n < 0, &n.unsigned_abs().to_le_bytes());
        Ok(())
    }

    fn serialize_u128(self, n: u128) -> Result<(), ValueError> {
        self.enc.big(false, &n.to_le_bytes());
        Ok(())
    }

    fn serialize_f32(self, x: f32) -> Result<(), ValueError> {
        self.serialize_f64(f64::from(x))
    }

    #[inline]
    fn serialize_f64(self, x: f64) -> Result<(), ValueError> {
        // Erlang has no such floats, so they become atoms.
        if x.is_finite() {
            self.enc.float(x);
            return Ok(());
        }
        self.atom(match x {
            _ if x.is_nan() => NAN,
            f64::INFINITY => INFINITY,
            _ => MINUS_INFINITY,
        })
    }

    fn serialize_bool(self, b: bool) -> Result<(), ValueError> {
        self.enc.atom(b.into());
        Ok(())
    }

    fn serialize_char(self, c: char) -> Result<(), ValueError> {
        self.serialize_u32(c.into())
    }

    #[inline]
    fn serialize_str(self, text: &str) -> Result<(), ValueError> {
        self.serialize_bytes(text.as_bytes())
    }

    #[inline]
    fn serialize_bytes(self, bytes: &[u8]) -> Result<(), ValueError> {
        self.enc.binary(bytes);
        Ok(())
    }

    fn serialize_none(self) -> Result<(), ValueError> {
        self.atom(NONE)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), ValueError> {
        // A value that can't be mistaken for `None`, nor for a tagged one, needs no tag.
        if is_plain(value) {
            return value.serialize(self);
        }
        self.variant(SOME, 1)?.push(value)
    }

    fn serialize_unit(self) -> Result<(), ValueError> {
        self.enc.begin_tuple(0);
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), ValueError> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<(), ValueError> {
        self.atom(variant)
    }

    #[inline]
    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        mut self,
        _: &'static str,
        value: &T,
    ) -> Result<(), ValueError> {
        // It adds no term, but may nest in itself all the same.
        self.depth = self.deeper()?;
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), ValueError> {
        self.variant(variant, 1)?.push(value)
    }

    fn serialize_seq(self, len: Option<usize>) -> Result<Sequence<'e, 'b>, ValueError> {
        let depth = self.deeper()?;
        let enc = self.enc;
        Ok(match len {
            Some(len) => {
                enc.begin_list(len);
                Sequence::Known(ElementsSerializer { enc, depth })
            }
            // A list's head has its length. Elements of unknown number are written to a buffer
            // first.
            None => Sequence::Unknown {
                terms: Vec::new(),
                enc,
                depth,
            },
        })
    }

    tuples!(
        serialize_tuple(),
        serialize_tuple_struct(&'static str),
        serialize_struct(&'static str)
    );

    variants!(serialize_tuple_variant, serialize_struct_variant);

    fn serialize_map(self, len: Option<usize>) -> Result<MapSerializer<'e, 'b>, ValueError> {
        let depth = self.deeper()?;
        // The number is announced by the type, so it isn't trusted with much memory.
        Ok(MapSerializer {
            terms: Vec::with_capacity(2 * len.unwrap_or(0).min(1024)),
            enc: self.enc,
            depth,
        })
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}

macro_rules! elements {
    ($($trait:ident $push:ident($($name:ty)?)),*) => {$(
        impl ser::$trait for ElementsSerializer<'_, '_> {
            type Ok = ();
            type Error = ValueError;

            #[inline]
            fn $push<T: Serialize + ?Sized>(
                &mut self,
                $(_: $name,)?
                value: &T,
            ) -> Result<(), ValueError> {
                self.push(value)
            }

            $(
                fn skip_field(&mut self, name: $name) -> Result<(), ValueError> {
                    // Fields are told apart by their positions.
                    Err(ValueError::new(format!(
                        "the field {name} is left out (skip_serializing_if), and fields have no \
                         names in a tuple"
                    )))
                }
            )?

            #[inline]
            fn end(self) -> Result<(), ValueError> {
                Ok(())
            }
        }
    )*};
}

elements!(SerializeTuple serialize_element(), SerializeTupleStruct serialize_field(),
    SerializeTupleVariant serialize_field(), SerializeStruct serialize_field(&'static str),
    SerializeStructVariant serialize_field(&'static str));

/// Writes a list.
pub(super) enum Sequence<'e, 'b> {
    Known(ElementsSerializer<'e, 'b>),
    /// A list begins with its length, so the elements are collected first.
    Unknown {
        terms: Vec<Term>,
        enc: &'e mut Encoder<'b>,
        depth: u16,
    },
}

impl ser::SerializeSeq for Sequence<'_, '_> {
    type Ok = ();
    type Error = ValueError;

    #[inline]
    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), ValueError> {
        match self {
            Sequence::Known(elements) => elements.push(value),
            // The length isn't known yet, so the elements are kept until the end of the sequence.
            Sequence::Unknown { terms, depth, .. } => {
                terms.push(term(value, *depth)?);
                Ok(())
            }
        }
    }

    #[inline]
    fn end(self) -> Result<(), ValueError> {
        if let Sequence::Unknown { terms, enc, .. } = self {
            enc.begin_list(terms.len());
            // All elements are known now, so the list can begin.
            terms.iter().for_each(|term| enc.term(term.as_ref()));
        }
        Ok(())
    }
}

/// Writes a map. Its pairs are collected first: how many there are need not be known, and a map
/// with a key twice is refused before anything of it is written.
pub(super) struct MapSerializer<'e, 'b> {
    terms: Vec<Term>,
    enc: &'e mut Encoder<'b>,
    depth: u16,
}

impl ser::SerializeMap for MapSerializer<'_, '_> {
    type Ok = ();
    type Error = ValueError;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), ValueError> {
        self.terms.push(term(key, self.depth)?);
        // Keys and values are by turns in one vector.
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), ValueError> {
        self.terms.push(term(value, self.depth)?);
        Ok(())
    }

    fn end(self) -> Result<(), ValueError> {
        // The encoder sorts the pairs when the map ends.
        let token = self.enc.begin_map(self.terms.len() / 2);
        self.terms
            .iter()
            .for_each(|term| self.enc.term(term.as_ref()));
        let ended = self.enc.end_map(token);
        ended.map_err(|_| ValueError::new("a map has one key twice"))
    }
}

/// A value as a term of its own.
pub(super) fn term<T: Serialize + ?Sized>(value: &T, depth: u16) -> Result<Term, ValueError> {
    let mut result = Ok(());
    let built = Term::build(|enc| result = value.serialize(ValueWriter { enc, depth }));
    result?;
    built.map_err(|_| ValueError::incomplete())
}
