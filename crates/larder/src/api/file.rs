//! Tables in files.

use super::{Larder, Table};
use crate::budget::{Budget, Step};
use crate::error::Error;
use crate::file::{LoadJob, LoadOptions, SaveJob, SaveOptions};
use larder_term::NodeName;
use std::path::Path;
use std::sync::Arc;

impl Table {
    /// Writes the table to a file, in place of what is there: the old file stays until the new one
    /// is whole, and on the disk.
    ///
    /// The file has the table as of one moment of the call, whatever others do meanwhile. Of a
    /// table on a structure of the studies it has what a scan sees.
    ///
    /// # Errors
    /// `File` with what the system said, `NoTable`.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        let options = SaveOptions {
            sync: true,
            node: NodeName::NONE,
            extra: Vec::new(),
        };
        let begin = || {
            SaveJob::begin(
                self.engine_table(),
                self.me(),
                path.as_ref(),
                options.clone(),
            )
        };
        let mut job = self.patiently(begin)?;
        while self.patiently(|| job.step(&mut Budget::unlimited()))? == Step::More {}
        Ok(())
    }
}

impl Larder {
    /// Makes the table that a file holds. The whole file is checked before the first tuple is taken
    /// from it.
    ///
    /// # Errors
    /// `File`: not a table's file, cut short, damaged, or what the system said; `AlreadyExists`: it
    /// has a name to be found by, which is in use. Nothing is left of a table whose file is bad.
    pub fn load(&self, path: impl AsRef<Path>) -> Result<Table, Error> {
        let options = LoadOptions {
            verify: true,
            node: NodeName::NONE,
            legacy_zero: false,
            new_atoms: usize::MAX,
        };
        let mut job = LoadJob::begin(self.engine(), self.owner(), path.as_ref(), options)?;
        while job.step(&mut Budget::unlimited())? == Step::More {}
        Ok(Table::new(Arc::clone(job.table()), &self.0))
    }
}
