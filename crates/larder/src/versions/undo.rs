//! Undo records: the earlier values of a key.
//!
//! ```text
//!  record    version │ version │ …                          newest first
//!  version   number (8 bytes) │ length + 1, 0: absent │ value
//!  value     of a set, an ordered_set: the object's
//!            of a bag: number of arrival │ length │ object's value │ …
//! ```
//!
//! A version with number r is the value for every snapshot whose number is at most r and greater
//! than the number of the next version. The numbers in a record descend.
//!
//! Lengths and numbers of arrival are LEB128 varints.

use crate::raw;
use larder_index::Objects;
use larder_term::varint;
use smallvec::SmallVec;

/// A record of a transaction's own write. A short one takes no memory of its own.
pub(crate) type Record = SmallVec<[u8; 32]>;

/// The value of a key, according to a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Override<'r> {
    /// The key was absent.
    Absent,
    /// The key had this value.
    Value(&'r [u8]),
}

/// The versions of a record, newest first.
#[derive(Clone, Copy)]
pub(crate) struct Versions<'r>(&'r [u8]);

impl<'r> Versions<'r> {
    pub(crate) fn of(record: &'r [u8]) -> Self {
        Versions(record)
    }
}

impl<'r> Iterator for Versions<'r> {
    type Item = (u64, Override<'r>);

    #[inline]
    fn next(&mut self) -> Option<(u64, Override<'r>)> {
        let number = self.0.first_chunk()?;
        let (len, at) = varint::read(self.0, number.len());
        // A length of 0 says that the object was absent, so lengths are stored plus one.
        let (value, end) = match (len as usize).checked_sub(1) {
            None => (Override::Absent, at),
            Some(len) => (Override::Value(self.0.get(at..at + len)?), at + len),
        };
        self.0 = &self.0[end..];
        Some((u64::from_le_bytes(*number), value))
    }
}

/// The number of the newest version; 0 if there is none.
#[inline]
pub(crate) fn newest(record: &[u8]) -> u64 {
    record.first_chunk().map_or(0, |n| u64::from_le_bytes(*n))
}

/// The value of the key in the snapshot with this number. `None` if the record has no version for
/// it: the snapshot then has the current value in the table.
#[inline]
pub(crate) fn as_of(record: &[u8], number: u64) -> Option<Override<'_>> {
    Versions::of(record)
        .take_while(|&(version, _)| version >= number)
        .last()
        .map(|(_, value)| value)
}

/// Whether a record has a version for the snapshot with this number.
#[inline]
pub(crate) fn has_version(record: &[u8], number: u64) -> bool {
    // The newest one has the greatest number.
    record
        .first_chunk()
        .is_some_and(|n| u64::from_le_bytes(*n) >= number)
}

/// What a version begins with: its number, and the length of its value.
pub(crate) struct VersionHead {
    bytes: [u8; VersionHead::MOST],
    len: usize,
}

impl VersionHead {
    /// A number, and a varint.
    const MOST: usize = 8 + varint::MOST;

    /// The beginning of a version, and the value that follows it.
    #[inline]
    pub(crate) fn of<'v>(number: u64, value: Override<'v>) -> (Self, &'v [u8]) {
        let (len, value) = match value {
            Override::Absent => (0, &[][..]),
            Override::Value(value) => (value.len() as u64 + 1, value),
        };
        let mut bytes = [0; Self::MOST];
        bytes[..8].copy_from_slice(&number.to_le_bytes());
        let len = match u8::try_from(len) {
            Ok(len @ 0..0x80) => {
                bytes[8] = len;
                9
            }
            _ => 8 + varint::write(&mut bytes[8..], len),
        };
        (VersionHead { bytes, len }, value)
    }

    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Writes the whole version to the front of `to`, if it has room.
    #[inline]
    pub(crate) fn write<'t>(&self, value: &[u8], to: &'t mut [u8]) -> Option<&'t [u8]> {
        let len = self.len + value.len();
        let version = to.get_mut(..len)?;
        version[..self.len].copy_from_slice(self.bytes());
        version[self.len..].copy_from_slice(value);
        Some(version)
    }
}

/// Appends a version to a record.
#[inline]
pub(crate) fn push(number: u64, value: Override<'_>, record: &mut Vec<u8>) {
    let (head, value) = VersionHead::of(number, value);
    record.extend_from_slice(head.bytes());
    record.extend_from_slice(value);
}

/// A record with one version.
#[inline]
pub(crate) fn record(number: u64, value: Override<'_>) -> Record {
    let (head, value) = VersionHead::of(number, value);
    let mut record = Record::with_capacity(head.len + value.len());
    record.extend_from_slice(head.bytes());
    record.extend_from_slice(value);
    record
}

/// Changes the number of the newest version of a record.
pub(crate) fn renumber(number: u64, record: &mut [u8]) {
    if let Some(newest) = record.first_chunk_mut() {
        *newest = number.to_le_bytes();
    }
}

/// Appends an object to the value of a bag's key.
pub(crate) fn push_object(number: u64, value: &[u8], list: &mut Vec<u8>) {
    varint::push(list, number);
    varint::push(list, value.len() as u64);
    list.extend_from_slice(value);
}

