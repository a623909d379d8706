//! Specifications with parameters do what those do that have the values as constants.

mod common;

use common::{program, run, term};
use larder_matchspec::{
    CompileError, Context, Fault, KeyAccess, Plan, Prepared, Program, Scratch, Unbound, WrongCount,
};
use larder_term::{
    object::{self, KeyForm, ObjectBuf},
    Term,
};

fn prepare(spec: &str) -> Prepared {
    prepared(spec).unwrap_or_else(|error| panic!("{spec}: {error}"))
}

fn prepared(spec: &str) -> Result<Prepared, CompileError> {
    Prepared::compile(term(spec).as_ref())
}

fn bound(prepared: &Prepared, values: &[Term]) -> Program {
    prepared.bind(values.len(), &mut &values[..]).unwrap()
}

fn bind(spec: &str, values: &[&str]) -> Program {
    let values: Vec<_> = values.iter().map(|text| term(text)).collect();
    bound(&prepare(spec), &values)
}

/// Values of every kind; some of them would be something else in a specification's text.
fn values() -> Vec<Term> {
    let texts = [
        "0",
        "7",
        "-7",
        "200",
        "9223372036854775807",
        "9223372036854775808",
        "100000000000000000000",
        "0.0",
        "-0.0",
        "7.0",
        "a",
        "true",
        "false",
        "undefined",
        "'_'",
        "'$1'",
        "'$2'",
        "'$_'",
        "'$$'",
        "[]",
        "{}",
        "{a,1}",
        "{'$1','_'}",
        "{bind,1}",
        "{const,a}",
        "{{a,b}}",
        "{'+',1,2}",
        "[1,2|3]",
        "[a,'$1']",
        "['_'|'$2']",
        "\"text\"",
        "<<>>",
        "<<\"a binary\">>",
        "<<1:3>>",
        "#{}",
        "#{a=>1}",
        "#{a=>'$1'}",
        "{k,#{a=>1}}",
    ];
    let mut values: Vec<_> = texts.iter().map(|text| term(text)).collect();
    let pair = |n: u32| (Term::int(n.into()), Term::int((n * n).into()));
    values.push(Term::map((0..40).map(pair)).unwrap());
    values.push(Term::binary(&[7; 300]));
    values.push(Term::list((0..200u32).map(|n| Term::int(n.into()))));
    values
}

