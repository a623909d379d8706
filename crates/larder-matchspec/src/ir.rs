//! Guards and bodies as trees in flat vectors. Lowering makes them; code generation and planning
//! read them.

use crate::{constant::Constant, func::Func};
use smallvec::SmallVec;

/// The index of a node in [`Ir`].
pub(crate) type NodeId = u32;

/// The parts of a node: a range of the edges of [`Ir`].
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
    /// A list to build. Its parts are the elements and then the tail.
    List(Parts),
    /// A map to build. In its parts keys and values alternate, in the order in which the pairs are
    /// inserted.
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

    /// The node with this id.
    pub(crate) fn node(&self, id: NodeId) -> Node {
        self.nodes[id as usize]
    }

    /// The nodes to which a range of edges leads.
    pub(crate) fn of(&self, parts: Parts) -> &[NodeId] {
        &self.edges[parts.from as usize..(parts.from + parts.count) as usize]
    }

    /// The constant, if the node is one.
    pub(crate) fn constant(&self, id: NodeId) -> Option<Constant> {
        match self.node(id) {
            Node::Const(constant) => Some(constant),
            _ => None,
        }
    }
}

impl Ir {
    /// The number of nodes.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The nodes from `first` on.
    pub(crate) fn since(&self, first: usize) -> &[Node] {
        &self.nodes[first..]
    }
}
