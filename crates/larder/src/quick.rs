//! The short ways: what nearly all operations on one key are, and nothing beside.
//!
//! A set or ordered_set that is alive and open, somebody who has the right, a value that is short: then an operation is a pin of the epoch, a hash and one call
//! of the index. For what is not so simple the answer is `None`, and nothing was done: the operation that knows all cases says what is wrong, or does it. So a
//! short way has nothing to keep for a longer one, and an error's cause is told in one place.
//!
//! Linearisation points are those of the longer ways (see `read` and `write`).

use crate::ahead::StepFrom;
use crate::keys::{Near, MANY_TO_READ};
use crate::local::Local;
use crate::options::Access;
use crate::owner::Who;
use crate::raw;
use crate::read::Stored;
use crate::store::Index;
use crate::table::{At, Table};
use crate::write::Written;
use larder_index::{Change, Direction, Got, Key, Unique, Was, SHORT};
use larder_term::object::{patch, ObjectRef};
use larder_term::TermRef;

/// The longest value that is changed here.
const PATCHED: usize = 128;

impl Table {
    /// As `may_read`, when nobody asks why not.
    #[inline(always)]
    pub(crate) fn reads(&self, who: impl Who) -> bool {
        self.access() != Access::Private || self.owner() == who.owner()
    }

    /// As `may_write`, when nobody asks why not.
    #[inline(always)]
    pub(crate) fn writes(&self, who: impl Who) -> bool {
        self.access() == Access::Public || self.owner() == who.owner()
    }

    /// Runs `f` on the index of a set or ordered_set.
    #[inline(always)]
    fn on_one<R>(
        &self,
        local: &Local,
        key: &[u8],
        f: impl FnOnce(&At<'_>, &dyn Unique, Key<'_>) -> Option<R>,
    ) -> Option<R> {
        let key = self.key(key);
        let guard = local.pin();
        let at = self.begin_open(&guard)?;
        match &at.store.index {
            Index::One(ix) => f(&at, &**ix, key),
            Index::Many(_) => None,
        }
    }

    /// Calls `see` with the value under the index key, or with none if there is none; it says `None` in its turn if it can't do with that value. The value
    /// is so many bytes; what lies behind it may be anything.
    #[inline(always)]
    pub fn quick_lookup<R>(
        &self,
        local: &Local,
        who: impl Who,
        key: &[u8],
        see: impl FnOnce(Option<(&[u8; SHORT], usize)>) -> Option<R>,
    ) -> Option<R> {
        if !self.reads(who) {
            return None;
        }
        let key = self.key(key);
        let guard = local.pin();
        let Index::One(ix) = &self.open_store(&guard)?.index else {
            return None;
        };
        let mut short = [0; SHORT];
        let found = match ix.get_short(&guard, key, &mut short) {
            Got::Short(len) => Some((&short, len)),
            Got::Absent => None,
            Got::Long => return None,
        };
        // In one place, so that it becomes a part of this.
        see(found)
    }

    /// As `quick_lookup` of so many index keys, of which at most [`TOGETHER`](larder_index::TOGETHER) are looked for; `see` is told which, in order, and says
    /// whether it can do with the value. Gives how many it saw. Their waits for memory overlap.
    #[inline(always)]
    pub fn quick_lookup_many<'k>(
        &self,
        local: &mut Local,
        who: impl Who,
        (count, key): (usize, impl Fn(usize) -> &'k [u8]),
        mut see: impl FnMut(usize, Option<(&[u8; SHORT], usize)>) -> bool,
    ) -> usize {
        if !self.reads(who) {
            return 0;
        }
        let mut near = Near::new();
        near.fill_with(self, count, key);
        let asked = self.copy_short_many(local, near.keys());
        for i in 0..asked {
            let seen = match local.shorts.get(i) {
                (Got::Short(len), value) => see(i, Some((value, len))),
                (Got::Absent, _) => see(i, None),
                (Got::Long, _) => false,
            };
            if !seen {
                return i;
            }
        }
        asked
    }

