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

use crate::stores::peer::{Peer, PeerError};
use crate::time::memory::resident;
use crate::time::timed_each;
use crate::workload::{random_key, value_of, Keys, Random};
use std::collections::HashMap;

/// Keys of a call.
pub const KEYS_PER_CALL: usize = 1024;
/// The steps, in the order in which they are done; each is a plot.
pub const STEPS: [&str; 5] = ["insert", "hit", "miss", "bytes", "append"];

const PIECE: [u8; 16] = *b"sixteen bytes...";

/// One figure of a peer.
pub type Figure = (&'static str, f64);

/// Runs all steps on an empty peer.
///
/// # Errors
/// If the peer can't, or gives a wrong answer.
pub fn run(peer: &mut dyn Peer, entries: usize, appends: usize) -> Result<Vec<Figure>, PeerError> {
    let keys = Keys::new(entries);
    let values: Vec<u64> = keys.insert.iter().map(|key| value_of(*key)).collect();
    // Answers are written to memory that exists before the clock starts.
    let mut answers = vec![0; entries];
    // Memory that the first entry allocates once doesn't count as the entries'.
    peer.insert(&keys.insert[..1], &values[..1])?;
    let before = resident(peer.process());
    let insert = per(entries, || insert(peer, &keys.insert, &values))?;
    // The memory is read before the lookups, which may add to it.
    let after = resident(peer.process());
    let mut found = 0;
    let hit = per(entries, || {
        lookup(peer, &keys.visit, &mut answers, &mut found)
    })?;
    // Values are checked after the time was taken.
    check_hits(&keys.visit, &answers, found)?;
    let miss = per(entries, || {
        lookup(peer, &keys.missing, &mut answers, &mut found)
    })?;
    if found != 0 {
        return Err(PeerError::Wrong(format!(
            "it finds {found} keys that were not inserted"
        )));
    }
    let bytes = before.zip(after).map(|(before, after)| {
        let grown = after.saturating_sub(before);
        ("bytes", grown as f64 / entries as f64)
    });
    let figures = [("insert", insert), ("hit", hit), ("miss", miss)];
    let figures = figures.into_iter().chain(bytes);
    Ok(figures.chain(append(peer, entries, appends)?).collect())
}

/// The nanoseconds of the work, divided by `count`.
fn per(count: usize, work: impl FnOnce() -> Result<(), PeerError>) -> Result<f64, PeerError> {
    let (done, each) = timed_each(count, work);
    done.map(|()| each)
}

fn insert(peer: &mut dyn Peer, keys: &[u64], values: &[u64]) -> Result<(), PeerError> {
    let mut parts = keys.chunks(KEYS_PER_CALL).zip(values.chunks(KEYS_PER_CALL));
    parts.try_for_each(|(keys, values)| peer.insert(keys, values))
}

fn lookup(
    peer: &mut dyn Peer,
    keys: &[u64],
    answers: &mut [u64],
    found: &mut usize,
) -> Result<(), PeerError> {
    *found = 0;
    for (keys, answers) in keys
        .chunks(KEYS_PER_CALL)
        .zip(answers.chunks_mut(KEYS_PER_CALL))
    {
        *found += peer.get(keys, answers)?;
    }
    Ok(())
}

fn check_hits(keys: &[u64], answers: &[u64], found: usize) -> Result<(), PeerError> {
    let mut pairs = keys.iter().zip(answers);
    let right = pairs.all(|(key, answer)| *answer == value_of(*key));
    if found == keys.len() && right {
        Ok(())
    } else {
        Err(PeerError::Wrong(format!(
            "it finds {found} of {} entries, or a wrong value",
            keys.len()
        )))
    }
}

/// The appends, if the peer has them. Then the bytes of every key are checked.
fn append(
    peer: &mut dyn Peer,
    entries: usize,
    appends: usize,
) -> Result<Option<Figure>, PeerError> {
    let keys = (entries / 8).max(1) as u64;
    let mut random = Random::new(7);
    // Random keys: some get many pieces, others few.
    let all: Vec<u64> = (0..appends)
        .map(|_| random_key(random.below(keys)))
        .collect();
    let mut can = true;
    let time = per(appends.max(1), || {
        for part in all.chunks(KEYS_PER_CALL) {
            can &= peer.append(part, &PIECE)?;
        }
        Ok(())
    })?;
    // The store can't append. That isn't an error.
    if !can || appends == 0 {
        return Ok(None);
    }
    // How many pieces each key must have.
    let mut pieces: HashMap<u64, usize> = HashMap::new();
    all.iter()
        .for_each(|key| *pieces.entry(*key).or_default() += 1);
    let mut bytes = Vec::new();
    for (key, count) in &pieces {
        bytes.clear();
        let is_found = peer.read(*key, &mut bytes)?;
        let right = bytes.chunks(PIECE.len()).all(|piece| piece == PIECE);
        if !is_found || bytes.len() != count * PIECE.len() || !right {
            return Err(PeerError::Wrong(format!(
                "of {count} pieces under a key it has {} bytes",
                bytes.len()
            )));
        }
    }
    Ok(Some(("append", time)))
}
