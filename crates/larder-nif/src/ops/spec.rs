//! Match specifications: from the emulator's terms to programs.
//!
//! A call's specification is read in one pass as a *template*, which is the specification without
//! its constants, and its *arguments*, which are the constants (`larder_matchspec::template`). The
//! thread keeps the code of the templates that it has compiled last. So calls whose specifications
//! differ in constants alone compile nothing:
//!
//! 1. Read the template and the arguments off the emulator's terms (`Words`).
//! 2. Find the template's code, or compile it (`CodeCache::code`).
//! 3. Encode the arguments, and make a program of code and arguments.
//!
//! A specification that can't be read so is encoded as a term and compiled as a whole
//! (`compile_whole`).

use super::single::weight;
use crate::call::{self, boolean, Call, Raise, Reply, BADARG};
use crate::entry;
use crate::layout::{self, node, Kind};
use crate::resource::{Registered, ResourceRef};
use crate::sys::*;
use crate::tables::off_scheduler;
use crate::terms::atoms;
use crate::terms::decode;
use crate::terms::encode::{self, stack_bytes, Unreadable, Writer};
use crate::terms::trees;
use larder::host::Budget;
use larder_matchspec::{
    compile_pattern, ArgumentTerms, Class, Code, CompileError, Context, Fault, MapPairs, Outcome,
    PatternResult, Prepared, Program, Scratch, Template, TermShape, Terms, Value, Values,
    LONGEST_PLAIN,
};
use larder_term::{Atom, Mode, Term, TermBuf, TermRef};
use smallvec::SmallVec;
use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;

/// The resource type of compiled match specifications.
pub static PROGRAMS: Registered<Program> = Registered::new();

/// The resource type of match specifications with parameters.
pub static PREPARED: Registered<Prepared> = Registered::new();

/// What a program asks about its host: the calling process and the node. Most programs ask nothing.
pub struct CallerContext(Option<(Term, larder_term::Atom)>);

impl CallerContext {
    /// Those of the running call, if the program asks for them.
    pub fn new(call: &Call<'_>, program: &Program) -> Result<Self, Raise> {
        if !program.asks_context() {
            return Ok(Self::none());
        }
        let me = super::options::owned(call, call.self_pid().pid)?;
        let node = node::look_here(call.env).name.name;
        Ok(CallerContext(Some((me, node))))
    }

    /// None: for a scan without a program.
    pub fn none() -> Self {
        CallerContext(None)
    }

    /// The same as a context for running the program.
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

/// What a program is compiled from: a match specification (`None`), or a pattern, with the result
/// for a row that matches it.
pub type ProgramSource = Option<PatternResult>;

/// The number of sets of slots in which a thread keeps code. A template's hash chooses its set.
const SETS: usize = 128;
/// The number of slots of a set, each for the code of one template.
const SLOTS: usize = 4;
/// The longest template of which many are kept, in bytes.
const LONGEST_KEPT: usize = 512;
/// The most bytes of all templates that are kept, but the long one.
const MOST_KEPT: usize = 32 << 10;
/// The longest template that is kept, in bytes. Code may have a hundred times as many bytes, so of
/// the templates that are longer than `LONGEST_KEPT` a thread keeps the last one alone: that of a
/// program that reads or removes many keys at once, by a clause for each.
const LONGEST_ALONE: usize = 4 << 10;
/// The longest specification that is compiled and planned on a normal scheduler, in bytes. Both
/// can't be cut in slices, and take some milliseconds for this size.
const LONG: usize = 16 << 10;

/// What became of a template.
enum Compiled {
    Code(Arc<Code>),
    /// It can't be compiled.
    Refused(Box<(Template, CompileError)>),
}

impl Compiled {
    /// The code of a template, or why there is none. `None`: this is of another template.
    #[inline]
    fn of(&self, template: &Template) -> Option<Result<Arc<Code>, CompileError>> {
        match self {
            Compiled::Code(code) => code.is_of(template).then(|| Ok(Arc::clone(code))),
            Compiled::Refused(refused) => {
                let (other, error) = &**refused;
                (other == template).then(|| Err(error.clone()))
            }
        }
    }
}

/// A slot for what became of a template.
#[derive(Default)]
struct CodeSlot {
    kept: Option<Compiled>,
    /// The size of the template.
    size: usize,
    /// The program, if a term has referred to it, and the code has no arguments.
    program: Option<ResourceRef<Program>>,
}

/// A thread's cache of code, and its buffers.
#[derive(Default)]
struct CodeCache {
    /// What became of templates: the slots of each set, and after them the slot of the last long
    /// template. Empty until the first call.
    slots: Vec<CodeSlot>,
    /// The sizes of all templates, but the long one.
    kept: usize,
    /// The slot at which the next search for one to forget begins.
    hand: usize,
    /// The buffer for the template of the current call.
    template: Template,
    /// The buffer for an encoded value of a parameter.
    buffer: TermBuf,
}

thread_local! {
    static CODE_CACHE: RefCell<CodeCache> = RefCell::default();
}

/// The emulator's terms, as the reader of templates sees them.
struct Words(*mut Env);

impl Terms for Words {
    type Term = Word;