/// With parameters, and without: V and W are the values, as constants of guards and bodies.
const PAIRS: &[(&str, &str)] = &[
    (
        "[{{{bind,1},'$2'},[],['$2']}]",
        "[{{'$9','$2'},[{'=:=','$9',V}],['$2']}]",
    ),
    (
        "[{{'$2',{bind,1}},[],['$_']}]",
        "[{{'$2','$9'},[{'=:=','$9',V}],['$_']}]",
    ),
    (
        "[{{{bind,1},{bind,2}},[],[true]}]",
        "[{{'$9','$8'},[{'=:=','$9',V},{'=:=','$8',W}],[true]}]",
    ),
    (
        "[{{{bind,1},{bind,1}},[],['$$']}]",
        "[{{'$9','$8'},[{'=:=','$9',V},{'=:=','$8',V}],[[]]}]",
    ),
    (
        "[{{'$2',{x,{bind,1}}},[],['$2']}]",
        "[{{'$2',{x,'$9'}},[{'=:=','$9',V}],['$2']}]",
    ),
    (
        "[{{'$2',{'$3',{bind,1}}},[],['$3']}]",
        "[{{'$2',{'$3','$9'}},[{'=:=','$9',V}],['$3']}]",
    ),
    (
        "[{{'_',[{bind,1},'$3'|'_']},[],['$3']}]",
        "[{{'_',['$9','$3'|'_']},[{'=:=','$9',V}],['$3']}]",
    ),
    (
        "[{{'_',[{bind,2}|{bind,1}]},[],[1]}]",
        "[{{'_',['$9'|'$8']},[{'=:=','$9',W},{'=:=','$8',V}],[1]}]",
    ),
    (
        "[{{'$1',#{k=>{bind,1}}},[],['$1']}]",
        "[{{'$1',#{k=>'$9'}},[{'=:=','$9',V}],['$1']}]",
    ),
    (
        "[{{'$1',#{k=>{x,{bind,1}},l=>'$2'}},[],['$2']}]",
        "[{{'$1',#{k=>{x,'$9'},l=>'$2'}},[{'=:=','$9',V}],['$2']}]",
    ),
    (
        "[{{'$1','$2'},[{'<','$2',{bind,1}}],['$1']}]",
        "[{{'$1','$2'},[{'<','$2',V}],['$1']}]",
    ),
    (
        "[{{'$1','$2'},[{'==','$2',{bind,1}}],['$1']}]",
        "[{{'$1','$2'},[{'==','$2',V}],['$1']}]",
    ),
    (
        "[{{'$1','$2'},[{'=/=',{bind,1},'$2'}],['$1']}]",
        "[{{'$1','$2'},[{'=/=',V,'$2'}],['$1']}]",
    ),
    (
        "[{{'$1','$2'},[{'>=',{bind,1},{bind,2}}],['$1']}]",
        "[{{'$1','$2'},[{'>=',V,W}],['$1']}]",
    ),
    (
        "[{{'$1','$2'},[{bind,1}],['$1']}]",
        "[{{'$1','$2'},[V],['$1']}]",
    ),
    (
        "[{{'$1','$2'},[{'or',{bind,1},{'==','$1','$2'}}],['$1']}]",
        "[{{'$1','$2'},[{'or',V,{'==','$1','$2'}}],['$1']}]",
    ),
    (
        "[{{'$1','$2'},[{'andalso',{is_atom,'$1'},{bind,1}}],['$1']}]",
        "[{{'$1','$2'},[{'andalso',{is_atom,'$1'},V}],['$1']}]",
    ),
    ("[{{'$1','$2'},[],[{bind,1}]}]", "[{{'$1','$2'},[],[V]}]"),
    ("[{'_',[],[{{{bind,1},{bind,2}}}]}]", "[{'_',[],[{{V,W}}]}]"),
    (
        "[{{'$1','_'},[],[[{bind,1},'$1'|{bind,2}]]}]",
        "[{{'$1','_'},[],[[V,'$1'|W]]}]",
    ),
    (
        "[{{'$1','_'},[],[#{{bind,1}=>'$1',k=>{bind,2}}]}]",
        "[{{'$1','_'},[],[#{V=>'$1',k=>W}]}]",
    ),
    (
        "[{{'$1','_'},[],[{'+',{bind,1},1}]}]",
        "[{{'$1','_'},[],[{'+',V,1}]}]",
    ),
    (
        "[{{'$1','_'},[{is_integer,{bind,1}}],[{element,{bind,1},'$_'}]}]",
        "[{{'$1','_'},[{is_integer,V}],[{element,V,'$_'}]}]",
    ),
    (
        "[{{'$1','$2'},[],[{map_get,{bind,1},'$2'}]}]",
        "[{{'$1','$2'},[],[{map_get,V,'$2'}]}]",
    ),
    (
        "[{{'_','$2'},[{is_record,'$2',{bind,1},2}],[1]}]",
        "[{{'_','$2'},[{is_record,'$2',V,2}],[1]}]",
    ),
    (
        "[{{'$1',x},[],[{const,{bind,1}}]},{{'$1','_'},[],[{bind,1}]}]",
        "[{{'$1',x},[],[{const,{bind,1}}]},{{'$1','_'},[],[V]}]",
    ),
    (
        "[{{'$1','_'},[],[{{{{bind,1}}}}]}]",
        "[{{'$1','_'},[],[{{{{bind,1}}}}]}]",
    ),
];

fn rows(values: &[Term]) -> Vec<Term> {
    let mut rows = Vec::new();
    for value in values {
        let (x, k) = (Term::atom("x"), Term::atom("k"));
        let pair = |a: &Term, b: &Term| Term::tuple([a.clone(), b.clone()]);
        let list = Term::list([value.clone(), x.clone(), value.clone()]);
        let improper = Term::improper([value.clone()], value.as_ref());
        let map = Term::map([(k.clone(), value.clone()), (Term::atom("l"), x.clone())]).unwrap();
        let nested =
            Term::map([(k.clone(), pair(&x, value)), (Term::atom("l"), k.clone())]).unwrap();
        let keyed = Term::map([(value.clone(), k)]).unwrap();
        for second in [
            value,
            &x,
            &list,
            &improper,
            &map,
            &nested,
            &keyed,
            &pair(&x, value),
        ] {
            rows.push(pair(value, second));
            rows.push(pair(&x, second));
        }
    }
    rows
}

