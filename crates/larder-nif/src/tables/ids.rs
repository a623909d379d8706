//! Table ids: an atom for a named table, and a reference to a resource for any other.
//!
//! The resource of a table is made once and kept with it until the table is deleted. So references
//! to the same table are always equal, even if the caller has none any more (`all/0`), or only its
//! text (`binary_to_term/1`).

use crate::resource::{Registered, ResourceRef};
use crate::sys::*;
use crate::terms::atoms;
use larder::host::EngineTable;
use std::sync::Arc;

/// A table as a resource.
pub struct TableRef(pub Arc<EngineTable>);

/// The resource type of tables.
pub static TABLES: Registered<TableRef> = Registered::new();

/// The reference to a table, also if the table is named.
pub fn reference(env: *mut Env, table: &Arc<EngineTable>) -> Word {
    table.with_beside(|kept| {
        // The resource was made before. All references to the table are equal.
        let held = kept.as_ref().and_then(|kept| kept.downcast_ref());
        if let Some(held) = held.map(|held: &ResourceRef<TableRef>| held.term(env)) {
            return held;
        }
        // The table keeps its resource, and the resource keeps the table. Deleting the table ends
        // this circle.
        let held = TABLES.make(TableRef(Arc::clone(table)));
        let word = held.term(env);
        // If the table was deleted meanwhile, don't keep its resource, which would never be freed.
        if table.is_alive() {
            *kept = Some(Box::new(held));
        }
        word
    })
}

/// The id of a table.
pub fn term(env: *mut Env, table: &Arc<EngineTable>) -> Word {
    if table.is_named() {
        atoms::to_word(env, table.name())
    } else {
        reference(env, table)
    }
}
