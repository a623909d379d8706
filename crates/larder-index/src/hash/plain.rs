//! Buckets as plain bytes: of a leaf that nobody else can write, or of a copy that was checked.

use super::shape::{object_size, Shape, HANDLE, LANE, MANY, OUTSIDE};
use std::ops::Range;

/// An entry of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Seven bits of its hash.
    pub(crate) tag: u8,
    /// Where its body lies, in the bytes that hold all buckets; a handle if it is outside.
    pub(crate) from: usize,
    /// Where its body ends.
    pub(crate) end: usize,
    /// The body is a handle.
    pub(crate) outside: bool,
}

fn lane(bucket: &[u8], i: usize) -> u16 {
    u16::from_le_bytes([bucket[LANE * i], bucket[LANE * i + 1]])
}

fn set_lane(bucket: &mut [u8], i: usize, lane: u16) {
    bucket[LANE * i..LANE * (i + 1)].copy_from_slice(&lane.to_le_bytes());
}

/// How many entries were passed on from the bucket that begins at `at`.
#[inline]
pub(crate) fn passed(bytes: &[u8], at: usize) -> bool {
    bytes[at + 1] != 0
}

/// The entries of the bucket that lies at `at` in `bytes`.
#[inline]
pub(crate) fn entries(bytes: &[u8], at: usize, shape: Shape) -> impl Iterator<Item = Entry> + '_ {
    let (size, unit) = (shape.bucket(), shape.unit());
    let bucket = &bytes[at..at + size];
    let mut end = size;
    (1..=usize::from(bucket[0])).map(move |i| {
        let lane = lane(bucket, i);
        let mut from = usize::from(lane & 0xFF) << unit;
        let (after, outside) = (end, lane & OUTSIDE != 0);
        end = from;
        let mut to = after;
        if outside {
            to = from + HANDLE;
        } else if unit > 0 {
            to -= usize::from(bucket[from]);
            from += 1;
        }
        Entry {
            tag: (lane >> 8 & 0x7F) as u8,
            from: at + from,
            end: at + to,
            outside,
        }
    })
}

/// The bits of a handle that lies in `bytes`.
pub(crate) fn handle_bits(bytes: &[u8], range: Range<usize>) -> u64 {
    bytes[range].try_into().map_or(0, u64::from_le_bytes)
}

/// Puts an entry in its home bucket or in the next that has room. False, and nothing changed, if none has.
pub(crate) fn put(bytes: &mut [u8], shape: Shape, hash: u64, body: &[u8], outside: bool) -> bool {
    let (home, tag) = shape.place(hash);
    let size = if outside {
        body.len()
    } else {
        object_size(body.len(), shape.class)
    };
    let mut at = home;
    while room(
        &bytes[at * shape.bucket()..][..shape.bucket()],
        shape.unit(),
    ) < size + LANE
    {
        at = shape.next(at);
        if at == home {
            return false;
        }
    }
    let mut from = home;
    while from != at {
        let passed = &mut bytes[from * shape.bucket() + 1];
        *passed = u16::from(*passed).saturating_add(1).min(MANY) as u8;
        from = shape.next(from);
    }
    let bucket = &mut bytes[at * shape.bucket()..][..shape.bucket()];
    append(bucket, shape.unit(), tag, size, body, outside);
    true
}

fn heap(bucket: &[u8], unit: u32) -> usize {
    match usize::from(bucket[0]) {
        0 => bucket.len(),
        n => usize::from(lane(bucket, n) & 0xFF) << unit,
    }
}

fn room(bucket: &[u8], unit: u32) -> usize {
    heap(bucket, unit) - LANE * (usize::from(bucket[0]) + 1)
}

fn append(bucket: &mut [u8], unit: u32, tag: u8, size: usize, body: &[u8], outside: bool) {
    let from = heap(bucket, unit) - size;
    let n = bucket[0] + 1;
    let mark = if outside { OUTSIDE } else { 0 };
    set_lane(
        bucket,
        usize::from(n),
        (from >> unit) as u16 | u16::from(tag) << 8 | mark,
    );
    bucket[0] = n;
    let mut at = from;
    if unit > 0 && !outside {
        bucket[at] = (size - 1 - body.len()) as u8;
        at += 1;
    }
    bucket[at..at + body.len()].copy_from_slice(body);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_is_found_and_overflows_to_the_next() {
        for class in 0..=5 {
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
                    assert!(!e.outside && e.tag == 127);
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
                .map(|b| object_size(b.len(), class) + LANE)
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
        for class in 0..=5 {
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
            assert_eq!(handle_bits(&bytes, all[0].from..all[0].end), 77);
            assert_eq!(&bytes[all[1].from..all[1].end], b"inside");
            assert_eq!(handle_bits(&bytes, all[2].from..all[2].end), 99);
            assert!(all[0].outside && !all[1].outside && all[2].outside);
        }
    }
}
