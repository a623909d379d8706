//! Walking over a term in the external format, head by head, without recursion.
//!
//! Decoding walks twice. The first walk checks everything, and finds the length of each list: a
//! list whose tail is a list is one longer list, and its head must be written first. The second
//! walk writes. Both receive the same heads, through a [`HeadSink`].

use super::{tag::*, EtfError};

/// The greatest number of elements of a tuple in Erlang.
const MAX_ARITY: u32 = (1 << 24) - 1;

/// The text of an atom, as it is encoded.
#[derive(Clone, Copy)]
pub(super) enum Text<'a> {
    Utf8(&'a [u8]),
    Latin1(&'a [u8]),
}

/// The node of an identifier.
#[derive(Clone, Copy)]
pub(super) struct Creator<'a> {
    pub(super) name: Text<'a>,
    pub(super) creation: u32,
}

/// A head, with the number of its children, if it has any.
pub(super) enum Head<'a> {
    Int(i64),
    Big {
        negative: bool,
        magnitude: &'a [u8],
    },
    Float(f64),
    Atom(Text<'a>),
    Nil,
    /// A list of small integers.
    String(&'a [u8]),
    List(u32),
    Tuple(u32),
    Map(u32),
    Binary(&'a [u8]),
    Bits(&'a [u8], usize),
    Pid(Creator<'a>, u32, u32),
    Port(Creator<'a>, u64),
    Ref(Creator<'a>, &'a [u8]),
    Fun(FunHead<'a>),
    Export(Text<'a>, Text<'a>, u8),
}

/// The head of a local fun.
pub(super) struct FunHead<'a> {
    pub(super) arity: u8,
    pub(super) uniq: [u8; 16],
    pub(super) index: u32,
    pub(super) module: Text<'a>,
    pub(super) old_index: i64,
    pub(super) old_uniq: i64,
    pub(super) free: u32,
    /// The node that made it.
    pub(super) creator: Creator<'a>,
}

/// The receiver of the heads of a walk.
pub(super) trait HeadSink<'a> {
    /// A term that isn't a list, or a tail that continues a list.
    fn head(&mut self, head: Head<'a>) -> Result<(), EtfError>;
    /// A list with this number begins. It has `elements` elements before its tail. `tail` says that
    /// it is the tail of the innermost open list.
    fn list(&mut self, number: usize, elements: u64, tail: bool);
    /// The tail of the innermost list is a run of small integers.
    fn string_tail(&mut self, bytes: &'a [u8]) -> Result<(), EtfError>;
    /// The list with this number ends. If its tail is a list with a number of its own, that list
    /// has just ended.
    fn end_list(&mut self, number: usize, tail: Tail);
    /// The innermost map has all its pairs.
    fn end_map(&mut self) -> Result<(), EtfError>;
}

/// The tail of a list.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Tail {
    /// `[]`.
    Nil,
    /// A string of this number of small integers.
    String(usize),
    /// The list with this number.
    List(usize),
    /// A term that isn't a list.
    Other,
}

/// An open container.
struct OpenHead {
    left: u64,
    kind: Container,
}

#[derive(Clone, Copy)]
enum Container {
    Plain,
    Map,
    /// The number of a list, and its tail, as far as it is known.
    List(usize, Tail),
}

/// Walks over the term at the beginning of `bytes`, which follow the version byte. Returns its
/// length.
pub(super) fn walk<'a>(bytes: &'a [u8], sink: &mut impl HeadSink<'a>) -> Result<usize, EtfError> {
    let mut reader = EtfReader { bytes, at: 0 };
    let mut open: Vec<OpenHead> = Vec::new();
    let mut lists = 0;
    loop {
        // Whether the next term is the tail of a list, which is the last one that the list lacks.
        let tail_of = match open.last_mut() {
            Some(OpenHead {
                left: 1,
                kind: Container::List(_, tail),
            }) => Some(tail),
            _ => None,
        };
        // Check each length against the bytes before it is used.
        let head = reader.head()?;
        let (children, kind) = match (head, tail_of) {
            // `[]` ends the list, and isn't a term of its own.
            (Head::Nil, Some(_)) => (0, Container::Plain),
            // A string continues the elements.
            (Head::String(bytes), Some(tail)) => {
                *tail = Tail::String(bytes.len());
                sink.string_tail(bytes)?;
                (0, Container::Plain)
            }
            // A list, or the continuation of the list whose tail it is. The sink recognizes it by
            // its number.
            (Head::List(n), tail) => {
                let number = lists;
                lists += 1;
                let is_tail = tail.is_some();
                if let Some(tail) = tail {
                    *tail = Tail::List(number);
                }
                sink.list(number, u64::from(n), is_tail);
                (u64::from(n) + 1, Container::List(number, Tail::Nil))
            }
            (head, tail) => {
                if let Some(tail) = tail {
                    *tail = Tail::Other;
                }
                let opened = match &head {
                    Head::Tuple(n) => (u64::from(*n), Container::Plain),
                    Head::Map(n) => (2 * u64::from(*n), Container::Map),
                    Head::Fun(fun) => (u64::from(fun.free), Container::Plain),
                    _ => (0, Container::Plain),
                };
                sink.head(head)?;
                opened
            }
        };
        // Each child takes at least one byte. So a count that is too large is noticed here, before
        // memory is allocated.
        if children > reader.left() as u64 {
            return Err(EtfError::Truncated);
        }
        // A container is counted as a child of its parent when it is complete.
        open.push(OpenHead {
            left: children,
            kind,
        });
        // End the containers that are complete, the innermost first. Each is then counted as a
        // child of its parent.
        while let Some(OpenHead { left: 0, kind }) = open.last() {
            match *kind {
                Container::Plain => {}
                Container::Map => sink.end_map()?,
                Container::List(number, tail) => sink.end_list(number, tail),
            }
            open.pop();
            match open.last_mut() {
                Some(parent) => parent.left -= 1,
                None => return Ok(reader.at),
            }
        }
    }
}

/// The bytes, and the offset up to which they were read.
struct EtfReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> EtfReader<'a> {
    fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    fn take(&mut self, n: usize) -> Result<&'a [u8], EtfError> {
        let rest = &self.bytes[self.at..];
        let taken = rest.get(..n).ok_or(EtfError::Truncated)?;
        self.at += n;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], EtfError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    fn u8(&mut self) -> Result<u8, EtfError> {
        self.array().map(|[byte]| byte)
    }

    fn u16(&mut self) -> Result<usize, EtfError> {
        self.array().map(|bytes| u16::from_be_bytes(bytes) as usize)
    }

    fn u32(&mut self) -> Result<u32, EtfError> {
        self.array().map(u32::from_be_bytes)
    }

    /// Reads a length of 32 bits, and that number of bytes.
    fn long(&mut self) -> Result<&'a [u8], EtfError> {
        let n = self.u32()? as usize;
        self.take(n)
    }

    fn head(&mut self) -> Result<Head<'a>, EtfError> {
        // Every read checks that the bytes are there. A head that is cut short is `Truncated`.
        let tag = self.u8()?;
        Ok(match tag {
            SMALL_INTEGER => Head::Int(i64::from(self.u8()?)),
            INTEGER => Head::Int(i64::from(self.u32()? as i32)),
            SMALL_BIG => {
                let n = self.u8()? as usize;
                self.big(n)?
            }
            LARGE_BIG => {
                let n = self.u32()? as usize;
                self.big(n)?
            }
            NEW_FLOAT => Head::Float(finite(f64::from_be_bytes(self.array()?))?),
            // Old releases wrote floats as text.
            FLOAT => Head::Float(float_text(self.take(31)?)?),
            NIL => Head::Nil,
            STRING => {
                let n = self.u16()?;
                Head::String(self.take(n)?)
            }
            LIST => Head::List(self.u32()?),
            SMALL_TUPLE => Head::Tuple(u32::from(self.u8()?)),
            LARGE_TUPLE => match self.u32()? {
                arity @ ..=MAX_ARITY => Head::Tuple(arity),
                _ => return Err(EtfError::TooLarge),
            },
            MAP => Head::Map(self.u32()?),
            BINARY => Head::Binary(self.long()?),
            BIT_BINARY => self.bits()?,
            _ => self.named(tag)?,
        })
    }

    /// Reads a head that contains an atom.
    fn named(&mut self, tag: u8) -> Result<Head<'a>, EtfError> {
        Ok(match tag {
            ATOM | SMALL_ATOM | ATOM_UTF8 | SMALL_ATOM_UTF8 => Head::Atom(self.text(tag)?),
            PID | NEW_PID => {
                // Old formats have a creation of one byte, newer ones of four.
                let name = self.atom()?;
                let (id, serial) = (self.u32()?, self.u32()?);
                let creation = self.creation(tag == PID)?;
                Head::Pid(Creator { name, creation }, id, serial)
            }
            PORT | NEW_PORT | V4_PORT => {
                let name = self.atom()?;
                let id = match tag {
                    V4_PORT => u64::from_be_bytes(self.array()?),
                    _ => u64::from(self.u32()?),
                };
                let creation = self.creation(tag == PORT)?;
                Head::Port(Creator { name, creation }, id)
            }
            // The oldest form has one word, and the name comes in front of it.
            REFERENCE => {
                let name = self.atom()?;
                let words = self.take(4)?;
                let creation = self.creation(true)?;
                Head::Ref(Creator { name, creation }, words)
            }
            NEW_REFERENCE | NEWER_REFERENCE => {
                let words = self.u16()?;
                let name = self.atom()?;
                let creation = self.creation(tag == NEW_REFERENCE)?;
                let words = match words {
                    // No release has references of more than five words. Other lengths come from
                    // broken data.
                    1..=5 => self.take(4 * words)?,
                    _ => return Err(EtfError::Malformed),
                };
                Head::Ref(Creator { name, creation }, words)
            }
            NEW_FUN => Head::Fun(self.fun()?),
            EXPORT => {
                let (module, function) = (self.atom()?, self.atom()?);
                // The arity is a term of its own in this format.
                let arity = u8::try_from(self.integer()?).map_err(|_| EtfError::Malformed)?;
                Head::Export(module, function, arity)
            }
            // An unknown tag is named in the error, since newer releases may add some.
            _ => return Err(EtfError::Tag(tag)),
        })
    }

    fn creation(&mut self, short: bool) -> Result<u32, EtfError> {
        match short {
            true => self.u8().map(u32::from),
            false => self.u32(),
        }
    }

    fn big(&mut self, n: usize) -> Result<Head<'a>, EtfError> {
        let negative = self.u8()? != 0;
        let magnitude = self.take(n)?;
        Ok(Head::Big {
            negative,
            magnitude,
        })
    }

    fn bits(&mut self) -> Result<Head<'a>, EtfError> {
        let n = self.u32()? as usize;
        let last = self.u8()? as usize;
        let bytes = self.take(n)?;
        // The last byte has one to eight bits that count. An empty bitstring has none.
        match (n, last) {
            (0, 0) => Ok(Head::Bits(bytes, 0)),
            (1.., 1..=8) => Ok(Head::Bits(bytes, 8 * (n - 1) + last)),
            _ => Err(EtfError::Malformed),
        }
    }

    fn atom(&mut self) -> Result<Text<'a>, EtfError> {
        let tag = self.u8()?;
        self.text(tag)
    }

    fn text(&mut self, tag: u8) -> Result<Text<'a>, EtfError> {
        // The tag says how long the length is, and how the text is encoded.
        let n = match tag {
            ATOM | ATOM_UTF8 => self.u16()?,
            SMALL_ATOM | SMALL_ATOM_UTF8 => self.u8()? as usize,
            _ => return Err(EtfError::NoAtom),
        };
        let bytes = self.take(n)?;
        Ok(match tag {
            ATOM | SMALL_ATOM => Text::Latin1(bytes),
            _ => Text::Utf8(bytes),
        })
    }

    fn integer(&mut self) -> Result<i64, EtfError> {
        match self.head_of_integer()? {
            Head::Int(n) => Ok(n),
            // Up to seven bytes of magnitude fit into 63 bits with either sign.
            Head::Big {
                negative,
                magnitude,
            } if magnitude.len() < 8 => {
                let mut wide = [0; 8];
                // The bytes are little-endian, and the missing ones are zero.
                wide[..magnitude.len()].copy_from_slice(magnitude);
                let n = i64::from_le_bytes(wide);
                Ok(if negative { -n } else { n })
            }
            _ => Err(EtfError::Malformed),
        }
    }

    fn head_of_integer(&mut self) -> Result<Head<'a>, EtfError> {
        match self.bytes.get(self.at) {
            Some(&(SMALL_INTEGER | INTEGER | SMALL_BIG)) => self.head(),
            Some(_) => Err(EtfError::Malformed),
            None => Err(EtfError::Truncated),
        }
    }

    fn fun(&mut self) -> Result<FunHead<'a>, EtfError> {
        // The size isn't needed: the walk finds the end of the fun by its parts.
        let _size = self.u32()?;
        let arity = self.u8()?;
        let uniq = self.array()?;
        let (index, free) = (self.u32()?, self.u32()?);
        let module = self.atom()?;
        // The fun's index and hash in their old form. They are kept, to be sent on unchanged.
        let (old_index, old_uniq) = (self.integer()?, self.integer()?);
        // The format has a whole pid here. Only its node is of interest.
        let creator = match self.u8()? {
            tag @ (PID | NEW_PID) => self.named(tag)?,
            _ => return Err(EtfError::Malformed),
        };
        let Head::Pid(creator, ..) = creator else {
            return Err(EtfError::Malformed);
        };
        Ok(FunHead {
            arity,
            uniq,
            index,
            module,
            old_index,
            old_uniq,
            free,
            creator,
        })
    }
}

fn finite(x: f64) -> Result<f64, EtfError> {
    match x.is_finite() {
        true => Ok(x),
        false => Err(EtfError::BadFloat),
    }
}

/// Reads a float that is a decimal text, padded with zero bytes.
fn float_text(text: &[u8]) -> Result<f64, EtfError> {
    let end = text.iter().position(|&b| b == 0).unwrap_or(text.len());
    let text = std::str::from_utf8(&text[..end]).map_err(|_| EtfError::BadFloat)?;
    let x: f64 = text.trim().parse().map_err(|_| EtfError::BadFloat)?;
    finite(x)
}
