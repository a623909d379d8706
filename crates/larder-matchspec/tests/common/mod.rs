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
    let mut scratch = Scratch::new();
    let found = match program.run_term(object.as_ref(), &context, &mut scratch)? {
        Outcome::Object => object.clone(),
        Outcome::Term(term) => Term::from(term),
    };
    Some(found)
}
