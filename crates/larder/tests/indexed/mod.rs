//! Tables of each type with secondary indexes.

use super::kinds;
use larder::api::{Index, Larder, Table};

/// A table of this type.
pub fn table(kind: &str, indexes: &[Index]) -> Table {
    let indexes = indexes.iter().cloned();
    kinds::table(
        indexes.fold(Larder::new().table("t"), |t, index| t.index(index)),
        kind,
    )
}
