//! Match specifications as compiled programs.

use super::single::weight;
use crate::call::{boolean, Call, Raise, Reply, BADARG};
use crate::entry;
use crate::layout::{self, node};
use crate::resource::Registered;
use crate::sys::*;
use crate::terms::atoms;
use crate::terms::decode;
use crate::terms::encode;
use larder::Budget;
use larder_matchspec::{
    compile_pattern, BoundKey, CompileError, Context, Fault, Outcome, Pattern, Program, Scratch,
};
use larder_term::{Mode, Term, TermBuf, TermRef};
use std::cell::{Cell, RefCell};
use std::sync::Arc;

/// A compiled match specification as a resource.
pub struct Compiled(pub Arc<Program>);

/// Compiled match specifications.
pub static PROGRAMS: Registered<Compiled> = Registered::new();

/// What a program asks of the host, in the host's words: nothing, for most programs.
pub struct Surroundings(Option<(Term, larder_term::Atom)>);

impl Surroundings {
    /// Those of the running call, as far as the program asks for them.
    pub fn new(call: &Call<'_>, program: &Program) -> Result<Self, Raise> {
        if !program.asks_context() {
            return Ok(Self::none());
        }
        let me = super::options::owned(call, call.self_pid().pid)?;
        let node = node::look_here(call.env).name.name;
        Ok(Surroundings(Some((me, node))))
    }

    /// None: for a scan without a program.
    pub fn none() -> Self {
        Surroundings(None)
    }

