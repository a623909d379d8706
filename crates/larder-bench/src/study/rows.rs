//! A table of rows {K, V} or {K}, all integers, as the threads of a study use it. They go through
//! the engine as a host does: each call encodes a key and a row, and nothing is kept between calls.
//! Each answer is decoded and returned, to be checked.

use crate::maps::peers::{Hand, Next, Shared};
use crate::result::{ensure, Outcome};
use crate::workload::Load;
use larder::api::{Larder, Table};
use larder::host::{with_local, Budget, CounterOp, Error, Step, StructureValue, TableKind};
use larder_index::Direction;
use larder_matchspec::{Context, Program};
use larder_term::number::Number;
use larder_term::object::{KeyForm, ObjectBuf, ObjectEncoder};
use larder_term::{atoms, order_key, term, Encoder, Mode, Term, TermBuf};
use std::sync::Arc;
use std::time::Duration;

/// A table under study, or a peer's map.
pub trait Rows: Sync {
    /// Access to the table for one thread.
    fn hand(&self) -> Box<dyn Hand + '_>;
    /// Rows, if it counts them.
    fn counted(&self) -> Option<usize> {
        None
    }
    /// Bytes that it says it holds.
    fn memory(&self) -> Option<usize> {
        None
    }
}

impl<S: Shared> Rows for S {
    fn hand(&self) -> Box<dyn Hand + '_> {
        Box::new(Shared::hand(self))
    }
}

/// Goes from the first key on by `next`: what came last, how many keys it met, and their sum.
pub fn traverse(hand: &mut dyn Hand) -> (Next, u64, u64) {
    let (mut at, mut rows, mut sum) = (hand.first(), 0, 0);
    while let Next::Key(key) = at {
        (rows, sum) = (rows + 1, sum + key);
        at = hand.next(key);
    }
    (at, rows, sum)
}

/// Whether a traversal met each key from 1 to `n` once, as their number and their sum tell.
pub fn whole((at, met, sum): (Next, u64, u64), n: u64) -> Result<(), String> {
    let right = (n, n * (n + 1) / 2);
    match at == Next::End && (met, sum) == right {
        true => Ok(()),
        false => Err(format!(
            "a traversal met {met} rows, whose keys add up to {sum}, not {right:?}"
        )),
    }
}

/// Looks at every entry that there may be; how many are there, which must be as many as the table
/// counts, and as are expected.
///
/// # Errors
/// If they are not, or a value is not its key's.
pub fn sound<E: Fn(u64) -> (u64, u64)>(
    rows: &dyn Rows,
    load: &Load<'_, E>,
    expected: Option<usize>,
) -> Outcome<usize> {
    let there = load.there(&mut *rows.hand(), 0..load.range)? as usize;
    // Tables may not count their rows.
    let counted = rows.counted().unwrap_or(there);
    ensure!(
        counted == there && expected.is_none_or(|n| n == there),
        load.name,
        "{there} rows are found, {counted} counted, {expected:?} right"
    );
    Ok(there)
}

/// How a table is asked for.
#[derive(Clone, Debug)]
pub struct Ask {
    /// The type.
    pub kind: TableKind,
    /// The structure's name.
    pub structure: String,
    /// The structure's options.
    pub options: Vec<(String, StructureValue)>,
    /// Whether rows are counted in many places.
    pub decentralized: bool,
    /// Whether it forgets a key now and then: what a study must find.
    pub forgets: bool,
}

impl Ask {
    /// For a structure without options, rows counted in one place.
    pub fn new(kind: TableKind, structure: &str) -> Ask {
        Ask {
            kind,
            structure: structure.to_owned(),
            options: Vec::new(),
            decentralized: false,
            forgets: false,
        }
    }
}

/// A table of Larder's engine, dropped and freed with this.
pub struct EngineRows {
    larder: Larder,
    pub(super) table: Table,
    arity: usize,
    forgets: bool,
}

impl EngineRows {
    /// An empty table for rows of one or two elements.
    pub fn new(ask: &Ask, arity: usize) -> Result<EngineRows, Error> {
        // A program of its own in miniature: a world, a table, and an owner.
        let larder = Larder::new();
        let builder = larder.table("study").structure(&ask.structure);
        let mut builder = match ask.kind {
            TableKind::Set => builder.set(),
            TableKind::OrderedSet => builder.ordered_set(),
            TableKind::Bag => builder.bag(),
            TableKind::DuplicateBag => builder.duplicate_bag(),
        };
        if ask.decentralized {
            builder = builder.decentralized_counters();
        }
        for (name, value) in &ask.options {
            builder = builder.structure_option(name, value.clone());
        }
        let table = builder.create()?;
        Ok(EngineRows {
            larder,
            table,
            arity,
            forgets: ask.forgets,
        })
    }

