//! Random match specifications and objects: Larder against the Erlang of this machine.
//!
//! `tests/oracle.escript` makes them and says what `ets` does with them. Held: whether a
//! specification compiles, and if not, of which class the error is; which objects fit; the result,
//! byte for byte; that a stored object gives what a plain tuple gives; that the plan for every
//! position of the key covers each object that fits.
//!
//! `LARDER_SEED` sets the seed, `LARDER_CASES` how many cases there are, in percent of 10,000. Pids
//! and references differ from run to run, and with them the order of large maps: so a failure keeps
//! the file of its cases, and `LARDER_RECORDS` runs such a file again.

mod common;

use common::run_as;
use larder_matchspec::{
    BuiltPart, BuiltTerm, Context, Fault, KeyAccess, Known, Outcome, Program, Scratch, Shown,
    Verdict,
};
use larder_term::{
    atoms,
    etf::{self, EtfOptions},
    object::{self, KeyForm, ObjectBuf},
    Encoder, Mode, NodeName, Term, TermRef, View,
};
use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

/// What `ets` made of a case.
enum Answer<'a> {
    Result(TermRef<'a>),
    NoMatch,
    Badarg,
    SystemLimit,
}

/// A number of the environment's. The seeds of the suites in Erlang, of three numbers, are none.
fn setting(name: &str, default: u64) -> u64 {
    let value = env::var(name).ok();
    value
        .and_then(|value| value.parse().ok())
        .unwrap_or(default)
}

/// How often the oracle is asked if it is ended by a signal.
const ATTEMPTS: u32 = 5;

/// The file of the oracle's records: the one that `LARDER_RECORDS` names, or a new one.
fn oracle(seed: u64, count: u64) -> PathBuf {
    if let Some(file) = env::var_os("LARDER_RECORDS") {
        return file.into();
    }
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/oracle.escript");
    let name = format!("larder-matchspec-{}-{seed}.terms", std::process::id());
    let file = env::temp_dir().join(name);
    let mut command = Command::new("escript");
    command
        .arg(script)
        .arg(seed.to_string())
        .arg(count.to_string())
        .arg(&file);
    // Some specifications make Erlang itself (25.2.3) read memory that isn't its own, which rarely
    // ends it by a signal. Then the oracle is asked again.
    let mut asked = (0..ATTEMPTS).map(|_| {
        command
            .status()
            .expect("this test needs Erlang's escript on the path")
    });
    let status = asked
        .find(|status| status.code().is_some())
        .expect("the oracle was ended by a signal each time");
    assert!(
        status.success(),
        "the oracle failed with seed {seed}: {status}"
    );
    file
}

/// The records of such a file.
fn records(file: &Path) -> Vec<Term> {
    let bytes = fs::read(file).unwrap();
    let mut records = Vec::new();
    let mut rest = &bytes[..];
    while let Some((length, more)) = rest.split_first_chunk::<4>() {
        let (record, more) = more.split_at(u32::from_be_bytes(*length) as usize);
        records.push(
            etf::decode_term(record, &NodeName::NONE, &EtfOptions::default())
                .unwrap()
                .0,
        );
        rest = more;
    }
    records
}

