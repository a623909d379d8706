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
        let sorted;
        let ascending = match ops.is_sorted_by_key(|op| op.0) {
            true => ops,
            false => {
                sorted = in_order(ops);
                &sorted
            }
        };
        // A call without operations only checks whether the key is there.
        self.edit(
            local,
            who,
            key,
            (default, &last),
            &mut |value, (out, elements)| {
                let mut patch = Patch::new(value, self.keypos(), out);
                let mut rest = ascending;
                while let [(pos, term), after @ ..] = rest {
                    rest = after;
                    if !patch.has(*pos) {
                        return Err(self.first_wrong(ops, |pos| patch.has(pos)));
                    }
                    // If there are several for one position, the last one counts.
                    if rest.first().is_none_or(|next| next.0 != *pos) {
                        let old = patch.element(*pos);
                        patch.put(old, *term, elements);
                    }
                }
                Ok(patch.finish())
            },
        )
    }

    /// The error for the first position, in the order in which they came, that has no element to
    /// replace.
    #[cold]
    fn first_wrong(&self, ops: &[(usize, TermRef<'_>)], has: impl Fn(usize) -> bool) -> Error {
        let wrong = ops.iter().find(|op| !has(op.0));
        self.no_element(wrong.map_or(0, |op| op.0))
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