    #[inline]
    fn shape(&self, word: Word) -> TermShape<Word> {
        // The most frequent kinds come first.
        if let Some((head, tail)) = layout::cell(word) {
            return TermShape::Cell(head, tail);
        }
        if layout::is_atom(word) {
            return TermShape::Atom(Atom::trusted(atoms::id_of(self.0, word)));
        }
        if word == layout::NIL {
            return TermShape::Nil;
        }
        if !layout::is_boxed(word) {
            let is_small = layout::small(word).is_some();
            return TermShape::Leaf(if is_small { Class::Int } else { Class::Other });
        }
        match layout::kind(word) {
            Kind::Tuple => TermShape::Tuple(layout::tuple(word).map_or(0, <[Word]>::len)),
            Kind::Map => TermShape::Map,
            Kind::Float => TermShape::Leaf(Class::Float),
            // A short binary on the heap has one form, so it can be compared by its bytes.
            Kind::HeapBinary => {
                let bytes = layout::heap_binary(word);
                TermShape::Leaf(match bytes {
                    Some(bytes) if bytes.len() <= LONGEST_PLAIN => Class::Plain,
                    _ => Class::Other,
                })
            }
            // These include integers of 64 bits. They are compared correctly as `Other`, too.
            Kind::Positive | Kind::Negative => TermShape::Leaf(Class::Other),
            Kind::Other if self.is_map(word) => TermShape::Map,
            _ => TermShape::Leaf(Class::Other),
        }
    }

    #[inline]
    fn elements(&self, word: Word) -> impl Iterator<Item = Word> {
        layout::tuple(word).unwrap_or(&[]).iter().copied()
    }

    fn pairs(&self, word: Word) -> Option<MapPairs<Word>> {
        // The order of small maps is that of the encoding if it has been verified to be.
        if !trees::is_order_known() {
            return None;
        }
        if let Some((keys, values)) = layout::flatmap(word) {
            let pairs = keys.iter().zip(values);
            return Some(pairs.map(|(&key, &value)| (key, value)).collect());
        }
        let mut tree = trees::Tree::default();
        trees::read(word, &mut tree)?;
        tree.pairs.iter().map(|&cell| layout::cell(cell)).collect()
    }

    fn write(&self, word: Word, out: &mut Vec<u8>) -> bool {
        // A term with handles can't be part of a template, whose bytes may be kept.
        let copied = encode::copied(self.0, word).ok();
        let term = copied.as_ref().and_then(TermBuf::term);
        let plain = term.filter(|term| !term.has_handles());
        plain
            .inspect(|term| out.extend_from_slice(term.bytes()))
            .is_some()
    }
}

impl Words {
    /// Whether a term of unknown layout is a map. The emulator would end the node if it were asked
    /// for the type of a strange kind.
    #[cold]
    fn is_map(&self, word: Word) -> bool {
        // SAFETY: the environment and the term are the running call's, and of a kind that the
        // emulator has a type for.
        !layout::is_strange(word) && unsafe { enif_term_type(self.0, word) == term_type::MAP }
    }
}

/// The program for a specification: a list of clauses, or {Prepared, Values}.
pub fn program(call: &Call<'_>, word: Word, source: ProgramSource) -> Result<Program, Raise> {
    let program = match (source, layout::tuple(word)) {
        (None, Some(&[prepared, values])) => bound(call, prepared, values)?,
        _ => CODE_CACHE.with_borrow_mut(|cache| cache.program(call, word, source))?,
    };
    plans_off_scheduler(call, &program)?;
    Ok(program)
}

/// Moves a call that plans by a large program to a dirty scheduler.
#[inline]
pub fn plans_off_scheduler(call: &Call<'_>, program: &Program) -> Result<(), Raise> {
    off_scheduler(call, program.size() > LONG)
}

/// Binds a list of values to the parameters of a prepared specification.
fn bound(call: &Call<'_>, prepared: Word, values: Word) -> Result<Program, Raise> {
    let prepared = PREPARED.get(call, prepared).ok_or(BADARG)?;
    // The number of values is checked while they are read: a list of any length may come.
    let mut words = SmallVec::<[Word; 8]>::new();
    call::each(values, |value| match words.len() < prepared.parameters() {
        true => {
            words.push(value);
            Ok(())
        }
        false => Err(BADARG),
    })?;
    CODE_CACHE.with_borrow_mut(|cache| {
        // The thread's buffers are borrowed for as long as values are encoded.
        let (env, words) = (call.env, &words[..]);
        let mut given = ParameterValues { cache, env, words };
        let program = prepared.bind(words.len(), &mut given);
        cache.buffer.clear();
        cache.tidy();
        program.map_err(|_| BADARG)
    })
}

/// The values of parameters, as terms of the emulator.
struct ParameterValues<'a> {
    cache: &'a mut CodeCache,
    env: *mut Env,
    words: &'a [Word],
}

