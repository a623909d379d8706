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
//!
//! Programs of the same code differ in their arguments alone. So the proof is first tried once for
//! the code ([`KeyProof`]). Of a program only some pairs of arguments are compared then. If that
//! decides nothing, the text of the program has a proof of its own.

use crate::{
    code::Code,
    constant::Constant,
    key_proof::{KeyProof, Proved, SamePair, SamePairs},
    parameters,
    program::Program,
    raw,
    source::{Source, TermIndex},
    template::Template,
    wire::{self, Head},
};
use larder_term::atoms;
use smallvec::{smallvec, SmallVec};

impl KeyProof {
    /// The proof for some code.
    fn of(code: &Code, keypos: usize) -> KeyProof {
        let mut pairs = SamePairs::new();
        let text = Text {
            source: code.source(),
            has_parameters: false,
        };
        let proved = match text.keeps_keys(keypos, &mut pairs) {
            // The text of a specification with parameters isn't that of its template.
            _ if code.is_prepared => Proved::Undecided,
            true => Proved::If(pairs),
            false if code.holes() == 0 => Proved::Refused,
            false => Proved::Undecided,
        };
        KeyProof { keypos, proved }
    }
}

impl Program {
    /// Whether the result of every clause provably has the same key as the row, in a table whose
    /// key is at position `keypos` (counted from 1).
    ///
    /// The proof is by the text of the specification: `{'+','$1',0}` is refused, although it keeps
    /// the key.
    pub fn replace_keeps_key(&self, keypos: usize) -> bool {
        let proof = self
            .code
            .key_proof
            .get_or_init(|| KeyProof::of(&self.code, keypos));
        match &proof.proved {
            // This is another position than that of the first call.
            _ if proof.keypos != keypos => self.keeps_key_by_text(keypos),
            Proved::Refused => false,
            Proved::If(pairs) if pairs.iter().all(|pair| self.has_same(pair)) => true,
            Proved::If(_) | Proved::Undecided => self.keeps_key_by_text(keypos),
        }
    }

    /// Whether two arguments are the same leaf.
    fn has_same(&self, pair: &SamePair) -> bool {
        let argument = |index| self.constants().get(Constant::Argument(index));
        let (head, body) = (argument(pair.head), argument(pair.body));
        wire::open(body).0 == Head::Leaf && same_leaf(head, body, pair.constant)
    }

    /// The proof by the text of this program.
    #[inline(never)]
    fn keeps_key_by_text(&self, keypos: usize) -> bool {
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
        // It has no holes, so there are no arguments to compare.
        text.keeps_keys(keypos, &mut SamePairs::new())
    }
}

/// The text of a specification.
struct Text<'a> {
    source: Source<'a>,
    /// Whether `{bind,N}` is a parameter.
    has_parameters: bool,
}

impl Text<'_> {
    /// Whether all clauses keep the key, if the arguments of the pairs that are added are the same.
    fn keeps_keys(&self, keypos: usize, pairs: &mut SamePairs) -> bool {
        self.source.each(0).all(|clause| {
            let mut parts = self.source.each(clause);
            match (parts.next(), parts.nth(1)) {
                (Some(head), Some(body)) => keeps_key(self, head, body, keypos, pairs),
                _ => false,
            }
        })
    }

    /// The number of the parameter at `at`, if there is one.
    fn parameter(&self, at: usize) -> Option<i64> {
        let number = || parameters::number(&self.source, at);
        self.has_parameters.then(number)?
    }
}

