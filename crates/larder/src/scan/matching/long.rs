//! Steps that take long, whatever their budgets are: they put many keys in order that an index has
//! found. A host can tell before the step, and run it on a thread for which nobody waits.

use super::jobs::{DeleteJob, ReplaceJob, TakeJob};
use super::select::CountJob;

impl CountJob {
    /// Whether the next step takes long, whatever its budget.
    pub fn is_long(&self) -> bool {
        self.scan.cursor.is_long()
    }
}

impl DeleteJob {
    /// Whether the next step takes long, whatever its budget.
    pub fn is_long(&self) -> bool {
        self.work.scan.cursor.is_long()
    }
}

impl TakeJob {
    /// Whether the next step takes long, whatever its budget.
    pub fn is_long(&self) -> bool {
        self.0.is_long()
    }
}

impl ReplaceJob {
    /// Whether the next step takes long, whatever its budget.
    pub fn is_long(&self) -> bool {
        self.work.scan.cursor.is_long()
    }
}
