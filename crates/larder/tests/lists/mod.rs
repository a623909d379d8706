//! Lists of objects, as a host passes them to the engine.

use larder::api::Table;
use larder::host::ObjectList;
use larder_term::object::ObjectBuf;
use larder_term::Term;
use std::borrow::Borrow;

/// The objects of these rows, for this table.
pub fn list(t: &Table, rows: impl IntoIterator<Item = impl Borrow<Term>>) -> ObjectList {
    let (mut list, mut object) = (ObjectList::new(), ObjectBuf::new());
    for row in rows {
        t.engine_table()
            .encode_object(row.borrow().as_ref(), &mut object)
            .unwrap();
        list.push(&object);
    }
    list
}
