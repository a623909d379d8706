//! Promises of match specifications, one by one. The answers are those of `ets`, asked; the same
//! promises are held against Erlang itself, on random specifications, in `differential.rs`.

mod common;

use common::{fault, program, run, term};
use larder_matchspec::{compile_pattern, Fault, PatternResult};
use larder_term::{Atom, Term};

/// The value of a body expression on `{k,1,[2],#{a=>1}}`, whose elements after the first are $1, $2
/// and $3.
fn body(expression: &str) -> String {
    let spec = format!("[{{{{k,'$1','$2','$3'}},[],[{expression}]}}]");
    run(&program(&spec), &term("{k,1,[2],#{a=>1}}"))
        .expect("matches")
        .to_string()
}

/// Whether a guard lets the same object through.
fn guard(guards: &str) -> bool {
    let spec = format!("[{{{{k,'$1','$2','$3'}},{guards},[ok]}}]");
    run(&program(&spec), &term("{k,1,[2],#{a=>1}}")).is_some()
}

/// The variables that a head binds on an object.
fn bound(object: &str, head: &str) -> Option<String> {
    run(&program(&format!("[{{{head},[],['$$']}}]")), &term(object)).map(|found| found.to_string())
}

fn body_fault(expression: &str) -> Fault {
    fault(&format!("[{{{{k,'$1'}},[],[{expression}]}}]")).what
}

#[test]
fn bodies_build_what_they_say() {
    for (expression, value) in [
        ("'_'", "'_'"),
        ("'$$'", "[1,[2],#{a => 1}]"),
        ("'$_'", "{k,1,[2],#{a => 1}}"),
        ("{{}}", "{}"),
        ("{{1}}", "{1}"),
        ("{{'$1',{{'$1'}}}}", "{1,{1}}"),
        ("[]", "[]"),
        ("[1|'$1']", "[1|1]"),
        ("[1|'$2']", "[1,2]"),
        ("[1|'$$']", "[1,1,[2],#{a => 1}]"),
        ("[1|{{'$1'}}]", "[1|{1}]"),
        ("[{'+','$1',1},{{a,{'*','$1',5}}}|{tl,'$2'}]", "[2,{a,5}]"),
        ("#{'$1'=>'$1'}", "#{1 => 1}"),
        ("#{a=>{'+','$1',1},b=>[x]}", "#{a => 2,b => [x]}"),
        ("#{'$1'=>x,1=>y}", "#{1 => x}"),
        ("#{{'+',0,'$1'}=>y,{'+','$1',0}=>x}", "#{1 => x}"),
        ("{const,{'$1','$9'}}", "{'$1','$9'}"),
        ("{{const,2}}", "{const,2}"),
        ("{{'$_'}}", "{{k,1,[2],#{a => 1}}}"),
        ("'$01'", "'$01'"),
    ] {
        assert_eq!(body(expression), value, "{expression}");
    }
}

