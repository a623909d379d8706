//! Tables as of an instant: the costs of snapshots for those who take them, for those who write,
//! and for those who read them.
//!
//! All figures are measured in turns: in each run first without snapshots, and then with them.

use super::rows::{program, set_key, sure, Ask, EngineHand, EngineRows};
use super::run::Run;
use super::Plan;
use crate::maps::peers::Hand;
use crate::result::{ensure, Failure, Outcome};
use crate::stats::{ends, quantile, sorted};
use crate::table::grouped;
use crate::time::{timed_each, workers};
use crate::workload::{shuffled, Random};
use larder::api::Snapshot;
use larder::TableKind;
use larder_index::Direction;
use larder_term::object::ObjectView;
use larder_term::{term, Term};
use std::time::{Duration, Instant};

/// The study.
pub const STUDY: Plan = Plan {
    name: "transactions",
    title: "Snapshots: taking them, writing beside them, reading them",
    source: "none: what Larder does, beside itself without snapshots",
    about:
        "Tables of the engine (larder::host::Table), rows {K, V}, worked on by threads of a Rust program.",
    quick_seconds: 60.0,
    run,
};

const PLOTS: &str = "
taking | Taking a snapshot of {rows} rows while two threads write | type, names | microseconds, log | us, less |
waiting | The longest wait of a writer meanwhile | type, names | microseconds, log | us, less | with and without snapshots, each for as long
writes | Writing over a row of {rows} rows | type, names | ns a write, linear | ns, less | one thread, keys in random order
kept | Bytes kept for a row that was changed | type, names | bytes, linear | bytes, less |
";

/// A plot of each way to read each type of table.
const READS: &str = "
{what}-{type} | A {what} of a {type} of {rows} rows | keys changed since, names | ns a row, linear | ns, less | lookup: in random order; scan: select_count of all rows; fold: all rows, in order
";

/// The types of tables.
const KINDS: [(&str, TableKind); 3] = [
    ("set", TableKind::Set),
    ("ordered_set", TableKind::OrderedSet),
    ("bag", TableKind::Bag),
];

/// Keys that were changed since a snapshot was taken.
const CHANGED: [usize; 3] = [0, 1_000, 100_000];

/// What reads the planted fault's table in the place of its snapshot.
const PLANTED: &str = "planted fault";

fn run(run: &mut Run) -> Outcome {
    let runs = run.runs(run.scale.pick(1, 3, 5));
    let rows = run.scale.pick(2_000, 1_000_000, 16_000_000);
    let rows = run.options.sizes.first().copied().unwrap_or(rows);
    run.setting("rows", rows);
    let said = grouped(rows);
    run.plots(PLOTS, &[("rows", &said)]);
    for what in ["lookup", "scan", "fold"] {
        for (kind, _) in KINDS {
            run.plots(READS, &[("what", what), ("type", kind), ("rows", &said)]);
        }
    }
    let kinds = KINDS.iter().filter(|kind| run.only.has(kind.0));
    let kinds: Vec<_> = kinds.map(|kind| (kind.0.to_owned(), kind)).collect();
    if kinds.is_empty() {
        return Err(Failure::Impossible(
            "no type of table is called so (--only)".into(),
        ));
    }
    run.in_turns(
        "snapshots",
        (runs, 1.0),
        &kinds,
        |run, seed, (name, kind)| {
            if run.fits(&format!("{name} of {said} rows"), rows as f64 * 150.0) {
                // The three measurements work on one table, in this order.
                let t = Filled::new(*kind, rows, seed);
                for measure in [writes, reads, taking] {
                    measure(run, name, &t)?;
                }
            }
            Ok(())
        },
    )?;
    run.check("each lookup and each scan of a snapshot gave the values of before the writes");
    run.check("each lookup and each scan of the table gave the values of after the writes");
    Ok(())
}

/// A table with the rows {K, 0}.
struct Filled {
    made: EngineRows,
    rows: usize,
    order: Vec<u32>,
}

/// What stands for a value that is not there: more than all values together.
const NOTHING: u64 = 1 << 40;

impl EngineHand<'_> {
    /// Puts {K, V} in the place of what is under the key.
    fn put(&mut self, key: u64, value: u64) {
        // In a bag a row with another value is another row. So the old one has to go first.
        if !self.table.kind().is_unique() {
            self.remove(key);
        }
        self.insert(key, value);
    }

    /// The number of rows whose value is at least `least`.
    fn count(&self, least: u64) -> u64 {
        let value = || Term::atom("$1");
        let guard = Term::tuple([Term::atom(">="), value(), Term::int(least as i64)]);
        let head = Term::tuple([Term::atom("_"), value()]);
        self.run(program(&term!([{(head), [(guard)], [true]}])))
    }

    /// The sum of all values, and the number of rows, in order.
    fn fold(&mut self) -> (u64, usize) {
        let table = self.table;
        let (mut sum, mut rows, mut last) = (0, 0, None);
        // Batch by batch: each begins behind the last key of the one before.
        loop {
            let before = rows;
            let from = last.map(|key| {
                set_key(table.key_form(), key, (&mut self.key, &mut self.exact));
                &*self.key
            });
            let mut show = |object: &ObjectView<'_>, _| {
                rows += 1;
                last = object.key().as_int().map(|key| key as u64);
                let value = object.element(2).and_then(|e| e.as_int());
                sum += value.map_or(NOTHING, |value| value as u64);
            };
            sure(table.fold(self.who, from, Direction::Forward, 1000, &mut show));
            // A batch without rows is the end.
            if rows == before {
                return (sum, rows);
            }
        }
    }
}

