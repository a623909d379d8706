//! Every type of key: it comes back, and tables have it in Rust's order.

use larder::prelude::*;
use larder::typed::{EncodeKey, OrderedKey as Key, TermRef};
use larder::Error;
use larder_term::order_key;
use proptest::prelude::*;
use proptest::{array, collection, option};
use std::cmp::Ordering;
use std::fmt::Debug;
use std::ops::Bound;
use std::sync::Arc;

/// The term of a key.
fn term_of(key: &(impl EncodeKey + ?Sized)) -> Term {
    let mut result = Ok(());
    let term = Term::build(|enc| result = key.encode_key(enc));
    result.expect("a key");
    term.expect("one whole term")
}

fn index_key(term: TermRef<'_>) -> Vec<u8> {
    let mut key = Vec::new();
    order_key::encode(term, &mut key);
    key
}

/// The order of terms, and of index keys, is `expected`; both keys come back.
fn check<K: Key + Debug>(a: &K, b: &K, compare: impl Fn(&K, &K) -> Ordering) {
    let (x, y) = (term_of(a), term_of(b));
    let expected = compare(a, b);
    assert_eq!(
        x.as_ref().cmp_term(y.as_ref()),
        expected,
        "{a:?} {b:?}: {x} {y}"
    );
    let (i, j) = (index_key(x.as_ref()), index_key(y.as_ref()));
    assert_eq!(i.cmp(&j), expected, "{a:?} {b:?}");
    for (key, term) in [(a, &x), (b, &y)] {
        let back = K::decode_key(term.as_ref()).expect("the type's own term");
        assert_eq!(compare(key, &back), Ordering::Equal, "{key:?} {back:?}");
    }
    // In a table both are found, each in its place.
    let table = Larder::new()
        .table("keys")
        .typed::<K, u8>()
        .expect("a table");
    for (key, value) in [(a, 1), (b, 2)] {
        table.put(key, &value).expect("inserted");
    }
    let rows: Vec<_> = table.iter().map(|row| row.expect("a row")).collect();
    let values: Vec<_> = rows.iter().map(|row| row.1).collect();
    match expected {
        Ordering::Less => assert_eq!(values, [1, 2], "{a:?} {b:?}"),
        Ordering::Greater => assert_eq!(values, [2, 1], "{a:?} {b:?}"),
        Ordering::Equal => assert_eq!(values, [2], "{a:?} {b:?}"),
    }
    for (key, value) in rows {
        assert_eq!(table.get(&key).expect("a value"), Some(value), "{key:?}");
    }
    // By hash, too. What comes back from a row is a key that finds it.
    let hashed = Larder::new()
        .table("keys")
        .typed_hash::<K, u8>()
        .expect("a table");
    for (key, value) in [(a, 1), (b, 2)] {
        hashed.put(key, &value).expect("inserted");
    }
    assert_eq!(hashed.len(), values.len(), "{a:?} {b:?}");
    for row in hashed.iter() {
        let (key, value) = row.expect("a row");
        assert_eq!(hashed.get(&key).expect("a value"), Some(value), "{key:?}");
        assert_eq!(table.get(&key).expect("a value"), Some(value), "{key:?}");
    }
    let found = hashed.get_many(std::slice::from_ref(b)).expect("a value");
    assert_eq!(found, [Some(2)]);
    assert_eq!(table.get(b).expect("a value"), Some(2), "{b:?}");
}

#[derive(OrderedKey, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Id(u64);

#[derive(OrderedKey, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Seat {
    row: u16,
    name: String,
    next: Option<i32>,
}

#[derive(OrderedKey, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Nothing;

#[derive(OrderedKey, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Both<A, B>(A, B);

#[derive(OrderedKey, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Side {
    Sell,
    Buy,
    Neither,
}

#[derive(OrderedKey, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Zero,
    Line(i64),
    Plane { y: i32, x: i32 },
    Text(String, Side, Vec<u8>),
    Last,
}

fn side() -> impl Strategy<Value = Side> {
    prop_oneof![Just(Side::Sell), Just(Side::Buy), Just(Side::Neither)]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[\\x00-\\x02a-b]{0,4}", ".{0,3}", Just("x".repeat(600))]
}