/// Bodies of variables within elements, which the head binds without the machine, or with it: where
/// the steps are not plain, there is a guard, or there are many variables.
#[test]
fn parts_of_elements_are_results() {
    let row = "{{g,{h,7},b},x,{[1,2],#{a=>b}}}";
    for (head, guards, body, value) in [
        ("{{g,'$1','_'},'_','_'}", "[]", "'$1'", Some("{h,7}")),
        (
            "{{g,{h,'$2'},'$1'},'_','_'}",
            "[]",
            "{{'$1','$2'}}",
            Some("{b,7}"),
        ),
        (
            "{{g,{h,'$2'},'$1'},'$3','_'}",
            "[]",
            "'$$'",
            Some("[b,7,x]"),
        ),
        (
            "{{g,{h,'$1'},'_'},'$2','_'}",
            "[]",
            "['$2','$1'|z]",
            Some("[x,7|z]"),
        ),
        (
            "{{g,{h,'$1'},'_'},'$2','_'}",
            "[]",
            "['$2','$1']",
            Some("[x,7]"),
        ),
        ("{{g,{i,'$1'},'_'},'_','_'}", "[]", "'$1'", None),
        ("{{g,'$1'},'_','_'}", "[]", "'$1'", None),
        (
            "{{'_','_','$1'},'_',{'$2','_'}}",
            "[]",
            "{{'$2','$1'}}",
            Some("{[1,2],b}"),
        ),
        (
            "{{'_','_','$1'},'_',{'$2','_'}}",
            "[{'==','$1',b}]",
            "'$2'",
            Some("[1,2]"),
        ),
        (
            "{{'_','_','$1'},'_',{'$2','_'}}",
            "[{'==','$1',c}]",
            "'$2'",
            None,
        ),
        (
            "{{'_','_','$1'},'_',{['$2'|'_'],'_'}}",
            "[]",
            "['$1','$2']",
            Some("[b,1]"),
        ),
        ("{{'_',{'_','$1'},'_'},'$1','_'}", "[]", "'$1'", None),
        (
            "{{'$1',{'$2','$3'},'$4'},'$5',{'$6','$7'}}",
            "[]",
            "'$$'",
            Some("[g,h,7,b,x,[1,2],#{a => b}]"),
        ),
        (
            "{{'$1',{'$2','$3'},'$4'},'$5',{['$6','$7'],#{a=>'$8'}}}",
            "[]",
            "'$$'",
            Some("[g,h,7,b,x,1,2,b]"),
        ),
    ] {
        let spec = format!("[{{{head},{guards},[{body}]}}]");
        let found = run(&program(&spec), &term(row)).map(|found| found.to_string());
        assert_eq!(found.as_deref(), value, "{spec}");
        // A clause before it that binds other variables, and fails at its last step.
        let two = format!(
            "[{{{{{{'$3','$2','$1'}},x,{{'$4',c}}}},[],['$3']}},{}",
            &spec[1..]
        );
        let found = run(&program(&two), &term(row)).map(|found| found.to_string());
        assert_eq!(found.as_deref(), value, "{two}");
    }
}

#[test]
fn failures_in_bodies_are_exit_where_they_happen() {
    for (expression, value) in [
        ("{'+',a,1}", "'EXIT'"),
        ("{{x,{'+',a,1}}}", "{x,'EXIT'}"),
        ("[1|{'+',a,1}]", "[1|'EXIT']"),
        ("{is_atom,{'+',a,1}}", "true"),
        ("{'and',true,1}", "'EXIT'"),
        ("{'and',false,1}", "'EXIT'"),
        ("{'or',1,true}", "'EXIT'"),
        ("{'andalso',7,true}", "'EXIT'"),
        ("{'andalso',true,7}", "7"),
        ("{'andalso',true,false,7}", "false"),
        ("{'orelse',7}", "7"),
        ("{'orelse',true,{'+',a,1}}", "true"),
        ("{'not',1}", "'EXIT'"),
        ("{is_record,1,{{1}},2}", "'EXIT'"),
        ("{is_record,1,k,2}", "false"),
    ] {
        assert_eq!(body(expression), value, "{expression}");
    }
}

#[test]
fn parts_of_terms_that_were_built_are_values_like_others() {
    for (expression, value) in [
        (
            "{'or',{element,1,{{{is_integer,a},'$1'}}},{is_atom,b}}",
            "true",
        ),
        ("{'not',{hd,[{is_atom,a},'$1']}}", "false"),
        ("{element,{hd,['$1','$2']},{{'$1','$2'}}}", "1"),
        ("{element,{map_get,k,#{k=>'$1'}},{{'$2','$1'}}}", "[2]"),
        ("{'+',{hd,{tl,'$$'}},1}", "'EXIT'"),
        ("{'+',{hd,'$$'},1}", "2"),
        ("{'xor',{tl,[1|{is_atom,'$1'}]},true}", "true"),
        ("{is_boolean,{hd,[{is_atom,'$1'}]}}", "true"),
    ] {
        assert_eq!(body(expression), value, "{expression}");
    }
}

#[test]
fn keys_are_found_in_maps_of_every_size() {
    let large: Vec<String> = (0..40).map(|n| format!("{n}=>{}", n + 1)).collect();
    let large = format!(
        "{{k,#{{a=>true,b=>2,<<\"long binary\">>=>3,{}}}}}",
        large.join(",")
    );
    let small = "{k,#{a=>true,b=>2,7=>8,<<\"long binary\">>=>3}}";
    for object in [small, large.as_str()] {
        for (guard, passes) in [
            ("{map_get,a,'$1'}", true),
            ("{'=:=',{map_get,b,'$1'},2}", true),
            ("{'=:=',{map_get,b,'$1'},3}", false),
            ("{'=:=',{map_get,7,'$1'},8}", true),
            ("{'=:=',{map_get,{const,<<\"long binary\">>},'$1'},3}", true),
            ("{map_get,c,'$1'}", false),
            ("{is_map_key,b,'$1'}", true),
            ("{is_map_key,c,'$1'}", false),
            ("{'not',{is_map_key,c,'$1'}}", true),
            ("{is_map_key,7.0,'$1'}", false),
            ("{is_map_key,b,{element,1,'$_'}}", false),
        ] {
            let spec = format!("[{{{{'_','$1'}},[{guard}],[ok]}}]");
            let found = run(&program(&spec), &term(object));
            assert_eq!(found.is_some(), passes, "{guard} {object}");
        }
    }
}

