//! What the tests of this crate share: terms from text, and running a specification on one.

use larder_matchspec::{CompileError, Context, Outcome, Program, Scratch};
use larder_term::{atoms, Node, Term};

/// A term in Erlang's syntax.
pub fn term(text: &str) -> Term {
    text.parse()
        .unwrap_or_else(|error| panic!("{text}: {error:?}"))
}

/// A program.
#[allow(dead_code)]
pub fn program(spec: &str) -> Program {
    Program::compile(term(spec).as_ref()).unwrap_or_else(|error| panic!("{spec}: {error}"))
}

/// The fault of a specification.
#[allow(dead_code)]
pub fn fault(spec: &str) -> CompileError {
    match Program::compile(term(spec).as_ref()) {
        Err(error) => error,
        Ok(_) => panic!("{spec} compiles"),
    }
}

/// What a program makes of an object.
#[allow(dead_code)]
pub fn run(program: &Program, object: &Term) -> Option<Term> {
    run_as(program, object, &Term::pid(Node::Local, 9, 0))
}

/// The same, with a pid for `{self}`.
pub fn run_as(program: &Program, object: &Term, me: &Term) -> Option<Term> {
    let context = Context {
        self_pid: me.as_ref(),
        node: atoms::NONODE,
    };
    let result = |row: &Term| {
        let mut scratch = Scratch::new();
        Some(
            match program.run_term(row.as_ref(), &context, &mut scratch)? {
                Outcome::Object => object.clone(),
                Outcome::Term(term) => Term::from(term),
            },
        )
    };
    let found = result(object);
    // Elements that the program doesn't look at have no influence.
    if let (Some(positions), Some(tuple)) = (program.positions_read(), object.as_ref().as_tuple()) {
        let elements = tuple.iter().enumerate().map(|(index, element)| {
            match positions.contains(&(index + 1)) {
                true => Term::from(element),
                false => Term::nil(),
            }
        });
        assert_eq!(result(&Term::tuple(elements)), found, "{object}");
    }
    found
}