fn answer(result: TermRef<'_>) -> Answer<'_> {
    match result.view() {
        View::Tuple(ok) => Answer::Result(ok.get(1).unwrap()),
        View::Atom(atom) => match atom.text() {
            "nomatch" => Answer::NoMatch,
            "badarg" => Answer::Badarg,
            "system_limit" => Answer::SystemLimit,
            other => panic!("the oracle says {other}"),
        },
        _ => panic!("the oracle says {result}"),
    }
}

fn plain(term: TermRef<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    Encoder::new(&mut bytes, Mode::Inline).term(term);
    bytes
}

#[test]
fn random_specifications_do_what_they_do_in_erlang() {
    let (seed, percent) = (
        setting("LARDER_SEED", 20_260_101),
        setting("LARDER_CASES", 100),
    );
    println!("LARDER_SEED={seed} LARDER_CASES={percent}");
    larder_term::set_legacy_zero(host_ties_zeros());
    let file = oracle(seed, (100 * percent).max(1));
    let records = records(&file);
    let count = records.len() - 1;
    let me = Term::from(records[0].as_ref().as_tuple().unwrap().get(0).unwrap());
    let mut wrong = Vec::new();
    let mut compiled = 0;
    for (index, record) in records[1..].iter().enumerate() {
        let parts: Vec<TermRef<'_>> = record.as_ref().as_tuple().unwrap().iter().collect();
        let [spec, object, result] = parts[..] else {
            panic!("{record}")
        };
        match check(spec, object, answer(result), &me) {
            Ok(ran) => compiled += usize::from(ran),
            Err(what) => {
                let parts = [
                    what,
                    format!("  spec {spec}"),
                    format!("  object {object}"),
                    format!("  ets {result}"),
                ];
                let parts = parts.map(|part| part.chars().take(1500).collect::<String>());
                wrong.push(format!("case {index}: {}", parts.join("\n")));
            }
        }
    }
    let shown = wrong
        .iter()
        .take(12)
        .cloned()
        .collect::<Vec<_>>()
        .join("\n");
    assert!(
        wrong.is_empty(),
        "LARDER_SEED={seed} LARDER_RECORDS={}: {} of {count} differ\n{shown}",
        file.display(),
        wrong.len()
    );
    if env::var_os("LARDER_RECORDS").is_none() {
        fs::remove_file(&file).unwrap();
    }
    assert!(
        compiled * 2 > count,
        "only {compiled} of {count} specifications compile: the generator is off"
    );
}

/// Whether the host takes 0.0 and −0.0 for identical, as releases before OTP 27 do.
fn host_ties_zeros() -> bool {
    let output = Command::new("erl")
        .args([
            "-noshell",
            "-eval",
            "X = -0.0, io:put_chars(atom_to_list(X =:= abs(X) * 1.0)), halt().",
        ])
        .output();
    output.is_ok_and(|output| output.stdout == b"true")
}

/// Whether the case compiled, if all is well.
fn check(
    spec: TermRef<'_>,
    object: TermRef<'_>,
    answer: Answer<'_>,
    me: &Term,
) -> Result<bool, String> {
    let program = match (Program::compile(spec), &answer) {
        (Err(error), Answer::Badarg) if error.what != Fault::TooDeep => return Ok(false),
        (Err(error), Answer::SystemLimit) if error.what == Fault::TooDeep => return Ok(false),
        (Err(error), _) => return Err(format!("refused: {error}")),
        (Ok(_), Answer::Badarg | Answer::SystemLimit) => return Err("compiles".into()),
        (Ok(program), _) => program,
    };
    let found = run_as(&program, &Term::from(object), me);
    match (&found, &answer) {
        (None, Answer::NoMatch) => {}
        (Some(found), Answer::Result(wanted)) if plain(found.as_ref()) == plain(*wanted) => {}
        (None, _) => return Err("does not fit".into()),
        (Some(found), _) => return Err(format!("gives {found}")),
    }
    check_stored(&program, object, found.as_ref(), me).map(|()| true)
}

/// The matcher gives what the program gives, and its filter doesn't reject what matches.
fn check_matcher(
    program: &Program,
    stored: &ObjectBuf,
    (keypos, access): (usize, KeyAccess),
    tuple: TermRef<'_>,
    context: &Context<'_>,
    found: Option<&Term>,
) -> Result<(), String> {
    let matcher = program.matcher(keypos, access);
    let mut verdict = Verdict::Unknown;
    if let Some(filter) = matcher.filter() {
        filter.judge([stored.unopened()].into_iter(), |_, _, said| verdict = said);
    }
    let wanted = found.map(|term| plain(term.as_ref()));
    let is_true = found.is_some_and(|term| term.as_ref().as_atom() == Some(atoms::TRUE));
    if verdict == Verdict::Rejected {
        return match found {
            None => Ok(()),
            Some(_) => Err("the filter rejects it".into()),
        };
    }
    let (mut plain_bytes, mut scratch) = (Vec::new(), Scratch::new());
    let view = stored.view(keypos, &mut plain_bytes);
    let show = |shown: Shown<'_>| match shown {
        Shown::Object => plain(tuple),
        Shown::Term(term) => plain(term),
        Shown::Built(term) => plain(made(term).as_ref()),
    };
    let given = matcher.show(&view, verdict, context, &mut scratch, show);
    if given != wanted {
        return Err(format!(
            "the filter says {verdict:?}, the matcher {given:?}"
        ));
    }
    if is_true != matcher.is_true(&view, verdict, context, &mut scratch) {
        return Err(format!(
            "the filter says {verdict:?}; is it true? {}",
            !is_true
        ));
    }
    let known = match matcher.known(verdict) {
        None => return Ok(()),
        Some(Known::True) => is_true,
        Some(Known::Object) => given == Some(plain(tuple)),
    };
    known
        .then_some(())
        .ok_or_else(|| "it is known wrongly".into())
}

