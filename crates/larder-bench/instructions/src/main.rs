//! `make bench-instructions`, the part from Rust: operations through [`larder::api`], each on
//! tables of its own, for callgrind to count.
//!
//! `scripts/instructions.sh` runs this program under callgrind, which counts only within
//! [`counted`] and writes a part of its file after each call of it. The program prints one line for
//! each of these calls, in the same order: how many calls of the operation it was, and its name. An
//! argument chooses the operations whose names begin with it.

#![forbid(unsafe_code)]

use larder::api::{Builder, Larder, Snapshot, Table};
use larder_term::{atoms, term, Node, Term};

/// That of the libraries for Erlang and C. The C library's takes more or fewer instructions by what
/// lies beside a block: up to 9 % of a lookup.
#[global_allocator]
static ALLOCATOR: larder_index::Allocator = larder_index::Allocator;

/// Rows of a table.
const ROWS: i64 = 1000;
/// Tables of each operation, each with a seed of its own, so that a mean takes several.
const ROUNDS: usize = 3;
/// Objects under a key of a bag.
const UNDER_A_KEY: i64 = 8;

/// What is counted, with its data made ready: does the work and gives the number of calls.
type Work = Box<dyn FnMut() -> usize>;

struct Operation {
    name: String,
    prepare: Box<dyn Fn(&Larder) -> Work>,
}

/// All that callgrind counts happens in here.
#[inline(never)]
fn counted(work: &mut Work) -> usize {
    work()
}

fn main() {
    let larder = Larder::new();
    let begin = std::env::args().nth(1).unwrap_or_default();
    let chosen = |name: &str| name.starts_with(&begin);
    for Operation { name, prepare } in operations() {
        if !chosen(&name) {
            continue;
        }
        // The first round is for what a thread or a program does once.
        prepare(&larder)();
        for _ in 0..ROUNDS {
            let calls = counted(&mut prepare(&larder));
            println!("{calls} {name}");
        }
    }
}

fn operations() -> Vec<Operation> {
    let mut all = Vec::new();
    for (kind, row) in KINDS {
        of_a_kind(&mut all, kind, *row);
    }
    of_sets(&mut all);
    of_ordered_sets(&mut all);
    of_bags(&mut all);
    of_tables(&mut all);
    of_scans(&mut all);
    of_snapshots(&mut all);
    all
}

/// Makes the row of a number.
type Row = fn(i64) -> Term;