    /// Copies what is under some keys to the thread's own place for it; of how many keys.
    fn copy_short_many(&self, local: &mut Local, keys: &[Key<'_>]) -> usize {
        let guard = local.pin();
        let Some(store) = self.open_store(&guard) else {
            return 0;
        };
        let Index::One(ix) = &store.index else {
            return 0;
        };
        ix.get_short_many(&guard, keys, store.is_far(MANY_TO_READ), &mut local.shorts);
        keys.len()
    }

    /// Whether there is an object under the index key.
    #[inline(always)]
    pub fn quick_member(&self, local: &Local, who: impl Who, key: &[u8]) -> Option<bool> {
        if !self.reads(who) {
            return None;
        }
        let key = self.key(key);
        let guard = local.pin();
        match &self.open_store(&guard)?.index {
            Index::One(ix) => Some(ix.contains(&guard, key)),
            Index::Many(_) => None,
        }
    }

    /// Stores an object, with `new` if there is none under its key; whether there was none.
    #[inline(always)]
    pub fn quick_insert(
        &self,
        local: &Local,
        who: impl Who,
        object: ObjectRef<'_>,
        new: bool,
    ) -> Option<bool> {
        if !self.writes(who) {
            return None;
        }
        self.on_one(local, object.key(), |at, ix, key| {
            let may = |old: Option<&[u8]>| !new || old.is_none();
            let (written, was) = self.put_one(at, ix, key, object.value(), may);
            matches!(written, Written::Done).then_some(was == Was::Absent)
        })
    }

    /// Deletes what is under the index key.
    #[inline(always)]
    pub fn quick_delete(&self, local: &Local, who: impl Who, key: &[u8]) -> Option<()> {
        if !self.writes(who) {
            return None;
        }
        self.on_one(local, key, |at, ix, key| {
            let (written, _) = self.remove_one(at, ix, key, |_| true);
            matches!(written, Written::Done).then_some(())
        })
    }

    /// Calls `see` with the entry behind another, or before it, if that was read ahead. It gives its answer, and a number that stands for the entry's key for
    /// ever, or 0 for none: see [`Local::has_shown`].
    #[inline(always)]
    pub fn quick_step<R>(
        &self,
        local: &mut Local,
        who: impl Who,
        from: StepFrom<'_>,
        direction: Direction,
        see: impl FnOnce(Stored<'_>) -> (R, u64),
    ) -> Option<R> {
        if !self.reads(who) {
            return None;
        }
        let way = self.way(direction);
        if let Some((key, value)) = self.read_ahead(&mut local.ahead, from, way) {
            let (answer, shown) = see(Stored::new(key, value, self.keypos(), &mut local.plain));
            local.ahead.show(shown);
            return Some(answer);
        }
        let table = self.fixation.watch().number();
        if local.ahead.may_go_on(table, from, way) {
            return self.quick_step_beside_writers(local, from, way, see);
        }
        None
    }

    /// As `quick_step`, after the table was changed, if the leaf that was read was not.
    #[inline(never)]
    fn quick_step_beside_writers<R>(
        &self,
        local: &mut Local,
        from: StepFrom<'_>,
        way: Direction,
        see: impl FnOnce(Stored<'_>) -> (R, u64),
    ) -> Option<R> {
        let guard = local.pin();
        let at = self.begin(&guard).ok()?;
        let (key, value) = self.read_unchanged(&at, &mut local.ahead, from, way)?;
        let (answer, shown) = see(Stored::new(key, value, self.keypos(), &mut local.plain));
        local.ahead.show(shown);
        Some(answer)
    }

    /// Adds an integer to one element of the object under the index key (to that after the key for no position), and gives the sum.
    #[inline(always)]
    pub fn quick_add(
        &self,
        local: &mut Local,
        who: impl Who,
        key: &[u8],
        pos: Option<usize>,
        incr: i64,
    ) -> Option<i64> {
        let (keypos, mut sum) = (self.keypos(), None);
        let pos = pos.unwrap_or(keypos + 1);
        self.quick_patch(local, who, key, |old, new| {
            sum = patch::add(old, keypos, pos, incr, new);
            sum.is_some()
        });
        sum
    }

    /// Replaces one element of the object under the index key by a term that holds no handle.
    #[inline(always)]
    pub fn quick_set(
        &self,
        local: &mut Local,
        who: impl Who,
        key: &[u8],
        pos: usize,
        term: TermRef<'_>,
    ) -> Option<()> {
        let mut set = None;
        self.quick_patch(local, who, key, |old, new| {
            let done = !raw::has_handles(old) && patch::set(old, self.keypos(), pos, term, new);
            set = done.then_some(());
            done
        });
        set
    }

    /// Stores what `f` makes of the value under the index key, if it makes something of it. All handles of the old value must be in the new one, and
    /// no others: so their counts stay as they are.
    #[inline(always)]
    fn quick_patch(
        &self,
        local: &mut Local,
        who: impl Who,
        key: &[u8],
        mut f: impl FnMut(&[u8], &mut Vec<u8>) -> bool,
    ) {
        if !self.writes(who) {
            return;
        }
        let mut scratch = std::mem::take(&mut local.value);
        self.on_one(local, key, |at, ix, key| {
            ix.update_with(at.guard, key, &mut scratch, &mut |old, new| match old {
                // What is longer would make the buffer grow.
                Some(old) if old.len() <= PATCHED && self.still(at) && f(old, new) => {
                    Change::PutScratch
                }
                _ => Change::Keep,
            });
            Some(())
        });
        local.value = scratch;
    }
}
