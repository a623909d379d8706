//! Tables as of an instant: the costs of snapshots for those who take them, for those who write,
//! and for those who read them. And transactions of several threads.
//!
//! Each turn measures everything first without snapshots, and then with them.

use super::concurrent_transactions as concurrent;
use super::run::Run;
use super::tables::{granted, EngineHandle, StudyTable};
use super::Plan;
use crate::maps::peers::Handle;
use crate::result::{ensure, Outcome};
use crate::stats::{ends, median, quantile, sorted};
use crate::table::grouped;
use crate::time::workers::work;
use crate::time::{cpu_each, timed};
use crate::workload::{random, shuffled};
use larder::api::Snapshot;
use larder::host::{with_local, Stored};
use larder_index::Direction;
use std::time::Duration;

pub const STUDY: Plan = Plan {
    name: "transactions",
    title: "Snapshots: taking them, writing beside them, reading them; transactions of two threads",
    source: "none: what Larder does, beside itself without snapshots",
    about:
        "Tables of the engine (larder::host::EngineTable), rows {K, V}, worked on by threads of a Rust program.",
    quick_seconds: 60.0,
    full_hours: 0.5,
    run,
};

/// The plot `costs` has a line for each cost, from which docs/performance.md has its table.
const PLOTS: &str = "
taking | Taking a snapshot of {rows} rows while two threads write | type, names | microseconds, log | us, less |
waiting | The longest wait of a writer meanwhile | type, names | microseconds, log | us, less | with and without snapshots, each for as long
writes | Writing over a row of {rows} rows | type, names | ns a write, linear | ns, less | one thread, keys in random order
kept | Bytes kept for a row that was changed | type, names | bytes, linear | bytes, less |
costs | What snapshots cost in tables of {rows} rows | type, names | each in the unit it names, linear | as named, less | ratio: to the same work without a snapshot
";

/// Lines of that plot, and the targets.
const TARGETS: [(&str, f64); 4] = [
    (FIRST, 2.0),
    (LATER, 1.05),
    (TAKEN, 50.0),
    (TAKEN_AT_MOST, 50.0),
];
/// The target of each way to read a snapshot.
const READ_TARGET: f64 = 1.3;
const TAKEN: &str = "take a snapshot while two threads write, median (us)";
const TAKEN_AT_MOST: &str = "the same, 99 % (us)";
const FIRST: &str = "first write of a key after a snapshot (ratio)";
const LATER: &str = "later writes of the key (ratio)";

/// A plot of each way to read each type of table.
const READS: &str = "
{what}-{type} | A {what} of a {type} of {rows} rows | keys changed since, names | ns a row, linear | ns, less | lookup: in random order; scan: select_count of all rows; fold: all rows, in order
";

const KINDS: [&str; 3] = ["set", "ordered_set", "bag"];

/// The ways to read a table or a snapshot.
const READS_OF: [&str; 3] = ["lookup", "scan", "fold"];

/// How often each kind of write is measured, in turns with the others.
const WRITE_ROUNDS: usize = 5;

/// Keys that were changed since a snapshot was taken.
const CHANGED: [usize; 3] = [0, 1_000, 100_000];

/// The value of a missing row: more than the sum of all values.
const MISSING: u64 = 1 << 40;

fn run(run: &mut Run) -> Outcome {
    let runs = run.runs(run.extent.pick(1, 3, 5));
    let sizes = run.options.sizes.clone();
    ensure!(sizes.len() <= 1; "--sizes of this study is one number of rows");
    let rows = run.extent.pick(2_000, 1_000_000, 16_000_000);
    let rows = sizes.first().copied().unwrap_or(rows);
    run.setting("rows", rows);
    let rows_text = grouped(rows);
    run.plots(PLOTS, &[("rows", &rows_text)]);
    for kind in KINDS {
        run.plots(concurrent::PLOTS, &[("type", kind)]);
    }
    for what in READS_OF {
        for kind in KINDS {
            let values = [("what", what), ("type", kind), ("rows", &*rows_text)];
            run.plots(READS, &values);
        }
    }
    let mut kinds = KINDS.map(|kind| (kind, kind)).to_vec();
    kinds.retain(|(kind, _)| run.filter.accepts(kind));
    ensure!(!kinds.is_empty(); "no type of table is called so (--only)");
    run.in_turns("snapshots", (runs, 1.0), &kinds, |run, seed, kind| {
        if run.fits(&format!("{kind} of {rows_text} rows"), rows as f64 * 150.0) {
            let table = FilledTable::new(kind, rows, seed);
            writes(run, kind, &table)?;
            reads(run, kind, &table)?;
            taking(run, kind, &table)?;
        }
        concurrent::measure(run, kind)
    })?;
    for (line, target) in TARGETS {
        run.figure("costs", line, "target", target);
    }
    for changed in CHANGED.map(|changed| changed.min(rows / 2)) {
        for what in READS_OF {
            let line = read_line(what, changed);
            run.figure("costs", &line, "target", READ_TARGET);
        }
    }
    run.check("each lookup and each scan of a snapshot gave the values of before the writes");
    run.check("each lookup and each scan of the table gave the values of after the writes");
    run.check("after the transactions, the rows had as many increments as there were transactions");
    Ok(())
}

