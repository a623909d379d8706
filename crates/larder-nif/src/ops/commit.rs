//! `larder:commit/1`: operations that take effect together or not at all.
//!
//! An operation is a tuple of the name of a function and its arguments. It is run like a call of
//! that function, on a view of its table:
//!
//! ```text
//!  [{check, T, K, Objects}, {insert, T, Row}, …]
//!      1. which tables, which keys                      nothing is locked yet
//!      2. the engine locks the keys, and makes views    Engine::commit_on_keys: kc1, kc2
//!      3. each operation on its view, in order          the first that doesn't hold ends it: kc3
//!      4. the engine applies what was written           kc4, kc5
//! ```
//!
//! The labels are those of docs/design.md §5.6.

use super::bounds::{expire_of, insert_with_to};
use super::options::time;
use super::single::{
    delete_object_of, delete_of, has_member, insert_new_to, insert_to, lookup_of, with_key,
};
use super::transaction::refused;
use super::update::{counter_of, update_element_of};
use crate::call::{Call, Raise, Reply, BADARG};
use crate::entry;
use crate::heap::Heap;
use crate::layout;
use crate::sys::*;
use crate::tables::{self, caller_id, owners::ENGINE};
use crate::terms::atoms;
use larder::host::{with_local, CommitOutcome, EngineTable, Local, Turn};
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The greatest number of keys of a commit that runs on a normal scheduler. One with more keys runs
/// on a dirty scheduler: it holds the locks of the keys throughout, so it can't be run in slices.
/// Its operations are read from the caller's terms in the same call, so it may have fewer keys than
/// the commit of a transaction.
const MAX_INLINE_COMMIT_KEYS: usize = 250;

/// The greatest number of terms in the operations of such a commit: few large objects take as long
/// as many small ones.
const MAX_INLINE_COMMIT_TERMS: usize = 50_000;

/// How long the operations of such a commit may take, after the first `UNTIMED`: what they read,
/// compress or copy isn't known before.
const MAX_INLINE_COMMIT_TIME: Duration = Duration::from_millis(1);

/// The number of operations and objects at the beginning of a commit for which the time isn't
/// asked. Most commits have no more.
const UNTIMED: usize = 4;

/// The units of a time slice that an operation takes.
const UNITS_PER_OPERATION: usize = 3;

/// The kind of an operation.
#[derive(Clone, Copy)]
enum OpKind {
    Check,
    Insert,
    InsertWith,
    Expire,
    InsertNew,
    Delete,
    DeleteObject,
    UpdateCounter,
    UpdateElement,
}

/// An operation of the list.
struct Operation<'c> {
    kind: OpKind,
    /// The index of its table among the commit's.
    table: usize,
    /// The arguments of the function: a table, and the others.
    args: &'c [Word],
}

/// The operations of a commit.
#[derive(Default)]
struct Plan<'c> {
    tables: SmallVec<[Arc<EngineTable>; 2]>,
    operations: SmallVec<[Operation<'c>; 8]>,
    /// The keys that they use, each with the index of its table.
    keys: SmallVec<[(usize, Range<usize>); 8]>,
    /// The bytes of the keys.
    bytes: SmallVec<[u8; 128]>,
    /// The maximum number of keys, and of operations.
    max_keys: usize,
    /// The number of terms that the operations may still have; `None` for any number.
    terms_left: Option<usize>,
}

/// commit(Operations, Urgent | own) -> true | {false, N} | lost | wait. Urgent is that of
/// `begin_transaction`; `own` says that the caller is in a transaction that has the turn. After
/// `lost` and `wait`, the caller must call it again.
pub fn commit(call: &Call<'_>) -> Reply {
    run(call, MAX_INLINE_COMMIT_KEYS)
}

/// As `commit`, on a dirty scheduler.
pub fn commit_many(call: &Call<'_>) -> Reply {
    run(call, usize::MAX)
}

