//! All peers, in turns, each in a fresh process; the result is a study, `peers.json`, for
//! `larder-bench report`.

use crate::jvm::{self, Java};
use crate::peer::Trouble;
use crate::workload::{Figure, STEPS};
use larder_bench::report::{announce, median};
use larder_bench::study::clock::said;
use larder_bench::study::run::grouped;
use larder_report::result::{Better, Plot, Point, Scale, Study};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

/// The exit status of a process whose peer is not to be had.
pub const ABSENT: u8 = 3;

/// What is measured.
#[derive(clap::Args)]
pub struct Options {
    /// Minutes: 65,536 and 1,048,576 entries, each peer twice (this is what happens if nothing is
    /// said).
    #[arg(long, conflicts_with = "full")]
    pub quick: bool,
    /// Half an hour and more: 16,777,216 entries, too, each peer three times.
    #[arg(long)]
    full: bool,
    /// Entries, instead of these.
    #[arg(long, value_delimiter = ',')]
    entries: Vec<usize>,
    /// Appends at each size.
    #[arg(long, default_value_t = 1 << 18)]
    appends: usize,
    /// How often each peer is measured, in turns; the median counts.
    #[arg(long)]
    runs: Option<usize>,
    /// Only peers whose name has one of these in it (between commas).
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// What `scripts/peers.sh` made for the JVM.
    #[arg(long, default_value = "_build/peers/jvm")]
    jvm: PathBuf,
    /// Where peers.json and peers.csv go.
    #[arg(long, default_value = "_build/peers")]
    out: PathBuf,
}

impl Options {
    fn entries(&self) -> Vec<usize> {
        match (self.entries.is_empty(), self.full) {
            (false, _) => self.entries.clone(),
            (true, false) => vec![1 << 16, 1 << 20],
            (true, true) => vec![1 << 16, 1 << 20, 1 << 24],
        }
    }

    fn runs(&self) -> usize {
        self.runs.unwrap_or(if self.full { 3 } else { 2 }).max(1)
    }

    /// About how long so many peers take: half a second to begin, three microseconds an entry.
    fn seconds(&self, peers: usize) -> f64 {
        let one = |entries: &usize| 0.5 + *entries as f64 * 3e-6 + self.appends as f64 * 0.5e-6;
        self.entries().iter().map(one).sum::<f64>() * (peers * self.runs()) as f64
    }

    /// What `scripts/peers.sh` could not get, a line each.
    fn not_installed(&self) -> Vec<String> {
        let list = self.jvm.with_file_name("missing.txt");
        let text = std::fs::read_to_string(list).unwrap_or_default();
        text.lines().map(str::to_string).collect()
    }
}

/// One who is measured.
enum Who {
    Here(&'static str),
    Java(Java),
}

impl Who {
    fn name(&self) -> &str {
        match self {
            Who::Here(name) => name,
            Who::Java(java) => &java.name,
        }
    }

