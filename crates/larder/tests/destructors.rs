//! The destructor of a host's value may use the table that the value was in, whatever operation has
//! dropped it.

use larder::api::{Larder, Table};
use larder_term::blob::Blob;
use larder_term::{term, Term};
use std::sync::mpsc::channel;
use std::time::Duration;

/// So many objects that an operation which replaces all of them passes garbage to the epoch.
const ROWS: i64 = 300;
const ROUNDS: usize = 300;

/// Bytes whose destructor reads from a table.
struct Reading {
    bytes: Vec<u8>,
    table: Table,
}

impl AsRef<[u8]> for Reading {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        // The table may be gone.
        let _ = self.table.lookup(&term!(1));
    }
}

/// Objects of such bytes.
fn rows(table: &Table) -> Vec<Term> {
    let row = |key| {
        let owner = Reading {
            bytes: vec![7; 200],
            table: table.clone(),
        };
        Term::build(|encoder| {
            encoder.begin_tuple(2);
            encoder.int(key);
            encoder.blob(Blob::from_owner(owner));
        })
    };
    (0..ROWS).map(|key| row(key).unwrap()).collect()
}

/// Replaces all objects again and again.
fn replace_rows(replace: impl Fn(&Larder, &Table) + Send + 'static) {
    let (done, is_done) = channel();
    std::thread::spawn(move || {
        let larder = Larder::new();
        let table = larder.table("t").create().unwrap();
        // No destructor has the last handle.
        std::mem::forget((larder.clone(), table.clone()));
        (0..ROUNDS).for_each(|_| replace(&larder, &table));
        assert_eq!(table.len(), ROWS as usize);
        table.drop_table().unwrap();
        done.send(()).unwrap();
    });
    assert_eq!(is_done.recv_timeout(Duration::from_secs(60)), Ok(()));
}

#[test]
fn a_destructor_reads_after_a_commit() {
    replace_rows(|larder, table| {
        let rows = rows(table);
        let insert = |views: &[Table]| rows.iter().try_for_each(|row| views[0].insert(row));
        larder.transaction(&[table], insert).unwrap();
    });
}

#[test]
fn a_destructor_reads_after_a_list() {
    replace_rows(|_, table| table.insert_all(&rows(table)).unwrap());
}

#[test]
fn a_destructor_reads_after_writes_of_keys_with_locks() {
    replace_rows(|larder, table| {
        // The first transaction gives the keys their locks.
        larder
            .transaction(&[table], |views| views[0].lookup(&term!(1)))
            .unwrap();
        let rows = rows(table);
        rows.iter().for_each(|row| table.insert(row).unwrap());
    });
}
