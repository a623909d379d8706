//! Terms to values, by serde, read where they lie: the inverse of `ser`. Texts and bytes may be
//! borrowed.
//!
//! What others may have written is taken, too, where it says the same: a struct as a map with the
//! fields' names, an integer for a float.

use super::key::{signed, unsigned, OrderedKey};
use super::plain::DEPTH;
use super::ser::{ValueError, INFINITY, MINUS_INFINITY, NAN, NONE, SOME};
use larder_term::{utf8, Kind, Pairs, TermRef, Terms, TupleRef, View};
use serde::de::value::BorrowedStrDeserializer;
use serde::de::{self, Deserialize, DeserializeSeed, Unexpected, Visitor};
use std::fmt::Display;

/// The value of a term.
///
/// # Errors
/// Why it is none of the type.
#[inline]
pub(super) fn read<'v, V: Deserialize<'v>>(term: TermRef<'v>) -> Result<V, ValueError> {
    V::deserialize(ValueReader { term, depth: 0 })
}

impl de::Error for ValueError {
    fn custom<T: Display>(text: T) -> Self {
        ValueError::new(text)
    }
}

/// Reads one term.
#[derive(Clone, Copy)]
struct ValueReader<'v> {
    term: TermRef<'v>,
    depth: u16,
}

impl<'v> ValueReader<'v> {
    /// A reader of something within this term.
    #[inline]
    fn within(self, term: TermRef<'v>) -> Result<Self, ValueError> {
        // Terms of others may be nested deeper than the stack allows.
        match self.depth {
            DEPTH.. => Err(ValueError::too_deep()),
            depth => Ok(ValueReader {
                term,
                depth: depth + 1,
            }),
        }
    }

    #[inline]
    fn elements(self, terms: Terms<'v>) -> Result<ElementsAccess<'v>, ValueError> {
        let ValueReader { depth, .. } = self.within(self.term)?;
        Ok(ElementsAccess { terms, depth })
    }

    fn pairs(self, pairs: Pairs<'v>) -> Result<MapPairs<'v>, ValueError> {
        let ValueReader { depth, .. } = self.within(self.term)?;
        let value = None;
        Ok(MapPairs {
            pairs,
            value,
            depth,
        })
    }

    /// The error of a term that is not what the visitor expects.
    #[cold]
    fn unexpected(self, expected: &dyn de::Expected) -> ValueError {
        // serde names values of its own kinds in its messages. All other terms are named here.
        let what = match self.term.view() {
            View::Int(n) => Unexpected::Signed(n),
            View::Float(x) => Unexpected::Float(x),
            _ => Unexpected::Other(match self.term.kind() {
                Kind::Integer => "an integer beyond 64 bits",
                Kind::Float => "a float",
                Kind::Atom => "an atom",
                Kind::Reference => "a reference",
                Kind::Fun => "a fun",
                Kind::Port => "a port",
                Kind::Pid => "a pid",
                Kind::Tuple => "a tuple",
                Kind::Map => "a map",
                Kind::Nil => "an empty list",
                Kind::List => "a list",
                Kind::Bitstring => "a binary",
            }),
        };
        de::Error::invalid_type(what, expected)
    }

    /// Visits what was found in the term. If nothing was, the visitor expects another one.
    #[inline]
    fn found<T, V: Visitor<'v>>(
        self,
        found: Option<T>,
        visitor: V,
        visit: impl FnOnce(V, T) -> Result<V::Value, ValueError>,
    ) -> Result<V::Value, ValueError> {
        match found {
            Some(found) => visit(visitor, found),
            None => Err(self.unexpected(&visitor)),
        }
    }

    /// Visits an integer that doesn't fit into an `i64`.
    #[cold]
    fn large_integer<V: Visitor<'v>>(self, visitor: V) -> Result<V::Value, ValueError> {
        match self.term.view() {
            View::Big(_) => de::Deserializer::deserialize_u128(self, visitor),
            _ => Err(self.unexpected(&visitor)),
        }
    }

