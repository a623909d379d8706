//! The steps of every peer, in a process of its own. For the JVM's maps, `jvm/Bench.java` runs the
//! same steps and prints the same lines.
//!
//! ```text
//!  insert   N random keys, 8-byte values                      ns per insert
//!  hit      the same keys in another order, values checked    ns per lookup
//!  miss     N other keys, none of which may be found          ns per lookup
//!  bytes    growth of the process' resident memory            bytes per entry
//!  append   A pieces of 16 bytes to N/8 keys, lengths and     ns per append
//!           the bytes of some checked
//! ```

use crate::result::{ensure, Failure, Outcome};
use crate::stores::peer::Peer;
use crate::time::memory::resident;
use crate::time::timed_each;
use crate::workload::{random, random_key, value_of, Keys};
use std::collections::HashMap;

/// Keys of a call.
pub const KEYS_PER_CALL: usize = 1024;

/// The steps. Each is a plot.
const STEPS: [&str; 5] = ["insert", "hit", "miss", "bytes", "append"];

const PIECE: [u8; 16] = *b"sixteen bytes...";

/// The figure of a step.
pub type Figure = (&'static str, f64);

/// Parses lines `step,figure`, as this program and `Bench.java` print them. Another line is an
/// error.
pub fn parse(text: &str) -> Outcome<Vec<Figure>> {
    let figure = |line: &str| -> Option<Figure> {
        let (step, figure) = line.split_once(',')?;
        let step = STEPS.iter().find(|known| **known == step)?;
        Some((*step, figure.parse().ok()?))
    };
    let wrong = |line| Failure::wrong(PEER, format!("unexpected line {line:?}"));
    let lines = text.lines();
    lines
        .map(|line| figure(line).ok_or_else(|| wrong(line)))
        .collect()
}

/// The structure in failures. The process that measures all peers knows the name, and adds it.
const PEER: &str = "the peer";

/// Runs all steps on an empty peer. A wrong answer is an error.
pub fn run(peer: &mut dyn Peer, entries: usize, appends: usize) -> Outcome<Vec<Figure>> {
    let keys = Keys::new(entries);
    let values: Vec<u64> = keys.insert.iter().map(|key| value_of(*key)).collect();
    let mut answers = vec![0; entries];
    // Memory that the first entry allocates once doesn't belong to the entries.
    peer.insert(&keys.insert[..1], &values[..1])?;
    let before = resident(peer.process());
    let insert = per(entries, || {
        let keys = keys.insert.chunks(KEYS_PER_CALL);
        let mut calls = keys.zip(values.chunks(KEYS_PER_CALL));
        calls.try_for_each(|(keys, values)| peer.insert(keys, values))
    })?;
    // Lookups may add to the memory.
    let after = resident(peer.process());
    let mut lookup = |keys: &[u64], answers: &mut [u64]| {
        let mut found = 0;
        let time = per(entries, || {
            let answers = answers.chunks_mut(KEYS_PER_CALL);
            for (keys, answers) in keys.chunks(KEYS_PER_CALL).zip(answers) {
                found += peer.get(keys, answers)?;
            }
            Ok(())
        });
        Outcome::Ok((time?, found))
    };
    let (hit, found) = lookup(&keys.visit, &mut answers)?;
    let mut pairs = keys.visit.iter().zip(&answers);
    let right = found == entries && pairs.all(|(key, answer)| *answer == value_of(*key));
    ensure!(right, PEER; "it finds {found} of {entries} entries, or a wrong value");
    let (miss, found) = lookup(&keys.missing, &mut answers)?;
    ensure!(found == 0, PEER; "it finds {found} keys that were not inserted");
    let mut figures = vec![("insert", insert), ("hit", hit), ("miss", miss)];
    figures.extend(before.zip(after).map(|(before, after)| {
        let grown = after.saturating_sub(before);
        ("bytes", grown as f64 / entries as f64)
    }));
    figures.extend(append(peer, entries, appends)?);
    Ok(figures)
}

/// The nanoseconds of the work, divided by `count`.
fn per(count: usize, work: impl FnOnce() -> Outcome) -> Outcome<f64> {
    let (done, each) = timed_each(count, work);
    done.map(|()| each)
}

/// Measures appends to random keys, if the peer has them, and checks the bytes of every key.
fn append(peer: &mut dyn Peer, entries: usize, appends: usize) -> Outcome<Option<Figure>> {
    let (keys, mut random) = ((entries / 8).max(1) as u64, random(7));
    let all = (0..appends).map(|_| random_key(random.u64(..keys)));
    let (all, mut can): (Vec<u64>, _) = (all.collect(), true);
    let time = per(appends.max(1), || {
        for keys in all.chunks(KEYS_PER_CALL) {
            can &= peer.append(keys, &PIECE)?;
        }
        Ok(())
    })?;
    if !can || appends == 0 {
        return Ok(None);
    }
    let (mut pieces, mut bytes) = (HashMap::<u64, usize>::new(), Vec::new());
    for key in all {
        *pieces.entry(key).or_default() += 1;
    }
    for (key, count) in pieces {
        bytes.clear();
        let right = peer.read(key, &mut bytes)? && bytes == PIECE.repeat(count);
        let len = bytes.len();
        ensure!(right, PEER; "of {count} pieces under a key it has {len} bytes");
    }
    Ok(Some(("append", time)))
}