/// Runs a commit of at most `max_keys` keys and operations. One with more is scheduled again, on a
/// dirty scheduler.
fn run(call: &Call<'_>, max_keys: usize) -> Reply {
    // (1) Read the operations. Many keys or operations take longer than a normal scheduler should
    // be blocked. The call is repeated on a dirty one.
    let Some(plan) = Plan::read(call, call.args[0], max_keys)? else {
        return Ok(call.later(entry::commit_many, call.args));
    };
    // A commit that has lost often takes the turn. Others then wait for it, so it doesn't lose
    // forever.
    let urgent = call.args[1] == atoms::TRUE.word();
    let turn = urgent.then(Turn::take).flatten();
    let is_own = call.args[1] == atoms::OWN.word();
    if turn.is_none() && !is_own && Turn::is_taken() {
        return Ok(atoms::WAIT.word());
    }
    // (2) The engine locks the keys and makes a view of each table.
    let tables: SmallVec<[&Arc<EngineTable>; 2]> = plan.tables.iter().collect();
    let key = |(table, key): &(usize, Range<usize>)| (*table, &plan.bytes[key.clone()]);
    // The engine sorts the keys by their locks.
    let keys: SmallVec<[(usize, &[u8]); 8]> = plan.keys.iter().map(key).collect();
    let mut stopped = None;
    let done = ENGINE.commit_on_keys(&tables, &keys, caller_id(call), |transaction| {
        // (3) Run the operations on the views. This is under the locks of the keys.
        let views: SmallVec<[&Arc<EngineTable>; 2]> = transaction.views().collect();
        stopped = with_local(|local| plan.first_that_fails(call, &views, local));
        // (4) If all hold, the engine applies what they have written, and unlocks the keys.
        stopped.is_none()
    });
    if max_keys == MAX_INLINE_COMMIT_KEYS {
        call.spent((UNITS_PER_OPERATION * keys.len()) as u64);
    }
    // A commit whose condition failed, or whose operation raised, has changed nothing.
    match (stopped, done) {
        (Some(Ok(n)), Ok(_)) => Ok(call.tuple(&[atoms::FALSE.word(), call.int(n as i64)])),
        (Some(Err(raise)), Ok(_)) => Err(raise),
        (None, Ok(CommitOutcome::Committed)) => Ok(atoms::TRUE.word()),
        (_, Ok(CommitOutcome::Conflict)) => Ok(atoms::LOST.word()),
        (_, Err(error)) => Err(refused(call, &plan.tables, &error)),
    }
}

impl<'c> Plan<'c> {
    /// Reads a list of operations. `None` if it has more than this number of keys or operations.
    fn read(call: &Call<'c>, list: Word, max_keys: usize) -> Result<Option<Self>, Raise> {
        let mut plan = Plan {
            max_keys,
            terms_left: (max_keys != usize::MAX).then_some(MAX_INLINE_COMMIT_TERMS),
            ..Plan::default()
        };
        let mut list = layout::elements(list);
        for operation in list.by_ref() {
            // Look at the size of an operation before it is encoded.
            plan.count_terms(call, operation);
            if plan.is_long() {
                return Ok(None);
            }
            plan.push(call, operation)?;
            if plan.is_long() {
                return Ok(None);
            }
        }
        // An improper list is no list of operations.
        (list.rest == layout::NIL)
            .then_some(Some(plan))
            .ok_or(BADARG)
    }

    /// Whether the operations read so far have too many keys or terms, or are too many.
    fn is_long(&self) -> bool {
        self.keys.len().max(self.operations.len()) > self.max_keys || self.terms_left == Some(0)
    }

    /// Subtracts the number of terms of an operation from `terms_left`, down to 0. Of a large map
    /// the keys and values are counted, not what is in them.
    fn count_terms(&mut self, call: &Call<'_>, operation: Word) {
        let Some(terms_left) = &mut self.terms_left else {
            return;
        };
        let mut todo: SmallVec<[Word; 32]> = SmallVec::new();
        todo.push(operation);
        while let Some(mut rest) = todo.pop() {
            // Counts a term. Returns whether more may follow.
            let mut count = |word: Word| {
                *terms_left = terms_left.saturating_sub(1);
                if !layout::is_immediate(word) {
                    todo.push(word);
                }
                *terms_left > 0
            };
            while let Some((head, tail)) = layout::cell(rest) {
                if !count(head) {
                    return;
                }
                rest = tail;
            }
            let parts = match (layout::tuple(rest), layout::flatmap(rest)) {
                (Some(elements), _) => [elements, &[]],
                (_, Some((keys, values))) => [keys, values],
                // The end of a list.
                _ if layout::is_immediate(rest) => continue,
                // A large map, or a term without parts.
                _ => {
                    let mut pairs = 0;
                    // SAFETY: the environment and the term are the running call's. If that is no
                    // map, the number stays as it is.
                    unsafe { enif_get_map_size(call.env, rest, &raw mut pairs) };
                    *terms_left = terms_left.saturating_sub(2 * pairs);
                    continue;
                }
            };
            if !parts.into_iter().flatten().all(|&word| count(word)) {
                return;
            }
        }
    }

