//! The mark of an entry while the entry is being written (see
//! [`Unique::put_marked`](crate::Unique::put_marked)).

/// A mark as it was, and as the closure of the write has left it. All functions do nothing if
/// `MARKED` isn't set, and the mark is 0 then.
pub(crate) struct Mark {
    before: u64,
    pub(crate) now: u64,
}

impl Mark {
    /// The mark of an entry; 0 if there is none.
    #[inline]
    pub(crate) fn of<const MARKED: bool, E>(entry: Option<E>, read: impl FnOnce(E) -> u64) -> Mark {
        let before = match entry {
            Some(entry) if MARKED => read(entry),
            _ => 0,
        };
        Mark {
            before,
            now: before,
        }
    }

    /// The mark of the entry that the write inserts, if it inserts one; else 0.
    #[inline]
    pub(crate) fn of_new<const MARKED: bool>(&self, inserts: bool) -> u64 {
        match MARKED && inserts {
            true => self.now,
            false => 0,
        }
    }

    /// Sets the mark, if it is another one now and there is an entry. This comes before the write,
    /// which keeps or forgets it.
    #[inline]
    pub(crate) fn set<const MARKED: bool, E>(self, entry: Option<E>, write: impl FnOnce(E, u64)) {
        match entry {
            Some(entry) if MARKED && self.now != self.before => write(entry, self.now),
            _ => {}
        }
    }
}
