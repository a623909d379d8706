//! How the host takes keys that hold maps.

use std::sync::atomic::{AtomicBool, Ordering};

/// See [`set_exact_map_keys`].
static EXACT_MAP_KEYS: AtomicBool = AtomicBool::new(false);

/// Says how the host takes a key without variables that holds a map, where every clause names its
/// key: for the key itself (`true`), as releases of Erlang did until 2024, or for a pattern.
pub fn set_exact_map_keys(exact: bool) {
    // Ordering: Relaxed; said once, before anything is compiled.
    EXACT_MAP_KEYS.store(exact, Ordering::Relaxed);
}

/// What `set_exact_map_keys` said.
pub(crate) fn exact_map_keys() -> bool {
    // Ordering: Relaxed, as above.
    EXACT_MAP_KEYS.load(Ordering::Relaxed)
}
