//! Every study, tiny: its files have the shape that reports are drawn from, its answers were
//! checked, and a structure that is wrong makes it fail.

use super::{bench, Ended};
use larder_bench::result::{read_json, EventKind, Point, Recording, Scale, Study, X};
use std::collections::BTreeSet;
use std::path::Path;
use tempfile::TempDir;

/// A folder of the test's own, gone with it.
fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

fn study(name: &str, out: &Path, more: &[&str]) -> Ended {
    let out = out.display().to_string();
    let own = ["study", name, "--tiny", "--no-progress", "--out", &out];
    bench(own.into_iter().chain(more.iter().copied()))
}

/// Runs a study and gives what it wrote, which has the right shape.
fn passes(name: &str, more: &[&str]) -> (Study, TempDir) {
    let folder = folder();
    study(name, folder.path(), more).well();
    let read: Study = read_json(&folder.path().join(format!("{name}.json"))).expect("a study");
    shape(&read, name);
    let csv = std::fs::read_to_string(folder.path().join(format!("{name}.csv"))).expect("there");
    assert_eq!(csv.lines().count(), 1 + read.points.len());
    assert!(csv.starts_with("study,plot,series,x,y,low,high,unit,runs,better\n"));
    (read, folder)
}

fn shape(study: &Study, name: &str) {
    assert_eq!(study.study, name);
    assert!(!study.title.is_empty() && !study.source.is_empty() && !study.origin.commit.is_empty());
    for fact in ["processor", "cores", "memory", "system", "rustc"] {
        assert!(study.origin.machine.contains_key(fact), "{fact}");
    }
    assert!(study.origin.started.ends_with('Z') && study.seconds > 0.0);
    for setting in ["scale", "seed", "threads", "runs"] {
        assert!(study.settings.contains_key(setting), "{setting}");
    }
    assert!(!study.checks.is_empty());
    let ids: BTreeSet<_> = study.plots.iter().map(|p| &p.id).collect();
    assert_eq!(ids.len(), study.plots.len(), "each plot once");
    let places: Vec<_> = study.points.iter().map(|p| (&p.plot, &p.x)).collect();
    let said = study.published.iter().map(|p| (&p.plot, &p.x));
    for (plot, x) in places.into_iter().chain(said) {
        let mut plots = study.plots.iter();
        let plot = plots.find(|p| p.id == *plot).expect("the point's plot");
        let named = matches!(x, X::Name(_));
        assert_eq!(named, plot.x_scale == Scale::Names, "{x} in {}", plot.id);
    }
    for point in &study.points {
        let in_order = point.low <= point.y && point.y <= point.high;
        let positive = point.y.is_finite() && point.y > 0.0 && point.runs > 0;
        assert!(in_order && positive, "{point:?}");
    }
    let place = |p: &Point| format!("{} {} {}", p.plot, p.series, p.x);
    let all: BTreeSet<_> = study.points.iter().map(place).collect();
    assert_eq!(all.len(), study.points.len(), "each point once");
}

/// Whether the plot has a point of this series, above zero.
fn has(study: &Study, plot: &str, series: &str) -> bool {
    let mut points = study.points.iter();
    points.any(|p| p.plot == plot && p.series == series && p.y > 0.0)
}

/// Each of the plots has points of all the series.
pub fn all_have(study: &Study, plots: &str, series: &str) {
    for plot in plots.split(", ") {
        for series in series.split(", ") {
            assert!(has(study, plot, series), "{plot}, {series}");
        }
    }
}

/// A planted fault makes the study fail, by its name, and nothing is written.
fn fails(name: &str, more: &[&str]) {
    let folder = folder();
    let expected = format!("study {name}: wrong answer of planted fault");
    study(name, folder.path(), more).failed(&expected);
    assert!(!folder.path().join(format!("{name}.json")).exists());
}

#[test]
fn ets_2003() {
    let (study, _folder) = passes("ets-2003", &[]);
    all_have(
        &study,
        "insert-sequential, lookup-random, traversal, relative-insert-random, memory, bytes",
        "set, ordered_set, btree, default set, default ordered_set, catree, judysl, judyesl, judyeh",
    );
    let is_wanted = |p: &&Point| p.plot == "relative-deletion" && p.series == "set";
    let wanted: Vec<_> = study.points.iter().filter(is_wanted).collect();
    let whole = |p: &&Point| (p.y, p.low, p.high) == (100.0, 100.0, 100.0);
    assert!(!wanted.is_empty() && wanted.iter().all(whole));
    let mut published = study.published.iter();
    assert!(published.any(|p| p.plot == "memory" && p.series == "set" && p.value == 980.0));
    assert!(study.skipped.iter().any(|s| s.contains("54,000,000 keys")));
    fails("ets-2003", &PLANTED);
    let (study, _folder) = passes("ets-2003", &["--sizes", "300,500", "--only", "=set"]);
    assert_eq!(sizes(&study), [300.0, 500.0]);
}

/// The sizes that were measured, in keys.
fn sizes(study: &Study) -> Vec<f64> {
    let deletions = study.points.iter().filter(|p| p.plot == "deletion");
    let sizes = deletions.map(|p| match p.x {
        X::Number(keys) => keys,
        X::Name(_) => panic!("deletions are by the number of keys"),
    });
    let mut sizes: Vec<_> = sizes.collect();
    sizes.dedup();
    sizes
}

