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
    let mut operations = operations();
    operations.retain(|operation| operation.name.starts_with(&begin));
    for Operation { name, prepare } in operations {
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
        of_a_kind(&mut all, kind, row);
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

/// The kinds of rows, and how each is made.
const KINDS: [(&str, Row); 13] = {
    let bytes_16: Row = |i| of(Term::binary(&i128::from(i).to_be_bytes()), Term::int(i));
    let large: Row = |i| of(Term::int(i), Term::binary(&[i as u8; 2048]));
    let small: Row = |i| of(Term::int(i), Term::binary(&[i as u8; 65]));
    let map_3: Row = |i| term!({(i), #{name => (i), size => (2 * i), state => ready}});
    let nested: Row = |i| term!({(i), {a, {b, {c, (i)}, [1, 2, {d, 4}]}, {e, (i)}}});
    let text: Row = |i| of(Term::int(i), string(b"a string of twenty-six signs"));
    let float: Row = |i| of(Term::int(i), Term::float(i as f64 + 0.25).expect("finite"));
    [
        ("small integers", int),
        ("records of 20 fields", record),
        ("reference keys", reference),
        ("keys of 16 bytes", bytes_16),
        ("bignums", |i| of(Term::int(i), big(i))),
        ("bignum keys", |i| of(big(i), Term::int(i))),
        ("2 KiB binaries", large),
        ("65-byte binaries", small),
        ("maps of 3", map_3),
        ("maps of 40", |i| of(Term::int(i), map(i))),
        ("nested tuples", nested),
        ("strings", text),
        ("floats", float),
    ]
};

fn of(key: Term, value: Term) -> Term {
    term!({(key), (value)})
}

fn int(i: i64) -> Term {
    term!({(i), (i)})
}

fn record(i: i64) -> Term {
    let [long, short] = [&b"sixteen bytes!!!"[..], b"short"].map(Term::binary);
    let text = string(b"a string");
    term!({
        (i), active, 1, (1000 * i), (long), 2.5, (text), undefined, [1, 2, 3], {2026, 11, 23},
        true, (i), (short), [{key, (i)}], none, (-i), ((1i64 << 40) + i), infinity, [], ok
    })
}

fn string(text: &[u8]) -> Term {
    Term::list(text.iter().map(|&c| Term::int(i64::from(c))))
}

fn map(i: i64) -> Term {
    let pairs: Vec<_> = (1..=40).map(|k| (Term::int(k), Term::int(i + k))).collect();
    Term::map(pairs).expect("different keys")
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

/// Adds operations on tables of a kind, a line each: a name and a call, by [`by_keys`],
/// [`into_empty`] or [`scan`].
macro_rules! calls {
    ($all:ident, $add:ident, $kind:ident; $($name:literal => $call:expr;)*) => {
        $($add($all, $name, $kind, $call);)*
    };
}

fn of_sets(all: &mut Vec<Operation>) {
    calls! { all, by_keys, set;
        "set: lookup of an absent key" => |t, i| assert_eq!(found(t.lookup(&Term::int(-i))), 0);
        "set: contains" => |t, i| assert!(found_it(t.contains(&Term::int(i))));
        "set: insert_new of a key that is there" => |t, i| {
            assert!(!found_it(t.insert_new(&int(i))))
        };
    }
    calls! { all, into_empty, set; "set: insert of new rows" => |t, row| done(t.insert(row)); }
    calls! { all, by_keys, set;
        "set: delete" => |t, i| assert_eq!(t.delete(&Term::int(i)).ok(), Some(1));
        "set: delete_object" => |t, i| assert_eq!(t.delete_object(&int(i)).ok(), Some(1));
        "set: take" => |t, i| assert_eq!(found(t.take(&Term::int(i))), 1);
        "set: add" => |t, i| done(t.add(&Term::int(i), 2, 1).map(drop));
        "set: add_or of an absent key" => |t, i| {
            done(t.add_or(&Term::int(-i), 2, 1, &int(0)).map(drop))
        };
        "set: update" => |t, i| {
            assert!(found_it(t.update(&Term::int(i), 2, &Term::from(atoms::OK))))
        };
        "set: next of a random key" => |t, i| done(t.next(&Term::int(i)).map(drop));
    }
    let in_order = "set: first and next, in order";
    steps(all, in_order, set, Table::first, Table::next);
}

fn of_ordered_sets(all: &mut Vec<Operation>) {
    calls! { all, by_keys, ordered_set;
        "ordered_set: lookup" => |t, i| assert_eq!(found(t.lookup(&Term::int(i))), 1);
        "ordered_set: insert over" => |t, i| done(t.insert(&int(i)));
    }
    calls! { all, into_empty, ordered_set;
        "ordered_set: insert of new rows" => |t, row| done(t.insert(row));
    }
    calls! { all, by_keys, ordered_set;
        "ordered_set: delete" => |t, i| assert_eq!(t.delete(&Term::int(i)).ok(), Some(1));
        "ordered_set: next of a random key" => |t, i| done(t.next(&Term::int(i)).map(drop));
    }
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
    calls! { all, by_keys, set; "select with the key bound" => |t, i| {
        assert_eq!(found(t.select(format!("[{{{{{i},'$1'}},[],['$1']}}]"))), 1)
    }; }
    calls! { all, scan, set;
        "select_count of 1,000 rows by a guard" => |t| {
            assert_eq!(t.select_count(OVER_500).ok(), Some(500))
        };
        "select of 1,000 rows with a body that builds" => |t| {
            assert_eq!(found(t.select("[{{'$1','$2'},[],[{{'$2','$1'}}]}]")), ROWS as usize)
        };
        "select that finds one of 1,000 rows" => |t| {
            assert_eq!(found(t.select("[{{'$1',77},[],['$1']}]")), 1)
        };
        "to_vec of 1,000 rows" => |t| assert_eq!(found(t.to_vec()), ROWS as usize);
        "select_replace of 1,000 rows" => |t| {
            let many = t.select_replace("[{{'$1','$2'},[],[{{'$1',{'+','$2',1}}}]}]");
            assert_eq!(many.ok(), Some(ROWS as u64))
        };
    }
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

/// Counts the rows whose value is over 500.
const OVER_500: &str = "[{{'_','$1'},[{'>','$1',500}],[true]}]";

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
                assert_eq!(snapshot.select_count(OVER_500).ok(), Some(500));
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
fn scan(all: &mut Vec<Operation>, name: &str, kind: Kind, call: fn(&Table)) {
    add(all, name, move |larder| {
        let (table, _) = filled(kind(larder.table("t")), int);
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
