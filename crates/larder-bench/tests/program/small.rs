//! Every bench, small: it ends well, which it does only if all answers were right, and its CSV has
//! what it should have.

use super::bench;

/// Runs the program and gives the CSV without the facts.
fn csv(arguments: &str) -> Vec<Vec<String>> {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let out = file.path().display().to_string();
    bench(arguments.split(' ').chain(["--out", &out])).well();
    let text = std::fs::read_to_string(&file).expect("it wrote its file");
    assert!(text.contains("# processor: "));
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let cells = |line: &str| line.split(',').map(str::to_string).collect();
    lines.map(cells).collect()
}

/// It has the columns, and lines that begin with these keys; every figure is a number above zero.
fn check(csv: &[Vec<String>], keys: usize, columns: &str, lines: &str) {
    for column in columns.split(", ") {
        let there = csv[0].iter().any(|name| name == column);
        assert!(there, "{column} in {:?}", csv[0]);
    }
    for line in lines.split("; ") {
        let there = csv.iter().any(|cells| cells[..keys].join(",") == line);
        assert!(there, "{line} in {csv:?}");
    }
    let mut figures = csv[1..].iter().flat_map(|cells| &cells[keys..]);
    let right = |cell: &String| cell.parse::<f64>().is_ok_and(|figure| figure > 0.0);
    assert!(figures.all(right), "{csv:?}");
}

#[test]
fn engine() {
    check(
        &csv("engine --sizes 100,2000 --runs 1 --operations 4000"),
        2,
        "insert, lookup, dependent, miss, scan, remove, bytes, resident",
        "100,larder hash; 100,BTreeMap; 2000,larder ordered; 2000,hashbrown",
    );
}

#[test]
fn growth() {
    let csv = csv("growth --entries 5000 --part 1000 --runs 2 --only larder");
    let columns = "ratio, slowest insert (us)";
    check(&csv, 1, columns, "larder hash; larder ordered");
    assert_eq!(csv.len(), 4, "only what was asked for, and the clock");
}

#[test]
fn threads() {
    check(
        &csv("threads --entries 3000 --ms 30 --runs 1 --threads 1,3"),
        3,
        "1 threads, 3 threads",
        "hash,100/0/0,larder hash; ordered,50/25/25,larder ordered; hash,90/5/5,larder hash",
    );
}

#[test]
fn skew() {
    let csv = csv("skew --entries 3000 --runs 1");
    let columns = "insert, lookup / random, remove / random";
    let lines = "larder hash,Zipf 0.99; larder ordered,strided by 2^32";
    check(&csv, 2, columns, lines);
    assert_eq!(csv.len(), 1 + 2 * 9);
}

#[test]
fn typed() {
    let mut csv = csv("typed --sizes 300 --runs 1 --operations 900 --threads 1,2");
    let columns = "insert, lookup, overwrite, count, range of 100, each, remove";
    let lines = "300,u64,u64,2,larder typed; 300,String,u64,1,RwLock<BTreeMap>; \
                 300,u64,struct,1,larder typed; 300,u64,u64,1,larder index of bytes; \
                 300,String,u64,2,larder typed_hash";
    // A map by hash has no ranges, and is otherwise measured like the others.
    let ranges = csv[0].iter().position(|column| column == "range of 100");
    let ranges = ranges.expect("a column of ranges");
    let by_hash = ["larder typed_hash", "dashmap", "papaya"];
    for cells in &mut csv[1..] {
        if by_hash.contains(&&*cells[4]) {
            assert_eq!(cells.remove(ranges), "");
        }
    }
    check(&csv, 5, columns, lines);
}

#[test]
fn what_is_not_there_is_an_error() {
    bench(["growth", "--entries", "10", "--only", "no such structure"])
        .failed("nothing was measured");
}