impl Values for ParameterValues<'_> {
    type Error = Raise;

    #[inline]
    fn value(&mut self, index: usize) -> Result<Value<'_>, Raise> {
        let word = self.words[index];
        match layout::small(word) {
            Some(n) => Ok(Value::Int(n)),
            None => self.cache.encoded(self.env, word).map(Value::Term),
        }
    }
}

impl CodeCache {
    /// The program for a specification or a pattern; see the module's steps.
    fn program(
        &mut self,
        call: &Call<'_>,
        word: Word,
        source: ProgramSource,
    ) -> Result<Program, Raise> {
        let env = call.env;
        // 1. Read the template, and collect the arguments.
        let (words, mut found) = (Words(env), ArgumentTerms::new());
        let is_read = match source {
            None => self.template.read(&words, word, &mut found),
            Some(pattern) => {
                let body = pattern.body();
                self.template.read_pattern(&words, word, body, &mut found)
            }
        };
        if !is_read {
            self.tidy_template();
            return compile_whole(call, word, source);
        }
        if self.template.size() > LONG {
            if let Err(dirty) = off_scheduler(call, true) {
                self.tidy_template();
                return Err(dirty);
            }
        }
        // 2. Find or compile the code.
        let code = match self.code() {
            Ok(code) => code,
            Err(error) => {
                // No code has taken the buffer over.
                self.tidy_template();
                return Err(refusal(source, &error));
            }
        };
        // 3. Encode the arguments.
        Program::new(code, |arguments| {
            for word in found {
                match layout::small(word) {
                    Some(n) => arguments.push_int(n),
                    None => {
                        // Encode the term on the stack. `push` copies it, and takes its own counts
                        // of the handles.
                        let mut stack = stack_bytes();
                        let mut written = Writer::at(&mut stack, env, Mode::Shared);
                        written.term(word)?;
                        arguments.push(written.as_term());
                    }
                }
            }
            Ok::<(), Unreadable>(())
        })
        .ok_or(BADARG)
    }

    /// Frees the buffer if an unusually large argument has made it grow.
    #[inline]
    fn tidy(&mut self) {
        if self.buffer.capacity() > LONGEST_KEPT {
            self.buffer = TermBuf::default();
        }
    }

    /// As `tidy`, for the buffer of templates.
    #[cold]
    fn tidy_template(&mut self) {
        if self.template.size() > LONGEST_KEPT {
            self.template = Template::default();
        }
    }

