//! `larder-bench report`: from a folder of results to a page, and from a folder without any to an
//! error.

use std::path::Path;
use std::process::{Command, Output};

fn report(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_larder-bench"))
        .arg("report")
        .args(arguments)
        .output()
        .expect("the program starts")
}

#[test]
fn a_folder_of_results_becomes_a_page() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("report-of-make-bench");
    std::fs::create_dir_all(&folder).expect("a folder can be made");
    let published = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../results/latest/bench.csv"
    );
    std::fs::copy(published, folder.join("bench.csv")).expect("it is in the tree");
    let (dir, page) = (folder.display().to_string(), folder.join("page.html"));
    let output = report(&[
        &dir,
        "--against",
        &dir,
        "--out",
        &page.display().to_string(),
    ]);
    assert!(output.status.success(), "{output:?}");
    let text = std::fs::read_to_string(&page).expect("a page");
    assert!(text.contains("Time of an operation, 65.5 k rows"));
    assert!(text.contains("Beside the other run"));
    assert!(folder.join("page-plots/make-bench-ns-65536.svg").is_file());
}

#[test]
fn a_folder_without_results_is_an_error() {
    let output = report(&[concat!(env!("CARGO_MANIFEST_DIR"), "/src")]);
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("has no study's result"), "{said}");
}
