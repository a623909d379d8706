//! Tables on the structures of the published studies.

use super::Builder;
use crate::structures::StructureValue;

#[cfg_attr(docsrs, doc(cfg(feature = "studies")))]
impl Builder {
    /// The structure that stores the table; see [`crate::structures`].
    pub fn structure(mut self, name: &str) -> Self {
        self.options.structure = name.to_owned().into();
        self
    }

    /// The structure and its options as one text, as in `info` and in files: `btree`,
    /// `catree(over=btree,m=16)`.
    pub fn structure_text(mut self, text: &str) -> Self {
        self.options.set_structure_text(text);
        self
    }

    /// An option of the structure.
    pub fn structure_option(mut self, name: &str, value: StructureValue) -> Self {
        let said = &mut self.options.structure_options;
        said.push((name.to_owned(), value));
        self
    }
}