    /// Encodes a term in the buffer.
    fn encoded(&mut self, env: *mut Env, word: Word) -> Result<TermRef<'_>, Raise> {
        self.buffer.encode(|out| encode::term(env, word, out))?;
        self.buffer.term().ok_or(BADARG)
    }

    /// Step 2: the code of the template, from the cache or newly compiled.
    #[inline]
    fn code(&mut self) -> Result<Arc<Code>, CompileError> {
        let slots = slots_of(&self.template);
        // Templates of one set may have the same hash, so compare them.
        let mut kept = self.slots.get(slots.clone()).into_iter().flatten();
        kept.find_map(|slot| slot.kept.as_ref()?.of(&self.template))
            .unwrap_or_else(|| self.compile(slots))
    }

    /// A program without arguments as a resource, which all of its code share: the emulator frees
    /// each resource by a task of its own, which takes longer than compiling.
    #[inline(never)]
    fn shared(&mut self, program: Program) -> ResourceRef<Program> {
        let slot = program.only_code().and_then(|code| {
            let slots = self.slots.get_mut(slots_of(code.template()))?;
            slots.iter_mut().find(
                |slot| matches!(&slot.kept, Some(Compiled::Code(kept)) if Arc::ptr_eq(kept, code)),
            )
        });
        match slot {
            Some(slot) => {
                let shared = slot.program.get_or_insert_with(|| PROGRAMS.make(program));
                shared.clone()
            }
            None => PROGRAMS.make(program),
        }
    }

    /// Compiles the template, and keeps the code in one of these slots.
    #[inline(never)]
    fn compile(&mut self, slots: Range<usize>) -> Result<Arc<Code>, CompileError> {
        let size = self.template.size();
        // The code takes over the buffer, if there is any.
        let code = Code::compile(&mut self.template).map(Arc::new);
        // Very long templates aren't kept, as their code would keep much memory alive.
        if size > LONGEST_ALONE {
            return code;
        }
        if self.slots.is_empty() {
            self.slots.resize_with(SETS * SLOTS + 1, CodeSlot::default);
        }
        // Forget the one whose turn it is, if all slots are in use.
        let is_free = |&slot: &usize| self.slots[slot].kept.is_none();
        self.hand += 1;
        let turn = slots.start + self.hand % slots.len();
        let slot = slots.clone().find(is_free).unwrap_or(turn);
        self.forget(slot);
        self.slots[slot] = CodeSlot {
            kept: Some(match &code {
                Ok(code) => Compiled::Code(Arc::clone(code)),
                Err(error) => Compiled::Refused(Box::new((self.template.clone(), error.clone()))),
            }),
            size,
            program: None,
        };
        if size <= LONGEST_KEPT {
            self.kept += size;
            // Forget others if all of them are too long. The hand goes from slot to slot.
            while self.kept > MOST_KEPT {
                self.hand = (self.hand + 1) % (SETS * SLOTS);
                if self.hand != slot {
                    self.forget(self.hand);
                }
            }
        }
        code
    }

    /// Forgets what is kept in a slot.
    fn forget(&mut self, slot: usize) {
        let forgotten = std::mem::take(&mut self.slots[slot]);
        if slot < SETS * SLOTS {
            self.kept -= forgotten.size;
        }
    }
}

/// The slots where a template may be kept.
#[inline]
fn slots_of(template: &Template) -> Range<usize> {
    match template.size() <= LONGEST_KEPT {
        true => {
            let first = template.hash() as usize % SETS * SLOTS;
            first..first + SLOTS
        }
        false => SETS * SLOTS..SETS * SLOTS + 1,
    }
}

/// The program as a resource, to which terms refer.
pub fn reference(program: Program) -> ResourceRef<Program> {
    match program.only_code() {
        None => PROGRAMS.make(program),
        Some(_) => CODE_CACHE.with_borrow_mut(|cache| cache.shared(program)),
    }
}

/// Compiles a specification as a whole, with its constants.
#[cold]
fn compile_whole(call: &Call<'_>, word: Word, source: ProgramSource) -> Result<Program, Raise> {
    // The term is only needed while it is compiled.
    let buffer = encode::copied(call.env, word)?;
    let spec = long_off_scheduler(call, &buffer)?;
    let program = match source {
        None => Program::compile(spec),
        Some(pattern) => compile_pattern(spec, pattern),
    };
    program.map_err(|error| refusal(source, &error))
}

/// The encoded specification. If it is long, moves the call that compiles it to a dirty scheduler.
fn long_off_scheduler<'b>(call: &Call<'_>, buffer: &'b TermBuf) -> Result<TermRef<'b>, Raise> {
    let spec = buffer.term().ok_or(BADARG)?;
    off_scheduler(call, spec.bytes().len() > LONG)?;
    Ok(spec)
}

/// The error for a specification that doesn't compile.
#[cold]
fn refusal(source: ProgramSource, error: &CompileError) -> Raise {
    match (source, &error.what) {
        (None, Fault::TooDeep) => Raise::Cause(atoms::SYSTEM_LIMIT),
        _ => BADARG,
    }
}

/// The program for `[]` in a select, which matches nothing. (Elsewhere `[]` is no match
/// specification.) Its head is `{}`, and no object is, since each has a key.
pub fn nothing() -> Result<Program, Raise> {
    let (head, guards, body) = (
        Term::tuple::<Term>([]),
        Term::nil(),
        Term::list([Term::atom("$_")]),
    );
    let spec = Term::list([Term::tuple([head, guards, body])]);
    Program::compile(spec.as_ref()).map_err(|_| BADARG)
}

/// compile(Spec) -> reference().
pub fn compile_ref(call: &Call<'_>) -> Reply {
    let program = program(call, call.args[0], None)?;
    Ok(reference(program).term(call.env))
}

