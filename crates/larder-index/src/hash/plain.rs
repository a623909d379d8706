//! Buckets as plain bytes: of a leaf that nobody else can write to, or of a validated copy.
//!
//! Invariants of a bucket (see `shape` for the layout):
//! * H1: Each bucket that a displaced entry has passed has the overflow bit for the entry's tag.
//! * H5: Object `i` ends where object `i - 1` begins, and object 1 ends at the end of the bucket. A
//!   slot entry only has the beginning of its object.
//! * H6: If the unit is more than a byte, an inside object begins with the number of unused bytes
//!   at its end.

use super::shape::*;
use crate::outside::Handle;
use smallvec::SmallVec;

/// An entry of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BucketEntry {
    /// Six bits of its hash.
    pub(crate) tag: u8,
    /// Whether its home is another bucket.
    pub(crate) displaced: bool,
    /// Where its body begins in the bytes of all buckets. If the object is outside, the body is its
    /// handle.
    pub(crate) from: usize,
    /// Where its body ends.
    pub(crate) end: usize,
    /// Whether the object is outside.
    pub(crate) outside: bool,
}

/// The overflow bits of the bucket at `at`.
#[inline]
pub(crate) fn overflow(bytes: &[u8], at: usize) -> u8 {
    bytes[at + 1]
}

/// Whether the bucket at `at` has any overflow bit set.
#[inline]
pub(crate) fn has_overflowed(bytes: &[u8], at: usize) -> bool {
    overflow(bytes, at) != 0
}

/// The tags of the entries of the bucket at `at`.
#[inline]
pub(crate) fn tags(bytes: &[u8], at: usize) -> impl Iterator<Item = u8> + '_ {
    let slots = bytes[at..].get(SLOT_ENTRY..SLOT_ENTRY * (1 + usize::from(bytes[at])));
    let slots = slots.unwrap_or_default().chunks_exact(SLOT_ENTRY);
    slots.map(|slot| slot[1] & (TAG >> 8) as u8)
}

/// What a bucket has, summed up over its entries.
pub(crate) struct BucketSum {
    /// The number of entries.
    pub(crate) entries: usize,
    /// The union of their flags.
    pub(crate) flags: u16,
    /// The bytes of their objects.
    pub(crate) bytes: usize,
}

/// Sums up a bucket.
#[inline]
pub(crate) fn sum(bucket: &[u8], shape: Shape) -> BucketSum {
    let n = usize::from(bucket[0]);
    // Slot entry 0 is the bucket's head.
    let slots = bucket
        .get(SLOT_ENTRY..SLOT_ENTRY * (1 + n))
        .unwrap_or_default();
    // Only the flags are kept in the end. Tags and offsets needn't be masked out here.
    let (mut flags, mut last) = (0, None);
    for slot in slots.chunks_exact(SLOT_ENTRY) {
        let slot = u16::from_le_bytes([slot[0], slot[1]]);
        flags |= slot;
        last = Some(slot);
    }
    // The last object is the lowest one (H5).
    let heap = last.map_or(bucket.len(), |slot| {
        usize::from(slot & 0xFF) << shape.unit_shift()
    });
    BucketSum {
        entries: n,
        flags: flags & (OUTSIDE | DISPLACED),
        bytes: bucket.len() - heap,
    }
}

/// A slot entry of a bucket, and where its body lies in the bytes of all buckets.
#[derive(Clone, Copy)]
pub(crate) struct SlotBody {
    pub(crate) slot: u16,
    /// Where its body begins, or its handle.
    pub(crate) from: usize,
    /// Where its body ends.
    pub(crate) end: usize,
}

/// The slot entries of the bucket at `at`, and their bodies.
#[inline]
pub(crate) fn slot_entries(
    bytes: &[u8],
    at: usize,
    shape: Shape,
) -> impl Iterator<Item = SlotBody> + '_ {
    let (size, unit_shift) = (shape.bucket(), shape.unit_shift());
    let bucket = &bytes[at..at + size];
    // If the count is impossible, there are no entries, instead of a panic.
    let mut end = size;
    let slots = bucket.get(SLOT_ENTRY..SLOT_ENTRY * (1 + usize::from(bucket[0])));
    slots
        .unwrap_or_default()
        .chunks_exact(SLOT_ENTRY)
        .map(move |slot| {
            let slot = u16::from_le_bytes([slot[0], slot[1]]);
            let mut from = usize::from(slot & 0xFF) << unit_shift;
            // The next object ends where this one begins (H5). Leave out unused bytes: those after
            // a handle, or those that the first byte counts (H6).
            let mut to = end;
            end = from;
            if slot & OUTSIDE != 0 {
                to = from + HANDLE;
            } else if unit_shift > 0 {
                to -= usize::from(bucket[from]);
                from += 1;
            }
            SlotBody {
                slot,
                from: at + from,
                end: at + to,
            }
        })
}

