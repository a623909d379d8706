//! Tables in files.

use super::{Larder, Table};
use crate::budget::{Budget, Step};
use crate::error::Error;
use crate::file::{LoadJob, LoadOptions, SaveJob, SaveOptions};
use larder_term::NodeName;
use std::path::Path;
use std::sync::Arc;

#[cfg_attr(docsrs, doc(cfg(feature = "files")))]
impl Table {
    /// Saves the table to a file, and replaces the file of that name, if there is one. The old file
    /// stays in place until the new one is complete and on disk.
    ///
    /// The file has the table as of one instant during the call, even if other threads write
    /// meanwhile. If the table is on a structure of the studies, the file has what a scan returns.
    ///
    /// # Errors
    /// `File` with the error of the operating system, `NoTable`.
    ///
    /// # Complexity
    /// O(n). No other thread waits for it.
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
        // Another list may be in progress, which `patiently` helps to finish. Then the job begins,
        // or goes on.
        let mut job = self.patiently(begin)?;
        while self.patiently(|| job.step(&mut Budget::unlimited()))? == Step::More {}
        Ok(())
    }
}

#[cfg_attr(docsrs, doc(cfg(feature = "files")))]
impl Larder {
    /// Creates a table from a file. The whole file is verified before the first tuple is loaded.
    /// The table has the type, key position, name and compression of the one that was saved, and no
    /// bounds and indexes. Atoms in the file are never freed: don't load files of strangers.
    ///
    /// # Errors
    /// `File` if the file isn't the file of a table, is truncated or damaged, or can't be read;
    /// `AlreadyExists` if the table is a named one, and another table has the name. If there is an
    /// error, no part of the table is left.
    ///
    /// # Complexity
    /// O(n), in an ordered_set O(n log n).
    ///
    /// # Consistency
    /// If the table is a named one, [`Larder::find`] finds it before the call returns, with a part
    /// of its tuples.
    pub fn load(&self, path: impl AsRef<Path>) -> Result<Table, Error> {
        self.load_as(path.as_ref(), true)
    }

    /// Like `load`, but the table isn't found by its name, for hosts whose tables have none.
    ///
    /// # Errors
    /// Those of `load`, except for `AlreadyExists`.
    #[doc(hidden)]
    pub fn load_unnamed(&self, path: impl AsRef<Path>) -> Result<Table, Error> {
        self.load_as(path.as_ref(), false)
    }

    fn load_as(&self, path: &Path, keeps_name: bool) -> Result<Table, Error> {
        // A file that a program loads is its own, so there is no limit of new atoms.
        let options = LoadOptions {
            verify: true,
            node: NodeName::NONE,
            legacy_zero: false,
            new_atoms: usize::MAX,
        };
        let (engine, owner) = (self.engine(), self.owner());
        let mut job = LoadJob::begin_named(engine, owner, path, options, keeps_name)?;
        // There is nobody else whose turn it would be, so each slice is as long as it can be.
        while job.step(&mut Budget::unlimited())? == Step::More {}
        Ok(Table::new(Arc::clone(job.table()), &self.0))
    }
}
