//! Elements: `update_element`.

use super::{NewRow, PositionOrder};
use crate::error::Error;
use crate::ids::{OwnerId, Who};
use crate::local::{with_local, Local};
use crate::table::EngineTable;
use larder_term::object::patch::Patch;
use larder_term::object::ObjectRef;
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
        with_local(|local| {
            // The default is made into an object only if the key is not there. If the key comes in
            // between, the second call finds it, and the default is not used.
            let done = self.update_element_in(local, who, key, ops, None);
            let (Ok(false), Some(row)) = (&done, default) else {
                return done;
            };
            let row = self.new_row(row)?;
            self.update_element_in(local, who, key, ops, Some(&row.borrow()))
        })
    }

    /// Like `update_element`, with the default as an object of the table that has the key.
    ///
    /// # Errors
    /// As `update_element`.
    #[inline]
    pub fn update_element_in(
        &self,
        local: &mut Local,
        who: impl Who,
        key: &[u8],
        ops: &[(usize, TermRef<'_>)],
        default: Option<&ObjectRef<'_>>,
    ) -> Result<bool, Error> {
        // The default must have all elements that are replaced.
        let last = || ops.iter().map(|op| op.0).max().unwrap_or(0);
        // A call without operations only checks whether the key is there.
        self.edit(local, who, key, (default, &last), &mut |patch| {
            self.replace(patch, ops)
        })
    }

    /// Puts the new elements.
    #[inline]
    fn replace(
        &self,
        patch: &mut Patch<'_, '_>,
        ops: &[(usize, TermRef<'_>)],
    ) -> Result<(), Error> {
        let order = PositionOrder::of(ops, |op| op.0);
        // Check all positions before an element is replaced, in the order in which they came. The
        // first wrong one is reported.
        if let Some((pos, _)) = ops.iter().find(|(pos, _)| !patch.has(*pos)) {
            return Err(self.no_element(*pos));
        }
        let mut i = 0;
        while let Some(&(pos, term)) = order.get(ops, i) {
            i += 1;
            // If there are several for one position, the last one counts.
            if order.get(ops, i).is_some_and(|next| next.0 == pos) {
                continue;
            }
            let old = patch.element(pos);
            patch.put(old, term);
        }
        Ok(())
    }
}
