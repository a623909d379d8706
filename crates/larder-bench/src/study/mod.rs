//! The published studies, run again: `larder-bench study NAME`.
//!
//! ```text
//!  ets_2003       Fritchie 2003: seven workloads from 700 to 54 million keys
//!  ets_2013       Klaftenegger, Sagonas, Winblad 2013: throughput by threads, locks, reader groups
//!  ordered_set    inserts of disjoint ranges, the 14 scenarios of OTP's own tests, counters
//!  adapting       a contention-adapting tree while it adapts, recorded
//!  big_memory     large in-memory tables: growth, appends, value sizes
//!  transactions   snapshots: taking them, writing beside them, reading them
//!  erlang         the first and the third in a BEAM, beside the real ets
//!
//!  run            one run of a study: what was asked for, what was found
//!  contender      what is measured: a structure with its options
//!  rows           a table of {K, V} for one study, as a thread works on it
//! ```
//!
//! To add a study: a file with a [`Plan`], named in [`all`]. To add a workload to one: an entry of
//! the list in that study's file.

pub mod adapting;
pub mod big_memory;
pub mod contender;
pub mod erlang;
pub mod ets_2003;
pub mod ets_2013;
pub mod ordered_set;
pub mod rows;
pub mod run;
pub mod transactions;

pub use run::Run;

use crate::maps::peers::Only;
use crate::result::Outcome;
use crate::time::clock;
use clap::builder::RangedU64ValueParser;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// A study: what it is, and how it is run.
pub struct Plan {
    /// Its name, on the command line and of its files.
    pub name: &'static str,
    /// What it is, in one line.
    pub title: &'static str,
    /// The paper or page that it re-runs.
    pub source: &'static str,
    /// Which layer of Larder it measures, and what else a reader of `--help` should know.
    pub about: &'static str,
    /// Seconds that it may take when it is run quick: another turn is begun only while there is
    /// time for it.
    pub quick_seconds: f64,
    /// Runs it. What it measures goes into the run.
    pub run: fn(&mut Run) -> Outcome,
}

/// All studies.
pub fn all() -> &'static [&'static Plan] {
    &[
        &ets_2003::STUDY,
        &ets_2013::STUDY,
        &ordered_set::STUDY,
        &big_memory::STUDY,
        &erlang::STUDY,
        &transactions::STUDY,
    ]
}

/// How long a study may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Seconds: for tests.
    Tiny,
    /// Minutes.
    Quick,
    /// Hours: what the paper did, as memory allows.
    Full,
}

impl Extent {
    /// One of three.
    pub fn pick<T>(self, tiny: T, quick: T, full: T) -> T {
        match self {
            Extent::Tiny => tiny,
            Extent::Quick => quick,
            Extent::Full => full,
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        self.pick("tiny", "quick", "full")
    }
}

/// What is to be run. Called without any choice of size, a study is run quick.
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
    /// Keys and orders follow from this number: the same number, the same work.
    #[arg(long, default_value_t = 2003)]
    pub seed: u64,
    /// How often everything is measured, in turns; medians count. The study's own choice if not
    /// said.
    #[arg(long)]
    pub runs: Option<usize>,
    /// The sizes of ets-2003, or of its workloads in the study erlang, in keys, instead of the
    /// study's own: `21000000,54000000`.
    #[arg(long, value_name = "KEYS,...", value_delimiter = ',', value_parser = RangedU64ValueParser::<usize>::new().range(1..=u64::from(u32::MAX)))]
    pub sizes: Vec<usize>,
    /// The most threads; as many as there are cores if not said.
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
    /// The size that was asked for.
    pub fn scale(&self) -> Extent {
        match (self.tiny, self.full) {
            (true, _) => Extent::Tiny,
            (_, true) => Extent::Full,
            _ => Extent::Quick,
        }
    }
}

/// The studies whose tables have the sizes that are asked for.
const SIZED: [&str; 3] = ["ets-2003", "erlang", "transactions"];

/// Runs the study that was asked for, or all of them, and writes what they found into the folder
/// (`results/studies` if none is said), after each turn and at the end. Figures also go to the
/// standard output.
///
/// # Errors
/// A structure gave a wrong answer; there is no such study; what it needs is not there; files. The
/// text begins with `study` and its name. Of a study that fails nothing is written.
pub fn run(options: &StudyOptions, only: &Only, out: Option<PathBuf>) -> Result<(), String> {
    if options.name == "list" {
        print!("{}", list());
        return Ok(());
    }
    let out = out.unwrap_or_else(|| PathBuf::from("results/studies"));
    let wanted: Vec<_> = all()
        .iter()
        .filter(|s| options.name == "all" || options.name == s.name)
        .collect();
    if wanted.is_empty() {
        let names: Vec<_> = all().iter().map(|s| s.name).collect();
        return Err(format!(
            "study '{}': there is none; there are {}, and all",
            options.name,
            names.join(", ")
        ));
    }
    // Only some studies have sizes. Say so before anything is measured.
    if !options.sizes.is_empty() && !SIZED.contains(&&*options.name) {
        return Err(format!(
            "study --sizes is of the studies ets-2003, erlang and transactions alone, and this is '{}'",
            options.name
        ));
    }
    let begin = Instant::now();
    let of = wanted.len();
    for (i, study) in wanted.into_iter().enumerate() {
        if of > 1 {
            let left = left(options, &begin, i, of);
            // Where this study is among several, and how long the rest takes.
            eprintln!("[{} of {of}]{left}", i + 1);
        }
        one(study, options, only, &out)
            .map_err(|failure| format!("study {}: {failure}", study.name))?;
    }
    Ok(())
}

/// The time that this study and those after it will take, if they have an end.
fn left(options: &StudyOptions, begin: &Instant, done: usize, of: usize) -> String {
    let each = |study: &Plan| match (options.minutes, options.scale()) {
        (Some(minutes), _) => Some(minutes * 60.0),
        (None, Extent::Quick) => Some(study.quick_seconds),
        _ => None,
    };
    // If one of the studies has no end, nothing is said.
    let seconds: Option<Vec<f64>> = all()[done..of].iter().map(|study| each(study)).collect();
    seconds.map_or(String::new(), |seconds| {
        let spent = clock::said(begin.elapsed().as_secs_f64());
        let left = clock::said(seconds.iter().sum());
        format!(" after {spent}, about {left} left")
    })
}

fn one(study: &Plan, options: &StudyOptions, only: &Only, out: &Path) -> Outcome {
    let mut run = Run::new(study, options, only, out);
    eprintln!("{}: {} ({})", study.name, study.title, run.scale.name());
    let outcome = (study.run)(&mut run);
    run.progress.end();
    // A failed study leaves no results behind, not even those of its first turns.
    if outcome.is_err() {
        run.take_back();
    }
    outcome?;
    // The file is written once more, without the note that the study is under way.
    let result = run.end();
    let path = result.write(out)?;
    if !options.quiet {
        print!("{}", run::table(&result));
    }
    eprintln!(
        "written: {} and .csv, after {}",
        path.display(),
        clock::said(result.seconds)
    );
    Ok(())
}

/// What each study is, for people.
pub fn list() -> String {
    let mut text = String::new();
    for study in all() {
        text += &format!(
            "{}\n    {}\n    After: {}\n    {}\n\n",
            study.name, study.title, study.source, study.about
        );
    }
    text + "In all of them: `default set` and `default ordered_set` are what Larder makes when nothing is asked for; other names are those of structures that\n\
            a table can be asked for. `--only PART,PART` measures only what has a part in its name.\n"
}
