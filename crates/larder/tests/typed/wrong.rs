//! Tables of another type, and tables that hold rows of other types.

use larder::host::{Decision, Error};
use larder::prelude::*;
use larder::typed::{EncodeKey, Encoder, Order, OrderedKey as Key, TermRef};
use std::sync::mpsc;

/// The text of an error, which has to be of a wrong type.
fn why<T>(result: Result<T, Error>) -> String {
    match result {
        Err(Error::WrongType(why)) => why.to_string(),
        Err(error) => panic!("another error: {error}"),
        Ok(_) => panic!("no error"),
    }
}

#[test]
fn rows_of_other_types_are_errors_that_name_them() -> Result<(), Error> {
    let table = Larder::new().table("mixed").ordered_set().create()?;
    table.insert_all(&[
        term!({1, 10}),
        term!({2, (-1)}),
        term!({3, 30, more}),
        term!({ 4 }),
        term!({five, 50}),
    ])?;
    let long = Term::binary(&[b'x'; 5000]);
    table.insert(&Term::tuple([Term::from(6), long]))?;
    let typed = table.typed::<u64, u8>()?;
    assert_eq!(typed.get(&1)?, Some(10));
    let text = why(typed.get(&2));
    assert!(
        text.contains("-1: it is no u8: invalid value: integer `-1`"),
        "{text}"
    );
    assert!(why(typed.get(&3)).contains("{3,30,more}: it is no pair"));
    assert!(why(typed.get(&4)).contains("{4}: it is no pair"));
    assert!(why(typed.with(&4, |_| ())).contains("{4}: it is no pair"));
    let text = why(typed.get(&6));
    assert!(
        text.len() < 400 && text.contains("a binary, expected u8"),
        "{text}"
    );
    assert!(why(typed.get_many(&[1, 2, 3])).contains("-1"));
    assert!(why(typed.last()).contains("it is no key of type u64"));
    assert!(why(typed.nth(2)).contains("-1"));
    assert!(why(typed.slice(1, 9)).contains("-1"));
    // An iterator ends with the error.
    for keys in [typed.range(..)?.collect::<Vec<_>>(), typed.iter().collect()] {
        assert_eq!(keys.len(), 2);
        assert_eq!(keys[0], Ok((1, 10)));
        assert!(why(keys[1].clone()).contains("-1"));
    }
    let mut rows = typed.iter().rev();
    assert!(why(rows.next().expect("an error")).contains("five"));
    // What reads before it writes has changed nothing.
    assert!(why(typed.compute(&3, |_| None)).contains("no pair"));
    assert!(why(typed.compare_exchange(&2, None, Some(&1))).contains("-1"));
    assert!(why(typed.entry(2).or_insert(7)).contains("-1"));
    assert!(why(typed.pop_last()).contains("five"));
    assert!(why(typed.retain(|_, _| true)).contains("-1"));
    assert_eq!(table.len(), 6);
    // What replaces or removes a row does so, and says what it was.
    assert!(why(typed.insert(2, 20)).contains("-1"));
    assert_eq!(typed.get(&2)?, Some(20));
    assert!(why(typed.remove(&3)).contains("no pair"));
    assert!(!typed.contains_key(&3)?);
    typed.put(&4, &40)?;
    assert_eq!(typed.get(&4)?, Some(40));
    Ok(())
}

/// A key of a typed table is a term, and 1.0 is 1 to an ordered_set.
#[test]
fn equal_terms_are_one_key() -> Result<(), Error> {
    let table = Larder::new().table("numbers").ordered_set().create()?;
    table.insert(&term!({1.0, 5}))?;
    let typed = table.typed::<u64, u8>()?;
    assert_eq!(typed.get(&1)?, Some(5));
    assert!(why(typed.first()).contains("1.0: it is no key of type u64"));
    assert_eq!(typed.insert(1, 6)?, Some(5));
    assert_eq!(typed.first()?, Some((1, 6)));
    Ok(())
}

