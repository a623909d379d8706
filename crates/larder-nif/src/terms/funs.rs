//! Funs: how they are stored, and how they are made again.
//!
//! ```text
//!  FUN module arity … free │ free variables    stored: all in front of │ depends on the code alone
//!  header entry • … │ free variables           on a heap
//! ```
//!
//! The code of a fun (module, function and so on) is read through the external term format, once in
//! each thread. After that it is found in a cache by the word of the emulator's entry and the shape
//! of the fun, or by its bytes. To make a fun, copy a *template*, which is a fun of the same code
//! with `[]` for its free variables, and fill in the variables. A template keeps the emulator's
//! entry alive, so that the entry's word isn't reused for other code.

use super::kept::KeptTerm;
use super::official;
use super::recent::Recent;
use crate::heap::{Heap, Slots};
use crate::layout::{self, NIL};
use crate::sys::*;
use larder_term::{tags, TermRef, View};
use std::cell::RefCell;
use std::rc::Rc;

/// The code of a fun.
pub struct Code {
    /// The encoding of a fun up to its free variables.
    pub bytes: Box<[u8]>,
    /// The number of free variables.
    pub free: usize,
    /// The emulator's entry.
    entry: Word,
    /// The shape of the funs that have so many free variables (`layout::fun_shape`).
    shape: Word,
    template: KeptTerm,
}

/// A thread's caches of code, by the emulator's entry and by the encoded bytes.
#[derive(Default)]
struct Codes {
    by_entry: Recent<Rc<Code>>,
    by_bytes: Recent<Rc<Code>>,
}

thread_local! {
    static KNOWN: RefCell<Codes> = RefCell::default();
}

impl Codes {
    #[inline]
    fn of_entry(&self, entry: Word, shape: Word) -> Option<Rc<Code>> {
        let is = |code: &Rc<Code>| code.entry == entry && code.shape == shape;
        self.by_entry.find(entry as u64, is).cloned()
    }

    #[inline]
    fn of_bytes(&self, bytes: &[u8]) -> Option<Rc<Code>> {
        let is = |code: &Rc<Code>| *code.bytes == *bytes;
        self.by_bytes.find(mix(bytes), is).cloned()
    }
}

/// A cheap hash of some bytes. Funs of one module differ in their last bytes, modules in the first
/// ones.
#[inline]
fn mix(bytes: &[u8]) -> u64 {
    let word = |bytes: Option<&[u8; 8]>| bytes.map_or(0, |&bytes| u64::from_le_bytes(bytes));
    word(bytes.last_chunk()).rotate_left(17) ^ word(bytes.first_chunk())
}

/// The code of a fun. `None` if the fun must be stored in the external term format.
pub fn code(env: *mut Env, word: Word) -> Option<Rc<Code>> {
    let (entry, shape) = (layout::fun_entry(word), layout::fun_shape(word));
    if let Some(code) = KNOWN.with_borrow(|known| known.of_entry(entry, shape)) {
        return Some(code);
    }
    let mut bytes = Vec::new();
    official::to_bytes(env, word, &mut bytes).ok()?;
    // The code is encoded in front of the free variables.
    // SAFETY: one whole term, without handles.
    let head = head_of(unsafe { TermRef::trusted(&bytes) })?;
    let code = of_head(env, &bytes[..head])?;
    if code.entry != entry || code.shape != shape {
        return None;
    }
    // Other funs may have taken its place.
    KNOWN.with_borrow_mut(|known| {
        if known.of_entry(entry, shape).is_none() {
            known.by_entry.add(entry as u64, Rc::clone(&code));
        }
    });
    Some(code)
}

/// Where the free variables of a fun begin.
fn head_of(term: TermRef<'_>) -> Option<usize> {
    match term.view() {
        View::Fun(fun) => {
            // The free variables are at the end of the encoding.
            let free: usize = fun.free().map(|term| term.bytes().len()).sum();
            Some(term.bytes().len() - free)
        }
        View::Export { .. } => Some(term.bytes().len()),
        _ => None,
    }
}

/// The code that these bytes encode.
fn of_head(env: *mut Env, head: &[u8]) -> Option<Rc<Code>> {
    if let Some(code) = KNOWN.with_borrow(|known| known.of_bytes(head)) {
        return Some(code);
    }
    let mut bytes = head.to_vec();
    let free = larder_term::head(&bytes, 0).1 as usize;
    // Make a template: a fun of this code with `[]` for each free variable.
    bytes.resize(head.len() + free, tags::NIL);
    // SAFETY: a fun with as many free variables as its head says, each `[]`: one whole term.
    // Check the result before it is used as a template.
    let word = official::decode(env, unsafe { TermRef::trusted(&bytes) })?;
    if layout::kind(word) != layout::Kind::Fun || layout::fun(word, free).iter().any(|&w| w != NIL)
    {
        return None;
    }
    let code = Rc::new(Code {
        bytes: head.into(),
        free,
        entry: layout::fun_entry(word),
        shape: layout::fun_shape(word),
        template: KeptTerm::new(word, false),
    });
    KNOWN.with_borrow_mut(|known| known.by_bytes.add(mix(head), Rc::clone(&code)));
    Some(code)
}

/// Makes a fun of the code that these bytes encode. Returns it, and the slots of its free
/// variables. `None` if the fun must be made through the external term format.
#[inline]
pub fn open(heap: &Heap, head: &[u8]) -> Option<(Word, Slots)> {
    if !layout::is_fun_known() {
        return None;
    }
    let code = of_head(heap.env(), head)?;
    let word = code.template.copy(heap.env());
    Some((word, heap.free_variables(word, code.free)))
}
