//! Each operation, over every type of table it applies to, plain and compressed.

mod kinds;

use kinds::{table, KINDS};
use larder::api::{Larder, Table};
use larder::Error;
use larder_term::{term, Term};
use larder_testing::sorted;

/// A table of each type, plain, compressed and with counters spread.
fn tables() -> Vec<(Table, &'static str)> {
    let larder = Larder::new();
    let mut all = Vec::new();
    for variant in ["plain", "compressed", "decentralized"] {
        for kind in KINDS {
            let builder = larder.table(kind);
            let builder = match variant {
                "compressed" => builder.compressed(),
                "decentralized" => builder.decentralized_counters(),
                _ => builder,
            };
            all.push((table(builder, kind), kind));
        }
    }
    all
}

fn unique(kind: &str) -> bool {
    !kind.ends_with("bag")
}

#[test]
fn insert_and_lookup() {
    for (t, kind) in tables() {
        t.insert(&term!({a, 1})).unwrap();
        t.insert(&term!({a, 2})).unwrap();
        t.insert(&term!({a, 1})).unwrap();
        t.insert(&term!({b, 1})).unwrap();
        let expected: &[Term] = match kind {
            "bag" => &[term!({a, 1}), term!({a, 2})],
            "duplicate_bag" => &[term!({a, 1}), term!({a, 2}), term!({a, 1})],
            _ => &[term!({a, 1})],
        };
        assert_eq!(t.lookup(&term!(a)).unwrap(), expected, "{kind}");
        assert_eq!(t.len(), expected.len() + 1, "{kind}");
        assert_eq!(t.lookup(&term!(c)).unwrap(), []);
        assert!(t.contains(&term!(b)).unwrap());
        assert!(!t.contains(&term!(c)).unwrap());
        assert_eq!(t.insert(&term!(a)), Err(Error::NotTuple));
        assert_eq!(t.insert(&term!({})), Err(Error::Keypos));
    }
}

#[test]
fn keys_are_identical_or_equal() {
    for (t, kind) in tables() {
        t.insert(&term!({1, int})).unwrap();
        t.insert(&term!({1.0, float})).unwrap();
        if kind == "ordered_set" {
            assert_eq!(t.lookup(&term!(1)).unwrap(), [term!({1.0, float})]);
            // The key is the same, the object is not.
            assert_eq!(t.delete_object(&term!({1, float})).unwrap(), 0);
            assert_eq!(t.first().unwrap(), Some(term!(1.0)));
            assert_eq!(t.len(), 1);
        } else {
            assert_eq!(t.lookup(&term!(1)).unwrap(), [term!({1, int})]);
            assert_eq!(t.len(), 2);
        }
        assert_eq!(t.delete_object(&term!({1.0, float})).unwrap(), 1);
    }
}

#[test]
fn insert_new() {
    for (t, kind) in tables() {
        assert!(t.insert_new(&term!({a, 1})).unwrap());
        assert!(!t.insert_new(&term!({a, 2})).unwrap());
        assert!(!t.insert_all_new(&[term!({b, 1}), term!({a, 2})]).unwrap());
        assert!(!t.contains(&term!(b)).unwrap(), "{kind}");
        assert!(t
            .insert_all_new(&[term!({b, 1}), term!({b, 2}), term!({c, 1})])
            .unwrap());
        let under_b: &[Term] = if unique(kind) {
            &[term!({b, 2})]
        } else {
            &[term!({b, 1}), term!({b, 2})]
        };
        assert_eq!(t.lookup(&term!(b)).unwrap(), under_b);
        assert!(t.insert_all_new(&[]).unwrap());
        t.insert_all(&[]).unwrap();
    }
}

