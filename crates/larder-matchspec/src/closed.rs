//! Closed patterns: parts of heads that contain a map, but no variable and no `'_'`.
//!
//! A map in a closed pattern matches each map that has its pairs. Everything else in it matches
//! itself. So such a part is one argument of a program, whose steps are the same for all of them:
//! the pattern and the term are walked over together.
//!
//! ```text
//!   pattern   {user, #{id => 7}}
//!   term      {user, #{id => 7, name => "Ann"}}
//!              ^^^^    ^^^^^^^   passed over
//! ```
//!
//! Templates are split down to a bounded depth (`template`), so the recursion is bounded, too.

use crate::{
    map_search::{MapKey, UnorderedMap, LARGEST_IN_ORDER},
    raw,
    wire::{self, Head},
};

/// Whether a run begins with a term that a closed pattern matches.
#[inline]
pub(crate) fn matches(run: &[u8], pattern: &[u8]) -> bool {
    // Each pattern matches itself. The encoding is prefix-free.
    if wire::begins(run, pattern) {
        return true;
    }
    // What lies behind the last pair of a map isn't walked over.
    match wire::open(pattern) {
        (Head::Map(count), at) => pairs(run, count, &mut &pattern[at..]).is_some(),
        _ => after(run, &mut &pattern[..]).is_some(),
    }
}

/// As `matches`. Returns what follows the term.
pub(crate) fn strip<'a>(run: &'a [u8], pattern: &[u8]) -> Option<&'a [u8]> {
    run.strip_prefix(pattern)
        .or_else(|| after(run, &mut &pattern[..]))
}

/// Matches the term that a run begins with against the pattern that `pattern` begins with. Returns
/// what follows the term, and moves `pattern` behind its first term.
fn after<'a>(run: &'a [u8], pattern: &mut &[u8]) -> Option<&'a [u8]> {
    // A leaf matches itself, and a map each map that has its pairs. Any other container must have
    // the same head, and then its parts are matched one by one. The template that the pattern is an
    // argument of is split at a bounded depth, so this doesn't recurse further.
    let (head, at) = wire::open(pattern);
    let parts = match head {
        Head::Leaf => {
            let (leaf, rest) = wire::split(pattern);
            *pattern = rest;
            return leaf_after(run, leaf);
        }
        Head::Map(count) => {
            *pattern = &pattern[at..];
            // Skip the pairs of the map after the last one that was found.
            let (rest, left) = pairs(run, count, pattern)?;
            return Some(wire::skip_terms(rest, 2 * left));
        }
        Head::Tuple(count) | Head::List(count) => count,
        Head::Improper(count) => count + 1,
    };
    let (other, other_at) = wire::open(run);
    if other != head {
        return None;
    }
    *pattern = &pattern[at..];
    let mut run = &run[other_at..];
    for _ in 0..parts {
        run = after(run, pattern)?;
    }
    Some(run)
}

/// What follows a leaf, if a run begins with it. Zeros are told apart by their signs.
fn leaf_after<'a>(run: &'a [u8], leaf: &[u8]) -> Option<&'a [u8]> {
    run.strip_prefix(leaf).or_else(|| {
        let is_same = wire::may_hold_handles(leaf) && raw::begins(run, leaf);
        is_same.then(|| wire::split(run).1)
    })
}

/// Matches a map against the `count` pairs that `pattern` begins with, and moves it behind them.
/// Returns what follows the last pair that was found, and the number of the map's pairs there.
fn pairs<'a>(run: &'a [u8], count: usize, pattern: &mut &[u8]) -> Option<(&'a [u8], usize)> {
    let (Head::Map(size), at) = wire::open(run) else {
        return None;
    };
    // The map has too few pairs.
    if size < count {
        return None;
    }
    let (mut rest, mut left) = (&run[at..], size);
    // In small maps, and in a pattern that is no larger, keys are in order.
    let mut unordered = (size > LARGEST_IN_ORDER).then(|| UnorderedMap::new(rest, size));
    for _ in 0..count {
        let (key, value) = wire::split(pattern);
        let wanted = MapKey::new(key);
        *pattern = value;
        let found = match &mut unordered {
            None => wanted.find(rest, &mut left),
            Some(map) => map.find(&wanted, rest, &mut left),
        };
        // The value must match, too.
        rest = after(found?, pattern)?;
    }
    Some((rest, left))
}