/// Whether a clause keeps the key.
fn keeps_key(
    text: &Text<'_>,
    head: usize,
    body: usize,
    keypos: usize,
    pairs: &mut SamePairs,
) -> bool {
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
        Some(Written::Constant(at)) => {
            key_of(at).is_some_and(|new| same(text, key, new, true, pairs))
        }
        Some(Written::Tuple(at)) => key_of(at).is_some_and(|new| {
            is_old_key(source, new, keypos) || same(text, key, new, false, pairs)
        }),
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
fn same(
    text: &Text<'_>,
    pattern: usize,
    expression: usize,
    constant: bool,
    arguments: &mut SamePairs,
) -> bool {
    let source = &text.source;
    // Both terms are walked over together.
    let mut pairs: SmallVec<[_; 4]> = smallvec![(pattern, expression, constant)];
    while let Some((a, b, constant)) = pairs.pop() {
        // Of arguments nothing is known here. One is only the same as another one.
        match (source.argument(a), source.argument(b)) {
            (None, None) => {}
            (Some((head, _)), Some((body, _))) => {
                arguments.push(SamePair {
                    head,
                    body,
                    constant,
                });
                continue;
            }
            (Some(_), None) if !constant => match written(source, b) {
                Some(Written::Constant(at)) => {
                    pairs.push((a, at, true));
                    continue;
                }
                _ => return false,
            },
            _ => return false,
        }
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
            (Head::Leaf, _) => same_leaf(source.term(a), source.term(b), constant),
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

fn same_leaf(a: &[u8], b: &[u8], constant: bool) -> bool {
    // Compare by identity instead of by bytes: two occurrences of a long binary have different
    // handles.
    let alike = raw::whole(a).identical(raw::whole(b));
    match wire::atom(b) {
        // These are never accepted, not even in `const`, where they are plain atoms.
        Some(atoms::DOLLAR_UNDERSCORE | atoms::DOLLAR_DOLLAR | atoms::UNDERSCORE) => false,
        Some(atom) if wire::variable(atom).is_some() => alike && !constant,
        _ => alike,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use larder_term::Term;
    use std::sync::Arc;

    fn program(spec: &str) -> Program {
        let spec: Term = spec.parse().unwrap();
        Program::compile(spec.as_ref()).unwrap()
    }

    /// The proof for some code says the same of each of its programs as a proof for the program.
    #[test]
    fn the_proof_for_code_holds_for_all_arguments() {
        let terms = [
            "1",
            "2",
            "1.0",
            "a",
            "'$_'",
            "'$$'",
            "<<\"k\">>",
            "[]",
            "[a]",
            "{a,1}",
            "{'$_'}",
            "9223372036854775808",
        ];
        let mut shared = 0;
        for form in [
            "[{{KEY,'$1'},[],[{{{const,NEW},{'+','$1',1}}}]}]",
            "[{{KEY,'$1'},[],[{{NEW,'$1'}}]}]",
            "[{{KEY,'$1'},[],[{const,{NEW,7}}]}]",
            "[{{KEY,'$1'},[],[{{{element,1,'$_'},NEW}}]}]",
            "[{{{KEY,'$1'},'$2'},[],[{{{{{const,NEW},'$1'}},'$2'}}]}]",
            "[{{'$1',KEY},[],[{{'$1',NEW}}]}]",
            "[{{'$1',KEY},[],[{{NEW,'$1'}}]}]",
            "[{{KEY,1},[],['$_']},{{2,'$1'},[],[{{{const,NEW},'$1'}}]}]",
        ] {
            let mut first: Vec<Program> = Vec::new();
            for (key, new) in terms.iter().flat_map(|a| terms.iter().map(move |b| (a, b))) {
                let spec = form.replace("KEY", key).replace("NEW", new);
                // Tuples in a body are calls.
                if form.contains("[{{NEW") && new.contains('{')
                    || form.contains(",NEW}") && new.contains('{')
                {
                    continue;
                }
                let fresh = program(&spec);
                let wanted = fresh.keeps_key_by_text(1);
                assert_eq!(fresh.replace_keeps_key(1), wanted, "{spec}");
                assert_eq!(
                    fresh.replace_keeps_key(2),
                    fresh.keeps_key_by_text(2),
                    "{spec}"
                );
                match first.iter().find(|other| fresh.is_like(other)) {
                    Some(other) => {
                        let again = Program {
                            code: Arc::clone(&other.code),
                            arguments: fresh.arguments.clone(),
                        };
                        assert_eq!(again.replace_keeps_key(1), wanted, "{spec}");
                        shared += 1;
                    }
                    None => first.push(fresh),
                }
            }
        }
        assert!(shared > 500, "{shared}");
    }

    /// A key that is a leaf is proved to stay without the text of the program.
    #[test]
    fn leaves_need_no_proof_of_their_own() {
        for spec in [
            "[{{1,'$1'},[],[{{{const,1},{'+','$1',1}}}]}]",
            "[{{'$1','$2'},[],[{{'$1',{'+','$2',1}}}]}]",
        ] {
            let program = program(spec);
            assert!(program.replace_keeps_key(1), "{spec}");
            let proof = program.code.key_proof.get().unwrap();
            assert!(matches!(proof.proved, Proved::If(_)), "{spec} {proof:?}");
        }
    }
}
