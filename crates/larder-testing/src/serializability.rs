//! Whether recorded transactions are serialisable: as if one had come after the other.
//!
//! Each transaction appends numbers to lists and reads lists; no number is appended twice. So what
//! is read tells in which order the appends came, and which of them a read saw. From that follow
//! edges between transactions:
//!
//! | edge | from | to |
//! |---|---|---|
//! | ww | who appended a number | who appended the next |
//! | wr | who appended the last number that was read | who read it |
//! | rw | who read a list | who appended the number after it |
//! | time | who ended | who began after that |
//!
//! Transactions are serialisable, in an order that agrees with the clock, if the edges have no
//! circle. The longest list that was read of a key is the order of its appends; those that nobody
//! read make no edges.
//!
//! Source: Kingsbury, Alvaro: Elle, Inferring Isolation Anomalies from Experimental Observations
//! (VLDB 2020).

use std::collections::HashMap;
use std::fmt;

/// What a transaction did with one list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Appended the number to the list.
    Append(u32, u64),
    /// Read this from the list, without what itself had appended.
    Read(u32, Vec<u64>),
}

/// A transaction that was committed.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// When it began and ended, by one clock.
    pub time: (u64, u64),
    /// What it did, in order.
    pub steps: Vec<Step>,
}

/// What is wrong with a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Anomaly {
    /// Two reads of the list of this key, of which neither begins with the other.
    Forked(u32),
    /// A number that no committed transaction appended was read.
    Unknown(u64),
    /// A circle of edges: the transactions, and what leads from each to the next.
    Circle(Vec<(usize, &'static str)>),
}

impl fmt::Display for Anomaly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Anomaly::Forked(key) => write!(f, "two orders of the appends to {key}"),
            Anomaly::Unknown(n) => write!(f, "{n} was read, and nobody appended it"),
            Anomaly::Circle(circle) => {
                write!(f, "a circle:")?;
                circle
                    .iter()
                    .try_for_each(|(transaction, edge)| write!(f, " {transaction} -{edge}->"))
            }
        }
    }
}

/// Looks for an anomaly.
///
/// # Errors
/// The first that is found.
pub fn check(history: &[Recorded]) -> Result<(), Anomaly> {
    let edges = edges(history)?;
    match circle(&edges) {
        None => Ok(()),
        Some(circle) => Err(Anomaly::Circle(circle)),
    }
}