fn place() -> impl Strategy<Value = Place> {
    prop_oneof![
        Just(Place::Zero),
        any::<i64>().prop_map(Place::Line),
        (0..3, -2..2).prop_map(|(y, x)| Place::Plane { y, x }),
        (text(), side(), collection::vec(0u8..3, 0..3)).prop_map(|(t, s, b)| Place::Text(t, s, b)),
        Just(Place::Last),
    ]
}

fn seat() -> impl Strategy<Value = Seat> {
    let next = option::of(-1..2);
    (0u16..3, text(), next).prop_map(|(row, name, next)| Seat { row, name, next })
}

/// Small numbers, so that pairs are often equal, and all others.
macro_rules! near {
    ($type:ty) => {
        prop_oneof![
            (0 as $type..3),
            any::<$type>(),
            Just(<$type>::MIN),
            Just(<$type>::MAX)
        ]
    };
}

/// Two keys, whatever their type is: what runs properties is compiled for one type.
trait Pair: Debug {
    fn check(&self);
}

impl<K: Key + Ord + Clone + Debug> Pair for (K, K) {
    fn check(&self) {
        let (a, b) = self;
        check(a, b, Ord::cmp);
        check(a, &a.clone(), Ord::cmp);
    }
}

fn of_pairs<K, S>(key: impl Fn() -> S) -> BoxedStrategy<Box<dyn Pair>>
where
    K: Key + Ord + Clone + Debug + 'static,
    S: Strategy<Value = K> + 'static,
{
    let boxed = |pair| Box::new(pair) as Box<dyn Pair>;
    (key().boxed(), key().boxed()).prop_map(boxed).boxed()
}

fn all_in_order(pairs: &BoxedStrategy<Box<dyn Pair>>) {
    proptest!(ProptestConfig::with_cases(96), |(pair in pairs)| pair.check());
}

macro_rules! in_order {
    ($($name:ident: $strategy:expr;)*) => {
        $(#[test]
        fn $name() {
            all_in_order(&of_pairs(|| $strategy));
        })*
    };
}

in_order! {
    u8s: near!(u8);
    u16s: near!(u16);
    u32s: near!(u32);
    u64s: near!(u64);
    u128s: near!(u128);
    usizes: near!(usize);
    i8s: near!(i8);
    i16s: near!(i16);
    i32s: near!(i32);
    i64s: near!(i64);
    i128s: near!(i128);
    isizes: near!(isize);
    chars: any::<char>();
    bools: any::<bool>();
    strings: text();
    bytes: collection::vec(0u8..3, 0..6);
    lists: collection::vec(near!(i32), 0..4);
    lists_of_texts: collection::vec(text(), 0..3);
    arrays: array::uniform3(0i16..3);
    arrays_of_bytes: array::uniform16(any::<u8>());
    options: option::of(near!(i64));
    options_of_options: option::of(option::of(0u8..2));
    pairs: (0u32..3, text());
    tuples: (0u8..2, option::of(0i64..2), any::<bool>(), text(), near!(u64));
    nested: ((0u8..2, 0u8..2), collection::vec((0u8..2, any::<bool>()), 0..3));
    boxed: near!(u32).prop_map(|n| Arc::new(Box::new(n)));
    shared_texts: text().prop_map(Arc::<str>::from);
    ids: near!(u64).prop_map(Id);
    seats: seat();
    generics: (seat(), 0u8..2).prop_map(|(a, b)| Both(a, b));
    sides: side();
    places: place();
    nothings: Just(Nothing);
    units: Just(());
}

/// Finite floats, small ones and whole ones among them.
fn float() -> impl Strategy<Value = f64> {
    let all = any::<f64>().prop_filter("finite", |x| x.is_finite());
    prop_oneof![
        all,
        (-3i32..3).prop_map(|n| f64::from(n) / 2.0),
        Just(-0.0),
        Just(f64::MAX)
    ]
}

