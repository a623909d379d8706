//! What the studies found, as one HTML page that needs nothing else, and as SVG files. Nothing is
//! measured here.
//!
//! ```text
//!  DIR/*.json ─┐                   ┌─ page     the page; parts: summary, study, versus, tables
//!  DIR/*.csv  ─┴─ read ── chart ───┤
//!                  │       │       └─ svg      one plot;  scale: where things lie on it
//!               result   verdict
//!
//!  *.csv ── figures ── tables in Markdown pages
//!                        tree (the animation)
//! ```
//!
//! The page's script (`assets/`) draws the same plots again, with the same shapes and colours, when
//! a reader changes something. Without a script the page still has every plot, table and verdict.
//!
//! Why plots are drawn here and not by a plotting crate: each must follow the reader's dark or
//! light scheme, be told apart without colours, carry its figures for the script, and be the same
//! in the page and in its file. Markup of any kind goes through `maud`, which escapes all text.

mod bench_csv;
mod chart;
mod figures;
mod lines;
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

use std::path::{Path, PathBuf};

pub use figures::fill;
pub use read::Findings;

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or folder could not be read or written.
    #[error("{0}: {1}")]
    Io(PathBuf, #[source] std::io::Error),
    /// A file is not what its name says.
    #[error("{0} is no study's result: {1}")]
    Form(PathBuf, String),
    /// Two studies of one name, which would be drawn over each other.
    #[error("{0} and another file are both of the study {1}")]
    Twice(PathBuf, String),
    /// A table of a page can't be made.
    #[error("{0}: figures {1}")]
    Figures(PathBuf, String),
    /// The folder has nothing to tell.
    #[error("{0} has no study's result (*.json, bench.csv of `make bench` or wide.csv of `make bench-wide`)")]
    Nothing(PathBuf),
}

/// What was written.
#[derive(Debug)]
pub struct Written {
    /// The page.
    pub page: PathBuf,
    /// The plots, one file each.
    pub plots: Vec<PathBuf>,
    /// How many studies it tells of.
    pub studies: usize,
}

/// Reads the results in `folder` (and those in `against`, to compare with), and writes the page to
/// `out` and its plots to the folder `NAME-plots` beside it, where `NAME.html` is the page.
///
/// # Errors
/// [`Error`]. A file that is no result is an error, not skipped: a report must not be silent about
/// what it could not read.
///
/// # Complexity
/// Linear in the results.
pub fn write(folder: &Path, against: Option<&Path>, out: &Path) -> Result<Written, Error> {
    let here = Findings::read(folder)?;
    let there = against.map(Findings::read).transpose()?;
    // The charts are made once. The page, the summary and the files draw the same ones.
    let charts = chart::all(&here, there.as_ref());
    // The page is made completely before anything is written.
    let html = page::page(&here, there.as_ref(), &charts);
    make_folder(out.parent())?;
    save(out, &html)?;
    let plots = write_plots(&here, &charts, out)?;
    Ok(Written {
        page: out.to_path_buf(),
        plots,
        studies: here.studies.len(),
    })
}

/// Like [`write()`], and prints where the page and the plots are.
///
/// # Errors
/// [`Error`].
pub fn draw(folder: &Path, against: Option<&Path>, out: &Path) -> Result<(), Error> {
    let written = write(folder, against, out)?;
    println!(
        "{}: {} studies, {} plots",
        written.page.display(),
        written.studies,
        written.plots.len()
    );
    if let Some(folder) = written.plots.first().and_then(|plot| plot.parent()) {
        println!("{}: the plots, an SVG file each", folder.display());
    }
    Ok(())
}

/// Writes the tables of a Markdown page anew from the CSVs of a folder.
///
/// # Errors
/// [`Error`]; the page is then as it was.
pub fn write_figures(page: &Path, folder: &Path) -> Result<(), Error> {
    save(page, &fill(page, folder)?)?;
    println!(
        "{}: its tables are those of {}",
        page.display(),
        folder.display()
    );
    Ok(())
}

fn write_plots(
    here: &Findings,
    charts: &[chart::Chart],
    out: &Path,
) -> Result<Vec<PathBuf>, Error> {
    // The folder has the name of the page, so that two pages in one folder don't mix.
    let mut name = out.file_stem().unwrap_or_default().to_os_string();
    name.push("-plots");
    let folder = out.with_file_name(name);
    make_folder(Some(&folder))?;
    let files = charts
        .iter()
        .map(|chart| (chart.plot.id.as_str(), svg::file(chart)));
    let files = files.chain(
        here.tree
            .iter()
            .map(|tree| ("catree-adapting", tree::file(tree))),
    );
    files
        .map(|(id, text)| {
            let path = folder.join(format!("{id}.svg"));
            save(&path, &text).map(|()| path)
        })
        .collect()
}

fn make_folder(folder: Option<&Path>) -> Result<(), Error> {
    let folder = folder.filter(|folder| !folder.as_os_str().is_empty());
    folder.map_or(Ok(()), |folder| {
        std::fs::create_dir_all(folder).map_err(|error| Error::Io(folder.to_path_buf(), error))
    })
}

fn save(path: &Path, text: &str) -> Result<(), Error> {
    std::fs::write(path, text).map_err(|error| Error::Io(path.to_path_buf(), error))
}