impl EngineHandle<'_> {
    fn put(&mut self, key: u64, value: u64) {
        // A bag would keep the old row.
        if !self.table.kind().is_unique() {
            self.remove(key);
        }
        self.insert(key, value);
    }

    /// The number of rows with at least this value.
    fn scan(&self, least: u64) -> u64 {
        let spec = format!("[{{{{'_','$1'}},[{{'>=','$1',{least}}}],[true]}}]");
        granted(self.api.select_count(spec))
    }

    /// The sum of all values and the number of rows, read in order.
    fn fold(&mut self) -> (u64, usize) {
        let (table, owner) = (self.table, self.owner);
        let (mut sum, mut rows, mut last) = (0, 0, None);
        loop {
            let before = rows;
            // Each batch begins behind the last key of the one before.
            let from = last.map(|key| self.encode_key(key));
            let mut visit = |object: Stored<'_>, _: bool| {
                let object = object.view();
                rows += 1;
                last = object.key().as_int().map(|key| key as u64);
                let value = object.element(2).and_then(|e| e.as_int());
                sum += value.map_or(MISSING, |value| value as u64);
            };
            granted(with_local(|local| {
                table.fold(local, owner, from, Direction::Forward, 1000, &mut visit)
            }));
            if rows == before {
                return (sum, rows);
            }
        }
    }
}

/// A table with rows {K, 0}, and a random order of its keys.
struct FilledTable {
    table: StudyTable,
    rows: usize,
    order: Vec<u32>,
}

impl FilledTable {
    fn new(kind: &str, rows: usize, seed: u64) -> FilledTable {
        let table = granted(StudyTable::new(&format!("{kind} default"), 2, rows));
        let order = shuffled(rows, seed);
        let filled = FilledTable { table, rows, order };
        filled.write(&filled.order, 0);
        filled
    }

    fn handle(&self) -> EngineHandle<'_> {
        self.table.handle_of(&self.table.table)
    }

    /// Writes a value under each of the keys. Returns nanoseconds of the thread per write.
    fn write(&self, keys: &[u32], value: u64) -> f64 {
        let mut handle = self.handle();
        let numbers = keys.iter().map(|&key| u64::from(key));
        cpu_each(keys.len(), || {
            numbers.for_each(|key| handle.put(key, value))
        })
        .1
    }

    fn snapshot(&self) -> Snapshot {
        granted(self.table.table.snapshot())
    }
}

/// The line of the costs for a way to read a snapshot after some keys were changed.
fn read_line(what: &str, changed: usize) -> String {
    format!("{what}, {} rows changed (ratio)", grouped(changed))
}

/// Measures writes without a snapshot, the first ones since a snapshot, and later ones.
fn writes(run: &mut Run, kind: &str, t: &FilledTable) -> Outcome {
    let keys = &t.order[..200_000.min(t.rows / 2)];
    // The first pass has costs that no later one has.
    t.write(keys, 1);
    let mut figures = [const { Vec::new() }; 4];
    for _ in 0..run.extent.pick(1, WRITE_ROUNDS, WRITE_ROUNDS) {
        let without = t.write(keys, 2);
        let _snapshot = t.snapshot();
        // The first write of a row keeps its old version for the snapshot.
        let (first, later) = (t.write(keys, 3), t.write(keys, 4));
        let (_, bytes) = t.table.table.engine_table().snapshots();
        let kept = bytes as f64 / keys.len() as f64;
        let round = [without, first, later, kept];
        for (all, one) in figures.iter_mut().zip(round) {
            all.push(one);
        }
    }
    let [without, first, later, kept] = figures.map(|all| median(&all));
    let line = "first write of a key after a snapshot (ns)";
    for (series, line, ns) in [
        ("no snapshot", "write over a row, no snapshot (ns)", without),
        ("first touch", line, first),
        ("later touch", "later writes of the key (ns)", later),
    ] {
        run.figure("writes", series, kind, ns);
        run.figure("costs", line, kind, ns);
    }
    run.figure("costs", FIRST, kind, first / without);
    run.figure("costs", LATER, kind, later / without);
    run.figure("kept", "snapshot", kind, kept);
    run.figure("costs", "bytes kept for each row that changed", kind, kept);
    run.figure("writes", "no snapshot any more", kind, t.write(keys, 5));
    t.write(&t.order, 0);
    Ok(())
}

