//! Nothing is left behind. One test, so that nothing else counts meanwhile.

mod kinds;

use kinds::{table, KINDS};
use larder::api::Larder;
use larder::host::{with_local, Budget, Decision, EngineTable, FixTime, ObjectList, Options, Step};
use larder_term::object::ObjectBuf;
use larder_term::{blob, term, Atom, Term};
use std::sync::Arc;
use std::time::Duration;

const LONG: Duration = Duration::from_secs(60);

/// Resident memory of this process, in bytes.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = status
        .split_whitespace()
        .nth(1)
        .and_then(|n| n.parse::<usize>().ok());
    pages.unwrap_or(0) * 4096
}

fn settle(larder: &Larder, baseline: usize) {
    assert!(larder.engine().reaper_idle(LONG));
    for _ in 0..1000 {
        if blob::live_count() == baseline {
            return;
        }
        larder.engine().reaper_idle(LONG);
        std::thread::sleep(Duration::from_millis(2));
    }
    assert_eq!(blob::live_count(), baseline);
}

fn blob(n: i64) -> Term {
    Term::binary(&[n as u8; 200])
}

/// A binary, or a list of binaries that is stored out of line.
fn big(n: i64) -> Term {
    match n % 2 {
        0 => blob(n),
        _ => Term::list(vec![blob(n); 250]),
    }
}

/// Every operation that stores, replaces or drops a handle, also where a snapshot keeps what there
/// was: some are released on the way, the last when its table is gone.
fn churn(larder: &Larder) {
    for kind in KINDS {
        let t = table(larder.table(kind), kind);
        let rows = |from: i64| -> Vec<Term> {
            (from..from + 500)
                .map(|i| term!({(i % 100), 0, (big(i))}))
                .collect()
        };
        t.insert_all(&rows(0)).unwrap();
        t.insert_all(&rows(50)).unwrap();
        assert!(!t.insert_all_new(&rows(0)).unwrap());
        let mut snapshots = vec![t.snapshot().unwrap(), t.snapshot().unwrap()];
        for i in 0..100i64 {
            t.insert(&term!({(i), 0, (big(i + 7))})).unwrap();
            t.insert_new(&term!({(i), 0, (big(i + 9))})).unwrap();
            t.insert_new(&term!({(i + 1000), 0, (big(i + 9))})).unwrap();
            t.lookup(&term!((i))).unwrap();
            if kind == "set" || kind == "ordered_set" {
                t.add(&term!((i)), 2, 1).unwrap();
                t.update(&term!((i)), 3, &big(i + 3)).unwrap();
                t.add_or(&term!((i + 2000)), 2, 1, &term!({x, 1, (big(i))}))
                    .unwrap();
                exchange(t.engine_table(), larder, i);
            }
            t.delete_object(&term!({(i), 0, (big(i + 7))})).unwrap();
            if i % 10 == 0 {
                // The same keys again: versions pile up, and some are dropped.
                t.insert(&term!({7, 0, (big(i))})).unwrap();
                snapshots.push(t.snapshot().unwrap());
                drop(snapshots.remove(i as usize / 10 % snapshots.len()));
            }
        }
        t.take(&term!(5)).unwrap();
        t.delete(&term!(6)).unwrap();
        if kind != "bag" {
            let spec = "[{{'$1','$2','$3'},[],[{{'$1','$2',{{'$3','$3'}}}}]}]";
            t.select_replace(spec).unwrap();
        }
        t.select_delete("[{{'$1','_','_'},[{'<','$1',50}],[true]}]")
            .unwrap();
        t.insert(&term!({(big(1)), 0, (big(2))})).unwrap();
        t.lookup(&big(1)).unwrap();
        let engine_table = t.engine_table();
        engine_table
            .safe_fix(larder.owner(), FixTime::default())
            .unwrap();
        t.clear().unwrap();
        t.insert_all(&rows(0)).unwrap();
        engine_table.safe_unfix(larder.owner()).unwrap();
        t.clear().unwrap();
        t.insert_all(&rows(9)).unwrap();
        if kind != "bag" {
            t.drop_table().unwrap();
        }
        assert!(snapshots.iter().all(|s| !s.to_vec().unwrap().is_empty()));
    }
}

/// Iterators that are dropped with rows that they have read, and one whose rows go meanwhile.
#[cfg(feature = "serde")]
fn iterate<V>(larder: &Larder, value: impl Fn(u64) -> V)
where
    V: serde::Serialize + serde::de::DeserializeOwned + Clone + PartialEq + std::fmt::Debug,
{
    let ordered = larder.typed::<u64, V>("iterated").unwrap();
    let hashed = larder.typed_hash::<u64, V>("iterated by hash").unwrap();
    ordered.extend((0..200).map(|n| (n, value(n)))).unwrap();
    hashed.extend((0..200).map(|n| (n, value(n)))).unwrap();
    for key in [0, 7, 199] {
        assert_eq!(ordered.get(&key), Ok(Some(value(key))));
        assert_eq!(hashed.get(&key), Ok(Some(value(key))));
        assert_eq!(hashed.insert(key, value(key + 1)), Ok(Some(value(key))));
    }
    for taken in [0, 1, 20, 150, 200] {
        ordered.iter().take(taken).for_each(drop);
        ordered.iter().rev().take(taken).for_each(drop);
        hashed.iter().take(taken).for_each(drop);
        let mut both = ordered.iter();
        both.by_ref().take(taken / 3).for_each(drop);
        both.rev().take(taken / 3).for_each(drop);
    }
    let mut rows = ordered.iter();
    assert_eq!(rows.next(), Some(Ok((0, value(0)))));
    ordered.clear().unwrap();
    ordered.table().drop_table().unwrap();
    hashed.table().drop_table().unwrap();
    assert_eq!(rows.next(), Some(Ok((1, value(1)))));
}

