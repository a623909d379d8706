//! Whether `select_replace` may run a program: a static proof that no clause changes a key.
//!
//! A body is accepted if `ets` accepts it:
//!
//! * `'$_'`;
//! * a tuple whose element at the key's position is the same as in the head (the same variables,
//!   the same constants, tuples in double braces or in `const`), or is `{element,KeyPos,'$_'}`;
//! * `{const,Tuple}`, if the tuple has the constant key of the head.
//!
//! A key with a map is never accepted: in a head a map matches every map that has its pairs.

use crate::{
    parameters,
    program::Program,
    raw,
    source::{Source, TermIndex},
    template::Template,
    wire::{self, Head},
};
use larder_term::atoms;
use smallvec::{smallvec, SmallVec};

impl Program {
    /// Whether the result of every clause provably has the same key as the row, in a table whose
    /// key is at position `keypos` (counted from 1).
    ///
    /// The proof is by the text of the specification: `{'+','$1',0}` is refused, although it keeps
    /// the key.
    pub fn replace_keeps_key(&self, keypos: usize) -> bool {
        // The text of a specification with parameters contains `{bind,N}`, so that the proof holds
        // for all values.
        let text = match (&self.code.held, self.code.is_prepared) {
            (Some(spec), true) => Template::whole(spec.bytes()),
            _ => self.specification(),
        };
        let index = TermIndex::of(&text.bytes);
        let text = Text {
            source: Source::new(&text, &index),
            has_parameters: self.code.is_prepared,
        };
        text.source.each(0).all(|clause| {
            let mut parts = text.source.each(clause);
            match (parts.next(), parts.nth(1)) {
                (Some(head), Some(body)) => keeps_key(&text, head, body, keypos),
                _ => false,
            }
        })
    }
}

/// The text of a specification.
struct Text<'a> {
    source: Source<'a>,
    /// Whether `{bind,N}` is a parameter.
    has_parameters: bool,
}

impl Text<'_> {
    /// The number of the parameter at `at`, if there is one.
    fn parameter(&self, at: usize) -> Option<i64> {
        let number = || parameters::number(&self.source, at);
        self.has_parameters.then(number)?
    }
}

/// Whether a clause keeps the key.
fn keeps_key(text: &Text<'_>, head: usize, body: usize, keypos: usize) -> bool {
    let source = &text.source;
    let mut expressions = source.each(body);
    // A body has exactly one expression here. Others were refused.
    let (Some(body), None) = (expressions.next(), expressions.next()) else {
        return false;
    };
    // The object itself has its own key.
    if source.atom(body) == Some(atoms::DOLLAR_UNDERSCORE) {
        return true;
    }
    // The key's element must be the same in the head and in the body.
    let key_of = |at: usize| source.tuple(at)?.get(keypos.checked_sub(1)?).copied();
    let Some(key) = key_of(head) else {
        return false;
    };
    match written(source, body) {
        Some(Written::Constant(at)) => key_of(at).is_some_and(|new| same(text, key, new, true)),
        Some(Written::Tuple(at)) => key_of(at)
            .is_some_and(|new| same(text, key, new, false) || is_old_key(source, new, keypos)),
        None => false,
    }
}

/// A tuple in a body that isn't a call.
enum Written {
    /// `{const,X}`: the offset of X.
    Constant(usize),
    /// `{{…}}`: the offset of the inner tuple.
    Tuple(usize),
}

fn written(source: &Source<'_>, at: usize) -> Option<Written> {
    let parts = source.tuple(at)?;
    // Double braces make a tuple, and `const` makes any term.
    match parts[..] {
        [inner] if matches!(source.head(inner), Head::Tuple(_)) => Some(Written::Tuple(inner)),
        [name, constant] if source.atom(name) == Some(atoms::CONST) => {
            Some(Written::Constant(constant))
        }
        _ => None,
    }
}

/// Whether an expression is `{element,KeyPos,'$_'}`.
fn is_old_key(source: &Source<'_>, at: usize, keypos: usize) -> bool {
    let Some(parts) = source.tuple(at) else {
        return false;
    };
    // All three parts must be exactly these.
    match parts[..] {
        [name, position, object] => {
            source.atom(name) == Some(atoms::ELEMENT)
                && wire::int(source.term(position)) == i64::try_from(keypos).ok()
                && source.atom(object) == Some(atoms::DOLLAR_UNDERSCORE)
        }
        _ => false,
    }
}

/// Whether every term that a pattern matches is the value of an expression; with `constant`, of a
/// constant.
fn same(text: &Text<'_>, pattern: usize, expression: usize, constant: bool) -> bool {
    let source = &text.source;
    // Both terms are walked over together.
    let mut pairs: SmallVec<[_; 4]> = smallvec![(pattern, expression, constant)];
    while let Some((a, b, constant)) = pairs.pop() {
        // Two containers of the same shape are the same if their parts are, which are compared
        // later.
        let mut zip = |b: usize, constant: bool| {
            let same_shape = source.head(a) == source.head(b);
            if same_shape {
                pairs.extend(
                    source
                        .parts(a)
                        .into_iter()
                        .zip(source.parts(b))
                        .map(|(a, b)| (a, b, constant)),
                );
            }
            same_shape
        };
        // A parameter in the head is only equal to the same parameter in the body.
        if let Some(number) = text.parameter(a) {
            if constant || text.parameter(b) != Some(number) {
                return false;
            }
            continue;
        }
        // What can't be proved is refused, even if it would keep the key.
        let holds = match (source.head(b), constant) {
            (Head::Map(_), _) => false,
            (Head::Leaf, _) => same_leaf(source, a, b, constant),
            (Head::Tuple(_), false) => match written(source, b) {
                Some(Written::Tuple(inner)) => zip(inner, false),
                Some(Written::Constant(at)) => {
                    pairs.push((a, at, true));
                    true
                }
                None => false,
            },
            _ => zip(b, constant),
        };
        if !holds {
            return false;
        }
    }
    true
}

fn same_leaf(source: &Source<'_>, a: usize, b: usize, constant: bool) -> bool {
    // Compare by identity instead of by bytes: two occurrences of a long binary have different
    // handles.
    let alike = raw::whole(source.term(a)).identical(raw::whole(source.term(b)));
    match source.atom(b) {
        // These are never accepted, not even in `const`, where they are plain atoms.
        Some(atoms::DOLLAR_UNDERSCORE | atoms::DOLLAR_DOLLAR | atoms::UNDERSCORE) => false,
        Some(atom) if wire::variable(atom).is_some() => alike && !constant,
        _ => alike,
    }
}