fn stored(row: &Term) -> ObjectBuf {
    let mut stored = ObjectBuf::default();
    object::encode(row.as_ref(), 1, KeyForm::Ordered, false, &mut stored).unwrap();
    stored
}

#[test]
fn values_are_constants() {
    let values = values();
    let rows = rows(&values);
    let others = [Term::int(7), Term::atom("_"), Term::atom("true")];
    let mut fits = 0;
    for (spec, reference) in PAIRS {
        let prepared = prepare(spec);
        for (index, value) in values.iter().enumerate() {
            let other = &others[index % others.len()];
            let constant = |term: &Term| format!("{{const,{term}}}");
            // By text, where the values are no part of what is replaced.
            let written = reference
                .replace('V', &constant(value))
                .replace('W', &constant(other));
            let reference = program(&written);
            let given = [value.clone(), other.clone()];
            let program = bound(&prepared, &given[..prepared.parameters()]);
            for row in &rows {
                let wanted = run(&reference, row);
                let found = run(&program, row);
                assert_eq!(found, wanted, "{spec} of {value} and {other} on {row}");
                fits += usize::from(found.is_some());
                is_true(&program, row, found.as_ref());
                if found.is_some() {
                    is_covered(&program, row);
                }
            }
        }
    }
    assert!(fits > 10_000, "{fits}");
}

/// A plan leaves out nothing that fits.
fn is_covered(program: &Program, row: &Term) {
    let tuple = row.as_ref().as_tuple().unwrap();
    for (position, access) in [
        (1, KeyAccess::Hash),
        (1, KeyAccess::Ordered),
        (2, KeyAccess::Hash),
        (2, KeyAccess::Ordered),
    ] {
        let key = tuple.get(position - 1).unwrap();
        let covers = program.plan(position, access).covers(key, access);
        assert!(covers, "{row} {position} {access:?}");
        let element = program.plan_of_element(position, KeyAccess::Ordered);
        assert!(element.covers(key, KeyAccess::Ordered), "{row} {position}");
    }
}

/// A stored object gives `true` where a tuple does.
fn is_true(program: &Program, row: &Term, found: Option<&Term>) {
    let (stored, mut plain) = (stored(row), Vec::new());
    let view = stored.view(1, &mut plain);
    let is_true = program.is_true(&view, &Context::none(), &mut Scratch::new());
    assert_eq!(is_true, found == Some(&Term::atom("true")), "{row}");
}

#[test]
fn keys_in_maps_have_any_place_in_them() {
    let spec = prepare("[{{'$1',#{b=>'$2',{bind,1}=>'$3',{x,{bind,1}}=>'$4'}},[],['$$']}]");
    for value in values() {
        let is_b = value == Term::atom("b");
        let program = bound(&spec, std::slice::from_ref(&value));
        for count in [0, 3, 50] {
            let pair = Term::tuple([Term::atom("x"), value.clone()]);
            let mut pairs = vec![(pair, Term::int(3)), (Term::atom("b"), Term::int(1))];
            if !is_b {
                pairs.push((value.clone(), Term::int(2)));
            }
            pairs.extend((0..count).map(|n| (Term::int(1000 + n), Term::int(0))));
            let whole = Term::map(pairs.clone()).unwrap();
            let row = Term::tuple([Term::int(0), whole]);
            let wanted = [0, 1, if is_b { 1 } else { 2 }, 3].map(Term::int);
            assert_eq!(run(&program, &row), Some(Term::list(wanted)), "{row}");
            // One pair less.
            let part = Term::map(pairs.split_off(1)).unwrap();
            assert_eq!(
                run(&program, &Term::tuple([Term::int(0), part])),
                None,
                "{row}"
            );
        }
    }
}

