//! Measures all peers in turns, each in a new process. The result is a study, `peers.json`, for
//! `larder-bench report`.

use crate::maps::peers::Only;
use crate::stores::jvm;
use crate::stores::peer::PeerError;
use crate::stores::workload::{Figure, KEYS_PER_CALL};
use crate::study::run::Run;
use crate::study::StudyOptions;
use crate::table::grouped;
use crate::time::clock::{said, Clock};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

const PLOTS: &str = "
insert | Inserts of random keys, from empty | entries, names | nanoseconds an insert, log | ns, less | {servers}
hit | Lookups of keys that are there | entries, names | nanoseconds a lookup, log | ns, less | {servers}
miss | Lookups of keys that are not there | entries, names | nanoseconds a lookup, log | ns, less | {servers}
bytes | Memory | entries, names | resident bytes an entry, log | bytes, less | What the process that holds the entries grew by (a server's own process), the JVM's after a collection.
append | Appends of 16 bytes to random keys | entries, names | nanoseconds an append, log | ns, less | To an eighth as many keys as there are entries; the JVM's maps of longs have none.
";

/// The exit status of a process whose peer isn't available.
pub const ABSENT: u8 = 3;

/// What is measured.
#[derive(clap::Args)]
pub struct PeersOptions {
    /// Minutes: 65,536 and 1,048,576 entries, each peer twice (the default).
    #[arg(long, conflicts_with = "full")]
    pub quick: bool,
    /// Half an hour and more: also 16,777,216 entries, and each peer three times.
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
    /// What `scripts/peers.sh` made for the JVM.
    #[arg(long, default_value = "_build/peers/jvm")]
    jvm: PathBuf,
}

impl PeersOptions {
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

    /// The peers that `scripts/peers.sh` could not install, one per line.
    fn not_installed(&self) -> Vec<String> {
        let list = self.jvm.with_file_name("missing.txt");
        let text = std::fs::read_to_string(list).unwrap_or_default();
        text.lines().map(str::to_string).collect()
    }
}

/// Measures a peer in a fresh process, with numbers of entries and appends.
type Measure = Box<dyn Fn(usize, usize) -> Result<Vec<Figure>, PeerError>>;

/// The figures of a peer of this build. This program runs once more, so that memory and caches of
/// one store don't affect the next.
fn one_here(name: &str, entries: usize, appends: usize) -> Result<Vec<Figure>, PeerError> {
    let [entries, appends] = [entries, appends].map(|n| n.to_string());
    let output = Command::new(std::env::current_exe()?)
        .args(["peers", "one", name, &entries, &appends])
        .output()?;
    let message = String::from_utf8_lossy(&output.stderr).trim().to_string();
    // The status distinguishes a store that isn't available from one that failed. Only the latter
    // fails the run.
    match output.status.code() {
        Some(0) => jvm::read(&String::from_utf8_lossy(&output.stdout)),
        Some(code) if code == i32::from(ABSENT) => Err(PeerError::Absent(message)),
        _ => Err(PeerError::Wrong(format!("{}: {message}", output.status))),
    }
}

/// Measures all, and writes the study into the folder.
///
/// # Errors
/// A wrong answer of any peer, after the others were measured and written; or nothing measured.
pub fn run(options: &PeersOptions, only: &Only, out: &Path) -> Result<(), String> {
    let here = super::names().into_iter().map(|name| -> (String, Measure) {
        let measure = move |entries, appends| one_here(name, entries, appends);
        (name.to_owned(), Box::new(measure))
    });
    let java = jvm::all(&options.jvm);
    let no_java = java.is_empty();
    let java = java.into_iter().map(|java| -> (String, Measure) {
        (
            java.name.clone(),
            Box::new(move |entries, _| java.run(entries)),
        )
    });
    let wanted = here.chain(java).filter(|(name, _)| only.has(name));
    let who: Vec<_> = wanted.map(|one| (one.0.clone(), one)).collect();
    if who.is_empty() {
        return Err("no peer has such a name".into());
    }
    let names = [
        "peers",
        "Larder beside stores from elsewhere: u64 to u64, and bytes to append to",
        "the peers' own defaults, one thread, one process each",
    ];
    let plain = StudyOptions {
        no_progress: true,
        ..StudyOptions::default()
    };
    let mut run = Run::begin(names, &plain, Clock::new(None, false), only, out);
    declare(&mut run, options, no_java);
    let (mut gone, mut wrong) = (BTreeSet::new(), Vec::new());
    // The sizes in turn, and for each size the stores in turns.
    for entries in options.entries() {
        let x = format!("{} entries", grouped(entries));
        let measured = run.in_turns(
            &x,
            (options.runs(), 1.0),
            &who,
            |run, _, (name, measure)| {
                let begin = Instant::now();
                // A store that was absent or wrong once isn't tried again.
                if gone.contains(name) {
                    return Ok(());
                }
                match measure(entries, options.appends) {
                    Ok(figures) => {
                        eprintln!("  {name}: {}", said(begin.elapsed().as_secs_f64()));
                        for (step, figure) in figures {
                            run.figure(step, name, &*x, figure);
                        }
                    }
                    Err(why) => {
                        run.skip(format!("{name}: {why}"));
                        // A wrong answer fails the run, but the others are measured first.
                        if let PeerError::Wrong(why) = why {
                            wrong.push(format!("{name}: {why}"));
                        }
                        gone.insert(name.clone());
                    }
                }
                Ok(())
            },
        );
        measured.map_err(|error| error.to_string())?;
    }
    // All that could be measured was measured. Write it before a wrong answer is reported.
    let study = run.end();
    if study.points.is_empty() {
        return Err(format!(
            "nothing was measured: {}",
            study.skipped.join("; ")
        ));
    }
    let written = study.write(out);
    written.map_err(|error| format!("{}: {error}", out.display()))?;
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(format!("wrong answers: {}", wrong.join("; "))),
    }
}

fn declare(run: &mut Run, options: &PeersOptions, no_java: bool) {
    run.setting("runs", options.runs());
    run.setting("appends", options.appends);
    run.setting("keys a call", KEYS_PER_CALL);
    let servers = "Servers get 1024 commands at once over loopback; libraries 1024 keys a call.";
    run.plots(PLOTS, &[("servers", servers)]);
    run.check("every value looked up is the one that was put");
    run.check("no key that was not put is found");
    run.check("under every appended key lie exactly its pieces");
    // The page lists what is missing, so that nobody takes it for a peer that lost.
    let missing = super::missing().into_iter().chain(options.not_installed());
    missing.for_each(|text| run.skip(text));
    if no_java {
        let folder = options.jvm.display();
        run.skip(format!(
            "the JVM's maps: {folder} has none (scripts/peers.sh)"
        ));
    }
}
