//! A study's part of the page: its source, the machine, its plots and their tables.

use crate::report::chart::{Chart, From, Series};
use crate::report::{number, style, svg, tables};
use crate::result::Study;
use maud::{html, Markup};
use std::collections::BTreeMap;

/// The whole part.
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

/// Where the study is in the page.
pub fn anchor(study: &Study) -> String {
    format!("study-{}", crate::report::chart::file_name(&study.study))
}

fn about(study: &Study) -> Markup {
    let took = format!("{} s", number::figure(study.seconds));
    let when = [
        ("commit", study.origin.commit.clone()),
        ("started", study.origin.started.clone()),
        ("took", took),
    ];
    let when = when.map(|(name, fact)| (name.to_string(), fact)).into();
    html! {
        @if !study.skipped.is_empty() {
            div.skipped { strong { "Not measured here" } (list(&study.skipped[..study.skipped.len().min(FEW)]))
                @if let Some(more) = study.skipped.get(FEW..).filter(|more| !more.is_empty()) {
                    details { summary { "and " (more.len()) " more" } (list(more)) }
                }
            }
        }
        details {
            summary { "Machine, commit and settings" }
            (facts("When and what", &when)) (facts("Machine", &study.origin.machine)) (facts("Settings", &study.settings))
        }
        @if !study.checks.is_empty() {
            details { summary { "Checks that it passed while it ran: " (study.checks.len()) } ul { @for text in &study.checks { li { (text) } } } }
        }
    }
}

/// So many of what was not measured are seen at once.
const FEW: usize = 4;

fn list(texts: &[String]) -> Markup {
    html! { ul { @for text in texts { li { (text) } } } }
}

/// Names and what they are.
pub fn facts(title: &str, facts: &BTreeMap<String, String>) -> Markup {
    html! { @if !facts.is_empty() {
        h4 { (title) }
        dl.facts { @for (name, fact) in facts.iter().filter(|(_, fact)| !fact.is_empty()) { div { dt { (name) } dd { (fact) } } } }
    } }
}

fn plot(study: &Study, chart: &Chart) -> Markup {
    html! {
        figure id=(chart.plot.id) data-plot {
            h3 { a href=(format!("#{}", chart.plot.id)) { (chart.plot.title) } }
            div.controls data-controls {}
            div.canvas { (svg::inline(chart)) }
            (legend(chart))
            @if !chart.plot.note.is_empty() || chart.off_the_log() > 0 {
                figcaption {
                    (chart.plot.note)
                    @if chart.off_the_log() > 0 { " " (chart.off_the_log()) " figures are zero or less: the table and the linear scale have them, the logarithmic one has not." }
                }
            }
            (under(study, chart))
        }
    }
}

fn legend(chart: &Chart) -> Markup {
    let hidden = |series: &Series| series.from == From::Other;
    html! {
        div.legend role="group" aria-label="Series" {
            @for (i, series) in chart.series.iter().enumerate() {
                button type="button" data-series=(i) aria-pressed=(if hidden(series) { "false" } else { "true" }) {
                    svg class="plot" viewBox="-1 -7 32 14" width="32" height="14" aria-hidden="true" { (svg::key(series)) }
                    (series.label())
                }
            }
        }
    }
}

fn under(study: &Study, chart: &Chart) -> Markup {
    let source = |name: &str| {
        // The source of a published series. Points of one series often have the same.
        let mut said: Vec<&str> = study
            .published
            .iter()
            .filter(|figure| figure.plot == chart.of && figure.series == name)
            .map(|figure| figure.source.as_str())
            .collect();
        said.dedup();
        said.join("; ")
    };
    html! {
        @if let Some(published) = tables::published(chart, &source) { details open { summary { "Published figures beside ours" } (published) } }
        @if let Some(best) = tables::best(chart) { details { summary { "Who is best where" } (best) } }
        details { summary { "All figures" } (tables::figures(chart)) }
    }
}

/// Whether anything in the chart is Larder's default.
pub fn has_ours(chart: &Chart) -> bool {
    chart.measured().any(|series| style::ours(&series.name))
}