#[test]
fn parts_of_elements_are_compared_with_constants() {
    for (guard, passes) in [
        ("{'=:=','$1',7}", true),
        ("{'=:=','$1',7.0}", false),
        ("{'==','$1',7.0}", true),
        ("{'<','$1',8}", true),
        ("{'<',8,'$1'}", false),
        ("{'=:=','$2',x}", true),
        ("{'=/=','$2',x}", false),
        ("{'>','$2',7}", true),
        ("{'=:=','$3',<<\"ab\">>}", true),
        ("{'<','$3',<<\"b\">>}", true),
        ("{'=:=','$4',{{1,[2]}}}", true),
        ("{'=:=','$4',{{1,[2.0]}}}", false),
        ("{'==','$4',{{1,[2.0]}}}", true),
    ] {
        let spec = format!("[{{{{k,{{'$1','$2','$3','$4'}}}},[{guard}],[ok]}}]");
        let found = run(&program(&spec), &term("{k,{7,x,<<\"ab\">>,{1,[2]}}}"));
        assert_eq!(found.is_some(), passes, "{guard}");
    }
}

#[test]
fn functions_that_newer_releases_added_are_there() {
    for (expression, value) in [
        ("{floor,-2.5}", "-3"),
        ("{ceil,-2.5}", "-2"),
        ("{max,1,1.0}", "1"),
        ("{min,a,'$1'}", "1"),
        ("{tuple_size,'$_'}", "4"),
        ("{tuple_size,'$1'}", "'EXIT'"),
        ("{is_boolean,{is_atom,1}}", "true"),
        ("{is_boolean,'$1'}", "false"),
        ("{is_bitstring,<<1:3>>}", "true"),
        ("{is_function,'$1',2}", "false"),
        ("{is_function,'$1',-1}", "'EXIT'"),
    ] {
        assert_eq!(body(expression), value, "{expression}");
    }
}

#[test]
fn heads_bind_and_refuse() {
    for (object, head, found) in [
        (
            "{{1,#{a=>b},[c]},{2,[d,e|f]}}",
            "{{'$1','_','_'},{'$2',['_'|'_']}}",
            Some("[1,2]"),
        ),
        ("{{1,2}}", "{{'$1','_','_'}}", None),
        (
            "{[1,2,3],[4|5]}",
            "{['$1','_'|'_'],['$2'|'_']}",
            Some("[1,4]"),
        ),
        ("{[1,2,3],[4|5]}", "{['$1','_'|'_'],['$2','_'|'_']}", None),
        (
            "{#{a=>1,b=>2},[x,#{a=>3,b=>4}|y]}",
            "{#{a=>'$1'},['_',#{a=>'$2'}|'_']}",
            Some("[1,3]"),
        ),
        (
            "{#{a=>1,b=>2},#{a=>3,b=>4}}",
            "{#{a=>'$1'},#{b=>'$2'}}",
            Some("[1,4]"),
        ),
        ("{1,1}", "{'$1','$1'}", Some("[1]")),
        ("{1,1.0}", "{'$1','$1'}", None),
        ("{1,2}", "{'$2','$1'}", Some("[2,1]")),
        ("{1,2}", "'$5'", Some("[{1,2}]")),
        ("{1}", "'_'", Some("[]")),
        ("{1}", "'$_'", None),
        ("{1}", "[]", None),
        ("{}", "{}", Some("[]")),
        ("{a}", "{a,'_'}", None),
        ("{#{a=>1,b=>2}}", "{#{a=>'$1'}}", Some("[1]")),
        ("{#{a=>1}}", "{#{}}", Some("[]")),
        (
            "{#{a=>#{b=>c,d=>e},z=>1}}",
            "{#{a=>#{b=>'$3'},z=>'$1'}}",
            Some("[1,c]"),
        ),
        ("{#{a=>1}}", "{#{b=>'_'}}", None),
        ("{#{{'$1'}=>5}}", "{#{{'$1'}=>'$2'}}", Some("[5]")),
        ("{[1,2|3]}", "{['$1'|'$2']}", Some("[1,[2|3]]")),
        ("{[1,2|3]}", "{['$1','$2'|'$3']}", Some("[1,2,3]")),
        ("{[1]}", "{['$1'|'$2']}", Some("[1,[]]")),
        ("{[1,2],[2]}", "{['_'|'$2'],'$2'}", Some("[[2]]")),
        ("{[2],[1,2]}", "{'$2',['_'|'$2']}", Some("[[2]]")),
        ("{[1|{a,b}]}", "{[1|{a,'$1'}]}", Some("[b]")),
        ("{[1,{a,b}]}", "{[1|{a,'$1'}]}", None),
        ("{'$00'}", "{'$00'}", Some("[]")),
        ("{1}", "{'$1000000000'}", Some("[1]")),
    ] {
        assert_eq!(bound(object, head).as_deref(), found, "{head} on {object}");
    }
}

