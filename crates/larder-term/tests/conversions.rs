//! Conversions between terms and the types of the standard library: there and back, and what
//! doesn't fit.

use larder_term::{term, Atom, Term, TryFromTermError};
use proptest::prelude::*;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;

/// A value becomes this term, and the term the value.
fn there_and_back<T>(value: T, text: &str)
where
    T: Clone + Debug + PartialEq + Into<Term> + TryFrom<Term, Error = TryFromTermError>,
{
    let term: Term = value.clone().into();
    assert_eq!(term.to_string(), text);
    assert_eq!(T::try_from(term), Ok(value));
}

fn refused<T>(term: Term, text: &str)
where
    T: Debug + TryFrom<Term, Error = TryFromTermError>,
{
    assert_eq!(T::try_from(term).unwrap_err().to_string(), text);
}

#[test]
fn values_there_and_back() {
    there_and_back(i8::MIN, "-128");
    there_and_back(u16::MAX, "65535");
    there_and_back(i64::MIN, "-9223372036854775808");
    there_and_back(u64::MAX, "18446744073709551615");
    there_and_back(usize::MAX, "18446744073709551615");
    there_and_back(i128::MIN, "-170141183460469231731687303715884105728");
    there_and_back(u128::MAX, "340282366920938463463374607431768211455");
    there_and_back('é', "233");
    there_and_back(true, "true");
    there_and_back(Atom::new("ok"), "ok");
    there_and_back(String::from("Ann"), "<<\"Ann\">>");
    assert_eq!(Term::from(b"abc"), Term::from("abc"));
    there_and_back(vec![1u8, 255], "<<1,255>>");
    there_and_back(vec![term!(a), term!(2)], "[a,2]");
    there_and_back((), "{}");
    there_and_back((7u8,), "{7}");
    there_and_back((1i32, (String::from("x"), false)), "{1,{<<\"x\">>,false}}");
    there_and_back(
        (
            1u8, 2u8, 3u8, 4u8, 5u8, 6u8, 7u8, 8u8, 9u8, 10u8, 11u8, 12u8,
        ),
        "{1,2,3,4,5,6,7,8,9,10,11,12}",
    );
}

#[test]
fn floats_and_integers() {
    assert_eq!(Term::try_from(2.5), Ok(term!(2.5)));
    assert_eq!(Term::try_from(0.5f32), Ok(term!(0.5)));
    assert!(Term::try_from(f64::NAN).is_err() && Term::try_from(f32::INFINITY).is_err());
    assert_eq!(f64::try_from(term!(2.5)), Ok(2.5));
    assert_eq!(f64::try_from(term!(3)), Ok(3.0));
    // The integer has no float of its own: it would become another number.
    refused::<f64>(
        Term::from((1i64 << 53) + 1),
        "9007199254740993 is not a float, or an integer of 64 bits that a float can hold",
    );
    refused::<f64>(
        Term::from(i64::MAX),
        "9223372036854775807 is not a float, or an integer of 64 bits that a float can hold",
    );
    refused::<u32>(term!(1.0), "1.0 is not an integer from 0 to 4294967295");
}

#[test]
fn maps() {
    let map = term!(#{"a" => 1, "b" => 2});
    let sorted = BTreeMap::from([(String::from("a"), 1), (String::from("b"), 2)]);
    assert_eq!(BTreeMap::<String, u8>::try_from(&map), Ok(sorted.clone()));
    let hashed: HashMap<String, u8> = map.try_into().unwrap();
    assert_eq!(hashed.into_iter().collect::<BTreeMap<_, _>>(), sorted);
    refused::<HashMap<String, u8>>(term!(#{"a" => 300}), "300 is not an integer from 0 to 255");
    refused::<HashMap<String, u8>>(term!([]), "[] is not a map");
}

#[test]
fn what_is_borrowed() {
    let row = term!({1, "Ann", "staff"});
    let (id, name, rest): (u8, &str, &[u8]) = (&row).try_into().unwrap();
    assert_eq!((id, name, rest), (1, "Ann", &b"staff"[..]));
    assert_eq!(<&str>::try_from(&term!("Ann")), Ok("Ann"));
    assert!(<&str>::try_from(&Term::binary(&[0xFF])).is_err());
}

#[test]
fn what_does_not_fit_is_named() {
    refused::<u8>(term!(300), "300 is not an integer from 0 to 255");
    refused::<i8>(term!(abc), "abc is not an integer from -128 to 127");
    refused::<bool>(term!(yes), "yes is not true or false");
    refused::<char>(Term::from(0xD800), "55296 is not a Unicode code point");
    refused::<String>(Term::binary(&[0xFF]), "<<255>> is not a binary of UTF-8");
    refused::<Vec<Term>>(term!(#{}), "#{} is not a proper list");
    refused::<(u8, u8)>(term!({1, 2, 3}), "{1,2,3} is not a tuple of arity 2");
    refused::<(u8, u8)>(term!({1, x}), "x is not an integer from 0 to 255");
    refused::<Atom>(term!("a"), "<<\"a\">> is not an atom");
}

/// The text of a large term is cut: an error doesn't print a million elements.
#[test]
fn the_text_of_an_error_is_short() {
    let large = Term::list((0..1_000_000i32).map(Term::from));
    let text = u8::try_from(large).unwrap_err().to_string();
    assert!(text.starts_with("[0,1,2,") && text.contains('…'), "{text}");
    assert!(text.chars().count() < 130, "{text}");
}

proptest! {
    #[test]
    fn integers_of_all_sizes(n: i128, small: i64) {
        prop_assert_eq!(i128::try_from(Term::from(n)), Ok(n));
        prop_assert_eq!(u64::try_from(Term::from(n)).ok(), u64::try_from(n).ok());
        prop_assert_eq!(Term::from(i128::from(small)), Term::from(small));
        prop_assert_eq!(u8::try_from(Term::from(small)).ok(), u8::try_from(small).ok());
    }

    #[test]
    fn floats_of_integers_are_exact(n: i64) {
        match f64::try_from(Term::from(n)) {
            Ok(x) => prop_assert_eq!(x as i128, i128::from(n)),
            Err(_) => prop_assert_ne!(n as f64 as i128, i128::from(n)),
        }
    }

    #[test]
    fn texts(text: String, bytes: Vec<u8>) {
        prop_assert_eq!(String::try_from(Term::from(&text)), Ok(text));
        prop_assert_eq!(Vec::<u8>::try_from(Term::from(&bytes)), Ok(bytes));
    }
}