/// The entries of the bucket at `at`, with their slot entries decoded.
#[inline]
pub(crate) fn entries(
    bytes: &[u8],
    at: usize,
    shape: Shape,
) -> impl Iterator<Item = BucketEntry> + '_ {
    slot_entries(bytes, at, shape).map(|SlotBody { slot, from, end }| BucketEntry {
        tag: ((slot & TAG) >> 8) as u8,
        displaced: slot & DISPLACED != 0,
        from,
        end,
        outside: slot & OUTSIDE != 0,
    })
}

/// Decodes the bits of a handle.
pub(crate) fn handle_bits(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_le_bytes)
}

/// Puts a body into its home bucket, or into the next one that has room. Returns the size of the
/// object. `None` if no bucket has room; then nothing is changed.
#[inline(always)]
pub(crate) fn put(bytes: &mut [u8], shape: Shape, hash: u64, body: &[u8]) -> Option<usize> {
    let size = object_size(body.len(), shape.class);
    put_object(bytes, shape, hash, 0, body, size)
}

/// The same with a body that is put together, of a key and a value, and the length of the key if
/// that is stored.
#[inline(never)]
pub(crate) fn put_whole(
    bytes: &mut [u8],
    shape: Shape,
    hash: u64,
    key: &[u8],
    value: &[u8],
    length_prefixed: bool,
) -> Option<usize> {
    let mut body = SmallVec::<[u8; MOST_INSIDE]>::new();
    if length_prefixed {
        let prefix = LengthPrefix::of(key.len());
        body.extend_from_slice(&prefix.bytes()[..prefix.size]);
    }
    body.extend_from_slice(key);
    body.extend_from_slice(value);
    put(bytes, shape, hash, &body)
}

/// The same with the handle of an outside object.
#[inline(never)]
pub(crate) fn put_handle(
    bytes: &mut [u8],
    shape: Shape,
    hash: u64,
    handle: Handle,
) -> Option<usize> {
    let body = handle.bits().to_le_bytes();
    put_object(bytes, shape, hash, OUTSIDE, &body, HANDLE)
}

/// Puts an object of this size. `flag` is `OUTSIDE`, or 0.
#[inline(always)]
fn put_object(
    bytes: &mut [u8],
    shape: Shape,
    hash: u64,
    flag: u16,
    body: &[u8],
    size: usize,
) -> Option<usize> {
    let (Probe { home, tag }, len) = (shape.probe(hash), shape.bucket());
    let slot = u16::from(tag) << 8 | flag;
    // The home bucket usually has room.
    if append(
        &mut bytes[home * len..][..len],
        shape.unit_shift(),
        slot,
        body,
        size,
    ) {
        return Some(size);
    }
    put_beyond(bytes, shape, home, slot, body, size)
}

/// Puts an object whose home is full into the next bucket that has room.
#[inline(never)]
fn put_beyond(
    bytes: &mut [u8],
    shape: Shape,
    home: usize,
    slot: u16,
    body: &[u8],
    size: usize,
) -> Option<usize> {
    let (len, unit_shift) = (shape.bucket(), shape.unit_shift());
    let mut at = shape.next(home);
    // Mark the entry as displaced: a search past the home looks for the tag with this flag. Don't
    // set the overflow bits yet, since all buckets may be full.
    while at != home {
        let bucket = &mut bytes[at * len..][..len];
        if append(bucket, unit_shift, slot | DISPLACED, body, size) {
            break;
        }
        at = shape.next(at);
    }
    if at == home {
        return None;
    }
    // Set the overflow bits of the buckets that were passed (H1).
    let eighth = eighth(((slot & TAG) >> 8) as u8);
    let mut from = home;
    while from != at {
        bytes[from * len + 1] |= eighth;
        from = shape.next(from);
    }
    Some(size)
}

