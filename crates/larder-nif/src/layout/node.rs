//! The name of this node, as its identifiers contain it in the external term format.
//!
//! In the external format, an identifier of this node contains the node's name, which may change
//! while the node runs. This module remembers the last known name. It asks for the name again when
//! it reads another one. A term that it writes is accompanied by a *canary*, a pid of this node: if
//! that is read back as a pid of another node, the name has changed.

use super::kinds::{kind, Kind};
use super::words::*;
use crate::sys::external::{atom_at, external_format, from_external_format, u32_at};
use crate::sys::*;
use larder_term::{Atom, Node, NodeName};
use parking_lot::RwLock;
use smallvec::{smallvec, SmallVec};
use std::sync::Arc;

/// The name of this node, also as an atom in the external format.
pub struct LocalNode {
    /// Name and creation.
    pub name: NodeName,
    etf: Vec<u8>,
}

static HERE: RwLock<Option<Arc<LocalNode>>> = RwLock::new(None);

/// The last known name of this node.
pub fn here(env: *mut Env) -> Arc<LocalNode> {
    if let Some(here) = HERE.read().as_ref() {
        return Arc::clone(here);
    }
    look_here(env)
}

/// Asks for the name of this node, and remembers it.
#[cold]
pub fn look_here(env: *mut Env) -> Arc<LocalNode> {
    // SAFETY: `env` is the running call's.
    // A reference contains the node's name in any case, also while the node isn't distributed.
    let reference = unsafe { enif_make_ref(env) };
    let here = external_format(env, reference, |etf| {
        // In front of the name are the version, the tag of the reference and the number of its
        // words.
        let (text, end) = atom_at(etf, 4)?;
        let creation = u32_at(etf, end)?;
        let name = NodeName {
            name: Atom::try_new(&text).ok()?,
            creation,
        };
        Some(LocalNode {
            name,
            etf: etf[4..end].to_vec(),
        })
    });
    // Without a readable reference, the name is that of a node that isn't distributed.
    let here = here.unwrap_or(LocalNode {
        name: NodeName::NONE,
        etf: b"\x64\x00\x0dnonode@nohost".to_vec(),
    });
    // The name hasn't changed. Keep the same allocation, so that callers can compare it.
    if let Some(known) = HERE.read().as_ref().filter(|known| known.name == here.name) {
        return Arc::clone(known);
    }
    larder_term::node::set_local(here.name);
    let here = Arc::new(here);
    *HERE.write() = Some(Arc::clone(&here));
    here
}

/// The node of an identifier, given the node name in its external format.
pub fn node_of(env: *mut Env, text: &str, creation: u32) -> Node {
    let is = |here: &LocalNode| here.name.creation == creation && here.name.name.text() == text;
    if is(&here(env)) || is(&look_here(env)) {
        return Node::Local;
    }
    let name = Atom::try_new(text).unwrap_or(larder_term::atoms::NONODE);
    Node::External(NodeName { name, creation })
}

/// Makes an identifier of this node, with the remembered name at first. If the emulator takes that
/// for another node, the name has changed, and is asked for again.
fn with_either_name(
    env: *mut Env,
    mut make: impl FnMut(&LocalNode) -> Option<Word>,
) -> Option<Word> {
    make(&here(env)).or_else(|| make(&look_here(env)))
}

/// Makes the pid of this node with this id and serial, through the external format.
pub fn make_local_pid(env: *mut Env, id: u32, serial: u32) -> Option<Word> {
    with_either_name(env, |here| {
        let mut etf = vec![131];
        push_local_pid(&mut etf, here, id, serial);
        from_external_format(env, &etf).filter(|&word| is_local_pid(word))
    })
}

fn push_local_pid(etf: &mut Vec<u8>, here: &LocalNode, id: u32, serial: u32) {
    etf.push(88);
    etf.extend_from_slice(&here.etf);
    for number in [id, serial, here.name.creation] {
        etf.extend_from_slice(&number.to_be_bytes());
    }
}

/// Makes the reference of this node with these numbers, through the external format.
pub fn make_local_reference(env: *mut Env, numbers: &[u32]) -> Option<Word> {
    with_either_name(env, |here| {
        let mut etf: SmallVec<[u8; 64]> = smallvec![131, 90, 0, numbers.len() as u8];
        etf.extend_from_slice(&here.etf);
        for number in [here.name.creation].iter().chain(numbers) {
            etf.extend_from_slice(&number.to_be_bytes());
        }
        let is_local = |&word: &Word| is_boxed(word) && kind(word) == Kind::Reference;
        from_external_format(env, &etf).filter(is_local)
    })
}

/// Makes the port of this node with this number, through the external format.
pub fn make_local_port(env: *mut Env, number: u64) -> Option<Word> {
    with_either_name(env, |here| {
        // Numbers of more than 28 bits, which newer releases have, have a form of their own.
        let is_short = number < 1 << 28;
        let mut etf = vec![131, if is_short { 89 } else { 120 }];
        etf.extend_from_slice(&here.etf);
        match is_short {
            true => etf.extend_from_slice(&(number as u32).to_be_bytes()),
            false => etf.extend_from_slice(&number.to_be_bytes()),
        }
        etf.extend_from_slice(&here.name.creation.to_be_bytes());
        from_external_format(env, &etf).filter(|&word| is_local_port(word))
    })
}

/// Makes a term of this node of the external format that `write` writes with the node's name. If
/// the name has changed, tries again with the new one.
pub fn of_this_node(env: *mut Env, write: &dyn Fn(&LocalNode, &mut Vec<u8>)) -> Option<Word> {
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
        if is_local_pid(elements[0]) {
            return Some(elements[1]);
        }
        here = look_here(env);
    }
    None
}
