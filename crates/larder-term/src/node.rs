//! Nodes: the origin of a pid, port or reference.

use crate::atom::{atoms, Atom};
use std::sync::atomic::{AtomicU64, Ordering};

/// The name and the creation of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NodeName {
    /// The name, such as `nonode@nohost`.
    pub name: Atom,
    /// The creation, which distinguishes the incarnations of a node.
    pub creation: u32,
}

impl NodeName {
    /// The name of a node that isn't alive: `nonode@nohost`, creation 0.
    pub const NONE: NodeName = NodeName {
        name: atoms::NONODE,
        creation: 0,
    };
}

/// The node of a pid, port or reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Node {
    /// This node, whatever its name is now.
    Local,
    /// Another node.
    External(NodeName),
}

impl Node {
    /// The current name of the node. That of this node is [`local`].
    pub fn name(self) -> NodeName {
        match self {
            Node::Local => local(),
            Node::External(name) => name,
        }
    }
}

static LOCAL: AtomicU64 = AtomicU64::new((atoms::NONODE.id() as u64) << 32);

/// Sets the name of this node. It is read only when the order of terms compares a local identifier
/// with one of another node.
pub fn set_local(name: NodeName) {
    // Ordering: Relaxed; both halves are in one word, and nothing else is published with it.
    LOCAL.store(
        u64::from(name.name.id()) << 32 | u64::from(name.creation),
        Ordering::Relaxed,
    );
}

/// The name of this node, as last set by [`set_local`]. Initially [`NodeName::NONE`].
pub fn local() -> NodeName {
    // Ordering: Relaxed; pairs with the store of `set_local`, see there.
    let word = LOCAL.load(Ordering::Relaxed);
    let name = Atom::from_id((word >> 32) as u32).unwrap_or(atoms::NONODE);
    NodeName {
        name,
        creation: word as u32,
    }
}
