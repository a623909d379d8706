//! Small examples of every kind of term, its identity, order, object and handles.

use larder_term::{
    blob,
    object::{self, KeyForm, ObjectBuf, ObjectEncoder, ObjectError, ObjectView},
    order_key, set_legacy_zero, skip, term, Atom, Encoder, Incomplete, Mode, Node, NodeName, Term,
    View,
};
use std::sync::{Arc, Mutex, MutexGuard};

/// Counts of living blobs and the switch for zeros belong to the process: tests that look at them
/// run one by one.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn big(text: &str) -> Term {
    Term::bigint(&text.parse().unwrap())
}

#[test]
fn bytes_are_as_designed() {
    let check = |t: Term, bytes: &[u8]| assert_eq!(t.bytes(), bytes, "{t}");
    check(term!(0), &[0x80]);
    check(term!(127), &[0xFF]);
    check(term!(128), &[2, 0x80, 0]);
    check(term!(-1), &[1, 0xFF]);
    check(term!(-129), &[2, 0x7F, 0xFF]);
    check(Term::int(i64::MIN), &[8, 0, 0, 0, 0, 0, 0, 0, 0x80]);
    check(
        big("9223372036854775808"),
        &[9, 8, 0, 0, 0, 0, 0, 0, 0, 0x80],
    );
    check(term!(true), &[0x0C, 1]);
    check(term!([]), &[0x10]);
    check(term!([1 | 2]), &[0x12, 1, 0x81, 0x82]);
    check(term!({1, "a"}), &[0x13, 2, 0x81, 0x15, 1, b'a']);
    check(Term::bits(&[0xFF], 3), &[0x17, 3, 0xE0]);
    check(term!(#{2 => 3, 1 => 4}), &[0x14, 2, 0x81, 0x84, 0x82, 0x83]);
}

#[test]
fn duplicate_keys_are_refused() {
    let _alone = alone();
    assert!(Term::map([(term!(1), term!(a)), (term!(1), term!(b))]).is_err());
    assert!(Term::map([(term!(1), term!(a)), (term!(1.0), term!(b))]).is_ok());
    let long = || Term::binary(&[7; 150]);
    assert!(Term::map([(long(), term!(a)), (term!(x), term!(c)), (long(), term!(b))]).is_err());
}

#[test]
fn maps_inside_maps_are_sorted() {
    let inner = |n: i64| {
        Term::map([
            (term!(9), Term::int(n)),
            (term!({3, 4}), term!(#{z => 1, a => 2})),
            (term!(1), term!(b)),
        ])
        .unwrap()
    };
    let a = Term::map([(inner(2), inner(3)), (inner(1), term!(x))]).unwrap();
    let b = Term::map([(inner(1), term!(x)), (inner(2), inner(3))]).unwrap();
    assert_eq!(a.bytes(), b.bytes());
    let View::Map(map) = a.view() else { panic!() };
    assert!(map
        .get(inner(2).as_ref())
        .unwrap()
        .identical(inner(3).as_ref()));
    let streamed = Term::build(|enc| {
        let outer = enc.begin_map(2);
        let first = enc.begin_map(0);
        enc.end_map(first).unwrap();
        enc.begin_tuple(2);
        let second = enc.begin_map(2);
        [2, 20, 1, 10].into_iter().for_each(|n| enc.int(n));
        enc.end_map(second).unwrap();
        enc.int(5);
        enc.int(0);
        enc.nil();
        enc.end_map(outer).unwrap();
    });
    assert_eq!(
        streamed.unwrap(),
        term!(#{#{} => {#{1 => 10, 2 => 20}, 5}, 0 => []})
    );
}

#[test]
fn incomplete_terms_are_refused() {
    assert!(Term::build(|enc| enc.begin_tuple(2)).is_err());
    assert!(Term::build(|_| ()).is_err());
    assert!(Term::build(|enc| {
        enc.int(1);
        enc.int(2);
    })
    .is_err());
    assert!(Term::build(|enc| drop(enc.begin_map(1))).is_err());
    assert!(Term::build(|enc| {
        let _never_ended = enc.begin_map(1);
        (0..9).for_each(|n| enc.int(n));
    })
    .is_err());
}

#[test]
fn order_of_types_and_numbers() {
    let mut reference = Vec::new();
    Encoder::new(&mut reference, Mode::Inline).reference(Node::Local, &[1, 2, 3]);
    let sorted = [
        big("-99999999999999999999999"),
        term!(-1.5),
        term!(-1),
        term!(0),
        term!(0.5),
        term!(1),
        term!(1.0),
        Term::float(9007199254740992.0).unwrap(),
        Term::int(9007199254740993),
        big("9223372036854775808"),
        Term::float(1e300).unwrap(),
        term!(a),
        term!(ab),
        term!(b),
        Term::reference(Node::Local, &[1, 2, 3]),
        Term::export(Atom::new("m"), Atom::new("f"), 1),
        Term::port(Node::Local, 5),
        Term::pid(Node::Local, 5, 0),
        Term::pid(Node::Local, 1, 1),
        term!({}),
        term!({ 9 }),
        term!({1, 1}),
        term!(#{}),
        term!(#{a => 1}),
        term!(#{1 => 2, 2 => 2}),
        term!(#{1 => 2, 1.0 => 2}),
        term!([]),
        term!([1 | 2]),
        term!([1]),
        term!([1, 2]),
        term!([2]),
        term!(""),
        Term::bits(&[0], 1),
        term!(b"\0"),
        term!("a"),
        Term::bits(b"aa", 9),
        term!("aa"),
    ];
    let key = |t: &Term| {
        let mut out = Vec::new();
        order_key::encode(t.as_ref(), &mut out);
        out
    };
    for (i, a) in sorted.iter().enumerate() {
        for (j, b) in sorted.iter().enumerate() {
            assert_eq!(a.cmp(b), i.cmp(&j), "{a} {b}");
            let order = a.as_ref().cmp_term(b.as_ref());
            assert_eq!(key(a).cmp(&key(b)), order, "{a} {b}");
            assert_eq!(
                order.is_eq(),
                i == j || (i.min(j) == 5 && i.max(j) == 6),
                "{a} {b}"
            );
        }
    }
}

#[test]
fn prefixes_and_successors() {
    let key = |t: &Term| {
        let mut out = Vec::new();
        order_key::encode(t.as_ref(), &mut out);
        out
    };
    let mut prefix = Vec::new();
    order_key::tuple_prefix(3, &[term!(a).as_ref(), term!(1).as_ref()], &mut prefix);
    assert!(key(&term!({a, 1, z})).starts_with(&prefix));
    assert!(key(&term!({a, 1.0, z})).starts_with(&prefix));
    assert!(!key(&term!({a, 2, z})).starts_with(&prefix));
    assert!(!key(&term!({a, 1})).starts_with(&prefix));
    let mut end = prefix.clone();
    assert!(order_key::successor(&mut end));
    assert!(key(&term!({a, 1, #{}})) < end && end < key(&term!({a, 2, 0})));
    let mut prefix = Vec::new();
    order_key::list_prefix(&[term!(a).as_ref()], &mut prefix);
    for inside in [term!([a]), term!([a, b]), term!([a | b]), term!([a | "x"])] {
        assert!(key(&inside).starts_with(&prefix));
    }
    assert!(!key(&term!([b])).starts_with(&prefix));
    assert!(!order_key::successor(&mut vec![0xFF, 0xFF]));
}

#[test]
fn shared_binaries_are_counted() {
    let _alone = alone();
    let (count, bytes) = (blob::live_count(), blob::live_bytes());
    let long = Term::binary(&[1; 128]);
    assert_eq!(
        (blob::live_count(), blob::live_bytes()),
        (count + 1, bytes + 128)
    );
    let row = Term::tuple([&long, &long, &Term::binary(&[2; 127])]);
    let copy = row.clone();
    assert_eq!(blob::live_count(), count + 1);
    drop((row, long));
    let View::Tuple(tuple) = copy.view() else {
        panic!()
    };
    let first = tuple.get(0).unwrap();
    assert_eq!(first.as_binary(), Some(&[1; 128][..]));
    let blob = first.blob().unwrap();
    assert!(blob.same(&tuple.get(1).unwrap().blob().unwrap()));
    assert!(tuple.get(2).unwrap().blob().is_none());
    drop(copy);
    assert_eq!(&*blob, &[1; 128]);
    drop(blob);
    assert_eq!((blob::live_count(), blob::live_bytes()), (count, bytes));
}

#[test]
fn outside_and_inline_are_identical() {
    let _alone = alone();
    let row = term!({k, [(&[1u8; 150][..])], #{(&[2u8; 150][..]) => 1, a => 2}});
    let mut inline = Vec::new();
    Encoder::new(&mut inline, Mode::Inline).term(row.as_ref());
    assert!(!blob::has_handles(&inline) && blob::has_handles(row.bytes()));
    let again = Term::build(|enc| enc.term(row.as_ref())).unwrap();
    let other = term!({k, [(&[1u8; 150][..])], #{(&[2u8; 150][..]) => 1, a => 2}});
    assert_ne!(row.bytes(), other.bytes());
    assert_eq!(row, other);
    assert_eq!(row, again);
    assert!(row.as_ref().eq_term(other.as_ref()));
    assert_ne!(
        row,
        term!({k, [(&[3u8; 150][..])], #{(&[2u8; 150][..]) => 1, a => 2}})
    );
    assert_eq!(skip(&inline), inline.len());
}

#[test]
fn owners_and_anchors_live_as_long_as_the_terms() {
    let _alone = alone();
    let before = blob::live_count();
    struct HostBytes {
        _life: Arc<()>,
        bytes: Vec<u8>,
    }
    impl AsRef<[u8]> for HostBytes {
        fn as_ref(&self) -> &[u8] {
            &self.bytes
        }
    }
    let life = Arc::new(());
    let owned = blob::Blob::from_owner(HostBytes {
        _life: life.clone(),
        bytes: vec![9; 170],
    });
    assert!(owned.owner::<HostBytes>().is_some() && owned.owner::<String>().is_none());
    let anchor = blob::Anchor::new(life.clone());
    let term = Term::build(|enc| {
        enc.begin_tuple(2);
        enc.blob(owned);
        enc.reference_kept(&[1, 2, 3], anchor);
    })
    .unwrap();
    assert_eq!(Arc::strong_count(&life), 3);
    let View::Tuple(tuple) = term.view() else {
        panic!()
    };
    let kept = tuple.get(1).unwrap();
    assert!(kept.identical(Term::reference(Node::Local, &[1, 2, 3]).as_ref()));
    assert!(kept.anchor().unwrap().kept().is_some());
    let copy = term.clone();
    drop(term);
    assert_eq!(Arc::strong_count(&life), 3);
    drop(copy);
    assert_eq!(Arc::strong_count(&life), 1);
    assert_eq!(blob::live_count(), before);
}

#[test]
fn objects_come_back() {
    let _alone = alone();
    let before = blob::live_count();
    let tuple = term!({first, key, 3.5, (&[7u8; 200][..]), "abcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabc", [1, 2]});
    let forms = [
        KeyForm::Hash { legacy_zero: false },
        KeyForm::Hash { legacy_zero: true },
        KeyForm::Ordered,
    ];
    for form in forms {
        for keypos in 1..=6 {
            for compress in [false, true] {
                let mut object = ObjectBuf::new();
                object::encode(tuple.as_ref(), keypos, form, compress, &mut object).unwrap();
                let compressed = object.value()[0] & object::COMPRESSED != 0;
                assert_eq!(compressed, compress);
                // A key's own binary lies in the index key.
                let outside = !compress && keypos != 4;
                assert_eq!(object::value_has_handles(object.value()), outside);
                let mut scratch = Vec::new();
                let view = object.view(keypos, &mut scratch);
                assert_eq!((view.arity(), view.keypos()), (6, keypos));
                assert!(view.identical_tuple(tuple.as_ref()));
                assert_eq!(Term::build(|enc| view.encode(enc)).unwrap(), tuple);
                let View::Tuple(elements) = tuple.view() else {
                    panic!()
                };
                for (i, element) in elements.iter().enumerate() {
                    assert!(view.element(i + 1).unwrap().identical(element));
                }
                assert!(view.element(0).is_none() && view.element(7).is_none());
                assert!(view.key().identical(elements.get(keypos - 1).unwrap()));
                // Opened for some elements alone, which may need no unpacking.
                for last in 1..=6 {
                    let (key, value) = (object.key(), object.value());
                    // SAFETY: as encoded above, by an object that holds the counts.
                    let view = unsafe {
                        ObjectView::open_up_to(key, value, keypos, || last, &mut scratch)
                    };
                    assert_eq!((view.arity(), view.keypos()), (6, keypos));
                    for (i, element) in elements.iter().enumerate().take(last) {
                        assert!(view.element(i + 1).unwrap().identical(element));
                    }
                    let first: Vec<_> = view.iter().take(last).collect();
                    let same = first.iter().zip(elements.iter());
                    assert!(first.len() == last && same.into_iter().all(|(a, b)| a.identical(b)));
                    assert!(view.key().identical(elements.get(keypos - 1).unwrap()));
                }
            }
        }
    }
    drop(tuple);
    assert_eq!(blob::live_count(), before);
    let mut object = ObjectBuf::new();
    let mut encode =
        |t: Term, keypos| object::encode(t.as_ref(), keypos, KeyForm::Ordered, false, &mut object);
    assert_eq!(encode(term!(a), 1), Err(ObjectError::NotTuple));
    assert_eq!(encode(term!({}), 1), Err(ObjectError::TooShort));
    assert_eq!(encode(term!({ a }), 2), Err(ObjectError::TooShort));
    assert_eq!(encode(term!({ a }), 0), Err(ObjectError::TooShort));
}

/// Handles that were noted own nothing until `own` is called; then their counts go with what they
/// were put into, wherever that is dropped.
#[test]
fn handles_that_were_noted_are_given_back_once() {
    let _alone = alone();
    let living = || (blob::live_count(), blob::live_bytes());
    let before = living();
    let tuple = term!({k, (&[7u8; 200][..]), [(&[8u8; 300][..])]});
    let mut object = ObjectBuf::new();
    let form = KeyForm::Hash { legacy_zero: false };
    object::encode(tuple.as_ref(), 1, form, false, &mut object).unwrap();
    drop(tuple);
    // A copy, as an index keeps it.
    let kept = object.value().to_vec();
    // SAFETY: the value is an object's that is alive, and has its counts.
    unsafe { object::retain_value(&kept) };
    drop(object);
    let [mut forgotten, mut handles] = [blob::Handles::default(), blob::Handles::default()];
    object::note_handles(&kept, &mut forgotten);
    drop(forgotten);
    assert_eq!(living(), (before.0 + 2, before.1 + 500));
    object::note_handles(&kept, &mut handles);
    let mut counts = blob::Counts::new();
    // SAFETY: the counts are those of `kept`, which nobody reads any more.
    unsafe { handles.own(&mut counts) };
    assert_eq!((counts.len(), counts.bytes()), (2, 500));
    std::thread::spawn(move || drop(counts)).join().unwrap();
    assert_eq!(living(), before);
}

/// The hash of an object is that of what it is, however it is kept.
#[test]
fn objects_have_one_hash() {
    let _alone = alone();
    let hash = |t: &Term, keypos, form, compress| {
        let mut object = ObjectBuf::new();
        object::encode(t.as_ref(), keypos, form, compress, &mut object).unwrap();
        // SAFETY: the buffer has just encoded the value and holds its counts.
        unsafe { object::hash(object.value()) }
    };
    let form = KeyForm::Hash { legacy_zero: true };
    let row = |x: f64| {
        let x = Term::float(x).unwrap();
        term!({k, (x.clone()), (&[7u8; 200][..]), "abcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabc", #{(x) => 1, 2 => 3}})
    };
    let (a, b) = (row(1.5), row(1.5));
    for compress in [false, true] {
        assert_eq!(hash(&a, 1, form, false), hash(&b, 1, form, compress));
        assert_eq!(
            hash(&a, 1, form, false),
            hash(&b, 1, KeyForm::Ordered, compress)
        );
        assert_ne!(hash(&a, 1, form, false), hash(&row(2.5), 1, form, compress));
    }
    larder_term::set_legacy_zero(true);
    for compress in [false, true] {
        assert_eq!(
            hash(&row(0.0), 1, form, false),
            hash(&row(-0.0), 1, form, compress)
        );
        let (a, b) = (term!({0.0, a, -0.0}), term!({-0.0, a, 0.0}));
        assert_eq!(hash(&a, 1, form, compress), hash(&b, 1, form, compress));
    }
    larder_term::set_legacy_zero(false);
    assert_ne!(
        hash(&term!({k, 0.0}), 1, form, false),
        hash(&term!({k, -0.0}), 1, form, false)
    );
}

/// Terms that come back from their order keys, and terms that share theirs with others or would be
/// dear to find.
#[test]
fn keys_that_are_worked_out() {
    let _alone = alone();
    let ordered = |t: &Term| {
        let mut object = ObjectBuf::new();
        let row = Term::tuple([t]);
        object::encode(row.as_ref(), 1, KeyForm::Ordered, false, &mut object).unwrap();
        let mut scratch = vec![1, 2, 3];
        assert_eq!(object.view(1, &mut scratch).key().bytes(), t.bytes());
        object.value().to_vec()
    };
    let mut back: Vec<Term> = Vec::new();
    for shift in 0..80 {
        for beside in -2..=2 {
            let n = (num_bigint::BigInt::from(1) << shift) + beside;
            back.push(Term::build(|enc| enc.bigint(&n)).unwrap());
            back.push(Term::build(|enc| enc.bigint(&-n)).unwrap());
        }
    }
    back.extend([i64::MIN, i64::MAX].map(|n| Term::build(|enc| enc.int(n)).unwrap()));
    back.extend(
        [0.5, -0.5, 1e-300, -123_456.75, 4_503_599_627_370_495.5].map(|x| Term::float(x).unwrap()),
    );
    for bytes in [&b""[..], b"\0", b"\0\0\xFF\0", b"key", &[255; 64]] {
        back.push(Term::binary(bytes));
    }
    back.extend([Term::bits(&[0, 128], 9), Term::bits(&[255, 0, 32], 19)]);
    back.extend([term!({}), term!([]), term!({1, {"a", 2, []}, 1.5})]);
    for t in &back {
        assert_eq!(ordered(t), [1 << 4 | object::FROM_ORDER], "{t}");
    }
    let kept = [
        term!(1.0),
        term!(-0.0),
        term!(1e300),
        term!({1, 2.0}),
        term!(atom),
        term!([1]),
        term!(#{1 => 2}),
    ];
    for t in &kept {
        let value = ordered(t);
        assert_eq!(value[0], 1 << 4 | object::EXACT_KEY, "{t}");
        assert_eq!(&value[1..], t.bytes());
    }
}

#[test]
fn zeros_of_old_hosts() {
    let _alone = alone();
    let (zero, minus) = (
        term!({k, 0.0, #{1 => 0.0, 5.0 => a}}),
        term!({k, -0.0, #{1 => -0.0, 5.0 => a}}),
    );
    let key = |t: &Term, legacy_zero| {
        let mut object = ObjectBuf::new();
        let row = Term::tuple([t]);
        object::encode(
            row.as_ref(),
            1,
            KeyForm::Hash { legacy_zero },
            false,
            &mut object,
        )
        .unwrap();
        let mut scratch = Vec::new();
        assert!(object.view(1, &mut scratch).key().bytes() == t.bytes());
        object.key().to_vec()
    };
    assert_ne!(zero, minus);
    assert_ne!(key(&zero, false), key(&minus, false));
    assert_eq!(key(&zero, true), key(&minus, true));
    assert!(zero.as_ref().eq_term(minus.as_ref()));
    set_legacy_zero(true);
    let same = zero == minus && zero.cmp(&minus).is_eq();
    set_legacy_zero(false);
    assert!(same);
    assert!(minus < zero);
}

/// In all places of a term, and beside differences that decide.
#[test]
fn zeros_of_old_hosts_in_every_place() {
    let _alone = alone();
    let numbers = [0.0f64, -0.0, 1.0];
    let pairs = numbers.into_iter().flat_map(|x| numbers.map(|y| [x, y]));
    let mut all = Vec::new();
    for [x, y] in pairs {
        let (p, q) = (|| Term::float(x).unwrap(), || Term::float(y).unwrap());
        let long =
            |rest: [Term; 3]| Term::list((0..40).map(Term::from).chain(rest).collect::<Vec<_>>());
        let forms = [
            term!({(p()), (q())}),
            term!([(p()), (q())]),
            term!({(p()), #{1 => (q()), 5.0 => a}, (p())}),
            term!(#{(p()) => (q()), b => #{(q()) => #{(p()) => []}}}),
            term!([#{0 => a, (p()) => b, -1.5 => c}, (q()), #{}]),
            term!({#{#{(p()) => 1} => (q())}, (q())}),
            long([p(), term!(#{(q()) => (p())}), term!(a)]),
            long([term!(#{a => (q())}), p(), term!(b)]),
            long([term!(#{a => (q())}), p(), term!(c)]),
        ];
        let sizes = [x.abs(), y.abs()];
        all.extend(forms.into_iter().enumerate().map(|(i, t)| ((i, sizes), t)));
    }
    let same = |a: &Term, b: &Term| a.as_ref().identical(b.as_ref());
    let pairs = || all.iter().flat_map(|a| all.iter().map(move |b| (a, b)));
    set_legacy_zero(true);
    let wrong = pairs().find(|((i, a), (j, b))| same(a, b) != (i == j));
    set_legacy_zero(false);
    assert!(wrong.is_none(), "{wrong:?}");
    assert!(
        pairs().all(|((_, a), (_, b))| same(a, b) == (a.as_ref().bytes() == b.as_ref().bytes()))
    );
}

#[test]
fn nodes_in_the_order() {
    let node = |name: &str, creation| {
        Node::External(NodeName {
            name: Atom::new(name),
            creation,
        })
    };
    let sorted = [
        Term::pid(node("z@h", 9), 1, 0),
        Term::pid(node("a@h", 1), 2, 0),
        Term::pid(node("a@h", 2), 2, 0),
        Term::pid(node("b@h", 0), 2, 0),
        Term::pid(node("a@h", 0), 1, 1),
    ];
    assert!(sorted.windows(2).all(|w| w[0] < w[1]));
    let sorted = [
        Term::reference(node("a@h", 1), &[9, 9, 9]),
        Term::reference(node("a@h", 2), &[9, 1, 1]),
        Term::reference(node("a@h", 2), &[1, 1, 2]),
        Term::reference(node("a@h", 2), &[1, 1, 1, 1]),
        Term::reference(node("b@h", 0), &[1]),
    ];
    assert!(sorted.windows(2).all(|w| w[0] < w[1]));
    assert_eq!(sorted[4], Term::reference(node("b@h", 0), &[1, 0, 0, 0, 0]));
}

/// A term that lacks more children than can be counted is incomplete.
#[test]
fn countless_children_are_missing() {
    const HALF: usize = usize::MAX / 2 + 1;
    let builds: [fn(&mut Encoder<'_>); 6] = [
        |enc| {
            enc.begin_tuple(2);
            enc.begin_tuple(usize::MAX);
        },
        |enc| {
            enc.begin_list(3);
            enc.int(1);
            enc.begin_list(usize::MAX);
        },
        |enc| enc.begin_improper(usize::MAX),
        |enc| enc.begin_sorted_map(HALF),
        |enc| {
            let map = enc.begin_map(HALF);
            enc.end_map(map).unwrap();
        },
        |enc| {
            let map = enc.begin_map(1);
            enc.int(1);
            enc.begin_tuple(usize::MAX);
            enc.end_map(map).unwrap();
        },
    ];
    for (i, build) in builds.into_iter().enumerate() {
        assert_eq!(Term::build(build), Err(Incomplete), "{i}");
    }
}

/// What a function puts in the place of its encoder says nothing of the buffer.
#[test]
fn an_encoder_that_was_exchanged_is_incomplete() {
    fn exchange(enc: &mut Encoder<'_>) {
        enc.begin_tuple(2);
        enc.int(7);
        let mut other = Encoder::new(Box::leak(Box::default()), enc.mode());
        other.int(1);
        std::mem::swap(enc, &mut other);
    }
    assert_eq!(Term::build(exchange), Err(Incomplete));
    let mut object = ObjectBuf::new();
    for form in [KeyForm::Ordered, KeyForm::Hash { legacy_zero: false }] {
        let mut enc = ObjectEncoder::new(&mut object, 2, 1, form, false);
        enc.key(exchange);
        enc.element(|e| e.int(1));
        assert!(!enc.finish());
        let mut enc = ObjectEncoder::new(&mut object, 3, 1, form, false);
        enc.key(|e| e.int(1));
        enc.element(exchange);
        enc.element(|e| e.int(1));
        assert!(!enc.finish());
    }
}

/// A function that panics leaves no binary behind.
#[test]
fn what_was_pushed_before_a_panic_is_given_back() {
    fn panics(enc: &mut Encoder<'_>) {
        enc.begin_tuple(2);
        enc.binary(&[7; 500]);
        panic!("with a binary");
    }
    let _alone = alone();
    let before = blob::live_count();
    let built = std::panic::catch_unwind(|| Term::build(panics));
    assert!(built.is_err());
    let written = std::panic::catch_unwind(|| {
        let mut object = ObjectBuf::new();
        let mut enc = ObjectEncoder::new(&mut object, 2, 1, KeyForm::Ordered, false);
        enc.key(|e| e.int(1));
        enc.element(panics);
    });
    assert!(written.is_err());
    assert_eq!(blob::live_count(), before);
}

/// An object that is given up before its end leaves no binary behind, though it has all elements.
#[test]
fn what_an_unfinished_object_has_is_given_back() {
    let _alone = alone();
    let before = blob::live_count();
    let mut object = ObjectBuf::new();
    let mut enc = ObjectEncoder::new(&mut object, 2, 1, KeyForm::Ordered, false);
    enc.key(|e| e.int(1));
    enc.element(|e| e.binary(&[7; 500]));
    drop(enc);
    assert!(object.key().is_empty() && object.value().is_empty());
    assert_eq!(blob::live_count(), before);
}

/// An object that is finished in place stays in its buffer. Only that of two elements is a pair.
#[test]
fn pairs_that_are_finished_in_place() {
    for form in [KeyForm::Ordered, KeyForm::Hash { legacy_zero: false }] {
        for (arity, compress) in (1..=20).flat_map(|arity| [(arity, false), (arity, true)]) {
            let mut object = ObjectBuf::new();
            let mut enc = ObjectEncoder::new(&mut object, arity, 1, form, compress);
            enc.key(|e| e.int(17));
            (1..arity).for_each(|_| enc.element(|e| e.binary(&[b'a'; 100])));
            assert!(enc.finish_here());
            drop(enc);
            let value = object.value();
            let pair = object::beside_key(value).filter(|(arity, _)| *arity == 2);
            assert_eq!(
                object::beside_key_of_pair(value),
                pair.map(|(_, element)| element)
            );
            assert_eq!(pair.is_some(), arity == 2 && !compress);
        }
        // The exact key is beside the value: 1.0 is found as 1 is.
        let mut object = ObjectBuf::new();
        object::encode(
            term!({1.0, 2}).as_ref(),
            1,
            KeyForm::Ordered,
            false,
            &mut object,
        )
        .unwrap();
        assert_eq!(object::beside_key_of_pair(object.value()), None);
    }
    // An unfinished one leaves nothing.
    let mut object = ObjectBuf::new();
    let mut enc = ObjectEncoder::new(&mut object, 2, 1, KeyForm::Ordered, false);
    enc.key(|e| e.int(17));
    assert!(!enc.finish_here());
    drop(enc);
    assert!(object.value().is_empty() && object.key().is_empty());
}

#[test]
fn binaries_as_keys_lie_in_their_index_keys() {
    let zero_within = [&[7; 9][..], &[0; 3], &[7; 9]].concat();
    // The binary, and whether its bytes lie in an order key.
    let binaries = [
        (vec![], true),
        (vec![7; 9], true),
        (vec![0xFF; 4096], true),
        (vec![7; 4097], false),
        (vec![0], false),
        (zero_within, false),
    ];
    // The small integers are those whose terms are the tags of a binary in either form.
    let others = [
        term!(0x15),
        term!(0x7A),
        term!({ "a" }),
        term!([]),
        term!(1.0),
    ];
    for form in [KeyForm::Hash { legacy_zero: false }, KeyForm::Ordered] {
        let in_place = |key: &Term| {
            let (row, mut object) = (Term::tuple([key.clone()]), ObjectBuf::new());
            object::encode(row.as_ref(), 1, form, false, &mut object).unwrap();
            object::binary_key(object.key(), object.value()).map(<[u8]>::to_vec)
        };
        for (bytes, is_in_order_key) in &binaries {
            let lies = *is_in_order_key || form != KeyForm::Ordered;
            let expected = lies.then(|| bytes.clone());
            assert_eq!(in_place(&Term::binary(bytes)), expected, "{bytes:?}");
        }
        assert_eq!(in_place(&Term::bits(&[7, 0x80], 9)), None);
        others
            .iter()
            .for_each(|other| assert_eq!(in_place(other), None, "{other}"));
    }
}
