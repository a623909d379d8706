//! This run beside another: what became better, what became worse, what is noise, and what else was
//! different.

use crate::report::chart::Chart;
use crate::report::compare::{facts, pairs, Pair};
use crate::report::number::{figure, times};
use crate::report::read::Findings;
use crate::report::tables::wide;
use crate::report::verdict::Sure;
use maud::{html, Markup};

/// So many differences are seen at once; the rest is a click away.
const FIRST: usize = 20;

/// The whole part.
pub fn section(here: &Findings, there: &Findings, charts: &[Chart]) -> Markup {
    let mut all = pairs(charts);
    all.sort_by(|a, b| b.factor.ln().abs().total_cmp(&a.factor.ln().abs()));
    let (clear, rest): (Vec<_>, Vec<_>) = all.into_iter().partition(|p| p.sure == Sure::Clear);
    let better = clear.iter().filter(|pair| pair.factor > 1.0).count();
    let open = rest.iter().filter(|pair| pair.sure == Sure::OneRun).count();
    html! {
        section #versus {
            h2 { "Beside the other run" }
            p.lead { "Of " (clear.len() + rest.len()) " figures that both runs have, " strong { (better) } " are clearly better here, " strong { (clear.len() - better) }
                " clearly worse, " strong { (rest.len() - open) } " are within the noise, and " strong { (open) } " were measured once." }
            p { "The other run is " code { (there.folder.display()) } ". In each plot its series wait in the legend." }
            (different(here, there))
            @if !clear.is_empty() { (table("Clear differences, the largest first", &clear[..clear.len().min(FIRST)])) }
            @if clear.len() > FIRST { details { summary { "The other " (clear.len() - FIRST) " clear differences" } (table("Clear differences, the smaller ones", &clear[FIRST..])) } }
            @if !rest.is_empty() { details { summary { "Figures within the noise, or measured once" } (table("No clear difference, the largest first", &rest)) } }
        }
    }
}

fn table(caption: &str, pairs: &[Pair]) -> Markup {
    wide(
        caption,
        html! {
            thead { tr {
                th.text scope="col" { "plot" } th.text scope="col" { "series" } th.text scope="col" { "place" }
                th scope="col" { "here" } th scope="col" { "other run" } th scope="col" { "× as good" } th.text scope="col" { "difference" }
            } }
            tbody { @for pair in pairs { tr {
                th scope="row" { a href=(format!("#{}", pair.chart.id)) { (pair.chart.title) } }
                td.text { (pair.series) } td.text { (pair.chart.place(pair.x)) }
                td { (figure(pair.figures.0)) } td { (figure(pair.figures.1)) } td { (times(pair.factor)) } td.text { (word(pair)) }
            } } }
        },
    )
}

fn word(pair: &Pair) -> &'static str {
    match pair.sure {
        Sure::Clear if pair.factor > 1.0 => "better",
        Sure::Clear => "worse",
        other => other.text(),
    }
}

fn different(here: &Findings, there: &Findings) -> Markup {
    let facts = facts(here, there);
    let missing: Vec<&str> = here
        .studies
        .iter()
        .map(|study| study.study.as_str())
        .filter(|name| there.studies.iter().all(|other| other.study != *name))
        .collect();
    html! {
        @if !missing.is_empty() { p { "Not in the other run: " (missing.join(", ")) "." } }
        @for (study, facts) in facts.iter().filter(|(_, facts)| !facts.is_empty()) {
            details { summary { (study) ": " (facts.len()) " facts differ" } (wide("What differs", html! {
                thead { tr { th.text scope="col" { "fact" } th.text scope="col" { "here" } th.text scope="col" { "other run" } } }
                tbody { @for (name, ours, theirs) in facts { tr { th scope="row" { (name) } td.text { (ours) } td.text { (theirs) } } } }
            })) }
        }
    }
}
