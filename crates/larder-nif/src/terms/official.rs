//! Terms that aren't read in place: references that keep something alive, and all kinds whose
//! layout wasn't verified (see [`layout`]). They are read and made by official functions, or
//! through the external term format, which every release supports.
//!
//! A magic reference (see `layout::references`) is stored with an anchor, which keeps the object
//! alive (see [`kept`](super::kept)).

use super::binaries;
use super::kept::{anchor, KeptTerm};
use crate::call::{Raise, BADARG};
use crate::layout::node::{look_here, make_local_reference, node_of, of_this_node};
use crate::layout::{self, may_be_magic};
use crate::sys::external::{external_format, parse_reference, ReferenceNumbers};
use crate::sys::*;
use larder_term::tags::REF;
use larder_term::{etf, head, Encoder, Mode, Node, TermRef, View};

/// The error that a term can't be encoded.
#[derive(Debug)]
pub struct Unreadable;

/// A term that can't be read is a bad argument.
impl From<Unreadable> for Raise {
    fn from(_: Unreadable) -> Self {
        BADARG
    }
}

/// Encodes a reference. In inline mode, returns whether it may keep something alive, which the
/// encoding doesn't.
pub fn encode_reference(
    env: *mut Env,
    word: Word,
    out: &mut Encoder<'_>,
) -> Result<bool, Unreadable> {
    // Read the numbers off the external format, which has them in all releases.
    let read = || external_format(env, word, parse_reference).ok_or(Unreadable);
    let mut seen = read()?;
    let mut node = node_of(env, &seen.0, seen.1);
    // It may be this node's, and be written with a name that the node has lost since. Then it is
    // written with another one now.
    while node != Node::Local {
        let again = read()?;
        if again == seen {
            break;
        }
        seen = again;
        node = node_of(env, &seen.0, seen.1);
    }
    let words = seen.2;
    // Whether a reference is magic can't be seen in its numbers. All that may be are anchored.
    let kept = node == Node::Local && may_be_magic(&words);
    if kept && out.mode() != Mode::Inline {
        out.reference_kept(&words, anchor(word, true));
    } else {
        out.reference(node, &words);
    }
    Ok(kept)
}

/// Encodes a term by official functions. In inline mode, returns whether the term may keep
/// something alive, which the encoding doesn't.
pub fn encode(env: *mut Env, word: Word, out: &mut Encoder<'_>) -> Result<bool, Unreadable> {
    // The emulator would end the node if it were asked for the type of a kind that the function
    // doesn't know (records of OTP 29).
    if layout::is_strange(word) {
        return encode_through_etf(env, word, out);
    }
    // SAFETY: `env` and the term are the running call's, and of a kind that the emulator has a type
    // for.
    match unsafe { enif_term_type(env, word) } {
        term_type::BITSTRING => {
            // What the official functions can't read, such as a bitstring of another number of
            // bits, is encoded through the external format, below.
            if let Some(bytes) = binaries::bytes(env, word) {
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

/// Like `encode`, encodes any term through its external format. References in it are anchored by a
/// copy of the whole term.
fn encode_through_etf(
    env: *mut Env,
    word: Word,
    out: &mut Encoder<'_>,
) -> Result<bool, Unreadable> {
    let mut bytes = Vec::new();
    // First into plain bytes in inline mode. References in these are found and anchored afterwards.
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

/// Appends the encoding of a term, in inline mode, through its external format.
pub fn to_bytes(env: *mut Env, word: Word, out: &mut Vec<u8>) -> Result<(), Unreadable> {
    let (begin, mut here) = (out.len(), look_here(env));
    loop {
        external_format(env, word, |etf| {
            etf::decode(etf, &here.name, out, Mode::Inline)
                .map(|_| ())
                .map_err(|_| Unreadable)
        })?;
        // If the node's name has changed meanwhile, its identifiers were mistaken for another
        // node's.
        let now = look_here(env);
        if now.name == here.name {
            return Ok(());
        }
        out.truncate(begin);
        here = now;
    }
}

fn magic_words(reference: TermRef<'_>) -> Option<ReferenceNumbers> {
    match reference.view() {
        View::Ref(reference) if reference.node == Node::Local => {
            let words: ReferenceNumbers = reference.words().collect();
            may_be_magic(&words).then_some(words)
        }
        _ => None,
    }
}

/// All magic references in a term in inline mode, in the order of its bytes: the beginning and the
/// end of each, and its numbers.
fn magic_places(term: TermRef<'_>) -> Vec<(usize, usize, ReferenceNumbers)> {
    // One walk over the heads. To ask each container for its parts takes a walk over the rest of
    // the term for each level.
    let (bytes, mut at) = (term.bytes(), 0);
    let mut places = Vec::new();
    while at < bytes.len() {
        let end = head(bytes, at).0;
        if bytes[at] == REF {
            // SAFETY: a reference is its head: one whole term, in inline mode, without a handle.
            let words = magic_words(unsafe { TermRef::trusted(&bytes[at..end]) });
            places.extend(words.map(|words| (at, end, words)));
        }
        at = end;
    }
    places
}

/// Writes a term again, with each magic reference in it anchored by the host's whole term.
fn encode_anchored(
    word: Word,
    bytes: &[u8],
    places: &[(usize, usize, ReferenceNumbers)],
    out: &mut Encoder<'_>,
) {
    // All references in the term share one anchor.
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

/// Decodes a stored term through the external format.
pub fn decode(env: *mut Env, term: TermRef<'_>) -> Option<Word> {
    // An anchor holds the reference itself, and copying that is exact.
    if let Some(anchor) = term.anchor() {
        let kept = anchor.kept();
        let term = kept.and_then(|kept| kept.downcast_ref::<KeptTerm>());
        if let Some(kept) = term.filter(|kept| kept.reference) {
            return Some(kept.copy(env));
        }
    }
    if let View::Ref(reference) = term.view() {
        let numbers: ReferenceNumbers = reference.words().collect();
        // Whether it is one of this node can be seen in the result.
        if reference.node == Node::Local {
            if let Some(word) = make_local_reference(env, &numbers) {
                return Some(word);
            }
        }
    }
    // The node's name may change meanwhile. `of_this_node` notices, and repeats.
    of_this_node(env, &|here, out| {
        let mut etf = Vec::new();
        etf::encode(term, &here.name, &mut etf);
        out.extend_from_slice(&etf[1..]);
    })
}
