//! What is in the page and in the files, without a browser.

use super::made_up;
use larder_bench::report::{write, Written};
use std::path::{Path, PathBuf};

/// A report of made-up results, in a folder of this name.
fn made_up_report(name: &str) -> (PathBuf, Written, String) {
    let folder = made_up::folder(name);
    made_up::write_all(&folder, 1.0);
    let (written, page) = report(&folder, None);
    (folder, written, page)
}

fn report(folder: &Path, against: Option<&Path>) -> (Written, String) {
    let written = write(folder, against, &folder.join("report.html")).expect("a report");
    let page = std::fs::read_to_string(&written.page).expect("it was written");
    (written, page)
}

#[test]
fn everything_is_in_one_page_that_fetches_nothing() {
    let (_, written, page) = made_up_report("one-page");
    assert_eq!(written.studies, 3);
    for needle in ["src=", "@import", "url(", "http://", "https://"] {
        let found = page.replace("http://www.w3.org/2000/svg", "");
        assert!(!found.contains(needle), "the page has {needle}");
    }
    let plots = "ets-2003-random-lookup, ets-2013-updates, make-bench-ns-65536";
    for plot in plots.split(", ") {
        assert!(page.contains(&format!("<figure id=\"{plot}\"")), "{plot}");
    }
    assert_eq!(page.matches("<figure").count(), 3 + 2 + 2 + 1);
}

#[test]
fn all_text_is_escaped() {
    let (_, written, page) = made_up_report("escaped");
    assert!(!page.contains("<b>") && !page.contains("</script><script>document"));
    assert!(page.contains("&lt;/script&gt;&lt;script&gt;document"));
    for plot in &written.plots {
        let text = std::fs::read_to_string(plot).expect("a plot");
        let whole = text.starts_with("<svg") && text.ends_with("</svg>");
        assert!(whole && !text.contains("<b>"), "{plot:?}");
    }
}

#[test]
fn every_plot_is_a_file_too() {
    let (folder, written, _) = made_up_report("files");
    assert_eq!(written.plots.len(), 8);
    let plots = folder.join("report-plots");
    let plot = |name| std::fs::read_to_string(plots.join(name)).expect("a plot");
    let lookup = plot("ets-2003-random-lookup.svg");
    // Seven series of six points, three published figures; a marker each, and one in each entry of
    // the legend.
    assert_eq!(lookup.matches("class=\"mark\"").count(), 7 * 6 + 3 + 10);
    assert!(lookup.contains("judyeh (published)"));
    // A hundred places are too many for markers.
    let growth = plot("ets-2003-growth.svg");
    assert_eq!(growth.matches("class=\"area\"").count(), 7);
}

#[test]
fn the_summary_tells_wins_losses_and_noise() {
    let (.., page) = made_up_report("summary");
    // Made so: the default wins at all sizes, with spreads apart from the second at the larger
    // ones; it loses where a fifth of the lookups are gone.
    assert!(page.contains("default: 6 of 6"), "random lookup");
    let updates = "better at 0, open at 0, worse at 3";
    assert!(page.contains(updates), "updates");
    assert!(page.contains("within the noise"));
}

#[test]
fn two_runs_are_compared() {
    let (new, (old, ..)) = (made_up::folder("new"), made_up_report("old"));
    made_up::write_all(&new, 2.0);
    let (_, page) = report(&new, Some(&old));
    // The default became twice as slow in 6 + 7 + 100 + 3 + 3 figures; six other types have the
    // others.
    let said = |worse: usize| {
        format!(
            "<strong>0</strong> are clearly better here, <strong>{worse}</strong> clearly worse"
        )
    };
    assert!(page.contains(&said(119)), "{}", part(&page));
    let (_, same) = report(&old, Some(&old));
    assert!(same.contains(&said(0)));
}

fn part(page: &str) -> &str {
    let at = page.find("id=\"versus\"").unwrap_or(0);
    &page[at..(at + 600).min(page.len())]
}

#[test]
fn what_can_not_be_read_is_an_error() {
    let folder = made_up::folder("errors");
    let out = folder.join("report.html");
    let fails = |folder: &Path, why: &str| {
        let error = write(folder, None, &out).expect_err(why).to_string();
        assert!(error.contains(why), "{error}");
    };
    fails(&folder, "has no study's result");
    for text in ["{\"study\": 7}", "{"] {
        std::fs::write(folder.join("bad.json"), text).expect("written");
        fails(&folder, "bad.json is no study's result");
    }
    std::fs::remove_file(folder.join("bad.json")).expect("ours");
    made_up::write_all(&folder, 1.0);
    std::fs::copy(folder.join("ets-2003.json"), folder.join("again.json")).expect("copied");
    fails(&folder, "another file is of the study ets-2003");
    fails(&folder.join("none"), "No such file");
    assert!(!out.exists());
}
