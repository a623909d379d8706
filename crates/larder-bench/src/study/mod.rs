//! The published studies, run again: `larder-bench study NAME`.
//!
//! ```text
//!  ets_2003       Fritchie 2003: seven workloads from 700 to 54 million keys
//!  ets_2013       Klaftenegger, Sagonas, Winblad 2013: throughput by threads, locks, reader groups
//!  ordered_set    inserts of disjoint ranges, the 14 scenarios of OTP's own tests, counters
//!  adapting       a contention-adapting tree while it adapts, recorded
//!  big_memory     large in-memory tables: growth, appends, value sizes
//!  transactions   snapshots: taking them, writing beside them, reading them; transactions of
//!                 several threads (concurrent_transactions)
//!  erlang         the first and the third in a BEAM, beside the real ets
//!
//!  run            one run of a study: its options, time, figures and plots
//!  contender      what is measured: a structure with its options
//!  tables         a table of {K, V} for one study, and a thread's handle to it
//! ```
//!
//! To add a study: a file with a [`Plan`], named in [`ALL`]. To add a workload to one: an entry of
//! the list in that study's file.

pub mod adapting;
pub mod big_memory;
mod concurrent_transactions;
pub mod contender;
pub mod erlang;
pub mod ets_2003;
pub mod ets_2013;
pub mod ordered_set;
pub mod run;
pub mod tables;
pub mod transactions;

pub use run::Run;

use crate::maps::peers::Filter;
use crate::result::{ensure, Failure, Outcome};
use crate::time::clock::readable;
use clap::builder::RangedU64ValueParser;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The description of a study, and the function that runs it.
pub struct Plan {
    /// The name on the command line and of the files.
    pub name: &'static str,
    pub title: &'static str,
    /// The paper or page that the study re-runs.
    pub source: &'static str,
    /// The layer of Larder that is measured, and what else a reader of the list should know.
    pub about: &'static str,
    /// The time limit of a quick run, in seconds.
    pub quick_seconds: f64,
    /// The time of a full run on two cores, in hours.
    pub full_hours: f64,
    pub run: fn(&mut Run) -> Outcome,
}

pub const ALL: [&Plan; 6] = [
    &ets_2003::STUDY,
    &ets_2013::STUDY,
    &ordered_set::STUDY,
    &big_memory::STUDY,
    &erlang::STUDY,
    &transactions::STUDY,
];

/// The size of a study.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Seconds: for tests.
    Tiny,
    /// Minutes.
    Quick,
    /// Hours: the sizes of the papers, as far as memory allows.
    Full,
}

impl Extent {
    pub fn name(self) -> &'static str {
        self.pick("tiny", "quick", "full")
    }

    /// The value for this extent.
    pub fn pick<T>(self, tiny: T, quick: T, full: T) -> T {
        match self {
            Extent::Tiny => tiny,
            Extent::Quick => quick,
            Extent::Full => full,
        }
    }
}

/// The study and its options. Without a choice of size, a study is run quick.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct StudyOptions {
    /// The study: ets-2003, ets-2013, ordered-set, big-memory, erlang or transactions; `all` for
    /// one after another; `list` tells what each is.
    pub name: String,
    /// Minutes: fewer keys, fewer operations (this is what happens if nothing is said).
    #[arg(long, conflicts_with = "full")]
    pub quick: bool,
    /// Hours: the sizes of the papers, as far as memory allows.
    #[arg(long)]
    pub full: bool,
    /// Seconds: sizes that prove that everything works, and no more.
    #[arg(long, conflicts_with_all = ["quick", "full"], hide = true)]
    pub tiny: bool,
    /// Keys and orders follow from this number: the same number, the same work. The study erlang
    /// always has the same.
    #[arg(long, default_value_t = 2003)]
    pub seed: u64,
    /// How often everything is measured, in turns; medians count. The study's own choice if not
    /// said.
    #[arg(long)]
    pub runs: Option<usize>,
    /// The sizes of ets-2003, or of its workloads in the study erlang, in keys, instead of the
    /// study's own: `21000000,54000000`. Of transactions, one number of rows.
    #[arg(long, value_name = "KEYS,...", value_delimiter = ',', value_parser = RangedU64ValueParser::<usize>::new().range(1..=u64::from(u32::MAX)))]
    pub sizes: Vec<usize>,
    /// The most threads of ets-2013 and ordered-set. If not said: as many as there are cores, and
    /// up to four for disjoint inserts.
    #[arg(long)]
    pub threads: Option<usize>,
    /// Begins nothing after so many minutes, and says what was left out. If not said: about a
    /// minute for a quick study, no end for a full one.
    #[arg(long, value_name = "MINUTES")]
    pub minutes: Option<f64>,
    /// No bars, for logs.
    #[arg(long)]
    pub no_progress: bool,
    /// No figures on the standard output.
    #[arg(long)]
    pub quiet: bool,
    /// Adds a structure that forgets keys: the run must fail and name it.
    #[arg(long, hide = true)]
    pub plant: bool,
    /// Where the Erlang modules lie: a tree in which `make build bench-beams` was done.
    #[arg(long, default_value = ".")]
    pub root: PathBuf,
}

