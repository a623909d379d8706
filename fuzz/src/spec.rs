//! Match specifications: compiled, run on a tuple as it is and as it is stored, planned, and proved
//! to keep keys.

use crate::terms::plain;
use crate::Input;
use larder_matchspec::{Context, KeyAccess, Outcome, Program, Scratch};
use larder_term::object::{self, KeyForm, ObjectBuf};
use larder_term::{atoms, Node, Term, TermRef};

/// A specification and a tuple that are made of bytes.
pub fn matchspec(data: &[u8]) {
    let mut input = Input::new(data);
    let clauses: Vec<Term> = (0..1 + input.below(2))
        .map(|_| clause(&mut input))
        .collect();
    let arity = 1 + input.below(3);
    let tuple = Term::tuple(input.terms(arity, 2));
    check(Term::list(clauses).as_ref(), tuple.as_ref());
}

/// A specification and a tuple as text, one line each.
pub fn spec_text(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let Some((spec, tuple)) = text.split_once('\n') else {
        return;
    };
    if text.len() > 4096 {
        return;
    }
    if let (Ok(spec), Ok(tuple)) = (spec.parse::<Term>(), tuple.parse::<Term>()) {
        check(spec.as_ref(), tuple.as_ref());
    }
}

/// Texts that get far.
pub fn text_seeds() -> Vec<Vec<u8>> {
    [
        "[{{'$1','$2'},[{'>','$2',10}],[{{'$1',{'+','$2',1}}}]}]\n{apple,41}",
        "[{{'$1','_'},[{'andalso',{is_integer,'$1'},{'<','$1',9}}],['$_']}]\n{7,x}",
        "[{{{a,'$1'},'$2'},[],['$$']},{'_',[],[true]}]\n{{a,1},2}",
        "[{{1,#{k => '$1'}},[],[#{a => '$1'}]}]\n{1,#{k => v,l => w}}",
        "[{{'$1','$1'},[{'=:=','$1',{const,{1,2}}}],[{element,1,'$1'}]}]\n{{1,2},{1,2}}",
        "[{{'$1','$2'},[],[{{'$1',{'-',{abs,'$2'},{size,'$1'}}}}]}]\n{<<\"bin\">>,-4}",
    ]
    .iter()
    .map(|text| text.as_bytes().to_vec())
    .collect()
}

fn atom(text: &str) -> Term {
    Term::atom(text)
}

const VARIABLES: [&str; 5] = ["$1", "$2", "_", "$3", "$_"];

fn clause(input: &mut Input<'_>) -> Term {
    let head = match input.below(6) {
        0 => atom(input.pick(&VARIABLES)),
        _ => {
            let elements: Vec<Term> = (0..1 + input.below(3)).map(|_| pattern(input, 2)).collect();
            Term::tuple(elements)
        }
    };
    let guards: Vec<Term> = (0..input.below(3)).map(|_| expression(input, 3)).collect();
    let body: Vec<Term> = (0..1 + input.below(2))
        .map(|_| expression(input, 3))
        .collect();
    Term::tuple([head, Term::list(guards), Term::list(body)])
}

fn pattern(input: &mut Input<'_>, levels: usize) -> Term {
    match input.below(if levels == 0 { 4 } else { 7 }) {
        0 | 1 => atom(input.pick(&VARIABLES)),
        2 | 3 => input.term(1),
        4 => Term::tuple([pattern(input, levels - 1), pattern(input, levels - 1)]),
        5 => Term::list([pattern(input, levels - 1), pattern(input, levels - 1)]),
        _ => {
            Term::map([(input.term(0), pattern(input, levels - 1))]).unwrap_or_else(|_| Term::nil())
        }
    }
}

