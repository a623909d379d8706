//! Values: what serde makes of them comes back, as the terms that are documented.

use larder::prelude::*;
use larder::Error;
use proptest::prelude::*;
use proptest::{collection, option};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;

/// Stores a value, and gives what is read again and what term it is.
fn through<V: Serialize + DeserializeOwned>(value: &V) -> (V, Term) {
    let table = Larder::new()
        .table("values")
        .typed::<u8, V>()
        .expect("a table");
    table.put(&1, value).expect("inserted");
    let back = table.get(&1).expect("a value").expect("the one inserted");
    let row = table
        .table()
        .lookup(&Term::from(1))
        .expect("a row")
        .remove(0);
    let term = row
        .as_ref()
        .as_tuple()
        .and_then(|row| row.get(1))
        .map(Term::from);
    (back, term.expect("a pair"))
}

#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
struct Unit;

#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
struct Wrap(String);

#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
#[allow(non_camel_case_types, reason = "the atom that None is")]
enum Event {
    Empty,
    Text(String),
    Pair(i64, Option<Wrap>),
    Named { at: f64, tags: Vec<String> },
    undefined,
}

#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
struct All {
    small: i8,
    large: u64,
    larger: i128,
    real: f64,
    single: f32,
    yes: bool,
    letter: char,
    text: String,
    long: String,
    list: Vec<Option<i32>>,
    pair: (u8, String),
    map: BTreeMap<String, Vec<u8>>,
    other: HashMap<i32, bool>,
    event: Event,
    maybe: Option<Event>,
    maybe_unit: Option<()>,
    maybe_maybe: Option<Option<u16>>,
    maybe_pair: Option<(u8, u8)>,
    unit: Unit,
    boxed: Option<Box<All>>,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        Just(Event::Empty),
        Just(Event::undefined),
        ".{0,9}".prop_map(Event::Text),
        (any::<i64>(), option::of("[a-z]{0,3}".prop_map(Wrap)))
            .prop_map(|(n, w)| Event::Pair(n, w)),
        (-1e9..1e9, collection::vec("[a-z]{0,3}", 0..3))
            .prop_map(|(at, tags)| Event::Named { at, tags }),
    ]
}

