//! This run beside another one: what became better, what became worse, what is within the noise,
//! and what else was different.

use crate::report::chart::{Chart, Source};
use crate::report::number::{figure, times};
use crate::report::read::Findings;
use crate::report::tables::table;
use crate::report::verdict::{Certainty, Pair};
use crate::result::Study;
use crate::stats::distinct;
use maud::{html, Markup};

/// The most differences that are seen at once.
const FIRST: usize = 20;

/// Every figure that both runs have, with its chart. The figure of this run is the first.
fn pairs(charts: &[Chart]) -> Vec<(&Chart, Pair<'_>)> {
    let mut all = Vec::new();
    for chart in charts {
        for series in chart.of(Source::Run) {
            let other = chart
                .of(Source::Other)
                .find(|other| other.name == series.name);
            all.extend(series.points.iter().filter_map(|spot| {
                let other = (other?, other?.at(spot.x)?);
                Some((chart, Pair::of(chart, (series, spot), other)?))
            }));
        }
    }
    all.retain(|(_, pair)| pair.factor.is_some());
    all
}

/// How many times as good a figure of this run is.
fn factor((_, pair): &(&Chart, Pair)) -> f64 {
    pair.factor.unwrap_or(1.0)
}

/// The part of the page that compares this run with another one.
pub fn section(here: &Findings, there: &Findings, charts: &[Chart]) -> Markup {
    let mut all = pairs(charts);
    // The largest differences come first. A half and a double are equally large.
    all.sort_by(|a, b| factor(b).ln().abs().total_cmp(&factor(a).ln().abs()));
    let is_clear = |(_, pair): &(&Chart, Pair)| pair.certainty == Certainty::Clear;
    let (clear, rest): (Vec<_>, Vec<_>) = all.into_iter().partition(is_clear);
    let better = clear.iter().filter(|pair| factor(pair) > 1.0).count();
    let once = |(_, pair): &&(&Chart, Pair)| pair.certainty == Certainty::OneRun;
    let once = rest.iter().filter(once).count();
    let (first, more) = clear.split_at(clear.len().min(FIRST));
    html! {
        section #versus {
            h2 { "Beside the other run" }
            p.lead { "Of " (clear.len() + rest.len()) " figures that both runs have, " strong { (better) } " are clearly better here, " strong { (clear.len() - better) }
                " clearly worse, " strong { (rest.len() - once) } " are within the noise, and " strong { (once) } " were measured once." }
            p { "The other run is " code { (there.folder.display()) } ". In each plot its series wait in the legend." }
            (differences(here, there))
            @if !first.is_empty() { (list("Clear differences, the largest first", first)) }
            @if !more.is_empty() { details { summary { "The other " (more.len()) " clear differences" } (list("Clear differences, the smaller ones", more)) } }
            @if !rest.is_empty() { details { summary { "Figures within the noise, or measured once" } (list("No clear difference, the largest first", &rest)) } }
        }
    }
}

fn list(caption: &str, pairs: &[(&Chart, Pair)]) -> Markup {
    let row = |both: &(&Chart, Pair)| {
        let ((chart, pair), factor) = (both, factor(both));
        let verdict = match pair.certainty {
            Certainty::Clear if factor > 1.0 => "better",
            Certainty::Clear => "worse",
            other => other.text(),
        };
        let ((series, here), (_, there)) = (pair.first, pair.second);
        html! { tr {
            th scope="row" { a href=(format!("#{}", chart.plot.id)) { (chart.plot.title) } }
            td.text { (series.name) } td.text { (chart.place(here.x)) }
            td { (figure(here.y)) } td { (figure(there.y)) } td { (times(factor)) } td.text { (verdict) }
        } }
    };
    let headings = "plot:, series:, place:, here, other run, × as good, difference:";
    table(caption, headings.split(", "), pairs.iter().map(row))
}

/// What else is different. A difference in the machine may explain one in the figures.
fn differences(here: &Findings, there: &Findings) -> Markup {
    let (mut missing, mut pairs) = (Vec::new(), Vec::new());
    for study in &here.studies {
        match there.study(&study.study) {
            Some(other) => pairs.push((study, different_facts(study, other))),
            None => missing.push(&*study.study),
        }
    }
    let row = |[name, ours, theirs]: &[&str; 3]| {
        html! { tr { th scope="row" { (name) } td.text { (ours) } td.text { (theirs) } } }
    };
    html! {
        @if !missing.is_empty() { p { "Not in the other run: " (missing.join(", ")) "." } }
        @for (study, facts) in pairs.iter().filter(|(_, facts)| !facts.is_empty()) {
            details { summary { (study.study) ": " (facts.len()) " facts differ" } (table("What differs", ["fact:", "here:", "other run:"], facts.iter().map(row))) }
        }
    }
}

/// The facts that are not the same in both runs: name, here, there.
fn different_facts<'a>(ours: &'a Study, theirs: &'a Study) -> Vec<[&'a str; 3]> {
    let all = |study: &'a Study| -> Vec<(&'a str, &'a str)> {
        let (commit, started) = (&*study.origin.commit, &*study.origin.started);
        let named = study.origin.machine.iter().chain(&study.settings);
        let named = named.map(|(name, fact)| (&**name, &**fact));
        let first = [("commit", commit), ("started", started)];
        first.into_iter().chain(named).collect()
    };
    let (ours, theirs) = (all(ours), all(theirs));
    let fact = |of: &[(&'a str, &'a str)], name| {
        let found = of.iter().find(|(known, _)| *known == name);
        found.map_or("–", |(_, fact)| *fact)
    };
    let names = distinct(ours.iter().chain(&theirs).map(|(name, _)| *name)).into_iter();
    let facts = names.map(|name| [name, fact(&ours, name), fact(&theirs, name)]);
    facts.filter(|[_, ours, theirs]| ours != theirs).collect()
}
