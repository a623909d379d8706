//! Reading the CSVs of benches.

use serde::de::DeserializeOwned;

/// A CSV, but for the facts in lines that begin with `#`.
pub fn csv(text: &str) -> csv::Reader<&[u8]> {
    let mut reader = csv::ReaderBuilder::new();
    reader.comment(Some(b'#')).from_reader(text.as_bytes())
}

/// Its lines, of which the columns are used that `T` has.
///
/// # Errors
/// If a column is missing or a field is no number, in words.
pub fn lines<T: DeserializeOwned>(text: &str) -> Result<Vec<T>, String> {
    let all: Result<_, _> = csv(text).deserialize().collect();
    all.map_err(|error| error.to_string())
}