    /// Adds an operation, with the keys that it uses.
    ///
    /// # Errors
    /// A badarg if it isn't the name of such a function with its arguments.
    fn push(&mut self, call: &Call<'c>, operation: Word) -> Result<(), Raise> {
        let Some([name, args @ ..]) = layout::tuple(operation) else {
            return Err(BADARG);
        };
        // The table's number in this commit, which is the same for all of its operations.
        let table = self.table(call, *args.first().ok_or(BADARG)?)?;
        // The name and the number of arguments, as in the function of that name.
        let kind = match args.len() {
            3 if *name == atoms::CHECK.word() => OpKind::Check,
            2 if *name == atoms::INSERT.word() => OpKind::Insert,
            3 if *name == atoms::INSERT.word() => OpKind::InsertWith,
            3 if *name == atoms::EXPIRE.word() => OpKind::Expire,
            2 if *name == atoms::INSERT_NEW.word() => OpKind::InsertNew,
            2 if *name == atoms::DELETE.word() => OpKind::Delete,
            2 if *name == atoms::DELETE_OBJECT.word() => OpKind::DeleteObject,
            3 if *name == atoms::UPDATE_COUNTER.word() => OpKind::UpdateCounter,
            3 if *name == atoms::UPDATE_ELEMENT.word() => OpKind::UpdateElement,
            _ => return Err(BADARG),
        };
        // The keys of objects are in the objects. Those of other operations are arguments.
        match kind {
            OpKind::Insert | OpKind::InsertWith | OpKind::InsertNew | OpKind::DeleteObject => {
                each_object(args[1], |object| {
                    self.key_of(call, table, object)?;
                    Ok(self.is_long())
                })?;
            }
            _ => self.key(call, table, args[1])?,
        }
        self.operations.push(Operation { kind, table, args });
        Ok(())
    }

    /// The index of the table with this id.
    fn table(&mut self, call: &Call<'_>, id: Word) -> Result<usize, Raise> {
        tables::with(call, id, |table| {
            let is_same = |known: &Arc<EngineTable>| Arc::ptr_eq(known, table);
            Ok(self.tables.iter().position(is_same).unwrap_or_else(|| {
                self.tables.push(Arc::clone(table));
                self.tables.len() - 1
            }))
        })
    }

    /// Records the key of an object.
    fn key_of(&mut self, call: &Call<'_>, table: usize, object: Word) -> Result<(), Raise> {
        let place = self.tables[table].keypos() - 1;
        let elements = layout::tuple(object).unwrap_or(&[]);
        self.key(call, table, *elements.get(place).ok_or(BADARG)?)
    }

    /// Records a key.
    fn key(&mut self, call: &Call<'_>, table: usize, key: Word) -> Result<(), Raise> {
        let bytes = &mut self.bytes;
        // All keys are in one buffer.
        let from = bytes.len();
        with_key(call, &self.tables[table], key, |key| {
            bytes.extend_from_slice(key);
            Ok(())
        })?;
        self.keys.push((table, from..bytes.len()));
        Ok(())
    }

    /// Runs the operations. Each sees the effects of those before it. Returns the number of the
    /// first whose condition doesn't hold, or its exception; `None` if all hold.
    fn first_that_fails(
        &self,
        call: &Call<'_>,
        views: &[&Arc<EngineTable>],
        local: &mut Local,
    ) -> Option<Result<usize, Raise>> {
        let mut pace = Pace::new(call);
        // In the given order, since later ones see earlier ones.
        for (i, operation) in self.operations.iter().enumerate() {
            match operation.run(call, views[operation.table], local, &mut pace) {
                Ok(true) => {}
                Ok(false) => return Some(Ok(i + 1)),
                Err(raise) => return Some(Err(raise)),
            }
        }
        None
    }
}

/// The time that the operations of a commit take, which is limited on a normal scheduler.
struct Pace {
    is_limited: bool,
    /// The number of objects and operations that have begun.
    begun: usize,
    /// When the first one began for which the time was asked.
    since: Option<Instant>,
}

impl Pace {
    fn new(call: &Call<'_>) -> Self {
        Pace {
            is_limited: call.is_on_scheduler(),
            begun: 0,
            since: None,
        }
    }

    /// Called before each object or operation. If those before it took long, the commit is repeated
    /// on a dirty scheduler: nothing is changed yet.
    #[inline]
    fn next(&mut self) -> Result<(), Raise> {
        self.begun += 1;
        if !self.is_limited || self.begun <= UNTIMED {
            return Ok(());
        }
        let now = Instant::now();
        match now - *self.since.get_or_insert(now) > MAX_INLINE_COMMIT_TIME {
            true => Err(Raise::Dirty),
            false => Ok(()),
        }
    }
}

