//! Terms whose words are not read: identifiers of other nodes, references that keep something
//! alive, and every kind whose layout was not proved (see [`boxed`](crate::boxed)). They pass
//! through official functions, or the external term format, which every release reads and writes.
//!
//! *This node.* An identifier of this node carries the node's name in the external format, and the
//! name may change while we run. What the name was when last looked at is remembered; a name that
//! differs makes us look again, and what we write carries a *canary*, a pid of this node: if it
//! comes back as a foreign pid, the name has changed.
//!
//! *References that keep something alive* (NIF resources, atomics, table ids) are *magic*: the
//! emulator finds the thing by the reference's numbers while somebody holds it. So that a table is
//! such a somebody, a magic reference is stored with an anchor, a copy of the reference in an
//! environment of its own. Magic references have bit 17 of their second number set. That is tried
//! at load; should it be otherwise, all references are anchored.

use crate::layout;
use crate::sys::*;
use larder_term::blob::Anchor;
use larder_term::etf;
use larder_term::{Atom, Encoder, Mode, Node, NodeName, TermRef, View};
use parking_lot::RwLock;
use smallvec::SmallVec;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

/// The mark of a magic reference, in its second number.
const MAGIC: u32 = 1 << 17;
static MAGIC_KNOWN: AtomicBool = AtomicBool::new(false);

/// How this node is called, and its name as an atom of the external format.
pub struct Here {
    /// Name and creation.
    pub name: NodeName,
    etf: Vec<u8>,
}

static HERE: RwLock<Option<Arc<Here>>> = RwLock::new(None);

/// Calls `f` with a term's external format.
pub fn external_format<R>(env: *mut Env, word: Word, f: impl FnOnce(&[u8]) -> R) -> R {
    let mut binary = Binary::empty();
    // SAFETY: `env` and the term are the running call's; the binary is filled in or left empty.
    let made = unsafe { enif_term_to_binary(env, word, &mut binary) };
    if made == 0 || binary.data.is_null() {
        return f(&[]);
    }
    // SAFETY: the call above filled in the binary, which lives until it is released below.
    let result = f(unsafe { std::slice::from_raw_parts(binary.data, binary.size) });
    // SAFETY: made above, released once.
    unsafe { enif_release_binary(&mut binary) };
    result
}

/// The term of a run of external format.
pub fn from_external_format(env: *mut Env, etf: &[u8]) -> Option<Word> {
    let mut word = layout::NIL;
    // SAFETY: the bytes and their length belong together; `env` is the running call's.
    let read = unsafe { enif_binary_to_term(env, etf.as_ptr(), etf.len(), &mut word, 0) };
    (read != 0).then_some(word)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let word = bytes.get(at..at + 4)?;
    Some(u32::from_be_bytes([word[0], word[1], word[2], word[3]]))
}

/// Over an atom of the external format: its text and the place behind it.
fn atom_at(etf: &[u8], at: usize) -> Option<(String, usize)> {
    let wide = usize::from(*etf.get(at + 1)?) << 8 | usize::from(*etf.get(at + 2)?);
    let narrow = usize::from(*etf.get(at + 1)?);
    let (start, length, latin1) = match etf.get(at)? {
        100 => (at + 3, wide, true),
        115 => (at + 2, narrow, true),
        118 => (at + 3, wide, false),
        119 => (at + 2, narrow, false),
        _ => return None,
    };
    let bytes = etf.get(start..start + length)?;
    let text = if latin1 {
        bytes.iter().map(|&b| char::from(b)).collect()
    } else {
        String::from_utf8_lossy(bytes).into_owned()
    };
    Some((text, start + length))
}

/// The name of this node as it was when last looked at.
pub fn here(env: *mut Env) -> Arc<Here> {
    if let Some(here) = HERE.read().as_ref() {
        return Arc::clone(here);
    }
    look_here(env)
}

/// Looks at the name of this node.
#[cold]
pub fn look_here(env: *mut Env) -> Arc<Here> {
    // SAFETY: `env` is the running call's.
    let reference = unsafe { enif_make_ref(env) };
    let here = external_format(env, reference, |etf| {
        let (text, end) = atom_at(etf, 4)?;
        let creation = u32_at(etf, end)?;
        let name = NodeName {
            name: Atom::try_new(&text).ok()?,
            creation,
        };
        Some(Here {
            name,
            etf: etf[4..end].to_vec(),
        })
    });
    let here = here.unwrap_or(Here {
        name: NodeName::NONE,
        etf: b"\x64\x00\x0dnonode@nohost".to_vec(),
    });
    if let Some(known) = HERE.read().as_ref().filter(|known| known.name == here.name) {
        return Arc::clone(known);
    }
    larder_term::node::set_local(here.name);
    let here = Arc::new(here);
    *HERE.write() = Some(Arc::clone(&here));
    here
}

