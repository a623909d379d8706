//! Snapshots: tables as of one instant.

use crate::status::{guarded, Status};
use crate::table::{fill, hand_out, larder_table, tables_at};
use crate::terms::{at, larder_terms};
use crate::view::needed;
use larder::api::Event;
use larder_term::{Atom, Term};

/// Takes snapshots of `count` tables of one world at one instant. Writes a handle of each to
/// `snapshots`, in the order of the tables. `larder_table_free` frees a handle and ends its
/// snapshot. O(1) for each table; nothing is copied. If a list is being inserted into a table, the
/// call first helps to finish that. Nobody else waits. `LARDER_TABLE_TYPE` if a table is a snapshot
/// itself or belongs to a transaction, or has another structure than the default; then no snapshot
/// is taken.
///
/// All functions that read a table also accept a snapshot. Those that write return
/// `LARDER_READ_ONLY`. A snapshot doesn't change when its table is cleared or dropped. While it
/// exists, the first change of each key in the table preserves the old rows. The first call of
/// `larder_size` counts the rows of a snapshot.
///
/// # Safety
/// `tables` is null or has `count` pointers, each null or a handle that was not freed; `snapshots`
/// is null or has room for `count` pointers.
#[no_mangle]
pub unsafe extern "C" fn larder_snapshot(
    tables: *const *const larder_table,
    count: usize,
    snapshots: *mut *mut larder_table,
) -> Status {
    guarded(|| {
        // SAFETY: by contract, `tables` is null or has `count` pointers, each null or a handle that
        // was not freed.
        let those = unsafe { tables_at(tables, count) }?;
        let Some(first) = those.first() else {
            return Ok(Status::Ok);
        };
        needed(snapshots, "snapshots")?;
        let taken = first.larder().snapshot(&Vec::from_iter(&those))?;
        for (i, snapshot) in taken.into_iter().enumerate() {
            // SAFETY: `snapshots` is not null, so by contract it has room for `count` pointers.
            // There is one snapshot for each table.
            unsafe { hand_out(snapshot, snapshots.add(i)) };
        }
        Ok(Status::Ok)
    })
}

/// Compares two snapshots of one table. Replaces the contents of `out` by the changes that turn the
/// rows of `old` into those of `new`: `{insert, New}`, `{replace, Old, New}` and `{delete, Old}`,
/// in no order. `LARDER_NONE`, and an empty `out`, if there are none. O(changes since the oldest
/// snapshot that exists): keys that haven't changed aren't read, unless the table was cleared
/// between the two, or has bounds. `LARDER_TABLE_TYPE` if one isn't a snapshot, or they are of
/// different tables.
///
/// # Safety
/// `old` and `new` are null or handles that were not freed; `out` is null or a sequence that nobody
/// else uses, and no view of its terms is used any more.
#[no_mangle]
pub unsafe extern "C" fn larder_diff(
    old: *const larder_table,
    new: *const larder_table,
    out: *mut larder_terms,
) -> Status {
    guarded(|| {
        // SAFETY: by the *handle* contract of `old` and `new`.
        let (old, new) = unsafe { (at(old, "old")?, at(new, "new")?) };
        let (old, new) = (old.snapshot()?, new.snapshot()?);
        let found = old.diff(new)?.into_iter().filter_map(difference).collect();
        // SAFETY: by contract, `out` is null or a sequence that nobody else uses, and no view of
        // its terms is used any more.
        unsafe { fill(out, found) }
    })
}

fn difference(event: Event) -> Option<Term> {
    let tag = |tag: &str| Term::from(Atom::new(tag));
    match event {
        Event::Insert(new) => Some(Term::tuple([tag("insert"), new])),
        Event::Replace(old, new) => Some(Term::tuple([tag("replace"), old, new])),
        Event::Delete(old) => Some(Term::tuple([tag("delete"), old])),
        _ => None,
    }
}
