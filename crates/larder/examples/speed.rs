//! Nanoseconds of single operations on tables of a million rows, a set and an ordered_set:
//! `cargo run --release -p larder --example speed`.

use larder::api::{Larder, Table};
use larder::host::{Budget, EngineTable};
use larder_term::object::ObjectBuf;
use larder_term::{term, Term};
use std::hint::black_box;
use std::time::Instant;

fn main() {
    const N: i64 = 1_000_000;
    let larder = Larder::new();
    for ordered in [false, true] {
        let builder = larder.table("t");
        let t = if ordered {
            builder.ordered_set()
        } else {
            builder.set()
        };
        let t = t.create().unwrap();
        let table = t.engine_table();
        let who = table.owner();
        let shuffled = |i: i64| (i * 7_919 + 13) % N;
        let mut object = ObjectBuf::new();
        let start = Instant::now();
        for i in 0..N {
            let row = Term::tuple([Term::from(shuffled(i)), Term::from(i)]);
            table.encode_object(row.as_ref(), &mut object).unwrap();
            table.insert(who, &object).unwrap();
        }
        let insert = start.elapsed().as_nanos() / N as u128;
        let keys: Vec<Vec<u8>> = (0..N)
            .map(|i| {
                let mut key = Vec::new();
                table.encode_key(Term::from(shuffled(i * 31 % N)).as_ref(), &mut key);
                key
            })
            .collect();
        let start = Instant::now();
        let mut found = 0;
        for key in &keys {
            found += table
                .lookup(who, key, &mut |o| {
                    black_box(o.element(2));
                })
                .unwrap();
        }
        let lookup = start.elapsed().as_nanos() / N as u128;
        assert_eq!(found as i64, N);
        let start = Instant::now();
        let met = walk(table);
        let next = start.elapsed().as_nanos() / N as u128;
        assert_eq!(met, N);
        let start = Instant::now();
        assert_eq!(
            t.select_count("[{{'_','$1'},[{'<','$1',500000}],[true]}]")
                .unwrap(),
            500_000
        );
        let scan = start.elapsed().as_nanos() / N as u128;
        let range = if ordered { range_by_guards(&t) } else { 0 };
        let counter = larder::host::CounterOp::new(2, 1.into());
        let mut out = Vec::new();
        let start = Instant::now();
        for key in &keys {
            out.clear();
            table
                .update_counter(who, key, std::slice::from_ref(&counter), None, &mut out)
                .unwrap();
        }
        let count = start.elapsed().as_nanos() / N as u128;
        let bytes = t.memory() / N as usize;
        let start = Instant::now();
        t.clear().unwrap();
        let clear = start.elapsed();
        println!("ordered {ordered}: insert {insert} (with encoding), lookup {lookup}, next {next}, count a row {scan}, select 100 rows by guards {range}, update_counter {count} ns, {bytes} bytes a row, clear {clear:?}");
        assert_eq!(t.insert(&term!({ a })), Ok(()));
        black_box(Budget::slice());
    }
}

/// Goes through a table by `next`. Returns the number of its keys.
fn walk(table: &EngineTable) -> i64 {
    let (who, mut key, mut met) = (table.owner(), Vec::new(), 0);
    let mut more = table.first(who, &mut |k| table.encode_key(k, &mut key));
    while more.unwrap() {
        met += 1;
        let mut next = Vec::new();
        more = table.next(who, &key, &mut |k| table.encode_key(k, &mut next));
        key = next;
    }
    met
}

/// Nanoseconds of a select of a hundred rows, which its guards find by a range of keys: compiled
/// and run, the best of twenty.
fn range_by_guards(t: &Table) -> u128 {
    let spec = "[{{'$1','_'},[{'>=','$1',500000},{'<','$1',500100}],['$1']}]";
    let select = || {
        let start = Instant::now();
        assert_eq!(t.select(spec).unwrap().len(), 100);
        start.elapsed().as_nanos()
    };
    (0..20).map(|_| select()).min().unwrap_or(0)
}
