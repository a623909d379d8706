//! Maps in elements: `update_map`.

use super::{ElementUpdate, Patching, PositionOrder};
use crate::error::Error;
use crate::ids::{OwnerId, Who};
use crate::local::{with_local, Local};
use crate::table::EngineTable;
use larder_term::object::patch::{Element, Patch, Patched};
use larder_term::object::NewElements;
use larder_term::{MapEdit, PairChange, TermRef};
use smallvec::SmallVec;

/// One change of a map that is an element.
#[derive(Clone, Copy, Debug)]
pub struct MapOp<'a> {
    /// The element's position, from 1.
    pub pos: usize,
    /// A key of the map.
    pub key: TermRef<'a>,
    /// The key's new value; `None` removes the key.
    pub value: Option<TermRef<'a>>,
}

/// A key of a map, and its new value; `None` removes the key.
pub type MapChange<'a> = PairChange<'a>;

/// More changes of one map are made in one pass over it.
const FEW: usize = 8;

/// The host's part in large maps: it stores them as trees, in a form that only it can write.
pub trait MapHost {
    /// Returns a map with some changes, made in order, in the host's form, if it can write it. Its
    /// handles are valid as long as the host is.
    fn changed<'s>(
        &'s mut self,
        map: TermRef<'_>,
        changes: &[MapChange<'_>],
    ) -> Option<TermRef<'s>>;
}

/// A host without trees: its maps have the sorted form.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sorted;

impl MapHost for Sorted {
    fn changed<'s>(&'s mut self, _: TermRef<'_>, _: &[MapChange<'_>]) -> Option<TermRef<'s>> {
        None
    }
}

impl EngineTable {
    /// Changes maps that are elements of the object under the index key. Returns `false` if there
    /// is no such object. Changes of one map are made in order, all or none.
    ///
    /// # Errors
    /// `NoTable`, `Access`, `Busy`, `TableType` (bags), `Keypos`, `Position`, `NotMap`.
    ///
    /// # Complexity
    /// Linear in the size of the object; for each of a few changes, in that of its map. Many
    /// changes take O(n log n) together, as does one that adds a key to a tree, or removes one.
    pub fn update_map(&self, who: OwnerId, key: &[u8], ops: &[MapOp<'_>]) -> Result<bool, Error> {
        with_local(|local| self.update_map_in(local, who, key, ops, &mut Sorted))
    }

    /// Like `update_map`. `host` writes the maps that it stores as trees.
    ///
    /// # Errors
    /// As `update_map`.
    pub fn update_map_in(
        &self,
        local: &mut Local,
        who: impl Who,
        key: &[u8],
        ops: &[MapOp<'_>],
        host: &mut dyn MapHost,
    ) -> Result<bool, Error> {
        // Without changes there is nothing to write, though the key must be there.
        self.edit(local, who, key, &mut Maps { ops, host })
    }

    /// Puts the changed maps.
    fn change_maps(
        &self,
        (mut patch, elements): (Patch<'_, '_>, &mut NewElements<'_>),
        ops: &[MapOp<'_>],
        host: &mut dyn MapHost,
    ) -> Result<Option<Patched>, Error> {
        // A patch takes elements in the order of their positions. The operations may come in any
        // order.
        let order = PositionOrder::of(ops, |op| op.pos);
        // Check the positions first, in the order in which they came.
        if let Some(op) = ops.iter().find(|op| !patch.has(op.pos)) {
            return Err(self.no_element(op.pos));
        }
        let mut i = 0;
        while let Some(&MapOp { pos, .. }) = order.get(ops, i) {
            // All changes of one map are made together, so the map is copied once.
            let old = patch.element(pos);
            let mut changes = SmallVec::<[MapChange<'_>; 4]>::new();
            while let Some(op) = order.get(ops, i).filter(|op| op.pos == pos) {
                changes.push((op.key, op.value));
                i += 1;
            }
            patch.put(old, changed(old, &changes, host)?.term(), elements);
        }
        Ok(patch.finish())
    }
}

/// The operations of a call.
struct Maps<'o, 'h> {
    ops: &'o [MapOp<'o>],
    host: &'h mut dyn MapHost,
}

impl ElementUpdate for Maps<'_, '_> {
    fn last(&self) -> usize {
        self.ops.iter().map(|op| op.pos).max().unwrap_or(0)
    }

    fn apply_in_order(&mut self, _: &EngineTable, _: &[u8], _: &mut Vec<u8>) -> Option<Patched> {
        None
    }

    fn apply(
        &mut self,
        table: &EngineTable,
        value: &[u8],
        (out, elements): Patching<'_, '_>,
    ) -> Result<Option<Patched>, Error> {
        let patch = Patch::new(value, table.keypos(), out);
        table.change_maps((patch, elements), self.ops, self.host)
    }
}

/// A map that was changed.
pub(super) enum ChangedMap<'h> {
    /// By the host.
    Hosted(TermRef<'h>),
    /// Without it.
    Sorted(MapEdit),
}

impl ChangedMap<'_> {
    /// The map.
    pub(super) fn term(&self) -> TermRef<'_> {
        match self {
            ChangedMap::Hosted(map) => *map,
            ChangedMap::Sorted(map) => map.term(),
        }
    }
}

/// The map that is an element, with some changes.
///
/// # Errors
/// `NotMap`.
pub(super) fn changed<'h>(
    old: Element<'_>,
    changes: &[MapChange<'_>],
    host: &'h mut dyn MapHost,
) -> Result<ChangedMap<'h>, Error> {
    let mut map = MapEdit::new(old.term).ok_or(Error::NotMap)?;
    // Many changes are made in one pass over the map.
    if changes.len() > FEW {
        if !map.change_all(changes, true) {
            if let Some(map) = host.changed(old.term, changes) {
                return Ok(ChangedMap::Hosted(map));
            }
            // The host has declined: the map becomes one of sorted form.
            map.change_all(changes, false);
        }
        return Ok(ChangedMap::Sorted(map));
    }
    // The map would leave the tree form, or its tree would change, with the first of these changes.
    let mut rest = changes;
    while let [(key, value), after @ ..] = rest {
        if map.leaves_tree(*key, *value) {
            break;
        }
        apply(&mut map, *key, *value);
        rest = after;
    }
    // Only the host knows the new shape. It makes all changes, or declines.
    if !rest.is_empty() {
        if let Some(map) = host.changed(old.term, changes) {
            return Ok(ChangedMap::Hosted(map));
        }
    }
    rest.iter()
        .for_each(|&(key, value)| apply(&mut map, key, value));
    Ok(ChangedMap::Sorted(map))
}

fn apply(map: &mut MapEdit, key: TermRef<'_>, value: Option<TermRef<'_>>) {
    match value {
        Some(value) => map.put(key, value),
        None => {
            map.remove(key);
        }
    }
}