impl Operation<'_> {
    /// Runs the operation on a view of its table. Returns whether its condition holds.
    fn run(
        &self,
        call: &Call<'_>,
        view: &Arc<EngineTable>,
        local: &mut Local,
        pace: &mut Pace,
    ) -> Result<bool, Raise> {
        // The others insert objects one by one.
        if !matches!(self.kind, OpKind::Insert | OpKind::InsertWith) {
            pace.next()?;
        }
        // Functions take their arguments from the call. So each operation is run as a call of its
        // own.
        let inner = &with_args(call, self.args);
        let holds = match self.kind {
            OpKind::Check => {
                let found = lookup_of(inner, view, local)?;
                // SAFETY: both are terms of the running call's process.
                return Ok(unsafe { enif_is_identical(found, self.args[2]) } != 0);
            }
            OpKind::Insert => return self.insert_all(call, view, local, pace).map(|()| true),
            OpKind::InsertWith => {
                return self.insert_all_with(call, view, local, pace).map(|()| true);
            }
            OpKind::Expire => return expire_of(inner, view, local),
            OpKind::InsertNew if layout::tuple(self.args[1]).is_none() => {
                return self.insert_all_new(call, view, local, pace);
            }
            OpKind::InsertNew => insert_new_to(inner, view, local, self.args[1]),
            OpKind::Delete => delete_of(inner, view, local),
            OpKind::DeleteObject => delete_object_of(inner, view, local),
            OpKind::UpdateCounter => {
                return Ok(counter_of(inner, view, local, None)?.is_some());
            }
            OpKind::UpdateElement => update_element_of(inner, view, local, None),
        };
        Ok(holds? == atoms::TRUE.word())
    }

    /// `insert` of an object or a list.
    fn insert_all(
        &self,
        call: &Call<'_>,
        view: &Arc<EngineTable>,
        local: &mut Local,
        pace: &mut Pace,
    ) -> Result<(), Raise> {
        each_object(self.args[1], |object| {
            pace.next()?;
            insert_to(call, view, local, object).map(|_| false)
        })
    }

    /// `insert` of an object or a list, with a lifetime.
    fn insert_all_with(
        &self,
        call: &Call<'_>,
        view: &Arc<EngineTable>,
        local: &mut Local,
        pace: &mut Pace,
    ) -> Result<(), Raise> {
        let ttl = ttl_of(call, self.args[2])?;
        each_object(self.args[1], |object| {
            pace.next()?;
            insert_with_to(call, view, local, object, ttl).map(|()| false)
        })
    }

    /// `insert_new` of a list, which may have several objects with the same key.
    fn insert_all_new(
        &self,
        call: &Call<'_>,
        view: &Arc<EngineTable>,
        local: &mut Local,
        pace: &mut Pace,
    ) -> Result<bool, Raise> {
        // All keys are checked before the first object is inserted, so that a list is inserted
        // whole or not at all.
        let mut is_new = true;
        each_object(self.args[1], |object| {
            let elements = layout::tuple(object).ok_or(BADARG)?;
            let key = *elements.get(view.keypos() - 1).ok_or(BADARG)?;
            is_new &= !has_member(&with_args(call, &[self.args[0], key]), view, local)?;
            Ok(false)
        })?;
        if is_new {
            self.insert_all(call, view, local, pace)?;
        }
        Ok(is_new)
    }
}

/// The lifetime in the options `#{ttl => Ms}`.
fn ttl_of(call: &Call<'_>, options: Word) -> Result<Option<u64>, Raise> {
    let (mut size, mut ttl) = (0, 0);
    // SAFETY: the environment is the running call's, and the term is of its process.
    let is_map = unsafe { enif_get_map_size(call.env, options, &raw mut size) } != 0;
    let key = atoms::TTL.word();
    // SAFETY: as above.
    if !is_map || unsafe { enif_get_map_value(call.env, options, key, &raw mut ttl) } == 0 {
        return Err(BADARG);
    }
    // Other options are unknown.
    if size == 1 {
        time(call, ttl)
    } else {
        Err(BADARG)
    }
}

/// The running call with other arguments.
fn with_args<'a>(call: &Call<'a>, args: &'a [Word]) -> Call<'a> {
    Call {
        env: call.env,
        args,
        // SAFETY: the environment is the running call's.
        heap: unsafe { Heap::new(call.env) },
        name: call.name,
    }
}

/// Calls `f` with each object of a list, or with the single object, until it returns `true`.
fn each_object(objects: Word, mut f: impl FnMut(Word) -> Result<bool, Raise>) -> Result<(), Raise> {
    // Anything but a list is a single object.
    if !layout::is_cell(objects) && objects != layout::NIL {
        return f(objects).map(drop);
    }
    let mut list = layout::elements(objects);
    for object in list.by_ref() {
        if f(object)? {
            return Ok(());
        }
    }
    (list.rest == layout::NIL).then_some(()).ok_or(BADARG)
}
