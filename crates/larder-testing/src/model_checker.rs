//! Executions that a model checker chooses, of histories that must be linearizable.
//!
//! Three searches: orders by chance; PCT, which finds a fault that needs d changes of thread with a
//! probability that is known (Burckhardt and others 2010); and all orders with few changes of
//! thread ([`crate::bounded`]), for small programs.
//!
//! A failing execution prints a schedule; `LARDER_SCHEDULE=...` runs it again,
//! `LARDER_SCHEDULE=@file` one that is too long for that. `LARDER_SOAK=n` runs n times as many
//! executions, `LARDER_SEED=n` others. `LARDER_MODEL_LOG=file` has a line added to the file for
//! each search, for `scripts/model.sh` to add up.

use crate::bounded::Bounded;
use crate::environment::{seed, soak};
use crate::history::{violation, Recorder, Subject};
use crate::mix;
use larder_index::sync::{plant, Fault};
use shuttle::rand::{thread_rng, RngCore};
use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::{Config, Runner};
use std::fmt::Debug;
use std::fs::OpenOptions;
use std::io::Write;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use wait_timeout::ChildExt;

/// Held by a test that plants faults, or must not meet one: they are planted for the whole process.
pub fn alone() -> MutexGuard<'static, ()> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    ONE_AT_A_TIME
        .lock()
        .unwrap_or_else(|poison| poison.into_inner())
}

/// How executions are chosen, and how many there are.
#[derive(Clone, Copy, Debug)]
pub enum Search {
    /// Random orders: the number of executions.
    Random(usize),
    /// PCT for faults that need up to three changes of thread: the number of executions.
    Pct(usize),
    /// PCT for faults that need more changes: the number of executions, and that of changes.
    Deep(usize, usize),
    /// All orders with few changes of thread that weren't necessary, for each of some programs.
    Bounded {
        /// Changes of thread.
        changes: usize,
        /// Programs: the random choices that an execution makes.
        programs: u64,
        /// Executions of one program at most.
        most: usize,
    },
}

/// Changes of thread that PCT is to find faults of, beside the first order.
const DEPTH: usize = 3;

/// Bytes of a thread's stack: an operation that helps others makes several in one.
const STACK: usize = 1 << 18;

fn run(scheduler: impl Scheduler + 'static, f: Arc<dyn Fn() + Send + Sync>) -> usize {
    let mut config = Config::new();
    config.stack_size = STACK;
    config.max_time = planted().map(|_| PATIENCE);
    Runner::new(scheduler, config).run(move || f())
}

/// Runs the executions of a search. Returns their number, and whether the search was complete.
fn search(search: Search, f: &Arc<dyn Fn() + Send + Sync>) -> (usize, bool) {
    let (times, seed) = (soak() as usize, seed(20_261_122));
    let search_by_pct = |(n, depth)| {
        let scheduler = PctScheduler::new_from_seed(seed, depth, n * times);
        (run(scheduler, f.clone()), true)
    };
    match search {
        Search::Random(n) => {
            let scheduler = RandomScheduler::new_from_seed(seed, n * times);
            (run(scheduler, f.clone()), true)
        }
        Search::Pct(n) => search_by_pct((n, DEPTH)),
        Search::Deep(n, depth) => search_by_pct((n, depth)),
        Search::Bounded {
            changes,
            programs,
            most,
        } => {
            // Each program is an execution's random numbers. All orders of each one are tried, up
            // to a limit.
            let (mut sum, mut all) = (0, true);
            for program in 0..programs {
                let (scheduler, complete) =
                    Bounded::new(changes, most * times, mix(seed ^ program));
                sum += run(scheduler, f.clone());
                // Ordering: Relaxed, its thread is this one.
                all &= complete.load(std::sync::atomic::Ordering::Relaxed);
            }
            (sum, all)
        }
    }
}

fn tell(line: &str) {
    let Ok(path) = std::env::var("LARDER_MODEL_LOG") else {
        return print!("{line}");
    };
    let log = OpenOptions::new().append(true).create(true).open(path);
    log.and_then(|mut log| log.write_all(line.as_bytes()))
        .expect("a log that can be written");
}

/// Runs `f` in executions of each search, and tells how many there were.
pub fn check(name: &str, searches: &[Search], f: impl Fn() + Send + Sync + 'static) {
    let f: Arc<dyn Fn() + Send + Sync> = Arc::new(f);
    // Repeat one recorded execution, and nothing else.
    if let Ok(said) = std::env::var("LARDER_SCHEDULE") {
        let schedule = match said.strip_prefix('@') {
            Some(file) => std::fs::read_to_string(file).expect("a file with a schedule"),
            None => said,
        };
        return shuttle::replay(move || f(), &schedule);
    }
    for kind in searches {
        let (executions, all) = search(*kind, &f);
        // Say what the number of executions proves: only a complete search proves something.
        let what = match (kind, all) {
            (Search::Random(_), _) => "by chance".to_owned(),
            (Search::Pct(_), _) => format!("PCT, depth {DEPTH}"),
            (Search::Deep(_, depth), _) => format!("PCT, depth {depth}"),
            (Search::Bounded { changes, .. }, true) => {
                format!("all orders of up to {changes} changes")
            }
            (Search::Bounded { changes, .. }, false) => {
                format!("orders of up to {changes} changes")
            }
        };
        tell(&format!("{executions:>8} executions of {name}: {what}\n"));
    }
}

