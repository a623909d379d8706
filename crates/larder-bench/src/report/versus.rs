//! This run compared with another one: what became better, what became worse, what is within the
//! noise, and what else was different.

use crate::report::chart::{Chart, From, Series};
use crate::report::number::{figure, times};
use crate::report::read::Findings;
use crate::report::tables::table;
use crate::report::verdict::{factor, sure, Sure};
use crate::result::Study;
use crate::stats::distinct;
use maud::{html, Markup};

/// So many differences are seen at once; the rest is a click away.
const FIRST: usize = 20;

/// The whole part.
pub fn section(here: &Findings, there: &Findings, charts: &[Chart]) -> Markup {
    let mut all = pairs(charts);
    // The largest differences first, whichever way they go. A half and a double are equally large.
    all.sort_by(|a, b| b.factor.ln().abs().total_cmp(&a.factor.ln().abs()));
    // Only clear differences count as better or worse. The others follow in a closed part of the
    // page.
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
            @if !clear.is_empty() { (of_pairs("Clear differences, the largest first", &clear[..clear.len().min(FIRST)])) }
            @if clear.len() > FIRST { details { summary { "The other " (clear.len() - FIRST) " clear differences" } (of_pairs("Clear differences, the smaller ones", &clear[FIRST..])) } }
            @if !rest.is_empty() { details { summary { "Figures within the noise, or measured once" } (of_pairs("No clear difference, the largest first", &rest)) } }
        }
    }
}

fn of_pairs(caption: &str, pairs: &[Pair]) -> Markup {
    let row = |pair: &Pair| {
        html! { tr {
            th scope="row" { a href=(format!("#{}", pair.chart.plot.id)) { (pair.chart.plot.title) } }
            td.text { (pair.series) } td.text { (pair.chart.place(pair.x)) }
            td { (figure(pair.figures.0)) } td { (figure(pair.figures.1)) } td { (times(pair.factor)) } td.text { (word(pair)) }
        } }
    };
    let headings = "plot:, series:, place:, here, other run, × as good, difference:";
    table(caption, headings.split(", "), pairs.iter().map(row))
}

fn word(pair: &Pair) -> &'static str {
    match pair.sure {
        Sure::Clear if pair.factor > 1.0 => "better",
        Sure::Clear => "worse",
        other => other.text(),
    }
}

fn different(here: &Findings, there: &Findings) -> Markup {
    let other = |study: &Study| there.studies.iter().find(|s| s.study == study.study);
    let missing = here.studies.iter().filter(|study| other(study).is_none());
    let missing: Vec<&str> = missing.map(|study| study.study.as_str()).collect();
    html! {
        @if !missing.is_empty() { p { "Not in the other run: " (missing.join(", ")) "." } }
        @for (study, other) in here.studies.iter().filter_map(|study| Some((study, other(study)?))) {
            @let facts = facts(study, other);
            @if !facts.is_empty() { details { summary { (study.study) ": " (facts.len()) " facts differ" } (table("What differs", ["fact:", "here:", "other run:"], facts.iter().map(fact_row))) } }
        }
    }
}

/// The same figure in both runs.
#[derive(Debug)]
struct Pair<'a> {
    /// The plot that it is in.
    chart: &'a Chart,
    /// Its series.
    series: &'a str,
    /// Its place.
    x: f64,
    /// What this run measured, and the other.
    figures: (f64, f64),
    /// How many times as good this run is as the other.
    factor: f64,
    /// How sure that is.
    sure: Sure,
}

/// Every figure that both runs have.
fn pairs(charts: &[Chart]) -> Vec<Pair<'_>> {
    let mut all = Vec::new();
    for chart in charts {
        for here in chart.measured() {
            // The same series of the other run, in the same chart.
            let there = |one: &&Series| one.from == From::Other && one.name == here.name;
            let Some(there) = chart.series.iter().find(there) else {
                continue;
            };
            for spot in &here.points {
                // Only places that both have, and differences that can be computed.
                all.extend(there.at(spot.x).and_then(|other| {
                    let better = chart.better?;
                    Some(Pair {
                        chart,
                        series: &here.name,
                        x: spot.x,
                        figures: (spot.y, other.y),
                        factor: factor(better, spot.y, other.y)?,
                        sure: sure(spot, other),
                    })
                }));
            }
        }
    }
    all
}

/// A fact that is not the same in both runs: its name, here, there.
type Fact<'a> = [&'a str; 3];

fn fact_row([name, ours, theirs]: &Fact<'_>) -> Markup {
    html! { tr { th scope="row" { (name) } td.text { (ours) } td.text { (theirs) } } }
}

/// What else is different between two runs of a study: a difference in the machine explains one in
/// the figures.
fn facts<'a>(ours: &'a Study, theirs: &'a Study) -> Vec<Fact<'a>> {
    let all = |of: &'a Study| {
        let own = [
            ("commit", &*of.origin.commit),
            ("started", &*of.origin.started),
        ];
        let named = of.origin.machine.iter().chain(&of.settings);
        let named = named.map(|(name, fact)| (name.as_str(), fact.as_str()));
        own.into_iter().chain(named).collect::<Vec<_>>()
    };
    let (ours, theirs) = (all(ours), all(theirs));
    // Facts that only one of the two has count as different, too.
    let names = distinct(ours.iter().chain(&theirs).map(|(name, _)| *name));
    let fact = |of: &[(&'a str, &'a str)], name| {
        let found = of.iter().find(|(known, _)| *known == name);
        found.map_or("–", |(_, fact)| *fact)
    };
    let pairs = names
        .into_iter()
        .map(|name| [name, fact(&ours, name), fact(&theirs, name)]);
    pairs.filter(|[_, ours, theirs]| ours != theirs).collect()
}