    /// Visits all elements of a sequence: what the visitor leaves over is an error.
    #[inline]
    fn visit_all<V: Visitor<'v>>(
        self,
        terms: Terms<'v>,
        visitor: V,
    ) -> Result<V::Value, ValueError> {
        // A tuple of a struct has as many elements as fields. A visitor that leaves some over
        // expects another type.
        let all = terms.len();
        let mut elements = self.elements(terms)?;
        let value = visitor.visit_seq(&mut elements)?;
        match elements.terms.len() {
            0 => Ok(value),
            left => Err(ValueError::new(format!(
                "{all} elements, of which {} were expected",
                all - left
            ))),
        }
    }

    fn visit_map<V: Visitor<'v>>(
        self,
        pairs: Pairs<'v>,
        visitor: V,
    ) -> Result<V::Value, ValueError> {
        let mut pairs = self.pairs(pairs)?;
        visitor.visit_map(&mut pairs)
    }

    fn text(self) -> Option<&'v str> {
        utf8(self.term.as_binary()?)
    }

    /// A tuple of an atom and others: the atom's text, and the others.
    fn tagged(self) -> Option<(&'static str, Terms<'v>)> {
        let mut elements = self.term.as_tuple()?.iter();
        // The tag must be an atom. A tuple without one isn't tagged.
        let atom = elements.next()?.as_atom()?;
        Some((atom.text(), elements))
    }

    #[inline]
    fn float(self) -> Option<f64> {
        self.term.as_float().or_else(|| self.other_float())
    }

    /// The float that another term stands for.
    #[cold]
    fn other_float(self) -> Option<f64> {
        match self.term.view() {
            // Written by a language without a separate type of integers.
            View::Int(n) => (n as f64 as i128 == i128::from(n)).then_some(n as f64),
            View::Atom(atom) => match atom.text() {
                NAN => Some(f64::NAN),
                INFINITY => Some(f64::INFINITY),
                MINUS_INFINITY => Some(f64::NEG_INFINITY),
                _ => None,
            },
            _ => None,
        }
    }
}

macro_rules! integers {
    ($($name:ident),*) => {$(
        #[inline]
        fn $name<V: Visitor<'v>>(self, visitor: V) -> Result<V::Value, ValueError> {
            // The visitor knows what its type has room for.
            match self.term.as_int() {
                Some(n @ 0..) => visitor.visit_u64(n as u64),
                Some(n) => visitor.visit_i64(n),
                None => self.large_integer(visitor),
            }
        }
    )*};
}

