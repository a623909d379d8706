//! Memory that there isn't: an allocator that fails at the n-th call, for every n over a fixed
//! script.
//!
//! What Rust's collections do then is end the process with a message (`handle_alloc_error`), as the
//! emulator does with its own memory; no table outlives its process. What has to hold, and does:
//! the end is that one, at once, whatever was in progress (no crash of another kind, no endless
//! wait), and files are whole: a table that was being saved over another is in its file as it was,
//! or as it is.
//!
//! The script runs in child processes of this test, one for each n. `LARDER_SOAK=n` looks at n
//! times as many n; all of them are looked at when that is enough.

use larder::api::{Larder, Table};
use larder::host::{Budget, Error, Step};
use larder::host::{LoadJob, LoadOptions, SaveJob, SaveOptions};
use larder_term::{term, NodeName, Term};
use std::alloc::{GlobalAlloc, Layout, System};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

/// The system's allocator, with a call that fails.
struct Failing;

/// Calls left before the one that fails; below zero nothing fails any more. Starts high: set-up is
/// not part of the script.
static LEFT: AtomicI64 = AtomicI64::new(i64::MAX);

fn fails() -> bool {
    // Ordering: Relaxed; of all threads' calls one is the n-th, whichever.
    LEFT.fetch_sub(1, Ordering::Relaxed) == 0
}

// SAFETY: memory is the system allocator's, asked for and given back with the same layouts; a null
// pointer is how an allocator says that there is none.
unsafe impl GlobalAlloc for Failing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if fails() {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise; `alloc` and `realloc` give the system's memory.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if fails() {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promise, as in `dealloc`.
        unsafe { System.realloc(memory, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Failing = Failing;

/// What the children find in their environment: how many calls succeed, and where the file is.
const CALLS: &str = "LARDER_ALLOCATION_CALLS";
const FILE: &str = "LARDER_ALLOCATION_FILE";

fn rows(from: i64, to: i64) -> Vec<Term> {
    (from..to)
        .map(|n| {
            let long = Term::binary(&[n as u8; 100]);
            term!({(n), (n % 7), "text", (long), [a, 1.5], #{k => (n)}})
        })
        .collect()
}

fn save(table: &Table, path: &Path) -> Result<(), Error> {
    let options = SaveOptions {
        sync: false,
        node: NodeName::NONE,
        extra: Vec::new(),
    };
    let table = table.engine_table();
    let mut job = SaveJob::begin(table, table.owner(), path, options)?;
    while job.step(&mut Budget::slice())? == Step::More {}
    Ok(())
}

/// A bit of everything that takes memory.
fn script(path: &Path) -> Result<(), Error> {
    let larder = Larder::new();
    let tables = [
        larder.table("set").set().create()?,
        larder.table("ordered").ordered_set().create()?,
        larder.table("bag").bag().compressed().create()?,
        larder
            .table("avl")
            .ordered_set()
            .structure("avl")
            .create()?,
    ];
    for table in &tables {
        for row in rows(0, 60) {
            table.insert(&row)?;
        }
        table.insert_all(&rows(40, 200))?;
        table.lookup(&term!(7))?;
        table.select("[{{'$1','$2','_','_','_','_'},[{'>','$1',10}],[{{'$2','$1'}}]}]")?;
        table.select_delete("[{{'$1',3,'_','_','_','_'},[],[true]}]")?;
        table.take(&term!(8))?;
    }
    tables[0].update(&term!(9), 3, &term!(changed))?;
    tables[1].add(&term!(9), 2, 1)?;
    save(&tables[0], path)?;
    let options = LoadOptions {
        verify: true,
        node: NodeName::NONE,
        legacy_zero: false,
        new_atoms: 100,
    };
    let mut job = LoadJob::begin(larder.engine(), larder.owner(), path, options)?;
    while job.step(&mut Budget::slice())? == Step::More {}
    tables.iter().try_for_each(|table| table.drop_table())
}

/// The child's part: not a test of its own, it does nothing unless it is told to.
#[test]
fn child() {
    let (Ok(calls), Ok(file)) = (std::env::var(CALLS), std::env::var(FILE)) else {
        return;
    };
    let calls: i64 = calls.parse().unwrap();
    LEFT.store(calls, Ordering::Relaxed);
    let done = script(Path::new(&file));
    let left = LEFT.swap(i64::MAX, Ordering::Relaxed);
    done.unwrap();
    println!("calls used: {}", calls - left);
}

/// Runs the script with so many calls that succeed; gives how many it used if it came to its end.
fn run(calls: i64, file: &Path) -> Option<i64> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture", "--test-threads=1"])
        .env(CALLS, calls.to_string())
        .env(FILE, file)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if start.elapsed() > Duration::from_secs(60) {
            let _ = child.kill();
            panic!("without memory after {calls} calls it waits for ever");
        }
        std::thread::sleep(Duration::from_micros(500));
    }
    let output = child.wait_with_output().unwrap();
    if output.status.success() {
        let text = String::from_utf8_lossy(&output.stdout);
        let used = text
            .lines()
            .find_map(|line| line.split("calls used: ").nth(1));
        return Some(used.unwrap().trim().parse().unwrap());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("memory allocation of") && aborted(output.status),
        "after {calls} calls: {} {said}",
        output.status
    );
    None
}

#[cfg(unix)]
fn aborted(status: std::process::ExitStatus) -> bool {
    use std::os::unix::process::ExitStatusExt;
    const SIGABRT: i32 = 6;
    status.signal() == Some(SIGABRT)
}

#[cfg(not(unix))]
fn aborted(status: std::process::ExitStatus) -> bool {
    !status.success()
}

/// How many rows the file has.
fn loaded(path: &Path) -> usize {
    let larder = Larder::new();
    let options = LoadOptions {
        verify: true,
        node: NodeName::NONE,
        legacy_zero: false,
        new_atoms: 100,
    };
    let mut job = LoadJob::begin(larder.engine(), larder.owner(), path, options).unwrap();
    while job.step(&mut Budget::slice()).unwrap() == Step::More {}
    job.table().size()
}

#[test]
fn it_fails_at_every_call_with_a_message_and_whole_files() {
    let folder = tempfile::tempdir().unwrap();
    let file: PathBuf = folder.path().join("table");
    let larder = Larder::new();
    let old = larder.table("old").set().create().unwrap();
    old.insert_all(&rows(0, 5)).unwrap();
    save(&old, &file).unwrap();
    let all = run(i64::MAX / 2, &file).expect("the script runs where there is memory");
    let new = loaded(&file);
    assert!(all > 500 && new > 100);
    let soak: i64 = std::env::var("LARDER_SOAK").map_or(1, |text| text.parse().unwrap());
    let tried = (40 * soak).min(all);
    let mut ended = 0;
    for i in 0..tried {
        // Other n each time the number of calls is another.
        let n = i * all / tried + i % (all / tried).max(1);
        save(&old, &file).unwrap();
        ended += i64::from(run(n, &file).is_none());
        let found = loaded(&file);
        assert!(
            [5, new].contains(&found),
            "after {n} calls the file has {found} rows"
        );
    }
    println!("{ended} of {tried} runs ended without memory; the script makes {all} calls");
    assert!(ended * 10 > tried * 9);
}