/// Whose an identifier is, by the node name that its external format carries.
fn node_of(env: *mut Env, text: &str, creation: u32) -> Node {
    let is = |here: &Here| here.name.creation == creation && here.name.name.text() == text;
    if is(&here(env)) || is(&look_here(env)) {
        return Node::Local;
    }
    let name = Atom::try_new(text).unwrap_or(larder_term::atoms::NONODE);
    Node::External(NodeName { name, creation })
}

/// The word of the pid of this node with this id and serial, through the external format.
pub fn make_local_pid(env: *mut Env, id: u32, serial: u32) -> Option<Word> {
    [here(env), look_here(env)].into_iter().find_map(|here| {
        let mut etf = vec![131];
        push_local_pid(&mut etf, &here, id, serial);
        from_external_format(env, &etf).filter(|&word| layout::is_local_pid(word))
    })
}

fn push_local_pid(etf: &mut Vec<u8>, here: &Here, id: u32, serial: u32) {
    etf.push(88);
    etf.extend_from_slice(&here.etf);
    for number in [id, serial, here.name.creation] {
        etf.extend_from_slice(&number.to_be_bytes());
    }
}

/// The word of the port of this node with this number, through the external format.
pub fn make_local_port(env: *mut Env, number: u32) -> Option<Word> {
    [here(env), look_here(env)].into_iter().find_map(|here| {
        let mut etf = vec![131, 89];
        etf.extend_from_slice(&here.etf);
        for number in [number, here.name.creation] {
            etf.extend_from_slice(&number.to_be_bytes());
        }
        from_external_format(env, &etf).filter(|&word| layout::is_local_port(word))
    })
}

/// Makes a term of this node from external format that `write` puts together with the node's name,
/// whatever the name is now.
fn of_this_node(env: *mut Env, write: &dyn Fn(&Here, &mut Vec<u8>)) -> Option<Word> {
    let mut here = here(env);
    for _ in 0..3 {
        // {Canary, Term}
        let mut etf = vec![131, 104, 2];
        push_local_pid(&mut etf, &here, 0, 0);
        write(&here, &mut etf);
        let pair = from_external_format(env, &etf)?;
        let (mut arity, mut elements) = (0, std::ptr::null());
        // SAFETY: the term was made in `env`; on success `elements` points at `arity` words that
        // live as long as the term.
        let elements = unsafe {
            if enif_get_tuple(env, pair, &mut arity, &mut elements) == 0 || arity != 2 {
                return None;
            }
            std::slice::from_raw_parts(elements, 2)
        };
        if layout::is_local_pid(elements[0]) {
            return Some(elements[1]);
        }
        here = look_here(env);
    }
    None
}

/// A term of the host, kept in an environment of its own.
pub struct KeptTerm {
    env: *mut Env,
    word: Word,
    reference: bool,
}

// SAFETY: the environment belongs to this value alone and is only read (copied from) until it is
// freed; any thread may do either.
unsafe impl Send for KeptTerm {}
// SAFETY: as above: copying out of an environment does not change it.
unsafe impl Sync for KeptTerm {}

impl KeptTerm {
    /// A copy of the term.
    pub fn new(word: Word, reference: bool) -> KeptTerm {
        // SAFETY: the environment is fresh and ours; the term is alive during the call.
        unsafe {
            let env = enif_alloc_env();
            KeptTerm {
                env,
                word: enif_make_copy(env, word),
                reference,
            }
        }
    }

    /// A copy in the caller's environment.
    pub fn copy(&self, env: *mut Env) -> Word {
        // SAFETY: the kept term lives as long as `self`; `env` is the running call's.
        unsafe { enif_make_copy(env, self.word) }
    }
}

impl Drop for KeptTerm {
    fn drop(&mut self) {
        // SAFETY: the environment is this value's, freed once.
        unsafe { enif_free_env(self.env) }
    }
}

fn anchor(word: Word, reference: bool) -> Anchor {
    Anchor::new(Arc::new(KeptTerm::new(word, reference)))
}

/// The numbers of a reference.
pub type Numbers = SmallVec<[u32; 5]>;