#[test]
fn only_tables_of_its_kind_with_the_key_in_front() -> Result<(), Error> {
    let larder = Larder::new();
    let bag = larder.table("bag").bag();
    assert_eq!(bag.typed::<u8, u8>().err(), Some(Error::TableType));
    let second = larder.table("second").keypos(2);
    assert_eq!(second.typed::<u8, u8>().err(), Some(Error::TableType));
    let set = larder.table("set").named().create()?;
    assert_eq!(set.typed::<u8, u8>().err(), Some(Error::TableType));
    assert_eq!(larder.typed::<u8, u8>("set").err(), Some(Error::TableType));
    // A table by hash is a set.
    let hashed = larder.typed_hash::<u8, u8>("set")?;
    assert_eq!(hashed.insert(1, 2)?, None);
    assert_eq!(set.lookup(&term!(1))?, [term!({1, 2})]);
    assert!(hashed.on(&set).is_ok());
    let ordered = larder.table("ordered").ordered_set();
    assert_eq!(ordered.typed_hash::<u8, u8>().err(), Some(Error::TableType));
    let ordered = larder.typed::<u8, u8>("ordered")?;
    assert_eq!(hashed.on(ordered.table()).err(), Some(Error::TableType));
    let second = larder.table("second").keypos(2);
    assert_eq!(second.typed_hash::<u8, u8>().err(), Some(Error::TableType));
    let name = "n".repeat(256);
    assert!(matches!(
        larder.typed::<u8, u8>(&name),
        Err(Error::BadOption(_))
    ));
    Ok(())
}

#[test]
fn a_dropped_table_says_so() -> Result<(), Error> {
    let larder = Larder::new();
    let table = larder.typed::<u8, u8>("gone")?;
    table.extend([(1, 1), (2, 2)])?;
    let mut rows = table.iter();
    table.table().drop_table()?;
    assert_eq!(table.get(&1), Err(Error::NoTable));
    assert_eq!(table.insert(1, 1), Err(Error::NoTable));
    assert_eq!(table.extend([(1, 1)]), Err(Error::NoTable));
    assert_eq!(table.compute(&1, |_| Some(1)), Err(Error::NoTable));
    assert_eq!(table.first(), Err(Error::NoTable));
    assert_eq!(rows.next(), Some(Err(Error::NoTable)));
    assert_eq!(rows.next(), None);
    // The name is free.
    let table = larder.typed_hash::<u8, u8>("gone")?;
    assert!(table.is_empty());
    table.insert(1, 1)?;
    let mut rows = table.iter();
    table.table().drop_table()?;
    for rows in [&mut rows, &mut table.iter()] {
        assert_eq!(rows.next(), Some(Err(Error::NoTable)));
        assert_eq!(rows.next(), None);
    }
    Ok(())
}

/// No lock is held while functions of the caller's run: they may use the table.
#[test]
fn functions_may_use_the_table() -> Result<(), Error> {
    use_within(&Larder::new().typed("table")?)?;
    use_within(&Larder::new().typed_hash("table")?)
}

fn use_within<O: Order>(table: &Typed<u8, u64, O>) -> Result<(), Error> {
    table.extend((0..100).map(|n| (n, u64::from(n))))?;
    let seen = table.with(&1, |_| table.insert(1, 100))?;
    assert_eq!(seen.transpose()?, Some(Some(1)));
    // It changes what it is about to replace, once: then it is called again.
    let mut calls = 0;
    let made = table.compute(&2, |n| {
        calls += 1;
        if calls == 1 {
            table.insert(2, 7).expect("inserted");
        }
        n.map(|n| n + 1)
    })?;
    assert_eq!((made, calls), (Some(8), 2));
    assert_eq!(table.retain(|&k, _| table.remove(&k).is_ok() && k != 3)?, 0);
    assert!(table.is_empty());
    // And they may panic.
    table.insert(1, 1)?;
    let panics = std::panic::AssertUnwindSafe(|| table.compute(&1, |_| panic!("in the function")));
    assert!(std::panic::catch_unwind(panics).is_err());
    assert_eq!(table.compute(&1, |n| n.map(|n| n + 1))?, Some(2));
    Ok(())
}

/// `retain` tests each row once, as that of a vector does, unless its value has changed since.
#[test]
fn each_row_is_tested_once() -> Result<(), Error> {
    retain_in(&Larder::new().typed("table")?)?;
    retain_in(&Larder::new().typed_hash("table")?)
}