/// Makes a term of the next parts, as a host does.
fn made(term: &mut BuiltTerm<'_, '_>) -> Term {
    match term.next_part() {
        BuiltPart::Tuple(arity) => {
            let elements: Vec<Term> = (0..arity).map(|_| made(term)).collect();
            Term::tuple(elements)
        }
        BuiltPart::List(count) => {
            let elements: Vec<Term> = (0..count).map(|_| made(term)).collect();
            Term::list(elements)
        }
        BuiltPart::Term(run) => Term::from(run.term()),
    }
}

/// A stored object gives the same, and the plan covers it.
fn check_stored(
    program: &Program,
    tuple: TermRef<'_>,
    found: Option<&Term>,
    me: &Term,
) -> Result<(), String> {
    let arity = tuple.as_tuple().unwrap().arity();
    let legacy_zero = larder_term::legacy_zero();
    for keypos in 1..=arity {
        for (form, access, is_packed) in [
            (KeyForm::Hash { legacy_zero }, KeyAccess::Hash, false),
            (KeyForm::Ordered, KeyAccess::Ordered, false),
            (KeyForm::Hash { legacy_zero }, KeyAccess::Hash, true),
        ] {
            let mut stored = ObjectBuf::new();
            object::encode(tuple, keypos, form, is_packed, &mut stored).unwrap();
            let mut plain_bytes = Vec::new();
            let view = stored.view(keypos, &mut plain_bytes);
            let context = Context {
                self_pid: me.as_ref(),
                node: atoms::NONODE,
            };
            let mut scratch = Scratch::new();
            let outcome = program.run(&view, &context, &mut scratch);
            let same = match (outcome, found) {
                (None, None) => true,
                (Some(Outcome::Object), Some(wanted)) => plain(wanted.as_ref()) == plain(tuple),
                (Some(Outcome::Term(term)), Some(wanted)) => plain(wanted.as_ref()) == plain(term),
                _ => false,
            };
            if !same {
                return Err(format!("stored with its key at {keypos} ({form:?}) it gives {outcome:?}, apart {found:?}"));
            }
            let is_true = program.is_true(&view, &context, &mut scratch);
            if is_true != found.is_some_and(|term| term.as_ref().as_atom() == Some(atoms::TRUE)) {
                return Err(format!(
                    "stored with its key at {keypos} ({form:?}): is it true? {is_true}"
                ));
            }
            check_matcher(program, &stored, (keypos, access), tuple, &context, found)
                .map_err(|what| format!("stored with its key at {keypos} ({form:?}): {what}"))?;
            let plan = program.plan(keypos, access);
            if found.is_some()
                && !plan.covers(tuple.as_tuple().unwrap().get(keypos - 1).unwrap(), access)
            {
                return Err(format!("the plan for keys at {keypos} misses it: {plan:?}"));
            }
        }
    }
    Ok(())
}