#[test]
fn plans_are_made_of_values() {
    for (spec, values, key) in [
        ("[{{{bind,1},'$1'},[],['$1']}]", &["7"][..], "7"),
        (
            "[{{{user,{bind,2}},'_'},[],[{bind,1}]}]",
            &["x", "<<1>>"],
            "{user,<<1>>}",
        ),
        (
            "[{{[a,{bind,1},c],'_'},[],[true]}]",
            &["'$1'"],
            "[a,'$1',c]",
        ),
        ("[{{{bind,1},'_'},[],[true]}]", &["#{a=>1}"], "#{a => 1}"),
    ] {
        let program = bind(spec, values);
        let bound = program.bound_key(1).map(|key| key.to_string());
        assert_eq!(bound.as_deref(), Some(key), "{spec}");
        for access in [KeyAccess::Hash, KeyAccess::Ordered] {
            assert_eq!(
                program.plan(1, access),
                Plan::Keys(vec![term(key)]),
                "{spec}"
            );
        }
    }
    // The same range as with the values written out.
    for (spec, values, written) in [
        (
            "[{{'$1'},[{'>=','$1',{bind,1}},{'<','$1',{bind,2}}],['$1']}]",
            &["3", "9"][..],
            "[{{'$1'},[{'>=','$1',3},{'<','$1',9}],['$1']}]",
        ),
        (
            "[{{{{bind,1},'$1'}},[{'>','$1',{bind,2}}],['$1']}]",
            &["ann", "1.5"],
            "[{{{ann,'$1'}},[{'>','$1',1.5}],['$1']}]",
        ),
        (
            "[{{'$1'},[{'=:=','$1',{bind,1}}],['$1']}]",
            &["{a,b}"],
            "[{{'$1'},[{'=:=','$1',{{a,b}}}],['$1']}]",
        ),
        (
            "[{{'$1'},[{'==',{element,{bind,1},'$_'},7}],['$1']}]",
            &["1"],
            "[{{'$1'},[{'==',{element,1,'$_'},7}],['$1']}]",
        ),
    ] {
        let (bound, written) = (bind(spec, values), program(written));
        let plan = bound.plan(1, KeyAccess::Ordered);
        assert_ne!(plan, Plan::AllKeys, "{spec}");
        assert_eq!(plan, written.plan(1, KeyAccess::Ordered), "{spec}");
    }
    // A guard that is a parameter may be true.
    let spec = "[{{'$1'},[{bind,1}],['$1']}]";
    assert_eq!(
        bind(spec, &["true"]).plan(1, KeyAccess::Hash),
        Plan::AllKeys
    );
}

#[test]
fn a_literal_tuple_is_not_a_parameter() {
    let row = term("{k,{bind,1}}");
    for (spec, found) in [
        (
            "[{{'$1','$2'},[{'=:=','$2',{const,{bind,1}}}],[{bind,1}]}]",
            "x",
        ),
        (
            "[{{'$1','$2'},[],[{{bind,1}}]},{'_',[],[{bind,1}]}]",
            "{bind,1}",
        ),
        ("[{{'$1',{bind,'$2'}},[],[{{'$2',{bind,1}}}]}]", "{1,x}"),
    ] {
        assert_eq!(run(&bind(spec, &["x"]), &row), Some(term(found)), "{spec}");
    }
}

#[test]
fn what_is_wrong_is_named() {
    for (spec, clause, fault) in [
        (
            "[{{a},[],[a]},{{{bind,0}},[],[a]}]",
            Some(1),
            Fault::ParameterNumber(0),
        ),
        (
            "[{{'$1'},[{'<','$1',{bind,256}}],[a]}]",
            Some(0),
            Fault::ParameterNumber(256),
        ),
        (
            "[{{'$1'},[],[{bind,-1}]}]",
            Some(0),
            Fault::ParameterNumber(-1),
        ),
        ("[{{bind,1},[],['$_']}]", Some(0), Fault::ParameterAsHead),
        (
            "[{{#{#{a=>{bind,1}}=>x}},[],[a]}]",
            Some(0),
            Fault::ParameterInMapKey,
        ),
        (
            "[{{#{[a|{bind,1}]=>x}},[],[a]}]",
            Some(0),
            Fault::ParameterInMapKey,
        ),
        ("[{{{bind,1}},[],['$1']}]", Some(0), Fault::Unbound(1)),
        ("[{{{bind,1}},[]}]", Some(0), Fault::NotAClause),
        ("{bind,1}", None, Fault::NotAList),
        (
            "[{{{bind,1}},[],[{bind,1,2}]}]",
            Some(0),
            Fault::NoFunction(larder_term::Atom::new("bind"), 2),
        ),
        ("[{{a},[{{bind,1},2}],[a]}]", Some(0), Fault::NotACall),
    ] {
        let error = prepared(spec).err();
        assert_eq!(
            error,
            Some(CompileError {
                clause,
                what: fault
            }),
            "{spec}"
        );
    }
}

