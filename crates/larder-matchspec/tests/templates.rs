//! Templates: specifications that differ in constants alone share code, and each still does what it
//! does by itself.

mod common;

use common::{run, term};
use larder_matchspec::{KeyAccess, Plan, Program};
use larder_term::Term;

fn programs(specs: &[&str]) -> Vec<Program> {
    specs.iter().map(|spec| common::program(spec)).collect()
}

/// Whether all have one template.
fn alike(specs: &[&str]) -> bool {
    let programs = programs(specs);
    programs.iter().all(|program| program.is_like(&programs[0]))
}

#[test]
fn constants_are_no_part_of_a_template() {
    for specs in [
        &["[{{7,'_'},[],['$_']}]", "[{{-1000,'_'},[],['$_']}]"][..],
        &["[{{a,'_'},[],['$_']}]", "[{{<<1,2>>,'_'},[],['$_']}]"],
        &["[{{0.0,'_'},[],['$_']}]", "[{{-0.0,'_'},[],['$_']}]"],
        &[
            "[{{{a,1},'_'},[],['$_']}]",
            "[{{[x],'_'},[],['$_']}]",
            "[{{100000000000000000000,'_'},[],['$_']}]",
        ],
        &[
            "[{{{a,'$1'},'_'},[],['$1']}]",
            "[{{{b,'$1'},'_'},[],['$1']}]",
        ],
        &[
            "[{{'$1'},[{'<','$1',3}],[true]}]",
            "[{{'$1'},[{'<','$1',400}],[true]}]",
        ],
        &[
            "[{{'$1'},[],[{{'$1',{const,{a,b}}}}]}]",
            "[{{'$1'},[],[{{'$1',{const,[c]}}}]}]",
        ],
        &["[{{'$1'},[],[[1,2]]}]", "[{{'$1'},[],[[x,y,z]]}]"],
        &[
            "[{{#{a=>1}},[],[1]}]",
            "[{{#{}},[],[1]}]",
            "[{{{x,[#{1=>{2}}]}},[],[1]}]",
        ],
        &[
            "[{{#{a=>1,b=>'$1'}},[],['$1']}]",
            "[{{#{a=>2,b=>'$1'}},[],['$1']}]",
        ],
    ] {
        assert!(alike(specs), "{specs:?}");
    }
}

#[test]
fn what_changes_the_meaning_changes_the_template() {
    for specs in [
        ["[{{a,b},[],['$_']}]", "[{{'_',b},[],['$_']}]"],
        ["[{{a,b},[],['$_']}]", "[{{'$1',b},[],['$_']}]"],
        ["[{{'$1'},[],[a]}]", "[{{'$1'},[],['$_']}]"],
        ["[{{'$1'},[],[a]}]", "[{{'$1'},[],['$1']}]"],
        ["[{{'$1'},[],[true]}]", "[{{'$1'},[],[false]}]"],
        [
            "[{{'$1'},[{'<','$1',3}],[1]}]",
            "[{{'$1'},[{'<','$1',3.0}],[1]}]",
        ],
        [
            "[{{'$1'},[{'<','$1',3}],[1]}]",
            "[{{'$1'},[{'>','$1',3}],[1]}]",
        ],
        [
            "[{{'$1'},[],[{element,1,'$1'}]}]",
            "[{{'$1'},[],[{element,2,'$1'}]}]",
        ],
        ["[{{#{a=>'$1'}},[],[1]}]", "[{{#{b=>'$1'}},[],[1]}]"],
        ["[{{#{a=>1}},[],[1]}]", "[{{#{a=>'_'}},[],[1]}]"],
        ["[{{#{a=>1}},[],[1]}]", "[{{{a,1}},[],[1]}]"],
        ["[{{'$1'},[],[{'+',1,2}]}]", "[{{'$1'},[],[{'+',1,3}]}]"],
        ["[{{'$1'},[],[{const,a}]}]", "[{{'$1'},[],[{const,'$1'}]}]"],
    ] {
        assert!(!alike(&specs), "{specs:?}");
    }
}

/// Constants of every kind, of which no two are identical.
const CONSTANTS: &[&str] = &[
    "0",
    "7",
    "-7",
    "128",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "100000000000000000000",
    "0.0",
    "7.0",
    "1.0e300",
    "a",
    "'EXIT'",
    "true",
    "[]",
    "{}",
    "{a,1}",
    "{a,1.0}",
    "[1,2|3]",
    "[a]",
    "<<>>",
    "<<\"a binary\">>",
    "<<1:3>>",
    "#{}",
    "#{a=>1}",
    "{k,#{a=>1}}",
    "[#{7=>7.0}]",
];

