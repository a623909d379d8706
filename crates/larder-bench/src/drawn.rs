//! `larder-bench report`: the results of a folder as one HTML page and as SVG files. Nothing is measured; the crate `larder-report` does the work.

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

/// Draws, and says where: to `out`, or to `report.html` in the folder. The plots lie beside the page, in `NAME-plots`.
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
