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

impl Contender {
    /// A table of the engine, as a line: `name | type structure option=value ...`. With the option
    /// `counters=many` rows are counted in many places.
    ///
    /// # Panics
    /// If it is no such line: it stands in the source of a study, or follows from it.
    pub fn said(line: &str) -> Contender {
        let wrong = || -> ! { panic!("{line:?} is no contender") };
        let Some((name, table)) = line.split_once(" | ") else {
            wrong()
        };
        let mut words = table.split(' ');
        let (kind, structure) = match (words.next(), words.next()) {
            (Some("set"), Some(structure)) => (TableKind::Set, structure),
            (Some("ordered_set"), Some(structure)) => (TableKind::OrderedSet, structure),
            _ => wrong(),
        };
        let mut ask = Ask::new(kind, structure);
        for option in words {
            match option.split_once('=') {
                Some(("counters", "many")) => ask.decentralized = true,
                Some((name, value)) => ask.options.push((name.into(), option_value(value))),
                None => wrong(),
            }
        }
        Contender {
            name: name.to_owned(),
            how: How::Engine(ask),
        }
    }

    /// Larder's set.
    pub fn default_set() -> Contender {
        Contender::said("default set | set default")
    }

    /// What the study calls it.
    pub fn name(&self) -> String {
        self.name.clone()
    }

    /// The same table, but it forgets keys.
    pub fn planted(mut self) -> Contender {
        if let How::Engine(ask) = &mut self.how {
            ask.forgets = true;
        }
        self.name = "planted fault".into();
        self
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

/// Contenders, a line each (see [`Contender::said`]).
pub fn listed(lines: &str) -> Vec<Contender> {
    lines.trim().lines().map(Contender::said).collect()
}

fn option_value(text: &str) -> StructureValue {
    match (text.parse(), text.parse()) {
        (Ok(number), _) => StructureValue::Int(number),
        (_, Ok(flag)) => StructureValue::Flag(flag),
        _ => StructureValue::Name(text.to_owned()),
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
    fixed.then(|| (BUCKETS.to_owned(), StructureValue::Int(buckets as i64)))
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

/// Every structure that none of these is built on, with its own options, as an ordered_set if it
/// can be one.
pub fn others(than: &[Contender]) -> Vec<Contender> {
    let there = |name| {
        let on = |one: &Contender| matches!(&one.how, How::Engine(ask) if ask.structure == name);
        than.iter().any(on)
    };
    let mut others = Vec::new();
    for s in structures() {
        // The default structure has contenders of its own.
        if s.name != "default" && !there(s.name) {
            let kind = match s.types.contains(&"ordered_set") {
                true => "ordered_set",
                false => "set",
            };
            let name = s.name;
            others.push(Contender::said(&format!("{name} | {kind} {name}")));
        }
    }
    others
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
        let named = listed("AVL | ordered_set avl\nset | set linear_hash chain=6 locks=auto");
        let others = others(&named);
        assert_eq!(others.len(), structures().count() - 1 - named.len());
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