/// In every place a constant finds exactly itself, whichever constants had the code before.
#[test]
fn each_constant_is_found_where_it_stands() {
    for place in [
        |c: &str| format!("[{{{{{c},'_'}},[],['$_']}}]"),
        |c: &str| format!("[{{{{'_',{c}}},[],['$_']}}]"),
        |c: &str| format!("[{{{{'$1','_'}},[{{'=:=','$1',{{const,{c}}}}}],['$_']}}]"),
        |c: &str| format!("[{{{{'_','$1'}},[{{'=:=',{{const,{c}}},'$1'}}],['$_']}}]"),
        |c: &str| {
            format!("[{{'$1',[{{'=:=',{{const,{c}}},{{hd,[{{element,1,'$1'}}]}}}}],['$_']}}]")
        },
    ] {
        for constant in CONSTANTS {
            let program = common::program(&place(constant));
            for other in CONSTANTS {
                let row = term(&format!("{{{other},{other}}}"));
                // In a head a map stands for all that have its pairs.
                let open = constant.contains('#') && !place("x").contains("const");
                let found = run(&program, &row).is_some();
                assert!(open || found == (constant == other), "{constant} {other}");
                assert!(constant != other || found, "{constant}");
            }
        }
    }
}

/// A map in a head matches all that have its pairs, wherever it is, and whether the head has
/// variables in it or beside it. Everything else in a closed pattern matches itself.
#[test]
fn closed_patterns_match_as_patterns() {
    let large = |first: &str, count: usize| {
        let rest = (0..count).map(|n| format!(",{n}=>x"));
        format!("#{{{first}{}}}", rest.collect::<String>())
    };
    let (many, more) = (large("a=>1", 40), large("a=>1,b=>{2,#{c=>3}}", 50));
    let rows: &[(&str, &[&str])] = &[
        ("#{}", &["#{}", "#{a=>1}", &many]),
        (
            "#{a=>1}",
            &[
                "#{a=>1}",
                "#{a=>1,b=>2}",
                "#{'B'=>0,a=>1,z=>[]}",
                &many,
                &more,
            ],
        ),
        ("#{b=>{2,#{}}}", &["#{b=>{2,#{c=>3}}}", &more]),
        (
            "[#{a=>1}|#{b=>0.0}]",
            &["[#{a=>1}|#{b=>0.0}]", "[#{a=>1,c=>2}|#{a=>x,b=>0.0}]"],
        ),
        ("{[#{1=>#{}}],x}", &["{[#{1=>#{2=>3}}],x}"]),
        ("#{{k,#{x=>1}}=>1}", &["#{{k,#{x=>1}}=>1,b=>2}"]),
        (&many, &[&many, &more]),
    ];
    let others = [
        "a",
        "[]",
        "#{a=>1.0}",
        "#{b=>1}",
        "#{a=>{1}}",
        "#{b=>{2,[]}}",
        "#{b=>{2.0,#{}}}",
        "{b,2,#{}}",
        "[#{a=>1}|#{b=>-0.0}]",
        "[#{a=>1},#{b=>0.0}]",
        "{[#{1=>#{}}],y}",
        "{[#{1=>#{}},1],x}",
        "#{{k,#{x=>1,y=>2}}=>1}",
    ];
    let all: Vec<&str> = rows
        .iter()
        .flat_map(|row| row.1)
        .chain(&others)
        .copied()
        .collect();
    for (pattern, matched) in rows {
        for row in &all {
            let same_key = |one: &&str| term(one) == term(row);
            let is_matched =
                *pattern == "#{}" && row.starts_with('#') || matched.iter().any(same_key);
            assert_match(pattern, row, is_matched);
        }
    }
}

/// Asserts whether a pattern matches a term: as an element, as the key, within a key, and within a
/// map.
fn assert_match(pattern: &str, row: &str, is_matched: bool) {
    for (head, row) in [
        (format!("{{k,{pattern}}}"), format!("{{k,{row}}}")),
        (format!("{{{pattern},'$1'}}"), format!("{{{row},1}}")),
        (
            format!("{{{{{pattern},'$1'}},'$1'}}"),
            format!("{{{{{row},2}},2}}"),
        ),
        (
            format!("{{#{{q=>{pattern},r=>'$1'}},'$1'}}"),
            format!("{{#{{q=>{row},r=>[]}},[]}}"),
        ),
    ] {
        let program = common::program(&format!("[{{{head},[],[yes]}}]"));
        assert_eq!(
            run(&program, &term(&row)).is_some(),
            is_matched,
            "{head} {row}"
        );
        // Also for an ordered table whose keys a plan limits.
        let row_term = term(&row);
        let key = row_term
            .as_ref()
            .as_tuple()
            .and_then(|row| row.get(0))
            .unwrap();
        let plan = program.plan(1, KeyAccess::Ordered);
        assert!(
            !is_matched || plan.covers(key, KeyAccess::Ordered),
            "{head} {row}"
        );
    }
}

