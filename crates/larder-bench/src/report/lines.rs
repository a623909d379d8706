//! Reading the CSVs of benches.

use serde::de::DeserializeOwned;
use serde::Deserialize;

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

/// One cell of `wide.csv`. One that was left out has no ratio.
#[derive(Debug, Clone, Deserialize)]
pub struct Cell {
    /// What was done.
    pub operation: String,
    /// To what kind of rows.
    pub kind: String,
    /// How many there are in the table.
    pub rows: u64,
    /// Larder's time by that of ets.
    pub ratio: Option<f64>,
}

/// The cells of one run, and how many were left out.
#[derive(Debug, Default)]
pub struct Wide {
    /// Those with a ratio.
    pub cells: Vec<Cell>,
    /// How many have none.
    pub left_out: usize,
}

/// Understands `wide.csv` of `make bench-wide`; an error says in words why it is no such file.
pub fn wide(text: &str) -> Result<Wide, String> {
    let all = lines::<Cell>(text)?;
    let (cells, left_out): (Vec<_>, Vec<_>) = all.into_iter().partition(|c| c.ratio.is_some());
    Ok(Wide {
        cells,
        left_out: left_out.len(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_such_file_is_an_error() {
        let header = "operation,kind,rows,ratio\n";
        assert!(wide("a,b\n1,2\n").is_err());
        assert!(wide(&format!("{header}next,int,10,many\n")).is_err());
        assert!(wide(&format!("{header}next,int,10,1.5\n")).is_ok());
    }
}
