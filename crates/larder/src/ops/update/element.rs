//! Elements: `update_element`.

use super::{ElementUpdate, NewRow, Patching, PositionOrder};
use crate::error::Error;
use crate::ids::{OwnerId, Who};
use crate::local::{with_local, Local};
use crate::table::EngineTable;
use larder_term::object::patch::{Patch, Patched};
use larder_term::object::{self, ObjectRef};
use larder_term::TermRef;

impl EngineTable {
    /// Replaces elements of the object under the index key. Returns `false` if there is no such
    /// object and no `default`. If the key is absent and `default` is given, the object is first
    /// made from it. If there are several elements for one position, the last one counts. All are
    /// replaced, or none.
    ///
    /// # Errors
    /// `NoTable`, `Access`, `Busy`, `TableType` (bags), `BadDefault`, `Keypos`, `Position`.
    ///
    /// # Complexity
    /// Linear in the object and the new elements.
    pub fn update_element(
        &self,
        who: OwnerId,
        key: &[u8],
        ops: &[(usize, TermRef<'_>)],
        default: Option<NewRow<'_>>,
    ) -> Result<bool, Error> {
        with_local(|local| loop {
            // The default is made into an object only if the key is not there.
            let done = self.update_element_in(local, who, key, ops);
            let (Ok(false), Some(row)) = (&done, default) else {
                return done;
            };
            let row = self.new_row(row)?;
            if self.insert_element_in(local, who, &row.borrow(), ops)? {
                return Ok(true);
            }
            // The key has come in between.
        })
    }

    /// Like `update_element` without a default.
    ///
    /// # Errors
    /// As `update_element`.
    #[inline(always)]
    pub fn update_element_in(
        &self,
        local: &mut Local,
        who: impl Who,
        key: &[u8],
        ops: &[(usize, TermRef<'_>)],
    ) -> Result<bool, Error> {
        // One walk over the value finds all elements if the operations are in the order of their
        // positions. Mostly they are.
        let sorted;
        let ascending = match ops.is_sorted_by_key(|op| op.0) {
            true => ops,
            false => {
                sorted = in_order(ops);
                &sorted
            }
        };
        // A call without operations only checks whether the key is there.
        self.edit(local, who, key, &mut Elements { ops, ascending })
    }

    /// Replaces elements of a default, which is an object of the table, and inserts it, if there is
    /// no object under its key. Returns whether it did.
    ///
    /// # Errors
    /// As `update_element`.
    #[inline(never)]
    pub fn insert_element_in(
        &self,
        local: &mut Local,
        who: impl Who,
        default: &ObjectRef<'_>,
        ops: &[(usize, TermRef<'_>)],
    ) -> Result<bool, Error> {
        let ascending = &in_order(ops);
        self.insert_updated(local, who, default, &mut Elements { ops, ascending })
    }

    /// The error for the first position, in the order in which they came, that has no element to
    /// replace.
    #[cold]
    fn first_wrong(&self, ops: &[(usize, TermRef<'_>)], has: impl Fn(usize) -> bool) -> Error {
        let wrong = ops.iter().find(|op| !has(op.0));
        self.no_element(wrong.map_or(0, |op| op.0))
    }
}

/// The operations of a call.
struct Elements<'o, 't> {
    /// As they came.
    ops: &'o [(usize, TermRef<'t>)],
    /// In the order of their positions.
    ascending: &'o [(usize, TermRef<'t>)],
}

impl ElementUpdate for Elements<'_, '_> {
    fn last(&self) -> usize {
        self.ascending.last().map_or(0, |op| op.0)
    }

    #[inline(always)]
    fn apply_in_order(
        &mut self,
        table: &EngineTable,
        value: &[u8],
        out: &mut Vec<u8>,
    ) -> Option<Patched> {
        let packs = table.compressed();
        let mut patch = Patch::new(value, table.keypos(), out);
        let mut rest = self.ascending;
        while let [(pos, term), after @ ..] = rest {
            rest = after;
            // Any other term is stored in another form, or not in the run of a packed value.
            if !object::is_stored_as_is(*term, packs) {
                return None;
            }
            // If there are several for one position, the last one counts.
            if rest.first().is_none_or(|next| next.0 != *pos) {
                let old = patch.element_in_place(*pos, packs)?;
                patch.put_with(old, |out| out.extend_from_slice(term.bytes()));
            }
        }
        patch.finish()
    }

    #[inline(never)]
    fn apply(
        &mut self,
        table: &EngineTable,
        value: &[u8],
        (out, elements): Patching<'_, '_>,
    ) -> Result<Option<Patched>, Error> {
        let mut patch = Patch::new(value, table.keypos(), out);
        let mut rest = self.ascending;
        while let [(pos, term), after @ ..] = rest {
            rest = after;
            // The error is that of the first wrong operation as they came, so look for that.
            if !patch.has(*pos) {
                return Err(table.first_wrong(self.ops, |pos| patch.has(pos)));
            }
            // If there are several for one position, the last one counts.
            if rest.first().is_none_or(|next| next.0 != *pos) {
                let old = patch.element(*pos);
                patch.put(old, *term, elements);
            }
        }
        Ok(patch.finish())
    }
}

/// The operations in the order of their positions. Those for one position keep their order.
#[cold]
fn in_order<'t>(ops: &[(usize, TermRef<'t>)]) -> Vec<(usize, TermRef<'t>)> {
    let order = PositionOrder::of(ops, |op| op.0);
    (0..ops.len())
        .filter_map(|i| order.get(ops, i).copied())
        .collect()
}
