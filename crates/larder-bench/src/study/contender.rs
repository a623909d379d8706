//! What studies measure: tables of Larder's engine, by structure and options, and shared maps of
//! other crates.
//!
//! The releases of OTP are built from Larder's structures and locks. They have the properties of
//! each release's tables, but not its code.

use super::tables::{BenchTable, StudyTable};
use crate::maps::peers::{each_shared, Filter, Shared};
use crate::result::{Failure, Outcome};
use larder::structures;

/// A structure in a study.
#[derive(Clone, Default)]
pub struct Contender {
    pub name: String,
    /// `type structure` of a table, see [`StudyTable::new`]. Empty for a peer.
    spec: String,
    peer: Option<fn() -> Box<dyn BenchTable>>,
    /// Whether its tables forget keys: a planted fault.
    forgets: bool,
}

impl Contender {
    /// Parses `name | type structure` (see [`StudyTable::new`]). Panics if the line has another
    /// form. It is part of the source of a study.
    pub fn parse(line: &str) -> Contender {
        let parts = line.split_once(" | ");
        let (name, spec) = parts.unwrap_or_else(|| panic!("{line:?} is no contender"));
        Contender {
            name: name.to_owned(),
            spec: spec.to_owned(),
            ..Contender::default()
        }
    }

    /// Larder's default, which forgets keys.
    pub fn planted() -> Contender {
        Contender {
            forgets: true,
            ..Contender::parse("planted fault | set default")
        }
    }

    pub fn name(&self) -> String {
        self.name.clone()
    }

    /// Creates an empty table for about so many rows of one or two elements. Peers have two.
    pub fn make(&self, arity: usize, rows: usize) -> Outcome<Box<dyn BenchTable>> {
        if let Some(make) = self.peer {
            return Ok(make());
        }
        let refused = |e: larder::Error| Failure::Impossible(format!("{}: {e}", self.name));
        let mut table = StudyTable::new(&self.spec, arity, rows).map_err(refused)?;
        table.forgets = self.forgets;
        Ok(Box::new(table))
    }

    /// The structure of a table; empty for a peer.
    fn structure(&self) -> &str {
        self.spec.split([' ', '(']).nth(1).unwrap_or("")
    }
}

/// The contenders of a table, a line each (see [`Contender::parse`]).
pub fn listed(lines: &str) -> Vec<Contender> {
    lines.trim().lines().map(Contender::parse).collect()
}

/// All structures that none of the contenders has, with their default options, as an ordered_set
/// where possible.
pub fn others(than: &[Contender]) -> Vec<Contender> {
    let mut known: Vec<_> = than.iter().map(Contender::structure).collect();
    known.push("default");
    let others = structures().filter(|s| !known.contains(&s.name));
    let others = others.map(|s| {
        let ordered = s.types.contains(&"ordered_set");
        let kind = if ordered { "ordered_set" } else { "set" };
        Contender::parse(&format!("{0} | {kind} {0}", s.name))
    });
    others.collect()
}

/// The shared maps of other crates that this build has.
pub fn peers() -> Vec<Contender> {
    fn make<S: Shared>() -> Box<dyn BenchTable> {
        Box::new(S::empty())
    }
    let mut peers = each_shared!(Filter::default(), S => make::<S> as fn() -> _);
    peers.retain(|(name, _)| !name.starts_with("larder"));
    let contender = |(name, make): (&str, _)| Contender {
        name: name.into(),
        peer: Some(make),
        ..Contender::default()
    };
    peers.into_iter().map(contender).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_structure_is_a_contender() {
        let known = listed("AVL | ordered_set avl\nset | set linear_hash(chain=6,locks=auto)");
        let others = others(&known);
        assert_eq!(others.len(), structures().count() - 1 - known.len());
        for contender in others {
            let table = contender.make(2, 100).unwrap();
            table.handle().insert(1, 2);
            assert_eq!(table.handle().get(1), Some(2), "{}", contender.name);
        }
    }
}
