//! `larder-bench report` and `larder-bench figures`: the results of a folder as one HTML page and
//! as SVG files, and as tables of a Markdown page. Nothing is measured; the crate `larder-report`
//! does the work.

use std::path::{Path, PathBuf};

/// What is to be drawn.
#[derive(clap::Args)]
pub struct Options {
    /// The folder with what studies left (`*.json`) or with `bench.csv` of `make bench`.
    folder: PathBuf,
    /// Another run's folder, to compare with.
    #[arg(long, value_name = "OTHER_DIR")]
    against: Option<PathBuf>,
}

/// The page whose tables are to be written.
#[derive(clap::Args)]
pub struct Page {
    /// The page. It says itself what its tables show.
    page: PathBuf,
    /// The folder with the CSVs.
    folder: PathBuf,
}

/// Writes the page's tables anew.
///
/// # Errors
/// In words, if a file can't be read or written, or the page asks for what a file lacks. The page
/// is then as it was.
pub fn figures(Page { page, folder }: &Page) -> Result<(), String> {
    let text = larder_report::fill(page, folder).map_err(|error| error.to_string())?;
    std::fs::write(page, text).map_err(|error| format!("{}: {error}", page.display()))?;
    println!(
        "{}: its tables are those of {}",
        page.display(),
        folder.display()
    );
    Ok(())
}

/// Draws, and says where: to `out`, or to `report.html` in the folder. The plots lie beside the
/// page, in `NAME-plots`.
///
/// # Errors
/// In words, if a file can't be read or written or is no result.
pub fn run(options: &Options, out: Option<&Path>) -> Result<(), String> {
    let out = out.map_or_else(|| options.folder.join("report.html"), Path::to_path_buf);
    let written = larder_report::write(&options.folder, options.against.as_deref(), &out)
        .map_err(|error| error.to_string())?;
    let plots = written.plots.len();
    println!(
        "{}: {} studies, {plots} plots",
        written.page.display(),
        written.studies
    );
    if let Some(folder) = written.plots.first().and_then(|plot| plot.parent()) {
        println!("{}: the plots, an SVG file each", folder.display());
    }
    Ok(())
}
