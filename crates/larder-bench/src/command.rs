//! The command line: `larder-bench --help`.

use crate::maps::{engine, growth, peers::Filter, resident, skew, threads, typed};
use crate::{caches, report, result::Outcome, stores, study};
use clap::{Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Parser)]
#[command(
    about = "Larder's structures beside their peers, and the published studies run again",
    after_help = "Begin with `larder-bench study list`, then `larder-bench study ets-2003 --quick --out DIR`.",
    version
)]
struct Arguments {
    #[command(subcommand)]
    what: What,
    /// Where results go. Of `study` and `peers run`: a folder, for NAME.json and NAME.csv
    /// (results/studies and _build/peers if not said). Of `report`: the page. Of the others: a CSV
    /// file (none if not said).
    #[arg(long, global = true, value_name = "PATH")]
    out: Option<PathBuf>,
    /// Measure only structures whose name has one of these in it, or is one of these if it is
    /// written `=NAME` (between commas).
    #[arg(long, global = true, value_delimiter = ',', value_name = "PART,...")]
    only: Vec<String>,
}

#[derive(Subcommand)]
enum What {
    /// One thread: insert, lookup, scan, remove, and bytes an entry.
    Engine(engine::EngineOptions),
    /// The slowest million and the slowest single insert while growing.
    Growth(growth::GrowthOptions),
    /// Throughput of several threads on one structure.
    Threads(threads::ThreadsOptions),
    /// Skewed and hostile keys, beside random ones.
    Skew(skew::SkewOptions),
    /// Tables of Rust's types beside maps of other crates, shared by threads.
    Typed(typed::TypedOptions),
    /// Tables that evict, as caches, beside the caches of other crates.
    Caches(caches::CacheOptions),
    /// The published studies, run again: ets-2003, ets-2013, ordered-set, big-memory, erlang; and
    /// transactions.
    Study(study::StudyOptions),
    /// Stores from elsewhere under one workload: C++ maps, databases, servers, the JVM's maps.
    #[command(subcommand)]
    Peers(stores::Command),
    /// Draws what studies left in a folder: one HTML page and SVG files; compares two runs.
    Report {
        /// The folder with what studies left (`*.json`) or with `bench.csv` of `make bench`.
        folder: PathBuf,
        /// Another run's folder, to compare with.
        #[arg(long, value_name = "OTHER_DIR")]
        against: Option<PathBuf>,
    },
    /// Writes the tables of a Markdown page anew from the CSVs of a folder.
    Figures {
        /// The page. It says itself what its tables show.
        page: PathBuf,
        /// The folder with the CSVs.
        folder: PathBuf,
    },
    /// Fills one structure and prints its resident bytes. The others call this, in a fresh process.
    #[command(hide = true)]
    Resident(resident::ResidentOptions),
}

pub fn main() -> ExitCode {
    execute(Arguments::parse()).unwrap_or_else(|why| {
        eprintln!("larder-bench: {why}");
        ExitCode::FAILURE
    })
}

fn execute(Arguments { what, out, only }: Arguments) -> Outcome<ExitCode> {
    let filter = Filter(only);
    match what {
        What::Engine(options) => engine::run(&options, &filter)?.finish(out)?,
        What::Growth(options) => growth::run(&options, &filter)?.finish(out)?,
        What::Threads(options) => threads::run(&options, &filter)?.finish(out)?,
        What::Skew(options) => skew::run(&options, &filter)?.finish(out)?,
        What::Typed(options) => typed::run(&options, &filter)?.finish(out)?,
        What::Caches(options) => caches::run(&options, &filter)?.finish(out)?,
        What::Study(options) => study::run(&options, &filter, out)?,
        What::Peers(command) => return stores::main(&command, &filter, out),
        What::Report { folder, against } => {
            let out = out.unwrap_or_else(|| folder.join("report.html"));
            report::draw(&folder, against.as_deref(), &out)?;
        }
        What::Figures { page, folder } => report::write_figures(&page, &folder)?,
        What::Resident(options) => resident::run(&options),
    }
    Ok(ExitCode::SUCCESS)
}