/// One execution: each of `threads` threads makes `steps` steps on a subject, whose history must be
/// linearizable.
pub fn history<S: Subject + 'static>(subject: S, threads: usize, steps: u64) -> Arc<S> {
    let subject = Arc::new(subject);
    let clock = Arc::new(AtomicUsize::new(0));
    let work = |process: usize| {
        let (subject, clock) = (subject.clone(), clock.clone());
        move || {
            let mut recorder = Recorder::new(&clock, process);
            for _ in 0..steps {
                // The random numbers are the checker's, so that a schedule repeats them.
                subject.step(&mut recorder, mix(thread_rng().next_u64()));
            }
            recorder.events()
        }
    };
    let running: Vec<_> = (0..threads)
        .map(|p| shuttle::thread::spawn(work(p)))
        .collect();
    let mut events: Vec<_> = running
        .into_iter()
        .flat_map(|t| t.join().expect("no panic"))
        .collect();
    // The last reads are part of the history: they see what is left.
    let mut last = Recorder::new(&clock, threads);
    subject.finish(&mut last);
    events.extend(last.events());
    if let Some(part) = violation::<S::Spec>(events) {
        panic!("not linearizable: {part:#?}");
    }
    subject
}

/// Whether `f` panics in an execution of the searches, with the fault planted. What it prints is of
/// no use to anybody, but that it found something.
pub fn finds(fault: Fault, searches: &[Search], f: impl Fn() + Send + Sync + 'static) -> bool {
    plant(fault, true);
    let checked = || check("a planted fault", searches, f);
    let found = catch_unwind(AssertUnwindSafe(checked)).is_err();
    plant(fault, false);
    found
}

/// What a process that [`goes_wrong`] started is told.
const PLANTED: &str = "LARDER_PLANTED";

/// Longer than a run takes that nothing goes wrong in, on a machine with much else to do.
const LIMIT: Duration = Duration::from_secs(240);

/// ... and one with a fault, which is found in well under a second where it doesn't make threads
/// wait for good. Far longer than [`PATIENCE`]: what doesn't end by then hangs.
const FAULTY_LIMIT: Duration = Duration::from_secs(90);

/// How long a process with a fault looks for it. Then it ends well, and has found nothing.
const PATIENCE: Duration = Duration::from_secs(40);

/// What [`goes_wrong`] or [`each_is_found`] told this process: `None` for a run without a fault.
pub fn planted() -> Option<String> {
    std::env::var(PLANTED).ok()
}

/// Histories that such a process tries: few without a fault, as other tests look for more; with one
/// as many as there is time for.
pub fn rounds() -> impl Iterator<Item = u64> {
    let (begun, planted) = (Instant::now(), planted().is_some());
    let rounds = 0..if planted { 20_000 } else { 200 };
    rounds.take_while(move |_| !planted || begun.elapsed() < PATIENCE)
}

/// Executions that such a process tries.
pub fn planted_search() -> [Search; 1] {
    [Search::Random(match planted() {
        Some(_) => 100_000,
        None => 200,
    })]
}

/// Faults, and what each is planted in.
pub type Faults<P> = [(Fault, P)];

/// Plants the fault that was requested of this process, if one was. Returns what the fault is
/// planted in, or, without a fault, what the first one would be planted in.
pub fn plant_requested<P: Copy>(faults: &Faults<P>) -> P {
    let requested = planted().map(|i| faults[i.parse::<usize>().expect("a number")]);
    let (fault, place) = requested.unwrap_or(faults[0]);
    plant(fault, requested.is_some());
    place
}

/// Asserts of the ignored test `name` of this program, which calls [`plant_requested`], that each
/// of the faults makes it fail or die, and that it passes without. One that goes on for good finds
/// nothing.
pub fn each_is_found<P: Debug>(name: &str, faults: &Faults<P>) {
    let passes = |what: Option<&str>| run_alone(name, what, LIMIT).map(|status| status.success());
    assert_eq!(passes(None), Some(true), "without a fault");
    for (i, fault) in faults.iter().enumerate() {
        assert_eq!(passes(Some(&i.to_string())), Some(false), "{fault:?}");
    }
}

/// As [`each_is_found`], where a fault may as well make threads wait for good.
pub fn each_goes_wrong<P: Debug>(name: &str, faults: &Faults<P>) {
    assert!(!goes_wrong(name, None));
    for (i, fault) in faults.iter().enumerate() {
        assert!(goes_wrong(name, Some(&i.to_string())), "{fault:?}");
    }
}

/// Whether the ignored test `name` of this program goes wrong in a process of its own, with a fault
/// planted if `what` says which: it fails, dies, or doesn't end, as a fault may well tie a knot
/// into a structure, or leave a lock behind that others wait for.
pub fn goes_wrong(name: &str, what: Option<&str>) -> bool {
    let limit = what.map_or(LIMIT, |_| FAULTY_LIMIT);
    !run_alone(name, what, limit).is_some_and(|status| status.success())
}

/// Runs the ignored test `name` of this program in a process of its own, which is told `what`; how
/// that ended, if it did within the limit.
fn run_alone(name: &str, what: Option<&str>, limit: Duration) -> Option<ExitStatus> {
    let mut child = Command::new(std::env::current_exe().expect("a path"));
    // Only this test, which is ignored otherwise since it fails on purpose.
    child.args(["--exact", name, "--ignored"]);
    child.stdout(Stdio::null()).stderr(Stdio::null());
    // The child has no planted fault, except the one that it is told here.
    child.env_remove(PLANTED);
    if let Some(what) = what {
        child.env(PLANTED, what);
    }
    let mut child = child.spawn().expect("a process");
    // A model with a planted fault may run forever. That counts as not found within the limit.
    let status = child.wait_timeout(limit).expect("a process to wait for");
    if status.is_none() {
        child.kill().expect("a process that runs");
        child.wait().expect("a process that ends");
    }
    status
}
