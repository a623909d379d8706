//! Atomic inserts of lists.
//!
//! ```text
//!  slice 1 … i      encode objects of the list into the engine's arena
//!                   (a bad one: badarg, nothing happened)
//!  slice i+1 … n    the engine applies them under the table's batch latch
//!                   (whoever finds it held helps)
//! ```
//!
//! A list of one object is inserted as that object. A list that is inserted within one slice needs
//! no resource. If the process dies while objects are encoded, nothing has been inserted. If it
//! dies while the list is applied, the next thread that uses the table finishes it.

use super::single::{insert_new_to, insert_to, weight, with_key};
use crate::call::{boolean, Call, Native, Raise, Reply, BADARG};
use crate::entry;
use crate::layout;
use crate::resource::Registered;
use crate::sys::*;
use crate::tables::{self, caller_id, lazy_caller_id, reply_or_raise};
use crate::terms::atoms;
use crate::terms::encode::{stack_bytes, Row};
use larder::host::{Budget, EngineTable, ListJob, ObjectList, Step};
use larder_term::object::outside_bytes;
use parking_lot::Mutex;
use std::sync::Arc;

/// An insertion between two slices: the resource that is an argument of `insert_more`.
pub struct Insertion {
    table: Arc<EngineTable>,
    /// Whether it is an `insert_new`.
    new: bool,
    stage: Mutex<Stage<'static>>,
}

/// The stage of an insertion.
enum Stage<'t> {
    /// Objects are being encoded.
    Gather(ObjectList),
    /// The engine is inserting them.
    Apply(ListJob<'t>),
    /// The insertion has ended, or a slice is running.
    Over,
}

impl Stage<'_> {
    /// The same stage, to be kept between two slices.
    fn kept(self) -> Stage<'static> {
        match self {
            Stage::Gather(list) => Stage::Gather(list),
            Stage::Apply(job) => Stage::Apply(job.into_owned()),
            Stage::Over => Stage::Over,
        }
    }
}

/// The resource type of insertions.
pub static INSERTIONS: Registered<Insertion> = Registered::new();

/// insert_list(Table, List) -> true.
pub fn insert_list(call: &Call<'_>) -> Reply {
    begin(call, false)
}

/// insert_new_list(Table, List) -> boolean().
pub fn insert_new_list(call: &Call<'_>) -> Reply {
    begin(call, true)
}

fn begin(call: &Call<'_>, new: bool) -> Reply {
    // One object needs no list.
    if let Some((object, layout::NIL)) = layout::cell(call.args[1]) {
        let insert = if new { insert_new_to } else { insert_to };
        return tables::with_local(call, |table, local| insert(call, table, local, object));
    }
    tables::with(call, call.args[0], |table| {
        reply_or_raise(call, table, table.check_write(caller_id(call)))?;
        // There is nothing to insert.
        if call.args[1] == layout::NIL {
            return Ok(atoms::TRUE.word());
        }
        // Usual for a list that exists already: nothing is encoded in vain.
        if new && is_refused(call, table)? {
            return Ok(atoms::FALSE.word());
        }
        let mut stage = Stage::Gather(ObjectList::new());
        slice(call, table, new, &mut stage, call.args[1], None)
    })
}

/// The greatest number of objects of a list that are looked at before any is encoded.
const LOOK: usize = 256;

/// Whether the first key of a short list is in the table, or the last one. An error if the list
/// contains something other than objects, or ends in something other than `[]`; objects of a longer
/// one are checked when they are encoded.
fn is_refused(call: &Call<'_>, table: &Arc<EngineTable>) -> Result<bool, Raise> {
    let (mut rest, mut keys) = (call.args[1], None);
    // Note the first key and the last one.
    for _ in 0..LOOK {
        let Some((object, tail)) = layout::cell(rest) else {
            break;
        };
        let elements = layout::tuple(object).ok_or(BADARG)?;
        let &key = elements.get(table.keypos() - 1).ok_or(BADARG)?;
        keys = Some((keys.map_or(key, |(first, _)| first), key));
        rest = tail;
    }
    match keys {
        // The list is longer. It is encoded in any case.
        _ if layout::is_cell(rest) => Ok(false),
        Some((first, last)) if rest == layout::NIL => {
            Ok(is_there(call, table, first) || is_there(call, table, last))
        }
        _ => Err(BADARG),
    }
}

