//! Programs in C and C++, built with the system's compiler against the header, linked with the
//! archive and with the shared object, and run.
//!
//! LARDER_C_RUNNER=COMMAND has each run by a command, such as valgrind and its options
//! (`scripts/memcheck.sh`).

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Where cargo puts what it builds for this test.
fn built() -> PathBuf {
    let me = std::env::current_exe().expect("a test has a file");
    me.parent().expect("it is in a folder").to_owned()
}

/// The newest library with this ending: cargo may have left older ones.
fn library(ending: &str) -> PathBuf {
    let files = std::fs::read_dir(built()).expect("the folder can be read");
    let fitting = files.filter_map(Result::ok).filter(|file| {
        let name = file.file_name();
        let name = name.to_string_lossy();
        name.starts_with("liblarder_c") && name.ends_with(ending)
    });
    let newest = fitting.max_by_key(|file| file.metadata().and_then(|m| m.modified()).ok());
    newest.expect("cargo has built the library").path()
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn succeeded(what: &str, output: &Output) {
    assert!(
        output.status.success(),
        "{what}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Compiles `tests/c/NAME` and links it with a library.
fn compile(name: &str, library: &Path, into: &Path) -> PathBuf {
    let program = into.join(name.replace('.', "_"));
    let (compiler, standard) = match name.ends_with(".cc") {
        true => ("c++", "-std=c++11"),
        false => ("cc", "-std=c11"),
    };
    let output = Command::new(compiler)
        .args([
            standard,
            "-g",
            "-O1",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-pedantic",
            "-pthread",
        ])
        .arg("-I")
        .arg(root().join("include"))
        .arg(root().join("tests/c").join(name))
        .arg(library)
        .args(["-ldl", "-lm", "-o"])
        .arg(&program)
        .output()
        .expect("there is a compiler for C and C++ (apt-get install gcc g++)");
    succeeded(&format!("compiling {name}"), &output);
    program
}

/// Runs a program in an empty folder, which it may fill.
fn run(name: &str, ending: &str) {
    let place = tempfile::tempdir().expect("a folder");
    let library = library(ending);
    if ending == ".so" {
        // The name that the loader is asked for.
        std::os::unix::fs::symlink(&library, place.path().join("liblarder.so.0"))
            .expect("a link can be made");
    }
    let program = compile(name, &library, place.path());
    let runner = std::env::var("LARDER_C_RUNNER").unwrap_or_default();
    let mut words = runner.split_whitespace();
    let mut command = Command::new(words.next().map_or(program.as_os_str(), OsStr::new));
    if !runner.is_empty() {
        command.args(words).arg(&program);
    }
    let output = command
        .current_dir(place.path())
        .env("LD_LIBRARY_PATH", place.path())
        .output()
        .expect("the program starts");
    succeeded(name, &output);
    if !runner.is_empty() {
        println!(
            "{name} by {runner}\n{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.ends_with("ok\n"), "{name} ended early: {said}");
}

#[test]
fn example_with_the_archive() {
    run("example.c", ".a");
}

#[test]
fn example_with_the_shared_object() {
    run("example.c", ".so");
}

#[test]
fn operations() {
    run("operations.c", ".a");
}

#[test]
fn terms() {
    run("terms.c", ".a");
}

#[test]
fn misuse_is_told() {
    run("misuse.c", ".a");
}

#[test]
fn options_of_other_versions() {
    run("options.c", ".a");
}

#[test]
fn indexes() {
    run("indexes.c", ".a");
}

#[test]
fn feeds() {
    run("feeds.c", ".a");
}

#[test]
fn operations_together_and_transactions() {
    run("together.c", ".a");
}

#[test]
fn pairs_and_ranges() {
    run("pairs.c", ".a");
}

#[test]
fn threads() {
    run("threads.c", ".so");
}

/// A program that watches it, or a sanitizer, has an allocator of its own.
#[test]
#[cfg(all(target_os = "linux", not(larder_sanitize)))]
fn memory_comes_back() {
    run("memory.c", ".so");
}

#[test]
fn header_is_for_cpp_too() {
    run("example.cc", ".so");
}

#[test]
fn documentation_has_the_example() {
    let page = std::fs::read_to_string(root().join("../../docs/c.md")).expect("docs/c.md");
    let example = std::fs::read_to_string(root().join("tests/c/example.c")).expect("example.c");
    assert!(
        page.contains(&format!("```c\n{example}```")),
        "docs/c.md has another example than tests/c/example.c"
    );
}