#[test]
fn values_are_counted() {
    let spec = prepare("[{{{bind,3},'$1'},[],[{bind,1}]}]");
    assert_eq!(spec.parameters(), 3);
    let values = [1, 2, 3, 4].map(Term::int);
    for given in [0, 2, 4] {
        let found = spec.bind(given, &mut &values[..given]).err();
        let wrong = WrongCount {
            parameters: 3,
            values: given,
        };
        assert_eq!(found, Some(Unbound::Count(wrong)));
    }
    let text = |parameters, values| WrongCount { parameters, values }.to_string();
    assert_eq!(
        text(3, 1),
        "{bind, 2} has no value: the specification has 3 parameters, and 1 value is given"
    );
    assert_eq!(
        text(1, 2),
        "the specification has 1 parameter, and 2 values are given"
    );
    assert_eq!(
        run(&bound(&spec, &values[..3]), &term("{3,x}")),
        Some(Term::int(1))
    );
    assert_eq!(prepare("[{{'$1'},[],['$1']}]").parameters(), 0);
}

#[test]
fn replacements_keep_the_key_for_all_values() {
    for (spec, keeps) in [
        ("[{{{bind,1},'_'},[],[{{{bind,1},x}}]}]", true),
        (
            "[{{{user,{bind,1}},'$1'},[],[{{{{user,{bind,1}}},{'+','$1',1}}}]}]",
            true,
        ),
        ("[{{'$1','_'},[],[{{'$1',{bind,1}}}]}]", true),
        ("[{{'$1','_'},[],['$_']}]", true),
        ("[{{{bind,1},'_'},[],[{{{element,1,'$_'},x}}]}]", true),
        ("[{{[a|{bind,1}],'_'},[],[{{[a|{bind,1}],x}}]}]", true),
        ("[{{{bind,1},'_'},[],[{{{bind,2},x}}]}]", false),
        ("[{{'$1','_'},[],[{{{bind,1},x}}]}]", false),
        ("[{{{bind,1},'$1'},[],[{{'$1',x}}]}]", false),
        ("[{{{bind,1},'_'},[],[{{{{bind,1}},x}}]}]", false),
        ("[{{{bind,1},'_'},[],[{{{const,{bind,1}},x}}]}]", false),
        ("[{{{bind,1},'_'},[],[{const,{{bind,1},x}}]}]", false),
        ("[{{{bind,1},'_'},[],[{bind,2}]}]", false),
    ] {
        // None of these values changes the proof.
        for value in ["7", "'$1'", "'_'", "{const,x}", "{element,1,'$_'}"] {
            let values = [term(value), term(value)];
            let spec = prepare(spec);
            let program = bound(&spec, &values[..spec.parameters()]);
            assert_eq!(program.replace_keeps_key(1), keeps, "{spec:?} {value}");
        }
    }
}

#[test]
fn deep_and_long_ones_are_no_crash() {
    let deep = |inner: Term| (0..5_000).fold(inner, |term, _| Term::tuple([term]));
    let parameter = || term("{bind,1}");
    let (head, body) = (Term::tuple([deep(parameter())]), Term::list([parameter()]));
    let spec = Term::list([Term::tuple([head, Term::nil(), body])]);
    let spec = Prepared::compile(spec.as_ref()).unwrap();
    let row = Term::tuple([deep(Term::int(5))]);
    let program = bound(&spec, &[Term::int(5)]);
    assert_eq!(run(&program, &row), Some(Term::int(5)));
    let key = row.as_ref().as_tuple().unwrap().get(0).unwrap();
    assert!(program.bound_key(1).unwrap().identical(key));
    let long = Term::list(
        (0..1000u32).map(|n| Term::tuple([Term::atom("bind"), Term::int((n % 2 + 1).into())])),
    );
    let clause = Term::tuple([term("'_'"), Term::nil(), Term::list([long])]);
    let spec = Prepared::compile(Term::list([clause]).as_ref()).unwrap();
    let found = run(&bound(&spec, &[term("a"), term("b")]), &term("{x}")).unwrap();
    assert_eq!(found.as_ref().as_list().unwrap().len(), 1000);
}
