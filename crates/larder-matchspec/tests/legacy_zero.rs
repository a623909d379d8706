//! Zeros in heads on a host that takes 0.0 and −0.0 for identical, as releases before OTP 27 do. It
//! is set for a whole process, so these tests have one of their own.

mod common;

use common::{program, run, term};

/// Whether a head matches an object.
fn matches(head: &str, object: &str) -> bool {
    larder_term::set_legacy_zero(true);
    let program = program(&format!("[{{{head},[],[true]}}]"));
    run(&program, &term(object)).is_some()
}

/// As `ets` of OTP 25 does, whatever else is in the constant.
#[test]
fn constants_tell_zeros_apart() {
    let long = format!("<<\"{}\">>", "x".repeat(100));
    for beside in ["a", "7", "<<21>>", "<<22>>", "300", long.as_str()] {
        for shape in ["[0.0,X]", "{0.0,X}", "{X,[{0.0}]}", "[X|0.0]"] {
            let constant = shape.replace('X', beside);
            let other = constant.replace("0.0", "-0.0");
            for head in [format!("{{{constant}}}"), format!("{{{{'_',{constant}}}}}")] {
                let object = |term: &str| head.replace(&constant, term).replace("'_'", "b");
                assert!(matches(&head, &object(&constant)), "{head}");
                assert!(!matches(&head, &object(&other)), "{head}");
            }
            // The tail of a list may be any constant.
            let head = format!("{{['$1'|{constant}]}}");
            assert!(matches(&head, &format!("{{[b|{constant}]}}")), "{head}");
            assert!(!matches(&head, &format!("{{[b|{other}]}}")), "{head}");
        }
    }
}

#[test]
fn variables_do_not() {
    assert!(matches("{'$1','$1'}", "{0.0,-0.0}"));
    assert!(matches("{'$1',['$1']}", "{0.0,[-0.0]}"));
    assert!(matches("{#{0.0 => 1}}", "{#{-0.0 => 1}}"));
}

/// A map in a body has one of the two, as in `ets`: the last one.
#[test]
fn a_map_has_one_of_both_as_a_key() {
    larder_term::set_legacy_zero(true);
    for keys in ["'$1' => 1, '$2' => 2", "0.0 => 1, {'-',0.0} => 2"] {
        let map = program(&format!("[{{{{'$1','$2'}},[],[#{{{keys}}}]}}]"));
        let found = run(&map, &term("{0.0,-0.0}")).unwrap();
        assert_eq!(found.to_string(), "#{-0.0 => 2}", "{keys}");
        let one = format!("[{{{{'$1','$2'}},[{{'==',{{map_size,#{{{keys}}}}},1}}],[true]}}]");
        assert!(run(&program(&one), &term("{0.0,-0.0}")).is_some(), "{keys}");
    }
}