const ONE: [&str; 16] = [
    "not",
    "abs",
    "hd",
    "tl",
    "length",
    "size",
    "is_integer",
    "is_atom",
    "is_tuple",
    "bnot",
    "round",
    "trunc",
    "map_size",
    "tuple_size",
    "byte_size",
    "-",
];
const TWO: [&str; 24] = [
    "and", "or", "andalso", "orelse", "xor", "==", "=:=", "/=", "=/=", "<", "=<", ">", ">=", "+",
    "-", "*", "/", "div", "rem", "band", "bor", "bsl", "bsr", "element",
];

fn expression(input: &mut Input<'_>, levels: usize) -> Term {
    let levels = levels.saturating_sub(1);
    match input.below(if levels == 0 { 4 } else { 11 }) {
        0 | 1 => atom(input.pick(&["$1", "$2", "$_", "$$", "$3"])),
        2 => Term::int(input.int()),
        3 => input.term(1),
        4 => Term::tuple([atom(input.pick(&ONE)), expression(input, levels)]),
        5..=7 => Term::tuple([
            atom(input.pick(&TWO)),
            expression(input, levels),
            expression(input, levels),
        ]),
        8 => Term::tuple([Term::tuple([
            expression(input, levels),
            expression(input, levels),
        ])]),
        9 => Term::tuple([atom("const"), input.term(2)]),
        _ => Term::list([expression(input, levels), expression(input, levels)]),
    }
}

fn check(spec: TermRef<'_>, tuple: TermRef<'_>) {
    let Some(arity) = tuple.as_tuple().map(|elements| elements.arity()) else {
        return;
    };
    let Ok(program) = Program::compile(spec) else {
        return;
    };
    let me = Term::pid(Node::Local, 9, 0);
    let context = Context {
        self_pid: me.as_ref(),
        node: atoms::NONODE,
    };
    let mut scratch = Scratch::new();
    let found = program
        .run_term(tuple, &context, &mut scratch)
        .map(|outcome| match outcome {
            Outcome::Object => plain(tuple),
            Outcome::Term(term) => plain(term),
        });
    for keypos in 1..=arity {
        let Some(key) = tuple
            .as_tuple()
            .and_then(|elements| elements.get(keypos - 1))
        else {
            return;
        };
        for (form, order) in [
            (KeyForm::Hash { legacy_zero: false }, KeyAccess::Hash),
            (KeyForm::Ordered, KeyAccess::Ordered),
        ] {
            let mut stored = ObjectBuf::new();
            if object::encode(tuple, keypos, form, false, &mut stored).is_err() {
                return;
            }
            let mut bytes = Vec::new();
            let view = stored.view(keypos, &mut bytes);
            let again = program
                .run(&view, &context, &mut scratch)
                .map(|outcome| match outcome {
                    Outcome::Object => plain(tuple),
                    Outcome::Term(term) => plain(term),
                });
            assert_eq!(again, found, "{spec} on {tuple}, key at {keypos}, {form:?}");
            let is_true = program.is_true(&view, &context, &mut scratch);
            let truth = plain(Term::from(true).as_ref());
            assert_eq!(is_true, found.as_ref() == Some(&truth), "{spec} on {tuple}");
            if found.is_some() {
                let plan = program.plan(keypos, order);
                assert!(
                    plan.covers(key, order),
                    "{spec} on {tuple}, key at {keypos}: {plan:?}"
                );
            }
        }
        keeps_key(&program, tuple, keypos, key, &context);
    }
}

/// A specification that is said to keep the key gives an object with that key.
fn keeps_key(
    program: &Program,
    tuple: TermRef<'_>,
    keypos: usize,
    key: TermRef<'_>,
    context: &Context<'_>,
) {
    if !program.replace_keeps_key(keypos) {
        return;
    }
    let mut scratch = Scratch::new();
    if let Some(Outcome::Term(new)) = program.run_term(tuple, context, &mut scratch) {
        let kept = new.as_tuple().and_then(|elements| elements.get(keypos - 1));
        assert!(
            kept.is_some_and(|kept| kept.identical(key)),
            "{tuple} became {new} with its key at {keypos}"
        );
    }
}
