//! Tables of each type with secondary indexes.

use larder::api::{Index, Larder, Table};

pub const TYPES: [&str; 4] = ["set", "ordered_set", "bag", "duplicate_bag"];

/// A table of this type.
pub fn table(kind: &str, indexes: &[Index]) -> Table {
    let builder = Larder::new().table("t");
    let builder = match kind {
        "set" => builder.set(),
        "ordered_set" => builder.ordered_set(),
        "bag" => builder.bag(),
        _ => builder.duplicate_bag(),
    };
    let with = indexes
        .iter()
        .fold(builder, |builder, index| builder.index(index.clone()));
    with.create().expect("a table")
}
