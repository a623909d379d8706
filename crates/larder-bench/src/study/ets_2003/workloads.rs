//! The seven workloads, each checked while it is done.

use crate::maps::peers::Hand;
use crate::study::rows::{traverse, whole};
use crate::workload::shuffled;

/// The keys, in two orders.
pub struct KeyOrders {
    /// How many, from 1 on.
    pub n: u64,
    /// All keys, shuffled.
    random: Vec<u32>,
    /// Shuffled in another way: where a row lies in memory is often said by when it came.
    visit: Vec<u32>,
}

impl KeyOrders {
    /// So many, by a seed.
    pub fn new(n: usize, seed: u64) -> KeyOrders {
        KeyOrders {
            n: n as u64,
            random: shuffled(n, seed),
            visit: shuffled(n, seed + 1),
        }
    }
}

/// One workload: a plot for its times, one for its times by those of `set`. The text is the plot's
/// id, its title, and what is said of it.
pub struct Workload(&'static str, fn(&mut dyn Hand, &KeyOrders) -> Answer);

impl Workload {
    /// The plot's id, its title, and what is said of it.
    pub fn texts(&self) -> [&'static str; 3] {
        let mut parts = self.0.splitn(3, ": ");
        // The parts of the text are separated by colons. Missing parts are empty.
        [0; 3].map(|_| parts.next().unwrap_or_default())
    }

    /// The plot's id.
    pub fn id(&self) -> &'static str {
        self.texts()[0]
    }

    /// The plot's title.
    pub fn title(&self) -> &'static str {
        self.texts()[1]
    }

    /// Executes the workload.
    pub fn work(&self, hand: &mut dyn Hand, data: &KeyOrders) -> Answer {
        (self.1)(hand, data)
    }
}

/// What was wrong, if something was.
pub type Answer = Result<(), String>;

/// In the order in which a table goes through them. After the deletion it is empty and is filled
/// once more, at random.
pub const WORKLOADS: [Workload; 7] = [
    Workload(
        "insert-sequential: Sequential insert: keys 1, 2, 3 and so on, into an empty table",
        |hand, data| inserts(hand, 1..=data.n),
    ),
    Workload(
        "lookup-sequential: Sequential lookup: every key once, in order",
        |hand, data| lookups(hand, 1..=data.n),
    ),
    Workload(
        "lookup-random: Random lookup: every key once, in random order",
        |hand, data| lookups(hand, keys(&data.visit)),
    ),
    Workload(
        "traversal: Forward traversal: first and next, key by key, without reading rows",
        traversal,
    ),
    Workload(
        "counter-random: Random counter update: update_counter of every row once, in random order",
        |hand, data| counters(hand, keys(&data.visit)),
    ),
    Workload(
        "deletion: Deletion: every key, in order, until the table is empty",
        |hand, data| deletions(hand, 1..=data.n),
    ),
    Workload(
        "insert-random: Random insert: every key once, in random order, into an empty table",
        |hand, data| inserts(hand, keys(&data.random)),
    ),
];

fn keys(order: &[u32]) -> impl Iterator<Item = u64> + '_ {
    // Orders are numbers from 0, keys are numbers from 1.
    order.iter().map(|&i| u64::from(i) + 1)
}

fn inserts(hand: &mut dyn Hand, keys: impl Iterator<Item = u64>) -> Answer {
    keys.for_each(|key| hand.insert(key, 1));
    Ok(())
}

fn lookups(hand: &mut dyn Hand, keys: impl Iterator<Item = u64>) -> Answer {
    for key in keys {
        let found = hand.get(key);
        // Every row is {K, 1} until the counters have been incremented.
        if found != Some(1) {
            return Err(format!("lookup of {key} gave {found:?}, not 1"));
        }
    }
    Ok(())
}

fn traversal(hand: &mut dyn Hand, data: &KeyOrders) -> Answer {
    whole(traverse(hand), data.n)
}

fn counters(hand: &mut dyn Hand, keys: impl Iterator<Item = u64>) -> Answer {
    for key in keys {
        let sum = hand.add(key);
        // Each counter was 1, and is incremented once.
        if sum != Some(2) {
            return Err(format!("update_counter of {key} gave {sum:?}, not 2"));
        }
    }
    Ok(())
}

/// Deletes each of the keys.
pub fn deletions(hand: &mut dyn Hand, keys: impl Iterator<Item = u64>) -> Answer {
    for key in keys {
        if !hand.remove(key) {
            return Err(format!("there was no {key} to delete"));
        }
    }
    Ok(())
}