/// The number of the last object in a record of a bag's key that has one version. `None` if it has
/// no object.
pub(crate) fn last_number(record: &[u8]) -> Option<u64> {
    let objects = BagObjects::of(as_of(record, 0)?);
    objects.last().map(|(number, _)| number)
}

/// Appends an object to a record of a bag's key that has one version, with at least one object.
pub(crate) fn append_object(number: u64, value: &[u8], record: &mut Record) {
    const NUMBER: usize = size_of::<u64>();
    let (len, at) = varint::read(record, NUMBER);
    let before = record.len();
    let mut bytes = [0; varint::MOST];
    for head in [number, value.len() as u64] {
        let most = varint::write(&mut bytes, head);
        record.extend_from_slice(&bytes[..most]);
    }
    record.extend_from_slice(value);
    let most = varint::write(&mut bytes, len + (record.len() - before) as u64);
    // Mostly the new length takes as many bytes as the old one.
    let (same, more) = bytes[..most].split_at(at - NUMBER);
    record[NUMBER..at].copy_from_slice(same);
    record.insert_from_slice(at, more);
}

/// The value of a key that is about to change.
#[derive(Clone, Copy)]
pub(crate) enum OldValue<'a> {
    /// Of a set or an ordered_set.
    Object(Option<&'a [u8]>),
    /// The objects of a bag's key.
    Objects(&'a dyn Objects),
}

impl OldValue<'_> {
    /// Calls `f` with what a version has. The version owns a count of each handle in it.
    #[inline]
    pub(super) fn with<R>(self, f: impl FnOnce(Override<'_>) -> R) -> R {
        match self {
            OldValue::Object(None) => f(Override::Absent),
            OldValue::Object(Some(value)) => {
                raw::retain_value(value);
                f(Override::Value(value))
            }
            // A key without objects is absent, as in a set.
            OldValue::Objects(objects) if objects.is_empty() => f(Override::Absent),
            OldValue::Objects(objects) => {
                // The objects with their numbers, so that those which stay keep their places
                // (`apply_to_bag`).
                let mut list = Vec::new();
                objects.each_numbered(&mut |number, value| {
                    raw::retain_value(value);
                    push_object(number, value, &mut list);
                });
                f(Override::Value(&list))
            }
        }
    }
}

/// Calls `f` with the value of each object in a version, which of a bag (not `unique`) is a list.
pub(super) fn each_value(unique: bool, version: Override<'_>, f: &mut dyn FnMut(&[u8])) {
    match version {
        Override::Absent => {}
        Override::Value(value) if unique => f(value),
        list @ Override::Value(_) => BagObjects::of(list).for_each(|(_, value)| f(value)),
    }
}

/// The objects in the value of a bag's key, with their numbers, in the order of insertion.
pub(crate) struct BagObjects<'r>(&'r [u8]);

impl<'r> BagObjects<'r> {
    pub(crate) fn of(value: Override<'r>) -> Self {
        match value {
            Override::Absent => BagObjects(&[]),
            Override::Value(list) => BagObjects(list),
        }
    }
}

impl<'r> Iterator for BagObjects<'r> {
    type Item = (u64, &'r [u8]);

    fn next(&mut self) -> Option<(u64, &'r [u8])> {
        self.0.first()?;
        let (number, at) = varint::read(self.0, 0);
        let (len, at) = varint::read(self.0, at);
        let value = self.0.get(at..at + len as usize)?;
        self.0 = &self.0[at + value.len()..];
        Some((number, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_snapshot_sees_the_version_of_its_time() {
        let mut record = Vec::new();
        push(9, Override::Value(b"new"), &mut record);
        push(5, Override::Absent, &mut record);
        push(2, Override::Value(b""), &mut record);
        assert_eq!(newest(&record), 9);
        let mut later = record.clone();
        renumber(12, &mut later);
        assert_eq!((newest(&later), &later[8..]), (12, &record[8..]));
        assert_eq!(newest(&[]), 0);
        for (number, seen) in [
            (1, Some(Override::Value(&b""[..]))),
            (2, Some(Override::Value(b""))),
            (3, Some(Override::Absent)),
            (5, Some(Override::Absent)),
            (6, Some(Override::Value(b"new"))),
            (9, Some(Override::Value(b"new"))),
            (10, None),
        ] {
            assert_eq!(as_of(&record, number), seen, "{number}");
            assert_eq!(has_version(&record, number), seen.is_some(), "{number}");
            assert!(!has_version(&[], number));
        }
    }

    #[test]
    fn objects_are_appended() {
        let mut list = Vec::new();
        push_object(7, b"first", &mut list);
        let mut record = record(9, Override::Value(&list));
        for number in 8..4_000 {
            assert_eq!(last_number(&record), Some(number - 1));
            append_object(number, b"next", &mut record);
            push_object(number, b"next", &mut list);
            assert!(
                record == super::record(9, Override::Value(&list)),
                "{number}"
            );
        }
        assert_eq!(last_number(&super::record(9, Override::Absent)), None);
    }

    #[test]
    fn lists_come_back() {
        let mut list = Vec::new();
        push_object(0, b"a", &mut list);
        push_object(300, b"", &mut list);
        let objects: Vec<_> = BagObjects::of(Override::Value(&list)).collect();
        assert_eq!(objects, [(0, &b"a"[..]), (300, b"")]);
        assert_eq!(BagObjects::of(Override::Absent).count(), 0);
    }
}
