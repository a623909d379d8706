//! The stamp after an object in a bounded table: its times, as a binary term.
//!
//! ```text
//!  object … │ BIN 15 │ deadline │ armed │ hard │      five bytes each, little endian
//! ```
//!
//! The stamp is the last of the value's terms, so `raw::retain_value` and similar functions skip
//! it.

use larder_index::Change;

/// The tag of a binary (`larder_term`, see docs/design.md 2.1).
const BIN: u8 = 0x15;

/// The number of bytes of a time: 34 years of milliseconds.
const TIME: usize = 5;

/// The number of bytes of a stamp.
pub(crate) const LEN: usize = 2 + 3 * TIME;

/// The latest time, which stands for "never".
pub(crate) const NEVER: u64 = (1 << (8 * TIME)) - 1;

/// A time before all others, with which no object is expired. It stands for the current time where
/// that isn't needed.
pub(crate) const NO_TIME: u64 = 0;

/// The times of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ObjectTimes {
    /// The time from which on the object is expired.
    pub(crate) deadline: u64,
    /// The time of its timer; `NEVER` if it has none.
    pub(crate) armed: u64,
    /// The latest deadline that reads may set.
    pub(crate) hard: u64,
}

impl ObjectTimes {
    /// The times of an object that never had a deadline.
    pub(crate) const UNLIMITED: ObjectTimes = ObjectTimes {
        deadline: NEVER,
        armed: NEVER,
        hard: NEVER,
    };

    /// Reads the stamp of a value in a bounded table's index.
    #[inline]
    pub(crate) fn of(value: &[u8]) -> ObjectTimes {
        // The stamp has a fixed length. So it is found from the end, without walking over the
        // object.
        let from = value.len() - LEN;
        debug_assert_eq!(value[from..from + 2], [BIN, (LEN - 2) as u8]);
        let time = |i: usize| {
            let mut bytes = [0; 8];
            let at = from + 2 + i * TIME;
            bytes[..TIME].copy_from_slice(&value[at..at + TIME]);
            u64::from_le_bytes(bytes)
        };
        ObjectTimes {
            deadline: time(0),
            armed: time(1),
            hard: time(2),
        }
    }

    /// Appends the stamp to an object.
    #[inline]
    pub(crate) fn push(self, object: &mut Vec<u8>) {
        object.extend_from_slice(&[BIN, (LEN - 2) as u8]);
        for time in [self.deadline, self.armed, self.hard] {
            object.extend_from_slice(&time.to_le_bytes()[..TIME]);
        }
    }

    /// The change that puts this stamp in place of that of a value. `out` is an empty buffer.
    pub(crate) fn replace(self, value: &[u8], out: &mut Vec<u8>) -> Change {
        self.push(out);
        Change::splice(value, object_of(value).len(), LEN, out)
    }

    /// Whether the object is expired at this time.
    #[inline]
    pub(crate) fn is_expired(self, now: u64) -> bool {
        self.deadline <= now
    }
}

/// The time `ms` milliseconds after `now`.
#[inline]
pub(crate) fn later(now: u64, ms: u64) -> u64 {
    now.saturating_add(ms).min(NEVER)
}

/// The object in a value.
#[inline]
pub(crate) fn object_of(value: &[u8]) -> &[u8] {
    &value[..value.len() - LEN]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_comes_back_and_is_a_term() {
        for times in [[1, 2, 3], [NEVER; 3], [0, NEVER, 1 << 39]] {
            let [deadline, armed, hard] = times;
            let stamp = ObjectTimes {
                deadline,
                armed,
                hard,
            };
            let mut value = b"object".to_vec();
            stamp.push(&mut value);
            assert_eq!(ObjectTimes::of(&value), stamp);
            assert_eq!(object_of(&value), b"object");
            assert_eq!(larder_term::skip(&value[6..]), LEN);
        }
    }

    #[test]
    fn no_time_is_later_than_far() {
        assert_eq!(later(1, u64::MAX), NEVER);
        assert_eq!(later(5, 7), 12);
    }
}