#[test]
fn guards_need_exactly_true() {
    for (guards, passes) in [
        ("[]", true),
        ("[true]", true),
        ("['$1']", false),
        ("[{const,true}]", true),
        ("[{'+',a,1}]", false),
        ("[{'or',true,{'+',a,1}}]", false),
        ("[{'orelse',true,{'+',a,1}}]", true),
        ("[{'andalso',true,1}]", false),
        ("[{'==','$1',1},{'==','$2',[2]}]", true),
        ("[{'==','$1',1.0}]", true),
        ("[{'=:=','$1',1.0}]", false),
        ("[{'<',0,'$1'},{'>',2,'$1'}]", true),
        ("[{'==',#{a=>'$1'},'$3'}]", true),
        ("[{'=:=',{element,2,'$_'},1}]", true),
        ("[{'=:=','$_',{const,{k,1,[2],#{a=>1}}}}]", true),
    ] {
        assert_eq!(guard(guards), passes, "{guards}");
    }
}

#[test]
fn the_first_clause_that_fits_gives_the_result() {
    let program =
        program("[{{a,'_'},[],[first]},{{'_','$1'},[{is_atom,'$1'}],[second]},{'_',[],[third]}]");
    for (object, result) in [
        ("{a,1}", "first"),
        ("{b,x}", "second"),
        ("{b,1}", "third"),
        ("{}", "third"),
    ] {
        assert_eq!(run(&program, &term(object)).unwrap().to_string(), result);
    }
}

#[test]
fn errors_name_their_clause() {
    assert_eq!(fault("[]").what, Fault::NotAList);
    assert_eq!(fault("a").what, Fault::NotAList);
    assert_eq!(fault("[{{a},[],[1]}|x]").what, Fault::ImproperList);
    assert_eq!(fault("[{{a},[],[1]},{{a},[]}]").clause, Some(1));
    assert_eq!(fault("[{{a},true,[1]}]").what, Fault::GuardsNotAList);
    assert_eq!(fault("[{{a},[],[]}]").what, Fault::NoBody);
    assert_eq!(fault("[{{a},[],a}]").what, Fault::NoBody);
    assert_eq!(fault("[{{#{'$1'=>1}},[],[1]}]").what, Fault::VariableMapKey);
    assert_eq!(fault("[{{#{'_'=>1}},[],[1]}]").what, Fault::VariableMapKey);
    let second = fault("[{{'$1'},[],['$1']},{{'$1'},[],['$2']}]");
    assert_eq!((second.clause, second.what), (Some(1), Fault::Unbound(2)));
    assert_eq!(
        second_text(),
        "clause 2: variable $2 is not bound by the head"
    );
}

fn second_text() -> String {
    fault("[{{'$1'},[],['$1']},{{'$1'},[],['$2']}]").to_string()
}

