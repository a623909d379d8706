//! All orders of a small program in which threads change few times without need.
//!
//! Most faults of concurrent programs show with two changes of thread or fewer at the right places;
//! the orders with so few are polynomially many, and can all be tried. (M. Musuvathi, S. Qadeer,
//! "Iterative context bounding for systematic testing of multithreaded programs", PLDI 2007.)
//!
//! A change is free where the thread that runs can't go on: it has ended, or it waits for others.
//! Who waits yields to the next in turn, so that two threads that wait for a third don't yield to
//! each other for ever; that is not a choice. Where a thread ends, all that can go on are tried.
//!
//! The search is by depth: a stack has the *choice points*, and which choice was taken at each.
//! After an execution the last choice point that has another choice takes it, and those after it
//! are forgotten.
//!
//! An execution should come to the choice points of the one before. One that doesn't, as the
//! checker does not see all that a program does (when memory is freed, for one), takes another path
//! from there on. Then it can't be said that all orders were tried.

use shuttle::scheduler::{Schedule, Scheduler, Task, TaskId};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::Arc;

/// A point at which more than one thread may go on.
#[derive(Debug)]
struct ChoicePoint {
    choices: Vec<TaskId>,
    taken: usize,
}

/// The search of one program.
#[derive(Debug)]
pub(crate) struct Bounded {
    points: Vec<ChoicePoint>,
    /// How many of them this execution has come to.
    at: usize,
    /// Changes without need in this execution, and the most.
    changes: usize,
    most_changes: usize,
    left: usize,
    begun: bool,
    /// An execution has left the path of the one before.
    strayed: bool,
    /// What the program's random choices are made of: the same in each execution.
    seed: u64,
    random: u64,
    complete: Arc<AtomicBool>,
}

impl Bounded {
    /// A search of all orders of one program, with at most `most_changes` changes of thread. `seed`
    /// chooses the program. The search is given up after `executions` executions. The flag that is
    /// also returned says in the end whether all orders were tried.
    pub(crate) fn new(
        most_changes: usize,
        executions: usize,
        seed: u64,
    ) -> (Self, Arc<AtomicBool>) {
        let complete = Arc::new(AtomicBool::new(false));
        let search = Bounded {
            points: Vec::new(),
            at: 0,
            changes: 0,
            most_changes,
            left: executions,
            begun: false,
            strayed: false,
            seed,
            random: seed,
            complete: complete.clone(),
        };
        (search, complete)
    }

    /// Takes the next choice at the last choice point that has one; false if there is none.
    fn advance(&mut self) -> bool {
        // Depth first: the deepest choice point that has an untried choice takes it.
        while let Some(last) = self.points.last_mut() {
            last.taken += 1;
            if last.taken < last.choices.len() {
                return true;
            }
            // All choices of this point have been tried. Forget it, and try the point above.
            self.points.pop();
        }
        // No choice point is left, so all orders were tried. Only before the first execution are
        // there no choice points although nothing was tried.
        !self.begun
    }

    /// Who may go on, the one that runs first.
    fn choices(&self, runnable: &[&Task], current: Option<TaskId>, waits: bool) -> Vec<TaskId> {
        let mut ids: Vec<TaskId> = runnable.iter().map(|task| task.id()).collect();
        // In a fixed order, so that the choice points of two executions can be compared.
        ids.sort();
        // The current thread has ended or is blocked. Any other one may continue, at no cost.
        let Some(current) = current.filter(|id| ids.contains(id)) else {
            return ids;
        };
        // The thread yields of its own accord. The next in turn continues, without a choice.
        if waits {
            let next = ids.iter().copied().find(|id| *id > current);
            return vec![next.unwrap_or(ids[0])];
        }
        // All changes have been used up, so the thread that runs goes on.
        if self.changes == self.most_changes {
            return vec![current];
        }
        // Continuing is the first choice, so the first execution has the fewest changes.
        ids.retain(|id| *id != current);
        ids.insert(0, current);
        ids
    }
}

impl Scheduler for Bounded {
    fn new_execution(&mut self) -> Option<Schedule> {
        if !self.advance() {
            // Ordering: Relaxed, its thread is this one.
            self.complete.store(!self.strayed, Relaxed);
            return None;
        }
        // The number of executions is used up, though not all orders were tried.
        self.left = self.left.checked_sub(1)?;
        self.begun = true;
        // Each execution of the program begins with the same random numbers.
        (self.at, self.changes, self.random) = (0, 0, self.seed);
        Some(Schedule::new(self.seed))
    }

    fn next_task(
        &mut self,
        runnable: &[&Task],
        current: Option<TaskId>,
        waits: bool,
    ) -> Option<TaskId> {
        let choices = self.choices(runnable, current, waits);
        // Whether a change was forced, and so is free.
        let need = waits || !current.is_some_and(|id| choices.contains(&id));
        let taken = if choices.len() == 1 {
            choices[0]
        } else {
            // The beginning of the execution repeats the last one: take the recorded choice of each
            // point.
            let known = self.points.get(self.at);
            // The program came to a point with other choices. What was recorded after it doesn't
            // apply.
            if known.is_some_and(|point| point.choices != choices) {
                self.points.truncate(self.at);
                self.strayed = true;
            }
            // Past the recorded choice points, take the first choice of each new one.
            if self.at == self.points.len() {
                self.points.push(ChoicePoint { choices, taken: 0 });
            }
            let point = &self.points[self.at];
            self.at += 1;
            point.choices[point.taken]
        };
        // Count changes that weren't necessary.
        self.changes += usize::from(!need && current != Some(taken));
        Some(taken)
    }

    fn next_u64(&mut self) -> u64 {
        self.random = crate::mix(self.random.wrapping_add(0x9E37_79B9_7F4A_7C15));
        self.random
    }
}
