//! Every bench, small: it ends well, which it does only if all answers were right, and its CSV has
//! what it should have.

use std::path::PathBuf;
use std::process::Command;

/// Runs the program and gives the CSV without the facts.
fn csv(arguments: &[&str]) -> Vec<Vec<String>> {
    let name = format!("larder-bench-{}-{}.csv", std::process::id(), arguments[0]);
    let path: PathBuf = std::env::temp_dir().join(name);
    let output = Command::new(env!("CARGO_BIN_EXE_larder-bench"))
        .args(arguments)
        .arg("--out")
        .arg(&path)
        .output()
        .expect("the program starts");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = std::fs::read_to_string(&path).expect("it wrote its file");
    std::fs::remove_file(&path).expect("the file is ours");
    assert!(text.contains("# processor: "));
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| line.split(',').map(str::to_string).collect())
        .collect()
}

/// Every figure is a number above zero, and `lines` begins the list.
fn check(csv: &[Vec<String>], keys: usize, columns: &[&str], lines: &[&str]) {
    for column in columns {
        assert!(
            csv[0].iter().any(|name| name == column),
            "{column} in {:?}",
            csv[0]
        );
    }
    for line in lines {
        assert!(
            csv.iter().any(|cells| cells[..keys].join(",") == *line),
            "{line} in {csv:?}"
        );
    }
    for cell in csv[1..].iter().flat_map(|cells| &cells[keys..]) {
        assert!(
            cell.parse::<f64>().is_ok_and(|figure| figure > 0.0),
            "{csv:?}"
        );
    }
}

#[test]
fn engine() {
    let csv = csv(&[
        "engine",
        "--sizes",
        "100,2000",
        "--runs",
        "1",
        "--operations",
        "4000",
    ]);
    let lines = [
        "100,larder hash",
        "100,BTreeMap",
        "2000,larder ordered",
        "2000,hashbrown",
    ];
    check(
        &csv,
        2,
        &[
            "insert",
            "lookup",
            "dependent",
            "miss",
            "scan",
            "remove",
            "bytes",
            "resident",
        ],
        &lines,
    );
}

#[test]
fn growth() {
    let csv = csv(&[
        "growth",
        "--entries",
        "5000",
        "--part",
        "1000",
        "--runs",
        "2",
        "--only",
        "larder",
    ]);
    check(
        &csv,
        1,
        &["ratio", "slowest insert (us)"],
        &["larder hash", "larder ordered"],
    );
    assert_eq!(csv.len(), 4, "only what was asked for, and the clock");
}

#[test]
fn threads() {
    let csv = csv(&[
        "threads",
        "--entries",
        "3000",
        "--ms",
        "30",
        "--runs",
        "1",
        "--threads",
        "1,3",
    ]);
    let lines = [
        "hash,100/0/0,larder hash",
        "ordered,50/25/25,larder ordered",
        "hash,90/5/5,larder hash",
    ];
    check(&csv, 3, &["1 threads", "3 threads"], &lines);
}

#[test]
fn skew() {
    let csv = csv(&["skew", "--entries", "3000", "--runs", "1"]);
    let lines = ["larder hash,Zipf 0.99", "larder ordered,strided by 2^32"];
    check(
        &csv,
        2,
        &["insert", "lookup / random", "remove / random"],
        &lines,
    );
    assert_eq!(csv.len(), 1 + 2 * 9);
}

#[test]
fn what_is_not_there_is_an_error() {
    let output = Command::new(env!("CARGO_BIN_EXE_larder-bench"))
        .args(["growth", "--entries", "10", "--only", "no such structure"])
        .output()
        .expect("the program starts");
    assert!(!output.status.success());
}
