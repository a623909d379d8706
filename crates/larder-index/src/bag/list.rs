//! The entry of a key in a bag: the list of its objects, or a tree header.
//!
//! ```text
//!  list          count (1 to 64) | item | item | …           in order of arrival
//!  item          length | object | number of the arrival      length and number as LEB128
//!
//!  tree header   0 | indexed (0 or 1) | count | next number       count and number as LEB128
//! ```
//!
//! Numbers ascend in a list. By them a scan that resumes within a key knows which objects it has
//! returned. The place of an object in its list changes when others are removed, but its number
//! never does.

use super::list_buffer::ListBuffer;
use crate::LeafConfig;
use std::ops::Range;

/// The first byte of a tree header. No list begins with it.
const IN_TREE: u8 = 0;
/// The maximum number of bytes of a tree header.
const MOST_HEADER: usize = 22;

/// The limits of a list. They don't apply to a list of one object.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    count: u8,
    bytes: u16,
}

impl Limits {
    /// Sixty-four objects and about two kilobytes; less if leaves are small, as in tests.
    pub(super) fn new(config: &LeafConfig) -> Self {
        Limits {
            count: (config.most / 60).clamp(3, 64) as u8,
            bytes: u16::try_from(config.most / 2).unwrap_or(u16::MAX),
        }
    }

    /// The maximum number of objects.
    pub(super) fn count(self) -> usize {
        usize::from(self.count)
    }

    /// Whether this number of objects, which take this number of bytes, may be a list.
    #[inline]
    pub(super) fn fits(self, count: usize, bytes: usize) -> bool {
        // An object that is alone is a list in any case. It may be larger than the limit.
        count == 1 || (count <= self.count() && bytes <= usize::from(self.bytes))
    }
}

/// A tree header, decoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TreeHeader {
    /// The number of objects.
    pub(super) count: usize,
    /// The number that the next object will get.
    pub(super) next: u64,
    /// Whether the objects are in the hash index.
    pub(super) indexed: bool,
}

impl TreeHeader {
    /// Decodes an entry; `None` if it is a list.
    #[inline]
    pub(super) fn of(entry: &[u8]) -> Option<TreeHeader> {
        match entry.first() {
            Some(&IN_TREE) => Some(TreeHeader::read(entry)),
            _ => None,
        }
    }

    #[cold]
    fn read(entry: &[u8]) -> TreeHeader {
        // The first two bytes are the zero that marks a header, and the flag.
        let count = read_number(entry, 2).unwrap_or_default();
        let next = read_number(entry, count.end).unwrap_or_default();
        TreeHeader {
            count: count.number as usize,
            next: next.number,
            indexed: entry.get(1) == Some(&1),
        }
    }

    /// Encodes the tree header as an entry.
    pub(super) fn bytes(&self) -> Vec<u8> {
        // Two bytes, and two numbers of at most ten bytes each: `MOST_HEADER`.
        let mut bytes = Vec::with_capacity(MOST_HEADER);
        bytes.extend([IN_TREE, u8::from(self.indexed)]);
        push_number(self.count as u64, &mut bytes);
        push_number(self.next, &mut bytes);
        bytes
    }
}

/// Whether an entry is a tree header.
#[inline]
pub(super) fn is_in_tree(entry: &[u8]) -> bool {
    matches!(entry, [IN_TREE, ..])
}

/// The number of objects in a list.
#[inline]
pub(super) fn count(list: &[u8]) -> usize {
    list.first().map_or(0, |&count| usize::from(count))
}

/// The offsets of an item and of its object in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ListItem {
    /// Where the item begins.
    pub(super) from: usize,
    /// The offset of the object.
    pub(super) object: Range<usize>,
    /// The number of the object.
    pub(super) number: u64,
    /// Where the item ends.
    pub(super) end: usize,
}

/// The items of a list, in the order of insertion.
#[derive(Clone)]
pub(super) struct Items<'l> {
    list: &'l [u8],
    at: usize,
}

/// The items of a list. Its first byte is ignored.
#[inline]
pub(super) fn items(list: &[u8]) -> Items<'_> {
    items_from(list, 1)
}

