//! Folds: chunks of objects, and whether they still are what the table has.

mod kinds;

use kinds::{table, KINDS};
use larder::api::{Larder, Table};
use larder::host::{with_local, EngineTable, FoldChunk, ShowObject, Stored};
use larder::{Direction, Error};
use larder_term::{term, Term};

fn tables() -> [Table; 4] {
    KINDS.map(|kind| table(Larder::new().table(kind), kind))
}

fn per_key(t: &Table) -> i64 {
    if t.engine_table().kind().is_unique() {
        1
    } else {
        3
    }
}

fn fill(t: &Table, keys: i64) {
    let n = per_key(t);
    let rows: Vec<Term> = (0..keys * n).map(|i| term!({(i / n), (i % n)})).collect();
    t.insert_all(&rows).unwrap();
}

/// A chunk of a patient or an impatient caller.
fn chunk(
    table: &EngineTable,
    is_impatient: bool,
    from: Option<&[u8]>,
    direction: Direction,
    count: usize,
    show: &mut impl ShowObject,
) -> Result<FoldChunk, Error> {
    with_local(|local| {
        local.is_impatient = is_impatient;
        table.fold(local, table.owner(), from, direction, count, show)
    })
}

/// What a fold in chunks of `count` shows: the numbers of the objects' keys, those of one key
/// together.
fn folded(t: &Table, direction: Direction, count: usize) -> Vec<Vec<i64>> {
    folded_while(t.engine_table(), false, direction, count).0
}

/// The same, of a caller that may be impatient; and whether it was warned that it would take long.
fn folded_while(
    table: &EngineTable,
    is_impatient: bool,
    direction: Direction,
    count: usize,
) -> (Vec<Vec<i64>>, bool) {
    let mut all: Vec<Vec<i64>> = Vec::new();
    let mut from: Option<Vec<u8>> = None;
    let mut was_last = false;
    loop {
        let mut rows: Vec<Vec<i64>> = Vec::new();
        let mut last = None;
        let mut show = |object: Stored<'_>, first: bool| {
            let object = object.view();
            let number = |i| match object.element(i).map(|e| e.as_int()) {
                Some(Some(n)) => n,
                other => panic!("{other:?}"),
            };
            if first {
                rows.push(vec![number(1)]);
            }
            rows.last_mut().unwrap().push(number(2));
            last = Some(Term::from(object.key()));
        };
        let from_key = from.as_deref();
        match chunk(table, is_impatient, from_key, direction, count, &mut show) {
            Ok(chunk) => {
                assert!(!was_last || last.is_none(), "{table:?} had more");
                was_last = chunk.next == 0;
            }
            Err(Error::Long) => return (all, true),
            Err(error) => panic!("{error}"),
        }
        let Some(last) = last else {
            return (all, false);
        };
        let mut key = Vec::new();
        table.encode_key(last.as_ref(), &mut key);
        from = Some(key);
        all.extend(rows);
    }
}

/// Nothing has been shown when an impatient caller hears that there is much to leave out.
#[test]
fn what_is_left_out_ends_a_chunk() {
    for t in tables() {
        fill(&t, 20);
        let snapshot = t.snapshot().unwrap();
        let view = snapshot.engine_table();
        let (rows, is_long) = folded_while(view, true, Direction::Forward, 7);
        assert_eq!((rows.len(), is_long), (20, false), "{t:?}");
        let n = per_key(&t);
        let newer = (20 * n..20_000 * n).map(|i| term!({(i / n), (i % n)}));
        t.insert_all(&newer.collect::<Vec<_>>()).unwrap();
        // In a table by hash, the old rows lie among the newer ones.
        let direction = Direction::Forward;
        let (some, is_long) = folded_while(view, true, direction, 1000);
        assert!(is_long && some.len() <= 20, "{t:?}: {some:?}");
        let (all, _) = folded_while(view, false, direction, 1000);
        assert_eq!(all.len(), 20);
        assert_eq!(all[..some.len()], some, "{t:?}");
        if t.engine_table().kind().is_ordered() {
            assert_eq!(some.len(), 20);
            let (none, _) = folded_while(view, true, Direction::Backward, 1000);
            assert_eq!(none.len(), 0);
        }
    }
}

/// A chunk ends early if rows that are left out lie between those that are shown.
#[test]
fn an_impatient_chunk_has_a_bound() {
    let t = Larder::new().table("t").ordered_set().create().unwrap();
    let some = |step: usize| (0..40_000i64).step_by(step).map(|i| term!({(i), 0}));
    t.insert_all(&some(400).collect::<Vec<_>>()).unwrap();
    let snapshot = t.snapshot().unwrap();
    t.insert_all(&some(1).collect::<Vec<_>>()).unwrap();
    let view = snapshot.engine_table();
    let mut shown = 0;
    let mut show = |_: Stored<'_>, _: bool| shown += 1;
    chunk(view, true, None, Direction::Forward, 256, &mut show).unwrap();
    assert!((1..=10).contains(&shown), "{shown}");
    let (all, is_long) = folded_while(view, true, Direction::Forward, 256);
    assert_eq!((all.len(), is_long), (100, false));
}

