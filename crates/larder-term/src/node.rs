//! Nodes: where a pid, port or reference comes from.

use crate::atom::{atoms, Atom};
use std::sync::atomic::{AtomicU64, Ordering};

/// A node's name and creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NodeName {
    /// The name, such as `nonode@nohost`.
    pub name: Atom,
    /// Which life of the node it is.
    pub creation: u32,
}

impl NodeName {
    /// The name of a node that has none yet: `nonode@nohost`, creation 0.
    pub const NONE: NodeName = NodeName {
        name: atoms::NONODE,
        creation: 0,
    };
}

/// Whose pid, port or reference it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Node {
    /// This node's, whatever its name is now.
    Local,
    /// Another node's.
    External(NodeName),
}

impl Node {
    /// The node's name now: that of [`local`] for this node.
    pub fn name(self) -> NodeName {
        match self {
            Node::Local => local(),
            Node::External(name) => name,
        }
    }
}

static LOCAL: AtomicU64 = AtomicU64::new((atoms::NONODE.id() as u64) << 32);

/// Says what this node is called. Term order reads it when it compares a local identifier with
/// another node's, nothing else does.
pub fn set_local(name: NodeName) {
    // Ordering: Relaxed; both halves travel in one word and nothing else is published with it.
    LOCAL.store(
        u64::from(name.name.id()) << 32 | u64::from(name.creation),
        Ordering::Relaxed,
    );
}

/// What this node is called: what was last said to [`set_local`], at first [`NodeName::NONE`].
pub fn local() -> NodeName {
    // Ordering: Relaxed; pairs with the store of `set_local`, see there.
    let word = LOCAL.load(Ordering::Relaxed);
    let name = Atom::from_id((word >> 32) as u32).unwrap_or(atoms::NONODE);
    NodeName {
        name,
        creation: word as u32,
    }
}
