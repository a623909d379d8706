//! Writes into large tables: appends by popular keys, at full speed and when they are due, and
//! values of all sizes.

use super::stores::Named;
use super::SHARES;
use crate::maps::peers::Store;
use crate::result::{ensure, Outcome};
use crate::study::run::Run;
use crate::workload::{random_key, shuffled, value_of, Random, Zipf};
use hdrhistogram::Histogram;
use std::time::{Duration, Instant};

const APPENDS: &str = "
append-rate | Appends of 16 bytes by Zipf popularity: writes a second | , names | millions of writes a second, linear | M op/s, more | {keys} keys, exponent 0.99; a value that would be longer than 16 KiB begins anew; asked for: at or above 0.2
append-latency | Latency of an append at 200,000 a second | percentile, names | us, log | us, less | from the moment at which it was due to its end, so that a pause counts for all who wait; includes what the system does to the thread
";

const SIZES: &str = "
sizes | Writes of values by their size | bytes of a value, log | millions of writes a second, log | M op/s, more | values take the place of others, keys by Zipf popularity; {total} MB of values in all, at most {most} keys; asked for: at or above 0.2
";

const PIECE: usize = 16;
const MOST: usize = 16 << 10;

/// Writes a second that a user asks for.
const ASKED: f64 = 200_000.0;

const USERS: &str = "users of large tables";

/// Nanoseconds that can be told apart: an hour.
const LONGEST: u64 = 3_600_000_000_000;

/// A key's piece, of which its values are made.
fn piece(key: u64) -> [u8; PIECE] {
    let mut piece = [0; PIECE];
    piece[..8].copy_from_slice(&value_of(key).to_le_bytes());
    piece[8..].copy_from_slice(&key.to_le_bytes());
    piece
}

/// Which keys are popular: a rank by Zipf's law, and the key of that rank.
struct Popular {
    zipf: Zipf,
    order: Vec<u32>,
}

impl Popular {
    fn new(keys: usize, seed: u64) -> Popular {
        Popular {
            zipf: Zipf::new(keys, 0.99),
            order: shuffled(keys, seed),
        }
    }

    fn key(&self, random: &mut Random) -> u64 {
        random_key(u64::from(self.order[self.zipf.next(random)]))
    }
}

pub(super) fn appends(run: &mut Run, stores: &[Named]) -> Outcome {
    let (keys, writes, seconds) = run.scale.pick(
        (2_000, 20_000, 0.1),
        (100_000, 300_000, 0.5),
        (10_000_000, 100_000_000, 60.0),
    );
    run.setting("append keys", keys);
    run.setting("append writes", writes);
    run.plots(APPENDS, &[("keys", &keys.to_string())]);
    run.published("append-rate", "asked for", "full speed", ASKED / 1e6, USERS);
    // The popularity of keys by Zipf's law, the same for all stores.
    let popular = Popular::new(keys, run.options.seed);
    run.progress.part("big-memory, appends", stores.len());
    for (i, store) in stores.iter().enumerate() {
        run.progress.at(&store.name);
        // What the values take, with what growing them by copying leaves behind.
        let bytes = writes as f64 * PIECE as f64 * 2.5 + keys as f64 * 250.0;
        let what = format!("appends, {}", store.name);
        if !run.is_over(&what, (1.0, 0.0)) && run.fits(&what, bytes) {
            // Half of the time for writes at full speed, half for those that are due.
            let patience = run
                .clock
                .patience(SHARES[1], stores.len() - i)
                .map(|all| all / 2);
            let seconds = patience.map_or(seconds, |half| f64::min(seconds, half.as_secs_f64()));
            let pace = Pace {
                writes,
                seconds,
                patience,
            };
            append(run, store, &popular, pace)?;
            run.save()?;
        }
        run.progress.step();
    }
    run.check("after appends: every value is whole pieces of its key's, as many as the number of writes says while none began anew");
    Ok(())
}

/// How many writes at full speed, and how long it may take until they are done; how many seconds of
/// writes that are due.
struct Pace {
    writes: usize,
    seconds: f64,
    patience: Option<Duration>,
}

impl Pace {
    /// Whether the writes at full speed end after so many: the clock is looked at now and then.
    fn is_over(&self, done: usize, begin: Instant) -> bool {
        let late = || self.patience.is_some_and(|most| begin.elapsed() > most);
        done == self.writes || done.is_multiple_of(1024) && late()
    }
}