proptest! {
    #[test]
    fn floats(a in float(), b in float()) {
        // −0.0 is 0.0: for all others this is `total_cmp`.
        let order = |a: &f64, b: &f64| a.partial_cmp(b).expect("finite");
        check(&a, &b, order);
        check(&(a as f32).clamp(f32::MIN, f32::MAX), &(b as f32).clamp(f32::MIN, f32::MAX),
            |a, b| a.partial_cmp(b).expect("finite"));
        check(&(a, 1u8), &(b, 1u8), |a, b| a.partial_cmp(b).expect("finite"));
    }
}

#[test]
fn what_is_no_number_is_no_key() -> Result<(), Error> {
    let table = Larder::new().table("floats").typed::<(u8, f64), u8>()?;
    for x in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let refused = [
            table.insert((1, x), 1).map(drop),
            table.put(&(1, x), &1),
            table.extend([((1, 1.0), 1), ((1, x), 1)]),
            table.get(&(1, x)).map(drop),
            table.remove(&(1, x)).map(drop),
            table.range((1, 0.0)..(1, x)).map(drop),
            table.compute(&(1, x), |_| Some(1)).map(drop),
            table.get_many(&[(1, x)]).map(drop),
            table.entry((1, x)).or_insert(3).map(drop),
        ];
        for (i, result) in refused.into_iter().enumerate() {
            assert!(
                matches!(result, Err(Error::WrongType(_))),
                "{i}: {result:?}"
            );
        }
    }
    // Nothing of it was done, not even of the list.
    assert!(table.is_empty());
    Ok(())
}

/// What others write under terms of these kinds is what the type would have written, so an Erlang
/// program finds the same rows.
#[test]
fn terms_are_what_the_documentation_says() {
    let texts = [
        term_of(&7u64),
        term_of(&u64::MAX),
        term_of("a"),
        term_of(&[1u8, 2]),
        term_of(&vec![1u16, 2]),
        term_of(&[1u16, 2]),
        term_of(&(1, "b", true)),
        term_of(&None::<u8>),
        term_of(&Some(5)),
        term_of(&1.5f32),
        term_of(&-0.0f64),
        term_of(&'a'),
        term_of(&Id(9)),
        term_of(&Side::Buy),
        term_of(&Place::Line(4)),
        term_of(&Place::Last),
        term_of(&Nothing),
    ]
    .map(|term| term.to_string());
    let expected = [
        "7",
        "18446744073709551615",
        "<<\"a\">>",
        "<<1,2>>",
        "[1,2]",
        "{1,2}",
        "{1,<<\"b\">>,true}",
        "{}",
        "{5}",
        "1.5",
        "0.0",
        "97",
        "9",
        "1",
        "{1,{4}}",
        "{4,{}}",
        "{}",
    ];
    assert_eq!(texts, expected);
}

/// A type that is borrowed as another is found by it.
#[test]
fn borrowed_keys_find_what_owned_ones_inserted() -> Result<(), Error> {
    let texts = Larder::new().table("texts").typed::<String, u8>()?;
    let long = "é".repeat(300);
    texts.extend([("a".into(), 1), (long.clone(), 2), (String::new(), 3)])?;
    assert_eq!(texts.get("a")?, Some(1));
    assert_eq!(texts.get(long.as_str())?, Some(2));
    assert_eq!(texts.get("")?, Some(3));
    assert_eq!(
        texts
            .range::<str, _>((Bound::Included("a"), Bound::Unbounded))?
            .count(),
        2
    );
    assert_eq!(texts.range("a".to_owned().."b".to_owned())?.count(), 1);
    let hashed = Larder::new().typed_hash::<String, u8>("hashed")?;
    hashed.extend(texts.iter().collect::<Result<Vec<_>, _>>()?)?;
    assert_eq!(hashed.get("a")?, Some(1));
    assert_eq!(hashed.remove(long.as_str())?, Some(2));
    assert_eq!(
        hashed.get_many(&["", "a", "b"].map(str::to_owned))?,
        [Some(3), Some(1), None]
    );
    let bytes = Larder::new().table("bytes").typed::<Vec<u8>, u8>()?;
    bytes.insert(vec![0, 1], 1)?;
    assert_eq!(bytes.remove([0u8, 1].as_slice())?, Some(1));
    Ok(())
}
