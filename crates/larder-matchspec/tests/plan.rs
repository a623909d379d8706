//! Plans: what limits a scan. That no plan is too narrow is held on random specifications in
//! `differential.rs`; here, that they are as narrow as promised.

mod common;

use common::{program, term};
use larder_matchspec::{KeyAccess, Plan};
use std::ops::Bound;

/// The keys, of those listed, that the plan of a head and guards leads to in an ordered table whose
/// key comes first.
fn within(head: &str, guards: &str, keys: &[&str]) -> String {
    let plan = program(&format!("[{{{head},[{guards}],[true]}}]")).plan(1, KeyAccess::Ordered);
    let found: Vec<&str> = keys
        .iter()
        .copied()
        .filter(|key| covered(&plan, key))
        .collect();
    found.join(" ")
}

fn covered(plan: &Plan, key: &str) -> bool {
    plan.covers(term(key).as_ref(), KeyAccess::Ordered)
}

fn ordered(spec: &str) -> Plan {
    program(spec).plan(1, KeyAccess::Ordered)
}

fn hashed(spec: &str) -> Plan {
    program(spec).plan(1, KeyAccess::Hash)
}

/// The keys of a plan, in order, each once.
fn keys(plan: Plan) -> String {
    match plan {
        Plan::Keys(mut keys) => {
            keys.sort_by(|one, other| one.as_ref().cmp_exact(other.as_ref()));
            keys.dedup();
            let texts: Vec<String> = keys.iter().map(ToString::to_string).collect();
            texts.join(" ")
        }
        other => format!("{other:?}"),
    }
}

const NUMBERS: &[&str] = &[
    "-1",
    "0",
    "0.5",
    "1",
    "1.0",
    "2",
    "2.5",
    "3",
    "4",
    "100000000000000000000",
    "a",
    "{}",
    "[]",
    "<<>>",
];

#[test]
fn guards_on_the_key_limit_the_range() {
    for (guards, found) in [
        ("{'>=','$1',1},{'<','$1',3}", "1 1.0 2 2.5"),
        ("{'>','$1',1},{'=<','$1',3}", "2 2.5 3"),
        ("{'=<',1,'$1'},{'>',3,'$1'}", "1 1.0 2 2.5"),
        ("{'and',{'>','$1',1},{'<','$1',3}}", "2 2.5"),
        (
            "{'andalso',{'>','$1',1},{'is_integer','$1'},{'<','$1',{'+',1,2}}}",
            "2 2.5",
        ),
        ("{'==','$1',1.0}", "1 1.0"),
        ("{'=:=','$1',1.0}", "1 1.0"),
        (
            "{'>=',{element,1,'$_'},3},{'<',{element,1,'$_'},a}",
            "3 4 100000000000000000000",
        ),
        ("{'>','$1',3},{'<','$1',3}", ""),
        ("{'==','$1',1},{'==','$1',2}", ""),
        ("{'>=','$1',<<>>}", "<<>>"),
        ("{'>','$1',1},false", ""),
        ("{'>','$1',{const,{}}}", "[] <<>>"),
        (
            "{'/=','$1',1}",
            "-1 0 0.5 1 1.0 2 2.5 3 4 100000000000000000000 a {} [] <<>>",
        ),
    ] {
        assert_eq!(within("{'$1','_'}", guards, NUMBERS), found, "{guards}");
    }
}

#[test]
fn a_head_that_is_one_variable_has_a_key_too() {
    assert_eq!(
        within(
            "'$1'",
            "{'>=',{element,1,'$1'},a},{'<',{element,1,'$_'},[]}",
            NUMBERS
        ),
        "a {}"
    );
    assert_eq!(
        within("'_'", "{'>=',{element,1,'$_'},a}", NUMBERS),
        "a {} [] <<>>"
    );
    assert_eq!(
        ordered("[{'_',[{'>=',{element,2,'$_'},a}],[true]}]"),
        Plan::AllKeys
    );
}

const TUPLES: &[&str] = &[
    "{a}", "{a,0}", "{a,1}", "{a,1.0}", "{a,1,x}", "{a,2,x}", "{a,2,y}", "{a,3,x}", "{a,a,x}",
    "{b,1,x}", "{b,2,x}", "[a]", "7",
];

