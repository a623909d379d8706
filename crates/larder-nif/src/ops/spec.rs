//! Match specifications as compiled programs.

use crate::atoms;
use crate::call::{boolean, Call, Raise, Reply, BADARG};
use crate::encode::{self, list_cell};
use crate::resource::Kind;
use crate::sys::*;
use crate::{decode, entry, identifiers, layout};
use larder::Budget;
use larder_matchspec::{compile_pattern, Context, Fault, Outcome, Pattern, Program, Scratch};
use larder_term::{Mode, Term, TermBuf};
use std::sync::Arc;

/// A compiled match specification as a resource.
pub struct Compiled(pub Arc<Program>);

/// Compiled match specifications.
pub static PROGRAMS: Kind<Compiled> = Kind::new();

/// What programs ask of the host, in the host's words.
pub struct Surroundings {
    me: Term,
    node: larder_term::Atom,
}

impl Surroundings {
    /// Those of the running call.
    pub fn new(call: &Call<'_>) -> Result<Self, Raise> {
        let me = super::options::owned(call, call.self_pid().pid)?;
        Ok(Surroundings {
            me,
            node: identifiers::here(call.env).name.name,
        })
    }

    /// As programs want them.
    pub fn context(&self) -> Context<'_> {
        Context {
            self_pid: self.me.as_ref(),
            node: self.node,
        }
    }
}

fn taken(call: &Call<'_>, word: Word) -> Result<TermBuf, Raise> {
    let mut buffer = TermBuf::new(Mode::Shared);
    buffer
        .encode(|out| encode::term(call.env, word, out))
        .map_err(|_| BADARG)?;
    Ok(buffer)
}

/// Compiles a match specification.
pub fn compile(call: &Call<'_>, spec: Word) -> Result<Arc<Program>, Raise> {
    let spec = taken(call, spec)?;
    match Program::compile(spec.term().ok_or(BADARG)?) {
        Ok(program) => Ok(Arc::new(program)),
        Err(error) if error.what == Fault::TooDeep => Err(Raise::Cause(atoms::SYSTEM_LIMIT)),
        Err(_) => Err(BADARG),
    }
}

/// What a table takes `[]` for, which is no match specification elsewhere: nothing fits. An object always has a key, so none is `{}`.
pub fn nothing() -> Result<Arc<Program>, Raise> {
    let (head, guards, body) = (
        Term::tuple::<Term>([]),
        Term::nil(),
        Term::list([Term::atom("$_")]),
    );
    let spec = Term::list([Term::tuple([head, guards, body])]);
    Program::compile(spec.as_ref())
        .map(Arc::new)
        .map_err(|_| BADARG)
}

/// Compiles a pattern of match or match_object.
pub fn pattern(call: &Call<'_>, pattern: Word, what: Pattern) -> Result<Arc<Program>, Raise> {
    let pattern = taken(call, pattern)?;
    compile_pattern(pattern.term().ok_or(BADARG)?, what)
        .map(Arc::new)
        .map_err(|_| BADARG)
}

/// compile(Spec) -> reference().
pub fn compile_ref(call: &Call<'_>) -> Reply {
    let program = compile(call, call.args[0])?;
    Ok(PROGRAMS.make(Compiled(program)).term(call.env))
}

/// is_compiled(Term) -> boolean().
pub fn is_compiled(call: &Call<'_>) -> Reply {
    Ok(boolean(PROGRAMS.get(call.env, call.args[0]).is_some()))
}

/// run(List, Compiled, Acc) -> the results for the list's terms, reversed onto Acc.
pub fn run(call: &Call<'_>) -> Reply {
    let program = &PROGRAMS.get(call.env, call.args[1]).ok_or(BADARG)?.0;
    let around = Surroundings::new(call)?;
    let mut scratch = Scratch::default();
    let mut budget = Budget::slice();
    let (mut rest, mut done) = (call.args[0], call.args[2]);
    let mut buffer = TermBuf::new(Mode::Shared);
    while let Some((tuple, tail)) = list_cell(call.env, rest) {
        buffer
            .encode(|out| encode::term(call.env, tuple, out))
            .map_err(|_| BADARG)?;
        let row = buffer.term().ok_or(BADARG)?;
        let result = match program.run_term(row, &around.context(), &mut scratch) {
            Some(Outcome::Object) => Some(tuple),
            Some(Outcome::Term(term)) => Some(decode::term(call.env, term)),
            None => None,
        };
        if let Some(result) = result {
            // SAFETY: the environment is the running call's, and so are both terms.
            done = unsafe { enif_make_list_cell(call.env, result, done) };
        }
        rest = tail;
        if !budget.spend(1) && list_cell(call.env, rest).is_some() {
            return Ok(call.later(entry::run, &[rest, call.args[1], done]));
        }
    }
    call.spent(budget.spent());
    if rest == layout::NIL {
        Ok(done)
    } else {
        Err(BADARG)
    }
}

/// test(Tuple, Spec) -> {ok, Result} | false: a specification tried on a term.
pub fn test(call: &Call<'_>) -> Reply {
    let program = compile(call, call.args[1])?;
    let row = taken(call, call.args[0])?;
    let around = Surroundings::new(call)?;
    let mut scratch = Scratch::default();
    let outcome = program.run_term(row.term().ok_or(BADARG)?, &around.context(), &mut scratch);
    Ok(match outcome {
        Some(Outcome::Object) => call.tuple(&[atoms::OK.word(), call.args[0]]),
        Some(Outcome::Term(term)) => call.tuple(&[atoms::OK.word(), decode::term(call.env, term)]),
        None => atoms::FALSE.word(),
    })
}