type Edges = Vec<Vec<(usize, &'static str)>>;

fn edges(history: &[Recorded]) -> Result<Edges, Anomaly> {
    // All steps of all transactions, with the number of the transaction.
    let steps = || {
        let numbered = history.iter().enumerate();
        numbered.flat_map(|(i, transaction)| transaction.steps.iter().map(move |step| (i, step)))
    };
    // 1. Who appended each number, and the longest list that was read of each key.
    let mut appender = HashMap::new();
    let mut longest: HashMap<u32, &[u64]> = HashMap::new();
    for (i, step) in steps() {
        match step {
            Step::Append(_, number) => drop(appender.insert(*number, i)),
            Step::Read(key, list) => {
                let known = longest.entry(*key).or_default();
                if list.len() > known.len() {
                    *known = list;
                }
            }
        }
    }
    let mut edges: Edges = vec![Vec::new(); history.len()];
    // An edge of a transaction to itself says nothing.
    let mut add = |from: usize, to: usize, kind| {
        if from != to {
            edges[from].push((to, kind));
        }
    };
    // Reading a number that nobody appended is an anomaly of its own (a dirty or invented read).
    let who = |number: &u64| {
        appender
            .get(number)
            .copied()
            .ok_or(Anomaly::Unknown(*number))
    };
    // 2. ww: consecutive numbers of the longest list.
    for list in longest.values() {
        for pair in list.windows(2) {
            add(who(&pair[0])?, who(&pair[1])?, "ww");
        }
    }
    // 3. wr and rw: the last number that was read, and the one after it.
    for (reader, step) in steps() {
        let Step::Read(key, list) = step else {
            continue;
        };
        let order = longest[key];
        // All lists that were read of a key must be prefixes of the longest one.
        if !order.starts_with(list) {
            return Err(Anomaly::Forked(*key));
        }
        if let Some(last) = list.last() {
            add(who(last)?, reader, "wr");
        }
        if let Some(next) = order.get(list.len()) {
            add(reader, who(next)?, "rw");
        }
    }
    // Enough of the edges of time: from each to those that began after it, up to the first that
    // ended after the next of them had begun.
    let mut by_begin: Vec<usize> = (0..history.len()).collect();
    by_begin.sort_by_key(|&i| history[i].time.0);
    for (i, transaction) in history.iter().enumerate() {
        let mut until = u64::MAX;
        let first = by_begin.partition_point(|&j| history[j].time.0 <= transaction.time.1);
        // The transactions that began after this one ended, by their begins. Those that began after
        // one of these ended follow by two edges.
        for &j in &by_begin[first..] {
            if history[j].time.0 > until {
                break;
            }
            add(i, j, "time");
            until = until.min(history[j].time.1);
        }
    }
    Ok(edges)
}

/// A circle of edges, if there is one: a search in depth, without recursion.
fn circle(edges: &Edges) -> Option<Vec<(usize, &'static str)>> {
    #[derive(Clone, Copy, PartialEq)]
    enum Visit {
        New,
        Open,
        Done,
    }
    let mut visits = vec![Visit::New; edges.len()];
    for root in 0..edges.len() {
        if visits[root] != Visit::New {
            continue;
        }
        // The path from the root: each node with the next of its edges.
        let mut path = vec![(root, 0)];
        visits[root] = Visit::Open;
        while let Some((node, next)) = path.last_mut() {
            let Some(&(to, _)) = edges[*node].get(*next) else {
                visits[*node] = Visit::Done;
                path.pop();
                continue;
            };
            *next += 1;
            match visits[to] {
                Visit::New => {
                    visits[to] = Visit::Open;
                    path.push((to, 0));
                }
                Visit::Open => {
                    let begin = path.iter().position(|(node, _)| *node == to)?;
                    let edge = |&(node, next): &(usize, usize)| (node, edges[node][next - 1].1);
                    return Some(path[begin..].iter().map(edge).collect());
                }
                Visit::Done => {}
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::Step::{Append, Read};
    use super::*;

    fn transaction(time: (u64, u64), steps: &[Step]) -> Recorded {
        Recorded {
            time,
            steps: steps.to_vec(),
        }
    }

    #[test]
    fn one_after_the_other_is_fine() {
        let history = [
            transaction((0, 9), &[Append(1, 10), Read(2, vec![])]),
            transaction((1, 5), &[Read(1, vec![10]), Append(2, 20)]),
            transaction((6, 8), &[Read(1, vec![10]), Read(2, vec![20])]),
        ];
        assert_eq!(check(&history), Ok(()));
    }

    #[test]
    fn anomalies_are_found() {
        // Write skew: each read what was there before the other's append.
        let skew = [
            transaction((0, 9), &[Read(1, vec![]), Read(2, vec![]), Append(1, 10)]),
            transaction((0, 9), &[Read(1, vec![]), Read(2, vec![]), Append(2, 20)]),
            transaction((10, 11), &[Read(1, vec![10]), Read(2, vec![20])]),
        ];
        assert!(matches!(check(&skew), Err(Anomaly::Circle(_))));
        // A commit that was seen by halves.
        let halves = [
            transaction((0, 9), &[Append(1, 10), Append(2, 20)]),
            transaction((0, 9), &[Read(1, vec![10]), Read(2, vec![])]),
            transaction((10, 11), &[Read(2, vec![20])]),
        ];
        assert!(matches!(check(&halves), Err(Anomaly::Circle(_))));
        // A lost update.
        let lost = [
            transaction((0, 9), &[Read(1, vec![]), Append(1, 10)]),
            transaction((0, 9), &[Read(1, vec![]), Append(1, 11)]),
            transaction((10, 11), &[Read(1, vec![11])]),
            transaction((3, 4), &[Read(1, vec![10])]),
        ];
        assert_eq!(check(&lost), Err(Anomaly::Forked(1)));
        // A read of the past.
        let stale = [
            transaction((0, 1), &[Append(1, 10)]),
            transaction((2, 3), &[Read(1, vec![])]),
            transaction((4, 5), &[Read(1, vec![10])]),
        ];
        assert!(matches!(check(&stale), Err(Anomaly::Circle(_))));
        // A read of what was never committed.
        let dirty = [transaction((0, 1), &[Read(1, vec![7])])];
        assert_eq!(check(&dirty), Err(Anomaly::Unknown(7)));
    }
}