pub fn parse_reference(etf: &[u8]) -> Option<(String, u32, Numbers)> {
    if etf.get(1) != Some(&90) {
        return None;
    }
    let count = usize::from(etf[2]) << 8 | usize::from(etf[3]);
    let (text, at) = atom_at(etf, 4)?;
    let creation = u32_at(etf, at)?;
    let words: Option<Numbers> = (0..count).map(|i| u32_at(etf, at + 4 + 4 * i)).collect();
    Some((text, creation, words?))
}

/// Whether a reference of this node with these numbers may keep something alive.
pub fn may_be_magic(words: &[u32]) -> bool {
    // Ordering: Relaxed; written at load, before any other function of the library can run.
    !MAGIC_KNOWN.load(Ordering::Relaxed) || words.get(1).is_some_and(|w| w & MAGIC != 0)
}

/// Tries the mark of magic references on one that is magic and one that is not.
pub fn check_magic(env: *mut Env, magic: Word) {
    let marked = |word| {
        external_format(env, word, |etf| {
            Some(parse_reference(etf)?.2.get(1)? & MAGIC != 0)
        })
    };
    // SAFETY: `env` is the environment of the running load callback.
    let plain = unsafe { enif_make_ref(env) };
    let known = marked(magic) == Some(true) && marked(plain) == Some(false);
    // Ordering: Relaxed, see `may_be_magic`.
    MAGIC_KNOWN.store(known, Ordering::Relaxed);
}

/// How many words the largest integers of the host's releases have.
const LARGEST_INTEGERS: [usize; 2] = [(1 << 16) - 1, (1 << 19) - 1];

/// Tells the engine how large the host's integers may be, if it is a limit that is known: what is
/// larger could be stored and not be given back.
pub fn check_integers() {
    let is_largest = |words: &usize| is_integer(*words) && !is_integer(words + 1);
    if let Some(words) = LARGEST_INTEGERS.into_iter().find(is_largest) {
        larder_term::number::set_max_bits(64 * words as u64);
    }
}

/// Whether the host has integers of so many words.
fn is_integer(words: usize) -> bool {
    let bytes = words * size_of::<Word>();
    let mut etf = vec![131, 111];
    etf.extend_from_slice(&(bytes as u32).to_be_bytes());
    etf.push(0);
    etf.resize(etf.len() + bytes, 0xFF);
    // SAFETY: a fresh environment, which is ours alone and is freed once.
    unsafe {
        let env = enif_alloc_env();
        let made = from_external_format(env, &etf).is_some();
        enif_free_env(env);
        made
    }
}

/// Something that could not be turned into bytes.
#[derive(Debug)]
pub struct Unreadable;

/// Encodes a reference. In inline mode: whether it may keep something alive, which it does not
/// there.
pub fn encode_reference(
    env: *mut Env,
    word: Word,
    out: &mut Encoder<'_>,
) -> Result<bool, Unreadable> {
    let (text, creation, words) = external_format(env, word, parse_reference).ok_or(Unreadable)?;
    let node = node_of(env, &text, creation);
    let kept = node == Node::Local && may_be_magic(&words);
    if kept && out.mode() != Mode::Inline {
        out.reference_kept(&words, anchor(word, true));
    } else {
        out.reference(node, &words);
    }
    Ok(kept)
}

/// Encodes a term by official functions. In inline mode: whether something in it may keep something
/// alive, which it does not there.
pub fn encode(env: *mut Env, word: Word, out: &mut Encoder<'_>) -> Result<bool, Unreadable> {
    // Asked for the type of a kind of term that it was not written for (OTP 29's records), the
    // emulator ends the node.
    if layout::is_strange(word) {
        return encode_through_etf(env, word, out);
    }
    // SAFETY: `env` and the term are the running call's, and of a kind that the emulator has a type
    // for.
    match unsafe { enif_term_type(env, word) } {
        term_type::BITSTRING => {
            if let Some(bytes) = crate::binaries::bytes(env, word) {
                out.binary(bytes);
                return Ok(false);
            }
        }
        term_type::INTEGER => {
            let mut value = 0;
            // SAFETY: as above.
            if unsafe { enif_get_int64(env, word, &mut value) } != 0 {
                out.int(value);
                return Ok(false);
            }
        }
        term_type::FLOAT => {
            let mut value = 0.0;
            // SAFETY: as above.
            if unsafe { enif_get_double(env, word, &mut value) } != 0 {
                out.float(value);
                return Ok(false);
            }
        }
        term_type::REFERENCE => return encode_reference(env, word, out),
        _ => {}
    }
    encode_through_etf(env, word, out)
}

