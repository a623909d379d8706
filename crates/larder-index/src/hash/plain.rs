//! Buckets as plain bytes: of a leaf that nobody else can write, or of a copy that was checked.
//!
//! Invariants of a bucket with `n` entries (the layout is `shape`'s):
//! 1. Object `i` ends where object `i - 1` begins, object 1 at the bucket's end. A slot entry has
//!    its object's beginning alone.
//! 2. Where the unit is more than a byte, an object inside begins with how many bytes at its end
//!    are not its body's.
//! 3. An entry that lies behind its home has its eighth of the tags noted in each bucket from its
//!    home up to the one before its own.

use super::shape::{eighth, object_size, Shape, DISPLACED, HANDLE, OUTSIDE, SLOT_ENTRY, TAG};

/// An entry of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BucketEntry {
    /// Six bits of its hash.
    pub(crate) tag: u8,
    /// Its home is another bucket.
    pub(crate) displaced: bool,
    /// Where its body lies, in the bytes that hold all buckets; a handle if it is outside.
    pub(crate) from: usize,
    /// Where its body ends.
    pub(crate) end: usize,
    /// The body is a handle.
    pub(crate) outside: bool,
}

fn set_slot_entry(bucket: &mut [u8], i: usize, slot: u16) {
    bucket[SLOT_ENTRY * i..SLOT_ENTRY * (i + 1)].copy_from_slice(&slot.to_le_bytes());
}

/// Whether entries may have been passed on from the bucket that begins at `at`.
#[inline]
pub(crate) fn passed(bytes: &[u8], at: usize) -> bool {
    bytes[at + 1] != 0
}

/// The entries of the bucket that lies at `at` in `bytes`: the slot entry of each, and where its
/// body lies, or its handle.
#[inline(always)]
pub(crate) fn slot_entries(
    bytes: &[u8],
    at: usize,
    shape: Shape,
) -> impl Iterator<Item = (u16, usize, usize)> + '_ {
    let (size, unit) = (shape.bucket(), shape.unit());
    let bucket = &bytes[at..at + size];
    // A count that no bucket can have gives no entries, not a panic.
    let mut end = size;
    let slots = bucket.get(SLOT_ENTRY..SLOT_ENTRY * (1 + usize::from(bucket[0])));
    slots
        .unwrap_or_default()
        .chunks_exact(SLOT_ENTRY)
        .map(move |slot| {
            let slot = u16::from_le_bytes([slot[0], slot[1]]);
            let mut from = usize::from(slot & 0xFF) << unit;
            // Invariant 1: the next object ends where this one begins. What is left of the room is
            // cut off: behind a handle, or as the first byte says (invariant 2).
            let mut to = end;
            end = from;
            if slot & OUTSIDE != 0 {
                to = from + HANDLE;
            } else if unit > 0 {
                to -= usize::from(bucket[from]);
                from += 1;
            }
            (slot, at + from, at + to)
        })
}

/// As `slots`, taken apart.
#[inline]
pub(crate) fn entries(
    bytes: &[u8],
    at: usize,
    shape: Shape,
) -> impl Iterator<Item = BucketEntry> + '_ {
    slot_entries(bytes, at, shape).map(|(slot, from, end)| BucketEntry {
        tag: ((slot & TAG) >> 8) as u8,
        displaced: slot & DISPLACED != 0,
        from,
        end,
        outside: slot & OUTSIDE != 0,
    })
}

/// The bits of a handle, which these bytes are.
pub(crate) fn handle_bits(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_le_bytes)
}

/// As `put`, of a body inside, in buckets whose unit is a byte: mostly it goes straight to its
/// home.
#[inline(always)]
pub(crate) fn put_small(bytes: &mut [u8], shape: Shape, hash: u64, body: &[u8]) -> bool {
    debug_assert!(shape.unit() == 0);
    let ((home, tag), len) = (shape.place(hash), shape.bucket());
    let bucket = &mut bytes[home * len..][..len];
    let n = usize::from(bucket[0]);
    let heap = match n {
        0 => len,
        n => usize::from(bucket[SLOT_ENTRY * n]),
    };
    // The head, `n` slot entries and one more, below the lowest object.
    if SLOT_ENTRY * (n + 2) + body.len() > heap {
        return put(bytes, shape, hash, body, false);
    }
    let from = heap - body.len();
    bucket[0] = n as u8 + 1;
    set_slot_entry(bucket, n + 1, u16::from(tag) << 8 | from as u16);
    copy(&mut bucket[from..heap], body);
    true
}

