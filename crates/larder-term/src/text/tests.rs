//! Texts that read back, texts that don't, and their errors.

use super::{beginning, parse, print};
use crate::term::Term;

/// Texts that are printed as they are read.
const SAME: &[&str] = &[
    "0",
    "-1",
    "123456789012345678901234567890",
    "-9223372036854775809",
    "1.0",
    "-0.0",
    "1.5e300",
    "1.0e-10",
    "a",
    "'an atom'",
    "''",
    "'don\\'t'",
    "élan",
    "'Élan'",
    "'fun'",
    "[]",
    "{}",
    "#{}",
    "<<>>",
    "{a,{b,[c,[d]]}}",
    "[1,2|three]",
    "#{1 => 2,1.0 => 3,a => #{b => c}}",
    "\"text\\nwith \\\"quotes\\\"\"",
    "[104,0]",
    "<<\"text\">>",
    "<<\"grüß\"/utf8>>",
    "<<0,255>>",
    "<<1,5:3>>",
    "<0.85.0>",
    "#Port<0.6>",
    "#Ref<0.1.2.3>",
    "fun lists:map/2",
];

#[test]
fn texts_are_printed_as_they_are_read() {
    for text in SAME {
        let term = parse(text).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(&print(term.as_ref()), text);
    }
}

#[test]
fn a_beginning_is_that_of_the_text() {
    let long = [
        Term::binary(&[b'a'; 5000]),
        Term::binary("aé€😀".repeat(1000).as_bytes()),
        Term::binary(&[200; 5000]),
        Term::bits(&[7; 5000], 39_993),
        Term::list(vec![Term::int(97); 5000]),
        Term::list(vec![Term::int(7); 5000]),
        Term::tuple(vec![Term::binary(&[b'b'; 5000]); 50]),
    ];
    let short = SAME.iter().map(|text| parse(text).expect("a term"));
    for term in short.chain(long) {
        let text = print(term.as_ref());
        let chars = text.chars().count();
        for most in [0, 1, 2, 7, 80, 300, chars - 1, chars, chars + 1] {
            let cut: String = text.chars().take(most).collect();
            let rest = if most < chars { "…" } else { "" };
            assert_eq!(
                beginning(term.as_ref(), most),
                format!("{cut}{rest}"),
                "{most}"
            );
        }
    }
    let pairs = (0..5000i32).map(|n| (Term::int(n.into()), Term::int(7)));
    let map = Term::map(pairs).expect("different keys");
    let text = beginning(map.as_ref(), 80);
    assert!(text.starts_with("#{") && text.contains(" => 7,"), "{text}");
    assert_eq!(text.chars().count(), 81);
    let large = num_bigint::BigInt::from(1) << 80_000;
    let text = beginning(Term::bigint(&large).as_ref(), 80);
    assert_eq!(text, "an integer of 10001 bytes");
}

#[test]
fn other_ways_to_write_a_term() {
    for (text, plain) in [
        (" % a comment\n 7 .", "7"),
        ("16#fF", "255"),
        ("1_000_000", "1000000"),
        ("$a", "97"),
        ("$\\n", "10"),
        ("+3", "3"),
        ("- 3", "-3"),
        ("1.0E3", "1.0e3"),
        ("[a|[b|[c|[]]]]", "[a,b,c]"),
        ("[a|[b|c]]", "[a,b|c]"),
        ("\"\"", "[]"),
        ("'\\x{41}\\102\\x43'", "'ABC'"),
        ("<<\"ab\",1:1,0:7>>", "<<97,98,128>>"),
        ("<<-1,256:16,-1:4>>", "<<255,1,0,15:4>>"),
        ("<<1:0>>", "<<>>"),
        (
            "<<1208925819614629174706175:80>>",
            "<<255,255,255,255,255,255,255,255,255,255>>",
        ),
        ("#{b=>1,a=>2}", "#{a => 2,b => 1}"),
    ] {
        let term = parse(text).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(print(term.as_ref()), plain, "{text}");
    }
}

#[test]
fn bad_texts_say_where_and_why() {
    for (text, line, what) in [
        ("", 1, "expected a term, found the end of the text"),
        ("{1,\n 2", 2, "found the end of the text"),
        ("{1]", 1, "expected another closing bracket"),
        ("[|a]", 1, "expected a term"),
        ("[a|b,c]", 1, "expected ','"),
        ("#{a}", 1, "expected '=>'"),
        ("#{a=>1,a=>2}", 1, "two identical keys"),
        ("X", 1, "a variable is not a term"),
        ("'open", 1, "no closing '"),
        ("1 2", 1, "expected the end of the text"),
        ("1.0e999", 1, "beyond the range of floats"),
        ("37#1", 1, "base is 2 to 36"),
        ("<<\"ü€\">>", 1, "needs /utf8"),
        ("<<1:99999999999>>", 1, "at most 2^24 bits"),
        ("#Fun<a.1.2>", 1, "a fun cannot be read"),
        ("<7.1.2>", 1, "of this node"),
        ("{a,}", 1, "expected a term"),
        ("'\\x+1'", 1, "expected hexadecimal digits after \\x"),
        ("?", 1, "begins no term"),
    ] {
        let error = parse(text).expect_err(text);
        assert_eq!(error.line, line, "{text}: {error}");
        assert!(error.what.contains(what), "{text}: {error}");
    }
}

#[test]
fn atoms_that_are_too_long_are_an_error() {
    let error = parse(&"a".repeat(256)).expect_err("256 characters");
    assert!(error.what.contains("255 characters"), "{error}");
}

#[test]
fn a_million_levels_need_no_stack() {
    let depth = 1_000_000;
    let text = format!("{}x{}", "{".repeat(depth), "}".repeat(depth));
    let term: Term = parse(&text).expect("deep, but sound");
    assert_eq!(print(term.as_ref()), text);
}
