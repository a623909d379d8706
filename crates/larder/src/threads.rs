//! Starting the library's own threads.

use std::thread::{Builder, JoinHandle};

/// Starts a thread. `None` if the system refuses.
// All threads are started by one function, since the standard library's has 6 KB for each closure.
pub(crate) fn spawn(name: &str, run: fn()) -> Option<JoinHandle<()>> {
    Builder::new().name(name.to_owned()).spawn(run).ok()
}