fn append(run: &mut Run, named: &Named, popular: &Popular, pace: Pace) -> Outcome {
    // First at full speed, which gives the rate. Then when they are due, which gives the latencies.
    let mut store = (named.make)(popular.order.len());
    let mut random = Random::new(run.options.seed);
    let mut counts = vec![0u32; popular.order.len()];
    let (begin, mut done) = (Instant::now(), 0);
    // At least one write, even if the time is over.
    while !pace.is_over(done, begin) || done == 0 {
        let rank = popular.zipf.next(&mut random);
        let key = random_key(u64::from(popular.order[rank]));
        // Count the writes of each key, for the check.
        counts[rank] += 1;
        store.append(key, &piece(key), MOST);
        done += 1;
    }
    // The clock is read before the check, which takes about as long.
    let rate = done as f64 / begin.elapsed().as_secs_f64() / 1e6;
    appended(&mut *store, &named.name, popular, &counts)?;
    run.figure("append-rate", &named.name, "full speed", rate);
    let (paced, achieved) = paced(&mut *store, popular, &mut random, pace.seconds);
    let x = "200,000 a second asked for";
    run.figure("append-rate", &named.name, x, achieved / 1e6);
    // High quantiles, since a table that sometimes stops is slow in these only.
    for (x, part) in [
        ("50 %", 0.5),
        ("90 %", 0.9),
        ("99 %", 0.99),
        ("99.9 %", 0.999),
        ("99.99 %", 0.9999),
        ("slowest", 1.0),
    ] {
        let us = paced.value_at_quantile(part) as f64 / 1e3;
        run.figure("append-latency", &named.name, x, us);
    }
    Ok(())
}

/// Checks that every value is the result of its number of appends.
fn appended(store: &mut dyn Store, name: &str, popular: &Popular, counts: &[u32]) -> Outcome {
    let mut out = Vec::new();
    let full = (MOST / PIECE) as u32;
    for (rank, &count) in counts.iter().enumerate() {
        let key = random_key(u64::from(popular.order[rank]));
        out.clear();
        let found = store.get(key, &mut out);
        // A value that is full begins anew with the next piece.
        let pieces = if count == 0 {
            0
        } else {
            (count - 1) % full + 1
        };
        let right = pieces as usize * PIECE;
        let whole = out.chunks(PIECE).all(|p| p == piece(key));
        let right_now = found == (count > 0) && out.len() == right && whole;
        ensure!(
            right_now,
            name,
            "after {count} appends, {key} has {} bytes, not {right}",
            out.len()
        );
    }
    Ok(())
}

/// Appends when they are due, 200,000 a second: nanoseconds from then to the end of each, and how
/// many a second it came to.
fn paced(
    store: &mut dyn Store,
    popular: &Popular,
    random: &mut Random,
    seconds: f64,
) -> (Histogram<u64>, f64) {
    // Its bounds are told: one that grows by itself does not do so when it saturates.
    let mut histogram =
        Histogram::new_with_bounds(1, LONGEST, 3).expect("these bounds are in order");
    let all = (ASKED * seconds) as u64;
    // One that can't keep up is not waited for longer than three times as long.
    let patience = Duration::from_secs_f64(3.0 * seconds);
    let begin = Instant::now();
    for i in 0..all {
        // When a write is due doesn't depend on when the one before ended. So what a slow write
        // delays counts as slow, too (no coordinated omission).
        let due = Duration::from_secs_f64(i as f64 / ASKED);
        while begin.elapsed() < due {
            std::hint::spin_loop();
        }
        let key = popular.key(random);
        store.append(key, &piece(key), MOST);
        let end = begin.elapsed();
        // From when it was due, not from when it began.
        histogram.saturating_record((end - due).as_nanos() as u64);
        if end > patience {
            return (histogram, i as f64 / end.as_secs_f64());
        }
    }
    (histogram, all as f64 / begin.elapsed().as_secs_f64())
}

