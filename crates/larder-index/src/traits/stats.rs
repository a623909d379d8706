//! Statistics of an index.

/// Statistics of an index, for `info` and tests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// The number of leaves.
    pub leaves: usize,
    /// The number of inner nodes.
    pub inner_nodes: usize,
    /// The number of levels above the leaves.
    pub depth: usize,
    /// The number of leaf splits since the index was created.
    pub splits: u64,
    /// The number of leaf merges since the index was created.
    pub merges: u64,
    /// How often a writer found its leaf locked.
    pub contended: u64,
    /// Statistics that only some indexes have, with their names.
    pub more: Vec<(&'static str, u64)>,
}