#[test]
fn lists_keep_their_order_and_are_all_or_nothing() {
    for (t, kind) in tables() {
        let bad = [term!({a, 1}), term!(not_a_tuple)];
        assert_eq!(t.insert_all(&bad), Err(Error::NotTuple));
        assert!(t.is_empty());
        t.insert_all(&[term!({k, 3}), term!({k, 1}), term!({k, 2})])
            .unwrap();
        let expected: &[Term] = if unique(kind) {
            &[term!({k, 2})]
        } else {
            &[term!({k, 3}), term!({k, 1}), term!({k, 2})]
        };
        assert_eq!(t.lookup(&term!(k)).unwrap(), expected);
        let many: Vec<Term> = (0..5000i64).map(|i| term!({(i), x})).collect();
        t.insert_all(&many).unwrap();
        assert_eq!(t.len(), 5000 + expected.len());
    }
}

#[test]
fn delete_and_take() {
    for (t, kind) in tables() {
        let all = [term!({a, 1}), term!({a, 2}), term!({a, 1}), term!({b, 1})];
        t.insert_all(&all).unwrap();
        let n = match kind {
            "bag" => 2,
            "duplicate_bag" => 3,
            _ => 1,
        };
        assert_eq!(t.take(&term!(a)).unwrap().len(), n);
        assert_eq!(t.take(&term!(a)).unwrap(), []);
        assert_eq!(t.len(), 1);
        t.insert_all(&all).unwrap();
        let copies = if kind == "duplicate_bag" { 2 } else { 1 };
        assert_eq!(t.delete_object(&term!({a, 1})).unwrap(), copies);
        assert_eq!(t.delete_object(&term!({a, 9})).unwrap(), 0);
        assert_eq!(t.delete(&term!(a)).unwrap(), n - copies);
        assert_eq!(t.delete(&term!(a)).unwrap(), 0);
        let left = if kind == "duplicate_bag" { 2 } else { 1 };
        assert_eq!(t.clear().unwrap(), left);
        assert!(t.is_empty());
        assert_eq!(t.to_vec().unwrap(), []);
    }
}

#[test]
fn a_bag_moves_what_is_inserted_again_only_after_a_delete() {
    let t = Larder::new().table("t").bag().create().unwrap();
    t.insert_all(&[term!({k, 1}), term!({k, 2}), term!({k, 1})])
        .unwrap();
    assert_eq!(t.lookup(&term!(k)).unwrap(), [term!({k, 1}), term!({k, 2})]);
    t.delete_object(&term!({k, 1})).unwrap();
    t.insert(&term!({k, 1})).unwrap();
    assert_eq!(t.lookup(&term!(k)).unwrap(), [term!({k, 2}), term!({k, 1})]);
    t.insert(&term!({k, 1.0})).unwrap();
    assert_eq!(t.len(), 3);
}

#[test]
fn counters() {
    for (t, kind) in tables() {
        t.insert(&term!({a, 1, x})).unwrap();
        if !unique(kind) {
            assert_eq!(t.add(&term!(a), 2, 1), Err(Error::TableType));
            continue;
        }
        assert_eq!(t.add(&term!(a), 2, 4).unwrap(), term!(5));
        assert_eq!(t.add(&term!(a), 2, -10).unwrap(), term!(-5));
        assert_eq!(
            t.add(&term!(a), 2, i64::MIN).unwrap().to_string(),
            "-9223372036854775813"
        );
        assert_eq!(t.add(&term!(a), 2, i64::MAX).unwrap(), term!(-6));
        assert_eq!(t.add(&term!(a), 3, 1), Err(Error::NotInteger));
        assert_eq!(t.add(&term!(a), 1, 1), Err(Error::Keypos));
        assert_eq!(t.add(&term!(a), 4, 1), Err(Error::Position));
        assert_eq!(t.add(&term!(a), 0, 1), Err(Error::Position));
        assert_eq!(t.add(&term!(b), 2, 1), Err(Error::BadKey));
        let default = term!({zzz, 10});
        assert_eq!(t.add_or(&term!(b), 2, 1, &default).unwrap(), term!(11));
        assert_eq!(t.lookup(&term!(b)).unwrap(), [term!({b, 11})]);
        assert_eq!(t.add_or(&term!(c), 3, 1, &default), Err(Error::Position));
        assert_eq!(
            t.add_or(&term!(c), 2, 1, &term!({})),
            Err(Error::BadDefault)
        );
        assert_eq!(t.add_or(&term!(c), 2, 1, &term!(d)), Err(Error::BadDefault));
        assert!(!t.contains(&term!(c)).unwrap());
        assert_eq!(t.lookup(&term!(a)).unwrap(), [term!({a, -6, x})]);
    }
}

