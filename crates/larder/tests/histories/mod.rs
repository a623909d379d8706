//! Tables as subjects of histories: all operations on one object, lists that are inserted at once,
//! clearing, counters.
#![allow(dead_code)]

use larder::api::{Builder, Larder, Table};
use larder_term::{term, Term};
use larder_testing::tables::{TableOp, TableState, Tabular, KEYS};
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// A table of tuples `{key, number}`; and how many other rows come before the second row of a list,
/// and before the third.
pub struct Rows(pub Table, pub i64);

/// A table of this type, on this structure or on the defaults.
pub fn table(larder: &Larder, ordered: bool, structure: Option<&str>) -> Rows {
    let builder: Builder = larder.table("t");
    let builder = if ordered {
        builder.ordered_set()
    } else {
        builder.set()
    };
    let builder = match structure {
        Some(name) => builder.structure(name),
        None => builder,
    };
    Rows(builder.create().expect("a table"), 0)
}

fn row(k: u64, value: u64) -> Term {
    term!({(k as i64), (value as i64)})
}

fn key(k: u64) -> Term {
    term!((k as i64))
}

fn int(term: &Term) -> u64 {
    term.as_ref().as_int().expect("a number") as u64
}

/// The number of the only row, if there is one.
fn number(rows: &[Term]) -> Option<u64> {
    assert!(rows.len() <= 1);
    let row = rows.first()?.as_ref().as_tuple().expect("a tuple");
    let number = row.get(1).expect("two elements");
    Some(number.as_int().expect("a number") as u64)
}

/// All numbers of a table that doesn't change, key by key.
fn by_keys(table: &Table) -> Result<TableState, larder::Error> {
    let mut numbers = TableState::default();
    for k in 0..KEYS {
        numbers[k as usize] = number(&table.lookup(&key(k))?);
    }
    Ok(numbers)
}

/// The same, by a scan.
fn by_scan(table: &Table) -> Result<TableState, larder::Error> {
    let mut numbers = TableState::default();
    for row in table.to_vec()? {
        let row = row.as_ref().as_tuple().expect("a tuple");
        let [k, value] = [0, 1].map(|i| row.get(i).and_then(|n| n.as_int()).expect("a number"));
        if let Some(place) = numbers.get_mut(k as usize) {
            *place = Some(value as u64);
        }
    }
    Ok(numbers)
}

impl Rows {
    fn all(&self, value: u64) -> Vec<Term> {
        // New ones each time: they are in nobody's way.
        static NEXT: AtomicI64 = AtomicI64::new(KEYS as i64);
        let rows = (0..KEYS).flat_map(|k| {
            let others = if k == 0 { 0 } else { self.1 };
            // Ordering: Relaxed; only the numbers' being different matters.
            let from = NEXT.fetch_add(others, Ordering::Relaxed);
            let others = (from..from + others).map(|k| term!({(k), 0}));
            others.chain([row(k, value)])
        });
        rows.collect()
    }

    fn one(&self, op: TableOp) -> Result<TableOp, larder::Error> {
        let t = &self.0;
        Ok(match op {
            TableOp::Read(k, _) => TableOp::Read(k, Some(number(&t.lookup(&key(k))?))),
            TableOp::Has(k, _) => TableOp::Has(k, Some(t.contains(&key(k))?)),
            TableOp::Put(k, value) => {
                t.insert(&row(k, value))?;
                op
            }
            TableOp::PutNew(k, value, _) => {
                TableOp::PutNew(k, value, Some(t.insert_new(&row(k, value))?))
            }
            TableOp::Add(k, by, _) => {
                let sum = t.add_or(&key(k), 2, by as i64, &row(k, 0))?;
                TableOp::Add(k, by, Some(int(&sum)))
            }
            TableOp::Replace(k, value, _) => {
                let was = t.update(&key(k), 2, &term!((value as i64)))?;
                TableOp::Replace(k, value, Some(was))
            }
            TableOp::Remove(k, _) => TableOp::Remove(k, Some(t.delete(&key(k))? == 1)),
            TableOp::Take(k, _) => TableOp::Take(k, Some(number(&t.take(&key(k))?))),
            TableOp::RemoveObject(k, value, _) => {
                let was = t.delete_object(&row(k, value))? == 1;
                TableOp::RemoveObject(k, value, Some(was))
            }
            TableOp::PutAll(value) => {
                t.insert_all(&self.all(value))?;
                op
            }
            TableOp::PutAllNew(value, _) => {
                TableOp::PutAllNew(value, Some(t.insert_all_new(&self.all(value))?))
            }
            TableOp::Clear => {
                t.clear()?;
                op
            }
            TableOp::Snapshot(_) => {
                let snapshot = t.snapshot()?;
                let seen = by_keys(&snapshot)?;
                assert_eq!(seen, by_scan(&snapshot)?, "read again");
                TableOp::Snapshot(Some(seen))
            }
        })
    }
}

/// A bounded table: what goes expires, and what is written is written over what is expired.
pub struct Expiring(pub Rows);

impl Expiring {
    /// Of this type.
    pub fn new(larder: &Larder, ordered: bool) -> Self {
        let builder = larder.table("t").ttl(Duration::from_secs(1_000_000));
        let builder = if ordered {
            builder.ordered_set()
        } else {
            builder
        };
        Expiring(Rows(builder.create().expect("a table"), 0))
    }

    fn one(&self, op: TableOp) -> Result<TableOp, larder::Error> {
        let t = &self.0 .0;
        // Whoever comes removes what is expired.
        t.engine_table().remove_expired().ok();
        Ok(match op {
            TableOp::Put(k, value) => {
                t.insert_with(&row(k, value), None)?;
                op
            }
            TableOp::Remove(k, _) => {
                let was = t.expire(&key(k), Some(Duration::ZERO))?;
                TableOp::Remove(k, Some(was))
            }
            op => self.0.one(op)?,
        })
    }
}

impl Tabular for Expiring {
    fn apply(&self, op: TableOp) -> TableOp {
        self.one(op).expect("a table that lives")
    }
}

impl Tabular for Rows {
    fn apply(&self, op: TableOp) -> TableOp {
        self.one(op).expect("a table that lives")
    }
}
