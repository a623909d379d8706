//! The destructor of a host's value may use the table that the value was in, whatever operation has
//! dropped it.

use larder::api::{FeedOptions, Larder, Table};
use larder_term::blob::Blob;
use larder_term::{term, Term};
use std::sync::mpsc::channel;
use std::sync::OnceLock;
use std::time::Duration;

/// So many objects that an operation which replaces all of them passes garbage to the epoch.
const ROWS: i64 = 300;
const ROUNDS: usize = 300;

/// Bytes whose destructor reads the row of a key, and writes to it.
struct Using {
    bytes: Vec<u8>,
    table: Table,
    key: i64,
}

impl AsRef<[u8]> for Using {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Using {
    fn drop(&mut self) {
        // The table may be gone. Otherwise there is a row under the key, so the write is refused.
        let _ = self.table.lookup(&term!((self.key)));
        let _ = self.table.insert_new(&term!({(self.key), 0}));
    }
}

/// Objects of such bytes, and of a long number, so that each is a block of memory of its own.
fn rows(table: &Table) -> Vec<Term> {
    let row = |key| {
        let owner = Using {
            bytes: vec![7; 200],
            table: table.clone(),
            key,
        };
        Term::build(|encoder| {
            encoder.begin_tuple(3);
            encoder.int(key);
            encoder.blob(Blob::from_owner(owner));
            encoder.big(false, &[7; 2000]);
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
fn a_destructor_uses_the_table_after_a_commit() {
    replace_rows(|larder, table| {
        let rows = rows(table);
        let insert = |views: &[Table]| rows.iter().try_for_each(|row| views[0].insert(row));
        larder.transaction(&[table], insert).unwrap();
    });
}

#[test]
fn a_destructor_uses_the_table_after_a_list() {
    replace_rows(|_, table| table.insert_all(&rows(table)).unwrap());
}

/// Writes the rows one by one, while keys have locks.
fn write_each(larder: &Larder, table: &Table) {
    // The first transaction gives the keys their locks.
    larder
        .transaction(&[table], |views| views[0].lookup(&term!(1)))
        .unwrap();
    let rows = rows(table);
    rows.iter().for_each(|row| table.insert(row).unwrap());
}

#[test]
fn a_destructor_uses_the_table_after_writes_of_keys_with_locks() {
    replace_rows(write_each);
}

/// A feed that nobody reads has the last references to values. Each write drops an event of its own
/// key.
#[test]
fn a_destructor_uses_the_table_after_an_event_was_lost() {
    let feed = OnceLock::new();
    replace_rows(move |larder, table| {
        let options = FeedOptions {
            limit: 4 * ROWS as usize,
            ..FeedOptions::default()
        };
        feed.get_or_init(|| table.subscribe_with(&options).unwrap());
        write_each(larder, table);
    });
}