#[test]
fn chunks_of_any_size_show_everything_once() {
    for t in tables() {
        fill(&t, 700);
        let wanted: Vec<Vec<i64>> = (0..700)
            .map(|key| std::iter::once(key).chain(0..per_key(&t)).collect())
            .collect();
        for count in [1, 2, 3, 64, 256, 10_000] {
            let mut seen = folded(&t, Direction::Forward, count);
            let ordered = t.engine_table().kind().is_ordered();
            if !ordered {
                seen.sort();
            }
            assert_eq!(seen, wanted, "{t:?} {count}");
            let mut seen = folded(&t, Direction::Backward, count);
            if ordered {
                seen.reverse();
            } else {
                seen.sort();
            }
            assert_eq!(seen, wanted, "{t:?} {count}");
        }
    }
}

/// A chunk that reaches the end of the table says so, and no other one.
#[test]
fn the_last_chunk_says_so() {
    for t in tables() {
        fill(&t, 20);
        for direction in [Direction::Forward, Direction::Backward] {
            let next = |count| {
                let mut show = |_: Stored<'_>, _: bool| {};
                let chunk = chunk(t.engine_table(), false, None, direction, count, &mut show);
                chunk.unwrap().next
            };
            assert_eq!(next(100), 0, "{t:?}");
            assert_ne!(next(10), 0, "{t:?}");
        }
    }
}

#[test]
fn a_key_with_more_objects_than_a_leaf_stays_together() {
    let t = Larder::new().table("t").duplicate_bag().create().unwrap();
    for key in 0..3i64 {
        let rows: Vec<Term> = (0..5000i64).map(|i| term!({(key), (i)})).collect();
        t.insert_all(&rows).unwrap();
    }
    for count in [1, 100, 7000] {
        let mut seen = folded(&t, Direction::Forward, count);
        seen.sort();
        let wanted: Vec<Vec<i64>> = (0..3)
            .map(|key| std::iter::once(key).chain(0..5000).collect())
            .collect();
        assert!(seen == wanted, "{count}");
    }
}

#[test]
fn every_change_is_reported() {
    for t in tables() {
        fill(&t, 10);
        let table = t.engine_table();
        let watch = || {
            chunk(
                table,
                false,
                None,
                Direction::Forward,
                5,
                &mut |_: Stored<'_>, _: bool| {},
            )
            .unwrap()
            .stamp
        };
        let before = watch();
        assert!(table.is_unchanged(before));
        t.lookup(&term!(3)).unwrap();
        t.select_count("[{'_',[],[true]}]").unwrap();
        assert!(table.is_unchanged(before), "{t:?} was only read");
        let changes: [(&str, &dyn Fn()); 5] = [
            ("insert", &|| {
                t.insert(&term!({100, x})).unwrap();
            }),
            ("insert_all", &|| {
                t.insert_all(&[term!({3, y}), term!({101, y})]).unwrap();
            }),
            ("delete", &|| {
                t.delete(&term!(5)).unwrap();
            }),
            ("select_delete", &|| {
                t.select_delete("[{{7,'_'},[],[true]}]").unwrap();
            }),
            ("delete_all_objects", &|| {
                t.clear().unwrap();
            }),
        ];
        for (name, change) in changes {
            let watched = watch();
            assert!(table.is_unchanged(watched), "{name}");
            change();
            assert!(!table.is_unchanged(watched), "{t:?} {name}");
            assert!(!table.is_unchanged(before), "{t:?} {name}");
        }
    }
}

#[test]
fn a_dropped_table_is_reported() {
    let larder = Larder::new();
    let t = larder.table("t").create().unwrap();
    fill(&t, 10);
    let table = std::sync::Arc::clone(t.engine_table());
    let watched = chunk(
        &table,
        false,
        None,
        Direction::Forward,
        5,
        &mut |_: Stored<'_>, _: bool| {},
    )
    .unwrap()
    .stamp;
    t.drop_table().unwrap();
    assert!(!table.is_unchanged(watched));
    let again = chunk(
        &table,
        false,
        None,
        Direction::Forward,
        5,
        &mut |_: Stored<'_>, _: bool| {},
    );
    assert!(matches!(again.err(), Some(Error::NoTable)));
}

/// The bytes of objects count as they are when they are read: in a compressed table, too.
#[test]
fn large_objects_end_a_chunk() {
    let larder = Larder::new();
    let plain = larder.table("plain").create().unwrap();
    let packed = larder.table("packed").compressed().create().unwrap();
    for t in [plain, packed] {
        let zeros = Term::list(vec![Term::from(0); 10_000]);
        for key in 0..10 {
            t.insert(&Term::tuple([Term::from(key), zeros.clone()]))
                .unwrap();
        }
        let (table, mut shown) = (t.engine_table(), 0);
        let mut show = |_: Stored<'_>, _: bool| shown += 1;
        chunk(table, false, None, Direction::Forward, 10, &mut show).unwrap();
        assert_eq!(shown, 2, "{t:?}");
    }
}