/// Appends an object of this size to a bucket, if there is room. The place is added to the bits of
/// its slot entry.
#[inline(always)]
fn append(bucket: &mut [u8], unit_shift: u32, slot: u16, body: &[u8], size: usize) -> bool {
    let n = usize::from(bucket[0]);
    // Objects are written downwards. The one that was put last begins lowest.
    let heap = match n {
        0 => bucket.len(),
        n => usize::from(bucket[SLOT_ENTRY * n]) << unit_shift,
    };
    // The head and `n + 1` slot entries must fit below the lowest object.
    if SLOT_ENTRY * (n + 2) + size > heap {
        return false;
    }
    // Count the entry, and write its slot entry and its object.
    let from = heap - size;
    bucket[0] = n as u8 + 1;
    let slot = slot | (from >> unit_shift) as u16;
    bucket[SLOT_ENTRY * (n + 1)..][..SLOT_ENTRY].copy_from_slice(&slot.to_le_bytes());
    let mut at = from;
    if unit_shift > 0 && slot & OUTSIDE == 0 {
        // How many bytes at its end are unused (H6).
        bucket[at] = (size - 1 - body.len()) as u8;
        at += 1;
    }
    copy(&mut bucket[at..at + body.len()], body);
    true
}

/// `copy_from_slice` that is faster for few bytes.
#[inline]
fn copy(to: &mut [u8], from: &[u8]) {
    /// Copies the first and the last `N` bytes, which may overlap.
    #[inline]
    fn ends<const N: usize>(to: &mut [u8], from: &[u8]) -> Option<()> {
        let (first, last) = (*from.first_chunk::<N>()?, *from.last_chunk::<N>()?);
        *to.first_chunk_mut()? = first;
        *to.last_chunk_mut()? = last;
        Some(())
    }
    // Few bytes are copied by two loads and two stores, which may overlap.
    let done = match from.len() {
        4..8 => ends::<4>(to, from),
        8..=16 => ends::<8>(to, from),
        17..=32 => ends::<16>(to, from),
        33..=64 => ends::<32>(to, from),
        _ => None,
    };
    if done.is_none() {
        to.copy_from_slice(from);
    }
}

#[cfg(test)]
mod tests {
    use super::super::shape::TOP_CLASS;
    use super::*;

    #[test]
    fn what_is_put_is_found_and_overflows_to_the_next() {
        for class in 0..=TOP_CLASS {
            let shape = Shape {
                buckets: 3,
                class,
                depth: 0,
            };
            let mut bytes = vec![0; shape.content()];
            let mut put_in = Vec::new();
            // All belong to the last bucket: what it has no room for goes to the first.
            for i in 0.. {
                let body = vec![i as u8; 5 + i % 7];
                if put(&mut bytes, shape, !0, &body).is_none() {
                    break;
                }
                put_in.push(body);
            }
            let mut found = Vec::new();
            for bucket in [2, 0, 1] {
                for e in entries(&bytes, bucket * shape.bucket(), shape) {
                    assert!(!e.outside && e.tag == 63 && e.displaced == (bucket != 2));
                    found.push(bytes[e.from..e.end].to_vec());
                }
            }
            found.sort();
            put_in.sort();
            assert_eq!(found, put_in);
            assert!(has_overflowed(&bytes, 2 * shape.bucket()) && has_overflowed(&bytes, 0));
            assert!(!has_overflowed(&bytes, shape.bucket()));
            let used: usize = put_in
                .iter()
                .map(|b| object_size(b.len(), class) + SLOT_ENTRY)
                .sum();
            assert!(
                used * 10 > shape.content() * 7,
                "{used} of {}",
                shape.content()
            );
        }
    }

    #[test]
    fn handles_come_back() {
        for class in 0..=TOP_CLASS {
            let shape = Shape {
                buckets: 1,
                class,
                depth: 0,
            };
            let mut bytes = vec![0; shape.content()];
            let handle = Handle::from_bits;
            assert!(put_handle(&mut bytes, shape, 0, handle(77)).is_some());
            assert!(put(&mut bytes, shape, 0, b"inside").is_some());
            assert!(put_handle(&mut bytes, shape, 0, handle(99)).is_some());
            let all: Vec<_> = entries(&bytes, 0, shape).collect();
            assert_eq!(handle_bits(&bytes[all[0].from..all[0].end]), 77);
            assert_eq!(&bytes[all[1].from..all[1].end], b"inside");
            assert_eq!(handle_bits(&bytes[all[2].from..all[2].end]), 99);
            assert!(all[0].outside && !all[1].outside && all[2].outside);
        }
    }
}
