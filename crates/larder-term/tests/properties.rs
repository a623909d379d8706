//! Properties of random terms: one order in two forms, one encoding a term, and the same term after
//! every round trip.

use larder_term::{
    blob, etf, order_key, skip, term, Atom, Encoder, Mode, Node, NodeName, Term, TermBuf, TermRef,
    View,
};
use proptest::{collection::vec, prelude::*};
use std::cmp::Ordering;

fn integers() -> impl Strategy<Value = Term> {
    prop_oneof![
        4 => (-3i64..4).prop_map(Term::int),
        1 => any::<i64>().prop_map(Term::int),
        1 => (any::<i128>(), 0u32..200).prop_map(|(n, by)| Term::bigint(&(num_bigint::BigInt::from(n) << by))),
        1 => (0u32..100, -2i64..3).prop_map(|(by, near)| Term::bigint(&((num_bigint::BigInt::from(1) << by) + near))),
    ]
}

fn floats() -> impl Strategy<Value = Term> {
    let float = |x: f64| Term::float(x).unwrap_or_else(|_| term!(0.5));
    prop_oneof![
        3 => (-6i32..7).prop_map(move |n| float(f64::from(n) / 2.0)),
        1 => Just(float(-0.0)),
        1 => any::<f64>().prop_map(float),
        2 => (0i32..100, -1i32..2).prop_map(move |(by, near)| float(2f64.powi(by) + f64::from(near))),
    ]
}

fn node() -> impl Strategy<Value = Node> {
    let name = |(name, creation): (&str, u32)| {
        let name = Atom::new(name);
        Node::External(NodeName { name, creation })
    };
    (prop::sample::select(vec!["a@h", "ab@h", "b@h"]), 0u32..3).prop_map(name)
}

fn leaves() -> impl Strategy<Value = Term> {
    prop_oneof![
        4 => integers(),
        3 => floats(),
        3 => prop::sample::select(vec!["a", "b", "ab", "", "\0", "a\0", "a\u{1}", "é", "Ж"]).prop_map(Term::atom),
        1 => Just(Term::nil()),
        2 => vec(0u8..3, 0..4).prop_map(|b| Term::binary(&b)),
        1 => vec(any::<u8>(), 60..80).prop_map(|b| Term::binary(&b)),
        1 => (vec(0u8.., 1..4), 0usize..32).prop_map(|(b, bits)| Term::bits(&b, bits)),
        1 => (node(), 0u32..3, 0u32..3).prop_map(|(node, id, serial)| Term::pid(node, id, serial)),
        1 => (node(), 0u64..300).prop_map(|(node, id)| Term::port(node, id)),
        1 => (node(), vec(0u32..3, 1..6)).prop_map(|(node, words)| Term::reference(node, &words)),
        1 => (0u8..3).prop_map(|arity| Term::export(Atom::new("m"), Atom::new("f"), arity)),
    ]
}

fn fun(free: &[Term], old_index: i64) -> Term {
    Term::build(|enc| {
        enc.begin_fun(Atom::new("m"), 1, &[7; 16], 3, old_index, 99, free.len());
        free.iter().for_each(|t| enc.term(t.as_ref()));
    })
    .unwrap()
}

fn map(pairs: Vec<(Term, Term)>) -> Term {
    let mut kept: Vec<(Term, Term)> = Vec::new();
    for (key, value) in pairs {
        if kept.iter().all(|(k, _)| *k != key) {
            kept.push((key, value));
        }
    }
    Term::map(kept).unwrap()
}

fn terms() -> impl Strategy<Value = Term> {
    leaves().prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            3 => vec(inner.clone(), 0..4).prop_map(Term::tuple),
            3 => vec(inner.clone(), 0..4).prop_map(Term::list),
            1 => (vec(inner.clone(), 1..4), inner.clone()).prop_map(|(list, tail)| Term::improper(list, tail.as_ref())),
            3 => vec((inner.clone(), inner.clone()), 0..4).prop_map(map),
            1 => (vec(inner, 0..3), 0i64..2).prop_map(|(free, index)| fun(&free, index)),
        ]
    })
}

