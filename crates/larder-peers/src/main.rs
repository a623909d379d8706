//! Stores from elsewhere beside Larder: `larder-peers --help`. `make bench-peers` installs what
//! they need and runs this.

#![forbid(unsafe_code)]

use clap::{Parser, Subcommand};
use larder_peers::peer::Trouble;
use larder_peers::{jvm, study, workload};
use std::process::ExitCode;

#[derive(Parser)]
#[command(
    about = "Larder beside stores from elsewhere, under one workload",
    version
)]
struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// The peers that are here, and what could not be had.
    List {
        /// What `scripts/peers.sh` made for the JVM.
        #[arg(long, default_value = "_build/peers/jvm")]
        jvm: std::path::PathBuf,
    },
    /// Measures them in turns, each in a process of its own; writes peers.json, peers.csv and
    /// report.html.
    Run(study::Options),
    /// Measures one, in this process. `run` calls this.
    #[command(hide = true)]
    One {
        name: String,
        entries: usize,
        appends: usize,
    },
}

fn main() -> ExitCode {
    match Arguments::parse().what {
        What::List { jvm } => list(&jvm),
        What::Run(options) => run(&options),
        What::One {
            name,
            entries,
            appends,
        } => one(&name, entries, appends),
    }
}

fn list(folder: &std::path::Path) -> ExitCode {
    larder_peers::names()
        .iter()
        .for_each(|name| println!("{name}"));
    jvm::all(folder)
        .iter()
        .for_each(|java| println!("{} (JVM)", java.name));
    larder_peers::missing()
        .iter()
        .for_each(|text| println!("not here: {text}"));
    ExitCode::SUCCESS
}

fn run(options: &study::Options) -> ExitCode {
    let facts = larder_bench::report::facts();
    let date = facts.iter().find(|(name, _)| *name == "date");
    let started = date.map(|(_, date)| date.clone()).unwrap_or_default();
    match study::run(options, started, facts) {
        Ok(path) => draw(&path),
        Err(why) => {
            eprintln!("larder-peers: {why}");
            ExitCode::FAILURE
        }
    }
}

/// The page of what was measured, beside it.
fn draw(study: &std::path::Path) -> ExitCode {
    let folder = study.parent().unwrap_or(study);
    match larder_report::write(folder, None, &folder.join("report.html")) {
        Ok(written) => {
            println!("{}\n{}", study.display(), written.page.display());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("larder-peers: {error}");
            ExitCode::FAILURE
        }
    }
}

fn one(name: &str, entries: usize, appends: usize) -> ExitCode {
    let figures =
        larder_peers::make(name).and_then(|mut peer| workload::run(&mut *peer, entries, appends));
    match figures {
        Ok(figures) => {
            figures
                .iter()
                .for_each(|(step, figure)| println!("{step},{figure}"));
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("{why}");
            match why {
                Trouble::Absent(_) => ExitCode::from(study::ABSENT),
                _ => ExitCode::FAILURE,
            }
        }
    }
}
