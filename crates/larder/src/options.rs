//! What a table is made with.

use crate::error::Error;
use crate::owner::OwnerId;
use larder_term::{Atom, Term};

/// How many objects a key may have, and in what order keys come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TableKind {
    /// One object a key; keys are the same when identical (`=:=`).
    Set,
    /// One object a key, in term order; keys are the same when equal (`==`).
    OrderedSet,
    /// Any number of different objects a key.
    Bag,
    /// Any number of objects a key, the same one several times too.
    DuplicateBag,
}

impl TableKind {
    /// Whether a key has at most one object.
    pub fn is_unique(self) -> bool {
        matches!(self, TableKind::Set | TableKind::OrderedSet)
    }

    /// Whether keys are traversed in term order.
    pub fn is_ordered(self) -> bool {
        self == TableKind::OrderedSet
    }
}

/// Who may read and who may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// Everybody reads and writes.
    Public,
    /// Everybody reads, the owner writes.
    Protected,
    /// The owner alone reads and writes.
    Private,
}

/// What a table is tuned for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Concurrency {
    /// As asked: not for many writers.
    Off,
    /// For many writers.
    On,
    /// As the table sees fit.
    Auto,
}

/// The structures that a table can be built on, by the names that `Options::structure` takes.
pub fn structures() -> &'static [&'static str] {
    &["default"]
}

/// What a table is made with. Begin with [`Options::new`] and change what should be different.
#[derive(Clone, Debug)]
pub struct Options {
    /// The type.
    pub kind: TableKind,
    /// Who may read and write.
    pub access: Access,
    /// Whether the table is found under its name.
    pub named: bool,
    /// The name; need not be unique when `named` is false.
    pub name: Atom,
    /// The position of the key in each object, from 1.
    pub keypos: usize,
    /// Whether objects are kept compressed: less memory, more work for each access.
    pub compressed: bool,
    /// Who gets the table when its owner goes, and what they are told.
    pub heir: Option<(OwnerId, Term)>,
    /// The default structures adapt to contention by themselves: this is kept and reported, and `On` or `Auto` also turns
    /// nothing off.
    pub write_concurrency: Concurrency,
    /// Readers of the default structures never wait for each other: this is kept and reported.
    pub read_concurrency: bool,
    /// Whether the objects are counted in many places (quick for many writers, slower to ask) or in one.
    pub decentralized_counters: bool,
    /// The structure to build on; see [`structures`].
    pub structure: String,
    /// Whether 0.0 and -0.0 are one key in a set, bag or duplicate_bag, as in hosts whose `=:=` takes them for the same.
    pub legacy_zero: bool,
}

impl Options {
    /// A set of this name: protected, not found by name, key position 1, nothing else asked for.
    pub fn new(name: Atom) -> Self {
        Options {
            kind: TableKind::Set,
            access: Access::Protected,
            named: false,
            name,
            keypos: 1,
            compressed: false,
            heir: None,
            write_concurrency: Concurrency::Off,
            read_concurrency: false,
            decentralized_counters: false,
            structure: "default".to_owned(),
            legacy_zero: false,
        }
    }

    /// Whether a table can be made with these.
    ///
    /// # Errors
    /// `BadOption` for a key position of 0, `UnknownStructure` for a structure that is not built in (the text lists those that are).
    pub fn check(&self) -> Result<(), Error> {
        if self.keypos == 0 {
            return Err(Error::BadOption("keypos counts from 1".to_owned()));
        }
        if !structures().contains(&self.structure.as_str()) {
            return Err(Error::UnknownStructure(format!(
                "there is no structure '{}'; there are: {}",
                self.structure,
                structures().join(", ")
            )));
        }
        Ok(())
    }
}