#[test]
fn what_is_known_of_a_tuple_key_limits_the_range() {
    for (head, guards, found) in [
        (
            "{{a,'_','_'},'_'}",
            "",
            "{a,1,x} {a,2,x} {a,2,y} {a,3,x} {a,a,x}",
        ),
        ("{{a,2,'_'},'_'}", "", "{a,2,x} {a,2,y}"),
        (
            "{{a,'$1','_'},'_'}",
            "{'>=','$1',2},{'<','$1',a}",
            "{a,2,x} {a,2,y} {a,3,x}",
        ),
        (
            "{{a,'$1','_'},'_'}",
            "{'>','$1',1},{'=<','$1',2}",
            "{a,2,x} {a,2,y}",
        ),
        (
            "{{a,'$1','$2'},'_'}",
            "{'==','$1',2},{'>','$2',x}",
            "{a,2,y}",
        ),
        (
            "{{'$1','$2','_'},'_'}",
            "{'=:=','$1',b},{'<','$2',2}",
            "{b,1,x}",
        ),
        ("{{'$1','_','_'},'_'}", "{'>','$1',a}", "{b,1,x} {b,2,x}"),
        (
            "{{'$1','$2','$3'},'_'}",
            "{'>',{{'$1','$2','$3'}},{{a,2,x}}},{'<','$1',b}",
            "{a,2,y} {a,3,x} {a,a,x}",
        ),
        (
            "{{a,'_'},'_'}",
            "{'>',{element,1,'$_'},{{a,0}}}",
            "{a,1} {a,1.0}",
        ),
        (
            "{{a,'_','$1'},'_'}",
            "{'==','$1',y}",
            "{a,1,x} {a,2,x} {a,2,y} {a,3,x} {a,a,x}",
        ),
        ("{{a,1},'_'}", "", "{a,1} {a,1.0}"),
        ("{{a,1},'_'}", "{'<',{element,1,'$_'},{{a,1}}}", ""),
    ] {
        assert_eq!(within(head, guards, TUPLES), found, "{head} {guards}");
    }
}

const LISTS: &[&str] = &[
    "[]",
    "[a]",
    "[a|b]",
    "[a,b]",
    "[a,b,c]",
    "[a,b|c]",
    "[a,c]",
    "[b]",
    "[{a,1},x]",
    "[{a,2},x]",
    "[{b,1},x]",
    "\"ab\"",
];

#[test]
fn what_is_known_of_a_list_key_limits_the_range() {
    for (head, guards, found) in [
        ("{[a|'_'],'_'}", "", "[a] [a|b] [a,b] [a,b,c] [a,b|c] [a,c]"),
        ("{[a,b|'_'],'_'}", "", "[a,b] [a,b,c] [a,b|c]"),
        ("{[a|'$1'],'_'}", "{'>=','$1',[c]}", "[a,c]"),
        ("{[a,'$1'],'_'}", "{'<','$1',c}", "[a,b] [a,b,c] [a,b|c]"),
        ("{['$1'|'_'],'_'}", "{'==','$1',b}", "[b]"),
        ("{[{a,'_'}|'_'],'_'}", "", "[{a,1},x] [{a,2},x]"),
        ("{[{a,'$1'}|'_'],'_'}", "{'>','$1',1}", "[{a,2},x]"),
        ("{['$1'|'_'],'_'}", "{'>=','$1',$a},{'<','$1',a}", "\"ab\""),
    ] {
        assert_eq!(within(head, guards, LISTS), found, "{head} {guards}");
    }
}

#[test]
fn several_clauses_share_a_range() {
    let plan = ordered("[{{'$1','_'},[{'>','$1',1},{'<','$1',3}],[true]},{{7,'_'},[],[true]},{{'$1','_'},[false],[true]}]");
    let found: Vec<&str> = ["1", "2", "3", "7", "8"]
        .into_iter()
        .filter(|key| covered(&plan, key))
        .collect();
    assert_eq!(found, ["2", "3", "7"]);
    assert_eq!(
        ordered("[{{'$1','_'},[{'>','$1',1}],[true]},{'_',[],[true]}]"),
        Plan::AllKeys
    );
    assert_eq!(
        ordered("[{{'$1','_'},[{'>','$1',1}],[true]},{{'$1','_'},[{'<','$1',5}],[true]}]"),
        Plan::AllKeys
    );
}