    /// Access to the table for one thread.
    pub(super) fn engine_hand(&self) -> EngineHand<'_> {
        self.hand_of(&self.table)
    }

    /// Access for one thread, to the table or a snapshot of it.
    pub(super) fn hand_of<'t, const FORGETS: bool>(
        &'t self,
        table: &'t Table,
    ) -> EngineHand<'t, FORGETS> {
        EngineHand {
            table: table.engine_table(),
            arity: self.arity,
            who: self.larder.owner(),
            object: ObjectBuf::new(),
            key: Vec::new(),
            exact: TermBuf::new(Mode::Inline),
        }
    }
}

impl Drop for EngineRows {
    fn drop(&mut self) {
        // The next measurement shall not share the cores with what frees this table.
        let _ = self.table.drop_table();
        self.larder.engine().reaper_idle(Duration::from_secs(600));
    }
}

impl Rows for EngineRows {
    fn hand(&self) -> Box<dyn Hand + '_> {
        match self.forgets {
            false => Box::new(self.engine_hand()),
            true => Box::new(self.hand_of::<true>(&self.table)),
        }
    }

    fn counted(&self) -> Option<usize> {
        Some(self.table.len())
    }

    fn memory(&self) -> Option<usize> {
        Some(self.table.memory())
    }
}

/// Access to a table for one thread. It may forget some of the keys that it is given.
pub(super) struct EngineHand<'t, const FORGETS: bool = false> {
    pub(super) table: &'t Arc<larder::host::Table>,
    arity: usize,
    pub(super) who: larder::host::OwnerId,
    object: ObjectBuf,
    pub(super) key: Vec<u8>,
    pub(super) exact: TermBuf,
}

/// Writes the index key of an integer, by way of a buffer for terms.
pub(super) fn set_key(form: KeyForm, key: u64, (out, exact): (&mut Vec<u8>, &mut TermBuf)) {
    out.clear();
    let key = key as i64;
    match form {
        KeyForm::Hash { .. } => Encoder::new(out, Mode::Inline).int(key),
        KeyForm::Ordered => {
            // The order key is made from a term, so the integer becomes one first.
            exact.clear();
            exact.encode(|e| e.int(key));
            let term = exact.term().expect("an integer is a whole term");
            order_key::encode(term, out);
        }
    }
}

/// A study's table is public, alive, and has no batches: no call on it is refused.
pub(super) fn sure<T>(result: Result<T, Error>) -> T {
    result.expect("the table is there for its study")
}

impl<const FORGETS: bool> EngineHand<'_, FORGETS> {
    /// The index key of an integer, in `self.key`.
    // An ordered_set has another form of keys.
    fn set_key(&mut self, key: u64) {
        let form = self.table.key_form();
        set_key(form, key, (&mut self.key, &mut self.exact));
    }

    /// Counts the rows that a match specification chooses.
    pub(super) fn run(&self, program: Program) -> u64 {
        let nobody = Term::from(atoms::UNDEFINED);
        let context = Context {
            self_pid: nobody.as_ref(),
            node: atoms::NONODE,
        };
        // The whole scan in one call, without a budget.
        let mut job = sure(self.table.select_count(self.who, program));
        while sure(job.step(&mut Budget::unlimited(), &context)) == Step::More {}
        job.count()
    }

    fn step(&self, from: Option<&[u8]>) -> Next {
        let mut found = None;
        let result = with_local(|local| {
            self.table
                .step_to_key(local, self.who, from, Direction::Forward, |key| {
                    // A key is stored as a number or as a term. Both may be integers.
                    found = key.int().or_else(|| key.term().as_int());
                    0
                })
        });
        // `Err` means that the key the step begins at is gone.
        match (result, found) {
            (Ok(true), Some(key)) => Next::Key(key as u64),
            (Ok(_), _) => Next::End,
            (Err(_), _) => Next::Gone,
        }
    }
}

