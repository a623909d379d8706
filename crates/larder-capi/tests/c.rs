//! Programs in C and C++, built with the system's compiler against the header, linked with the
//! archive and with the shared object, and run.
//!
//! LARDER_C_RUNNER=COMMAND has each run by a command, such as valgrind and its options
//! (`scripts/memcheck.sh`).

mod programs;

use programs::{compile, library, root, succeeded};
use std::ffi::OsStr;
use std::process::Command;

/// Runs a program in an empty folder, which it may fill.
fn run(name: &str, ending: &str) {
    let place = tempfile::tempdir().expect("a folder");
    let library = library(ending);
    if ending == ".so" {
        // The name that the loader is asked for.
        std::os::unix::fs::symlink(&library, place.path().join("liblarder.so.0"))
            .expect("a link can be made");
    }
    let program = compile(&root().join("tests/c").join(name), &library, place.path());
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
fn misuse_is_reported() {
    run("misuse.c", ".a");
}

#[test]
fn options_of_other_versions() {
    run("options.c", ".so");
}

#[test]
fn indexes() {
    run("indexes.c", ".so");
}

#[test]
fn feeds() {
    run("feeds.c", ".so");
}

#[test]
fn operations_together_and_transactions() {
    run("together.c", ".so");
}

#[test]
fn pairs_and_ranges() {
    run("pairs.c", ".so");
}

#[test]
fn bounds() {
    run("bounds.c", ".so");
}

#[test]
fn fork_after_all_is_quiet() {
    run("fork.c", ".so");
}

#[test]
fn leaks() {
    run("leaks.c", ".so");
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
fn wrapper_for_cpp17() {
    run("wrapper.cc", ".so");
}

#[test]
fn static_objects_use_tables_when_the_program_ends() {
    run("wrapper_at_exit.cc", ".so");
}

#[test]
fn example_of_the_wrapper() {
    run("wrapper_example.cc", ".so");
}

#[test]
fn documentation_has_the_examples() {
    let page = std::fs::read_to_string(root().join("../../docs/c.md")).expect("docs/c.md");
    for (language, name) in [("c", "example.c"), ("cpp", "wrapper_example.cc")] {
        let example = std::fs::read_to_string(root().join("tests/c").join(name)).expect(name);
        assert!(
            page.contains(&format!("```{language}\n{example}```")),
            "docs/c.md has another example than tests/c/{name}"
        );
    }
}
