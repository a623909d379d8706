//! Table ids: an atom for a named table, a reference to a resource for others.
//!
//! The resource of a table is made once and kept beside it until the table dies, so that the same
//! table always gives equal references, also to those who have none any more (`all/0`) or only its
//! text (`binary_to_term/1`).

use crate::resource::{Registered, ResourceRef};
use crate::sys::*;
use crate::terms::atoms;
use larder::Table;
use std::sync::Arc;

/// A table as a resource.
pub struct TableRef(pub Arc<Table>);

/// Tables.
pub static TABLES: Registered<TableRef> = Registered::new();

/// The reference to a table, whatever its id is.
pub fn reference(env: *mut Env, table: &Arc<Table>) -> Word {
    table.with_beside(|kept| {
        let held = kept.as_ref().and_then(|kept| kept.downcast_ref());
        if let Some(held) = held.map(|held: &ResourceRef<TableRef>| held.term(env)) {
            return held;
        }
        let held = TABLES.make(TableRef(Arc::clone(table)));
        let word = held.term(env);
        // That of a table which died meanwhile is not kept, or it would be for ever.
        if table.is_alive() {
            *kept = Some(Box::new(held));
        }
        word
    })
}

/// The id of a table.
pub fn term(env: *mut Env, table: &Arc<Table>) -> Word {
    if table.is_named() {
        atoms::to_word(env, table.name())
    } else {
        reference(env, table)
    }
}
