//! Larder's structures beside their peers, measured from Rust: `larder-bench --help`. The command
//! line alone; what it calls is in the library.

#![deny(unsafe_code)]

use clap::{Parser, Subcommand};
use larder_bench::{counting, drawn, engine, growth, peers, resident, skew, study, threads};
use std::path::PathBuf;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: counting::Counting = counting::Counting;

#[derive(Parser)]
#[command(
    about = "Larder's structures beside their peers, and the published studies run again",
    after_help = "Begin with `larder-bench study list`, then `larder-bench study ets-2003 --quick --out DIR`.",
    version
)]
struct Arguments {
    #[command(subcommand)]
    what: What,
    /// Where results go. Of `study`: a folder, for STUDY.json and STUDY.csv (results/studies if not
    /// said). Of the others: a CSV file (none if not said).
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
    Engine(engine::Options),
    /// The slowest million and the slowest single insert while growing.
    Growth(growth::Options),
    /// Throughput of several threads on one structure.
    Threads(threads::Options),
    /// Skewed and hostile keys, beside random ones.
    Skew(skew::Options),
    /// The published studies, run again: ets-2003, ets-2013, ordered-set, big-memory, erlang.
    Study(study::Options),
    /// Draws what studies left in a folder: one HTML page and SVG files; compares two runs.
    Report(drawn::Options),
    /// Writes the tables of a Markdown page anew from the CSVs of a folder.
    Figures(drawn::Page),
    /// Fills one structure and prints its resident bytes. The others call this, in a fresh process.
    #[command(hide = true)]
    Resident(resident::Options),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if let What::Study(options) = &arguments.what {
        return studies(options, &arguments.only, arguments.out);
    }
    let only = peers::Only(arguments.only);
    let report = match &arguments.what {
        What::Engine(options) => engine::run(options, &only),
        What::Growth(options) => growth::run(options, &only),
        What::Threads(options) => threads::run(options, &only),
        What::Skew(options) => skew::run(options, &only),
        What::Report(options) => return said(drawn::run(options, arguments.out.as_deref())),
        What::Figures(page) => return said(drawn::figures(page)),
        What::Resident(options) => {
            resident::run(options);
            return ExitCode::SUCCESS;
        }
        What::Study(_) => unreachable!("it was dealt with"),
    };
    if report.is_empty() {
        eprintln!("larder-bench: nothing was measured (no structure is called so?)");
        return ExitCode::FAILURE;
    }
    report.print();
    if let Some(path) = arguments.out {
        if let Err(error) = report.write(&path) {
            eprintln!("larder-bench: {}: {error}", path.display());
            return ExitCode::FAILURE;
        }
        eprintln!("written: {}", path.display());
    }
    ExitCode::SUCCESS
}

fn said(done: Result<(), String>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("larder-bench: {why}");
            ExitCode::FAILURE
        }
    }
}

fn studies(options: &study::Options, only: &[String], out: Option<PathBuf>) -> ExitCode {
    if options.name == "list" {
        print!("{}", study::list());
        return ExitCode::SUCCESS;
    }
    let out = out.unwrap_or_else(study::folder);
    match study::run(options, only, &out) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("larder-bench: study {failure}");
            ExitCode::FAILURE
        }
    }
}