impl<'v> de::Deserializer<'v> for ValueReader<'v> {
    type Error = ValueError;

    fn deserialize_any<V: Visitor<'v>>(self, visitor: V) -> Result<V::Value, ValueError> {
        // A type that takes anything, such as an enum without tags, gets the nearest kind of value.
        match self.term.view() {
            View::Int(_) => self.deserialize_i64(visitor),
            View::Big(_) => self.deserialize_u128(visitor),
            View::Float(x) => visitor.visit_f64(x),
            View::Atom(atom) => match atom.text() {
                "true" => visitor.visit_bool(true),
                "false" => visitor.visit_bool(false),
                NONE => visitor.visit_none(),
                text => visitor.visit_borrowed_str(text),
            },
            View::Nil | View::List(_) => self.deserialize_seq(visitor),
            // The empty tuple is the unit, as `ser` writes it.
            View::Tuple(tuple) if tuple.arity() == 0 => visitor.visit_unit(),
            View::Tuple(tuple) => self.visit_all(tuple.iter(), visitor),
            View::Map(map) => self.visit_map(map.iter(), visitor),
            // Binaries that are valid UTF-8 are treated as texts, since most are.
            View::Bin(bytes) => match self.text() {
                Some(text) => visitor.visit_borrowed_str(text),
                None => visitor.visit_borrowed_bytes(bytes),
            },
            _ => Err(self.unexpected(&visitor)),
        }
    }

    integers!(
        deserialize_i8,
        deserialize_i16,
        deserialize_i32,
        deserialize_i64,
        deserialize_u8,
        deserialize_u16,
        deserialize_u32,
        deserialize_u64
    );

    fn deserialize_i128<V: Visitor<'v>>(self, visitor: V) -> Result<V::Value, ValueError> {
        self.found(signed(self.term), visitor, V::visit_i128)
    }

    fn deserialize_u128<V: Visitor<'v>>(self, visitor: V) -> Result<V::Value, ValueError> {
        // Negative numbers are left to the signed reader, which knows how to refuse them.
        let Some(n) = unsigned(self.term) else {
            return self.deserialize_i128(visitor);
        };
        match u64::try_from(n) {
            Ok(n) => visitor.visit_u64(n),
            Err(_) => visitor.visit_u128(n),
        }
    }

    fn deserialize_f32<V: Visitor<'v>>(self, visitor: V) -> Result<V::Value, ValueError> {
        self.deserialize_f64(visitor)
    }

    #[inline]
    fn deserialize_f64<V: Visitor<'v>>(self, visitor: V) -> Result<V::Value, ValueError> {
        self.found(self.float(), visitor, V::visit_f64)
    }

    #[inline]
    fn deserialize_bool<V: Visitor<'v>>(self, visitor: V) -> Result<V::Value, ValueError> {
        self.found(bool::decode_key(self.term), visitor, V::visit_bool)
    }

    fn deserialize_char<V: Visitor<'v>>(self, visitor: V) -> Result<V::Value, ValueError> {
        self.found(char::decode_key(self.term), visitor, V::visit_char)
    }

    #[inline]
    fn deserialize_str<V: Visitor<'v>>(self, visitor: V) -> Result<V::Value, ValueError> {
        self.found(self.text(), visitor, V::visit_borrowed_str)
    }

    #[inline]
    fn deserialize_string<V: Visitor<'v>>(self, visitor: V) -> Result<V::Value, ValueError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_bytes<V: Visitor<'v>>(self, visitor: V) -> Result<V::Value, ValueError> {
        self.found(self.term.as_binary(), visitor, V::visit_borrowed_bytes)
    }

    fn deserialize_byte_buf<V: Visitor<'v>>(self, visitor: V) -> Result<V::Value, ValueError> {
        self.deserialize_bytes(visitor)
    }

    fn deserialize_option<V: Visitor<'v>>(self, visitor: V) -> Result<V::Value, ValueError> {
        // `None` first: it is an atom of its own.
        if self.term.as_atom().is_some_and(|atom| atom.text() == NONE) {
            return visitor.visit_none();
        }
        match self.tagged() {
            Some((SOME, mut terms)) if terms.len() == 1 => match terms.next() {
                Some(term) => visitor.visit_some(self.within(term)?),
                None => visitor.visit_none(),
            },
            // A value without a tag is `Some` of it.
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_unit<V: Visitor<'v>>(self, visitor: V) -> Result<V::Value, ValueError> {
        // The unit is the empty tuple.
        match self.term.as_tuple() {
            Some(tuple) if tuple.arity() == 0 => visitor.visit_unit(),
            _ => Err(self.unexpected(&visitor)),
        }
    }

    fn deserialize_unit_struct<V: Visitor<'v>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, ValueError> {
        self.deserialize_unit(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'v>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, ValueError> {
        visitor.visit_newtype_struct(self.within(self.term)?)
    }

    fn deserialize_seq<V: Visitor<'v>>(self, visitor: V) -> Result<V::Value, ValueError> {
        self.found(self.term.as_list(), visitor, |visitor, terms| {
            self.visit_all(terms, visitor)
        })
    }

    #[inline]
    fn deserialize_tuple<V: Visitor<'v>>(
        self,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, ValueError> {
        let elements = self.term.as_tuple().map(TupleRef::iter);
        self.found(elements, visitor, |visitor, terms| {
            self.visit_all(terms, visitor)
        })
    }

    fn deserialize_tuple_struct<V: Visitor<'v>>(
        self,
        _: &'static str,
        len: usize,
        visitor: V,
    ) -> Result<V::Value, ValueError> {
        self.deserialize_tuple(len, visitor)
    }

    fn deserialize_map<V: Visitor<'v>>(self, visitor: V) -> Result<V::Value, ValueError> {
        match self.term.view() {
            View::Map(map) => self.visit_map(map.iter(), visitor),
            _ => Err(self.unexpected(&visitor)),
        }
    }

    #[inline]
    fn deserialize_struct<V: Visitor<'v>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ValueError> {
        // A struct of this program is a tuple. One of another program may be a map with the names.
        match self.term.as_tuple() {
            Some(tuple) => self.visit_all(tuple.iter(), visitor),
            None => self.deserialize_map(visitor),
        }
    }

    fn deserialize_enum<V: Visitor<'v>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ValueError> {
        // A variant without fields is an atom alone.
        let alone = self.term.as_atom().map(|atom| (atom.text(), None));
        // A variant with fields is a tuple that begins with its name.
        let tagged = || self.tagged().map(|(name, fields)| (name, Some(fields)));
        self.found(alone.or_else(tagged), visitor, |visitor, (name, fields)| {
            let whole = self;
            visitor.visit_enum(Variant {
                name,
                fields,
                whole,
            })
        })
    }

    fn deserialize_identifier<V: Visitor<'v>>(self, visitor: V) -> Result<V::Value, ValueError> {
        match self.term.as_atom() {
            Some(atom) => visitor.visit_borrowed_str(atom.text()),
            None => self.deserialize_any(visitor),
        }
    }

    #[inline]
    fn deserialize_ignored_any<V: Visitor<'v>>(self, visitor: V) -> Result<V::Value, ValueError> {
        // Whoever has the terms around this one goes past it.
        visitor.visit_unit()
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}

