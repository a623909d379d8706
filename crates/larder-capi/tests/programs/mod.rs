//! What the suites share: the library that cargo has built, and programs compiled against it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Where cargo puts what it builds for this test.
fn built() -> PathBuf {
    let me = std::env::current_exe().expect("a test has a file");
    me.parent().expect("it is in a folder").to_owned()
}

/// The newest library with this ending: cargo may have left older ones.
pub fn library(ending: &str) -> PathBuf {
    let files = std::fs::read_dir(built()).expect("the folder can be read");
    let fitting = files.filter_map(Result::ok).filter(|file| {
        let name = file.file_name();
        let name = name.to_string_lossy();
        name.starts_with("liblarder_c") && name.ends_with(ending)
    });
    let newest = fitting.max_by_key(|file| file.metadata().and_then(|m| m.modified()).ok());
    newest.expect("cargo has built the library").path()
}

pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

pub fn succeeded(what: &str, output: &Output) {
    assert!(
        output.status.success(),
        "{what}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Compiles a source file and links it with a library.
pub fn compile(source: &Path, library: &Path, into: &Path) -> PathBuf {
    let name = source.file_name().expect("a file has a name");
    let name = name.to_str().expect("names are ASCII");
    let program = into.join(name.replace('.', "_"));
    // The wrapper is C++17, and is included by programs that want more warnings than these.
    let (compiler, options) = match name {
        _ if name.starts_with("wrapper") => {
            ("c++", &["-std=c++17", "-Wshadow", "-Wconversion"][..])
        }
        _ if name.ends_with(".cc") => ("c++", &["-std=c++11"][..]),
        _ => ("cc", &["-std=c11"][..]),
    };
    let output = Command::new(compiler)
        .args(options)
        .args([
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
        .arg(source)
        .arg(library)
        .args(["-ldl", "-lm", "-o"])
        .arg(&program)
        .output()
        .expect("there is a compiler for C and C++ (apt-get install gcc g++)");
    succeeded(&format!("compiling {name}"), &output);
    program
}
