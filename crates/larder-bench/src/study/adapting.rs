//! A contention-adapting tree while it adapts: a real run, recorded event by event, for an
//! animation.
//!
//! Only the structure is measured (`larder_studies::CaTree` over AVL trees), with the settings of
//! OTP. All keys are inserted beforehand and then overwritten, so the number of entries doesn't
//! change. There are four phases of the same length: writes everywhere, writes in a sixteenth of
//! the keys, scans, one writer.

use super::run::{cores, Run};
use crate::result::{
    ensure, write_json, BaseSample, Event, EventKind, Outcome, Phase, Recording, Sample,
};
use crate::workload::random_of_worker;
use larder_index::{pin, Direction, Start};
use larder_studies::{Act, Adaptation, Adapted, Avl, CaTree, Cut, Scheme};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

/// The file of the recording.
pub const FILE: &str = "catree-adapting.json";

const STRUCTURE: &str = "catree";

thread_local! {
    /// The number of this worker.
    static NUMBER: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// The state that the threads of a recording share.
struct SharedState {
    tree: CaTree<u64, Avl<u64>>,
    keys: u64,
    /// The current phase. Beyond the last phase, the recording is over.
    phase: AtomicUsize,
    /// The current key of each worker, plus one. 0 while a worker rests.
    positions: Vec<AtomicU64>,
}

const PHASES: [&str; 4] = [
    "all threads write keys everywhere",
    "all threads write in one sixteenth of the keys",
    "all threads scan a quarter of the keys at a time, and write now and then",
    "one thread writes keys everywhere, the others rest",
];

impl SharedState {
    fn put(&self, key: u64) {
        let bytes = key.to_be_bytes();
        self.tree.change(&pin(), &bytes, &mut |_| Act::Put(key));
    }

    /// Overwrites a key with the same value.
    fn write(&self, worker: usize, key: u64) {
        // Ordering: Relaxed, here and below. Only the animation reads the positions.
        self.positions[worker].store(key + 1, Relaxed);
        self.put(key);
    }

    /// Scans a quarter of the keys, in batches of at most 256 keys, as tables do.
    fn scan(&self, worker: usize, mut key: u64) {
        let (guard, end) = (pin(), key + self.keys / 4);
        loop {
            self.positions[worker].store(key + 1, Relaxed);
            let (bytes, mut last) = (key.to_be_bytes(), None);
            let cut = Cut::new(Start::At(&bytes), Direction::Forward);
            let over = self.tree.walk(&guard, cut, &mut |_, &value| {
                last = Some(value);
                value % 256 != 255
            });
            match last {
                Some(last) if !over && last < end => key = last + 1,
                _ => return,
            }
        }
    }

    /// Executes the operations of all phases.
    fn work(&self, worker: usize, seed: u64) {
        NUMBER.set(worker);
        let mut random = random_of_worker(seed, worker);
        loop {
            let key = random.u64(..self.keys);
            // Ordering: Relaxed. The phase only selects the next operation.
            match self.phase.load(Relaxed) {
                0 => self.write(worker, key),
                1 => self.write(worker, self.keys / 4 + key / 16),
                2 if random.u64(..2) == 0 => self.write(worker, key),
                2 => self.scan(worker, key),
                3 if worker == 0 => self.write(worker, key),
                phase => {
                    self.positions[worker].store(0, Relaxed);
                    if phase == PHASES.len() {
                        return;
                    }
                    thread::sleep(Duration::from_millis(1));
                }
            }
        }
    }

    /// All bases now. They change meanwhile, so a sample is approximate in time.
    fn sample(&self, at: f64) -> Sample {
        let bases = self.tree.bases_now(&pin()).into_iter();
        let bases = bases.map(|b| BaseSample {
            base: b.base,
            from: b.from.map_or(0.0, |from| key_of(&from)),
            depth: b.depth,
            count: b.count,
            entries: b.entries,
        });
        let position = |place: &AtomicU64| place.load(Relaxed).checked_sub(1).map(|key| key as f64);
        let threads = self.positions.iter().map(position).collect();
        Sample {
            at,
            bases: bases.collect(),
            threads,
        }
    }
}

/// The key of a position. A position of fewer bytes is a lower bound of all keys with that prefix.
fn key_of(position: &[u8]) -> f64 {
    let mut bytes = [0; 8];
    let n = position.len().min(8);
    bytes[..n].copy_from_slice(&position[..n]);
    u64::from_be_bytes(bytes) as f64
}

fn event(adapted: &Adapted<'_>, at: f64, keys: u64) -> Event {
    // A base at the edge of the tree ends where the keys end.
    let [from, to] = [(adapted.from, 0.0), (adapted.to, keys as f64)];
    Event {
        at,
        event: match adapted.with {
            None => EventKind::Split,
            Some(_) => EventKind::Join,
        },
        base: adapted.base,
        with: adapted.with,
        becomes: adapted.becomes.to_vec(),
        keys: [from, to].map(|(end, edge)| end.map_or(edge, key_of)),
        at_key: adapted.at.map(key_of),
        count: adapted.count,
        entries: adapted.entries,
        thread: NUMBER.get(),
    }
}

/// Records a run, checks the events, and writes it beside the results of the study.
pub fn record(run: &mut Run) -> Outcome {
    if !run.filter.accepts(STRUCTURE) && !run.filter.accepts("ordered_set (CA tree)") {
        run.skip("a recorded run of a tree that adapts: not wanted (--only)".into());
        return Ok(());
    }
    let part = "ordered-set, a tree that adapts";
    run.progress.part(part, PHASES.len());
    let recording = perform(run);
    replay(&recording)?;
    let what = "the recorded splits and joins, replayed, end in the bases";
    run.check(&format!("{what} that the tree had at the end"));
    std::fs::create_dir_all(&run.out)?;
    write_json(&recording, &run.out.join(FILE))?;
    Ok(())
}

fn perform(run: &Run) -> Recording {
    // Bases must split, and there must be few enough to be drawn.
    let keys = run.extent.pick(4_096, 65_536, 65_536);
    let each = Duration::from_millis(run.extent.pick(25, 250, 500));
    // A single thread never waits, so nothing would be split.
    let threads = run.threads.max(2);
    let (begin, (sender, events)) = (Instant::now(), channel());
    let now = move || begin.elapsed().as_secs_f64() * 1e3;
    // The tree calls this under a lock. Events are received when the tree is gone.
    let record = move |adapted: &Adapted<'_>| _ = sender.send(event(adapted, now(), keys));
    let adaptation = Adaptation::default();
    let shared = SharedState {
        tree: CaTree::new(Avl::new(false), adaptation).watched(Box::new(record)),
        keys,
        phase: AtomicUsize::new(0),
        positions: (0..threads).map(|_| AtomicU64::new(0)).collect(),
    };
    // This thread fills the tree as worker 0.
    NUMBER.set(0);
    (0..keys).for_each(|key| shared.put(key));
    let (mut phases, mut samples) = (Vec::new(), vec![shared.sample(now())]);
    thread::scope(|scope| {
        let (shared, seed) = (&shared, run.options.seed);
        for worker in 0..threads {
            scope.spawn(move || shared.work(worker, seed));
        }
        for (number, text) in PHASES.into_iter().enumerate() {
            run.progress.at(text);
            shared.phase.store(number, Relaxed);
            let (at, text) = (now(), text.into());
            phases.push(Phase { at, text });
            for _ in 0..30 {
                thread::sleep(each / 30);
                samples.push(shared.sample(now()));
            }
            run.progress.step();
        }
        shared.phase.store(PHASES.len(), Relaxed);
    });
    // The last sample is compared with the events.
    samples.push(shared.sample(now()));
    drop(shared);
    // Events of several threads may be out of order.
    let mut events: Vec<Event> = events.into_iter().collect();
    events.sort_by(|a, b| a.at.total_cmp(&b.at));
    // Times begin with the first phase.
    let zero = phases[0].at;
    let times = phases.iter_mut().map(|phase| &mut phase.at);
    let times = times.chain(samples.iter_mut().map(|sample| &mut sample.at));
    let times = times.chain(events.iter_mut().map(|event| &mut event.at));
    times.for_each(|at| *at = (*at - zero).max(0.0));
    Recording {
        title: "A contention-adapting tree adapts".into(),
        note: format!(
            "{threads} threads on {keys} keys in {} cores, a real run; a base's count grows by 250 when a writer had to wait, falls by 1 when it had not \
             and by 10 when a scan goes over its end; over 1000 it is divided, under -1000 joined to its neighbour",
            cores()
        ),
        origin: run.study().origin,
        seconds: begin.elapsed().as_secs_f64(),
        threads,
        keys: [0.0, keys as f64],
        settings: settings(adaptation),
        phases,
        events,
        samples,
    }
}

fn settings(a: Adaptation) -> BTreeMap<String, String> {
    macro_rules! of {
        ($($name:ident),*) => { [$((stringify!($name).into(), a.$name.to_string())),*] };
    }
    of!(
        contended,
        quiet,
        more_than_one,
        high,
        low,
        clamp,
        depth,
        random_join
    )
    .into()
}

/// Replays the events from the first base on. The result must be the bases of the last sample,
/// which have all keys.
fn replay(recording: &Recording) -> Outcome {
    let last = recording.samples.last().map_or(&[][..], |s| &s.bases);
    let entries: usize = last.iter().map(|b| b.entries).sum();
    let keys = recording.keys[1];
    let complete = entries == keys as usize;
    ensure!(complete, STRUCTURE; "its bases have {entries} entries, not {keys}");
    let mut bases = BTreeMap::from([(0, recording.keys)]);
    for event in &recording.events {
        // A split replaces one base, a join two.
        for base in std::iter::once(event.base).chain(event.with) {
            let existed = bases.remove(&base).is_some();
            ensure!(existed, STRUCTURE; "base {base} changed, but doesn't exist: {event:?}");
        }
        let [from, to] = event.keys;
        let ends = match event.at_key {
            Some(at) => vec![[from, at], [at, to]],
            None => vec![[from, to]],
        };
        bases.extend(event.becomes.iter().copied().zip(ends));
    }
    let replayed = bases.iter().map(|(base, [from, _])| (*base, *from));
    let replayed: BTreeMap<_, _> = replayed.collect();
    let sampled: BTreeMap<_, _> = last.iter().map(|b| (b.base, b.from)).collect();
    let right = replayed == sampled;
    ensure!(right, STRUCTURE; "events end in the bases {replayed:?}, the tree has {sampled:?}");
    Ok(())
}