/// The elements of a list or a tuple.
struct ElementsAccess<'v> {
    terms: Terms<'v>,
    depth: u16,
}

impl<'v> de::SeqAccess<'v> for &mut ElementsAccess<'v> {
    type Error = ValueError;

    #[inline]
    fn next_element_seed<T: DeserializeSeed<'v>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, ValueError> {
        let depth = self.depth;
        let read = |term| seed.deserialize(ValueReader { term, depth });
        self.terms.next().map(read).transpose()
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.terms.len())
    }
}

/// The pairs of a map.
struct MapPairs<'v> {
    pairs: Pairs<'v>,
    value: Option<TermRef<'v>>,
    depth: u16,
}

impl<'v> de::MapAccess<'v> for &mut MapPairs<'v> {
    type Error = ValueError;

    fn next_key_seed<K: DeserializeSeed<'v>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, ValueError> {
        // Both are taken at once. serde asks for the value next.
        let Some((term, value)) = self.pairs.next() else {
            return Ok(None);
        };
        self.value = Some(value);
        let depth = self.depth;
        seed.deserialize(ValueReader { term, depth }).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'v>>(&mut self, seed: V) -> Result<V::Value, ValueError> {
        let depth = self.depth;
        match self.value.take() {
            Some(term) => seed.deserialize(ValueReader { term, depth }),
            None => Err(ValueError::new("a value was asked for before its key")),
        }
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.pairs.len())
    }
}

/// A variant: its name, and its fields if it is a tuple.
struct Variant<'v> {
    name: &'static str,
    fields: Option<Terms<'v>>,
    whole: ValueReader<'v>,
}

impl<'v> de::EnumAccess<'v> for Variant<'v> {
    type Error = ValueError;
    type Variant = Self;

    fn variant_seed<T: DeserializeSeed<'v>>(self, seed: T) -> Result<(T::Value, Self), ValueError> {
        // The text of an atom lives as long as the process, so it is borrowed.
        let name = BorrowedStrDeserializer::new(self.name);
        Ok((seed.deserialize(name)?, self))
    }
}

impl<'v> Variant<'v> {
    /// The error of a variant that has other fields than these.
    #[cold]
    fn has_other_fields(&self, expected: &str) -> ValueError {
        let found = self.fields.as_ref().map_or(0, Terms::len);
        let name = self.name;
        ValueError::new(format!(
            "the variant {name} with {found} fields, where {expected} was expected"
        ))
    }
}

impl<'v> de::VariantAccess<'v> for Variant<'v> {
    type Error = ValueError;

    fn unit_variant(self) -> Result<(), ValueError> {
        match self.fields {
            None => Ok(()),
            Some(_) => Err(self.has_other_fields("one without")),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'v>>(self, seed: T) -> Result<T::Value, ValueError> {
        match self.fields.map(|mut fields| (fields.next(), fields.len())) {
            Some((Some(term), 0)) => seed.deserialize(self.whole.within(term)?),
            _ => Err(self.has_other_fields("one with one")),
        }
    }

    fn tuple_variant<V: Visitor<'v>>(self, len: usize, visitor: V) -> Result<V::Value, ValueError> {
        match self.fields {
            Some(fields) => self.whole.visit_all(fields, visitor),
            None => Err(self.has_other_fields(&format!("one with {len}"))),
        }
    }

    fn struct_variant<V: Visitor<'v>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ValueError> {
        self.tuple_variant(fields.len(), visitor)
    }
}
