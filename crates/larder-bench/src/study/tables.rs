//! Tables of rows `{K, V}` or `{K}`, all integers, as the threads of a study use them.
//!
//! Handles go through the engine as a host does: each call encodes a key and a row, and keeps
//! nothing between calls. Each answer is decoded and returned, to be checked.

use crate::maps::peers::{Handle, NextKey, Shared, TableHandle};
use crate::result::{ensure, Outcome};
use crate::workload::{Entry, Load};
use larder::api::{Larder, Table};
use larder::host::{self, with_local, CounterOp, EngineTable, Error, OwnerId};
use larder::{structures, StructureValue};
use larder_index::Direction;
use larder_term::number::Number;
use larder_term::object::{KeyForm, ObjectBuf, ObjectEncoder};
use larder_term::{order_key, Encoder, Mode, TermBuf};
use std::time::Duration;

/// A table of the engine, or a shared map of another crate.
pub trait BenchTable: Sync {
    fn handle(&self) -> Box<dyn Handle + '_>;
    /// The number of rows, if the table counts them.
    fn len(&self) -> Option<usize> {
        None
    }
    /// The bytes that the table says it has.
    fn memory(&self) -> Option<usize> {
        None
    }
}

impl<S: Shared> BenchTable for S {
    fn handle(&self) -> Box<dyn Handle + '_> {
        Box::new(Shared::handle(self))
    }
}

/// Goes through a table by `next`, and checks that it has each key from 1 to `n` once, by their
/// number and their sum. Returns whether they came in order.
pub fn traverse(table: &mut dyn TableHandle, n: u64) -> Result<bool, String> {
    let (mut at, mut met, mut sum, mut in_order) = (table.first(), 0, 0, true);
    while let NextKey::Key(key) = at {
        (met, sum) = (met + 1, sum + key);
        in_order &= key == met;
        at = table.next(key);
    }
    let right = (n, n * (n + 1) / 2);
    if at == NextKey::End && (met, sum) == right {
        return Ok(in_order);
    }
    let what = format!("a traversal met {met} rows, whose keys add up to {sum}");
    Err(format!("{what}, not {right:?}"))
}

/// Looks up every entry of the range. Returns how many are present. They must be as many as the
/// table counts and as are expected, and each value must be that of its key.
pub fn verify(
    table: &dyn BenchTable,
    load: &Load<'_, impl Entry>,
    expected: Option<usize>,
) -> Outcome<usize> {
    let found = load.count(&mut *table.handle(), 0..load.range)? as usize;
    let counted = table.len().unwrap_or(found);
    let right = counted == found && expected.is_none_or(|n| n == found);
    ensure!(right, load.name; "{found} rows are found, {counted} counted, {expected:?} right");
    Ok(found)
}

/// For a structure of a fixed size, the option for a number of rows: about one row per bucket.
pub fn size_option(structure: &str, rows: usize) -> Option<(String, StructureValue)> {
    let listed = structures().find(|s| s.name == structure)?;
    let option = listed.options.iter().find(|o| o.name == "buckets")?;
    let buckets = rows.next_power_of_two().clamp(1 << 8, 1 << 24) as i64;
    Some((option.name.to_owned(), StructureValue::Int(buckets)))
}

/// A table of the engine. Dropping it frees the table.
pub struct StudyTable {
    pub larder: Larder,
    pub table: Table,
    arity: usize,
    /// Plants a fault: the table forgets some of its keys.
    pub forgets: bool,
}

impl StudyTable {
    /// Creates an empty table for about so many rows of one or two elements: `TYPE STRUCTURE`, with
    /// ` counters=many` behind it for decentralized counters.
    pub fn new(spec: &str, arity: usize, rows: usize) -> Result<StudyTable, Error> {
        let (kind, rest) = spec.split_once(' ').unwrap_or((spec, ""));
        let structure = rest.trim_end_matches(" counters=many");
        let larder = Larder::new();
        let mut builder = larder.table("study").structure_text(structure);
        builder = match kind {
            "set" => builder.set(),
            "bag" => builder.bag(),
            _ => builder.ordered_set(),
        };
        if structure != rest {
            builder = builder.decentralized_counters();
        }
        // A structure of a fixed size needs the number of rows, unless the text has its options.
        if let Some((name, value)) = size_option(structure, rows) {
            builder = builder.structure_option(&name, value);
        }
        Ok(StudyTable {
            table: builder.create()?,
            larder,
            arity,
            forgets: false,
        })
    }

    /// A handle to a table: this one, or a snapshot of it.
    pub fn handle_of<'t>(&'t self, table: &'t Table) -> EngineHandle<'t> {
        EngineHandle {
            study: self,
            api: table,
            table: table.engine_table(),
            owner: self.larder.owner(),
            object: ObjectBuf::new(),
            key: Vec::new(),
            exact: TermBuf::new(Mode::Inline),
        }
    }
}

impl Drop for StudyTable {
    fn drop(&mut self) {
        // Freeing this table must not disturb the next measurement.
        let _ = self.table.drop_table();
        self.larder.engine().reaper_idle(Duration::from_secs(600));
    }
}

impl BenchTable for StudyTable {
    fn handle(&self) -> Box<dyn Handle + '_> {
        Box::new(self.handle_of(&self.table))
    }
    fn len(&self) -> Option<usize> {
        Some(self.table.len())
    }
    fn memory(&self) -> Option<usize> {
        Some(self.table.memory())
    }
}