/// A row is put in place of another, and by a function that is overtaken once, and goes.
fn exchange(table: &EngineTable, larder: &Larder, i: i64) {
    let (me, mut object, mut key) = (larder.owner(), ObjectBuf::new(), Vec::new());
    table.encode_key(term!((i + 3000)).as_ref(), &mut key);
    let write = |object: &mut ObjectBuf, n: i64| {
        let row = term!({(i + 3000), 0, (big(n))});
        table.encode_object(row.as_ref(), object).unwrap();
    };
    for n in 0..2 {
        write(&mut object, i + n);
        let put = |local: &mut _| table.exchange_in(local, me, object.borrow(), |_| ());
        assert_eq!(with_local(put), Ok(n == 1));
    }
    for last in [Decision::Put, Decision::Keep, Decision::Remove] {
        let mut calls = 0;
        let compute = |local: &mut _| {
            table.compute_in(local, me, &key, |old, out| {
                assert!(old.is_some());
                calls += 1;
                if calls == 1 {
                    table.insert(me, &object).unwrap();
                }
                write(out, i + calls);
                Ok(last)
            })
        };
        assert_eq!(with_local(compute), Ok(()));
    }
    assert_eq!(table.member(me, &key), Ok(false));
}

/// A table that was dropped while a list was on its way into it, which nobody will finish, and that
/// had something to tell an heir.
fn gone_but_held(larder: &Larder) -> Arc<EngineTable> {
    let (engine, me) = (larder.engine(), larder.owner());
    let mut options = Options::new(Atom::new("gone"));
    options.heir = Some((me, term!({ (big(3)) })));
    let t = engine.create(options, me).unwrap();
    let (mut list, mut object) = (ObjectList::new(), ObjectBuf::new());
    for i in 0..2000i64 {
        t.encode_object(term!({(i), (big(i))}).as_ref(), &mut object)
            .unwrap();
        list.push(&object);
    }
    let mut job = t.begin_insert(me, list, false).unwrap();
    assert_eq!(job.step(&mut Budget::new(100, LONG)), Ok(Step::More));
    drop(job);
    t.drop_table(me).unwrap();
    t
}

#[test]
fn nothing_is_left_behind() {
    let larder = Larder::new();
    let baseline = blob::live_count();
    churn(&larder);
    #[cfg(feature = "serde")]
    {
        iterate(&larder, |n| n.to_string().repeat(200));
        iterate(&larder, |n| vec![n << 40; 500]);
    }
    for t in larder.engine().all() {
        t.drop_table(larder.owner()).unwrap();
    }
    settle(&larder, baseline);

    let held = gone_but_held(&larder);
    settle(&larder, baseline);
    drop(held);

    // An engine that goes with its tables.
    let other = Larder::new();
    churn(&other);
    drop(other);
    settle(&larder, baseline);

    // A hundred thousand tables, some with objects.
    let round = |n: i64| {
        for i in 0..n {
            let mut options = Options::new(Atom::new("many"));
            options.heir = (i % 3 == 0).then(|| (larder.owner(), term!(x)));
            let t = larder.engine().create(options, larder.owner()).unwrap();
            if i % 10 == 0 {
                let mut object = ObjectBuf::new();
                t.encode_object(term!({(i), (blob(i))}).as_ref(), &mut object)
                    .unwrap();
                t.insert(larder.owner(), &object).unwrap();
            }
        }
        assert_eq!(larder.engine().all().len() as i64, n);
        let peak = resident();
        for t in larder.engine().all() {
            t.drop_table(larder.owner()).unwrap();
        }
        settle(&larder, baseline);
        assert!(larder.engine().all().is_empty());
        peak
    };
    let mut peak = round(100_000);
    // What a round leaves to the allocator is enough for the next; beside other work it may want
    // some more once or twice. What is lost is lost in every round.
    let mut after = vec![resident()];
    let is_enough = |after: &[usize]| after.windows(2).any(|two| two[1] < two[0] + (8 << 20));
    while !is_enough(&after) {
        assert!(after.len() < 5, "{after:?} after rounds, {peak} at most");
        peak = round(100_000);
        after.push(resident());
    }
    println!("100,000 tables: {} bytes each at most", peak / 100_000);
}