/// A term and something near it: a list of both kinds of numbers in place of one another.
fn pairs() -> impl Strategy<Value = (Term, Term)> {
    let near = terms().prop_flat_map(|t| (Just(t.clone()), Just(rebuilt(t.as_ref(), &as_float))));
    prop_oneof![1 => (terms(), terms()), 2 => near]
}

fn as_float(term: TermRef<'_>) -> Option<Term> {
    term.as_int()
        .filter(|n| n.abs() < 1 << 53)
        .map(|n| Term::float(n as f64).unwrap())
}

/// The same term, taken apart by its views and put together again, with some leaves replaced.
fn rebuilt(term: TermRef<'_>, leaf: &dyn Fn(TermRef<'_>) -> Option<Term>) -> Term {
    if let Some(other) = leaf(term) {
        return other;
    }
    let all = |terms: &mut dyn Iterator<Item = TermRef<'_>>| {
        terms.map(|t| rebuilt(t, leaf)).collect::<Vec<_>>()
    };
    match term.view() {
        View::Int(n) => Term::int(n),
        View::Big(n) => Term::bigint(&n.to_bigint()),
        View::Float(x) => Term::float(x).unwrap(),
        View::Atom(atom) => Term::from(atom),
        View::Nil => Term::nil(),
        View::List(list) => {
            Term::improper(all(&mut list.iter()), rebuilt(list.tail(), leaf).as_ref())
        }
        View::Tuple(tuple) => Term::tuple(all(&mut tuple.iter())),
        View::Map(m) => map(m
            .iter()
            .map(|(k, v)| (rebuilt(k, leaf), rebuilt(v, leaf)))
            .collect()),
        View::Bin(bytes) => Term::binary(bytes),
        View::Bits { bytes, bits } => Term::bits(bytes, bits),
        View::Pid(pid) => Term::pid(pid.node, pid.id, pid.serial),
        View::Port(port) => Term::port(port.node, port.id),
        View::Ref(reference) => {
            Term::reference(reference.node, &reference.words().collect::<Vec<_>>())
        }
        View::Fun(f) => fun(&all(&mut f.free()), f.old_index.as_int().unwrap()),
        View::Export {
            module,
            function,
            arity,
        } => Term::export(module, function, arity as u8),
    }
}

fn key(term: TermRef<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    order_key::encode(term, &mut out);
    out
}

fn inline(term: &Term) -> Vec<u8> {
    let mut out = Vec::new();
    Encoder::new(&mut out, Mode::Inline).term(term.as_ref());
    out
}

fn proper_prefix(a: &[u8], b: &[u8]) -> bool {
    a.len() < b.len() && b.starts_with(a)
}

fn etf_of(term: TermRef<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    etf::encode(term, &NodeName::NONE, &mut out);
    out
}

fn from_etf(bytes: &[u8]) -> Result<(Term, usize), etf::EtfError> {
    etf::decode_term(bytes, &NodeName::NONE, &etf::EtfOptions::default())
}