/// Encodes any term by its external format, as `encode`. What it refers to inside is anchored as a
/// whole.
fn encode_through_etf(
    env: *mut Env,
    word: Word,
    out: &mut Encoder<'_>,
) -> Result<bool, Unreadable> {
    let mut bytes = Vec::new();
    to_bytes(env, word, &mut bytes)?;
    // SAFETY: one whole term in inline mode, without handles.
    let term = unsafe { TermRef::trusted(&bytes) };
    let places = magic_places(term);
    if places.is_empty() || out.mode() == Mode::Inline {
        out.term(term);
    } else {
        encode_anchored(word, &bytes, &places, out);
    }
    Ok(!places.is_empty())
}

/// Appends the bytes of a term, in inline mode, by its external format.
pub fn to_bytes(env: *mut Env, word: Word, out: &mut Vec<u8>) -> Result<(), Unreadable> {
    external_format(env, word, |etf| decode_etf(env, etf, out))
}

fn decode_etf(env: *mut Env, etf: &[u8], out: &mut Vec<u8>) -> Result<(), Unreadable> {
    // The name may have changed since it was last looked at; looking costs less than this path does
    // anyway.
    let name = look_here(env).name;
    etf::decode(etf, &name, out, Mode::Inline)
        .map(|_| ())
        .map_err(|_| Unreadable)
}

fn magic_words(reference: TermRef<'_>) -> Option<Numbers> {
    match reference.view() {
        View::Ref(reference) if reference.node == Node::Local => {
            let words: Numbers = reference.words().collect();
            may_be_magic(&words).then_some(words)
        }
        _ => None,
    }
}

/// The magic references anywhere in a term, in the order of its bytes: where each begins and ends,
/// and its numbers.
fn magic_places(term: TermRef<'_>) -> Vec<(usize, usize, Numbers)> {
    let base = term.bytes().as_ptr() as usize;
    let mut places = Vec::new();
    let mut todo = vec![term];
    while let Some(term) = todo.pop() {
        match term.view() {
            View::Tuple(tuple) => todo.extend(tuple.iter()),
            View::List(list) => todo.extend(
                list.iter()
                    .chain([list.tail()].into_iter().filter(|_| !list.is_proper())),
            ),
            View::Map(map) => todo.extend(map.iter().flat_map(|(key, value)| [key, value])),
            View::Fun(fun) => todo.extend(fun.free()),
            _ => {
                let start = term.bytes().as_ptr() as usize - base;
                places.extend(
                    magic_words(term).map(|words| (start, start + term.bytes().len(), words)),
                );
            }
        }
    }
    places.sort_unstable_by_key(|place| place.0);
    places
}

/// Writes a term again with each magic reference in it anchored by the whole term that the host
/// gave.
fn encode_anchored(
    word: Word,
    bytes: &[u8],
    places: &[(usize, usize, Numbers)],
    out: &mut Encoder<'_>,
) {
    let whole = anchor(word, false);
    let mut anchored = Vec::with_capacity(bytes.len() + 16 * places.len());
    let mut copied = 0;
    for (start, end, words) in places {
        anchored.extend_from_slice(&bytes[copied..*start]);
        Encoder::new(&mut anchored, Mode::Anchored).reference_kept(words, whole.clone());
        copied = *end;
    }
    anchored.extend_from_slice(&bytes[copied..]);
    // SAFETY: the bytes are one whole term: a kept reference stands wherever a plain one stood, and
    // the order of map pairs is by their inline form, which is the same. The counts of the handles
    // are held by `anchored` until the release, after which nobody reads it.
    unsafe {
        out.term(TermRef::trusted(&anchored));
        larder_term::blob::release_all(&anchored);
    }
}

/// The word of a local pid.
pub fn local_pid_word(env: *mut Env, id: u32, serial: u32) -> Option<Word> {
    match layout::pids() {
        Some(pids) => pids.word(id, serial),
        None => make_local_pid(env, id, serial),
    }
}

/// The term of stored bytes, through the external format.
pub fn decode(env: *mut Env, term: TermRef<'_>) -> Option<Word> {
    if let Some(anchor) = term.anchor() {
        let kept = anchor
            .kept()
            .and_then(|kept| kept.downcast_ref::<KeptTerm>());
        if let Some(kept) = kept.filter(|kept| kept.reference) {
            return Some(kept.copy(env));
        }
    }
    of_this_node(env, &|here, out| {
        let mut etf = Vec::new();
        etf::encode(term, &here.name, &mut etf);
        out.extend_from_slice(&etf[1..]);
    })
}
