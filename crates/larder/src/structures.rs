//! The data structures that a table can use: the default, and, with the feature `studies`, those of
//! the published studies of ETS (`larder-studies`).

use crate::error::Error;
use larder_index::Choice;

pub use larder_index::ChoiceValue as StructureValue;

/// A data structure that a table can use.
#[derive(Clone, Copy, Debug)]
pub struct Structure {
    /// Its name in `Options::structure`.
    pub name: &'static str,
    /// The table types that it supports.
    pub types: &'static [&'static str],
    /// Its options in `Options::structure_options`.
    pub options: &'static [Choice],
    /// What it is and when to use it, in one line.
    pub about: &'static str,
}

/// The name of the default structures.
pub(crate) const DEFAULT: &str = "default";

/// The structures that a table can use: the default first, then, with the feature `studies`, those
/// of the published studies.
pub fn structures() -> impl Iterator<Item = Structure> {
    let default = Structure {
        name: DEFAULT,
        types: &["set", "ordered_set", "bag", "duplicate_bag"],
        options: &[],
        about: "a trie or B+-tree over packed leaves, which readers don't lock: for everything",
    };
    std::iter::once(default).chain(studies::all())
}

/// Checks whether a table can use this structure with these options. `ordered` says that it is an
/// ordered_set.
///
/// # Errors
/// - `UnknownStructure`: there is no structure of that name. The text lists all names.
/// - `BadOption`: the structure doesn't have an option or doesn't accept its value, or the table is
///   an ordered_set and the structure has no order of keys. The text says what is possible.
pub(crate) fn check(
    name: &str,
    options: &[(String, StructureValue)],
    ordered: bool,
) -> Result<(), Error> {
    // The default has nothing to choose.
    if name == DEFAULT {
        return match options {
            [] => Ok(()),
            _ => Err(Error::BadOption(
                "the structure 'default' has no options".to_owned().into(),
            )),
        };
    }
    // The text lists what there is, so that a misspelt name is easy to correct.
    if studies::listed_name(name).is_none() {
        let names: Vec<_> = structures().map(|s| s.name).collect();
        let there = names.join(", ");
        let text = format!("there is no structure '{name}'; there are: {there}");
        return Err(Error::UnknownStructure(text.into()));
    }
    studies::check(name, options, ordered).map_err(|text| Error::BadOption(text.into()))
}

pub(crate) use studies::{build_multi, build_unique, listed_name};

#[cfg(feature = "studies")]
mod studies {
    use super::{Structure, StructureValue};
    use larder_index::{Multi, Unique};
    use larder_studies::Order;

    pub(super) fn all() -> impl Iterator<Item = Structure> {
        larder_studies::structures().iter().map(|s| Structure {
            name: s.name,
            types: s.types(),
            options: s.options,
            about: s.about,
        })
    }

    /// The name under which `structures` lists a structure. `name` may be an alias.
    pub(crate) fn listed_name(name: &str) -> Option<&'static str> {
        larder_studies::named(name).map(|structure| structure.name)
    }

    pub(super) fn check(
        name: &str,
        options: &[(String, StructureValue)],
        ordered: bool,
    ) -> Result<(), String> {
        larder_studies::check(name, options, order(ordered)).map_err(|error| error.to_string())
    }

    /// An empty index with at most one object per key. Name and options have been checked.
    pub(crate) fn build_unique(
        name: &str,
        options: &[(String, StructureValue)],
        ordered: bool,
    ) -> Box<dyn Unique> {
        larder_studies::build_unique(name, options, order(ordered)).expect("checked")
    }

    /// An empty index with any number of objects per key. Name and options have been checked.
    pub(crate) fn build_multi(name: &str, options: &[(String, StructureValue)]) -> Box<dyn Multi> {
        larder_studies::build_multi(name, options).expect("checked")
    }

    /// The order that an ordered_set needs, or none in particular.
    fn order(ordered: bool) -> Order {
        match ordered {
            true => Order::Key,
            false => Order::Hash,
        }
    }
}

/// Without the feature there are no other structures. `super::check` has refused every name but the
/// default.
#[cfg(not(feature = "studies"))]
mod studies {
    use super::{Structure, StructureValue};
    use larder_index::{Multi, Unique};

    pub(super) fn all() -> impl Iterator<Item = Structure> {
        std::iter::empty()
    }

    pub(crate) fn listed_name(_: &str) -> Option<&'static str> {
        None
    }

    pub(super) fn check(_: &str, _: &[(String, StructureValue)], _: bool) -> Result<(), String> {
        Ok(())
    }

    pub(crate) fn build_unique(
        _: &str,
        _: &[(String, StructureValue)],
        _: bool,
    ) -> Box<dyn Unique> {
        unreachable!("other names than the default were refused")
    }

    pub(crate) fn build_multi(_: &str, _: &[(String, StructureValue)]) -> Box<dyn Multi> {
        unreachable!("other names than the default were refused")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_structures_come_with_the_feature() {
        let there = structures().any(|s| s.name == "avl");
        assert_eq!(there, cfg!(feature = "studies"));
        let checked = check("avl", &[], true);
        assert_eq!(checked.is_ok(), there);
        assert!(
            there
                || matches!(checked, Err(Error::UnknownStructure(text)) if text.ends_with(": default"))
        );
        assert!(check(DEFAULT, &[], false).is_ok());
    }
}