/// Puts an entry in its home bucket or in the next that has room. False, and nothing changed, if
/// none has.
pub(crate) fn put(bytes: &mut [u8], shape: Shape, hash: u64, body: &[u8], outside: bool) -> bool {
    let (home, tag) = shape.place(hash);
    let (len, unit) = (shape.bucket(), shape.unit());
    let size = match outside {
        true => body.len(),
        false => object_size(body.len(), shape.class),
    };
    let mut at = home;
    loop {
        let bucket = &mut bytes[at * len..][..len];
        let n = usize::from(bucket[0]);
        // The last slot entry has the lowest object.
        let heap = match n {
            0 => len,
            n => usize::from(bucket[SLOT_ENTRY * n]) << unit,
        };
        if SLOT_ENTRY * (n + 2) + size <= heap {
            // Behind the home, a search looks for the tag with `DISPLACED` set.
            let mark = if outside { OUTSIDE } else { 0 };
            let mark = mark | if at == home { 0 } else { DISPLACED };
            append(
                bucket,
                n + 1,
                heap - size,
                unit,
                u16::from(tag) << 8 | mark,
                body,
            );
            break;
        }
        // Nothing was changed in the buckets that were passed.
        at = shape.next(at);
        if at == home {
            return false;
        }
    }
    // Invariant 3, now that it is known how far the entry went.
    let mut from = home;
    while from != at {
        bytes[from * len + 1] |= eighth(tag);
        from = shape.next(from);
    }
    true
}

/// Makes a body the entry of slot entry `i`, with these marks: its object begins at `from`, and
/// ends where the one before it begins.
#[inline]
fn append(bucket: &mut [u8], i: usize, from: usize, unit: u32, marks: u16, body: &[u8]) {
    let mut at = from;
    if unit > 0 && marks & OUTSIDE == 0 {
        let end = match i {
            1 => bucket.len(),
            i => usize::from(bucket[SLOT_ENTRY * (i - 1)]) << unit,
        };
        bucket[at] = (end - from - 1 - body.len()) as u8;
        at += 1;
    }
    set_slot_entry(bucket, i, (from >> unit) as u16 | marks);
    bucket[0] = i as u8;
    copy(&mut bucket[at..at + body.len()], body);
}

/// As `copy_from_slice`, with less to do for a few bytes.
#[inline(always)]
fn copy(to: &mut [u8], from: &[u8]) {
    /// The first bytes and the last, which may overlap.
    #[inline(always)]
    fn ends<const N: usize>(to: &mut [u8], from: &[u8]) -> Option<()> {
        let (first, last) = (*from.first_chunk::<N>()?, *from.last_chunk::<N>()?);
        *to.first_chunk_mut()? = first;
        *to.last_chunk_mut()? = last;
        Some(())
    }
    let done = match from.len() {
        4..8 => ends::<4>(to, from),
        8..=16 => ends::<8>(to, from),
        17..=32 => ends::<16>(to, from),
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
                if !put(&mut bytes, shape, !0, &body, false) {
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
            assert!(passed(&bytes, 2 * shape.bucket()) && passed(&bytes, 0));
            assert!(!passed(&bytes, shape.bucket()));
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
            assert!(put(&mut bytes, shape, 0, &77u64.to_le_bytes(), true));
            assert!(put(&mut bytes, shape, 0, b"inside", false));
            assert!(put(&mut bytes, shape, 0, &99u64.to_le_bytes(), true));
            let all: Vec<_> = entries(&bytes, 0, shape).collect();
            assert_eq!(handle_bits(&bytes[all[0].from..all[0].end]), 77);
            assert_eq!(&bytes[all[1].from..all[1].end], b"inside");
            assert_eq!(handle_bits(&bytes[all[2].from..all[2].end]), 99);
            assert!(all[0].outside && !all[1].outside && all[2].outside);
        }
    }
}
