//! A study's part of the page: its source, the machine, its plots and their tables.

use crate::report::chart::{Chart, Series, Source};
use crate::report::{number, svg, tables};
use crate::result::Study;
use crate::stats::distinct;
use maud::{html, Markup};
use std::collections::BTreeMap;

/// The most texts about what was not measured that are seen at once.
const FEW: usize = 4;

/// The part of the page about one study.
pub fn section(study: &Study, charts: &[Chart]) -> Markup {
    html! {
        section id=(anchor(study)) {
            h2 { (study.title) }
            p.source { "After: " (study.source) "." }
            (about(study))
            @for chart in charts.iter().filter(|chart| chart.study == study.study) { (plot(study, chart)) }
        }
    }
}

/// The id of a study's part.
pub fn anchor(study: &Study) -> String {
    format!("study-{}", crate::report::chart::file_name(&study.study))
}

fn about(study: &Study) -> Markup {
    let seconds = format!("{} s", number::figure(study.seconds));
    let (commit, started) = (&study.origin.commit, &study.origin.started);
    let when = [("commit", commit), ("started", started), ("took", &seconds)];
    let when = when.map(|(name, fact)| (name.to_string(), fact.clone()));
    let list = |texts: &[String]| html! { ul { @for text in texts { li { (text) } } } };
    let (few, more) = study.skipped.split_at(study.skipped.len().min(FEW));
    html! {
        @if !few.is_empty() {
            div.skipped { strong { "Not measured here" } (list(few))
                @if !more.is_empty() { details { summary { "and " (more.len()) " more" } (list(more)) } }
            }
        }
        details {
            summary { "Machine, commit and settings" }
            (facts("When and what", &when.into())) (facts("Machine", &study.origin.machine)) (facts("Settings", &study.settings))
        }
        @if !study.checks.is_empty() {
            details { summary { "Checks that it passed while it ran: " (study.checks.len()) } (list(&study.checks)) }
        }
    }
}

/// A list of named facts under a title. Leaves out facts without a text.
pub fn facts(title: &str, facts: &BTreeMap<String, String>) -> Markup {
    html! { @if !facts.is_empty() {
        h4 { (title) }
        dl.facts { @for (name, fact) in facts.iter().filter(|(_, fact)| !fact.is_empty()) { div { dt { (name) } dd { (fact) } } } }
    } }
}

fn plot(study: &Study, chart: &Chart) -> Markup {
    let off = chart.off_the_log();
    // The sources of a published series.
    let sources = |series: &str| {
        let figures = study.published.iter();
        let figures = figures.filter(|f| f.plot == chart.id_in_study && f.series == series);
        distinct(figures.map(|figure| &*figure.source)).join("; ")
    };
    let shown = |series: &Series| series.from != Source::Other;
    html! {
        figure id=(chart.plot.id) data-plot {
            h3 { a href=(format!("#{}", chart.plot.id)) { (chart.plot.title) } }
            div.controls data-controls {}
            div.canvas { (svg::inline(chart)) }
            div.legend role="group" aria-label="Series" {
                @for (i, series) in chart.series.iter().enumerate() {
                    button type="button" data-series=(i) aria-pressed=(shown(series).to_string()) {
                        svg class="plot" viewBox="-1 -7 32 14" width="32" height="14" aria-hidden="true" { (svg::key(series)) }
                        (series.label())
                    }
                }
            }
            @if !chart.plot.note.is_empty() || off > 0 {
                figcaption {
                    (chart.plot.note)
                    @if off > 0 { " " (off) " figures are zero or less: the table and the linear scale have them, the logarithmic one has not." }
                }
            }
            @if let Some(published) = tables::published(chart, &sources) { details open { summary { "Published figures beside ours" } (published) } }
            @if let Some(best) = tables::best(chart) { details { summary { "Who is best where" } (best) } }
            details { summary { "All figures" } (tables::figures(chart)) }
        }
    }
}
