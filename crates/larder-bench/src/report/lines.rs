//! Reading the CSVs of benches.

use serde::de::DeserializeOwned;

/// A reader of a CSV. Lines that begin with `#` are facts, which it ignores.
pub fn csv(text: &str) -> csv::Reader<&[u8]> {
    let mut reader = csv::ReaderBuilder::new();
    reader.comment(Some(b'#')).from_reader(text.as_bytes())
}

/// The lines of a CSV. It must have the columns that `T` has.
pub fn lines<T: DeserializeOwned>(text: &str) -> Result<Vec<T>, String> {
    let all: Result<_, _> = csv(text).deserialize().collect();
    all.map_err(|error| error.to_string())
}

/// A cell of `wide.csv`. One that was left out has no ratio.
#[derive(Debug, serde::Deserialize)]
pub struct Cell {
    pub operation: String,
    pub kind: String,
    pub rows: u64,
    /// Larder's time relative to that of ets.
    pub ratio: Option<f64>,
}

/// The cells of a run that have a ratio, and the number of the others.
#[derive(Debug, Default)]
pub struct Wide {
    pub cells: Vec<Cell>,
    pub left_out: usize,
}

/// Parses `wide.csv` of `make bench-wide`. Another file is an error.
pub fn wide(text: &str) -> Result<Wide, String> {
    let all = lines::<Cell>(text)?.into_iter();
    let (cells, left_out): (Vec<_>, Vec<_>) = all.partition(|cell| cell.ratio.is_some());
    let left_out = left_out.len();
    Ok(Wide { cells, left_out })
}
