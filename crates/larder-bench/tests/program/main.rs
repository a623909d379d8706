//! What `larder-bench` does, from its command line, and what its report draws: one program of
//! tests, which is linked once.

mod report;
mod small;
mod stores;
mod studies;

use std::path::PathBuf;
use std::process::Command;

/// What the program has said, and how it ended.
#[derive(Debug)]
struct Ended {
    code: Option<i32>,
    out: String,
    err: String,
}

/// Runs the program to its end.
fn bench<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Ended {
    let program = env!("CARGO_BIN_EXE_larder-bench");
    let output = Command::new(program).args(arguments).output();
    let output = output.expect("the program starts");
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    Ended {
        code: output.status.code(),
        out: text(&output.stdout),
        err: text(&output.stderr),
    }
}

impl Ended {
    /// Panics with what the program has said, unless it ended well.
    fn well(self) -> Ended {
        assert_eq!(self.code, Some(0), "{}", self.err);
        self
    }

    /// Panics unless the program failed, and has said why.
    fn failed(&self, why: &str) {
        let right = self.code != Some(0) && self.err.contains(why);
        assert!(right, "not {why:?}: {}", self.err);
    }
}

/// The first of these programs, with a blank between each, that is installed.
fn installed(names: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<_> = std::env::split_paths(&path).collect();
    let in_folders = |name| folders.iter().map(move |folder| folder.join(name));
    let mut paths = names.split(' ').flat_map(in_folders);
    paths.find(|path| path.is_file())
}