impl Filled {
    fn new(of: TableKind, rows: usize, seed: u64) -> Filled {
        let ask = Ask::new(of, "default");
        let filled = Filled {
            made: sure(EngineRows::new(&ask, 2)),
            rows,
            order: shuffled(rows, seed),
        };
        filled.write(&filled.order, 0);
        filled
    }

    /// Writes {K, V} under each of the keys; ns each.
    fn write(&self, keys: &[u32], value: u64) -> f64 {
        let mut hand = self.made.engine_hand();
        let all = || keys.iter().for_each(|&key| hand.put(u64::from(key), value));
        timed_each(keys.len(), all).1
    }

    fn snapshot(&self) -> Snapshot {
        sure(self.made.table.snapshot())
    }

    /// The first half of the keys, at most so many.
    fn some(&self, most: usize) -> &[u32] {
        &self.order[..most.min(self.rows / 2)]
    }
}

/// Writes over rows, without a snapshot, for the first time since one, and again.
fn writes(run: &mut Run, kind: &str, t: &Filled) -> Outcome {
    let keys = t.some(200_000);
    // The first pass pays for what no later one needs. The clock starts with the second pass.
    t.write(keys, 1);
    run.figure("writes", "no snapshot", kind, t.write(keys, 2));
    let snapshot = t.snapshot();
    // The first write of a row keeps its old version for the snapshot. Later ones don't.
    run.figure("writes", "first touch", kind, t.write(keys, 3));
    run.figure("writes", "later touch", kind, t.write(keys, 4));
    // How many versions are kept, for each row that was written.
    let (_, kept) = t.made.table.engine_table().snapshots();
    run.figure("kept", "snapshot", kind, kept as f64 / keys.len() as f64);
    drop(snapshot);
    // Dropping the snapshot must make writes as fast as before.
    run.figure("writes", "no snapshot any more", kind, t.write(keys, 5));
    // All rows are zero again, for the next measurement.
    t.write(&t.order, 0);
    Ok(())
}

/// Reads a table and its snapshot, after some keys were changed.
fn reads(run: &mut Run, kind: &str, t: &Filled) -> Outcome {
    let snapshot = t.snapshot();
    let planted = run.options.plant.then_some(&t.made.table);
    let mut before = 0;
    let lookups: Vec<u32> = shuffled(t.rows, 7).into_iter().take(200_000).collect();
    for changed in CHANGED {
        // Each step changes more keys. The snapshot still sees zeros only.
        let changed = changed.min(t.rows / 2);
        t.write(&t.order[before..changed.max(before)], 1);
        before = changed.max(before);
        // The table has one for each changed key. So sums say what was seen.
        let x = grouped(changed);
        // In turns, and the second time counts: the first brings memory near.
        for round in 0..2 {
            for (series, table, expected) in [
                ("table", &t.made.table, changed as u64),
                ("snapshot", planted.unwrap_or(&snapshot), 0),
            ] {
                let mut hand = t.made.hand_of(table);
                let (found, lookup) = timed_each(lookups.len(), || -> u64 {
                    let values = lookups.iter().map(|&key| hand.get(u64::from(key)));
                    values.map(|value| value.unwrap_or(NOTHING)).sum()
                });
                let (scanned, scan) = timed_each(t.rows, || hand.count(1));
                let ((sum, rows), fold) = timed_each(t.rows, || hand.fold());
                // Lookups are random, so of these it is only known whether any changed key was
                // seen. Scans and folds must see exactly the changed ones.
                let right = (found == 0) == (expected == 0)
                    && found < NOTHING
                    && scanned == expected
                    && (sum, rows) == (expected, t.rows);
                let who = planted.map_or(series, |_| PLANTED);
                ensure!(
                    right,
                    who,
                    "{found}, {scanned} and {sum} of {rows} instead of {expected}"
                );
                if round == 1 {
                    for (what, ns) in [("lookup", lookup), ("scan", scan), ("fold", fold)] {
                        run.figure(&format!("{what}-{kind}"), series, &*x, ns);
                    }
                }
            }
        }
    }
    Ok(())
}

/// Takes snapshots while two threads write: how long it takes, and how long they wait.
fn taking(run: &mut Run, kind: &str, t: &Filled) -> Outcome {
    let time = Duration::from_millis(run.scale.pick(20, 500, 2_000));
    // Without snapshots first, to compare with.
    for snapshots in [false, true] {
        let done = workers::work(3, Some(time), |worker| {
            let mut longest = Vec::new();
            // Two writers note the longest write. The third thread takes snapshots.
            if worker.number < 2 {
                let (mut hand, mut random) =
                    (t.made.engine_hand(), Random::new(worker.number as u64));
                let mut most = Duration::ZERO;
                while !worker.is_over() {
                    let key = random.below(t.rows as u64);
                    let begin = Instant::now();
                    hand.put(key, 0);
                    most = most.max(begin.elapsed());
                }
                longest.push(most.as_secs_f64() * 1e6);
            } else {
                // The same loop without snapshots, so that the writers have the same company.
                while !worker.is_over() {
                    if snapshots {
                        let begin = Instant::now();
                        let snapshot = t.snapshot();
                        longest.push(begin.elapsed().as_secs_f64() * 1e6);
                        drop(snapshot);
                    }
                    // A snapshot every two milliseconds.
                    std::thread::sleep(Duration::from_millis(2));
                }
            }
            Ok(longest)
        })?;
        // The longest of both writers' writes.
        let [_, most] = ends(&done.results[..2].concat());
        let series = ["without", "with snapshots"][usize::from(snapshots)];
        run.figure("waiting", series, kind, most);
        let took = sorted(done.results[2].iter().copied());
        if !took.is_empty() {
            run.figure("taking", "median", kind, quantile(&took, 0.5));
            run.figure("taking", "99 %", kind, quantile(&took, 0.99));
        }
    }
    Ok(())
}
