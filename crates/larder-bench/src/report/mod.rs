//! The results as one HTML page that needs nothing else, and as SVG files. Nothing is measured
//! here.
//!
//! ```text
//!  DIR/*.json ─┐                   ┌─ page     the page; parts: summary, study, versus, tables,
//!  DIR/*.csv  ─┴─ read ── chart ───┤           wide, tree
//!                  │       │       └─ svg      one plot; scale: where things lie on it
//!               result   verdict
//!
//!  *.csv ── figures ── tables in Markdown pages (crate::table, as for wide)
//! ```
//!
//! The page's script (`assets/`) draws the same plots again, with the same shapes and colours, when
//! a reader changes something. Without a script the page still has every plot, table and verdict.
//!
//! A plotting crate doesn't fit: plots must follow the reader's dark or light scheme, be told apart
//! without colours, carry their figures for the script, and be the same in the page and in their
//! files. `plotters` writes fixed colours into each element. Markup of any kind goes through
//! `maud`, which escapes all text.

mod bench_csv;
mod chart;
mod figures;
mod number;
mod page;
mod read;
mod scale;
mod study;
mod style;
mod summary;
mod svg;
mod tables;
mod tree;
mod verdict;
mod versus;
mod wide;

use crate::result::{Failure, Outcome};
use std::fmt::Display;
use std::path::{Path, PathBuf};

pub use figures::fill;
pub use read::Findings;

/// That a file is not what its name says, with why.
pub(crate) fn no_result(path: &Path, why: impl Display) -> Failure {
    Failure::Impossible(format!("{} is no study's result: {why}", path.display()))
}

/// That a file can't be read or written.
pub(crate) fn failed(path: &Path, error: std::io::Error) -> Failure {
    Failure::Impossible(format!("{}: {error}", path.display()))
}

/// The page and the plots that were written, and the number of studies.
#[derive(Debug)]
pub struct Written {
    pub page: PathBuf,
    pub plots: Vec<PathBuf>,
    pub studies: usize,
}

/// Reads the results in `folder` (and those in `against`, to compare with). Writes the page to
/// `out`, and its plots to the folder `NAME-plots` beside it, where `NAME.html` is the page.
/// A file that can't be read is an error: a report must not be silent about it.
pub fn write(folder: &Path, against: Option<&Path>, out: &Path) -> Outcome<Written> {
    let here = Findings::read(folder)?;
    let there = against.map(Findings::read).transpose()?;
    let charts = chart::all(&here, there.as_ref());
    // The page is complete before anything is written.
    let html = page::page(&here, there.as_ref(), &charts);
    save(out, &html)?;
    let mut name = out.file_stem().unwrap_or_default().to_os_string();
    name.push("-plots");
    let folder = out.with_file_name(name);
    let files = charts
        .iter()
        .map(|chart| (&*chart.plot.id, svg::file(chart)));
    let tree = here.tree.iter();
    let tree = tree.map(|tree| ("catree-adapting", tree::file(tree)));
    let mut plots = Vec::new();
    for (id, text) in files.chain(tree) {
        let path = folder.join(format!("{id}.svg"));
        save(&path, &text)?;
        plots.push(path);
    }
    Ok(Written {
        page: out.to_path_buf(),
        plots,
        studies: here.studies.len(),
    })
}

/// Calls [`write()`], and prints where the page and the plots are.
pub fn draw(folder: &Path, against: Option<&Path>, out: &Path) -> Outcome {
    let written = write(folder, against, out)?;
    let (page, plots) = (written.page.display(), written.plots.len());
    println!("{page}: {} studies, {plots} plots", written.studies);
    if let Some(folder) = written.plots.first().and_then(|plot| plot.parent()) {
        println!("{}: the plots, an SVG file each", folder.display());
    }
    Ok(())
}

/// Writes the tables of a Markdown page anew from the CSVs of a folder. After an error the page is
/// as it was.
pub fn write_figures(page: &Path, folder: &Path) -> Outcome {
    save(page, &fill(page, folder)?)?;
    let (page, folder) = (page.display(), folder.display());
    println!("{page}: its tables are those of {folder}");
    Ok(())
}

/// Writes a file, and the folder in which it is.
fn save(path: &Path, text: &str) -> Outcome {
    // The folder of a name alone is the empty path, which is there.
    let created = path.parent().map_or(Ok(()), std::fs::create_dir_all);
    let written = created.and_then(|()| std::fs::write(path, text));
    written.map_err(|error| failed(path, error))
}
