//! Whether a change may be made. The table may have no room for it, or a unique index may refuse
//! it.

use super::begin::{Admission, Operation};
use crate::bounds::{self, object_of, Bounded, ObjectTimes};
use crate::indexes::{note_taken, Refused};
use crate::table::EngineTable;
use larder_index::{Key, Unique};
use std::sync::Arc;

/// The outcome of a change.
pub(crate) enum Written {
    /// It was made, or there was nothing to do.
    Done,
    /// The state word has changed since the operation began. The caller restarts.
    Stale,
    /// It was refused: there is no room for it.
    Full,
    /// It was refused: another row has its value in a unique index (`indexes::taken`).
    Taken,
}

/// Whether `ix` is the index below the bounds of the operation's table, whose values have stamps.
fn is_below_bounds(op: &Operation<'_>, ix: &dyn Unique) -> bool {
    let is_own = |bounded: &Arc<Bounded>| std::ptr::addr_eq(ix, &**bounded.below());
    op.store.bounded().is_some_and(is_own)
}

/// Whether the store refuses to replace `old` by `new`, or to add `new`, and why. If it doesn't
/// refuse, the row's values have been claimed in unique indexes. `ix` is the index to which a set
/// or ordered_set writes.
#[cold]
pub(super) fn check_room_and_claim(
    table: &EngineTable,
    op: &Operation<'_>,
    key: Key<'_>,
    old: Option<&[u8]>,
    new: &[u8],
    ix: Option<&dyn Unique>,
) -> Option<Written> {
    let has_stamps = ix.is_some_and(|ix| is_below_bounds(op, ix));
    let row = |value| match has_stamps {
        true => object_of(value),
        false => value,
    };
    // Weights are those of objects without stamps.
    let is_full = op.store.has_limit() && op.refuses(key, old.map(row), row(new));
    let full = is_full.then_some(Written::Full);
    // A batch and a commit have already claimed the values of all their rows.
    if matches!(op.admission, Admission::BATCH | Admission::COMMIT) {
        return full;
    }
    let Some(indexes) = op.store.layers().indexes.as_ref() else {
        return full;
    };
    // An expired row gives its values up, and may lack entries.
    let is_expired = |old: &&[u8]| has_stamps && ObjectTimes::of(old).is_expired(bounds::now());
    let (old, new) = (old.filter(|old| !is_expired(old)).map(row), row(new));
    // Claims are made last, since each must be given back if the write is refused after it.
    // Without room, they only show whether a value is taken, which is reported first.
    let may_keep = || !is_full && table.revalidate(op);
    let claimed = indexes.claim(op.guard, key.bytes, old, new, may_keep);
    match claimed {
        // A write without room breaks no index that is being built.
        Err(Refused::Taken(index)) if is_full && indexes.find(index).is_none() => full,
        Err(why @ Refused::Taken(_)) => Some(why.into()),
        other => full.or(other.err().map(Written::from)),
    }
}

impl From<Refused> for Written {
    fn from(why: Refused) -> Self {
        match why {
            Refused::Taken(index) => {
                note_taken(index);
                Written::Taken
            }
            // Another write has claimed the value and may still give it up. Restart, and look
            // again.
            Refused::Undecided => Written::Stale,
        }
    }
}