impl Iterator for Items<'_> {
    type Item = ListItem;

    #[inline]
    fn next(&mut self) -> Option<ListItem> {
        let from = self.at;
        // An item ends the iteration if it is cut short, which happens if the bytes are torn.
        let len = read_number(self.list, from)?;
        let object = len.end..len.end.checked_add(len.number as usize)?;
        let ReadNumber { number, end } = read_number(self.list, object.end)?;
        self.at = end;
        Some(ListItem {
            from,
            object,
            number,
            end,
        })
    }
}

/// The items of a list, starting with the one at `at`.
#[inline]
pub(super) fn items_from(list: &[u8], at: usize) -> Items<'_> {
    Items { list, at }
}

/// Where the first object of the entry at `at` lies, of which at least the first byte is there.
/// `None` if the entry is a tree header.
#[inline]
pub(super) fn first_object(bytes: &[u8], at: usize) -> Option<Range<usize>> {
    if is_in_tree(&bytes[at..]) {
        return None;
    }
    let len = read_number(bytes, at + 1).filter(|len| len.end < bytes.len())?;
    Some(len.end..len.end.checked_add(len.number as usize)?)
}

/// What bytes are appended to.
pub(super) trait Sink {
    fn byte(&mut self, byte: u8);
    fn bytes(&mut self, bytes: &[u8]);
}

impl Sink for Vec<u8> {
    #[inline]
    fn byte(&mut self, byte: u8) {
        self.push(byte);
    }

    #[inline]
    fn bytes(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

impl Sink for ListBuffer {
    #[inline]
    fn byte(&mut self, byte: u8) {
        self.push(byte);
    }

    #[inline]
    fn bytes(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// Appends an item to a list.
#[inline(always)]
pub(super) fn push(list: &mut impl Sink, object: &[u8], number: u64) {
    push_number(object.len() as u64, list);
    list.bytes(object);
    push_number(number, list);
}

/// Appends a number as LEB128.
#[inline]
pub(super) fn push_number(mut n: u64, out: &mut impl Sink) {
    while n >= 0x80 {
        out.byte(n as u8 | 0x80);
        n >>= 7;
    }
    out.byte(n as u8);
}

/// A number that was read, and where it ends.
#[derive(Default)]
pub(super) struct ReadNumber {
    pub(super) number: u64,
    end: usize,
}

/// Reads a number at `at`. `None` if there is none.
#[inline]
pub(super) fn read_number(bytes: &[u8], at: usize) -> Option<ReadNumber> {
    let first = *bytes.get(at)?;
    if first < 0x80 {
        return Some(ReadNumber {
            number: u64::from(first),
            end: at + 1,
        });
    }
    read_long(bytes, at)
}

fn read_long(bytes: &[u8], from: usize) -> Option<ReadNumber> {
    let (mut n, mut at) = (0, from);
    // At most ten groups of seven bits. Torn bytes may have more, and are refused.
    for shift in (0..u64::BITS).step_by(7) {
        let byte = *bytes.get(at)?;
        at += 1;
        n |= u64::from(byte & 0x7F) << shift;
        if byte < 0x80 {
            return Some(ReadNumber { number: n, end: at });
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_come_back() {
        let samples = [
            (0, 0),
            (1, 5),
            (127, 127),
            (128, 128),
            (300, 1 << 20),
            (70_000, u64::MAX),
        ];
        let mut list = vec![samples.len() as u8];
        for (len, number) in samples {
            push(&mut list, &vec![len as u8; len], number);
        }
        assert_eq!(count(&list), samples.len());
        let mut end = 1;
        for (item, (len, number)) in items(&list).zip(samples) {
            assert_eq!((item.from, item.number), (end, number));
            assert_eq!(list[item.object], vec![len as u8; len]);
            end = item.end;
        }
        assert_eq!(end, list.len());
        assert!(!is_in_tree(&list));
    }

    /// Bytes that are no list have no item beyond their end.
    #[test]
    fn broken_lists_end() {
        for bytes in [&[][..], &[1], &[1, 5, 0], &[1, 0xFF, 0xFF], &[1, 0x80]] {
            assert_eq!(items(bytes).count(), 0);
        }
    }

    #[test]
    fn tree_headers_come_back() {
        for indexed in [false, true] {
            let entry = TreeHeader {
                count: 1_000_000,
                next: 1 << 40,
                indexed,
            };
            assert_eq!(TreeHeader::of(&entry.bytes()), Some(entry));
        }
        assert_eq!(TreeHeader::of(&[1, 0, 0]), None);
        assert_eq!(TreeHeader::of(&[]), None);
    }
}