#[test]
fn bound_keys_are_looked_up() {
    assert_eq!(
        keys(ordered(
            "[{{3,'_'},[],[true]},{{1,'_'},[],[true]},{{1.0,'_'},[],[true]}]"
        )),
        "1 3 1.0"
    );
    assert_eq!(
        keys(hashed(
            "[{{3,'_'},[],[true]},{{1,'_'},[],[true]},{{1.0,'_'},[],[true]}]"
        )),
        "1 3 1.0"
    );
    assert_eq!(
        keys(hashed("[{{'$1','_'},[{'=:=','$1',{{a,[b]}}}],[true]}]")),
        "{a,[b]}"
    );
    assert_eq!(keys(hashed("[{{'$1','_'},[{'==',a,'$1'}],[true]}]")), "a");
    assert_eq!(
        keys(hashed("[{{'$1','_'},[{'==','$1',1}],[true]}]")),
        "1 1.0"
    );
    assert_eq!(
        keys(hashed(
            "[{{'$1','_'},[{'==','$1',1},{is_atom,b},{'<','$1',2}],[true]}]"
        )),
        "1 1.0"
    );
    assert_eq!(
        hashed("[{{'$1','_'},[{'=:=','$1',1},{'>','$1',2}],[true]}]"),
        Plan::Nothing
    );
    assert_eq!(
        hashed("[{{'$1','_'},[{'>','$1',1}],[true]}]"),
        Plan::AllKeys
    );
    assert_eq!(hashed("[{{{'_'},'_'},[],[true]}]"), Plan::AllKeys);
}

#[test]
fn a_disjunction_of_equalities_is_looked_up() {
    for (guards, in_order, by_hash) in [
        ("{'orelse',{'=:=','$1',b},{'=:=','$1',a}}", "a b", "a b"),
        ("{'or',{'==',a,'$1'},{'=:=','$1',b},{'=:=','$1',a}}", "a b", "a b"),
        // Nested, and with more to be true beside.
        (
            "{'orelse',{'=:=','$1',1},{'or',{'andalso',{'is_atom','$2'},{'=:=','$1',2}},{'==','$1',a}}}",
            "1 2 a",
            "1 2 a",
        ),
        ("{'>','$1',1},{'orelse',{'=:=','$1',1},{'=:=','$1',2}}", "2", "2"),
        ("{'orelse',{'=:=','$1',1},{'=:=','$1',2}},{'=:=','$1',3}", "3", "3"),
        // In hash order an integer and the float that it equals are two keys.
        ("{'orelse',{'==','$1',1},{'==','$1',a}}", "1 a", "1 1.0 a"),
        // The first choice that is one between keys counts.
        (
            "{'orelse',{'=:=','$2',1},{'=:=','$2',2}},{'orelse',{'=:=','$1',a},{'=:=','$1',b}}",
            "a b",
            "a b",
        ),
        ("{'orelse',{'=:=','$1',a},{'=:=','$2',b}}", "AllKeys", "AllKeys"),
        ("{'orelse',{'=:=','$1',a},{'<','$1',b}}", "AllKeys", "AllKeys"),
        ("{'orelse',{'=:=','$1',a},'$2'}", "AllKeys", "AllKeys"),
        ("{'not',{'orelse',{'=:=','$1',a},{'=:=','$1',b}}}", "AllKeys", "AllKeys"),
    ] {
        let spec = format!("[{{{{'$1','$2'}},[{guards}],[true]}}]");
        assert_eq!(keys(ordered(&spec)), in_order, "{guards}");
        // In hash order keys come in no order.
        let hashed = keys(hashed(&spec));
        let mut found: Vec<&str> = hashed.split(' ').collect();
        found.sort_unstable();
        assert_eq!(found.join(" "), by_hash, "{guards}");
    }
}

