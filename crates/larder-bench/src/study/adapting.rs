//! A contention-adapting tree while it adapts: a real run, recorded event by event, for an
//! animation.
//!
//! Only the structure is measured (`larder_studies::CaTree` over AVL trees), with the settings of
//! OTP. All keys are inserted beforehand and then overwritten, so the number of entries doesn't
//! change. There are four phases of the same length: writes everywhere, writes in a sixteenth of
//! the keys, scans, one writer.

use super::run::Run;
use crate::result::{ensure, BaseSample, Event, EventKind, Outcome, Phase, Recording, Sample};
use crate::workload::Random;
use larder_index::{pin, Direction, Start};
use larder_studies::{Act, Adaptation, Adapted, Avl, CaTree, Cut, Scheme};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// The file.
pub const FILE: &str = "catree-adapting.json";

const STRUCTURE: &str = "catree";

type Tree = CaTree<u64, Avl<u64>>;

thread_local! {
    /// Which worker this is.
    static NUMBER: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// What the threads of a recording share.
struct SharedState {
    tree: Tree,
    keys: u64,
    /// The index of the current phase; beyond the last, the recording is over.
    phase: AtomicUsize,
    /// The current key of each worker, plus one; 0 if it has none.
    positions: Vec<AtomicU64>,
}

/// A phase, and the work of its threads.
struct PhasePlan {
    text: &'static str,
    /// The operation that a worker repeats; returns `None` if the worker rests.
    step: fn(&SharedState, usize, &mut Random) -> Option<()>,
}

const PHASES: [PhasePlan; 4] = [
    PhasePlan {
        text: "all threads write keys everywhere",
        step: |shared, worker, random| write(shared, worker, random, 0, shared.keys),
    },
    PhasePlan {
        text: "all threads write in one sixteenth of the keys",
        step: |shared, worker, random| {
            write(shared, worker, random, shared.keys / 4, shared.keys / 16)
        },
    },
    PhasePlan {
        text: "all threads scan a quarter of the keys at a time, and write now and then",
        step: scan,
    },
    PhasePlan {
        text: "one thread writes keys everywhere, the others rest",
        step: |shared, worker, random| match worker {
            0 => write(shared, worker, random, 0, shared.keys),
            _ => None,
        },
    },
];

fn write(
    shared: &SharedState,
    worker: usize,
    random: &mut Random,
    from: u64,
    many: u64,
) -> Option<()> {
    // The value is the key, so a write changes nothing but the count of the base.
    let key = from + random.below(many);
    // Ordering: Relaxed: only the animation reads it. The same holds below.
    shared.positions[worker].store(key + 1, Relaxed);
    shared
        .tree
        .change(&pin(), &key.to_be_bytes(), &mut |_| Act::Put(key));
    Some(())
}

fn scan(shared: &SharedState, worker: usize, random: &mut Random) -> Option<()> {
    // Half of the operations are writes, so that scans and writes overlap.
    if random.below(2) == 0 {
        return write(shared, worker, random, 0, shared.keys);
    }
    let guard = pin();
    let mut key = random.below(shared.keys);
    let end = key + shared.keys / 4;
    loop {
        // The position of this thread, for the animation.
        shared.positions[worker].store(key + 1, Relaxed);
        let bytes = key.to_be_bytes();
        let mut last = None;
        let cut = Cut::new(Start::At(&bytes), Direction::Forward);
        // Batches of at most 256 keys, as the tables read.
        let over = shared.tree.walk(&guard, cut, &mut |_, &value| {
            last = Some(value);
            value % 256 != 255
        });
        match last {
            // The batch ended within the range, so the next one begins behind its last key.
            Some(last_key) if !over && last_key < end => key = last_key + 1,
            _ => return Some(()),
        }
    }
}

/// The key of a position. A shorter position is a lower bound of all keys with that prefix.
fn key_of(position: &[u8]) -> f64 {
    // Missing bytes are zeros: no key with this prefix is below that.
    let mut bytes = [0; 8];
    let n = position.len().min(8);
    bytes[..n].copy_from_slice(&position[..n]);
    u64::from_be_bytes(bytes) as f64
}

fn event(adapted: &Adapted<'_>, at: f64, keys: u64) -> Event {
    Event {
        at,
        event: match adapted.with {
            None => EventKind::Split,
            Some(_) => EventKind::Join,
        },
        base: adapted.base,
        with: adapted.with,
        becomes: adapted.becomes.to_vec(),
        // A base at the edge of the tree has no bound. The range of keys begins at 0 there, and
        // ends at `keys`.
        keys: [
            adapted.from.map_or(0.0, key_of),
            adapted.to.map_or(keys as f64, key_of),
        ],
        at_key: adapted.at.map(key_of),
        count: adapted.count,
        entries: adapted.entries,
        thread: NUMBER.get(),
    }
}

fn sample(shared: &SharedState, at: f64) -> Sample {
    // Bases change meanwhile, so a sample is approximate in time.
    let bases = shared.tree.bases_now(&pin());
    Sample {
        at,
        bases: bases
            .into_iter()
            .map(|b| BaseSample {
                base: b.base,
                from: b.from.map_or(0.0, |from| key_of(&from)),
                depth: b.depth,
                count: b.count,
                entries: b.entries,
            })
            .collect(),
        threads: shared
            .positions
            .iter()
            .map(|place| place.load(Relaxed).checked_sub(1).map(|key| key as f64))
            .collect(),
    }
}

/// Records a run and writes it beside the study's results.
///
/// # Errors
/// If replaying the events doesn't give the tree's final bases; I/O errors.
pub fn record(run: &mut Run) -> Outcome {
    if !run.only.has(STRUCTURE) && !run.only.has("ordered_set (CA tree)") {
        run.skip("a recorded run of a tree that adapts: not wanted (--only)".into());
        return Ok(());
    }
    // Enough keys that bases split, and few enough that all bases can be drawn.
    let keys = run.scale.pick(4_096, 65_536, 65_536);
    let each = Duration::from_millis(run.scale.pick(25, 250, 500));
    // A single thread never waits, so nothing would be split.
    let threads = run.threads.max(2);
    run.progress
        .part("ordered-set, a tree that adapts", PHASES.len());
    let (mut recording, entries) = perform(run, keys, each, threads);
    // Check before anything is written: the number of entries never changes.
    ensure!(
        entries == keys as usize,
        STRUCTURE,
        "its bases have {entries} entries, not {keys}"
    );
    replay(&recording)?;
    run.check(
        "the recorded splits and joins, replayed, end in the bases that the tree had at the end",
    );
    recording.origin = run.origin();
    std::fs::create_dir_all(&run.out)?;
    recording.write(&run.out.join(FILE))?;
    Ok(())
}

fn perform(run: &Run, keys: u64, each: Duration, threads: usize) -> (Recording, usize) {
    let events = Arc::new(Mutex::new(Vec::new()));
    let begin = Instant::now();
    // The watcher is called under the tree's lock, so it only notes the time and the event.
    let recorder = Arc::clone(&events);
    let adaptation = Adaptation::default();
    let tree = Tree::new(Avl::new(false), adaptation).watched(Box::new(move |adapted| {
        let at = begin.elapsed().as_secs_f64() * 1e3;
        recorder
            .lock()
            .expect("nobody panics here")
            .push(event(adapted, at, keys));
    }));
    let shared = SharedState {
        tree,
        keys,
        phase: AtomicUsize::new(0),
        positions: (0..threads).map(|_| AtomicU64::new(0)).collect(),
    };
    // Thread 0 is this one, which fills the tree.
    NUMBER.set(0);
    for key in 0..keys {
        shared
            .tree
            .change(&pin(), &key.to_be_bytes(), &mut |_| Act::Put(key));
    }
    let (mut phases, mut samples) = play(run, &shared, begin, each, threads);
    let entries = samples
        .last()
        .map_or(0, |s: &Sample| s.bases.iter().map(|b| b.entries).sum());
    drop(shared);
    // Events of several threads may be out of order.
    let mut events = std::mem::take(&mut *events.lock().expect("nobody panics here"));
    events.sort_by(|a: &Event, b: &Event| a.at.total_cmp(&b.at));
    // The animation begins with the first phase; before it one thread inserts the keys.
    let zero = phases.first().map_or(0.0, |p| p.at);
    phases.iter_mut().for_each(|p| p.at -= zero);
    samples
        .iter_mut()
        .for_each(|s| s.at = (s.at - zero).max(0.0));
    events
        .iter_mut()
        .for_each(|e| e.at = (e.at - zero).max(0.0));
    let recording = Recording {
        title: "A contention-adapting tree adapts".into(),
        note: format!(
            "{threads} threads on {keys} keys in {} cores, a real run; a base's count grows by 250 when a writer had to wait, falls by 1 when it had not \
             and by 10 when a scan goes over its end; over 1000 it is divided, under -1000 joined to its neighbour",
            super::run::cores()
        ),
        seconds: begin.elapsed().as_secs_f64(),
        threads,
        keys: [0.0, keys as f64],
        settings: settings(adaptation),
        phases,
        events,
        samples,
        ..Recording::default()
    };
    (recording, entries)
}

fn settings(a: Adaptation) -> BTreeMap<String, String> {
    let settings: [(&str, &dyn Display); 8] = [
        ("contended", &a.contended),
        ("quiet", &a.quiet),
        ("more_than_one", &a.more_than_one),
        ("high", &a.high),
        ("low", &a.low),
        ("clamp", &a.clamp),
        ("depth", &a.depth),
        ("random_join", &a.random_join),
    ];
    settings
        .map(|(name, value)| (name.to_owned(), value.to_string()))
        .into()
}

/// Runs the threads through the phases, and samples the tree thirty times in each.
fn play(
    run: &Run,
    shared: &SharedState,
    begin: Instant,
    each: Duration,
    threads: usize,
) -> (Vec<Phase>, Vec<Sample>) {
    let now = || begin.elapsed().as_secs_f64() * 1e3;
    let (mut phases, mut samples) = (Vec::new(), vec![sample(shared, now())]);
    let seed = run.options.seed;
    // Threads run through all phases. They read the number of the phase before each operation.
    thread::scope(|scope| {
        for worker in 0..threads {
            scope.spawn(move || run_worker(shared, worker, seed));
        }
        for (number, phase) in PHASES.iter().enumerate() {
            run.progress.at(phase.text);
            shared.phase.store(number, Relaxed);
            phases.push(Phase {
                at: now(),
                text: phase.text.into(),
            });
            // Samples at regular times, while the threads work.
            for _ in 0..30 {
                thread::sleep(each / 30);
                samples.push(sample(shared, now()));
            }
            run.progress.step();
        }
        shared.phase.store(PHASES.len(), Relaxed);
    });
    // One more sample after the last change, for the comparison with the events.
    samples.push(sample(shared, now()));
    (phases, samples)
}

fn run_worker(shared: &SharedState, worker: usize, seed: u64) {
    NUMBER.set(worker);
    let mut random = Random::new(seed ^ (worker as u64) << 40);
    // Ordering: Relaxed: it only selects the next operation.
    while let Some(phase) = PHASES.get(shared.phase.load(Relaxed)) {
        if (phase.step)(shared, worker, &mut random).is_none() {
            shared.positions[worker].store(0, Relaxed);
            thread::sleep(Duration::from_millis(1));
        }
    }
    shared.positions[worker].store(0, Relaxed);
}

/// Replays the events, beginning with one base. The result must be the bases of the last sample.
fn replay(recording: &Recording) -> Outcome {
    let mut bases: BTreeMap<u64, [f64; 2]> = BTreeMap::from([(0, recording.keys)]);
    for event in &recording.events {
        // A split replaces one base, a join two. They must exist at that time.
        let mut gone = vec![event.base];
        gone.extend(event.with);
        for base in gone {
            ensure!(
                bases.remove(&base).is_some(),
                STRUCTURE,
                "base {base} changed, but doesn't exist: {event:?}"
            );
        }
        // The new bases have the keys of the old ones, divided where the split was.
        let [from, to] = event.keys;
        let ends = match event.at_key {
            Some(at) => vec![[from, at], [at, to]],
            None => vec![[from, to]],
        };
        bases.extend(event.becomes.iter().copied().zip(ends));
    }
    let mut replayed: Vec<_> = bases
        .into_iter()
        .map(|(base, [from, _])| (from, base))
        .collect();
    replayed.sort_by(|a, b| a.0.total_cmp(&b.0));
    let last = recording.samples.last().map_or(&[][..], |s| &s.bases);
    let sampled: Vec<_> = last.iter().map(|b| (b.from, b.base)).collect();
    ensure!(
        replayed == sampled,
        STRUCTURE,
        "events end in the bases {replayed:?}, the tree has {sampled:?}"
    );
    Ok(())
}