impl StudyOptions {
    pub fn extent(&self) -> Extent {
        match (self.tiny, self.full) {
            (true, _) => Extent::Tiny,
            (_, true) => Extent::Full,
            _ => Extent::Quick,
        }
    }

    /// The time limit of a study in seconds: the user's, or the plan's for a quick run.
    pub fn seconds(&self, plan: &Plan) -> Option<f64> {
        let quick = (self.extent() == Extent::Quick).then_some(plan.quick_seconds);
        self.minutes.map(|minutes| minutes * 60.0).or(quick)
    }
}

/// The studies with `--sizes`.
const SIZED: [&str; 3] = ["ets-2003", "erlang", "transactions"];

/// Runs one study or all of them. Results go into the folder (`results/studies` if none is given),
/// after each turn and at the end, and to the standard output.
///
/// # Errors
/// If a structure gives a wrong answer, there is no such study, or something that it needs is
/// missing; I/O errors. The message names the study. A study that fails leaves no results.
pub fn run(options: &StudyOptions, filter: &Filter, out: Option<PathBuf>) -> Outcome {
    let name = &*options.name;
    if name == "list" {
        print!("{}", list());
        return Ok(());
    }
    let mut plans = ALL.to_vec();
    plans.retain(|plan| [plan.name, "all"].contains(&name));
    let names = ALL.map(|plan| plan.name).join(", ");
    ensure!(!plans.is_empty(); "study '{name}': there is none; there are {names}, and all");
    let sized = options.sizes.is_empty() || SIZED.contains(&name);
    ensure!(sized;
        "study --sizes is of the studies ets-2003, erlang and transactions alone, not of '{name}'");
    let begin = Instant::now();
    let out = out.unwrap_or_else(|| "results/studies".into());
    for (i, plan) in plans.iter().enumerate() {
        if plans.len() > 1 {
            // The remaining time is known if all of the remaining studies have a limit.
            let left: Option<f64> = plans[i..].iter().map(|plan| options.seconds(plan)).sum();
            let left = left.map_or(String::new(), |left| {
                let spent = readable(begin.elapsed().as_secs_f64());
                format!(" after {spent}, about {} left", readable(left))
            });
            eprintln!("[{} of {}]{left}", i + 1, plans.len());
        }
        let outcome = run_one(plan, options, filter, &out);
        let named = |failure| Failure::Impossible(format!("study {}: {failure}", plan.name));
        outcome.map_err(named)?;
    }
    Ok(())
}

fn run_one(plan: &Plan, options: &StudyOptions, filter: &Filter, out: &Path) -> Outcome {
    let mut run = Run::new(plan, options, filter, out);
    eprintln!("{}: {} ({})", plan.name, plan.title, run.extent.name());
    let outcome = (plan.run)(&mut run);
    run.progress.end();
    if outcome.is_err() {
        run.remove_results();
        return outcome;
    }
    let study = run.end();
    let path = study.write(out)?;
    if !options.quiet {
        print!("{}", run::table(&study));
    }
    let seconds = readable(study.seconds);
    eprintln!("written: {} and .csv, after {seconds}", path.display());
    Ok(())
}

fn list() -> String {
    let describe = |plan: &Plan| {
        let (name, title, source, about) = (plan.name, plan.title, plan.source, plan.about);
        format!("{name}\n    {title}\n    After: {source}\n    {about}\n\n")
    };
    let plans: String = ALL.into_iter().map(describe).collect();
    plans + "In all of them: `default set` and `default ordered_set` are what Larder makes when nothing is asked for; other names are those of structures that\n\
            a table can be asked for. `--only PART,PART` measures only what has a part in its name.\n"
}
