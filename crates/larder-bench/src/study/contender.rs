//! What studies measure: tables of Larder's engine, by structure and options, and shared maps of
//! other crates.
//!
//! The releases of OTP are built from Larder's structures and locks. They have the properties of
//! each release's tables, but not its code.

use super::tables::{BenchTable, StudyTable, TableSpec};
use crate::maps::peers::{each_shared, Filter, Named, Shared};
use crate::result::{Failure, Outcome};
use larder::{structures, StructureValue};

/// A structure in a study.
#[derive(Clone)]
pub struct Contender {
    pub name: String,
    maker: Maker,
}

#[derive(Clone)]
enum Maker {
    Engine(TableSpec),
    Peer(fn() -> Box<dyn BenchTable>),
}

impl Contender {
    /// Parses `name | type structure option=value ...` (see [`TableSpec::parse`]). Panics if the
    /// line has another form. It is part of the source of a study.
    pub fn parse(line: &str) -> Contender {
        let parts = line.split_once(" | ");
        let parts = parts.and_then(|(name, table)| Some((name, TableSpec::parse(table)?)));
        let (name, spec) = parts.unwrap_or_else(|| panic!("{line:?} is no contender"));
        let (name, maker) = (name.to_owned(), Maker::Engine(spec));
        Contender { name, maker }
    }

    pub fn default_set() -> Contender {
        Contender::parse("default set | set default")
    }

    pub fn name(&self) -> String {
        self.name.clone()
    }

    /// The same table with a planted fault: it forgets keys.
    pub fn planted(mut self) -> Contender {
        if let Maker::Engine(spec) = &mut self.maker {
            spec.forgets = true;
        }
        self.name = "planted fault".into();
        self
    }

    /// Creates an empty table for about so many rows of one or two elements. Peers have two.
    pub fn make(&self, arity: usize, rows: usize) -> Outcome<Box<dyn BenchTable>> {
        let mut spec = match &self.maker {
            Maker::Peer(make) => return Ok(make()),
            Maker::Engine(spec) => spec.clone(),
        };
        // A structure of a fixed size needs the number of rows, unless the study has set it.
        if !spec.options.iter().any(|(name, _)| name == BUCKETS) {
            spec.options.extend(size_option(&spec.structure, rows));
        }
        let refused = |e: larder::Error| Failure::Impossible(format!("{}: {e}", self.name));
        Ok(Box::new(StudyTable::new(&spec, arity).map_err(refused)?))
    }
}

/// The contenders of a table, a line each (see [`Contender::parse`]).
pub fn listed(lines: &str) -> Vec<Contender> {
    lines.trim().lines().map(Contender::parse).collect()
}

/// The option of structures of a fixed size.
const BUCKETS: &str = "buckets";

/// For a structure of a fixed size, the option for a number of rows: about one row per bucket.
pub fn size_option(structure: &str, rows: usize) -> Option<(String, StructureValue)> {
    let listed = structures().find(|s| s.name == structure)?;
    let fixed = listed.options.iter().any(|o| o.name == BUCKETS);
    let buckets = rows.next_power_of_two().clamp(1 << 8, 1 << 24) as i64;
    fixed.then(|| (BUCKETS.to_owned(), StructureValue::Int(buckets)))
}

/// All structures that none of the contenders has, with their default options, as an ordered_set
/// where possible.
pub fn others(than: &[Contender]) -> Vec<Contender> {
    let has =
        |one: &Contender, name| matches!(&one.maker, Maker::Engine(spec) if spec.structure == name);
    let others = structures()
        .filter(|s| s.name != "default" && !than.iter().any(|contender| has(contender, s.name)));
    let others = others.map(|s| {
        let ordered = s.types.contains(&"ordered_set");
        let kind = if ordered { "ordered_set" } else { "set" };
        Contender::parse(&format!("{0} | {kind} {0}", s.name))
    });
    others.collect()
}

/// The shared maps of other crates that this build has.
pub fn peers() -> Vec<Contender> {
    let mut peers = Vec::new();
    each_shared!(Filter::default(), S => {
        let maker = Maker::Peer(|| Box::new(S::empty()));
        peers.push(Contender { name: S::NAME.to_owned(), maker });
    });
    peers.retain(|peer| !peer.name.starts_with("larder"));
    peers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_structure_is_a_contender() {
        let own = listed("AVL | ordered_set avl\nset | set linear_hash chain=6 locks=auto");
        let others = others(&own);
        assert_eq!(others.len(), structures().count() - 1 - own.len());
        for contender in others {
            let table = contender.make(2, 100).unwrap();
            table.handle().insert(1, 2);
            assert_eq!(table.handle().get(1), Some(2), "{}", contender.name);
        }
    }

    #[test]
    fn a_planted_fault_forgets_keys() {
        let table = Contender::default_set().planted().make(2, 100).unwrap();
        table.handle().insert(100, 2);
        assert_eq!(table.handle().get(100), None);
    }
}