impl<const FORGETS: bool> Hand for EngineHand<'_, FORGETS> {
    fn insert(&mut self, key: u64, value: u64) {
        // For tests of the study: some rows are lost.
        if FORGETS && key % 89 == 11 {
            return;
        }
        // The object is encoded as a host does it, into memory that is used again.
        let form = self.table.key_form();
        let mut encoder = ObjectEncoder::new(&mut self.object, self.arity, 1, form, false);
        encoder.key(|e| e.int(key as i64));
        if self.arity == 2 {
            encoder.element(|e| e.int(value as i64));
        }
        assert!(encoder.finish());
        let object = self.object.borrow();
        sure(with_local(|local| {
            self.table.insert_in(local, self.who, object)
        }));
    }

    fn get(&mut self, key: u64) -> Option<u64> {
        self.set_key(key);
        let position = self.arity;
        let mut found = None;
        sure(with_local(|local| {
            self.table.lookup_in(local, self.who, &self.key, |stored| {
                found = stored.view().element(position).and_then(|e| e.as_int());
            })
        }));
        found.map(|value| value as u64)
    }

    fn remove(&mut self, key: u64) -> bool {
        self.set_key(key);
        let gone = with_local(|local| self.table.delete_in(local, self.who, &self.key));
        sure(gone) == 1
    }

    fn add(&mut self, key: u64) -> Option<u64> {
        self.set_key(key);
        // One addition to the second element.
        let (op, mut sum) = (CounterOp::new(2, Number::Int(1)), None);
        let done = with_local(|local| {
            let ops = || std::slice::from_ref(&op).iter();
            let out = &mut (
                &mut sum,
                &mut larder::host::Sorted as &mut dyn larder::host::MapHost,
            );
            let table = &self.table;
            table.update_counter_in(local, self.who, &self.key, &ops, None, out)
        });
        match (done, sum) {
            (Ok(()), Some(Number::Int(sum))) => Some(sum as u64),
            _ => None,
        }
    }

    fn first(&mut self) -> Next {
        self.step(None)
    }

    fn next(&mut self, key: u64) -> Next {
        self.set_key(key);
        self.step(Some(&self.key))
    }

    fn count_all(&mut self) -> u64 {
        let everything = term!([{(Term::atom("_")), [], [true]}]);
        self.run(program(&everything))
    }

    fn count_between(&mut self, after: u64, up_to: u64) -> u64 {
        let key = || Term::atom("$1");
        let over = Term::tuple([Term::atom(">"), key(), Term::int(after as i64)]);
        let under = Term::tuple([Term::atom("=<"), key(), Term::int(up_to as i64)]);
        let rest = (1..self.arity).map(|_| Term::atom("_"));
        let head = Term::tuple(std::iter::once(key()).chain(rest).collect::<Vec<_>>());
        let spec = term!([{(head), [{andalso, (over), (under)}], [true]}]);
        self.run(program(&spec))
    }
}

pub(super) fn program(spec: &Term) -> Program {
    Program::compile(spec.as_ref()).expect("the specification is right")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_do_what_a_table_does() {
        for kind in [TableKind::Set, TableKind::OrderedSet] {
            let rows = EngineRows::new(&Ask::new(kind, "default"), 2).unwrap();
            let mut hand = rows.hand();
            assert_eq!(hand.first(), Next::End);
            (1..=100).for_each(|k| hand.insert(k, k * k));
            assert_eq!((hand.get(7), hand.get(101)), (Some(49), None));
            assert_eq!((hand.add(7), hand.get(7)), (Some(50), Some(50)));
            assert!(hand.remove(8) && !hand.remove(8));
            assert_eq!(rows.counted(), Some(99));
            assert_eq!(hand.count_all(), 99);
            assert_eq!(hand.count_between(5, 10), 4);
            assert_eq!(traverse(&mut *hand), (Next::End, 99, 5050 - 8));
            let ordered = kind == TableKind::OrderedSet;
            assert_eq!(
                hand.next(8),
                if ordered { Next::Key(9) } else { Next::Gone }
            );
        }
    }

    #[test]
    fn rows_may_be_keys_alone() {
        let rows = EngineRows::new(&Ask::new(TableKind::Set, "default"), 1).unwrap();
        let mut hand = rows.hand();
        hand.insert(3, 0);
        assert_eq!(hand.get(3), Some(3));
        assert_eq!(hand.count_between(2, 3), 1);
    }
}
