//! The options of a table.

use crate::error::Error;
use crate::ids::OwnerId;
use crate::indexes::definition::{self, IndexDefinition};
use crate::structures::{self, StructureValue, DEFAULT};
use larder_term::{Atom, Term};
use std::borrow::Cow;

/// The type of a table: how many objects a key may have, and whether keys are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TableKind {
    /// One object per key. Two keys are the same if they are identical (`=:=`).
    Set,
    /// One object per key, in term order. Two keys are the same if they are equal (`==`).
    OrderedSet,
    /// Any number of different objects per key.
    Bag,
    /// Any number of objects per key, which may be equal.
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

/// Access rights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// All owners may read and write.
    Public,
    /// All owners may read; only the table's owner may write.
    Protected,
    /// Only the table's owner may read and write.
    Private,
}

/// The value of the `write_concurrency` option.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Concurrency {
    /// Not for many concurrent writers.
    Off,
    /// For many concurrent writers.
    On,
    /// The table decides.
    Auto,
}

/// What a table does when it has reached its limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Evict {
    /// Refuse writes that need room ([`Error::Full`]).
    #[default]
    None,
    /// Evict, from a sample of objects, those whose last read or write is the longest ago.
    Lru,
    /// Evict, from a sample of objects, those that were read or written the least often lately; or
    /// the new object, if it wasn't used more often than they were. So a scan over objects that are
    /// used once doesn't evict those that are used again and again.
    TinyLfu,
    /// Evict, of a sample of objects in the order of their insertion, the next ones that were not
    /// read or written since it was last their turn (SIEVE). So an object that is used once goes
    /// early, and one that is used again stays for another round.
    Sieve,
}

/// The limits of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// The maximum number of objects, at least one; `None` for no limit.
    pub max_size: Option<usize>,
    /// The maximum size in bytes of the objects, including the binaries that they refer to, at
    /// least one; `None` for no limit. [`crate::host::EngineTable::weight`] returns the current
    /// size.
    pub max_memory: Option<usize>,
    /// What to do when a limit is reached.
    pub evict: Evict,
}

impl Limits {
    /// Checks the limits.
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

/// The bounds of a table: lifetimes in milliseconds, and limits. An object whose lifetime is over
/// is *expired*: no operation returns it any more, and it is removed soon after.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// The lifetime of an object after it was written, unless it was inserted with a lifetime of
    /// its own; `None` if objects don't expire.
    pub ttl: Option<u64>,
    /// The lifetime of an object after it was last written or looked up by its key. The actual
    /// lifetime may be up to an eighth longer. `None` if unread objects don't expire.
    pub idle: Option<u64>,
    /// The limits. A table that is created with `None` doesn't pay for limits, and can't be given
    /// any later.
    pub limits: Option<Limits>,
}

/// The options that a table is created with. Start with [`Options::new`], and change the fields
/// that should differ.
#[derive(Clone, Debug)]
pub struct Options {
    /// The type.
    pub kind: TableKind,
    /// The access rights.
    pub access: Access,
    /// Whether the table can be found by its name.
    pub named: bool,
    /// The name. It must be unique only if `named` is set.
    pub name: Atom,
    /// The position of the key in each object, from 1.
    pub keypos: usize,
    /// Whether objects are stored compressed, which takes less memory, and more work at each
    /// access.
    pub compressed: bool,
    /// The owner that inherits the table when its owner ends, and the data of the message to the
    /// heir.
    pub heir: Option<(OwnerId, Term)>,
    /// The default structures adapt to contention by themselves. The option is only stored and
    /// reported. `On` and `Auto` don't turn anything off.
    pub write_concurrency: Concurrency,
    /// Readers of the default structures never wait for each other. The option is only stored and
    /// reported.
    pub read_concurrency: bool,
    /// Whether the number of objects is kept in many counters (fast for many writers, slower to
    /// read) or in one.
    pub decentralized_counters: bool,
    /// The structure that stores the table; see [`crate::host::structures()`].
    pub structure: Cow<'static, str>,
    /// The options of the structure, with their names.
    pub structure_options: Vec<(String, StructureValue)>,
    /// The secondary indexes of the new table.
    pub indexes: Box<[IndexDefinition]>,
    /// Whether 0.0 and -0.0 are the same key in a set, bag or duplicate_bag. They are in hosts
    /// where `=:=` treats them as identical.
    pub legacy_zero: bool,
    /// The bounds. A table that is created with `None` can't have any, and doesn't pay for them. A
    /// table that is created with [`Bounds::default`] has none yet, and may be given some later.
    pub bounds: Option<Box<Bounds>>,
}

impl Options {
    /// The defaults for a table of this name: a set, protected, not named, with the key position 1.
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

    /// A table with limits reads the number of its objects at each write. So the number is kept in
    /// one counter.
    pub(crate) fn count_for_limits(&mut self) {
        let has_limits = self
            .bounds
            .as_ref()
            .is_some_and(|bounds| bounds.limits.is_some());
        self.decentralized_counters &= !has_limits;
    }

    /// Checks the options.
    ///
    /// # Errors
    /// `BadOption` for a key position of 0, for bounds of a bag or on a structure of the studies,
    /// for a limit of 0, for a structure that doesn't have one of the options or doesn't support
    /// the type, and for an invalid index; `UnknownStructure` if there is no such structure. The
    /// text names what there is.
    pub fn check(&self) -> Result<(), Error> {
        // Check one option after another. The first that is wrong is named.
        if self.keypos == 0 {
            return Err(Error::BadOption("keypos counts from 1".to_owned().into()));
        }
        // Bounds are stamps after the objects, which only these indexes keep.
        if self.bounds.is_some() && !(self.kind.is_unique() && self.structure == DEFAULT) {
            let text = "bounds are for tables of type set and ordered_set on the default structure";
            return Err(Error::BadOption(text.to_owned().into()));
        }
        if let Some(limits) = self.bounds.as_ref().and_then(|bounds| bounds.limits) {
            limits.check()?;
        }
        // The structure checks its own options, and whether it has an order.
        structures::check(
            &self.structure,
            &self.structure_options,
            self.kind.is_ordered(),
        )?;
        match &self.indexes[..] {
            [] => Ok(()),
            indexes => definition::check(indexes, &self.structure),
        }
    }

    /// Replaces an alias of the structure by the name that it is listed under.
    pub(crate) fn call_by_name(&mut self) {
        if let Some(name) = structures::listed_name(&self.structure) {
            self.structure = Cow::Borrowed(name);
        }
    }

    /// The structure and its options as one text, for files: `catree(over=btree,m=32)`.
    #[cfg(any(test, feature = "files"))]
    pub(crate) fn structure_text(&self) -> String {
        let options: Vec<_> = self
            .structure_options
            .iter()
            // Options are written so that `set_structure_text` reads the same values back.
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

    /// Parses the result of `structure_text`. Invalid options are detected later, by `check`.
    #[cfg(any(test, feature = "files", feature = "studies"))]
    pub(crate) fn set_structure_text(&mut self, text: &str) {
        // The name is the part before the parenthesis.
        let (name, rest) = text.split_once('(').unwrap_or((text, ""));
        self.structure = Cow::Owned(name.to_owned());
        let options = rest.trim_end_matches(')').split(',');
        self.structure_options = options
            .filter(|option| !option.is_empty())
            .map(|option| {
                // A flag may be given by its name only.
                let (name, value) = option.split_once('=').unwrap_or((option, "true"));
                // A number, or a flag, or else a name: what was written says which.
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
