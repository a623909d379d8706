//! Terms: from the external format, from text, as keys, as objects.

use crate::Input;
use larder_term::etf::{self, EtfOptions};
use larder_term::object::{self, KeyForm, ObjectBuf};
use larder_term::{order_key, skip, Encoder, Mode, NodeName, Term, TermRef};

/// As for bytes from strangers.
const STRANGERS: EtfOptions = EtfOptions {
    safe: true,
    max_plain: 1 << 20,
    max_atoms: usize::MAX,
    max_bits: u64::MAX,
};

/// Any bytes as the external format.
pub fn etf(data: &[u8]) {
    let Ok((term, used)) = etf::decode_term(data, &NodeName::NONE, &STRANGERS) else {
        return;
    };
    assert!(used <= data.len());
    assert_eq!(skip(term.bytes()), term.bytes().len());
    let mut out = Vec::new();
    etf::encode(term.as_ref(), &NodeName::NONE, &mut out);
    let options = EtfOptions {
        max_plain: usize::MAX,
        ..STRANGERS
    };
    let (back, length) = etf::decode_term(&out, &NodeName::NONE, &options)
        .unwrap_or_else(|error| panic!("{error} in what {term} was encoded to"));
    assert_eq!(length, out.len());
    assert_eq!(back, term);
    assert!(term.as_ref().cmp_term(back.as_ref()).is_eq());
    assert_eq!(plain(term.as_ref()), plain(back.as_ref()));
    // Printing has no limits either.
    let _ = term.to_string();
}

/// A term's own bytes, without handles.
pub fn plain(term: TermRef<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    Encoder::new(&mut bytes, Mode::Inline).term(term);
    bytes
}

/// Terms of all kinds.
pub fn etf_seeds() -> Vec<Vec<u8>> {
    let mut seeds: Vec<Vec<u8>> = TEXTS
        .iter()
        .filter_map(|text| text.parse::<Term>().ok())
        .map(|term| {
            let mut out = Vec::new();
            etf::encode(term.as_ref(), &NodeName::NONE, &mut out);
            out
        })
        .collect();
    // Older forms: a float as text, a small big, Latin-1 atoms, a string, a compressed term that is
    // none.
    seeds.push(b"\x83\x63\x31\x2e\x35\x30\x30\x30\x30\x30\x30\x30\x30\x30\x30\x30\x30\x30\x30\x30\x30\x30\x30\x30\x65\x2b\x30\x30\0\0\0\0\0".to_vec());
    seeds.push(b"\x83\x6e\x09\x01\x01\x02\x03\x04\x05\x06\x07\x08\x09".to_vec());
    seeds.push(b"\x83\x68\x03\x64\0\x02ok\x73\x02ok\x6b\0\x03abc".to_vec());
    seeds.push(b"\x83\x50\0\0\0\x05\x78\x9c\x6b\x4e\x06\0\x01\0\x01".to_vec());
    seeds
}

const TEXTS: &[&str] = &[
    "1",
    "-129",
    "123456789012345678901234567890",
    "-0.0",
    "1.5e-300",
    "ok",
    "'$1'",
    "[]",
    "[1,2|3]",
    "\"text\"",
    "{ok,{1,[2.0,<<\"b\">>]}}",
    "#{a => 1,{b} => #{}}",
    "<<1,2,3:5>>",
    "<<\"a longer binary than the sixty-four bytes that are kept inline, so it is a blob\">>",
    "fun lists:map/2",
];

/// Any text as a term.
pub fn text(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    // Atoms are for ever: new ones of some length are not worth it.
    if text.len() > 4096 {
        return;
    }
    let Ok(term) = text.parse::<Term>() else {
        return;
    };
    let printed = term.to_string();
    let back: Term = printed.parse().unwrap_or_else(|error| {
        panic!("{text:?} prints as {printed:?}, which does not parse: {error:?}")
    });
    assert_eq!(back, term, "{text:?} prints as {printed:?}");
}

/// Texts of all kinds.
pub fn text_seeds() -> Vec<Vec<u8>> {
    TEXTS.iter().map(|text| text.as_bytes().to_vec()).collect()
}

/// Two terms in order.
pub fn order(data: &[u8]) {
    let mut input = Input::new(data);
    let (a, b) = (input.term(4), input.term(4));
    let key = |term: &Term| {
        let mut key = Vec::new();
        order_key::encode(term.as_ref(), &mut key);
        key
    };
    let order = a.as_ref().cmp_term(b.as_ref());
    assert_eq!(key(&a).cmp(&key(&b)), order, "{a} and {b}");
    assert_eq!(b.as_ref().cmp_term(a.as_ref()), order.reverse());
    assert_eq!(a.as_ref().eq_term(b.as_ref()), order.is_eq());
    assert_eq!(a == b, a.as_ref().cmp_exact(b.as_ref()).is_eq());
    if a == b {
        assert!(order.is_eq());
    }
}

/// A tuple as an object, in every form.
pub fn object(data: &[u8]) {
    let mut input = Input::new(data);
    let arity = 1 + input.below(5);
    let elements = input.terms(arity, 3);
    let tuple = Term::tuple(elements.clone());
    for keypos in 1..=arity {
        for form in [KeyForm::Hash { legacy_zero: false }, KeyForm::Ordered] {
            for compress in [false, true] {
                let mut stored = ObjectBuf::new();
                object::encode(tuple.as_ref(), keypos, form, compress, &mut stored)
                    .unwrap_or_else(|error| panic!("{tuple}: {error}"));
                let mut scratch = Vec::new();
                let view = stored.view(keypos, &mut scratch);
                assert_eq!(view.arity(), arity);
                for (i, element) in elements.iter().enumerate() {
                    let found = view
                        .element(i + 1)
                        .unwrap_or_else(|| panic!("{tuple}: {i}"));
                    assert!(found.identical(element.as_ref()), "{tuple}: {found} at {i}");
                }
                assert!(view.identical_tuple(tuple.as_ref()), "{tuple}");
            }
        }
    }
}
