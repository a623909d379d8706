//! `larder-bench report`: from a folder of results to a page, and from a folder without any to an
//! error. The tables of the project's pages are those of its results.

mod browser;
mod made_up;
mod page;

use super::bench;
use std::path::Path;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

#[test]
fn a_folder_of_results_becomes_a_page() {
    let folder = made_up::folder("report-of-make-bench");
    let published = Path::new(ROOT).join("results/latest/bench.csv");
    std::fs::copy(published, folder.join("bench.csv")).expect("it is in the tree");
    let (dir, page) = (folder.display().to_string(), folder.join("page.html"));
    let out = page.display().to_string();
    bench(["report", &dir, "--against", &dir, "--out", &out]).well();
    let text = std::fs::read_to_string(&page).expect("a page");
    assert!(text.contains("Time of an operation, 65.5 k rows"));
    assert!(text.contains("Beside the other run"));
    assert!(folder.join("page-plots/make-bench-ns-65536.svg").is_file());
}

#[test]
fn a_folder_without_results_is_an_error() {
    let sources = concat!(env!("CARGO_MANIFEST_DIR"), "/src");
    bench(["report", sources]).failed("has no study's result");
}

#[test]
fn the_tables_of_the_pages_are_those_of_the_latest_results() {
    let root = Path::new(ROOT);
    for name in ["README.md", "docs/performance.md"] {
        let page = root.join(name);
        let text = std::fs::read_to_string(&page).expect("the page is there");
        let filled = larder_bench::report::fill(&page, &root.join("results/latest"));
        assert!(text.contains("<!-- figures "), "{name} has no tables");
        let why = "has other figures than results/latest: run make figures";
        assert!(text == filled.expect("tables"), "{name} {why}");
    }
}
