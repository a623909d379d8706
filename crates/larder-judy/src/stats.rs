//! The forms that an array consists of, and their numbers.

/// The number of an array's nodes by form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Pairs that hold their indexes themselves.
    pub immediate: usize,
    /// Linear leaves, by level: the bytes that they keep of an index, 1 to 8.
    pub linear_leaves: [usize; 9],
    /// Bitmap leaves.
    pub bitmap_leaves: usize,
    /// Leaves that have all 256 indexes of their last byte.
    pub full_leaves: usize,
    /// Branches with at most seven children.
    pub linear_branches: usize,
    /// Branches with a bitmap of their children.
    pub bitmap_branches: usize,
    /// Uncompressed branches: 256 pairs.
    pub wide_branches: usize,
    /// Narrow pointers: pairs whose node skips bytes that its whole subtree shares.
    pub narrow: usize,
    /// The nodes on the longest path.
    pub depth: usize,
}

/// What a string array is made of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextStats {
    /// Word arrays: the root's, and one for each part that several strings share.
    pub arrays: usize,
    /// Short-cut leaves: lone strings' rests.
    pub short_cuts: usize,
    /// The nodes of all the word arrays; the depth is that of the deepest one.
    pub words: Stats,
}
