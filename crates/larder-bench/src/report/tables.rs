//! The tables under a plot: all of its figures, who is best where, and what was published beside
//! what was measured.

use crate::report::chart::{Chart, Series, Spot};
use crate::report::number::{figure, times};
use crate::report::verdict::{factor, wins, Win};
use crate::result::Scale;
use maud::{html, Markup};

/// More places than this go down the page, not across it.
const ACROSS: usize = 10;

/// A table that may be wider than the page: it scrolls by itself, by keyboard, too.
pub fn wide(caption: &str, table: Markup) -> Markup {
    html! {
        div.wide tabindex="0" role="region" aria-label=(caption) {
            table { caption { (caption) } (table) }
        }
    }
}

/// The same, of a chart: the caption also says what is measured and in which unit.
fn of_chart(chart: &Chart, what: &str, table: Markup) -> Markup {
    let caption = format!("{}: {what}, {}", chart.plot.title, chart.unit);
    wide(&caption, table)
}

/// All figures of a chart: medians, with the least and the most run.
pub fn figures(chart: &Chart) -> Markup {
    let places = chart.places(chart.series.iter());
    // A row for each series can be read at a glance while there are few places. A long series goes
    // down the page instead.
    let (few, all) = (places.len() <= ACROSS, &chart.series);
    let table = html! {
        @if few {
            thead { tr { th scope="col" { "series" } @for x in &places { th scope="col" { (head(chart, *x)) } } } }
            tbody { @for series in all { tr {
                th scope="row" { (series.label()) } @for x in &places { td { (cell(series.at(*x))) } }
            } } }
        } @else {
            thead { tr { th scope="col" { (chart.plot.x_label) } @for series in all { th scope="col" { (series.label()) } } } }
            tbody { @for x in &places { tr {
                th scope="row" { (chart.place(*x)) } @for series in all { td { (cell(series.at(*x))) } }
            } } }
        }
    };
    of_chart(chart, "medians (least – most run)", table)
}

fn head(chart: &Chart, x: f64) -> String {
    if chart.plot.x_scale == Scale::Names {
        chart.place(x)
    } else {
        crate::report::number::short(x)
    }
}

fn cell(spot: Option<&Spot>) -> Markup {
    html! { @match spot {
        Some(spot) if spot.low < spot.high => { (figure(spot.y)) " " span.spread { "(" (figure(spot.low)) "–" (figure(spot.high)) ")" } },
        Some(spot) => (figure(spot.y)),
        None => span.none { "–" },
    } }
}

/// Who is best at each place, if there is anything to be better than.
pub fn best(chart: &Chart) -> Option<Markup> {
    let wins = wins(chart);
    let better = chart.better?;
    if wins.is_empty() {
        return None;
    }
    let line = |win: &Win| {
        let ((best, first), (next, second)) = (win.best, win.next);
        html! { tr {
            th scope="row" { (chart.place(win.x)) }
            td.text { (best.name) } td { (figure(first.y)) }
            td.text { (next.name) } td { (figure(second.y)) }
            td { @if let Some(factor) = factor(better, first.y, second.y) { (times(factor)) } }
            td.text { (win.sure.text()) }
        } }
    };
    Some(of_chart(
        chart,
        "the best at each place",
        html! {
            thead { tr {
                th scope="col" { (chart.plot.x_label) } th.text scope="col" { "best" } th scope="col" { "figure" }
                th.text scope="col" { "next" } th scope="col" { "figure" } th scope="col" { "as good" } th.text scope="col" { "difference" }
            } }
            tbody { @for win in &wins { (line(win)) } }
        },
    ))
}

/// Published figures beside ours, if one of them has a series of ours by its name.
pub fn published(chart: &Chart, sources: &dyn Fn(&str) -> String) -> Option<Markup> {
    // A published figure stands beside ours if a series of this run has the same name.
    let ours = |name: &str| {
        let mut all = chart.measured();
        all.find(|series| series.name == name)
    };
    chart
        .published()
        .find(|series| ours(&series.name).is_some())?;
    let line = |series: &Series, spot: &Spot| {
        // Ours may not have been measured at this place.
        let our = ours(&series.name).and_then(|one| one.at(spot.x));
        html! { tr {
            th scope="row" { (series.name) } td.text { (chart.place(spot.x)) }
            td { (figure(spot.y)) } td { (cell(our)) }
            td { @if let Some(our) = our { @if spot.y != 0.0 { (times(our.y / spot.y)) } } }
            td.text { (sources(&series.name)) }
        } }
    };
    Some(of_chart(
        chart,
        "published figures beside ours",
        html! {
            thead { tr {
                th scope="col" { "series" } th.text scope="col" { (chart.plot.x_label) } th scope="col" { "published" }
                th scope="col" { "here" } th scope="col" { "here by published" } th.text scope="col" { "source" }
            } }
            tbody { @for series in chart.published() { @for spot in &series.points { (line(series, spot)) } } }
        },
    ))
}
