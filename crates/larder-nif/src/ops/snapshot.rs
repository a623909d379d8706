//! Taking, releasing and comparing snapshots.

use crate::call::{self, Call, Raise, Reply, BADARG};
use crate::entry;
use crate::layout;
use crate::resource::Registered;
use crate::sys::callback::with_env;
use crate::sys::*;
use crate::tables::owners::{self, ENGINE};
use crate::tables::{self, caller_id, reply_or_raise};
use crate::terms::{atoms, decode};
use larder::host::{Budget, DiffJob, Difference, EngineTable, Error, Step};
use parking_lot::Mutex;
use std::sync::Arc;

/// snapshot([Table]) -> [Snapshot], in the order of the tables, all of one instant.
pub fn snapshot(call: &Call<'_>) -> Reply {
    // All tables are found, and all rights checked, before any snapshot is taken.
    let tables = tables::get_all(call, call.args[0], |table| {
        reply_or_raise(call, table, table.check_read(caller_id(call)))?;
        if table.is_snapshot() {
            return Err(Raise::Cause(atoms::IS_SNAPSHOT));
        }
        Ok(())
    })?;
    // From here on the snapshots end with the caller.
    owners::watch(call.env, call.self_pid());
    let tables: Vec<&Arc<EngineTable>> = tables.iter().collect();
    match with_env(call.env, || ENGINE.snapshot(&tables, caller_id(call))) {
        Ok(snapshots) => {
            call.spent(10 * tables.len() as u64);
            let ids: Vec<Word> = snapshots
                .iter()
                .map(|snapshot| tables::term(call.env, snapshot))
                .collect();
            Ok(call.list(&ids))
        }
        // A list is being inserted into one of the tables.
        Err(Error::Busy) => {
            let mut budget = Budget::slice();
            for table in tables {
                table.help_batch(&mut budget);
            }
            Err(Raise::Again)
        }
        // A table has a structure of the studies, or is a transaction's view.
        Err(Error::TableType) => Err(Raise::Cause(atoms::STRUCTURE)),
        Err(error) => Err(Raise::Cause(call::cause(&error))),
    }
}

/// release(Snapshot) -> true.
pub fn release(call: &Call<'_>) -> Reply {
    let table = tables::get(call, call.args[0])?;
    match table.release_snapshot(caller_id(call)) {
        Err(Error::TableType) => Err(Raise::Cause(atoms::NOT_SNAPSHOT)),
        other => reply_or_raise(call, &table, other).map(|()| atoms::TRUE.word()),
    }
}

/// A comparison between two slices.
pub struct Diff {
    old: Arc<EngineTable>,
    job: DiffJob,
}

/// The resource type of comparisons; `None` after the last slice.
pub static DIFFS: Registered<Mutex<Option<Diff>>> = Registered::new();

/// diff(Old, New) -> [{insert, Object} | {replace, OldObject, NewObject} | {delete, Object}], in no
/// order.
pub fn diff(call: &Call<'_>) -> Reply {
    let old = tables::get(call, call.args[0])?;
    let new = tables::get(call, call.args[1])?;
    // Both must be snapshots, and readable.
    for table in [&old, &new] {
        reply_or_raise(call, table, table.check_read(caller_id(call)))?;
        if !table.is_snapshot() {
            return Err(Raise::Cause(atoms::NOT_SNAPSHOT));
        }
    }
    let job = match old.diff(&new, caller_id(call)) {
        // The two are snapshots, but not of the same table.
        Err(Error::TableType) => return Err(Raise::Cause(atoms::OTHER_TABLE)),
        job => reply_or_raise(call, &old, job)?,
    };
    let mut diff = Diff { old, job };
    // Often one slice is enough. Otherwise the job becomes a resource.
    match diff.slice(call, layout::NIL)? {
        (Step::Done, found) => Ok(found),
        (Step::More, found) => {
            let resource = DIFFS.make(Mutex::new(Some(diff)));
            Ok(call.later(entry::diff_more, &[resource.term(call.env), found]))
        }
    }
}

/// diff_more(Diff, Found): runs a slice after the first.
pub fn diff_more(call: &Call<'_>) -> Reply {
    let mut running = DIFFS.get(call, call.args[0]).ok_or(BADARG)?.lock();
    let diff = running.as_mut().ok_or(BADARG)?;
    let sliced = diff.slice(call, call.args[1]);
    if let Ok((Step::More, found)) = sliced {
        return Ok(call.later(entry::diff_more, &[call.args[0], found]));
    }
    // Release what it holds now, not when the resource is collected.
    *running = None;
    sliced.map(|(_, found)| found)
}

impl Diff {
    /// Runs a slice. Its results are put in front of the earlier ones.
    fn slice(&mut self, call: &Call<'_>, mut found: Word) -> Result<(Step, Word), Raise> {
        let mut budget = Budget::slice();
        let step = self.job.step(&mut budget, &mut |difference| {
            let object = |object| decode::object(&call.heap, object);
            let word = match difference {
                Difference::Insert(new) => call.tuple(&[atoms::INSERT.word(), object(new)]),
                Difference::Replace { old, new } => {
                    call.tuple(&[atoms::REPLACE.word(), object(old), object(new)])
                }
                Difference::Delete(old) => call.tuple(&[atoms::DELETE.word(), object(old)]),
            };
            // Differences have no order, so each is put in front.
            found = call.heap.cell(word, found);
        });
        let step = reply_or_raise(call, &self.old, step)?;
        if step == Step::Done {
            call.spent(budget.spent());
        }
        Ok((step, found))
    }
}