#[test]
fn elements() {
    for (t, kind) in tables() {
        let long =
            "a text that is long enough to be compressed, compressed, compressed, compressed";
        t.insert(&term!({a, 1, (Term::binary(long.as_bytes()))}))
            .unwrap();
        if !unique(kind) {
            assert_eq!(t.update(&term!(a), 2, &term!(y)), Err(Error::TableType));
            continue;
        }
        assert!(t.update(&term!(a), 2, &term!([y])).unwrap());
        assert!(!t.update(&term!(b), 2, &term!([y])).unwrap());
        assert!(!t.update(&term!(b), 9, &term!([y])).unwrap());
        assert_eq!(t.update(&term!(a), 1, &term!(y)), Err(Error::Keypos));
        assert_eq!(t.update(&term!(a), 4, &term!(y)), Err(Error::Position));
        let expected = term!({a, [y], (Term::binary(long.as_bytes()))});
        assert_eq!(t.lookup(&term!(a)).unwrap(), [expected]);
    }
}

#[test]
fn going_from_key_to_key() {
    for (t, kind) in tables() {
        assert_eq!(t.first().unwrap(), None);
        assert_eq!(t.last().unwrap(), None);
        let all: Vec<Term> = (0..100i64)
            .flat_map(|i| [term!({(i), a}), term!({(i), b})])
            .collect();
        t.insert_all(&all).unwrap();
        let mut seen = Vec::new();
        let mut at = t.first().unwrap();
        while let Some(key) = at {
            at = t.next(&key).unwrap();
            seen.push(key);
        }
        let keys: Vec<Term> = (0..100i64).map(Term::from).collect();
        if kind == "ordered_set" {
            assert_eq!(seen, keys);
            assert_eq!(t.next(&term!(7.5)).unwrap(), Some(term!(8)));
            assert_eq!(t.prev(&term!(7.5)).unwrap(), Some(term!(7)));
            assert_eq!(t.prev(&term!(0)).unwrap(), None);
            assert_eq!(t.last().unwrap(), Some(term!(99)));
        } else {
            assert_eq!(t.next(&term!(nokey)), Err(Error::BadKey));
            assert_eq!(t.last().unwrap(), t.first().unwrap());
            assert_eq!(sorted(seen), keys);
        }
    }
}

#[test]
fn large_binaries_come_and_go() {
    for (t, _) in tables() {
        for round in 0..50u8 {
            let big = vec![round; 1000];
            t.insert(&term!({(i64::from(round) % 7), (Term::binary(&big))}))
                .unwrap();
            let found = t.lookup(&term!((i64::from(round) % 7))).unwrap();
            assert!(found.contains(&term!({(i64::from(round) % 7), (Term::binary(&big))})));
        }
        let key = Term::binary(&[1; 150]);
        t.insert(&term!({(key.clone()), 1})).unwrap();
        assert_eq!(
            t.delete_object(&term!({(Term::binary(&[1; 150])), 1}))
                .unwrap(),
            1
        );
        t.insert(&term!({x, (key.clone())})).unwrap();
        assert_eq!(
            t.delete_object(&term!({x, (Term::binary(&[1; 150]))}))
                .unwrap(),
            1
        );
    }
}

#[test]
fn a_dropped_table_answers_so() {
    for (t, _) in tables() {
        t.drop_table().unwrap();
        assert_eq!(t.insert(&term!({ a })), Err(Error::NoTable));
        assert_eq!(t.lookup(&term!(a)), Err(Error::NoTable));
        assert_eq!(t.drop_table(), Err(Error::NoTable));
        assert_eq!(t.to_vec(), Err(Error::NoTable));
        assert_eq!(t.len(), 0);
    }
}