/// Whether the table has a key. Then the instant of this look-up is that at which an `insert_new`
/// of a list with the key takes effect.
fn is_there(call: &Call<'_>, table: &Arc<EngineTable>, key: Word) -> bool {
    let found = with_key(call, table, key, |key| {
        Ok(larder::host::with_local(|local| {
            table.member_in(local, lazy_caller_id(call), key)
        }))
    });
    matches!(found, Ok(Ok(true)))
}

/// insert_more(Insertion, Rest): runs a slice after the first. Rest are the objects that haven't
/// been encoded yet.
pub fn insert_more(call: &Call<'_>) -> Reply {
    let insertion = INSERTIONS.get(call, call.args[0]).ok_or(BADARG)?;
    // The stage is taken out, so that a slice which fails leaves no half of it.
    let mut stage = std::mem::replace(&mut *insertion.stage.lock(), Stage::Over);
    slice(
        call,
        &insertion.table,
        insertion.new,
        &mut stage,
        call.args[1],
        Some(insertion),
    )
}

/// Runs one slice of an insertion. `begun` is its resource, after the first slice.
fn slice<'t>(
    call: &Call<'_>,
    table: &'t Arc<EngineTable>,
    new: bool,
    stage: &mut Stage<'t>,
    mut rest: Word,
    begun: Option<&Insertion>,
) -> Reply {
    let mut budget = Budget::slice();
    // The stage changes where it lies: a copy of words that were just stored waits for them.
    // 1. Encode objects until the list ends or the budget is used up. Nobody can see them yet.
    if let Stage::Gather(list) = stage {
        rest = gather(call, table, list, rest, &mut budget)?;
        if rest == layout::NIL {
            // All are encoded. From here on the list will be inserted, even if this process dies.
            // The caller's right to write was checked before the first slice. If the table was
            // dropped since, the first step finds that out.
            *stage = Stage::Apply(table.begin_permitted_insert(std::mem::take(list), new));
        }
    }
    // 2. Let the engine insert objects, with the rest of the budget.
    match stage {
        Stage::Gather(_) => {}
        Stage::Apply(job) => {
            let is_done = !budget.is_exhausted()
                && reply_or_raise(call, table, job.step(&mut budget))? == Step::Done;
            if is_done {
                call.spent(budget.spent());
                return Ok(boolean(!new || job.inserted()));
            }
        }
        Stage::Over => return Err(BADARG),
    }
    // 3. If the insertion isn't done, keep it in a resource, and schedule another slice.
    let entry: Native = entry::insert_more;
    let stage = std::mem::replace(stage, Stage::Over).kept();
    match begun {
        Some(insertion) => {
            *insertion.stage.lock() = stage;
            Ok(call.later(entry, &[call.args[0], rest]))
        }
        None => {
            let insertion = INSERTIONS.make(Insertion {
                table: Arc::clone(table),
                new,
                stage: Mutex::new(stage),
            });
            Ok(call.later(entry, &[insertion.term(call.env), rest]))
        }
    }
}

/// Encodes objects until the list ends or the budget is used up. Returns the rest of the list,
/// which is `[]` only at its end.
fn gather(
    call: &Call<'_>,
    table: &Arc<EngineTable>,
    list: &mut ObjectList,
    mut rest: Word,
    budget: &mut Budget,
) -> Result<Word, Raise> {
    // Encode each object on the stack, and copy it to the arena of the list.
    let (mut key, mut value) = (stack_bytes(), stack_bytes());
    let mut row = Row::at([&mut key, &mut value], call.env);
    while let Some((tuple, tail)) = layout::cell(rest) {
        let elements = layout::tuple(tuple).ok_or(BADARG)?;
        row.clear();
        row.write(table, elements)?;
        let object = row.object();
        list.push_ref(object);
        rest = tail;
        let (plain, copied) = (
            object.key().len() + row.encoded_len(),
            outside_bytes(object.value()),
        );
        // Charge the budget for the object, and for encoding its bytes.
        let bytes = weight(plain, copied);
        if !budget.spend(1 + (bytes / 128) as u32) && rest != layout::NIL {
            return Ok(rest);
        }
    }
    (rest == layout::NIL).then_some(rest).ok_or(BADARG)
}
