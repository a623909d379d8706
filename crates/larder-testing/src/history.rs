//! Histories of operations that threads record, and whether they are linearizable.
//!
//! Objects that are independent of each other, such as the values of different keys, are *parts* of
//! a history: it is linearizable exactly when each of its parts is (Herlihy and Wing 1990, section
//! 3.1: locality). Each part is searched by the algorithm of Wing and Gong with Lowe's memory of
//! what was tried.

use crate::mix;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::Barrier;
use std::thread;
pub use todc_utils::linearizability::history::Action;
use todc_utils::linearizability::{history::History, WGLChecker};
pub use todc_utils::specifications::Specification;

/// An object whose histories are recorded.
pub trait Subject: Send + Sync {
    /// An operation with its result, which is absent when the operation is called.
    type Op: Clone + Debug + Send;
    /// The specification: what operations return if they come one after the other.
    type Spec: Specification<Operation = Self::Op>;

    /// Executes the operation that the random number chooses, and records it.
    fn step(&self, recorder: &mut Recorder<'_, Self::Op>, random: u64);

    /// Reads everything at the end, and records it.
    fn finish(&self, recorder: &mut Recorder<'_, Self::Op>);
}

/// A call or a return of an operation.
#[derive(Clone, Debug)]
pub struct Event<O> {
    /// Its place in the order of real time.
    at: usize,
    /// The thread.
    process: usize,
    /// The independent part of the object, such as a key.
    part: u64,
    action: Action<O>,
}

/// Records the events of one process. The clock is shared by all.
pub struct Recorder<'c, O> {
    clock: &'c AtomicUsize,
    process: usize,
    events: Vec<Event<O>>,
}

impl<'c, O: Clone> Recorder<'c, O> {
    /// A recorder without events.
    pub fn new(clock: &'c AtomicUsize, process: usize) -> Self {
        Recorder {
            clock,
            process,
            events: Vec::new(),
        }
    }

    fn note(&mut self, part: u64, action: Action<O>) {
        // Ordering: SeqCst, so that the numbers are an order of real time.
        let at = self.clock.fetch_add(1, SeqCst);
        let process = self.process;
        self.events.push(Event {
            at,
            process,
            part,
            action,
        });
    }

    /// Records an operation on a part: its call, and what `f` says it answered.
    pub fn record(&mut self, part: u64, called: O, f: impl FnOnce() -> O) {
        self.note(part, Action::Call(called));
        let answered = f();
        self.note(part, Action::Response(answered));
    }

    /// What was recorded.
    pub fn events(self) -> Vec<Event<O>> {
        self.events
    }
}

/// The events of the first part that is not linearizable.
pub fn violation<S: Specification>(
    mut events: Vec<Event<S::Operation>>,
) -> Option<Vec<Event<S::Operation>>> {
    // Each part in order of time. The parts are independent, and are checked one by one, since the
    // search takes exponential time in the worst case.
    events.sort_by_key(|event| event.at);
    let mut parts: BTreeMap<u64, Vec<Event<S::Operation>>> = BTreeMap::new();
    for event in events {
        parts.entry(event.part).or_default().push(event);
    }
    parts.into_values().find(|part| {
        let actions = part
            .iter()
            .map(|event| (event.process, event.action.clone()));
        !WGLChecker::<S>::is_linearizable(History::from_actions(actions.collect()))
    })
}

/// Records a history of real threads, and says what is wrong with it.
///
/// # Errors
/// The seed, and the events that are not linearizable.
pub fn of_threads<S: Subject>(
    subject: &S,
    threads: usize,
    steps: u64,
    seed: u64,
) -> Result<(), String> {
    let (clock, start) = (AtomicUsize::new(0), Barrier::new(threads));
    let work = |process: usize| {
        let mut recorder = Recorder::new(&clock, process);
        // Begin together, so that the operations of short runs overlap.
        start.wait();
        for i in 0..steps {
            // A random number for each step, which depends on the seed alone.
            subject.step(&mut recorder, mix(seed ^ mix(process as u64 * steps + i)));
        }
        recorder.events()
    };
    let mut events: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|p| scope.spawn(move || work(p))).collect();
        let events = threads.into_iter().map(|t| t.join().expect("no panic"));
        events.flatten().collect()
    });
    // The last reads are part of the history: they see what is left.
    let mut last = Recorder::new(&clock, threads);
    subject.finish(&mut last);
    events.extend(last.events());
    match violation::<S::Spec>(events) {
        None => Ok(()),
        Some(part) => Err(format!("seed {seed}, not linearizable: {part:#?}")),
    }
}
