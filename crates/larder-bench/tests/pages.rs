//! The tables of the project's pages are those of its results.

#![forbid(unsafe_code)]

use std::path::Path;

#[test]
fn the_tables_of_the_pages_are_those_of_the_latest_results() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for name in ["README.md", "docs/performance.md"] {
        let page = root.join(name);
        let text = std::fs::read_to_string(&page).expect("the page is there");
        let filled =
            larder_bench::report::fill(&page, &root.join("results/latest")).expect("tables");
        assert!(text.contains("<!-- figures "), "{name} has no tables");
        assert!(
            text == filled,
            "run make figures: {name} has other figures than results/latest"
        );
    }
}
