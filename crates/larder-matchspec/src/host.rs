//! Settings of the host, for the whole process: what differs between releases of OTP.

use std::sync::atomic::{AtomicBool, Ordering};

/// See [`set_exact_map_keys`].
static EXACT_MAP_KEYS: AtomicBool = AtomicBool::new(false);
/// See [`set_native_records`].
static NATIVE_RECORDS: AtomicBool = AtomicBool::new(false);

/// Sets how the host treats a key in a head that has no variables but contains a map, if all
/// clauses have such keys: as an exact key (`true`), as `ets` did before OTP 26.2.5, or as a
/// pattern.
pub fn set_exact_map_keys(exact: bool) {
    // Ordering: Relaxed; set once, before anything is compiled.
    EXACT_MAP_KEYS.store(exact, Ordering::Relaxed);
}

/// The value that was set by `set_exact_map_keys`.
pub(crate) fn exact_map_keys() -> bool {
    // Ordering: Relaxed, as above.
    EXACT_MAP_KEYS.load(Ordering::Relaxed)
}

/// Sets whether `is_record(Term, Module, Name)` with two atoms asks for a native record, as from
/// OTP 29 on. No stored term is one, so it is `false`. In earlier releases it fails.
pub fn set_native_records(exist: bool) {
    // Ordering: Relaxed; set once, before anything is run.
    NATIVE_RECORDS.store(exist, Ordering::Relaxed);
}

/// The value that was set by `set_native_records`.
pub(crate) fn native_records() -> bool {
    // Ordering: Relaxed, as above.
    NATIVE_RECORDS.load(Ordering::Relaxed)
}
