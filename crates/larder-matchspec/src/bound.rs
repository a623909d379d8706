//! Specifications that name the key of what they look for, taken apart: the key, and the
//! specification for what lies under it.
//!
//! ```text
//!   [{{7,'$1'},[],['$1']}]   keypos 1        key  7       rest  [{{'_','$1'},[],['$1']}]
//! ```
//!
//! An object fits the specification exactly when its key is identical to the key and it fits the
//! rest. So calls that differ in the key alone have one program between them, and nobody plans
//! where to look.

use crate::{
    raw,
    source::is_loose,
    wire::{self, Head, Short},
};
use larder_term::{atoms, TermRef};
use std::sync::atomic::{AtomicBool, Ordering};

/// See the module.
#[derive(Debug, Clone, Copy)]
pub struct BoundKey<'a> {
    /// The key.
    pub key: TermRef<'a>,
    before: &'a [u8],
    after: &'a [u8],
}

impl<'a> BoundKey<'a> {
    /// Takes a match specification of one clause apart, for a table whose key is at `keypos` (from
    /// 1). None if its head names no key, or it is none.
    ///
    /// # Complexity
    /// Linear in what stands before the key, and the key. No recursion.
    pub fn of_spec(spec: TermRef<'a>, keypos: usize) -> Option<BoundKey<'a>> {
        let bytes = spec.bytes();
        let (Head::List(1), clause) = wire::open(bytes) else {
            return None;
        };
        let (Head::Tuple(3), head) = wire::open(&bytes[clause..]) else {
            return None;
        };
        in_head(bytes, clause + head, keypos)
    }

    /// The same for a pattern as `match` takes it.
    pub fn of_pattern(pattern: TermRef<'a>, keypos: usize) -> Option<BoundKey<'a>> {
        in_head(pattern.bytes(), 0, keypos)
    }

    /// Writes the specification with `'_'` in the place of the key to a buffer. It has no handles
    /// but those of the specification, which holds their counts.
    pub fn write_rest<'b>(&self, out: &'b mut Vec<u8>) -> TermRef<'b>
    where
        'a: 'b,
    {
        out.clear();
        out.extend_from_slice(self.before);
        out.extend_from_slice(Short::atom(atoms::UNDERSCORE).bytes());
        out.extend_from_slice(self.after);
        raw::whole(out)
    }
}

/// Whether a key is what a head has for a constant, as far as a match tells: floats by their bits.
pub fn is_constant(key: TermRef<'_>, constant: TermRef<'_>) -> bool {
    key.bytes() == constant.bytes()
        || (wire::may_hold_handles(constant.bytes()) && key.identical(constant))
}

/// The key of a head that begins at `at`.
fn in_head(bytes: &[u8], at: usize, keypos: usize) -> Option<BoundKey<'_>> {
    let (Head::Tuple(arity), elements) = wire::open(&bytes[at..]) else {
        return None;
    };
    if keypos == 0 || keypos > arity {
        return None;
    }
    let mut from = at + elements;
    for _ in 1..keypos {
        from += larder_term::skip(&bytes[from..]);
    }
    let to = from + ground(&bytes[from..])?;
    Some(BoundKey {
        key: raw::whole(&bytes[from..to]),
        before: &bytes[..from],
        after: &bytes[to..],
    })
}

/// See [`set_exact_map_keys`].
static EXACT_MAP_KEYS: AtomicBool = AtomicBool::new(false);

/// Says how the host takes a key without variables that holds a map, where every clause names its
/// key: for the key itself (`true`), as releases of Erlang did until 2024, or for a pattern.
pub fn set_exact_map_keys(exact: bool) {
    // Ordering: Relaxed; said once, before anything is compiled.
    EXACT_MAP_KEYS.store(exact, Ordering::Relaxed);
}

/// What `set_exact_map_keys` said.
pub(crate) fn exact_map_keys() -> bool {
    // Ordering: Relaxed, as above.
    EXACT_MAP_KEYS.load(Ordering::Relaxed)
}

/// The length of the first term of a run, if it holds no variable and no `'_'`, nor a map that is a
/// pattern.
fn ground(run: &[u8]) -> Option<usize> {
    let (mut at, mut pending) = (0, 1usize);
    while pending > 0 {
        pending -= 1;
        let here = &run[at..];
        let (head, body) = wire::open(here);
        at += body;
        match head {
            Head::Map(n) if exact_map_keys() => pending += 2 * n,
            Head::Leaf if wire::atom(here).is_some_and(is_loose) => return None,
            Head::Leaf => at += larder_term::skip(here),
            Head::Tuple(n) | Head::List(n) => pending += n,
            Head::Improper(n) => pending += n + 1,
            Head::Map(_) => return None,
        }
    }
    Some(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use larder_term::Term;

    fn apart(spec: &str, keypos: usize) -> Option<(String, String)> {
        let spec: Term = spec.parse().unwrap();
        let bound = BoundKey::of_spec(spec.as_ref(), keypos)?;
        let mut out = Vec::new();
        let rest = bound.write_rest(&mut out).to_string();
        Some((bound.key.to_string(), rest))
    }

    #[test]
    fn keys_are_found_where_they_are_named() {
        let found = |key: &str, rest: &str| Some((key.into(), rest.into()));
        assert_eq!(
            apart("[{{7,'$1'},[],['$1']}]", 1),
            found("7", "[{{'_','$1'},[],['$1']}]")
        );
        assert_eq!(
            apart("[{{'$1',{a,[b|c]},x},[{is_atom,'$1'}],['$_']}]", 2),
            found("{a,[b|c]}", "[{{'$1','_',x},[{is_atom,'$1'}],['$_']}]")
        );
    }

    #[test]
    fn what_names_no_key_is_left_whole() {
        for (spec, keypos) in [
            ("[{{'$1',7},[],['$1']}]", 1),
            ("[{{{a,'_'},7},[],['$_']}]", 1),
            ("[{{#{a => 1},7},[],['$_']}]", 1),
            ("[{{7},[],['$_']}]", 2),
            ("[{'_',[],['$_']}]", 1),
            ("[{{7},[],['$_']},{{8},[],['$_']}]", 1),
            ("[{{7},[]}]", 1),
            ("[{7}|{7}]", 1),
            ("[]", 1),
        ] {
            assert_eq!(apart(spec, keypos), None, "{spec}");
        }
    }
}
