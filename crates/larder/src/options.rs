//! What a table is made with.

use crate::error::Error;
use crate::ids::OwnerId;
use crate::indexes::{self, IndexDefinition};
use crate::structures::{self, StructureValue, DEFAULT};
use larder_term::{Atom, Term};
use std::borrow::Cow;

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

/// What becomes of a table that has as much as it may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Evict {
    /// Writes that need room are refused ([`Error::Full`]).
    #[default]
    None,
    /// Of some objects that are looked at, those go that were read or written the longest ago.
    Lru,
    /// Of some objects that are looked at, those go that were read or written the least often
    /// lately; or a new one, if it was not more often. So a scan of what is asked for once doesn't
    /// drive out what is asked for again and again.
    TinyLfu,
}

/// How much a table may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Objects, at least one; None: any number.
    pub max_size: Option<usize>,
    /// Bytes that the objects take, with the binaries that they lead to, at least one; None: any
    /// number. [`crate::Table::weight`] says how many it has.
    pub max_memory: Option<usize>,
    /// What becomes of the table when it has them.
    pub evict: Evict,
}

impl Limits {
    /// Whether a table can have these.
    ///
    /// # Errors
    /// `BadOption` for a limit of 0.
    pub fn check(&self) -> Result<(), Error> {
        for (name, most) in [("max_size", self.max_size), ("max_memory", self.max_memory)] {
            if most == Some(0) {
                return Err(Error::BadOption(format!("{name} counts from 1").into()));
            }
        }
        Ok(())
    }
}

/// What a table is to keep, and how long. Times are in milliseconds. An object whose time is over
/// is *expired*: it is in no answer any more, and is removed soon after.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// How long an object lives after it was written, unless it was inserted with a time of its
    /// own; None: for ever.
    pub ttl: Option<u64>,
    /// How long an object lives after it was last written or looked up by its key, at least, and an
    /// eighth of that longer at most; None: for ever.
    pub idle: Option<u64>,
    /// How much there may be; None for a table without limits, which pays for none and can't be
    /// given any later.
    pub limits: Option<Limits>,
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
    /// Who gets the table when its owner ends, and the data of the message to them.
    pub heir: Option<(OwnerId, Term)>,
    /// The default structures adapt to contention by themselves: this is kept and reported, and
    /// `On` or `Auto` also turns nothing off.
    pub write_concurrency: Concurrency,
    /// Readers of the default structures never wait for each other: this is kept and reported.
    pub read_concurrency: bool,
    /// Whether the objects are counted in many places (fast for many writers, slower to ask) or in
    /// one.
    pub decentralized_counters: bool,
    /// The structure to build on; see [`crate::structures()`].
    pub structure: Cow<'static, str>,
    /// What the structure is asked for, by the names of its options.
    pub structure_options: Vec<(String, StructureValue)>,
    /// The secondary indexes that it has from the beginning.
    pub indexes: Box<[IndexDefinition]>,
    /// Whether 0.0 and -0.0 are one key in a set, bag or duplicate_bag, as in hosts whose `=:=`
    /// takes them for the same.
    pub legacy_zero: bool,
    /// What the table is to keep; None for a table that has no bounds, and pays for none. A table
    /// with [`Bounds::default`] has none either, and may be given some later.
    pub bounds: Option<Box<Bounds>>,
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
            structure: Cow::Borrowed(DEFAULT),
            structure_options: Vec::new(),
            indexes: Box::default(),
            legacy_zero: false,
            bounds: None,
        }
    }

    /// A table with limits asks how many objects it has at each write: they are counted in one
    /// place.
    pub(crate) fn count_for_limits(&mut self) {
        let has_limits = self.bounds.as_ref().is_some_and(|own| own.limits.is_some());
        self.decentralized_counters &= !has_limits;
    }

    /// Whether a table can be made with these.
    ///
    /// # Errors
    /// `BadOption` for a key position of 0, for bounds of a bag or on a structure of the studies,
    /// for a limit of 0, for a structure that has no such options or can't carry the type, and for
    /// an index that can't be; `UnknownStructure` for a structure that is not built in. The text
    /// says what there is.
    pub fn check(&self) -> Result<(), Error> {
        if self.keypos == 0 {
            return Err(Error::BadOption("keypos counts from 1".to_owned().into()));
        }
        if self.bounds.is_some() && !(self.kind.is_unique() && self.structure == DEFAULT) {
            let text = "bounds are for tables of type set and ordered_set on the default structure";
            return Err(Error::BadOption(text.to_owned().into()));
        }
        if let Some(limits) = self.bounds.as_ref().and_then(|own| own.limits) {
            limits.check()?;
        }
        structures::check(
            &self.structure,
            &self.structure_options,
            self.kind.is_ordered(),
        )?;
        match &self.indexes[..] {
            [] => Ok(()),
            indexes => indexes::check(indexes, &self.structure),
        }
    }

    /// Gives the structure the name that it is listed under, if it was asked for by another.
    pub(crate) fn call_by_name(&mut self) {
        if let Some(name) = structures::listed_name(&self.structure) {
            self.structure = Cow::Borrowed(name);
        }
    }

    /// The structure and its options as one text, for files: `catree(over=btree,m=32)`.
    pub(crate) fn structure_text(&self) -> String {
        let options: Vec<_> = self
            .structure_options
            .iter()
            .map(|(name, value)| match value {
                StructureValue::Int(n) => format!("{name}={n}"),
                StructureValue::Flag(flag) => format!("{name}={flag}"),
                StructureValue::Name(text) => format!("{name}={text}"),
            })
            .collect();
        match options.is_empty() {
            true => self.structure.clone().into_owned(),
            false => format!("{}({})", self.structure, options.join(",")),
        }
    }

    /// Reads what `structure_text` wrote. What means nothing is found by `check`.
    pub(crate) fn set_structure_text(&mut self, text: &str) {
        let (name, rest) = text.split_once('(').unwrap_or((text, ""));
        self.structure = Cow::Owned(name.to_owned());
        let options = rest.trim_end_matches(')').split(',');
        self.structure_options = options
            .filter(|option| !option.is_empty())
            .map(|option| {
                let (name, value) = option.split_once('=').unwrap_or((option, "true"));
                let value = match (value.parse(), value.parse()) {
                    (Ok(n), _) => StructureValue::Int(n),
                    (_, Ok(flag)) => StructureValue::Flag(flag),
                    _ => StructureValue::Name(value.to_owned()),
                };
                (name.to_owned(), value)
            })
            .collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_as_texts_come_back() {
        let mut options = Options::new(Atom::new("t"));
        let mut back = options.clone();
        for (name, said) in [("default", 0), ("btree", 1), ("catree", 3)] {
            options.structure = Cow::Borrowed(name);
            let all = [
                ("m".to_owned(), StructureValue::Int(-7)),
                ("over".to_owned(), StructureValue::Name("btree".to_owned())),
                ("random_join".to_owned(), StructureValue::Flag(false)),
            ];
            options.structure_options = all[..said].to_vec();
            back.set_structure_text(&options.structure_text());
            assert_eq!(back.structure, options.structure);
            assert_eq!(back.structure_options, options.structure_options);
        }
    }
}