pub(super) fn sizes(run: &mut Run, stores: &[Named]) -> Outcome {
    let total = run.scale.pick(1 << 20, 8 << 20, 2 << 30usize);
    let most = run.scale.pick(2_000, 50_000, 10_000_000);
    let runs = run.runs(run.scale.pick(1, 3, 3));
    let (said, keys) = ((total >> 20).to_string(), most.to_string());
    run.plots(SIZES, &[("total", &said), ("most", &keys)]);
    let sizes = [16, 64, 256, 1 << 10, 4 << 10, 16 << 10];
    for size in sizes {
        run.published("sizes", "asked for", size, ASKED / 1e6, USERS);
    }
    let popular = sizes.map(|size| Popular::new((total / size).clamp(64, most), run.options.seed));
    // Each size with each store.
    let of = |(size, popular)| {
        let named = move |store: &'_ Named| format!("values of {size} bytes, {}", store.name);
        stores
            .iter()
            .map(move |store| (named(store), (size, popular, store)))
    };
    let all: Vec<_> = sizes.into_iter().zip(&popular).flat_map(of).collect();
    let part = "values of all sizes";
    run.in_turns(
        part,
        (runs, 1.0),
        &all,
        |run, seed, &(size, popular, store)| {
            let what = format!("values of {size} bytes, {}", store.name);
            // Values, and the room that a structure may need while it grows.
            let bytes = popular.order.len() as f64 * (size as f64 * 2.5 + 250.0);
            if run.fits(&what, bytes) {
                let rate = overwrite(store, popular, size, total, seed)?;
                run.figure("sizes", &store.name, size, rate);
            }
            Ok(())
        },
    )?;
    run.check("after writes of all sizes: every value has its size and is its key's");
    Ok(())
}

/// A key's value of some size.
fn fill(key: u64, value: &mut [u8]) {
    value.chunks_mut(8).for_each(|chunk| {
        let bytes = value_of(key).to_le_bytes();
        chunk.copy_from_slice(&bytes[..chunk.len()]);
    });
}

fn overwrite(
    named: &Named,
    popular: &Popular,
    size: usize,
    total: usize,
    seed: u64,
) -> Outcome<f64> {
    let mut store = (named.make)(popular.order.len());
    let mut value = vec![0; size];
    // All values are put once before the clock starts.
    for &i in &popular.order {
        let key = random_key(u64::from(i));
        fill(key, &mut value);
        store.put(key, &value);
    }
    // As many writes as write twice the total, within limits.
    let writes = (2 * total / size).clamp(2_000, popular.order.len().max(20_000));
    let mut random = Random::new(seed);
    let begin = Instant::now();
    for _ in 0..writes {
        let key = popular.key(&mut random);
        fill(key, &mut value);
        store.put(key, &value);
    }
    let rate = writes as f64 / begin.elapsed().as_secs_f64() / 1e6;
    // Compare a sample of the values with what was written last.
    let mut out = Vec::new();
    for &i in popular
        .order
        .iter()
        .step_by(popular.order.len().div_ceil(10_000).max(1))
    {
        let key = random_key(u64::from(i));
        out.clear();
        fill(key, &mut value);
        let right = store.get(key, &mut out) && out == value;
        ensure!(
            right,
            &named.name,
            "the value of {key} is not what was put: {} bytes of {size}",
            out.len()
        );
    }
    Ok(rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rests once.
    struct Resting(Option<Duration>);

    impl Store for Resting {
        fn put(&mut self, _: u64, _: &[u8]) {}
        fn append(&mut self, _: u64, _: &[u8], _: usize) {
            if let Some(rest) = self.0.take() {
                std::thread::sleep(rest);
            }
        }
        fn get(&mut self, _: u64, _: &mut Vec<u8>) -> bool {
            false
        }
        fn bytes(&self) -> Option<usize> {
            None
        }
    }

    #[test]
    fn a_pause_counts_for_all_who_wait() {
        let rest = Duration::from_millis(40);
        let mut store = Resting(Some(rest));
        let (histogram, rate) = paced(&mut store, &Popular::new(100, 1), &mut Random::new(1), 0.1);
        // One write waits for all of it, and a fifth of the writes for more than half of it: 4,000
        // are due in 20 milliseconds, of 20,000 in all.
        assert!(histogram.max() >= rest.as_nanos() as u64);
        assert!(histogram.value_at_quantile(0.85) >= rest.as_nanos() as u64 / 2 - 1_000_000);
        assert!(rate > 0.0);
    }
}