/// A thread's handle to a table.
pub struct EngineHandle<'t> {
    study: &'t StudyTable,
    /// The table of the study or a snapshot of it, for counts by match specifications.
    pub api: &'t Table,
    /// The same in the engine, for everything else.
    pub table: &'t EngineTable,
    pub owner: OwnerId,
    object: ObjectBuf,
    key: Vec<u8>,
    exact: TermBuf,
}

/// The result of a call on a public table without batches. No such call is refused.
pub fn granted<T>(result: Result<T, Error>) -> T {
    result.expect("the table is there for its study")
}

impl EngineHandle<'_> {
    /// Encodes the index key of an integer. Ordered tables have another form of keys.
    pub fn encode_key(&mut self, key: u64) -> &[u8] {
        let (out, key) = (&mut self.key, key as i64);
        out.clear();
        match self.table.key_form() {
            KeyForm::Hash { .. } => Encoder::new(out, Mode::Inline).int(key),
            KeyForm::Ordered => {
                // An order key is made from a term.
                self.exact.clear();
                self.exact.encode(|e| e.int(key));
                let term = self.exact.term().expect("an integer is a whole term");
                order_key::encode(term, out);
            }
        }
        &self.key
    }

    fn step(&self, from: Option<&[u8]>) -> NextKey {
        let (table, mut found) = (self.table, None);
        let result = with_local(|local| {
            table.step_to_key(local, self.owner, from, 0, Direction::Forward, |key| {
                // Keys are stored as numbers or as terms.
                found = key.int().or_else(|| key.term().as_int());
                0
            })
        });
        match (result, found) {
            (Ok(true), Some(key)) => NextKey::Key(key as u64),
            (Ok(_), _) => NextKey::End,
            (Err(_), _) => NextKey::Missing,
        }
    }
}

impl Handle for EngineHandle<'_> {
    fn insert(&mut self, key: u64, value: u64) {
        let StudyTable { arity, forgets, .. } = *self.study;
        if forgets && key % 89 == 11 {
            return;
        }
        let form = self.table.key_form();
        let mut encoder = ObjectEncoder::new(&mut self.object, arity, 1, form, false);
        encoder.key(|e| e.int(key as i64));
        if arity == 2 {
            encoder.element(|e| e.int(value as i64));
        }
        assert!(encoder.finish());
        let object = self.object.borrow();
        granted(with_local(|local| {
            self.table.insert_in(local, self.owner, object)
        }));
    }

    fn get(&mut self, key: u64) -> Option<u64> {
        self.encode_key(key);
        let (table, position, mut found) = (self.table, self.study.arity, None);
        granted(with_local(|local| {
            table.lookup_in(local, self.owner, &self.key, |stored| {
                found = stored.view().element(position).and_then(|e| e.as_int());
            })
        }));
        found.map(|value| value as u64)
    }

    fn remove(&mut self, key: u64) -> bool {
        self.encode_key(key);
        let removed = with_local(|local| self.table.delete_in(local, self.owner, &self.key));
        granted(removed) == 1
    }

    fn table(&mut self) -> &mut dyn TableHandle {
        self
    }
}

impl TableHandle for EngineHandle<'_> {
    fn add(&mut self, key: u64) -> Option<u64> {
        self.encode_key(key);
        let (op, mut sum) = (CounterOp::new(2, Number::Int(1)), None);
        let done = with_local(|local| {
            let ops = std::slice::from_ref(&op).iter();
            let host = &mut host::Sorted as &mut dyn host::MapHost;
            let (table, out) = (self.table, &mut (&mut sum, host));
            table.update_counter_in(local, self.owner, &self.key, &ops, out)
        });
        match (done, sum) {
            (Ok(()), Some(Number::Int(sum))) => Some(sum as u64),
            _ => None,
        }
    }

    fn first(&mut self) -> NextKey {
        self.step(None)
    }

    fn next(&mut self, key: u64) -> NextKey {
        self.encode_key(key);
        self.step(Some(&self.key))
    }

    fn count_all(&mut self) -> u64 {
        granted(self.api.select_count("[{'_',[],[true]}]"))
    }

    fn count_between(&mut self, after: u64, up_to: u64) -> u64 {
        let head = ["{'$1'}", "{'$1','_'}"][self.study.arity - 1];
        let guard = format!("{{'andalso',{{'>','$1',{after}}},{{'=<','$1',{up_to}}}}}");
        let spec = format!("[{{{head},[{guard}],[true]}}]");
        granted(self.api.select_count(spec))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_does_what_a_table_does() {
        for (text, next) in [
            ("set default", NextKey::Missing),
            ("ordered_set default", NextKey::Key(9)),
        ] {
            let table = StudyTable::new(text, 2, 100).unwrap();
            let mut handle = table.handle_of(&table.table);
            assert_eq!(handle.first(), NextKey::End);
            (1..=100).for_each(|k| handle.insert(k, k * k));
            assert_eq!((handle.get(7), handle.get(101)), (Some(49), None));
            assert_eq!((handle.add(7), handle.get(7)), (Some(50), Some(50)));
            let in_order = next != NextKey::Missing;
            assert_eq!(traverse(&mut handle, 100), Ok(in_order));
            assert!(handle.remove(8) && !handle.remove(8));
            assert_eq!((table.len(), handle.count_all()), (Some(99), 99));
            assert_eq!(handle.count_between(5, 10), 4);
            assert!(traverse(&mut handle, 100).is_err());
            assert_eq!(handle.next(8), next);
        }
    }
}
