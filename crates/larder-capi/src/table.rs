//! Operations by key, and on a table as a whole.

use crate::status::{guarded, guarded_or, Failure, Status};
use crate::terms::{all_at, at, at_mut, larder_terms, text_at};
use crate::view::{give, larder_view};
use larder::api::{Snapshot, Table};
use larder::Error;
use larder_term::{Atom, Term, TermRef};
use std::ffi::c_char;

/// A handle of a table. Any number of threads may use one, or several of the same table, at once.
pub struct larder_table(pub(crate) Table, pub(crate) Option<Snapshot>);

/// `LARDER_OK` for something, `LARDER_NONE` for nothing.
pub(crate) fn whether(something: bool) -> Status {
    match something {
        true => Status::Ok,
        false => Status::None,
    }
}

/// The result of an operation; a failure says on what.
pub(crate) fn on<R>(
    table: &larder_table,
    (what, it): (&str, TermRef<'_>),
    result: Result<R, Error>,
) -> Result<R, Failure> {
    result.map_err(|error| Failure::from(error).on(&table.0, what, it))
}

/// Puts results in place of what a sequence holds. The sequence may be the one that the key was
/// viewed in: this comes after all use of it.
///
/// # Safety
/// `out` is null or a sequence that nobody else uses, and no view of its terms is used any more.
pub(crate) unsafe fn fill(out: *mut larder_terms, found: Vec<Term>) -> Result<Status, Failure> {
    let something = !found.is_empty();
    // SAFETY: as the caller says.
    unsafe { at_mut(out, "out") }?.fill(found);
    Ok(whether(something))
}

/// Gives up a handle. The table itself stays: `larder_table_drop` ends it, or the end of its world.
/// A snapshot ends with its handle. Null is nothing to give up.
///
/// # Safety
/// `table` is null, or a handle that was not given up, and no `larder_rows` of it is used any more.
#[no_mangle]
pub unsafe extern "C" fn larder_table_free(table: *mut larder_table) {
    guarded_or((), || {
        if !table.is_null() {
            // SAFETY: as the caller says.
            drop(unsafe { Box::from_raw(table) });
        }
        Ok(())
    });
}

/// Drops the table, for all its handles, which answer `LARDER_NO_TABLE` from then on and are still
/// to be given up. O(1); memory is freed behind.
///
/// # Safety
/// `table` is null or a handle that was not given up.
#[no_mangle]
pub unsafe extern "C" fn larder_table_drop(table: *const larder_table) -> Status {
    guarded(|| {
        // SAFETY: as the caller says.
        unsafe { at(table, "table") }?.0.drop_table()?;
        Ok(Status::Ok)
    })
}

/// Gives the table another name, at most 255 characters. `LARDER_ALREADY_EXISTS`: a named table,
/// and the name in use.
///
/// # Safety
/// As for `larder_table_drop`; `name` is null or ends with a NUL.
#[no_mangle]
pub unsafe extern "C" fn larder_table_rename(
    table: *const larder_table,
    name: *const c_char,
) -> Status {
    guarded(|| {
        // SAFETY: as the caller says.
        let (table, name) = unsafe { (at(table, "table")?, text_at(name, "name")?) };
        table.0.rename(name)?;
        Ok(Status::Ok)
    })
}

/// Inserts a row, a tuple: in a set in place of the one with its key, in a bag beside the others.
/// Atomic. O(1), in an ordered_set O(log n). `LARDER_BAD_ROW` for what is no tuple or too short to
/// have a key; `LARDER_FULL` from structures of a fixed size.
///
/// # Safety
/// As for `larder_table_drop`; the view's terms are as they were when it was made.
#[no_mangle]
pub unsafe extern "C" fn larder_insert(table: *const larder_table, row: larder_view) -> Status {
    guarded(|| {
        // SAFETY: as the caller says.
        let (table, row) = unsafe { (at(table, "table")?, row.some("row")?) };
        on(table, ("row", row), table.0.insert(&row))?;
        Ok(Status::Ok)
    })
}

/// Inserts a row unless its key is there: then `LARDER_NONE`. Atomic. Else as `larder_insert`.
///
/// # Safety
/// As for `larder_insert`.
#[no_mangle]
pub unsafe extern "C" fn larder_insert_new(table: *const larder_table, row: larder_view) -> Status {
    guarded(|| {
        // SAFETY: as the caller says.
        let (table, row) = unsafe { (at(table, "table")?, row.some("row")?) };
        let inserted = on(table, ("row", row), table.0.insert_new(&row))?;
        Ok(whether(inserted))
    })
}

/// Inserts all rows of a sequence at once: nobody sees some of them without the others, and if one
/// is bad none is inserted.
///
/// # Safety
/// As for `larder_table_drop`; `rows` is null or a sequence that nobody changes meanwhile.
#[no_mangle]
pub unsafe extern "C" fn larder_insert_all(
    table: *const larder_table,
    rows: *const larder_terms,
) -> Status {
    guarded(|| {
        // SAFETY: as the caller says.
        let (table, rows) = unsafe { (at(table, "table")?, at(rows, "rows")?) };
        table.0.insert_all(rows.whole()?)?;
        Ok(Status::Ok)
    })
}

/// Inserts all rows of a sequence at once unless one of their keys is there: then none, and
/// `LARDER_NONE`.
///
/// # Safety
/// As for `larder_insert_all`.
#[no_mangle]
pub unsafe extern "C" fn larder_insert_all_new(
    table: *const larder_table,
    rows: *const larder_terms,
) -> Status {
    guarded(|| {
        // SAFETY: as the caller says.
        let (table, rows) = unsafe { (at(table, "table")?, at(rows, "rows")?) };
        Ok(whether(table.0.insert_all_new(rows.whole()?)?))
    })
}

/// Fills `out` with the rows under a key, in order of arrival; `LARDER_NONE` and an empty `out` if
/// there are none. O(1), in an ordered_set O(log n), and the rows. `out` may be the sequence that
/// the key is viewed in.
///
/// # Safety
/// As for `larder_insert`; `out` is null or a sequence that nobody else uses.
#[no_mangle]
pub unsafe extern "C" fn larder_lookup(
    table: *const larder_table,
    key: larder_view,
    out: *mut larder_terms,
) -> Status {
    guarded(|| {
        // SAFETY: as the caller says.
        let (table, key) = unsafe { (at(table, "table")?, key.some("key")?) };
        let found = table.0.lookup(&key)?;
        // SAFETY: as the caller says.
        unsafe { fill(out, found) }
    })
}

/// Fills `out` with the elements at `count` positions, from 1, of the rows under a key: those of
/// one row after those of the other, in order of arrival, each in the order of the positions;
/// `LARDER_NONE` and an empty `out` if there is no such key. The rest of the rows is not copied.
/// Else as `larder_lookup`. `LARDER_BAD_ROW` if a position is 0, or past the end of one of the
/// rows.
///
/// # Safety
/// As for `larder_lookup`; `positions` is null or points to `count` numbers.
#[no_mangle]
pub unsafe extern "C" fn larder_lookup_elements(
    table: *const larder_table,
    key: larder_view,
    positions: *const usize,
    count: usize,
    out: *mut larder_terms,
) -> Status {
    guarded(|| {
        // SAFETY: as the caller says.
        let (table, key) = unsafe { (at(table, "table")?, key.some("key")?) };
        // SAFETY: as the caller says.
        let positions = unsafe { all_at(positions, count, "positions") }?;
        let rows = table.0.lookup_elements(&key, positions);
        let rows = on(table, ("key", key), rows)?;
        // SAFETY: as the caller says.
        unsafe { fill(out, rows.concat()) }?;
        // Of no positions, too, it is said whether the key is there.
        Ok(whether(!rows.is_empty()))
    })
}

/// Whether there is a row under the key: `LARDER_OK` or `LARDER_NONE`.
///
/// # Safety
/// As for `larder_insert`.
#[no_mangle]
pub unsafe extern "C" fn larder_contains(table: *const larder_table, key: larder_view) -> Status {
    guarded(|| {
        // SAFETY: as the caller says.
        let (table, key) = unsafe { (at(table, "table")?, key.some("key")?) };
        Ok(whether(table.0.contains(&key)?))
    })
}

/// Deletes what is under the key; how many rows went, in `*gone` unless that is null. `LARDER_NONE`
/// if there was none.
///
/// # Safety
/// As for `larder_insert`; `gone` is null or may be written to.
#[no_mangle]
pub unsafe extern "C" fn larder_delete(
    table: *const larder_table,
    key: larder_view,
    gone: *mut usize,
) -> Status {
    guarded(|| {
        // SAFETY: as the caller says.
        let (table, key) = unsafe { (at(table, "table")?, key.some("key")?) };
        let n = table.0.delete(&key)?;
        // SAFETY: as the caller says.
        unsafe { give(gone, n) };
        Ok(whether(n > 0))
    })
}

/// Deletes this very row, all its copies in a duplicate_bag; else as `larder_delete`.
///
/// # Safety
/// As for `larder_delete`.
#[no_mangle]
pub unsafe extern "C" fn larder_delete_row(
    table: *const larder_table,
    row: larder_view,
    gone: *mut usize,
) -> Status {
    guarded(|| {
        // SAFETY: as the caller says.
        let (table, row) = unsafe { (at(table, "table")?, row.some("row")?) };
        let n = table.0.delete_object(&row)?;
        // SAFETY: as the caller says.
        unsafe { give(gone, n) };
        Ok(whether(n > 0))
    })
}

/// Deletes what is under the key and fills `out` with it, as `larder_lookup` does. Atomic: of
/// several takers one gets it. If `out` is null, nothing is taken.
///
/// # Safety
/// As for `larder_lookup`.
#[no_mangle]
pub unsafe extern "C" fn larder_take(
    table: *const larder_table,
    key: larder_view,
    out: *mut larder_terms,
) -> Status {
    guarded(|| {
        // Looked at first: what is taken and can't be given would be lost.
        if out.is_null() {
            return Err(Failure::null("out"));
        }
        // SAFETY: as the caller says.
        let (table, key) = unsafe { (at(table, "table")?, key.some("key")?) };
        let found = table.0.take(&key)?;
        // SAFETY: as the caller says.
        unsafe { fill(out, found) }
    })
}

/// Adds to the integer at a position, from 1, of the row under a key; the sum in `*sum` unless that
/// is null. Atomic. If there is no such key, the row `otherwise`, with the key put in, is inserted
/// first, unless it is a view of nothing: then `LARDER_BAD_KEY`. `LARDER_NOT_INTEGER`,
/// `LARDER_BAD_ROW` (no such position, the key's, or `otherwise` too short), `LARDER_TABLE_TYPE`
/// (bags); `LARDER_BIG_SUM`: it was added, and the sum is beyond 64 bits.
///
/// # Safety
/// As for `larder_insert`, for both views; `sum` is null or may be written to.
#[no_mangle]
pub unsafe extern "C" fn larder_add(
    table: *const larder_table,
    key: larder_view,
    position: usize,
    increment: i64,
    otherwise: larder_view,
    sum: *mut i64,
) -> Status {
    guarded(|| {
        // SAFETY: as the caller says.
        let (table, key) = unsafe { (at(table, "table")?, key.some("key")?) };
        // SAFETY: as the caller says.
        let total = match unsafe { otherwise.term() } {
            Some(row) => table.0.add_or(&key, position, increment, &row),
            None => table.0.add(&key, position, increment),
        };
        let total = on(table, ("key", key), total)?;
        // SAFETY: as the caller says.
        unsafe { summed(&total, sum) }
    })
}

/// Gives the sum of an addition.
///
/// # Safety
/// `sum` is null or may be written to.
pub(crate) unsafe fn summed(total: &Term, sum: *mut i64) -> Result<Status, Failure> {
    // The addition has taken effect: an error about the sum must say so, or a caller would add
    // again.
    let Some(total) = total.as_ref().as_int() else {
        return Err(Failure::new(
            Status::BigSum,
            format!("the sum is {total}, which is beyond 64 bits; it is in the table"),
        ));
    };
    // SAFETY: as the caller says.
    unsafe { give(sum, total) };
    Ok(Status::Ok)
}

/// Replaces the element at a position, from 1, of the row under a key; `LARDER_NONE` if there is no
/// such key. Atomic. `LARDER_BAD_ROW` (no such position, or the key's), `LARDER_TABLE_TYPE` (bags).
///
/// # Safety
/// As for `larder_insert`, for both views.
#[no_mangle]
pub unsafe extern "C" fn larder_update(
    table: *const larder_table,
    key: larder_view,
    position: usize,
    element: larder_view,
) -> Status {
    guarded(|| {
        // SAFETY: as the caller says.
        let (table, key) = unsafe { (at(table, "table")?, key.some("key")?) };
        // SAFETY: as the caller says.
        let element = unsafe { element.some("element") }?;
        let updated = table.0.update(&key, position, &element);
        Ok(whether(on(table, ("key", key), updated)?))
    })
}

/// A step through the keys: fills `out` with the key that is found.
///
/// # Safety
/// As for `larder_lookup`.
unsafe fn step(
    table: *const larder_table,
    out: *mut larder_terms,
    find: impl FnOnce(&larder_table) -> Result<Option<Term>, Failure>,
) -> Status {
    guarded(|| {
        // SAFETY: as the caller says.
        let table = unsafe { at(table, "table") }?;
        let found = find(table)?;
        // SAFETY: as the caller says.
        unsafe { fill(out, found.into_iter().collect()) }
    })
}

/// Fills `out` with the first key, in key order for an ordered_set; `LARDER_NONE` if the table is
/// empty.
///
/// # Safety
/// As for `larder_table_drop`; `out` is null or a sequence that nobody else uses.
#[no_mangle]
pub unsafe extern "C" fn larder_first(
    table: *const larder_table,
    out: *mut larder_terms,
) -> Status {
    // SAFETY: as the caller says.
    unsafe { step(table, out, |table| Ok(table.0.first()?)) }
}

/// Fills `out` with the last key of an ordered_set; for other tables, as `larder_first`.
///
/// # Safety
/// As for `larder_first`.
#[no_mangle]
pub unsafe extern "C" fn larder_last(table: *const larder_table, out: *mut larder_terms) -> Status {
    // SAFETY: as the caller says.
    unsafe { step(table, out, |table| Ok(table.0.last()?)) }
}

/// Fills `out`, which may be the sequence that the key is viewed in, with the key after this one;
/// `LARDER_NONE` if it is the last. An ordered_set takes any key; other tables one that is there,
/// else `LARDER_BAD_KEY`. Keys that are there throughout are met once, whatever others write.
///
/// # Safety
/// As for `larder_lookup`.
#[no_mangle]
pub unsafe extern "C" fn larder_next(
    table: *const larder_table,
    key: larder_view,
    out: *mut larder_terms,
) -> Status {
    // SAFETY: as the caller says.
    unsafe {
        step(table, out, |table| {
            let key = key.some("key")?;
            on(table, ("key", key), table.0.next(&key))
        })
    }
}

/// As `larder_next`, towards the front of an ordered_set; for other tables, the same.
///
/// # Safety
/// As for `larder_lookup`.
#[no_mangle]
pub unsafe extern "C" fn larder_prev(
    table: *const larder_table,
    key: larder_view,
    out: *mut larder_terms,
) -> Status {
    // SAFETY: as the caller says.
    unsafe {
        step(table, out, |table| {
            let key = key.some("key")?;
            on(table, ("key", key), table.0.prev(&key))
        })
    }
}

/// Empties the table at one instant; how many rows went, in `*gone` unless that is null: exactly,
/// if nobody was writing at that moment. O(1); memory is freed behind.
///
/// # Safety
/// As for `larder_table_drop`; `gone` is null or may be written to.
#[no_mangle]
pub unsafe extern "C" fn larder_clear(table: *const larder_table, gone: *mut usize) -> Status {
    guarded(|| {
        // SAFETY: as the caller says.
        let n = unsafe { at(table, "table") }?.0.clear()?;
        // SAFETY: as the caller says.
        unsafe { give(gone, n) };
        Ok(Status::Ok)
    })
}

/// The number of rows; 0 for a table that was dropped. O(1).
///
/// # Safety
/// As for `larder_table_drop`.
#[no_mangle]
pub unsafe extern "C" fn larder_size(table: *const larder_table) -> usize {
    // SAFETY: as the caller says.
    guarded_or(0, || Ok(unsafe { at(table, "table") }?.0.len()))
}

/// Bytes of memory that the table holds; binaries over 127 bytes are not among them. 0 for a table
/// that was dropped. O(1).
///
/// # Safety
/// As for `larder_table_drop`.
#[no_mangle]
pub unsafe extern "C" fn larder_memory(table: *const larder_table) -> usize {
    // SAFETY: as the caller says.
    guarded_or(0, || Ok(unsafe { at(table, "table") }?.0.memory()))
}

/// Fills `out` with one map with the properties of the table under the atoms `name`, `named`,
/// `type`, `keypos`, `size`, `memory`, `compressed`, `decentralized_counters`, `structure`, and
/// `stats`, a map of the structure's own figures.
///
/// # Safety
/// As for `larder_first`.
#[no_mangle]
pub unsafe extern "C" fn larder_info(table: *const larder_table, out: *mut larder_terms) -> Status {
    guarded(|| {
        // SAFETY: as the caller says.
        let found = info_map(&unsafe { at(table, "table") }?.0)?;
        // SAFETY: as the caller says.
        unsafe { fill(out, vec![found]) }
    })
}

fn info_map(table: &Table) -> Result<Term, Failure> {
    let table = table.engine_table();
    let info = table.info().ok_or(Error::NoTable)?;
    let stats = table.stats();
    let figures = [
        ("leaves", stats.leaves as u64),
        ("inner_nodes", stats.inner_nodes as u64),
        ("depth", stats.depth as u64),
        ("splits", stats.splits),
        ("merges", stats.merges),
        ("contended", stats.contended),
    ];
    let figures = figures.into_iter().chain(stats.more);
    let figures: Vec<_> = figures
        .map(|(name, n)| (Term::atom(name), Term::from(n)))
        .collect();
    let properties = vec![
        (Term::atom("name"), Term::from(info.name)),
        (Term::atom("named"), Term::from(info.named)),
        (Term::atom("type"), Term::from(kind(info.kind))),
        (Term::atom("keypos"), Term::from(info.keypos as u64)),
        (Term::atom("size"), Term::from(info.size as u64)),
        (Term::atom("memory"), Term::from(info.memory as u64)),
        (Term::atom("compressed"), Term::from(info.compressed)),
        (
            Term::atom("decentralized_counters"),
            Term::from(info.decentralized_counters),
        ),
        (Term::atom("structure"), Term::atom(&info.structure)),
        (Term::atom("stats"), map(figures)?),
    ];
    map(properties)
}

fn map(pairs: Vec<(Term, Term)>) -> Result<Term, Failure> {
    Term::map(pairs).map_err(|e| Failure::new(Status::Panic, e.to_string()))
}

fn kind(kind: larder::TableKind) -> Atom {
    Atom::new(match kind {
        larder::TableKind::Set => "set",
        larder::TableKind::OrderedSet => "ordered_set",
        larder::TableKind::Bag => "bag",
        larder::TableKind::DuplicateBag => "duplicate_bag",
    })
}

/// Writes the table to a file, in place of what is there: that stays until the new file is whole
/// and on the disk. The file has the table as of one moment of the call. `LARDER_FILE` with what
/// the system said.
///
/// # Safety
/// As for `larder_table_drop`; `path` is null or ends with a NUL.
#[no_mangle]
pub unsafe extern "C" fn larder_table_save(
    table: *const larder_table,
    path: *const c_char,
) -> Status {
    guarded(|| {
        // SAFETY: as the caller says.
        let (table, path) = unsafe { (at(table, "table")?, text_at(path, "path")?) };
        table.0.save(path)?;
        Ok(Status::Ok)
    })
}
