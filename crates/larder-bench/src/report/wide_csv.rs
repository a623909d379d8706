//! `wide.csv` of `make bench-wide`.

use crate::report::Error;
use std::path::Path;

/// One measured cell.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    pub(crate) operation: String,
    pub(crate) kind: String,
    pub(crate) rows: u64,
    pub(crate) ratio: f64,
}

/// The cells of one run, and how many were left out.
#[derive(Debug, Default)]
pub struct Wide {
    pub(crate) cells: Vec<Cell>,
    pub(crate) left_out: usize,
}

/// Reads the file.
///
/// # Errors
/// If it can't be read, or is not such a file.
pub fn read(path: &Path) -> Result<Wide, Error> {
    let text = std::fs::read_to_string(path).map_err(|error| Error::Io(path.into(), error))?;
    parse(&text).map_err(|why| Error::Form(path.into(), why))
}

pub(crate) fn parse(text: &str) -> Result<Wide, String> {
    let mut reader = csv::ReaderBuilder::new()
        .comment(Some(b'#'))
        .from_reader(text.as_bytes());
    let header = reader.headers().map_err(|error| error.to_string())?.clone();
    let at = |name: &str| {
        let place = header.iter().position(|column| column == name);
        place.ok_or_else(|| format!("it has no column {name}"))
    };
    let (operation, kind, rows, ratio) = (at("operation")?, at("kind")?, at("rows")?, at("ratio")?);
    let mut wide = Wide::default();
    for record in reader.records() {
        let line = record.map_err(|error| error.to_string())?;
        if line[ratio].is_empty() {
            wide.left_out += 1;
            continue;
        }
        wide.cells.push(Cell {
            operation: line[operation].into(),
            kind: line[kind].into(),
            rows: line[rows].parse().map_err(|_| "rows are no number")?,
            ratio: line[ratio].parse().map_err(|_| "a ratio is no number")?,
        });
    }
    Ok(wide)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_such_file_is_an_error() {
        let header = "operation,kind,rows,ratio\n";
        assert!(parse("a,b\n1,2\n").is_err());
        assert!(parse(&format!("{header}next,int,10,many\n")).is_err());
        assert!(parse(&format!("{header}next,int,10,1.5\n")).is_ok());
    }
}