#[test]
fn wrong_expressions_are_refused() {
    for (expression, wrong) in [
        ("{}", Fault::NotACall),
        ("{{{}}}", Fault::NotACall),
        ("{'$1'}", Fault::NotACall),
        ("{1,2}", Fault::NotACall),
        ("{const}", Fault::ConstArity),
        ("{const,1,2}", Fault::ConstArity),
        ("{'and'}", Fault::NoArguments(Atom::new("and"))),
        ("{foo,1}", Fault::NoFunction(Atom::new("foo"), 1)),
        (
            "{return_trace}",
            Fault::NoFunction(Atom::new("return_trace"), 0),
        ),
        (
            "{is_record,a,b}",
            Fault::NoFunction(Atom::new("is_record"), 2),
        ),
        ("['$9']", Fault::Unbound(9)),
        (
            "{'orelse',true,{foo}}",
            Fault::NoFunction(Atom::new("foo"), 0),
        ),
    ] {
        assert_eq!(body_fault(expression), wrong, "{expression}");
    }
}

#[test]
fn patterns_compile_as_match_takes_them() {
    let pattern = term("{'$2','_','$1'}");
    let object = term("{a,b,c}");
    let made = |what| {
        run(&compile_pattern(pattern.as_ref(), what).unwrap(), &object)
            .unwrap()
            .to_string()
    };
    assert_eq!(made(PatternResult::Bindings), "[c,a]");
    assert_eq!(made(PatternResult::Object), "{a,b,c}");
    assert_eq!(made(PatternResult::True), "true");
}

#[test]
fn replace_accepts_what_ets_accepts() {
    for (head, body, keeps) in [
        ("{'$1','$2'}", "'$_'", true),
        ("{'$1','$2'}", "{{'$1',1}}", true),
        ("'_'", "'$_'", true),
        ("'$1'", "'$1'", false),
        ("{'$1','_'}", "{{{'+','$1',0},1}}", false),
        ("{k,'_'}", "{{k,1}}", true),
        ("{k,'_'}", "{const,{k,1}}", true),
        ("{'$1','_'}", "{const,{'$1',1}}", false),
        ("{'_','_'}", "{const,{'_',1}}", false),
        ("{'_','_'}", "{{'_',1}}", false),
        ("{'_','_'}", "{{{element,1,'$_'},1}}", true),
        ("{'_','_'}", "{{{element,2,'$_'},1}}", false),
        ("'_'", "{{{element,1,'$_'},1}}", false),
        ("{{a,'$1'},'_'}", "{{{{a,'$1'}},1}}", true),
        ("{{a,'$1'},'_'}", "{{{{'$1',a}},1}}", false),
        ("{{a,b},'_'}", "{{{const,{a,b}},1}}", true),
        ("{[a,'$1'],'_'}", "{{[a,'$1'],1}}", true),
        ("{[a|'$1'],'_'}", "{{[a|'$1'],1}}", true),
        ("{[a,{b}],'_'}", "{{[a,{{b}}],1}}", true),
        ("{[a,{b}],'_'}", "{{[a,{const,{b}}],1}}", true),
        ("{#{a=>1},'_'}", "{{#{a=>1},1}}", false),
        ("{#{a=>1},'_'}", "{const,{#{a=>1},1}}", false),
        ("{1,'_'}", "{{1.0,1}}", false),
        ("{k,'_'}", "{{{const,k},1}}", true),
        ("{'$1','_'}", "{{{const,'$1'},1}}", false),
        ("{'$1',k}", "{{k,'$1'}}", false),
        ("{'$1','$1'}", "{{'$1','$1'}}", true),
        ("{k,'$1'}", "{const,a}", false),
        ("{k,'$1'}", "{{}}", false),
        ("{k}", "{{k,1}}", true),
        ("{'$$','_'}", "{{'$$',1}}", false),
        ("{{'$_'},'_'}", "{{{{'$_'}},1}}", false),
        ("{{},'_'}", "{{{{}},1}}", true),
        ("{{self},'_'}", "{{{self},1}}", false),
        ("{{a,'_'},'_'}", "{{{{a,'_'}},1}}", false),
        ("{'$01','_'}", "{{'$01',1}}", true),
        ("{{const,b},'_'}", "{{{{const,b}},1}}", true),
        ("{{{a}},'_'}", "{{{{{{a}}}},1}}", true),
    ] {
        let program = program(&format!("[{{{head},[],[{body}]}}]"));
        assert_eq!(program.replace_keeps_key(1), keeps, "{head} -> {body}");
    }
}

