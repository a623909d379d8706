//! Measures all peers in turns, each in a new process. The result is a study, `peers.json`, for
//! `larder-bench report`.

use crate::maps::peers::Filter;
use crate::result::{ensure, Failure, Outcome};
use crate::stores::workload::{parse, Figure, KEYS_PER_CALL};
use crate::stores::{jvm, missing, names};
use crate::study::run::Run;
use crate::study::StudyOptions;
use crate::table::grouped;
use crate::time::clock::{readable, Clock};
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

const SERVERS: &str =
    "Servers get 1024 commands at once over loopback; libraries 1024 keys a call.";

/// The exit status of a process whose peer isn't available.
pub const ABSENT: u8 = 3;

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

/// The names of all peers that the filter accepts, and the classes of those of the JVM.
fn peers(options: &PeersOptions, filter: &Filter) -> Vec<(String, Option<String>)> {
    let here = names().into_iter().map(|name| (name.to_owned(), None));
    let java = jvm::all(&options.jvm).into_iter();
    let java = java.map(|[class, name]| (name, Some(class)));
    let mut peers: Vec<_> = here.chain(java).collect();
    peers.retain(|(name, _)| filter.accepts(name));
    peers
}

/// A fresh process that measures a peer, so that memory and caches of one don't affect the next.
fn process(options: &PeersOptions, name: &str, class: Option<&str>, entries: usize) -> Command {
    if let Some(class) = class {
        return jvm::command(&options.jvm, class, entries);
    }
    let mut command = Command::new(std::env::current_exe().expect("this program has a path"));
    let numbers = [entries, options.appends].map(|n| n.to_string());
    command.args(["peers", "one", name]).args(numbers);
    command
}

/// Runs a process to its end, and reads the figures that it prints.
fn measure(mut process: Command) -> Outcome<Vec<Figure>> {
    let program = process.get_program().to_string_lossy().into_owned();
    let output = process.output();
    let output = output.map_err(|e| Failure::Impossible(format!("{program}: {e}")))?;
    let message = String::from_utf8_lossy(&output.stderr).trim().to_string();
    match output.status.code() {
        Some(0) => parse(&String::from_utf8_lossy(&output.stdout)),
        Some(code) if code == i32::from(ABSENT) => Err(Failure::Impossible(message)),
        _ => {
            let what = format!("{}: {message}", output.status);
            Err(Failure::wrong("the peer", what))
        }
    }
}

/// Measures all peers, and writes the study into the folder. A wrong answer of a peer is an error,
/// after the others were measured and written.
pub fn run(options: &PeersOptions, filter: &Filter, out: &Path) -> Outcome {
    let peers = peers(options, filter);
    ensure!(!peers.is_empty(); "no peer has such a name");
    let names = [
        "peers",
        "Larder beside stores from elsewhere: u64 to u64, and bytes to append to",
        "the peers' own defaults, one thread, one process each",
    ];
    let no_bars = StudyOptions {
        no_progress: true,
        ..StudyOptions::default()
    };
    let mut run = Run::begin(names, &no_bars, Clock::new(None, false), filter, out);
    let runs = options.runs.unwrap_or(2 + usize::from(options.full)).max(1);
    declare(&mut run, options, runs);
    let mut sizes = options.entries.clone();
    if sizes.is_empty() {
        sizes = vec![1 << 16, 1 << 20];
        sizes.extend(options.full.then_some(1 << 24));
    }
    let (mut gone, mut wrong) = (BTreeSet::new(), Vec::new());
    let items: Vec<_> = peers.iter().map(|peer| (&peer.0, peer)).collect();
    for entries in sizes {
        let x = format!("{} entries", grouped(entries));
        run.in_turns(&x, (runs, 1.0), &items, |run, _, (name, class)| {
            // A peer that was absent or wrong isn't tried again.
            if gone.contains(name) {
                return Ok(());
            }
            let begin = Instant::now();
            match measure(process(options, name, class.as_deref(), entries)) {
                Ok(figures) => {
                    eprintln!("  {name}: {}", readable(begin.elapsed().as_secs_f64()));
                    for (step, figure) in figures {
                        run.figure(step, name, &*x, figure);
                    }
                }
                Err(why) => {
                    run.skip(format!("{name}: {why}"));
                    gone.insert(name.clone());
                    // The others are measured before a wrong answer fails the run.
                    if let Failure::Wrong { what, .. } = why {
                        wrong.push(format!("{name}: {what}"));
                    }
                }
            }
            Ok(())
        })?;
    }
    let study = run.end();
    let skipped = study.skipped.join("; ");
    ensure!(!study.points.is_empty(); "nothing was measured: {skipped}");
    study.write(out)?;
    let wrong = wrong.join("; ");
    ensure!(wrong.is_empty(), "peers"; "{wrong}");
    Ok(())
}

fn declare(run: &mut Run, options: &PeersOptions, runs: usize) {
    run.setting("runs", runs);
    run.setting("appends", options.appends);
    run.setting("keys a call", KEYS_PER_CALL);
    run.plots(PLOTS, &[("servers", SERVERS)]);
    run.check("every value looked up is the one that was put");
    run.check("no key that was not put is found");
    run.check("under every appended key lie exactly its pieces");
    // Peers that aren't available must not look like peers that lost. `scripts/peers.sh` lists
    // those that it could not install.
    let list = options.jvm.with_file_name("missing.txt");
    let list = std::fs::read_to_string(list).unwrap_or_default();
    for text in missing().into_iter().chain(list.lines().map(String::from)) {
        run.skip(text);
    }
    if jvm::all(&options.jvm).is_empty() {
        let folder = options.jvm.display();
        run.skip(format!(
            "the JVM's maps: {folder} has none (scripts/peers.sh)"
        ));
    }
}
