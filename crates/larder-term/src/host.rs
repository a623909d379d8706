//! Properties of the host: settings of the whole process, made before its first table.

use crate::atom::Atom;
use std::{
    cmp::Ordering,
    sync::{
        atomic::{AtomicBool, Ordering as Memory},
        OnceLock,
    },
};

static LEGACY_ZERO: AtomicBool = AtomicBool::new(false);

/// Sets whether 0.0 and −0.0 are identical in this process, as they are in OTP before 27. By
/// default they aren't.
pub fn set_legacy_zero(legacy: bool) {
    // Ordering: Relaxed; a switch that the host sets before it makes its first table.
    LEGACY_ZERO.store(legacy, Memory::Relaxed);
}

/// Whether 0.0 and −0.0 are identical in this process.
#[inline]
pub fn legacy_zero() -> bool {
    // Ordering: Relaxed; pairs with the store of `set_legacy_zero`, see there.
    LEGACY_ZERO.load(Memory::Relaxed)
}

/// How the host orders two atoms that are keys of one map, if not by their texts.
pub type AtomOrder = fn(Atom, Atom) -> Ordering;

static ATOM_ORDER: OnceLock<AtomOrder> = OnceLock::new();
static MAPS_AS_STORED: AtomicBool = AtomicBool::new(false);
static TREE_MAPS: AtomicBool = AtomicBool::new(false);

/// Sets how the host orders atoms that are keys of one map. Must be called before any map is
/// encoded; only the first call has an effect. By default their texts are compared.
pub fn set_atom_order(order: AtomOrder) {
    let _the_first_counts = ATOM_ORDER.set(order);
}

/// How the host orders atoms that are keys of one map, if that was set.
pub(crate) fn atom_order() -> Option<AtomOrder> {
    ATOM_ORDER.get().copied()
}

/// Says that the host compares two small maps in the keys of a map by their pairs as they lie, not
/// in term order. The two orders differ if it has an order of its own for atoms. Must be called
/// before any map is encoded.
pub fn set_maps_as_stored() {
    // Ordering: Relaxed; a switch that the host sets before it makes its first table.
    MAPS_AS_STORED.store(true, Memory::Relaxed);
}

/// Whether the host compares maps in the keys of a map by their pairs as they lie.
pub(crate) fn maps_as_stored() -> bool {
    // Ordering: Relaxed; pairs with the store of `set_maps_as_stored`, see there.
    MAPS_AS_STORED.load(Memory::Relaxed)
}

/// From now on, large maps may be written in the order of the host's tree.
pub fn set_tree_maps() {
    // Ordering: Relaxed; a switch that the host sets before it makes its first table.
    TREE_MAPS.store(true, Memory::Relaxed);
}

/// Whether a map may have two forms in this process, so that identical terms may differ in their
/// bytes.
#[inline]
pub fn tree_maps() -> bool {
    // Ordering: Relaxed; pairs with the store of `set_tree_maps`, see there.
    TREE_MAPS.load(Memory::Relaxed)
}