/// The comparison is the last that the guard computes, if it is computed.
#[test]
fn a_guard_that_ends_in_a_comparison_need_not_come_to_it() {
    let compared = "{'==',{is_number,{map_size,'$2'}},2}";
    let row = term("{[a],x}");
    for guard in [
        format!("{{'orelse',{{is_map,'$2'}},{{'andalso',{{is_integer,'$1'}},{compared}}}}}"),
        format!(
            "{{'orelse',{{'andalso',{{is_integer,'$1'}},{compared}}},{{'not',{{is_list,'$1'}}}}}}"
        ),
        format!("{{'not',{{'orelse',{{is_list,'$1'}},{compared}}}}}"),
    ] {
        let program = program(&format!("[{{{{'$1','$2'}},[{guard}],[true]}}]"));
        assert_eq!(run(&program, &row), None, "{guard}");
    }
    let program = program(&format!(
        "[{{{{'$1','$2'}},[{{'orelse',{{is_list,'$1'}},{compared}}}],[true]}}]"
    ));
    assert_eq!(run(&program, &row), Some(term("true")));
}

/// A large map among the constants is searched pair by pair, and by a sorted list later.
#[test]
fn keys_are_found_in_large_constant_maps() {
    let pairs: Vec<String> = (0..200).map(|n| format!("{}=>{n}", 3 * n)).collect();
    let map = format!("#{{{},2.0=>f,<<\"k\">>=>b}}", pairs.join(","));
    let is_key = program(&format!(
        "[{{{{'_','$1'}},[{{is_map_key,'$1',{{const,{map}}}}}],['$1']}}]"
    ));
    let value = program(&format!(
        "[{{{{'_','$1'}},[],[{{map_get,'$1',{{const,{map}}}}}]}}]"
    ));
    for _ in 0..20 {
        for n in 0..650 {
            let row = term(&format!("{{x,{n}}}"));
            let is_in = n % 3 == 0 && n < 600;
            assert_eq!(run(&is_key, &row), is_in.then(|| Term::from(n)), "{n}");
            let wanted = if is_in {
                Term::from(n / 3)
            } else {
                term("'EXIT'")
            };
            assert_eq!(run(&value, &row), Some(wanted), "{n}");
        }
        assert_eq!(run(&value, &term("{x,2.0}")), Some(term("f")));
        assert_eq!(run(&value, &term("{x,<<\"k\">>}")), Some(term("b")));
        assert_eq!(run(&is_key, &term("{x,3.0}")), None);
    }
}

/// Keys of maps whose first eight bytes are equal, and keys at the end of a row.
#[test]
fn similar_keys_of_maps_are_told_apart() {
    let keys = [
        "0",
        "127",
        "128",
        "100000",
        "ab",
        "<<>>",
        "<<\"a\">>",
        "<<\"a_long_key_1\">>",
        "<<\"a_long_key_2\">>",
        "<<\"a_long_key_21\">>",
        "1.0",
        "{k}",
    ];
    for (n, key) in keys.iter().enumerate() {
        // All keys but this one, and all up to this one.
        let others = keys.iter().enumerate().filter(|&(i, _)| i != n);
        let others: Vec<String> = others.map(|(i, key)| format!("{key}=>{i}")).collect();
        let some: Vec<String> = (0..=n).map(|i| format!("{}=>{i}", keys[i])).collect();
        let (without, with) = (
            term(&format!("{{x,#{{{}}}}}", others.join(","))),
            term(&format!("{{x,#{{{}}}}}", some.join(","))),
        );
        let get = program(&format!(
            "[{{{{'_','$1'}},[],[{{map_get,{{const,{key}}},'$1'}}]}}]"
        ));
        let is_key = program(&format!(
            "[{{{{'_','$1'}},[{{is_map_key,{{const,{key}}},'$1'}}],[true]}}]"
        ));
        let pattern = program(&format!("[{{{{'_',#{{{key}=>'$1'}}}},[],['$1']}}]"));
        assert_eq!(run(&get, &with), Some(Term::from(n as i64)), "{key}");
        assert_eq!(run(&get, &without), Some(term("'EXIT'")), "{key}");
        assert_eq!(run(&is_key, &with), Some(term("true")), "{key}");
        assert_eq!(run(&is_key, &without), None, "{key}");
        assert_eq!(run(&pattern, &with), Some(Term::from(n as i64)), "{key}");
        assert_eq!(run(&pattern, &without), None, "{key}");
    }
}