/// Measures reads of a table and of its snapshot, after some keys were changed from 0 to 1.
fn reads(run: &mut Run, kind: &str, t: &FilledTable) -> Outcome {
    let (table, snapshot) = (&t.table.table, t.snapshot());
    // The planted fault reads the table instead of its snapshot.
    let tables = match run.options.plant {
        true => [("planted fault", table); 2],
        false => [("table", table), ("snapshot", &snapshot)],
    };
    let lookups: Vec<u32> = shuffled(t.rows, 7).into_iter().take(200_000).collect();
    let (mut before, mut is_changed) = (0, vec![false; t.rows]);
    for changed in CHANGED {
        let changed = changed.min(t.rows / 2);
        let keys = &t.order[before..changed];
        t.write(keys, 1);
        keys.iter().for_each(|&key| is_changed[key as usize] = true);
        before = changed;
        // What the lookups find of the table: as many ones as they have changed keys.
        let ones = lookups.iter().filter(|&&key| is_changed[key as usize]);
        let of_table = (ones.count() as u64, changed as u64);
        let x = grouped(changed);
        // The first round brings the memory into the caches. The second one is measured.
        for round in 0..2 {
            let mut times = [[0.0; 3]; 2];
            let expected = [of_table, (0, 0)];
            for (i, (name, table)) in tables.into_iter().enumerate() {
                let ((ones, all), mut handle) = (expected[i], t.table.handle_of(table));
                let (found, lookup) = cpu_each(lookups.len(), || -> u64 {
                    let values = lookups.iter().map(|&key| handle.get(u64::from(key)));
                    values.map(|value| value.unwrap_or(MISSING)).sum()
                });
                let (scanned, scan) = cpu_each(t.rows, || handle.scan(1));
                let ((sum, rows), fold) = cpu_each(t.rows, || handle.fold());
                let right = (found, scanned, sum, rows) == (ones, all, all, t.rows);
                ensure!(right, name;
                    "{found}, {scanned} and {sum} of {rows} instead of {ones} and {all}");
                times[i] = [lookup, scan, fold];
            }
            for (i, what) in READS_OF.into_iter().enumerate().filter(|_| round == 1) {
                let ([table, snapshot], plot) = (times.map(|of| of[i]), format!("{what}-{kind}"));
                run.figure(&plot, "table", &*x, table);
                run.figure(&plot, "snapshot", &*x, snapshot);
                run.figure("costs", &read_line(what, changed), kind, snapshot / table);
            }
        }
    }
    Ok(())
}

/// Measures how long taking a snapshot takes while two threads write, and how long these wait.
fn taking(run: &mut Run, kind: &str, t: &FilledTable) -> Outcome {
    let time = Duration::from_millis(run.extent.pick(20, 500, 2_000));
    for (snapshots, series) in [(false, "without"), (true, "with snapshots")] {
        let done = work(3, Some(time), |worker| {
            let (mut handle, mut random) = (t.handle(), random(worker.number as u64));
            let mut times = Vec::new();
            // Two writers record the longest write.
            if worker.number < 2 {
                let mut longest: f64 = 0.0;
                while !worker.is_over() {
                    let key = random.u64(..t.rows as u64);
                    let ((), seconds) = timed(|| handle.put(key, 0));
                    longest = longest.max(seconds);
                }
                times.push(longest * 1e6);
            }
            // The third thread takes a snapshot every two milliseconds, or only sleeps.
            while !worker.is_over() {
                if snapshots {
                    let (_snapshot, seconds) = timed(|| t.snapshot());
                    times.push(seconds * 1e6);
                }
                std::thread::sleep(Duration::from_millis(2));
            }
            Ok(times)
        })?;
        let [_, longest] = ends(&done.results[..2].concat());
        run.figure("waiting", series, kind, longest);
        let taken = sorted(done.results[2].iter().copied());
        for (part, name, line) in [(0.5, "median", TAKEN), (0.99, "99 %", TAKEN_AT_MOST)] {
            if !taken.is_empty() {
                run.figure("taking", name, kind, quantile(&taken, part));
                run.figure("costs", line, kind, quantile(&taken, part));
            }
        }
    }
    Ok(())
}