    /// Its figures, from a fresh process.
    fn run(&self, entries: usize, appends: usize) -> Result<Vec<Figure>, Trouble> {
        let name = match self {
            Who::Here(name) => name,
            Who::Java(java) => return java.run(entries),
        };
        let program = std::env::current_exe()?;
        let output = Command::new(program)
            .args(["one", name, &entries.to_string(), &appends.to_string()])
            .output()?;
        let said = String::from_utf8_lossy(&output.stderr).trim().to_string();
        match output.status.code() {
            Some(0) => jvm::read(&String::from_utf8_lossy(&output.stdout)),
            Some(code) if code == i32::from(ABSENT) => Err(Trouble::Absent(said)),
            _ => Err(Trouble::Wrong(format!("{}: {said}", output.status))),
        }
    }
}

/// Runs of each step, by size and peer.
type Runs = BTreeMap<(usize, usize, &'static str), Vec<f64>>;

/// Measures all, and writes the study. Gives the path of its JSON.
///
/// # Errors
/// A wrong answer of any peer, after the others were measured and written; or nothing measured.
pub fn run(
    options: &Options,
    started: String,
    facts: Vec<(&'static str, String)>,
) -> Result<PathBuf, String> {
    let begin = Instant::now();
    let who = wanted(options);
    if who.is_empty() {
        return Err("no peer is called so".into());
    }
    announce("peers", options.seconds(who.len()));
    let mut found = Found::default();
    for entries in options.entries() {
        for run in 1..=options.runs() {
            eprintln!(
                "{entries} entries, run {run} of {}, after {}",
                options.runs(),
                said(begin.elapsed().as_secs_f64())
            );
            for (i, one) in who.iter().enumerate() {
                found.measure(i, one, entries, options.appends);
            }
            // A run that is broken off leaves what it has.
            if !found.runs.is_empty() {
                let seconds = begin.elapsed().as_secs_f64();
                let mut study = study(options, started.clone(), facts.clone());
                found.tell(options, &who, &mut study, seconds);
                write(&study, options)?;
            }
        }
    }
    if found.runs.is_empty() {
        return Err(format!("nothing was measured: {}", found.troubles()));
    }
    match found.wrong.is_empty() {
        true => Ok(options.out.join("peers.json")),
        false => Err(format!("wrong answers: {}", found.wrong.join("; "))),
    }
}

fn write(study: &Study, options: &Options) -> Result<(), String> {
    let written = study.write(&options.out);
    let written = written.map_err(|error| format!("{}: {error}", options.out.display()));
    written.map(|_| ())
}

/// What was found so far.
#[derive(Default)]
struct Found {
    runs: Runs,
    /// Peers that are left out from then on, and why.
    gone: BTreeMap<String, String>,
    wrong: Vec<String>,
}

impl Found {
    /// Measures one once, if nothing is wrong with it.
    fn measure(&mut self, i: usize, one: &Who, entries: usize, appends: usize) {
        let name = one.name().to_string();
        if self.gone.contains_key(&name) {
            return;
        }
        let begin = Instant::now();
        match one.run(entries, appends) {
            Ok(figures) => {
                eprintln!("  {name}: {}", said(begin.elapsed().as_secs_f64()));
                for (step, figure) in figures {
                    let of = self.runs.entry((entries, i, step)).or_default();
                    of.push(figure);
                }
            }
            Err(why) => {
                eprintln!("  {name} is left out: {why}");
                if let Trouble::Wrong(why) = &why {
                    self.wrong.push(format!("{name}: {why}"));
                }
                self.gone.insert(name, why.to_string());
            }
        }
    }

    fn troubles(&self) -> String {
        let all = self.gone.iter().map(|(name, why)| format!("{name}: {why}"));
        all.collect::<Vec<_>>().join("; ")
    }

    fn tell(&self, options: &Options, who: &[Who], study: &mut Study, seconds: f64) {
        study.seconds = seconds;
        study.points = points(who, &self.runs);
        study.skipped = crate::missing();
        study.skipped.extend(options.not_installed());
        if !who.iter().any(|one| matches!(one, Who::Java(_))) {
            study.skipped.push(format!(
                "the JVM's maps: {} has none (scripts/peers.sh)",
                options.jvm.display()
            ));
        }
        let gone = self.gone.iter().map(|(name, why)| format!("{name}: {why}"));
        study.skipped.extend(gone);
    }
}

fn wanted(options: &Options) -> Vec<Who> {
    let java = jvm::all(&options.jvm).into_iter().map(Who::Java);
    let all = crate::names().into_iter().map(Who::Here).chain(java);
    let asked = |one: &Who| {
        options.only.is_empty()
            || options
                .only
                .iter()
                .any(|part| one.name().contains(part.as_str()))
    };
    all.filter(asked).collect()
}

fn study(options: &Options, started: String, facts: Vec<(&'static str, String)>) -> Study {
    let mut machine: BTreeMap<String, String> = facts
        .into_iter()
        .map(|(name, fact)| (name.to_string(), fact))
        .collect();
    let commit = machine.remove("commit").unwrap_or_default();
    let setting = |name: &str, value: String| (name.to_string(), value);
    Study {
        study: "peers".into(),
        title: "Larder beside stores from elsewhere: u64 to u64, and bytes to append to".into(),
        source: "the peers' own defaults, one thread, one process each".into(),
        machine,
        commit,
        started,
        settings: BTreeMap::from([
            setting("runs", options.runs().to_string()),
            setting("appends", options.appends.to_string()),
            setting("keys a call", crate::workload::CALL.to_string()),
        ]),
        plots: STEPS.iter().map(|step| plot(step)).collect(),
        checks: vec![
            "every value looked up is the one that was put".into(),
            "no key that was not put is found".into(),
            "under every appended key lie exactly its pieces".into(),
        ],
        ..Study::default()
    }
}

fn plot(step: &str) -> Plot {
    let servers = "Servers get 1024 commands at once over loopback; libraries 1024 keys a call.";
    let (title, y_label, note) = match step {
        "insert" => ("Inserts of random keys, from empty", "nanoseconds an insert", servers),
        "hit" => ("Lookups of keys that are there", "nanoseconds a lookup", servers),
        "miss" => ("Lookups of keys that are not there", "nanoseconds a lookup", servers),
        "bytes" => ("Memory", "resident bytes an entry", "What the process that holds the entries grew by (a server's own process), the JVM's after a collection."),
        _ => ("Appends of 16 bytes to random keys", "nanoseconds an append", "To an eighth as many keys as there are entries; the JVM's maps of longs have none."),
    };
    Plot {
        id: step.into(),
        title: title.into(),
        x_label: "entries".into(),
        y_label: y_label.into(),
        x_scale: Scale::Names,
        y_scale: Scale::Log,
        note: note.into(),
    }
}

fn points(who: &[Who], runs: &Runs) -> Vec<Point> {
    let point = |((entries, i, step), figures): (&(usize, usize, &'static str), &Vec<f64>)| Point {
        plot: step.to_string(),
        series: who[*i].name().to_string(),
        x: format!("{} entries", grouped(*entries)).as_str().into(),
        y: median(figures),
        low: figures.iter().copied().fold(f64::INFINITY, f64::min),
        high: figures.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        unit: if *step == "bytes" { "bytes" } else { "ns" }.into(),
        runs: figures.len(),
        better: Better::Less,
    };
    runs.iter().map(point).collect()
}