fn all() -> impl Strategy<Value = All> {
    let numbers = (
        any::<i8>(),
        any::<u64>(),
        any::<i128>(),
        any::<f64>(),
        any::<f32>(),
    );
    let simple = (any::<bool>(), any::<char>(), ".{0,5}", 0usize..600);
    let many = (
        collection::vec(option::of(any::<i32>()), 0..4),
        (any::<u8>(), ".{0,3}"),
        collection::btree_map("[a-z]{0,2}", collection::vec(any::<u8>(), 0..3), 0..4),
        collection::hash_map(any::<i32>(), any::<bool>(), 0..40),
    );
    let maybe = (
        event(),
        option::of(event()),
        option::of(Just(())),
        option::of(option::of(any::<u16>())),
        option::of((any::<u8>(), any::<u8>())),
    );
    let one = (numbers, simple, many, maybe).prop_map(|(numbers, simple, many, maybe)| All {
        small: numbers.0,
        large: numbers.1,
        larger: numbers.2,
        real: numbers.3,
        single: numbers.4,
        yes: simple.0,
        letter: simple.1,
        text: simple.2,
        long: "long".repeat(simple.3),
        list: many.0,
        pair: many.1,
        map: many.2,
        other: many.3,
        event: maybe.0,
        maybe: maybe.1,
        maybe_unit: maybe.2,
        maybe_maybe: maybe.3,
        maybe_pair: maybe.4,
        unit: Unit,
        boxed: None,
    });
    // Another one in it, now and then.
    let one = one.boxed();
    (one.clone(), option::of(one)).prop_map(|(one, boxed)| All {
        boxed: boxed.map(Box::new),
        ..one
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn they_come_back(value in all()) {
        prop_assert_eq!(through(&value).0, value);
    }

    #[test]
    fn floats_come_back(bits in any::<u64>()) {
        let x = f64::from_bits(bits);
        let back = through(&x).0;
        prop_assert!(back.to_bits() == bits || (x.is_nan() && back.is_nan()), "{x} {back}");
    }
}

#[test]
fn terms_are_what_the_documentation_says() {
    fn check<V: Serialize + DeserializeOwned + PartialEq + Debug>(value: V, term: &str) {
        let (back, stored) = through(&value);
        assert_eq!(back, value);
        assert_eq!(stored.to_string(), term);
    }
    check(7u8, "7");
    check(i128::MIN, "-170141183460469231731687303715884105728");
    check(u64::MAX, "18446744073709551615");
    check(2.5f32, "2.5");
    check(-0.0f64, "-0.0");
    check(f64::NEG_INFINITY, "'-infinity'");
    check(true, "true");
    check('a', "97");
    check("ab".to_owned(), "<<\"ab\">>");
    check(vec![1u8, 2], "[1,2]");
    check((1u8, "x".to_owned()), "{1,<<\"x\">>}");
    check(BTreeMap::from([("k".to_owned(), 1)]), "#{<<\"k\">> => 1}");
    check((), "{}");
    check(Unit, "{}");
    check(Wrap("w".into()), "<<\"w\">>");
    check(Event::Empty, "'Empty'");
    check(Event::Text("t".into()), "{'Text',<<\"t\">>}");
    check(Event::Pair(1, None), "{'Pair',1,undefined}");
    let tags = vec!["t".into()];
    check(Event::Named { at: 0.5, tags }, "{'Named',0.5,[<<\"t\">>]}");
    check(None::<u8>, "undefined");
    check(Some(5u8), "5");
    check(Some(Wrap("w".into())), "<<\"w\">>");
    check(Some(None::<u8>), "{some,undefined}");
    check(Some(Some(5u8)), "5");
    check(Some(Some(Some(()))), "{some,{some,{some,{}}}}");
    check(Some(Event::undefined), "{some,undefined}");
    check(Some((1u8, 2u8)), "{some,{1,2}}");
}

#[derive(Serialize, Deserialize, Debug, PartialEq)]
struct Order {
    symbol: String,
    price: f64,
    #[serde(default)]
    note: String,
}

/// What a program in another language, or an older one, would have written.
#[test]
fn maps_and_older_rows_are_read() -> Result<(), Error> {
    let table = Larder::new().table("orders").ordered_set().create()?;
    table.insert(&term!({1, #{price => 2, symbol => "A"}}))?;
    table.insert(&term!({2, {"B", 2.5}}))?;
    table.insert(&term!({3, {"C", 1, "new"}}))?;
    let orders = table.typed::<u64, Order>()?;
    let order = |symbol: &str, price, note: &str| Order {
        symbol: symbol.into(),
        price,
        note: note.into(),
    };
    assert_eq!(orders.get(&1)?, Some(order("A", 2.0, "")));
    assert_eq!(orders.get(&2)?, Some(order("B", 2.5, "")));
    assert_eq!(orders.get(&3)?, Some(order("C", 1.0, "new")));
    Ok(())
}

/// Parts that a type doesn't read, or gives up within, are passed all the same.
#[test]
fn what_follows_an_unread_part_is_read() -> Result<(), Error> {
    fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
    where
        D: serde::Deserializer<'de>,
        T: Deserialize<'de> + Default,
    {
        Ok(T::deserialize(deserializer).unwrap_or_default())
    }

    /// Reads nothing.
    #[derive(Debug, PartialEq)]
    struct Deaf;
    impl<'de> Deserialize<'de> for Deaf {
        fn deserialize<D: serde::Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
            Ok(Deaf)
        }
    }

    /// Reads one key of a map, and not its value.
    #[derive(Debug, PartialEq)]
    struct FirstKey(u8);
    impl<'de> Deserialize<'de> for FirstKey {
        fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            struct Keys;
            impl<'de> serde::de::Visitor<'de> for Keys {
                type Value = FirstKey;
                fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    f.write_str("a map")
                }
                fn visit_map<A: serde::de::MapAccess<'de>>(
                    self,
                    mut map: A,
                ) -> Result<FirstKey, A::Error> {
                    Ok(FirstKey(map.next_key()?.unwrap_or(0)))
                }
            }
            deserializer.deserialize_map(Keys)
        }
    }

    #[derive(Deserialize, Debug, PartialEq)]
    struct Partly {
        deaf: Deaf,
        #[serde(deserialize_with = "or_default")]
        numbers: Vec<(u8, u8)>,
        #[serde(deserialize_with = "or_default")]
        small: u8,
        key: FirstKey,
        ignored: IgnoredAny,
        keys: HashMap<u8, IgnoredAny>,
        last: String,
    }
    impl Serialize for Partly {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.serialize_unit()
        }
    }

    let table = Larder::new().table("partly").ordered_set().create()?;
    let insert = |key: u8, numbers: Term, small: Term| {
        let map = term!(#{7 => {a, [1, 2]}, 8 => #{x => {}}});
        let only = term!(#{7 => [{1, "two"}, 3]});
        let (text, nested) = (term!("last"), term!({[{1}], #{1 => 2}, "text"}));
        let value = Term::tuple([map.clone(), numbers, small, only, nested, map, text]);
        table.insert(&Term::tuple([Term::from(key), value]))
    };
    insert(1, term!([{1, 2}, {3, 4}]), term!(5))?;
    // Within the second pair of the list; and a number that is too large.
    insert(2, term!([{1, 2}, {3, {4, [5]}}, {6, 7}]), term!(5000))?;
    insert(3, term!({[1], 2}), term!([{ a }]))?;
    let expected = |numbers: &[(u8, u8)], small| Partly {
        deaf: Deaf,
        numbers: numbers.to_vec(),
        small,
        key: FirstKey(7),
        ignored: IgnoredAny,
        keys: HashMap::from([(7, IgnoredAny), (8, IgnoredAny)]),
        last: "last".into(),
    };
    let typed = table.typed::<u8, Partly>()?;
    assert_eq!(typed.get(&1)?, Some(expected(&[(1, 2), (3, 4)], 5)));
    assert_eq!(typed.get(&2)?, Some(expected(&[], 0)));
    assert_eq!(typed.get(&3)?, Some(expected(&[], 0)));
    Ok(())
}

/// A list of a million lists, each in another, and a type that would follow it down.
#[test]
fn what_is_too_deep_is_an_error() -> Result<(), Error> {
    #[derive(Serialize, Deserialize, Debug)]
    struct Nest(Vec<Nest>);
    let table = Larder::new().table("nests").typed::<u8, Nest>()?;
    let deep = |n| (0..n).fold(Nest(Vec::new()), |inner, _| Nest(vec![inner]));
    table.insert(1, deep(100))?;
    assert!(table.get(&1)?.is_some());
    assert!(matches!(
        table.insert(1, deep(300)),
        Err(Error::WrongType(_))
    ));
    assert!(
        table.get(&1)?.is_some(),
        "it was replaced by what was refused"
    );
    let mut text = "[".repeat(100_000);
    text.push_str(&"]".repeat(100_000));
    let deep: Term = text.parse().expect("a term");
    table.table().insert(&Term::tuple([Term::from(2), deep]))?;
    assert!(matches!(table.get(&2), Err(Error::WrongType(_))));
    // A view goes past it.
    assert_eq!(
        table.with(&2, |view| view.read::<IgnoredAny>().is_ok())?,
        Some(true)
    );
    Ok(())
}

/// Each link is asked first whether it is `Some` of a plain value, which the next one decides.
#[test]
fn a_chain_of_options_that_is_too_long_is_an_error() -> Result<(), Error> {
    #[derive(Serialize, Deserialize, Default)]
    struct Link(Option<Box<Link>>);
    let table = Larder::new().table("links").typed::<u8, Link>()?;
    let mut chain = Link::default();
    for _ in 0..200_000 {
        chain = Link(Some(Box::new(chain)));
    }
    assert!(matches!(table.put(&1, &chain), Err(Error::WrongType(_))));
    // Taken apart link by link: its drop would call itself as often.
    let mut next = Some(Box::new(chain));
    while let Some(link) = next {
        next = link.0;
    }
    Ok(())
}

#[test]
fn what_is_no_term_is_an_error_and_changes_nothing() -> Result<(), Error> {
    #[derive(Serialize, Deserialize)]
    struct Gaps {
        #[serde(skip_serializing_if = "Option::is_none")]
        a: Option<u8>,
        b: u8,
    }
    let gaps = Larder::new().table("gaps").typed::<u8, Gaps>()?;
    gaps.insert(1, Gaps { a: Some(1), b: 2 })?;
    let refused = gaps.insert(1, Gaps { a: None, b: 3 });
    let Err(Error::WrongType(why)) = refused else {
        panic!("it was taken");
    };
    assert!(why.contains("the field a is left out"), "{why}");
    assert_eq!(gaps.get(&1)?.map(|gaps| gaps.b), Some(2));

    /// Says that it has two elements, and has another number of them.
    struct Liar(usize);
    impl Serialize for Liar {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            use serde::ser::SerializeTuple;
            let mut tuple = serializer.serialize_tuple(2)?;
            (0..self.0).try_for_each(|_| tuple.serialize_element(&1u8))?;
            tuple.end()
        }
    }
    impl<'de> Deserialize<'de> for Liar {
        fn deserialize<D: serde::Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
            Ok(Liar(2))
        }
    }
    let liars = Larder::new().table("liars").typed::<u8, Liar>()?;
    for n in [0, 1, 3] {
        assert!(
            matches!(liars.put(&1, &Liar(n)), Err(Error::WrongType(_))),
            "{n}"
        );
    }
    assert!(liars.is_empty());
    Ok(())
}

/// What is borrowed lies in the row, a long text outside of it.
#[test]
fn views_borrow() -> Result<(), Error> {
    let users = Larder::new()
        .table("users")
        .typed::<u8, (String, u32, String)>()?;
    users.insert(1, ("Ann".into(), 34, "long".repeat(1000)))?;
    #[derive(Deserialize)]
    struct Short<'u>(&'u str, IgnoredAny, &'u str);
    let lengths = users.with(&1, |user| {
        let Short(name, _, long) = user.read()?;
        Ok::<_, Error>((name.len(), long.len(), user.field::<u32>(1)?))
    });
    assert_eq!(lengths?.transpose()?, Some((3, 4000, 34)));
    let wrong = users.with(&1, |user| user.field::<u32>(3))?;
    assert!(matches!(wrong, Some(Err(Error::WrongType(_)))));
    assert_eq!(users.with(&2, |_| ())?, None);
    Ok(())
}