/// Compiles a match specification with parameters.
fn prepared(call: &Call<'_>, word: Word) -> Result<Result<Prepared, CompileError>, Raise> {
    let buffer = encode::copied(call.env, word)?;
    Ok(Prepared::compile(long_off_scheduler(call, &buffer)?))
}

/// prepare(Spec) -> reference().
pub fn prepare(call: &Call<'_>) -> Reply {
    let prepared = prepared(call, call.args[0])?;
    let prepared = prepared.map_err(|error| refusal(None, &error))?;
    Ok(PREPARED.make(prepared).term(call.env))
}

/// parameters(Term) -> Count | false: the number of parameters of a specification that prepare/1
/// has returned.
pub fn parameters(call: &Call<'_>) -> Reply {
    let prepared = PREPARED.get(call, call.args[0]);
    Ok(prepared.map_or(atoms::FALSE.word(), |prepared| {
        call.int(prepared.parameters() as i64)
    }))
}

/// prepare_fault(Spec) -> none | binary() | {Clause, binary()}: why prepare/1 refuses a
/// specification, and the clause that is wrong, counted from 1.
pub fn prepare_fault(call: &Call<'_>) -> Reply {
    // A specification that compiles has no fault.
    let Err(error) = prepared(call, call.args[0])? else {
        return Ok(atoms::NONE.word());
    };
    let what = call.binary(error.what.to_string().as_bytes());
    Ok(match error.clause {
        Some(clause) => call.tuple(&[call.int(clause as i64 + 1), what]),
        None => what,
    })
}

/// is_compiled(Term) -> boolean().
pub fn is_compiled(call: &Call<'_>) -> Reply {
    Ok(boolean(PROGRAMS.get(call, call.args[0]).is_some()))
}

/// Encodes a term for a program, in the form that a row has. What the program doesn't look at is
/// left out.
#[inline]
fn row<'w>(
    program: &Program,
    word: Word,
    written: &'w mut Writer<'_>,
) -> Result<TermRef<'w>, Raise> {
    match program.positions_read() {
        Some(positions) => written.term_read_at(word, positions)?,
        None => written.term(word)?,
    }
    Ok(written.as_term())
}

/// run(List, Compiled, Acc) -> the results for the terms of a list, reversed, in front of Acc.
pub fn run(call: &Call<'_>) -> Reply {
    let program = PROGRAMS.get(call, call.args[1]).ok_or(BADARG)?;
    // What doesn't depend on the term is computed once for all of them.
    let caller = CallerContext::new(call, program)?;
    let each = 1 + (program.cost() / 16) as u32;
    let mut scratch = Scratch::default();
    let mut budget = Budget::slice();
    let (mut rest, mut done) = (call.args[0], call.args[2]);
    let mut stack = stack_bytes();
    let mut written = Writer::at(&mut stack, call.env, Mode::Shared);
    while let Some((tuple, tail)) = layout::cell(rest) {
        // Encode what the program reads of the term, and run it on that.
        written.clear();
        let row = row(program, tuple, &mut written)?;
        let result = match program.run_term(row, &caller.context(), &mut scratch) {
            // The caller's own term is the result. It isn't made anew.
            Some(Outcome::Object) => Some(tuple),
            Some(Outcome::Term(term)) => Some(decode::term(&call.heap, term)),
            None => None,
        };
        if let Some(result) = result {
            done = call.heap.cell(result, done);
        }
        rest = tail;
        let weight = weight(row.bytes().len(), row.outside_bytes());
        // The rest of the list, and the results so far, are the arguments of the next slice.
        if !budget.spend(each + (weight / 128) as u32) && layout::cell(rest).is_some() {
            return Ok(call.later(entry::run, &[rest, call.args[1], done]));
        }
    }
    call.spent(budget.spent());
    (rest == layout::NIL).then_some(done).ok_or(BADARG)
}

/// test(Tuple, Spec) -> {ok, Result} | false: runs a specification on a term.
pub fn test(call: &Call<'_>) -> Reply {
    let program = program(call, call.args[1], None)?;
    let mut stack = stack_bytes();
    let mut written = Writer::at(&mut stack, call.env, Mode::Shared);
    let row = row(&program, call.args[0], &mut written)?;
    let caller = CallerContext::new(call, &program)?;
    let mut scratch = Scratch::default();
    let outcome = program.run_term(row, &caller.context(), &mut scratch);
    Ok(match outcome {
        Some(Outcome::Object) => call.tuple(&[atoms::OK.word(), call.args[0]]),
        Some(Outcome::Term(term)) => {
            call.tuple(&[atoms::OK.word(), decode::term(&call.heap, term)])
        }
        None => atoms::FALSE.word(),
    })
}