fn retain_in<O: Order>(table: &Typed<u8, u64, O>) -> Result<(), Error> {
    table.extend((0..200).map(|n| (n, 0)))?;
    // The first ten go.
    let mut calls = 0;
    let gone = table.retain(|_, _| {
        calls += 1;
        calls > 10
    })?;
    assert_eq!((gone, calls, table.len()), (10, 200, 190));
    // Each is changed after it was tested. The new value is tested, and stays.
    let mut calls = 0;
    let gone = table.retain(|&key, &n| {
        calls += 1;
        if n == 0 {
            table.put(&key, &1).expect("put");
        }
        n == 1
    })?;
    assert_eq!((gone, calls, table.len()), (0, 380, 190));
    Ok(())
}

#[test]
fn tables_go_from_thread_to_thread() -> Result<(), Error> {
    fn is_shared<T: Send + Sync + Clone>(_: &T) {}
    // Whatever its types are: it has none of their values.
    let table = Larder::new().typed::<u8, u64>("table")?;
    is_shared(&table);
    let (give, take) = mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            table.insert(1, 1).expect("inserted");
            give.send(table.iter()).expect("taken");
        });
    });
    let rows: Result<Vec<_>, _> = take.recv().expect("given").collect();
    assert_eq!(rows?, [(1, 1)]);
    let hashed = Larder::new().typed_hash::<u8, u64>("hashed")?;
    is_shared(&hashed);
    hashed.insert(1, 1)?;
    let rows = hashed.iter();
    let rows = std::thread::spawn(|| rows.collect::<Result<Vec<_>, _>>());
    assert_eq!(rows.join().expect("no panic")?, [(1, 1)]);
    Ok(())
}

/// The engine's own entry, for what decides about rows of any kind.
#[test]
fn compute_in_is_for_sets_of_both_kinds() -> Result<(), Error> {
    let larder = Larder::new();
    for table in [larder.table("set"), larder.table("ordered").ordered_set()] {
        let table = table.create()?;
        let (engine, who) = (table.engine_table(), larder.owner());
        let mut key = Vec::new();
        engine.encode_key(term!(a).as_ref(), &mut key);
        let put = |row: Term, expected: bool| {
            larder::host::with_local(|local| {
                engine.compute_in(local, who, &key, |old, object| {
                    assert_eq!(old.is_some(), expected);
                    engine.encode_object(row.as_ref(), object)?;
                    Ok(Decision::Put)
                })
            })
        };
        put(term!({a, 1}), false)?;
        put(term!({a, [b], "c"}), true)?;
        assert_eq!(table.lookup(&term!(a))?, [term!({a, [b], "c"})]);
        larder::host::with_local(|local| {
            engine.compute_in(local, who, &key, |_, _| Ok(Decision::Remove))
        })?;
        assert!(table.is_empty());
    }
    let bag = larder.table("bag").bag().create()?;
    let refused = larder::host::with_local(|local| {
        bag.engine_table()
            .compute_in(local, larder.owner(), &[], |_, _| Ok(Decision::Keep))
    });
    assert_eq!(refused, Err(Error::TableType));
    Ok(())
}

#[test]
fn a_table_that_is_refused_is_not_made() -> Result<(), Error> {
    let larder = Larder::new();
    let refused = larder.table("x").keypos(2).named().typed::<u64, u64>();
    assert!(matches!(refused, Err(Error::TableType)));
    assert!(larder.find("x").is_none());
    larder.table("x").named().typed::<u64, u64>()?;
    Ok(())
}

/// A key that puts another encoder in the place of the one that it gets is no key.
#[test]
fn an_encoder_can_t_be_exchanged() -> Result<(), Error> {
    #[derive(Clone, Copy)]
    struct Other;

    impl EncodeKey for Other {
        fn encode_key(&self, out: &mut Encoder<'_>) -> Result<(), Error> {
            let mut other = Encoder::new(Box::leak(Box::default()), out.mode());
            other.int(1);
            std::mem::swap(out, &mut other);
            Ok(())
        }
    }

    impl Key for Other {
        fn decode_key(_: TermRef<'_>) -> Option<Self> {
            Some(Other)
        }
    }

    let table = Larder::new().typed::<Other, u8>("others")?;
    assert!(matches!(table.get(&Other), Err(Error::WrongType(_))));
    assert!(matches!(table.put(&Other, &1), Err(Error::WrongType(_))));
    assert!(table.is_empty());
    Ok(())
}
