//! The number of threads that can run at the same time.

use std::sync::LazyLock;

/// The number of threads that can run at the same time. The system is asked once: on Linux its
/// answer takes reading several files.
pub(crate) fn cores() -> usize {
    static CORES: LazyLock<usize> =
        LazyLock::new(|| std::thread::available_parallelism().map_or(1, usize::from));
    *CORES
}
