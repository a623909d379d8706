//! A term that is being pushed, the outermost container first.

use crate::status::{Failure, Status};
use larder_term::{Atom, DuplicateKey, Encoder, MapToken, Term};

/// One push.
pub(crate) enum Push {
    Int(i64),
    Uint(u64),
    Float(f64),
    Atom(Atom),
    Binary(Vec<u8>),
    Term(Term),
    Tuple(usize),
    List(usize),
    Map(usize),
}

impl Push {
    /// The number of terms that must follow as its children.
    fn children(&self) -> usize {
        match self {
            Push::Tuple(n) | Push::List(n) => *n,
            Push::Map(pairs) => 2 * pairs,
            _ => 0,
        }
    }

    fn encode(&self, enc: &mut Encoder<'_>) -> Option<MapToken> {
        match self {
            Push::Int(n) => enc.int(*n),
            Push::Uint(n) => enc.big(false, &n.to_le_bytes()),
            Push::Float(x) => enc.float(*x),
            Push::Atom(atom) => enc.atom(*atom),
            Push::Binary(bytes) => enc.binary(bytes),
            Push::Term(term) => enc.term(term.as_ref()),
            Push::Tuple(n) => enc.begin_tuple(*n),
            Push::List(0) => enc.nil(),
            Push::List(n) => enc.begin_list(*n),
            Push::Map(pairs) => return Some(enc.begin_map(*pairs)),
        }
        None
    }
}

/// The pushes of a term that isn't complete. The term is encoded when it is.
#[derive(Default)]
pub(crate) struct Open {
    pushes: Vec<Push>,
    /// The number of terms that each open container lacks, the innermost last. No number is 0.
    missing: Vec<usize>,
}

impl Open {
    /// Whether a term has been begun.
    pub(crate) fn is_open(&self) -> bool {
        !self.pushes.is_empty()
    }

    /// Adds a push. Returns the term, if it is complete now.
    pub(crate) fn push(&mut self, push: Push) -> Result<Option<Term>, Failure> {
        // A push without children completes a place of the container around it, which may complete
        // that container, too.
        match push.children() {
            0 => close(&mut self.missing, || Ok::<(), Failure>(()))?,
            n => self.missing.push(n),
        }
        self.pushes.push(push);
        if !self.missing.is_empty() {
            return Ok(None);
        }
        // The term is complete. It is encoded in one go, outermost container first.
        let pushes = std::mem::take(&mut self.pushes);
        encode(&pushes).map(Some).map_err(|text| {
            let text = format!("{text}; the term was given up");
            Failure::new(Status::BadTerm, text)
        })
    }
}

/// Called when a term is complete. Closes the containers of which it is the last child, and calls
/// `ended` for each of them.
fn close<E>(missing: &mut Vec<usize>, mut ended: impl FnMut() -> Result<(), E>) -> Result<(), E> {
    while let Some(last) = missing.last_mut() {
        *last -= 1;
        if *last > 0 {
            break;
        }
        missing.pop();
        ended()?;
    }
    Ok(())
}

/// Encodes the pushes of one complete term.
fn encode(pushes: &[Push]) -> Result<Term, String> {
    let mut ended = Ok(());
    let term = Term::build(|enc| ended = replay(pushes, enc));
    ended.map_err(|e: DuplicateKey| e.to_string())?;
    term.map_err(|e| e.to_string())
}

fn replay(pushes: &[Push], enc: &mut Encoder<'_>) -> Result<(), DuplicateKey> {
    // As in `push`, but with the tokens of the maps, which must be ended when their last value is
    // there.
    let mut missing = Vec::new();
    let mut maps: Vec<Option<MapToken>> = Vec::new();
    for push in pushes {
        let map = push.encode(enc);
        match (push.children(), map) {
            (0, map) => {
                map.map_or(Ok(()), |token| enc.end_map(token))?;
                close(&mut missing, || {
                    let token = maps.pop().flatten();
                    token.map_or(Ok(()), |token| enc.end_map(token))
                })?;
            }
            (n, map) => {
                missing.push(n);
                maps.push(map);
            }
        }
    }
    Ok(())
}
