//! The structures that a table can be built on: the default, and with the feature `studies` those
//! of the published studies of ETS (`larder-studies`).

use crate::error::Error;
use larder_index::Choice;

pub use larder_index::ChoiceValue as StructureValue;

/// A structure that a table can be built on.
#[derive(Clone, Copy, Debug)]
pub struct Structure {
    /// The name that `Options::structure` takes.
    pub name: &'static str,
    /// The table types that it carries.
    pub types: &'static [&'static str],
    /// What `Options::structure_options` takes for it.
    pub options: &'static [Choice],
    /// What it is and when to use it, in one line.
    pub about: &'static str,
}

/// The name of the structures that Larder is made for.
pub(crate) const DEFAULT: &str = "default";

/// The structures that a table can be built on: the default, then, with the feature `studies`,
/// those of the published studies.
pub fn structures() -> impl Iterator<Item = Structure> {
    let default = Structure {
        name: DEFAULT,
        types: &["set", "ordered_set", "bag", "duplicate_bag"],
        options: &[],
        about: "a trie or B+-tree over packed leaves, which readers don't lock: for everything",
    };
    std::iter::once(default).chain(studies::all())
}

/// Whether a table, an ordered_set or not, can be built on this structure with these options.
///
/// # Errors
/// `UnknownStructure`; `BadOption` for options that the structure doesn't take, and for an
/// ordered_set on a structure without an order of keys. The text says what there is.
pub(crate) fn check(
    name: &str,
    options: &[(String, StructureValue)],
    ordered: bool,
) -> Result<(), Error> {
    if name == DEFAULT {
        return match options {
            [] => Ok(()),
            _ => Err(Error::BadOption(
                "the structure 'default' has no options".to_owned().into(),
            )),
        };
    }
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

    /// The name under which a structure is listed that was asked for by this or by another name.
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

    /// An empty index with one object a key. Name and options were checked.
    pub(crate) fn build_unique(
        name: &str,
        options: &[(String, StructureValue)],
        ordered: bool,
    ) -> Box<dyn Unique> {
        larder_studies::build_unique(name, options, order(ordered)).expect("checked")
    }

    /// An empty index with many objects a key. Name and options were checked.
    pub(crate) fn build_multi(name: &str, options: &[(String, StructureValue)]) -> Box<dyn Multi> {
        larder_studies::build_multi(name, options).expect("checked")
    }

    fn order(ordered: bool) -> Order {
        match ordered {
            true => Order::Key,
            false => Order::Hash,
        }
    }
}

/// Without the feature there are none: every other name than the default is refused.
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