/// Identifiers of other nodes and funs have no text that is read.
fn has_text(term: TermRef<'_>) -> bool {
    let text = term.to_string();
    ["#Fun<", "@h.", "#Ref<", "#Port<"]
        .iter()
        .all(|mark| !text.contains(mark))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn order_keys_are_the_order((a, b) in pairs()) {
        let order = a.as_ref().cmp_term(b.as_ref());
        let (x, y) = (key(a.as_ref()), key(b.as_ref()));
        prop_assert_eq!(x.cmp(&y), order);
        prop_assert_eq!(b.as_ref().cmp_term(a.as_ref()), order.reverse());
        prop_assert!(!proper_prefix(&x, &y) && !proper_prefix(&y, &x));
        prop_assert_eq!(a.as_ref().eq_term(b.as_ref()), order.is_eq());
    }

    #[test]
    fn order_keys_come_back_where_they_can((a, b) in pairs()) {
        for term in [&a, &b, &Term::tuple(&[a.clone(), b.clone()])] {
            let key = key(term.as_ref());
            if order_key::comes_back(term.as_ref()) {
                let mut again = vec![7];
                order_key::decode(&key, &mut again);
                prop_assert_eq!(&again[1..], &inline(term)[..]);
            }
        }
        // Of two terms that share a key at most one comes back.
        if key(a.as_ref()) == key(b.as_ref()) && a != b {
            prop_assert!(!(order_key::comes_back(a.as_ref()) && order_key::comes_back(b.as_ref())));
        }
    }

    #[test]
    fn orders_are_orders(a in terms(), b in terms(), c in terms()) {
        let mut all = [&a, &b, &c];
        all.sort_by(|x, y| x.as_ref().cmp_exact(y.as_ref()));
        prop_assert!(all[0].as_ref().cmp_exact(all[2].as_ref()).is_le());
        all.sort_by(|x, y| x.as_ref().cmp_term(y.as_ref()));
        prop_assert!(all[0].as_ref().cmp_term(all[2].as_ref()).is_le());
        prop_assert_eq!(a.cmp(&b) == Ordering::Equal, a == b);
    }

    #[test]
    fn identical_is_the_same_bytes((a, b) in pairs()) {
        let (x, y) = (inline(&a), inline(&b));
        prop_assert_eq!(a.as_ref().identical(b.as_ref()), x == y);
        prop_assert_eq!(a.as_ref().cmp_exact(b.as_ref()).is_eq(), x == y);
        prop_assert!(!proper_prefix(&x, &y));
        prop_assert!(a != b || a.as_ref().eq_term(b.as_ref()));
    }

    #[test]
    fn terms_come_back(a in terms()) {
        let again = rebuilt(a.as_ref(), &|_| None);
        prop_assert_eq!(inline(&again), inline(&a));
        prop_assert_eq!(skip(a.bytes()), a.bytes().len());
        prop_assert!(!blob::has_handles(&inline(&a)));
        let bytes = etf_of(a.as_ref());
        let (again, length) = from_etf(&bytes).unwrap();
        prop_assert_eq!(length, bytes.len());
        prop_assert_eq!(&again, &a);
        let mut appended = vec![1, 2];
        prop_assert_eq!(etf::decode(&bytes, &NodeName::NONE, &mut appended, Mode::Inline), Ok(bytes.len()));
        prop_assert_eq!(&appended[2..], &inline(&a)[..]);
        if has_text(a.as_ref()) {
            let text = a.to_string();
            let read: Term = text.parse().unwrap();
            prop_assert_eq!(read, a);
        }
    }

    #[test]
    fn broken_bytes_are_errors_or_terms(a in terms(), changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4), cut in any::<prop::sample::Index>()) {
        let mut bytes = etf_of(a.as_ref());
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        // Whatever it is, it is no panic, and a term that comes out is a whole one.
        if let Ok((term, _)) = from_etf(&bytes) {
            prop_assert_eq!(from_etf(&etf_of(term.as_ref())).unwrap().0, term);
        }
        let whole = etf_of(a.as_ref());
        let cut = cut.index(whole.len());
        prop_assert!(from_etf(&whole[..cut]).is_err());
    }

    #[test]
    fn prefixes_hold_what_they_should(elements in vec(terms(), 1..4), other in terms()) {
        let refs: Vec<_> = elements.iter().map(Term::as_ref).collect();
        let tuple = Term::tuple(&elements);
        for n in 0..=refs.len() {
            let mut prefix = Vec::new();
            order_key::tuple_prefix(refs.len(), &refs[..n], &mut prefix);
            prop_assert!(key(tuple.as_ref()).starts_with(&prefix));
            let mut end = prefix.clone();
            prop_assert!(order_key::successor(&mut end));
            let inside = key(other.as_ref()).starts_with(&prefix);
            let between = key(other.as_ref()) >= prefix && key(other.as_ref()) < end;
            prop_assert_eq!(inside, between);
            let mut prefix = Vec::new();
            order_key::list_prefix(&refs[..n], &mut prefix);
            let list = Term::improper(&elements, other.as_ref());
            prop_assert!(key(list.as_ref()).starts_with(&prefix));
        }
    }
}

