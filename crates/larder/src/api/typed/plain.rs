//! Determines whether `Some` of a value is encoded as the value itself (see `ser`). serde can only
//! tell what a value is by serializing it. So this is a serializer that stops at the first call.

use serde::ser::{Error, Impossible, Serialize, Serializer};
use std::fmt::{self, Display};

/// Containers that a value may have within one another.
pub(super) const DEPTH: u16 = 256;

/// Whether a value is a number, a `bool`, a text, bytes, a sequence or a map, or wraps one.
#[inline]
pub(super) fn is_plain<T: Serialize + ?Sized>(value: &T) -> bool {
    // If elements would follow, the answer is returned as an error, which ends the serialization.
    value
        .serialize(Ask { depth: 0 })
        .unwrap_or_else(|Answer(plain)| plain)
}

struct Ask {
    depth: u16,
}

impl Ask {
    /// Asks what a value wraps. A value that is nested too deep is no value anyway (see `ser`), so
    /// any answer will do.
    fn within<T: Serialize + ?Sized>(self, value: &T) -> Result<bool, Answer> {
        match self.depth {
            DEPTH.. => Ok(false),
            depth => value.serialize(Ask { depth: depth + 1 }),
        }
    }
}

/// An answer that is returned as an error. A value that fails to serialize is not plain. It fails
/// again when it is written.
#[derive(Debug)]
struct Answer(bool);

impl Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl std::error::Error for Answer {}

impl Error for Answer {
    fn custom<T: Display>(_: T) -> Self {
        Answer(false)
    }
}

type No = Impossible<bool, Answer>;

macro_rules! answers {
    ($($answer:expr => $type:ty: $($name:ident($($ignored:ty),*)),+;)*) => {$($(
        #[inline]
        fn $name(self, $(_: $ignored),*) -> Result<$type, Answer> {
            $answer
        }
    )+)*};
}

impl Serializer for Ask {
    type Ok = bool;
    type Error = Answer;
    type SerializeSeq = No;
    type SerializeTuple = No;
    type SerializeTupleStruct = No;
    type SerializeTupleVariant = No;
    type SerializeMap = No;
    type SerializeStruct = No;
    type SerializeStructVariant = No;

    // A float that is written as an atom other than `undefined` is plain, too.
    answers! {
        Ok(true) => bool: serialize_i8(i8), serialize_i16(i16), serialize_i32(i32),
            serialize_i64(i64), serialize_i128(i128), serialize_u8(u8), serialize_u16(u16),
            serialize_u32(u32), serialize_u64(u64), serialize_u128(u128), serialize_f32(f32),
            serialize_f64(f64), serialize_char(char), serialize_bool(bool), serialize_str(&str),
            serialize_bytes(&[u8]);
        Ok(false) => bool: serialize_none(), serialize_unit(), serialize_unit_struct(&'static str),
            serialize_unit_variant(&'static str, u32, &'static str);
        Err(Answer(true)) => No: serialize_seq(Option<usize>), serialize_map(Option<usize>);
        Err(Answer(false)) => No: serialize_tuple(usize),
            serialize_tuple_struct(&'static str, usize), serialize_struct(&'static str, usize),
            serialize_tuple_variant(&'static str, u32, &'static str, usize),
            serialize_struct_variant(&'static str, u32, &'static str, usize);
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<bool, Answer> {
        // This is written as the value itself, if that is plain, and otherwise as `{some, x}`.
        self.within(value)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<bool, Answer> {
        self.within(value)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<bool, Answer> {
        Ok(false)
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}