#[test]
fn ets_2013() {
    let (study, _folder) = passes("ets-2013", &["--threads", "2"]);
    all_have(
        &study,
        "insert, lookups-90, lookups-99, lookups-100, delete",
        "R11B set, R13B02 set, R14B set, R16B set, OTP 25 set, OTP 22 ordered_set, default set, skiplist",
    );
    for plot in "reader-groups, bucket-locks, options, stacks, registry".split(", ") {
        assert!(study.points.iter().any(|p| p.plot == plot), "{plot}");
    }
    fails("ets-2013", &PLANTED);
}

#[test]
fn ordered_set() {
    let (study, folder) = passes("ordered-set", &["--threads", "2"]);
    let is_scenario = |p: &&Point| p.plot == "scenarios" && p.series == "default ordered_set";
    assert_eq!(study.points.iter().filter(is_scenario).count(), 14);
    assert!(has(&study, "disjoint", "ordered_set (CA tree)"));
    let mut disjoint = study.points.iter().filter(|p| p.plot == "disjoint");
    assert!(disjoint.all(|p| p.x != X::Number(4.0)), "--threads 2");
    assert!(has(&study, "counters", "default ordered_set, on"));
    assert!(has(&study, "counters", "default set, off"));
    let recording =
        read_json::<Recording>(&folder.path().join("catree-adapting.json")).expect("a recording");
    assert_eq!((recording.phases.len(), recording.threads), (4, 2));
    assert!(recording.samples.len() > 100);
    // What is recorded is replayed by the study; whether there was contention is the system's
    // affair.
    for event in &recording.events {
        let made = 1 + usize::from(event.event == EventKind::Split);
        let right = event.becomes.len() == made && event.keys[0] < event.keys[1];
        assert!(right && event.thread < 2, "{event:?}");
    }
    fails("ordered-set", &PLANTED);
}

#[test]
fn big_memory() {
    let (study, _folder) = passes("big-memory", &[]);
    all_have(
        &study,
        "growth, slowest, entry, append-rate, append-latency, sizes",
        "default hash, default ordered, btree, BTreeMap of Vec",
    );
    assert!(has(&study, "growth", "hashbrown"));
    fails("big-memory", &PLANTED);
}

#[test]
fn transactions() {
    let (found, _folder) = passes("transactions", &[]);
    all_have(&found, "writes", "no snapshot, first touch, later touch");
    for plot in ["lookup", "scan", "fold"] {
        for kind in ["set", "ordered_set", "bag"] {
            let plot = format!("{plot}-{kind}");
            all_have(&found, &plot, "table, snapshot");
        }
    }
    fails("transactions", &["--plant"]);
}

/// What is not begun in time is said, and what was found by then is there.
#[test]
fn an_end_that_was_asked_for_is_kept() {
    for name in ["ets-2003", "ets-2013"] {
        let folder = folder();
        study(name, folder.path(), &["--minutes", "0"]).well();
        let study: Study = read_json(&folder.path().join(format!("{name}.json"))).expect("a study");
        assert!(study.points.is_empty());
        let said = |text: &String| text.ends_with("not in the time that was given (--minutes)");
        assert!(study.skipped.iter().any(said), "{:?}", study.skipped);
    }
}

/// Options for a planted fault among few structures.
const PLANTED: [&str; 3] = ["--plant", "--only", "default"];

/// Where the Erlang modules are built, the whole; elsewhere, that it is said. `LARDER_BUILT` is
/// `yes` where they must be, and `no` where they may be half done (scripts/test.sh); otherwise this
/// looks.
#[test]
fn erlang() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let beams = ["bench/larder_bench_study.beam", "larder/ebin/larder.beam"];
    let is_there = |file: &&str| root.join("_build").join(file).exists();
    let all = || beams.iter().all(is_there) && root.join("priv/larder_nif.so").exists();
    let built = match std::env::var("LARDER_BUILT").as_deref() {
        Ok("yes") => true,
        Ok("no") => false,
        _ => all(),
    };
    let root = root.display().to_string();
    let more = ["--root", root.as_str()];
    if built {
        let (study, _folder) = passes("erlang", &more);
        all_have(
            &study,
            "lookup-random, insert-sequential, disjoint, scenarios-1",
            "ets set, ets ordered_set, larder set, larder ordered_set",
        );
        assert!(study.settings.contains_key("OTP"));
        let with = |others: &[&'static str]| [&more[..], others].concat();
        fails("erlang", &with(&["--plant", "--only", "ets set"]));
        let chosen = with(&["--sizes", "300,500", "--only", "=larder set"]);
        let (study, _folder) = passes("erlang", &chosen);
        assert_eq!(sizes(&study), [300.0, 500.0]);
    }
    let folder = folder();
    let nowhere = study("erlang", folder.path(), &["--root", "/nowhere"]);
    nowhere.failed("make build demo-beams bench-beams");
}

#[test]
fn what_there_is_not_is_said() {
    let folder = folder();
    let fails = |name, more: &[&str], why: &str| study(name, folder.path(), more).failed(why);
    fails("ets-1066", &[], "there are ets-2003, ets-2013");
    fails(
        "ets-2003",
        &["--only", "no such structure"],
        "is called so (--only)",
    );
    let sized = "--sizes is of the studies ets-2003, erlang and transactions alone";
    fails("ets-2013", &["--sizes", "1000"], sized);
    fails("ets-2003", &["--sizes", "0"], "--sizes");
    fails(
        "transactions",
        &["--sizes", "300,500"],
        "one number of rows",
    );
    let text = bench(["study", "list"]).out;
    for name in "ets-2003, ets-2013, ordered-set, big-memory, erlang, transactions".split(", ") {
        assert!(text.contains(name), "{name}");
    }
}
