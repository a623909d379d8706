//! Folds: chunks of objects, and whether they still are what the table has.

use larder::api::{Larder, Table};
use larder::{Direction, Error};
use larder_term::{term, Term};

fn tables() -> Vec<Table> {
    let larder = Larder::new();
    vec![
        larder.table("set").set().create().unwrap(),
        larder.table("ordered_set").ordered_set().create().unwrap(),
        larder.table("bag").bag().create().unwrap(),
        larder
            .table("duplicate_bag")
            .duplicate_bag()
            .create()
            .unwrap(),
    ]
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

/// What a fold in chunks of `count` shows: the numbers of the objects' keys, those of one key
/// together.
fn folded(t: &Table, direction: Direction, count: usize) -> Vec<Vec<i64>> {
    let table = t.engine_table();
    let mut all: Vec<Vec<i64>> = Vec::new();
    let mut from: Option<Vec<u8>> = None;
    loop {
        let mut chunk: Vec<Vec<i64>> = Vec::new();
        let mut last = None;
        table
            .fold(
                table.owner(),
                from.as_deref(),
                direction,
                count,
                &mut |object, first| {
                    let number = |i| match object.element(i).map(|e| e.as_int()) {
                        Some(Some(n)) => n,
                        other => panic!("{other:?}"),
                    };
                    if first {
                        chunk.push(vec![number(1)]);
                    }
                    chunk.last_mut().unwrap().push(number(2));
                    last = Some(Term::from(object.key()));
                },
            )
            .unwrap();
        let Some(last) = last else { return all };
        let mut key = Vec::new();
        table.encode_key(last.as_ref(), &mut key);
        from = Some(key);
        all.extend(chunk);
    }
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
fn every_change_is_told() {
    for t in tables() {
        fill(&t, 10);
        let table = t.engine_table();
        let watch = || {
            table
                .fold(table.owner(), None, Direction::Forward, 5, &mut |_, _| {})
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
fn a_dropped_table_is_told() {
    let larder = Larder::new();
    let t = larder.table("t").create().unwrap();
    fill(&t, 10);
    let table = std::sync::Arc::clone(t.engine_table());
    let watched = table
        .fold(table.owner(), None, Direction::Forward, 5, &mut |_, _| {})
        .unwrap()
        .stamp;
    t.drop_table().unwrap();
    assert!(!table.is_unchanged(watched));
    let again = table.fold(table.owner(), None, Direction::Forward, 5, &mut |_, _| {});
    assert!(matches!(again.err(), Some(Error::NoTable)));
}
