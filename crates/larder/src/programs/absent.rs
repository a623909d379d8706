//! What stands for the crate `larder-matchspec` in builds without the feature `matchspec`: its
//! types, of which the engine is made, and a program that can't exist.

use larder_term::object::{ObjectView, UnopenedObject};
use larder_term::{atoms, Atom, Term, TermRef};
use std::convert::Infallible;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Bound;
use std::sync::LazyLock;

/// A program. There is none.
#[derive(Clone)]
pub enum Program {}

/// Why no specification is compiled.
#[derive(Debug)]
pub struct NoPrograms {
    /// The reason.
    pub what: &'static str,
}

impl fmt::Display for NoPrograms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.what)
    }
}

impl Program {
    pub(crate) fn compile(_: TermRef<'_>) -> Result<Program, NoPrograms> {
        let what = "match specifications are not in this build, which lacks the feature matchspec";
        Err(NoPrograms { what })
    }

    pub(crate) fn run<'s>(
        &'s self,
        _: &'s ObjectView<'s>,
        _: &'s Context<'s>,
        _: &'s mut Scratch,
    ) -> Option<Outcome<'s>> {
        match *self {}
    }

    pub(crate) fn show<R>(
        &self,
        _: &ObjectView<'_>,
        _: &Context<'_>,
        _: &mut Scratch,
        _: impl FnOnce(Shown<'_>) -> R,
    ) -> Option<R> {
        match *self {}
    }

    pub(crate) fn matcher(&self, _: usize, _: KeyAccess) -> Matcher<'_> {
        match *self {}
    }

    pub(crate) fn plan(&self, _: usize, _: KeyAccess) -> Plan {
        match *self {}
    }

    pub(crate) fn heads_name_keys(&self, _: usize, _: KeyAccess) -> bool {
        match *self {}
    }

    pub(crate) fn plan_of_element(&self, _: usize, _: KeyAccess) -> Plan {
        match *self {}
    }

    pub(crate) fn plan_of_expression(&self, _: &Program, _: KeyAccess) -> Plan {
        match *self {}
    }

    pub(crate) fn asks_context(&self) -> bool {
        match *self {}
    }

    pub(crate) fn cost(&self) -> usize {
        match *self {}
    }
}

/// What a program may ask about its host.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The process that runs it.
    pub self_pid: TermRef<'a>,
    /// The node that it runs on.
    pub node: Atom,
}

impl Context<'_> {
    pub(crate) fn none() -> Context<'static> {
        static NIL: LazyLock<Term> = LazyLock::new(Term::nil);
        Context {
            self_pid: NIL.as_ref(),
            node: atoms::NONODE,
        }
    }
}

/// The result for a row.
pub enum Outcome<'s> {
    Object,
    Term(TermRef<'s>),
}

/// The result for a row, of which a host makes its own term.
pub enum Shown<'r> {
    Object,
    Term(TermRef<'r>),
    Built(&'r mut BuiltTerm<'r, 'r>),
}

/// A result of parts. There is none.
pub struct BuiltTerm<'r, 's>(Infallible, PhantomData<(&'r (), &'s ())>);

impl BuiltTerm<'_, '_> {
    pub(crate) fn whole_term(&mut self, _: &mut Vec<u8>) -> Term {
        match self.0 {}
    }
}

/// Where a program can find objects.
pub enum Plan {
    Nothing,
    Keys(Vec<Term>),
    Range {
        low: Bound<Vec<u8>>,
        high: Bound<Vec<u8>>,
    },
    AllKeys,
}

/// How a table finds its keys.
#[derive(Clone, Copy)]
pub enum KeyAccess {
    Ordered,
    Hash,
}

/// What a filter says of an object.
#[derive(Clone, Copy, PartialEq)]
pub enum Verdict {
    Rejected,
    Unknown,
}

/// A result that doesn't have to be computed.
pub enum Known {
    Object,
}

/// A program for many objects.
pub struct Matcher<'p>(Infallible, PhantomData<&'p ()>);

impl<'p> Matcher<'p> {
    pub(crate) fn filter(&self) -> Option<&Filter<'p>> {
        match self.0 {}
    }

    pub(crate) fn known(&self, _: Verdict) -> Option<Known> {
        match self.0 {}
    }

    pub(crate) fn show<R>(
        &self,
        _: &ObjectView<'_>,
        _: Verdict,
        _: &Context<'_>,
        _: &mut Scratch,
        _: impl FnOnce(Shown<'_>) -> R,
    ) -> Option<R> {
        match self.0 {}
    }
}

/// The filter of a program.
pub struct Filter<'p>(Infallible, PhantomData<&'p ()>);

impl Filter<'_> {
    pub(crate) fn judge<'v>(
        &self,
        _: impl Iterator<Item = UnopenedObject<'v>>,
        _: impl FnMut(usize, UnopenedObject<'v>, Verdict),
    ) {
        match self.0 {}
    }
}

/// The memory of programs.
#[derive(Default)]
pub struct Scratch;

impl Scratch {
    pub(crate) fn memory(&self) -> usize {
        0
    }
}

#[cfg(test)]
mod tests {
    use crate::host::{IndexDefinition, IndexOn};
    use crate::{Error, FeedOptions, Larder};
    use larder_term::{Atom, Term};

    #[test]
    fn filters_and_indexes_on_expressions_are_refused() {
        let says_why = |text: &str| assert!(text.contains("lacks the feature matchspec"), "{text}");
        let table = Larder::new().table("t").create().unwrap();
        let options = FeedOptions {
            filter: Some("[{'_',[],['$_']}]".into()),
            ..FeedOptions::default()
        };
        match table.subscribe_with(&options) {
            Err(Error::BadSpec(why)) => says_why(&why.to_string()),
            other => panic!("{:?}", other.map(drop)),
        }
        let name = Atom::try_new("first").unwrap();
        let definition = IndexDefinition::new(name, IndexOn::Expression(Term::from(1)));
        let engine_table = table.engine_table();
        match engine_table.add_index(engine_table.owner(), definition) {
            Err(Error::BadOption(why)) => says_why(&why.to_string()),
            other => panic!("{:?}", other.map(drop)),
        }
        assert!(table.indexes().is_empty());
    }
}
