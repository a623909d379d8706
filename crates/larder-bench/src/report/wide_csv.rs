//! `wide.csv` of `make bench-wide`.

use crate::report::lines::lines;

/// One cell. One that was left out has no ratio.
#[derive(Debug, Clone, serde::Deserialize)]
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

/// Understands the file.
///
/// # Errors
/// If it is not such a file, in words.
pub fn parse(text: &str) -> Result<Wide, String> {
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
        assert!(parse("a,b\n1,2\n").is_err());
        assert!(parse(&format!("{header}next,int,10,many\n")).is_err());
        assert!(parse(&format!("{header}next,int,10,1.5\n")).is_ok());
    }
}
