//! The page, one file that needs no other.

use crate::report::chart::Chart;
use crate::report::read::Findings;
use crate::report::style::{DASHES, MARKERS};
use crate::report::{study, summary, svg, tree, versus};
use crate::result::Study;
use maud::{html, Markup, PreEscaped, DOCTYPE};

const SHEET: &str = include_str!("../../assets/page.css");
const SCRIPTS: [&str; 3] = [
    include_str!("../../assets/plots.js"),
    include_str!("../../assets/tree.js"),
    include_str!("../../assets/page.js"),
];

/// The whole page. `there` is the run to compare with.
pub fn page(here: &Findings, there: Option<&Findings>, charts: &[Chart]) -> String {
    let title = "Larder: the studies, re-run";
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                style { (PreEscaped(svg::SHEET)) (PreEscaped(SHEET)) }
            }
            body {
                a.skip href="#summary" { "To the summary" }
                header { h1 { (title) } (origin(here)) (introduction()) (contents(here, there, charts)) }
                main {
                    (summary::summary(here, charts))
                    @if let Some(there) = there { (versus::section(here, there, charts)) }
                    @if let Some(run) = &here.wide { (run.section()) }
                    @for one in &here.studies { (study::section(one, charts)) }
                    @if let Some(tree) = &here.tree { (tree::section(tree)) }
                }
                footer { p { "Drawn by " code { "larder-bench report" } ". Bold lines and filled markers are Larder's default. Keys: Tab to a plot, arrows to read its figures, Escape to stop." } }
                (data("plots-data", &charts))
                (data("style-data", &serde_json::json!({"dashes": DASHES, "markers": MARKERS})))
                @if let Some(tree) = &here.tree { (data("tree-data", &tree::data(tree))) }
                @for script in SCRIPTS { script { (PreEscaped(script)) } }
            }
        }
    }
    .into_string()
}

/// The machines and the commits of the studies, without duplicates.
fn origin(here: &Findings) -> Markup {
    let facts = |fact: fn(&Study) -> Option<&String>| {
        let mut all: Vec<&str> = here.studies.iter().filter_map(fact).map(|s| &**s).collect();
        all.sort();
        all.dedup();
        all.join(", ")
    };
    let commits = facts(|study| Some(&study.origin.commit).filter(|c| !c.is_empty()));
    let machines = facts(|study| study.origin.machine.get("processor"));
    let cores = facts(|study| study.origin.machine.get("cores"));
    html! { p.where {
        @if !machines.is_empty() { (machines) } @if !cores.is_empty() { ", " (cores) " cores" } @if !commits.is_empty() { " · commit " code { (commits) } }
    } }
}

/// For readers who have never seen the page.
fn introduction() -> Markup {
    html! {
        p { "Larder is a library of in-memory tables, made to take the place of ETS, the table store of Erlang ("
            code { "ets" } "). Here it does the work of published studies beside " code { "ets" }
            ", the data structures of those studies, and other stores. Every answer was checked while it was measured; where Larder loses, the page says so." }
        p { "Bold lines and filled markers are Larder's own default; thin lines and hollow markers are what it is compared with. Each axis says which way is better. "
            "A marker is the median of the runs, the bar through it goes from the least run to the most. Click a name to hide it, with Shift to see it alone." }
    }
}

fn contents(here: &Findings, there: Option<&Findings>, charts: &[Chart]) -> Markup {
    html! {
        nav aria-label="Contents" {
            ul {
                li { a href="#summary" { "Who wins where" } }
                @if there.is_some() { li { a href="#versus" { "Beside the other run" } } }
                @if here.wide.is_some() { li { a href="#wide" { "Every function, every kind of row" } } }
                @for one in &here.studies {
                    li { a href=(format!("#{}", study::anchor(one))) { (one.title) } " "
                        span.none { (charts.iter().filter(|chart| chart.study == one.study).count()) " plots" } }
                }
                @if here.tree.is_some() { li { a href="#catree" { "A tree that adapts" } } }
            }
        }
    }
}

/// Data for the scripts. Escaping every `<` keeps texts from ending the element.
fn data(id: &str, value: &impl serde::Serialize) -> Markup {
    let text = serde_json::to_string(value).expect("plain data is always JSON");
    html! { script type="application/json" id=(id) { (PreEscaped(text.replace('<', "\\u003c"))) } }
}
