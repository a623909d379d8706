//! Made-up results of every kind that the report has to draw. They are inputs of tests, and say so.

use larder_bench::result::{Better, Origin, Plot, Point, Published, Study, X};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A text that would do harm in a page that forgets to escape.
pub const HOSTILE: &str =
    "</script><script>document.documentElement.dataset.error='escaped'</script>\"'&<b>";

/// An empty folder for one test.
pub fn folder(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if path.exists() {
        std::fs::remove_dir_all(&path).expect("it is ours");
    }
    std::fs::create_dir_all(&path).expect("a folder can be made");
    path
}

/// Everything at once: two studies, a tree, and the file of `make bench`. `slower` times each
/// figure of Larder.
pub fn write_all(folder: &Path, slower: f64) {
    times(slower).write(folder).expect("written");
    threads(slower).write(folder).expect("written");
    std::fs::write(folder.join("catree-adapting.json"), TREE).expect("written");
    std::fs::write(folder.join("bench.csv"), BENCH).expect("written");
}

/// A tree over a million keys, of which one base is split twice and two are joined.
const TREE: &str = include_str!("tree.json");

const BENCH: &str = "# commit: \"made up\"\n# otp: \"25\"\n# runs: 3\n\
rows,row,type,operation,unit,ets,larder,ratio,ratio_least,ratio_most,target,met,runs,ets_info,larder_info\n\
65536,lookup,set,\"lookup, random\",ns,218,150,0.69,0.66,0.71,1,true,3,,\n\
65536,insert,set,\"insert, random\",ns,244,260,1.07,0.95,1.15,1,false,3,,\n\
65536,lookup,ordered_set,\"lookup, random\",ns,323,190,0.59,0.58,0.62,1,true,3,,\n\
65536,memory,set,set,bytes,82.3,13.8,0.168,0.168,0.168,0.4,true,1,,\n";

fn study(name: &str, title: &str) -> Study {
    let facts = "processor=a made-up processor, cores=2, rustc=1.95.0";
    let facts = facts.split(", ").filter_map(|fact| fact.split_once('='));
    let machine = facts.map(|(name, fact)| (name.into(), fact.into()));
    Study {
        study: name.into(),
        title: title.into(),
        source: "made-up figures, for a test of the report".into(),
        origin: Origin {
            machine: machine.collect(),
            commit: "0123456789ab".into(),
            started: "2026-11-22T06:00:00Z".into(),
        },
        seconds: 123.0,
        settings: BTreeMap::from([("seed".into(), "1".into())]),
        skipped: ["54 M keys: they need 12 GB, and there are 8", HOSTILE]
            .map(String::from)
            .into(),
        checks: vec!["all counts are right".into()],
        ..Study::default()
    }
}

/// Adds a point: nanoseconds if less is better, else a rate.
fn add(study: &mut Study, better: Better, [plot, series]: [&str; 2], x: X, y: f64, spread: f64) {
    let unit = ["ns", "M op/s"][better as usize];
    let figure = [y, y * (1.0 - spread), y * (1.0 + spread)];
    study
        .points
        .push(Point::new(plot, series, x, figure, 3, unit, better));
}

/// A study of times by table size, with published figures, a plot of names, a crowded plot and a
/// figure of zero.
fn times(slower: f64) -> Study {
    let mut study = study("ets-2003", "Seven workloads of 2003, on every table type");
    let types: [(&str, f64, f64); 7] = [
        ("default", 38.0 * slower, 0.10),
        ("set", 70.0, 0.22),
        ("ordered_set", 118.0, 0.32),
        ("btree", 150.0, 0.24),
        ("judysl", 96.0, 0.16),
        ("judyesl", 90.0, 0.15),
        ("judyeh", 60.0, 0.2),
    ];
    study.plots = [
        "random-lookup | Random lookup, by table size | keys, log | nanoseconds an operation, log | ns, less | The paper's figures are ratios to set; they are drawn as times of our set.",
        "workloads | All workloads at 700 k keys | workload, names | nanoseconds an operation, linear | ns, less |",
        "growth | Inserts, million by million | million, linear | milliseconds, linear | ms, less |",
    ]
    .map(Plot::parse)
    .into();
    let workloads = "sequential insert, random insert, sequential lookup, random lookup, traversal, counter, deletion";
    let mut add = |at, x, y, spread| add(&mut study, Better::Less, at, x, y, spread);
    for (i, (name, at_thousand, steep)) in types.iter().enumerate() {
        for keys in [700.0, 7e3, 7e4, 7e5, 7e6, 21e6] {
            let y = at_thousand * (keys / 700f64).powf(*steep);
            let spread = 0.04 + 0.03 * i as f64;
            add(["random-lookup", name], keys.into(), y, spread);
        }
        for (j, workload) in workloads.split(", ").enumerate() {
            let y = at_thousand * (1.0 + ((i * 7 + j * 3) % 5) as f64 * 0.3);
            add(["workloads", name], workload.into(), y, 0.08);
        }
        for million in 0..100 {
            let pause = if million % 16 == 3 * i { 8.0 } else { 1.0 };
            let x = X::Number(million as f64);
            add(["growth", name], x, at_thousand * pause, 0.1);
        }
    }
    add(["workloads", HOSTILE], "deletion".into(), 0.0, 0.0);
    for (series, value) in [("judyeh", 560.0), ("judysl", 420.0), ("set", 680.0)] {
        study.published.push(Published {
            plot: "random-lookup".into(),
            series: series.into(),
            x: 21e6.into(),
            value,
            unit: "ns".into(),
            source: "made up: figure 4".into(),
        });
    }
    study
}

/// Throughput by threads: more is better, and Larder loses in one plot.
fn threads(slower: f64) -> Study {
    let mut study = study("ets-2013", "Throughput on one table, by release");
    let presets = [
        ("default", 9.0 / slower, 1.9),
        ("R11B", 2.0, 0.8),
        ("R13B02", 2.6, 1.3),
        ("R16B", 2.9, 1.7),
        ("OTP 22", 3.0, 1.8),
    ];
    for (id, title, gain) in [
        ("lookups", "99 % lookups", 1.0),
        ("updates", "90 % lookups", 0.22),
    ] {
        let axes = "threads, linear | million operations a second, linear | M op/s, more";
        let line = format!("{id} | {title} | {axes} |");
        study.plots.push(Plot::parse(&line));
        for (name, one, speedup) in presets {
            let one = if name == "default" { one * gain } else { one };
            for threads in [1.0, 2.0, 4.0] {
                let (x, y) = (
                    X::from(threads),
                    one * f64::powf(speedup, f64::log2(threads)),
                );
                add(&mut study, Better::More, [id, name], x, y, 0.05);
            }
        }
    }
    study
}
