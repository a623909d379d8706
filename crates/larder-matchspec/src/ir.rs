//! Guards and bodies as trees in flat vectors: what lowering makes and code generation and planning
//! read.

use crate::{constant::Constant, func::Func};
use smallvec::SmallVec;

/// A node, by its place in [`Ir`].
pub(crate) type NodeId = u32;

/// The parts of a node: a run of [`Ir`]'s edges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Parts {
    from: u32,
    count: u32,
}

/// An expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Node {
    /// A constant.
    Const(Constant),
    /// A variable of the head, by its slot.
    Var(u32),
    /// `'$_'`
    Object,
    /// `'$$'`
    Bindings,
    /// A tuple to build.
    Tuple(Parts),
    /// A list to build: the elements, then the tail.
    List(Parts),
    /// A map to build: keys and values by turns, in the order in which they are put in.
    Map(Parts),
    /// A call.
    Call(Func, Parts),
    /// `and`, all operands evaluated.
    And(Parts),
    /// `or`, all operands evaluated.
    Or(Parts),
    /// `andalso`, from left to right.
    AndAlso(Parts),
    /// `orelse`, from left to right.
    OrElse(Parts),
}

/// All nodes of a program.
#[derive(Debug, Default)]
pub(crate) struct Ir {
    nodes: SmallVec<[Node; 8]>,
    edges: SmallVec<[NodeId; 8]>,
}

impl Ir {
    /// Adds a node.
    pub(crate) fn add(&mut self, node: Node) -> NodeId {
        self.nodes.push(node);
        (self.nodes.len() - 1) as NodeId
    }

    /// Adds a run of edges.
    pub(crate) fn parts(&mut self, parts: &[NodeId]) -> Parts {
        let from = self.edges.len() as u32;
        self.edges.extend_from_slice(parts);
        Parts {
            from,
            count: parts.len() as u32,
        }
    }

    /// The node of this id.
    pub(crate) fn node(&self, id: NodeId) -> Node {
        self.nodes[id as usize]
    }

    /// The nodes that a run of edges leads to.
    pub(crate) fn of(&self, parts: Parts) -> &[NodeId] {
        &self.edges[parts.from as usize..(parts.from + parts.count) as usize]
    }

    /// The constant that a node is, if it is one.
    pub(crate) fn constant(&self, id: NodeId) -> Option<Constant> {
        match self.node(id) {
            Node::Const(constant) => Some(constant),
            _ => None,
        }
    }
}

impl Ir {
    /// How many nodes there are.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The nodes from one place on.
    pub(crate) fn since(&self, first: usize) -> &[Node] {
        &self.nodes[first..]
    }
}