#[test]
fn an_expression_is_known_again() {
    let by = |expression: &str, spec: &str| {
        let other = program(&format!(
            "[{{'$1',[{{'=:=',{expression},{expression}}}],[{expression}]}}]"
        ));
        keys(program(spec).plan_of_expression(&other, KeyAccess::Ordered))
    };
    let zip = "{map_get,zip,{element,3,'$_'}}";
    for (spec, found) in [
        ("[{'_',[{'==',{map_get,zip,{element,3,'$_'}},7}],[true]}]", "7"),
        ("[{{'_','_','$1'},[{'=:=',7,{map_get,zip,'$1'}}],[true]}]", "7"),
        ("[{'$1',[{'=:=',{map_get,zip,{element,3,'$1'}},7}],[true]}]", "7"),
        (
            "[{{'_','_','$1'},[{'orelse',{'=:=',{map_get,zip,'$1'},7},{'=:=',{map_get,zip,'$1'},8}}],[true]}]",
            "7 8",
        ),
        (
            "[{{'_','_','$1'},[{'==',{map_get,zip,'$1'},7}],[true]},{'_',[{'==',{map_get,zip,{element,3,'$_'}},9}],[1]}]",
            "7 9",
        ),
        // Another element, another key of the map, another clause that says nothing.
        ("[{{'_','$1','_'},[{'==',{map_get,zip,'$1'},7}],[true]}]", "AllKeys"),
        ("[{{'_','_','$1'},[{'==',{map_get,zap,'$1'},7}],[true]}]", "AllKeys"),
        ("[{{'_','_','$1'},[{'==','$1',7}],[true]}]", "AllKeys"),
        ("[{{'_','_','$1'},[{'==',{map_get,zip,'$1'},7}],[true]},{'_',[],[1]}]", "AllKeys"),
        ("[{{'_','_',#{zip => 7}},[],[true]}]", "AllKeys"),
        ("[{x,[{'==',{map_get,zip,{element,3,'$_'}},7}],[true]}]", "Nothing"),
    ] {
        assert_eq!(by(zip, spec), found, "{spec}");
    }
    let sum = "{'+',{element,1,'$_'},{'*',2,{element,2,'$_'}}}";
    let spec = |guard: &str| format!("[{{{{'$1','$2'}},[{guard}],[true]}}]");
    for (guard, found) in [
        ("{'==',{'+','$1',{'*',2,'$2'}},7}", "7"),
        ("{'==',{'+','$1',{'*',3,'$2'}},7}", "AllKeys"),
        ("{'==',{'+','$2',{'*',2,'$1'}},7}", "AllKeys"),
        ("{'==',{'+','$1','$2'},7}", "AllKeys"),
        ("{'==',{'+',{'*',2,'$2'},'$1'},7}", "AllKeys"),
    ] {
        assert_eq!(by(sum, &spec(guard)), found, "{guard}");
    }
    let ranged = program(&spec("{'<',{'+','$1',{'*',2,'$2'}},7}"));
    let other = program(&format!("[{{'$1',[{{'=:=',{sum},{sum}}}],[{sum}]}}]"));
    let plan = ranged.plan_of_expression(&other, KeyAccess::Ordered);
    assert!(covered(&plan, "6") && !covered(&plan, "7"), "{plan:?}");
}

#[test]
fn a_map_in_a_key_is_no_bound_key() {
    assert_eq!(hashed("[{{#{a=>1},'_'},[],[true]}]"), Plan::AllKeys);
    assert_eq!(ordered("[{{#{},'_'},[],[true]}]"), Plan::AllKeys);
    let plan = ordered("[{{{a,#{x=>1}},'_'},[],[true]}]");
    assert!(covered(&plan, "{a,#{x=>1,y=>2}}") && !covered(&plan, "{b,#{x=>1}}"));
}

#[test]
fn heads_that_no_object_fits_look_nowhere() {
    for head in ["{a}", "a", "[]", "#{}", "{}"] {
        assert_eq!(
            program(&format!("[{{{head},[],[true]}}]")).plan(2, KeyAccess::Ordered),
            Plan::Nothing,
            "{head}"
        );
    }
}

#[test]
fn the_position_of_the_key_counts() {
    let program = program("[{{'_',{a,'$1'}},[{'>','$1',1}],[true]}]");
    assert!(matches!(
        program.plan(2, KeyAccess::Ordered),
        Plan::Range {
            low: Bound::Included(_),
            high: Bound::Excluded(_)
        }
    ));
    assert_eq!(program.plan(1, KeyAccess::Ordered), Plan::AllKeys);
}

#[test]
fn identifiers_bound_nothing_by_order() {
    assert_eq!(
        ordered("[{{'$1','_'},[{'<','$1',<0.5.0>}],[true]}]"),
        Plan::AllKeys
    );
    assert_eq!(
        keys(ordered("[{{'$1','_'},[{'==','$1',<0.5.0>}],[true]}]")),
        "<0.5.0>"
    );
}
