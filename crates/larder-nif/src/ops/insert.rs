//! Lists of objects, inserted all or not at all.
//!
//! ```text
//!  slice 1 … i      encode objects of the list into the engine's arena      a bad one: badarg, nothing happened
//!  slice i+1 … n    the engine applies them under the table's batch latch    whoever finds it held helps
//! ```
//!
//! A list of one object is that object. A list that is done within one slice makes no resource. A
//! process that dies while encoding leaves nothing behind; one that dies while applying leaves the
//! rest to whoever comes next to the table.

use super::single::{insert_new_to, insert_to, weight};
use crate::call::{boolean, Call, Native, Raise, Reply, BADARG};
use crate::entry;
use crate::layout;
use crate::resource::Registered;
use crate::sys::*;
use crate::tables::{self, answer, who};
use crate::terms::atoms;
use crate::terms::encode::{stack_bytes, Row};
use larder::{Budget, ListJob, ObjectList, Step, Table};
use larder_term::object::outside_bytes;
use parking_lot::Mutex;
use std::sync::Arc;

/// An insertion between two slices.
pub struct Insertion {
    table: Arc<Table>,
    new: bool,
    stage: Mutex<Stage>,
}

enum Stage {
    Gather(ObjectList),
    Apply(ListJob),
    Over,
}

/// Insertions.
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
        return tables::with_local(call, call.args[0], |table, local| {
            insert(call, table, local, object)
        });
    }
    tables::with(call, call.args[0], |table| {
        answer(call, table, table.check_write(who(call)))?;
        let stage = Stage::Gather(ObjectList::new());
        slice(call, table, new, stage, call.args[1], None)
    })
}

/// insert_more(Insertion, Rest): the slices after the first.
pub fn insert_more(call: &Call<'_>) -> Reply {
    let insertion = INSERTIONS.get(call.env, call.args[0]).ok_or(BADARG)?;
    let stage = std::mem::replace(&mut *insertion.stage.lock(), Stage::Over);
    slice(
        call,
        &insertion.table,
        insertion.new,
        stage,
        call.args[1],
        Some(insertion),
    )
}

/// One slice of an insertion, which was begun or not.
fn slice(
    call: &Call<'_>,
    table: &Arc<Table>,
    new: bool,
    stage: Stage,
    rest: Word,
    begun: Option<&Insertion>,
) -> Reply {
    let mut budget = Budget::slice();
    // 1. Objects are encoded until the list or the budget ends. Nothing of them can be seen yet.
    let (stage, rest) = match stage {
        Stage::Gather(mut list) => match gather(call, table, &mut list, rest, &mut budget)? {
            // All are encoded: from here on the insert happens, whoever finishes it.
            layout::NIL => (
                Stage::Apply(answer(
                    call,
                    table,
                    // In the owner's name: whether the caller may was asked before the first slice.
                    table.begin_insert(table.owner(), list, new),
                )?),
                layout::NIL,
            ),
            rest => (Stage::Gather(list), rest),
        },
        other => (other, rest),
    };
    // 2. The engine inserts, for what is left of the budget.
    let stage = match stage {
        Stage::Apply(mut job) if !budget.is_exhausted() => {
            match answer(call, table, job.step(&mut budget))? {
                Step::Done => {
                    call.spent(budget.spent());
                    return Ok(if new {
                        boolean(job.inserted())
                    } else {
                        atoms::TRUE.word()
                    });
                }
                Step::More => Stage::Apply(job),
            }
        }
        Stage::Over => return Err(BADARG),
        other => other,
    };
    // 3. What is not done yet goes on in another slice, kept by a resource.
    let entry: Native = entry::insert_more;
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

/// Encodes objects until the list or the budget ends; gives what is left of the list, which is `[]`
/// only at its end.
fn gather(
    call: &Call<'_>,
    table: &Arc<Table>,
    list: &mut ObjectList,
    mut rest: Word,
    budget: &mut Budget,
) -> Result<Word, Raise> {
    // Each object is written on the stack and copied to the list's arena.
    let (mut key, mut value) = (stack_bytes(), stack_bytes());
    let mut row = Row::at([&mut key, &mut value], call.env);
    while let Some((tuple, tail)) = layout::cell(rest) {
        let elements = layout::tuple(tuple).ok_or(BADARG)?;
        row.clear();
        row.write(table, elements).map_err(|_| BADARG)?;
        let object = row.object();
        list.push_ref(object);
        rest = tail;
        let (plain, copied) = (
            object.key().len() + object.value().len(),
            outside_bytes(object.value()),
        );
        // The budget pays for the object, and for what encoding its bytes takes.
        let bytes = weight(plain, copied);
        if !budget.spend(1 + (bytes / 128) as u32) && rest != layout::NIL {
            return Ok(rest);
        }
    }
    (rest == layout::NIL).then_some(rest).ok_or(BADARG)
}
