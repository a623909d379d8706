//! Keys with maps on a host that takes them for themselves. It is set for a whole process, so
//! these tests have one of their own.

use larder_matchspec::{set_exact_map_keys, KeyAccess, Plan, Program};
use larder_term::Term;

fn plan(spec: &str, access: KeyAccess) -> Plan {
    set_exact_map_keys(true);
    let spec: Term = spec.parse().unwrap();
    Program::compile(spec.as_ref()).unwrap().plan(1, access)
}

fn keys(keys: &[&str]) -> Plan {
    Plan::Keys(keys.iter().map(|key| key.parse().unwrap()).collect())
}

#[test]
fn a_key_without_variables_is_looked_up() {
    for access in [KeyAccess::Hash, KeyAccess::Ordered] {
        let spec = "[{{#{a=>1},'_'},[],[true]}]";
        assert_eq!(plan(spec, access), keys(&["#{a=>1}"]));
        let spec = "[{{{x,#{}},'$1'},[{'>','$1',1}],[true]}]";
        assert_eq!(plan(spec, access), keys(&["{x,#{}}"]));
    }
    let two = plan(
        "[{{#{},'_'},[],[true]},{{7,'_'},[],[true]}]",
        KeyAccess::Ordered,
    );
    assert_eq!(two, keys(&["#{}", "7"]));
}

#[test]
fn with_a_variable_anywhere_it_is_a_pattern() {
    for spec in [
        "[{{#{a=>'_'},'_'},[],[true]}]",
        "[{{{'$1',#{a=>1}},'_'},[],[true]}]",
        "[{{#{a=>1},'_'},[],[true]},{{'_',1},[],[true]}]",
    ] {
        assert_eq!(plan(spec, KeyAccess::Hash), Plan::AllKeys, "{spec}");
    }
}

#[test]
fn the_only_clause_names_the_key() {
    set_exact_map_keys(true);
    let bound = |spec: &str| {
        let spec: Term = spec.parse().unwrap();
        let program = Program::compile(spec.as_ref()).unwrap();
        program.bound_key(1).map(Term::from)
    };
    let key = bound("[{{{x,#{a=>[1]}},'$1'},[],['$1']}]");
    assert_eq!(key, Some("{x,#{a=>[1]}}".parse().unwrap()));
    assert_eq!(bound("[{{#{a=>'$2'},'$1'},[],['$1']}]"), None);
}
