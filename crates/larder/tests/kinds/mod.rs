//! Tables of each type.

use larder::api::{Larder, Table};

pub const KINDS: [&str; 4] = ["set", "ordered_set", "bag", "duplicate_bag"];

/// A table of this type.
pub fn table(larder: &Larder, kind: &str) -> Table {
    let builder = larder.table(kind);
    match kind {
        "set" => builder.set(),
        "ordered_set" => builder.ordered_set(),
        "bag" => builder.bag(),
        _ => builder.duplicate_bag(),
    }
    .create()
    .unwrap()
}