    /// As programs want them.
    pub fn context(&self) -> Context<'_> {
        match &self.0 {
            Some((me, node)) => Context {
                self_pid: me.as_ref(),
                node: *node,
            },
            None => Context::none(),
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

/// What a program is made of: a match specification, or a pattern and what becomes of the rows that
/// fit.
pub type What = Option<Pattern>;

/// A program that was compiled on this thread, and what of. Specifications that hold handles are
/// not kept: a handle has other bytes each time.
struct Kept {
    what: What,
    bytes: Box<[u8]>,
    program: Arc<Program>,
}

/// How many programs a thread keeps.
const KEPT: usize = 64;
/// The longest specification that is kept, in bytes.
const LONGEST_KEPT: usize = 512;

thread_local! {
    /// The programs that were compiled last, by a hash of what they were made of. A specification
    /// that is used again and again (most are written in a module's text) is encoded each time, but
    /// compiled once.
    static PROGRAMS_KEPT: RefCell<Vec<Option<Kept>>> = const { RefCell::new(Vec::new()) };
    /// Where specifications are encoded.
    static SPEC: Cell<Option<TermBuf>> = const { Cell::new(None) };
    /// Where what is left of a specification without its key is put together.
    static REST: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// The place of a specification among those kept: any place will do, but the same each time.
fn place(bytes: &[u8], what: What) -> usize {
    let seed = what.map_or(0, |pattern| pattern as u64 + 1);
    let mix = |hash: u64, word: u64| {
        (hash ^ word)
            .wrapping_mul(0x9E37_79B9_7F4A_7C15)
            .rotate_left(29)
    };
    let words = bytes.chunks_exact(8);
    let rest = words.remainder().iter().map(|&byte| u64::from(byte));
    let words = words.map(|word| word.try_into().map_or(0, u64::from_le_bytes));
    let hash = words.chain(rest).fold(seed, mix);
    (hash >> 7) as usize % KEPT
}

/// The program for a specification that was encoded: one that is kept, or a new one. `keeps`:
/// whether it may be kept.
fn program_of(spec: TermRef<'_>, what: What, keeps: bool) -> Result<Arc<Program>, CompileError> {
    let bytes = spec.bytes();
    let make = || {
        Ok(Arc::new(match what {
            None => Program::compile(spec)?,
            Some(pattern) => compile_pattern(spec, pattern)?,
        }))
    };
    if bytes.len() > LONGEST_KEPT || !keeps {
        return make();
    }
    PROGRAMS_KEPT.with_borrow_mut(|kept| {
        kept.resize_with(KEPT, || None);
        let slot = &mut kept[place(bytes, what)];
        if let Some(kept) = slot {
            if kept.what == what && *kept.bytes == *bytes {
                return Ok(Arc::clone(&kept.program));
            }
        }
        let program = make()?;
        *slot = Some(Kept {
            what,
            bytes: bytes.into(),
            program: Arc::clone(&program),
        });
        Ok(program)
    })
}

/// What a specification came to.
pub struct Prepared<'a> {
    /// The key of what it looks for, if it names one: then the program is that for the rest of it.
    pub key: Option<TermRef<'a>>,
    /// Its program.
    pub program: Arc<Program>,
}

/// Calls `f` with what a specification that is a term of the host comes to. With a position of the
/// key, its key and its rest are told apart.
pub fn prepare<R>(
    call: &Call<'_>,
    word: Word,
    what: What,
    keypos: Option<usize>,
    f: impl FnOnce(Prepared<'_>) -> Result<R, Raise>,
) -> Result<R, Raise> {
    let mut buffer = SPEC.take().unwrap_or_else(|| TermBuf::new(Mode::Shared));
    buffer
        .encode(|out| encode::term(call.env, word, out))
        .map_err(|_| BADARG)?;
    let spec = buffer.term().ok_or(BADARG)?;
    let plain = !spec.has_handles();
    let bound = keypos.and_then(|keypos| match what {
        None => BoundKey::of_spec(spec, keypos),
        Some(_) => BoundKey::of_pattern(spec, keypos),
    });
    let program = match &bound {
        None => program_of(spec, what, plain),
        Some(bound) => {
            let mut rest = REST.take();
            let without = bound.write_rest(&mut rest);
            let program = program_of(without, what, plain || !without.has_handles());
            if rest.capacity() <= LONGEST_KEPT {
                REST.set(rest);
            }
            program
        }
    };
    let program = program.map_err(|error| match (what, error.what) {
        (None, Fault::TooDeep) => Raise::Cause(atoms::SYSTEM_LIMIT),
        _ => BADARG,
    })?;
    let key = bound.map(|bound| bound.key);
    let result = f(Prepared { key, program });
    // A buffer that holds handles would keep alive what they lead to.
    if plain && spec.bytes().len() <= LONGEST_KEPT {
        SPEC.set(Some(buffer));
    }
    result
}

/// The program for a specification that is a term of the host.
fn program(call: &Call<'_>, word: Word, what: What) -> Result<Arc<Program>, Raise> {
    prepare(call, word, what, None, |prepared| Ok(prepared.program))
}

/// Compiles a match specification.
pub fn compile(call: &Call<'_>, spec: Word) -> Result<Arc<Program>, Raise> {
    program(call, spec, None)
}

/// What a table takes `[]` for, which is no match specification elsewhere: nothing fits. An object
/// always has a key, so none is `{}`.
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
    let around = Surroundings::new(call, program)?;
    let mut scratch = Scratch::default();
    let mut budget = Budget::slice();
    let (mut rest, mut done) = (call.args[0], call.args[2]);
    let mut buffer = TermBuf::new(Mode::Shared);
    while let Some((tuple, tail)) = layout::cell(rest) {
        buffer
            .encode(|out| encode::term(call.env, tuple, out))
            .map_err(|_| BADARG)?;
        let row = buffer.term().ok_or(BADARG)?;
        let result = match program.run_term(row, &around.context(), &mut scratch) {
            Some(Outcome::Object) => Some(tuple),
            Some(Outcome::Term(term)) => Some(decode::term(&call.heap, term)),
            None => None,
        };
        if let Some(result) = result {
            // SAFETY: the environment is the running call's, and so are both terms.
            done = unsafe { enif_make_list_cell(call.env, result, done) };
        }
        rest = tail;
        let weight = weight(row.bytes().len(), row.outside_bytes());
        if !budget.spend(1 + (weight / 128) as u32) && layout::cell(rest).is_some() {
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
    let around = Surroundings::new(call, &program)?;
    let mut scratch = Scratch::default();
    let outcome = program.run_term(row.term().ok_or(BADARG)?, &around.context(), &mut scratch);
    Ok(match outcome {
        Some(Outcome::Object) => call.tuple(&[atoms::OK.word(), call.args[0]]),
        Some(Outcome::Term(term)) => {
            call.tuple(&[atoms::OK.word(), decode::term(&call.heap, term)])
        }
        None => atoms::FALSE.word(),
    })
}
