//! Tables of each type.

use larder::api::{Builder, Table};

pub const KINDS: [&str; 4] = ["set", "ordered_set", "bag", "duplicate_bag"];

/// A table of this type; all else is the builder's.
pub fn table(builder: Builder, kind: &str) -> Table {
    match kind {
        "set" => builder.set(),
        "ordered_set" => builder.ordered_set(),
        "bag" => builder.bag(),
        _ => builder.duplicate_bag(),
    }
    .create()
    .expect("a table")
}