const KINDS: &[(&str, Row)] = &[
    ("small integers", int),
    ("records of 20 fields", record),
    ("reference keys", reference),
    ("keys of 16 bytes", |i| {
        let key = Term::binary(&i128::from(i).to_be_bytes());
        term!({(key), (i)})
    }),
    ("bignums", |i| {
        let large = big(i);
        term!({(i), (large)})
    }),
    ("bignum keys", |i| {
        let large = big(i);
        term!({(large), (i)})
    }),
    ("2 KiB binaries", |i| {
        let bytes = Term::binary(&[i as u8; 2048]);
        term!({(i), (bytes)})
    }),
    ("65-byte binaries", |i| {
        let bytes = Term::binary(&[i as u8; 65]);
        term!({(i), (bytes)})
    }),
    (
        "maps of 3",
        |i| term!({(i), #{name => (i), size => (2 * i), state => ready}}),
    ),
    ("maps of 40", |i| {
        let pairs: Vec<_> = (1..=40).map(|k| (Term::int(k), Term::int(i + k))).collect();
        let map = Term::map(pairs).expect("different keys");
        term!({(i), (map)})
    }),
    (
        "nested tuples",
        |i| term!({(i), {a, {b, {c, (i)}, [1, 2, {d, 4}]}, {e, (i)}}}),
    ),
    ("strings", |i| {
        let text = Term::list(b"a string of twenty-six signs".map(|c| Term::int(i64::from(c))));
        term!({(i), (text)})
    }),
    ("floats", |i| {
        let float = Term::float(i as f64 + 0.25).expect("finite");
        term!({(i), (float)})
    }),
];

fn int(i: i64) -> Term {
    term!({(i), (i)})
}

fn record(i: i64) -> Term {
    let fields = [
        term!((i)),
        term!(active),
        term!(1),
        term!((1000 * i)),
        Term::binary(b"sixteen bytes!!!"),
        term!(2.5),
        Term::list(b"a string".map(|c| Term::int(i64::from(c)))),
        term!(undefined),
        term!([1, 2, 3]),
        term!({2026, 11, 23}),
        term!(true),
        term!((i)),
        Term::binary(b"short"),
        term!([{key, (i)}]),
        term!(none),
        term!((-i)),
        term!(((1i64 << 40) + i)),
        term!(infinity),
        Term::nil(),
        term!(ok),
    ];
    Term::tuple(fields)
}

fn reference(i: i64) -> Term {
    let key = Term::reference(Node::Local, &[i as u32, 7, 9]);
    term!({(key), (i)})
}

fn big(i: i64) -> Term {
    larder_term::text::parse(&format!("{}", (1i128 << 70) + i128::from(i))).expect("a number")
}

fn of_a_kind(all: &mut Vec<Operation>, kind: &str, row: Row) {
    add(all, &format!("set of {kind}: lookup"), move |larder| {
        let (table, rows) = filled(larder.table("t"), row);
        let keys: Vec<_> = rows.iter().map(key).collect();
        each(keys, move |key| assert_eq!(found(table.lookup(key)), 1))
    });
    add(all, &format!("set of {kind}: insert over"), move |larder| {
        let (table, rows) = filled(larder.table("t"), row);
        each(rows, move |row| done(table.insert(row)))
    });
}

fn of_sets(all: &mut Vec<Operation>) {
    by_keys(all, "set: lookup of an absent key", set, |t, i| {
        assert_eq!(found(t.lookup(&Term::int(-i))), 0);
    });
    by_keys(all, "set: contains", set, |t, i| {
        assert!(found_it(t.contains(&Term::int(i))));
    });
    by_keys(
        all,
        "set: insert_new of a key that is there",
        set,
        |t, i| {
            assert!(!found_it(t.insert_new(&int(i))));
        },
    );
    into_empty(all, "set: insert of new rows", set, |t, row| {
        done(t.insert(row))
    });
    by_keys(all, "set: delete", set, |t, i| {
        assert_eq!(t.delete(&Term::int(i)).ok(), Some(1));
    });
    by_keys(all, "set: delete_object", set, |t, i| {
        assert_eq!(t.delete_object(&int(i)).ok(), Some(1));
    });
    by_keys(all, "set: take", set, |t, i| {
        assert_eq!(found(t.take(&Term::int(i))), 1);
    });
    by_keys(all, "set: add", set, |t, i| {
        done(t.add(&Term::int(i), 2, 1).map(drop));
    });
    by_keys(all, "set: add_or of an absent key", set, |t, i| {
        done(t.add_or(&Term::int(-i), 2, 1, &int(0)).map(drop));
    });
    by_keys(all, "set: update", set, |t, i| {
        let ready = Term::from(atoms::OK);
        assert!(found_it(t.update(&Term::int(i), 2, &ready)));
    });
    by_keys(all, "set: next of a random key", set, |t, i| {
        done(t.next(&Term::int(i)).map(drop));
    });
    steps(
        all,
        "set: first and next, in order",
        set,
        Table::first,
        Table::next,
    );
}

fn of_ordered_sets(all: &mut Vec<Operation>) {
    by_keys(all, "ordered_set: lookup", ordered_set, |t, i| {
        assert_eq!(found(t.lookup(&Term::int(i))), 1);
    });
    by_keys(all, "ordered_set: insert over", ordered_set, |t, i| {
        done(t.insert(&int(i)));
    });
    into_empty(
        all,
        "ordered_set: insert of new rows",
        ordered_set,
        |t, row| {
            done(t.insert(row));
        },
    );
    by_keys(all, "ordered_set: delete", ordered_set, |t, i| {
        assert_eq!(t.delete(&Term::int(i)).ok(), Some(1));
    });
    let next = "ordered_set: next of a random key";
    by_keys(all, next, ordered_set, |t, i| {
        done(t.next(&Term::int(i)).map(drop));
    });
    let forwards = "ordered_set: first and next, in order";
    steps(all, forwards, ordered_set, Table::first, Table::next);
    let backwards = "ordered_set: last and prev, in order";
    steps(all, backwards, ordered_set, Table::last, Table::prev);
    let guards = "ordered_set: select of ten rows by guards on the key";
    by_keys(all, guards, ordered_set, |t, i| {
        let to = i + 10;
        let spec = format!("[{{{{'$1','_'}},[{{'>=','$1',{i}}},{{'<','$1',{to}}}],['$_']}}]");
        assert!(found(t.select(&spec)) > 0);
    });
}

fn of_bags(all: &mut Vec<Operation>) {
    add(all, "bag: insert of new objects", |larder| {
        let table = made(larder.table("t").bag());
        each(rows(in_bag), move |row| done(table.insert(row)))
    });
    add(all, "bag: insert of an object that is there", |larder| {
        let (table, rows) = filled(larder.table("t").bag(), in_bag);
        each(rows, move |row| done(table.insert(row)))
    });
    add(all, "bag: lookup of eight objects", |larder| {
        let (table, _) = filled(larder.table("t").bag(), in_bag);
        let keys = (0..ROWS).map(|i| Term::int(i % (ROWS / UNDER_A_KEY)));
        let under = UNDER_A_KEY as usize;
        each(keys.collect(), move |key| {
            assert_eq!(found(table.lookup(key)), under);
        })
    });
    add(all, "bag: delete_object", |larder| {
        let (table, rows) = filled(larder.table("t").bag(), in_bag);
        each(rows, move |row| {
            assert_eq!(table.delete_object(row).ok(), Some(1));
        })
    });
}

fn in_bag(i: i64) -> Term {
    term!({(i % (ROWS / UNDER_A_KEY)), (i)})
}

fn of_tables(all: &mut Vec<Operation>) {
    add(all, "create and drop of an empty table", |larder| {
        let larder = larder.clone();
        each((0..200).map(Term::int).collect(), move |_| {
            done(made(larder.table("t")).drop_table());
        })
    });
    add(all, "insert_all of 30 new rows", |larder| {
        // The tables are made beforehand, so that only the inserts are counted.
        let mut tables: Vec<_> = (0..50).map(|_| made(larder.table("t"))).collect();
        let rows = rows(int)[..30].to_vec();
        Box::new(move || {
            for table in &tables {
                done(table.insert_all(&rows));
            }
            let calls = tables.len();
            tables.clear();
            calls
        })
    });
}

fn of_scans(all: &mut Vec<Operation>) {
    by_keys(all, "select with the key bound", set, |t, i| {
        assert_eq!(found(t.select(format!("[{{{{{i},'$1'}},[],['$1']}}]"))), 1);
    });
    scan(all, "select_count of 1,000 rows by a guard", |t| {
        let many = t.select_count("[{{'_','$1'},[{'>','$1',500}],[true]}]");
        assert_eq!(many.ok(), Some(500));
    });
    scan(all, "select of 1,000 rows with a body that builds", |t| {
        let many = found(t.select("[{{'$1','$2'},[],[{{'$2','$1'}}]}]"));
        assert_eq!(many, ROWS as usize);
    });
    scan(all, "select that finds one of 1,000 rows", |t| {
        assert_eq!(found(t.select("[{{'$1',77},[],['$1']}]")), 1);
    });
    scan(all, "to_vec of 1,000 rows", |t| {
        assert_eq!(found(t.to_vec()), ROWS as usize);
    });
    scan(all, "select_replace of 1,000 rows", |t| {
        let many = t.select_replace("[{{'$1','$2'},[],[{{'$1',{'+','$2',1}}}]}]");
        assert_eq!(many.ok(), Some(ROWS as u64));
    });
    add(all, "select_delete of 1,000 rows", |larder| {
        let (table, _) = filled(larder.table("t"), int);
        each(vec![Term::nil()], move |_| {
            assert_eq!(
                table.select_delete("[{'_',[],[true]}]").ok(),
                Some(ROWS as u64)
            );
        })
    });
}

/// Replaces a row.
type Write = fn(&Table, &Term);

/// Writes beside a snapshot, and reads of one.
fn of_snapshots(all: &mut Vec<Operation>) {
    let kinds: [(&str, Kind, Write); 3] = [
        ("set", set, write_over),
        ("ordered_set", ordered_set, write_over),
        ("bag", Builder::bag, delete_and_insert),
    ];
    for (name, kind, write) in kinds {
        let of = |what: &str| format!("{name} beside a snapshot: {what}");
        for (what, is_first) in [("first write of a key", true), ("later write", false)] {
            add(all, &of(what), move |larder| {
                let (table, _) = filled(kind(larder.table("t")), int);
                let (rows, snapshot) = (rows(changed), snapshot(&table));
                if !is_first {
                    rows.iter().for_each(|row| write(&table, row));
                }
                each(rows, move |row| {
                    // The snapshot lives as long as the closure.
                    let _ = &snapshot;
                    write(&table, row);
                })
            });
        }
        let of = |what: &str| format!("{name}, snapshot, a tenth has changed: {what}");
        add(all, &of("lookup"), move |larder| {
            let (_table, snapshot) = a_tenth_changed(larder, kind, write);
            each(numbers().map(Term::int).collect(), move |key| {
                assert_eq!(found(snapshot.lookup(key)), 1);
            })
        });
        add(all, &of("select_count of 1,000 rows"), move |larder| {
            let (_table, snapshot) = a_tenth_changed(larder, kind, write);
            each(vec![Term::nil(); 3], move |_| {
                let many = snapshot.select_count("[{{'_','$1'},[{'>','$1',500}],[true]}]");
                assert_eq!(many.ok(), Some(500));
            })
        });
    }
}

/// A table, and a snapshot of it. Every tenth row has changed since.
fn a_tenth_changed(larder: &Larder, kind: Kind, write: Write) -> (Table, Snapshot) {
    let (table, _) = filled(kind(larder.table("t")), int);
    let snapshot = snapshot(&table);
    for i in numbers().step_by(10) {
        write(&table, &changed(i));
    }
    (table, snapshot)
}

fn snapshot(table: &Table) -> Snapshot {
    table.snapshot().expect("a snapshot")
}

/// Another row under the same key.
fn changed(i: i64) -> Term {
    term!({(i), (ROWS + 1 - i)})
}

fn write_over(table: &Table, row: &Term) {
    done(table.insert(row));
}

fn delete_and_insert(table: &Table, row: &Term) {
    assert_eq!(table.delete(&key(row)).ok(), Some(1));
    write_over(table, row);
}

/// Sets a builder up.
type Kind = fn(Builder) -> Builder;

fn set(builder: Builder) -> Builder {
    builder.set()
}

fn ordered_set(builder: Builder) -> Builder {
    builder.ordered_set()
}

fn add(all: &mut Vec<Operation>, name: &str, prepare: impl Fn(&Larder) -> Work + 'static) {
    all.push(Operation {
        name: name.to_owned(),
        prepare: Box::new(prepare),
    });
}

/// A call for each key of a full table.
fn by_keys(all: &mut Vec<Operation>, name: &str, kind: Kind, call: fn(&Table, i64)) {
    add(all, name, move |larder| {
        let (table, _) = filled(kind(larder.table("t")), int);
        Box::new(move || {
            numbers().for_each(|i| call(&table, i));
            numbers().count()
        })
    });
}

/// A call for each row, on a table that is empty at first.
fn into_empty(all: &mut Vec<Operation>, name: &str, kind: Kind, call: fn(&Table, &Term)) {
    add(all, name, move |larder| {
        let table = made(kind(larder.table("t")));
        each(rows(int), move |row| call(&table, row))
    });
}

/// A few calls on a full table.
fn scan(all: &mut Vec<Operation>, name: &str, call: fn(&Table)) {
    add(all, name, move |larder| {
        let (table, _) = filled(larder.table("t"), int);
        each(vec![Term::nil(); 3], move |_| call(&table))
    });
}

/// From one end of a table to the other.
fn steps(
    all: &mut Vec<Operation>,
    name: &str,
    kind: Kind,
    begin: impl Fn(&Table) -> Result<Option<Term>, larder::Error> + Copy + 'static,
    step: impl Fn(&Table, &Term) -> Result<Option<Term>, larder::Error> + Copy + 'static,
) {
    add(all, name, move |larder| {
        let (table, _) = filled(kind(larder.table("t")), int);
        Box::new(move || {
            let (mut calls, mut at) = (1, begin(&table).expect("a table"));
            while let Some(key) = at {
                at = step(&table, &key).expect("a key that is there");
                calls += 1;
            }
            assert_eq!(calls, ROWS as usize + 1);
            calls
        })
    });
}

fn each(terms: Vec<Term>, mut call: impl FnMut(&Term) + 'static) -> Work {
    Box::new(move || {
        terms.iter().for_each(&mut call);
        terms.len()
    })
}

/// The keys, in no order.
fn numbers() -> impl Iterator<Item = i64> {
    // 617 has no factor in common with the number of rows, so every key comes once.
    (1..=ROWS).map(|i| i * 617 % ROWS + 1)
}

fn rows(row: Row) -> Vec<Term> {
    numbers().map(row).collect()
}

fn made(builder: Builder) -> Table {
    builder.create().expect("a table")
}

fn filled(builder: Builder, row: Row) -> (Table, Vec<Term>) {
    let (table, rows) = (made(builder), rows(row));
    // Not as a list: the background thread would free that, beside what is counted.
    for row in &rows {
        done(table.insert(row));
    }
    (table, rows)
}

fn key(row: &Term) -> Term {
    let tuple = row.as_ref().as_tuple().expect("a tuple");
    Term::from(tuple.get(0).expect("a key"))
}

fn found(result: Result<Vec<Term>, larder::Error>) -> usize {
    result.expect("rows").len()
}

fn found_it(result: Result<bool, larder::Error>) -> bool {
    result.expect("a table")
}

fn done(result: Result<(), larder::Error>) {
    result.expect("a table");
}
