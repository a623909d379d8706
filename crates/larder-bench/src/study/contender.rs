//! What studies measure: tables of Larder's engine, by structure and options, and peers' shared
//! maps.
//!
//! The releases of OTP are built from our own structures and locks. They have the properties of
//! each release's tables, but not its code.

use super::rows::{Ask, EngineRows, Rows};
use crate::maps::peers::{each_shared, Only, Shared};
use crate::result::{Failure, Outcome};
use larder::{structures, StructureValue, TableKind};

/// A table under study, before it is made.
#[derive(Clone)]
pub struct Contender {
    /// What the study calls it.
    pub name: String,
    how: How,
}

#[derive(Clone)]
enum How {
    Engine(Ask),
    Peer(fn() -> Box<dyn Rows>),
}

/// An option by name.
pub fn said(name: &str, value: i64) -> (String, StructureValue) {
    (name.to_owned(), StructureValue::Int(value))
}

/// An option with a name for a value.
pub fn named(name: &str, value: &str) -> (String, StructureValue) {
    (name.to_owned(), StructureValue::Name(value.to_owned()))
}

impl Contender {
    /// A set on a structure with options.
    pub fn set(name: &str, structure: &str, options: &[(String, StructureValue)]) -> Contender {
        Contender::table(name, TableKind::Set, structure, options)
    }

    /// An ordered_set on a structure with options.
    pub fn ordered(name: &str, structure: &str, options: &[(String, StructureValue)]) -> Contender {
        Contender::table(name, TableKind::OrderedSet, structure, options)
    }

    fn table(
        name: &str,
        kind: TableKind,
        structure: &str,
        options: &[(String, StructureValue)],
    ) -> Contender {
        Contender {
            name: name.to_owned(),
            how: How::Engine(Ask::new(kind, structure, options)),
        }
    }

    /// Larder's set.
    pub fn default_set() -> Contender {
        Contender::set("default set", "default", &[])
    }

    /// Larder's ordered_set.
    pub fn default_ordered() -> Contender {
        Contender::ordered("default ordered_set", "default", &[])
    }

    /// What the study calls it.
    pub fn name(&self) -> String {
        self.name.clone()
    }

    /// The same by another name.
    pub fn called(mut self, name: &str) -> Contender {
        name.clone_into(&mut self.name);
        self
    }

    /// The same, with rows counted in many places or in one.
    pub fn counting(mut self, decentralized: bool) -> Contender {
        // Only tables of the engine have the option.
        if let How::Engine(ask) = &mut self.how {
            ask.decentralized = decentralized;
        }
        self
    }

    /// The same table, but it forgets keys.
    pub fn planted(mut self) -> Contender {
        if let How::Engine(ask) = &mut self.how {
            ask.forgets = true;
        }
        self.called("planted fault")
    }

    /// An empty table for rows of one or two elements, about so many. Peers have two elements.
    pub fn make(&self, arity: usize, rows: usize) -> Outcome<Box<dyn Rows>> {
        let refused = |e: larder::Error| Failure::Impossible(format!("{}: {e}", self.name));
        // A structure that never grows has to know the number of rows.
        Ok(match &self.how {
            How::Engine(ask) => {
                Box::new(EngineRows::new(&sized(ask, rows), arity).map_err(refused)?)
            }
            How::Peer(make) => make(),
        })
    }
}

/// The option of structures that never grow: how many lists there are for good.
const BUCKETS: &str = "buckets";

/// The number of lists for a number of rows, for structures of a fixed size. `None` for those that
/// grow.
pub fn size_options(structure: &str, rows: usize) -> Option<(String, StructureValue)> {
    let listed = structures().find(|s| s.name == structure)?;
    let fixed = listed.options.iter().any(|o| o.name == BUCKETS);
    // One bucket for each row, within the range of the option.
    let buckets = rows.next_power_of_two().clamp(1 << 8, 1 << 24);
    fixed.then(|| said(BUCKETS, buckets as i64))
}

/// What is asked for, with the number of lists where it has to be said and was not.
fn sized(ask: &Ask, rows: usize) -> Ask {
    let mut ask = ask.clone();
    // An option that the study has set has precedence.
    if !ask.options.iter().any(|(name, _)| name == BUCKETS) {
        ask.options.extend(size_options(&ask.structure, rows));
    }
    ask
}

/// Every structure with its own options, as an ordered_set if it can be one, but for those that the
/// study has in its own way.
pub fn others(but: &[&str]) -> Vec<Contender> {
    // The default structure has contenders of its own.
    structures()
        .filter(|s| s.name != "default" && !but.contains(&s.name))
        .map(|s| match s.types.contains(&"ordered_set") {
            true => Contender::ordered(s.name, s.name, &[]),
            false => Contender::set(s.name, s.name, &[]),
        })
        .collect()
}

/// The shared maps of other crates that this build has.
pub fn peers() -> Vec<Contender> {
    let mut peers = Vec::new();
    each_shared!(Only(Vec::new()), S => {
        if !S::NAME.starts_with("larder") {
            peers.push(Contender {
                name: S::NAME.to_owned(),
                how: How::Peer(|| Box::new(S::empty())),
            });
        }
    });
    peers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_structure_is_a_contender_or_named() {
        let but = ["avl", "linear_hash"];
        let others = others(&but);
        assert_eq!(others.len(), structures().count() - 1 - but.len());
        for contender in others {
            let rows = contender.make(2, 100).unwrap();
            rows.hand().insert(1, 2);
            assert_eq!(rows.hand().get(1), Some(2), "{}", contender.name);
        }
    }

    #[test]
    fn a_planted_one_forgets() {
        let rows = Contender::default_set().planted().make(2, 100).unwrap();
        rows.hand().insert(100, 2);
        assert_eq!(rows.hand().get(100), None);
    }
}
