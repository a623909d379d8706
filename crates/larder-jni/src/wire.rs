//! Several keys, values and numbers in one array of bytes. In Java `larder.Output` writes requests,
//! and `larder.Input` reads replies.
//!
//! ```text
//!  item     0                     nothing
//!           1 | 8 bytes           an integer
//!           2 | length | bytes    bytes
//!  numbers  4 or 8 bytes; all little-endian
//! ```

use crate::failure::Failure;
use crate::item::Item;

const NOTHING: u8 = 0;
const INT: u8 = 1;
const BYTES: u8 = 2;

/// A request from Java, which is read from its beginning.
pub(crate) struct Request<'a>(&'a [u8]);

impl<'a> Request<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Request(bytes)
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], Failure> {
        let (taken, rest) = self.0.split_first_chunk().ok_or_else(cut_short)?;
        self.0 = rest;
        Ok(*taken)
    }

    pub(crate) fn byte(&mut self) -> Result<u8, Failure> {
        self.take().map(|[byte]| byte)
    }

    pub(crate) fn int(&mut self) -> Result<u32, Failure> {
        self.take().map(u32::from_le_bytes)
    }

    pub(crate) fn long(&mut self) -> Result<i64, Failure> {
        self.take().map(i64::from_le_bytes)
    }

    /// A key or a value that may be missing.
    #[inline]
    pub(crate) fn optional_item(&mut self) -> Result<Option<Item<'a>>, Failure> {
        match self.byte()? {
            NOTHING => Ok(None),
            INT => Ok(Some(Item::Int(self.long()?))),
            BYTES => {
                // The length comes from Java. `split_at_checked` compares it with the bytes that
                // there are.
                let length = self.int()? as usize;
                let (bytes, rest) = self.0.split_at_checked(length).ok_or_else(cut_short)?;
                self.0 = rest;
                Ok(Some(Item::Bytes(bytes)))
            }
            tag => Err(Failure::Argument(format!("no item begins with {tag}"))),
        }
    }

    /// # Errors
    /// `Argument` if there is none.
    #[inline]
    pub(crate) fn item(&mut self) -> Result<Item<'a>, Failure> {
        self.optional_item()?.ok_or_else(cut_short)
    }
}

#[cold]
fn cut_short() -> Failure {
    Failure::Argument("the request is cut short".into())
}

/// A reply to Java.
#[derive(Default)]
pub(crate) struct Reply(Vec<u8>);

impl Reply {
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Drops all bytes after the first `length`.
    pub(crate) fn truncate(&mut self, length: usize) {
        self.0.truncate(length);
    }

    pub(crate) fn capacity(&self) -> usize {
        self.0.capacity()
    }

    pub(crate) fn int(&mut self, n: u32) {
        self.0.extend_from_slice(&n.to_le_bytes());
    }

    pub(crate) fn byte(&mut self, n: u8) {
        self.0.push(n);
    }

    pub(crate) fn long(&mut self, n: i64) {
        self.0.extend_from_slice(&n.to_le_bytes());
    }

    /// Overwrites the number that was pushed first.
    pub(crate) fn set_first_int(&mut self, n: u32) {
        if let Some(first) = self.0.first_chunk_mut() {
            *first = n.to_le_bytes();
        }
    }

    /// Overwrites the byte that was pushed after the first number.
    pub(crate) fn set_second_byte(&mut self, n: u8) {
        if let Some(byte) = self.0.get_mut(size_of::<u32>()) {
            *byte = n;
        }
    }

    #[inline]
    pub(crate) fn item(&mut self, item: Item<'_>) {
        match item {
            Item::Int(n) => {
                self.0.push(INT);
                self.0.extend_from_slice(&n.to_le_bytes());
            }
            Item::Bytes(bytes) => {
                self.0.push(BYTES);
                // No binary that came from Java is longer than 2^31.
                self.int(bytes.len() as u32);
                self.0.extend_from_slice(bytes);
            }
        }
    }
}