/// `depth` containers around one another, made head by head.
fn deep(depth: usize, head: impl Fn(&mut Encoder<'_>)) -> Term {
    Term::build(|enc| {
        (0..depth).for_each(|_| head(enc));
        enc.nil();
    })
    .unwrap()
}

#[test]
fn a_million_levels_need_no_stack() {
    const DEPTH: usize = 1_000_000;
    let lists = deep(DEPTH, |enc| enc.begin_list(1));
    let tuples = deep(DEPTH, |enc| enc.begin_tuple(1));
    let maps = deep(DEPTH, |enc| {
        enc.begin_sorted_map(1);
        enc.int(1);
    });
    let keys = Term::build(|enc| {
        (0..DEPTH).for_each(|_| enc.begin_sorted_map(1));
        enc.nil();
        (0..DEPTH).for_each(|_| enc.int(1));
    })
    .unwrap();
    let wide = deep(DEPTH, |enc| {
        enc.begin_sorted_map(2);
        enc.int(1);
        enc.int(7);
        enc.int(2);
    });
    let funs = deep(DEPTH, |enc| {
        enc.begin_fun(Atom::new("m"), 0, &[0; 16], 0, 0, 0, 1)
    });
    for term in [lists, tuples, maps, keys, wide, funs] {
        let copy = term.clone();
        assert!(term == copy && term.as_ref().cmp_term(copy.as_ref()).is_eq());
        let other = Term::tuple([&term, &term!(1)]);
        let another = Term::tuple([&copy, &term!(2)]);
        assert!(other < another && key(other.as_ref()) < key(another.as_ref()));
        assert_eq!(skip(term.bytes()), term.bytes().len());
        let bytes = etf_of(term.as_ref());
        assert!(from_etf(&bytes).unwrap().0 == term);
        assert!(!term.to_string().is_empty());
    }
}

#[test]
fn small_bytes_ask_for_little_memory() {
    for bytes in [
        &[131, 105, 0xFF, 0xFF, 0xFF, 0xFF][..],
        &[131, 108, 0xFF, 0xFF, 0xFF, 0xFF, 106],
        &[131, 109, 0xFF, 0xFF, 0xFF, 0xFF, 1],
        &[131, 116, 0x7F, 0xFF, 0xFF, 0xFF, 97, 1],
        &[131, 111, 0xFF, 0xFF, 0xFF, 0xFF, 0, 1],
        &[131, 80, 0xFF, 0xFF, 0xFF, 0xFF, 120, 156, 1, 2],
        &[131, 112, 0, 0, 0, 9, 1],
        &[131],
        &[],
        &[130, 97, 1],
        &[131, 200],
    ] {
        assert!(from_etf(bytes).is_err(), "{bytes:?}");
    }
}

#[test]
fn older_forms_are_read() {
    let read = |bytes: &[u8]| from_etf(bytes).unwrap().0;
    assert_eq!(read(&[131, 100, 0, 1, 0xE9]), Term::atom("é"));
    assert_eq!(read(&[131, 115, 1, 0xE9]), Term::atom("é"));
    assert_eq!(read(&[131, 118, 0, 2, 0xC3, 0xA9]), Term::atom("é"));
    let mut float = vec![131, 99];
    float.extend_from_slice(b"1.50000000000000000000e+00\0\0\0\0\0");
    assert_eq!(read(&float), term!(1.5));
    let node = |creation| {
        let name = Atom::new("a@h");
        Node::External(NodeName { name, creation })
    };
    let name = [100, 0, 3, b'a', b'@', b'h'];
    let with = |tag: &[u8], rest: &[u8]| [&[131][..], tag, &name, rest].concat();
    assert_eq!(
        read(&with(&[103], &[0, 0, 0, 5, 0, 0, 0, 6, 2])),
        Term::pid(node(2), 5, 6)
    );
    assert_eq!(
        read(&with(&[102], &[0, 0, 0, 5, 2])),
        Term::port(node(2), 5)
    );
    assert_eq!(
        read(&with(&[101], &[0, 0, 0, 5, 2])),
        Term::reference(node(2), &[5])
    );
    assert_eq!(
        read(&with(&[114, 0, 2], &[2, 0, 0, 0, 5, 0, 0, 0, 6])),
        Term::reference(node(2), &[5, 6])
    );
    // A list whose tail is a list is one list.
    assert_eq!(
        read(&[131, 108, 0, 0, 0, 1, 97, 1, 108, 0, 0, 0, 1, 97, 2, 106]),
        term!([1, 2])
    );
    assert_eq!(
        read(&[131, 108, 0, 0, 0, 1, 97, 1, 107, 0, 2, 2, 3]),
        term!([1, 2, 3])
    );
    assert_eq!(
        read(&[131, 108, 0, 0, 0, 1, 97, 1, 108, 0, 0, 0, 1, 97, 2, 97, 3]),
        term!([1, 2 | 3])
    );
    assert_eq!(read(&[131, 110, 3, 1, 5, 0, 0]), term!(-5));
    assert!(from_etf(&[131, 116, 0, 0, 0, 2, 97, 1, 97, 2, 97, 1, 97, 3]).is_err());
    let options = etf::EtfOptions {
        safe: true,
        ..Default::default()
    };
    let unknown = etf::decode_term(b"\x83\x77\x0cnever before", &NodeName::NONE, &options);
    assert_eq!(unknown.unwrap_err(), etf::EtfError::UnknownAtom);
    let options = etf::EtfOptions {
        max_atoms: 0,
        ..Default::default()
    };
    let one_more = etf::decode_term(b"\x83\x77\x0cnever before", &NodeName::NONE, &options);
    assert_eq!(one_more.unwrap_err(), etf::EtfError::TooManyAtoms);
    assert!(etf::decode_term(b"\x83\x77\x04true", &NodeName::NONE, &options).is_ok());
}

/// A fun says which node made it, and strangers' are refused where that is asked for.
#[test]
fn a_fun_of_another_node_is_refused() {
    let mut buffer = TermBuf::new(Mode::Inline);
    buffer.encode(|enc| enc.begin_fun(Atom::new("m"), 0, &[0; 16], 0, 0, 0, 0));
    let fun = buffer.into_term().expect("a whole term");
    let node = |name| NodeName {
        name: Atom::new(name),
        creation: 1,
    };
    let (here, there) = (node("here@host"), node("there@host"));
    let mut bytes = Vec::new();
    etf::encode(fun.as_ref(), &there, &mut bytes);
    for (local, safe, refused) in [
        (&here, false, false),
        (&there, true, false),
        (&here, true, true),
    ] {
        let options = etf::EtfOptions {
            safe,
            ..Default::default()
        };
        let taken = etf::decode_term(&bytes, local, &options).map(|_| ());
        let wanted = if refused {
            Err(etf::EtfError::ForeignFun)
        } else {
            Ok(())
        };
        assert_eq!(taken, wanted);
    }
}

#[test]
fn an_integer_that_is_too_large_is_refused() {
    let options = etf::EtfOptions {
        max_bits: 128,
        ..Default::default()
    };
    let integer = |bytes: u8| {
        let mut etf = vec![131, 104, 1, 110, bytes, 0];
        etf.resize(etf.len() + usize::from(bytes), 0xFF);
        etf::decode_term(&etf, &NodeName::NONE, &options).map(|(_, length)| length)
    };
    assert_eq!(integer(16), Ok(22));
    assert_eq!(integer(17), Err(etf::EtfError::TooLarge));
}

/// A tuple of 2^24 elements is none of Erlang's.
#[test]
fn a_tuple_that_is_too_large_is_refused() {
    let tuple = |arity: u32| {
        let mut bytes = vec![131, 105];
        bytes.extend_from_slice(&arity.to_be_bytes());
        bytes.resize(bytes.len() + arity as usize, 106);
        from_etf(&bytes)
    };
    let (largest, length) = tuple((1 << 24) - 1).unwrap();
    assert_eq!(length, 6 + (1 << 24) - 1);
    assert_eq!(largest.as_ref().as_tuple().unwrap().arity(), (1 << 24) - 1);
    assert_eq!(tuple(1 << 24).err(), Some(etf::EtfError::TooLarge));
}

/// A reference that names a process has five words, of which the last may be zero; whoever made it
/// takes no fewer.
#[test]
fn references_have_three_words_or_five() {
    for (words, written) in [(1, 3), (3, 3), (4, 5), (5, 5)] {
        let mut bytes = vec![131, 90, 0, words, 119, 1, b'n', 0, 0, 0, 9];
        for word in 1..=u32::from(words) {
            let word = if word == 5 { 0 } else { word };
            bytes.extend_from_slice(&word.to_be_bytes());
        }
        let (term, _) = from_etf(&bytes).unwrap();
        let out = etf_of(term.as_ref());
        assert_eq!(out[2..4], [0, written], "{words} words");
        bytes[3] = written;
        bytes.resize(11 + 4 * usize::from(written), 0);
        assert_eq!(out, bytes);
    }
}

/// Writes a term with the pairs of all its maps in the opposite order.
fn backwards(term: TermRef<'_>, enc: &mut Encoder<'_>) {
    match term.view() {
        View::Map(map) => {
            let token = enc.begin_map(map.len());
            let pairs: Vec<_> = map.iter().collect();
            for (key, value) in pairs.into_iter().rev() {
                backwards(key, enc);
                backwards(value, enc);
            }
            enc.end_map(token).expect("the keys of a map");
        }
        View::Tuple(tuple) => {
            enc.begin_tuple(tuple.arity());
            tuple.iter().for_each(|element| backwards(element, enc));
        }
        _ => enc.term(term),
    }
}

proptest! {
    /// However the pairs of maps come, those nested in values and in keys too, the bytes are the
    /// same.
    #[test]
    fn maps_may_come_in_any_order(parts in vec((terms(), terms(), terms()), 1..6)) {
        let inner = |key: &Term, value: &Term| Term::map([(key.clone(), value.clone()), (term!(k), term!(v))]);
        let nested: Vec<_> = parts
            .iter()
            .filter_map(|(a, b, c)| Some((inner(a, b).ok()?, inner(b, c).ok()?)))
            .collect();
        prop_assume!(!nested.is_empty());
        let Ok(whole) = Term::map(nested) else { return Ok(()) };
        let whole = Term::tuple([whole.clone(), Term::map([(term!(1), whole.clone()), (whole, term!(2))]).unwrap()]);
        let mut buffer = TermBuf::new(Mode::Inline);
        buffer.encode(|enc| backwards(whole.as_ref(), enc));
        let again = buffer.into_term().expect("a whole term");
        prop_assert_eq!(again.as_ref().bytes(), whole.as_ref().bytes());
    }
}

/// Each level of maps comes in the wrong order: all is moved once.
#[test]
fn deep_maps_in_the_wrong_order_are_moved_once() {
    const DEPTH: usize = 300_000;
    let mut buffer = TermBuf::new(Mode::Inline);
    let start = std::time::Instant::now();
    buffer.encode(|enc| {
        let maps: Vec<_> = (0..DEPTH)
            .map(|_| {
                let token = enc.begin_map(2);
                enc.int(512);
                enc.int(1);
                enc.int(511);
                token
            })
            .collect();
        enc.int(0);
        maps.into_iter()
            .rev()
            .for_each(|token| enc.end_map(token).expect("two keys"));
    });
    let deep = buffer.into_term().expect("a whole term");
    assert!(start.elapsed().as_secs() < 5, "{:?}", start.elapsed());
    let mut sorted = TermBuf::new(Mode::Inline);
    sorted.encode(|enc| {
        for _ in 0..DEPTH {
            enc.begin_sorted_map(2);
            enc.int(511);
        }
        enc.int(0);
        for _ in 0..DEPTH {
            [512, 1].iter().for_each(|n| enc.int(*n));
        }
    });
    let sorted = sorted.into_term().expect("a whole term");
    assert!(deep.as_ref().bytes() == sorted.as_ref().bytes());
}