#[test]
fn constants_come_back_from_bodies() {
    for place in [
        |c: &str| format!("[{{{{'_'}},[],[{{const,{c}}}]}}]"),
        |c: &str| format!("[{{{{'$1'}},[],[{{hd,[{{const,{c}}},'$1']}}]}}]"),
        |c: &str| format!("[{{{{'$1'}},[],[{{element,2,{{{{'$1',{{const,{c}}}}}}}}}]}}]"),
    ] {
        for constant in CONSTANTS {
            let program = common::program(&place(constant));
            let found = run(&program, &term("{row}"));
            assert_eq!(found, Some(term(constant)), "{}", place(constant));
        }
    }
}

#[test]
fn plans_are_those_of_the_arguments() {
    for key in CONSTANTS.iter().filter(|key| !key.contains('#')) {
        for spec in [
            format!("[{{{{{key},'_'}},[],['$_']}}]"),
            format!("[{{{{'$1','_'}},[{{'=:=','$1',{{const,{key}}}}}],['$_']}}]"),
        ] {
            let program = common::program(&spec);
            for access in [KeyAccess::Hash, KeyAccess::Ordered] {
                assert_eq!(
                    program.plan(1, access),
                    Plan::Keys(vec![term(key)]),
                    "{spec}"
                );
            }
        }
        let spec = format!("[{{{{{{{key},'_'}},'_'}},[],['$_']}}]");
        let plan = common::program(&spec).plan(1, KeyAccess::Ordered);
        for other in CONSTANTS {
            let (key, other) = (term(key), term(other));
            let covers = plan.covers(
                Term::tuple([other.clone(), Term::int(1)]).as_ref(),
                KeyAccess::Ordered,
            );
            let equal = key.as_ref().eq_term(other.as_ref());
            assert_eq!(covers, equal, "{spec} {other}");
        }
    }
}

/// Whether a key is kept depends on the arguments.
#[test]
fn a_replacement_keeps_the_key_that_it_names() {
    for key in CONSTANTS.iter().filter(|key| !key.contains('#')) {
        for other in CONSTANTS.iter().filter(|key| !key.contains('#')) {
            let spec = format!("[{{{{{key},'$1'}},[],[{{{{{{const,{other}}},'$1'}}}}]}}]");
            let keeps = common::program(&spec).replace_keeps_key(1);
            assert_eq!(keeps, key == other, "{spec}");
        }
    }
    // As `ets`, which takes neither for a constant.
    for key in ["'$_'", "'$$'"] {
        let spec = format!("[{{{{{key},'$1'}},[],[{{{{{{const,{key}}},'$1'}}}}]}}]");
        assert!(!common::program(&spec).replace_keeps_key(1), "{spec}");
    }
    let spec = "[{{{a,1},'$1'},[],[{{{{a,1}},{'+','$1',1}}}]}]";
    assert!(common::program(spec).replace_keeps_key(1));
}

/// A list whose count takes two bytes can't be split off, also if a constant list after it can.
#[test]
fn long_lists_with_variables_stay_whole() {
    for n in [
        1, 100, 126, 127, 128, 129, 200, 254, 255, 256, 257, 300, 1000,
    ] {
        let numbers = vec!["7"; n].join(",");
        let constant = vec!["5"; 200].join(",");
        // In a body, in a call, in a guard, and in a head; before and after the constant list.
        let open = format!("['$1',{numbers}]");
        let called = format!("{{hd,[-1,{numbers},'$1']}}");
        let row = term(&format!("{{k,[k,{numbers}],x}}"));
        for (spec, result) in [
            (
                format!("[{{{{'$1','_','_'}},[],[{{{{{open},[{constant}]}}}}]}}]"),
                format!("{{[k,{numbers}],[{constant}]}}"),
            ),
            (
                format!("[{{{{'$1','_','_'}},[],[{{{{{called},[{constant}]}}}}]}}]"),
                format!("{{-1,[{constant}]}}"),
            ),
            (
                format!("[{{{{'$1','$2','_'}},[{{'=:=','$2',{open}}},{{'=/=','$2',[{constant}]}}],['$1']}}]"),
                "k".into(),
            ),
            (
                format!("[{{{{'_',['$1',{numbers}],'_'}},[],[{{{{'$1',[{constant}]}}}}]}}]"),
                format!("{{k,[{constant}]}}"),
            ),
        ] {
            let found = run(&common::program(&spec), &row);
            assert_eq!(found, Some(term(&result)), "{n}");
        }
    }
}
