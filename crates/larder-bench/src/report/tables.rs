//! The tables under a plot: all of its figures, the best at each place, and the published figures
//! beside those that were measured.

use crate::report::chart::{places, Chart, Series, Source, Spot};
use crate::report::number::{figure, times};
use crate::report::verdict::{wins, Pair};
use maud::{html, Markup};

/// The most places of a table whose rows are series. With more places, series are columns.
const ACROSS: usize = 10;

/// A table that scrolls by itself, also by keyboard, if it is wider than the page. A colon at the
/// end of a heading isn't shown. It marks a column of texts.
pub fn table<H: AsRef<str>>(
    caption: &str,
    headings: impl IntoIterator<Item = H>,
    rows: impl IntoIterator<Item = Markup>,
) -> Markup {
    html! {
        div.wide tabindex="0" role="region" aria-label=(caption) {
            table {
                caption { (caption) }
                thead { tr { @for heading in headings {
                    @match heading.as_ref().strip_suffix(':') {
                        Some(text) => th.text scope="col" { (text) },
                        None => th scope="col" { (heading.as_ref()) },
                    }
                } } }
                tbody { @for row in rows { (row) } }
            }
        }
    }
}

/// The caption of a chart's table, with the unit of the figures.
fn caption(chart: &Chart, what: &str) -> String {
    format!("{}: {what}, {}", chart.plot.title, chart.unit)
}

/// The table of all figures of a chart. Series are its rows, or its columns if there are many
/// places.
pub fn figures(chart: &Chart) -> Markup {
    let (places, all) = (places(chart.series.iter()), &chart.series);
    let caption = caption(chart, "medians (least – most run)");
    let row = |name: String, spots: Vec<Option<&Spot>>| {
        html! { tr { th scope="row" { (name) } @for spot in spots { td { (cell(spot)) } } } }
    };
    if places.len() <= ACROSS {
        let headings = places.iter().map(|x| chart.heading(*x));
        let series = |series: &Series| {
            let spots = places.iter().map(|x| series.at(*x));
            row(series.label(), spots.collect())
        };
        let headings = std::iter::once("series".into()).chain(headings);
        table(&caption, headings, all.iter().map(series))
    } else {
        let place = |x: &f64| {
            let spots = all.iter().map(|series| series.at(*x));
            row(chart.place(*x), spots.collect())
        };
        let headings = std::iter::once(chart.plot.x_label.clone());
        let headings = headings.chain(all.iter().map(Series::label));
        table(&caption, headings, places.iter().map(place))
    }
}

/// A figure with its spread.
fn cell(spot: Option<&Spot>) -> Markup {
    html! { @match spot {
        Some(spot) if spot.low < spot.high => { (figure(spot.y)) " " span.spread { "(" (figure(spot.low)) "–" (figure(spot.high)) ")" } },
        Some(spot) => (figure(spot.y)),
        None => span.none { "–" },
    } }
}

/// The best at each place, if there is a place with two figures.
pub fn best(chart: &Chart) -> Option<Markup> {
    let wins = wins(chart);
    let line = |win: &Pair| {
        let ((best, first), (next, second)) = (win.first, win.second);
        html! { tr {
            th scope="row" { (chart.place(first.x)) }
            td.text { (best.name) } td { (figure(first.y)) }
            td.text { (next.name) } td { (figure(second.y)) }
            td { @if let Some(factor) = win.factor { (times(factor)) } }
            td.text { (win.certainty.text()) }
        } }
    };
    let caption = caption(chart, "the best at each place");
    let headings = "best:, figure, next:, figure, as good, difference:".split(", ");
    let headings = std::iter::once(&*chart.plot.x_label).chain(headings);
    (!wins.is_empty()).then(|| table(&caption, headings, wins.iter().map(line)))
}

/// The published figures beside those of this run, if one of their series was measured. `sources`
/// gives the sources of a series.
pub fn published(chart: &Chart, sources: &dyn Fn(&str) -> String) -> Option<Markup> {
    let ours = |theirs: &Series| chart.of(Source::Run).find(|one| one.name == theirs.name);
    let line = |series: &Series, spot: &Spot| {
        let our = ours(series).and_then(|one| one.at(spot.x));
        html! { tr {
            th scope="row" { (series.name) } td.text { (chart.place(spot.x)) }
            td { (figure(spot.y)) } td { (cell(our)) }
            td { @if let Some(our) = our { @if spot.y != 0.0 { (times(our.y / spot.y)) } } }
            td.text { (sources(&series.name)) }
        } }
    };
    let published = || chart.of(Source::Published);
    let rows = published().flat_map(|one| one.points.iter().map(move |spot| line(one, spot)));
    let caption = caption(chart, "published figures beside ours");
    let headings = format!(
        "series|{}:|published|here|here by published|source:",
        chart.plot.x_label
    );
    let measured = published().any(|one| ours(one).is_some());
    measured.then(|| table(&caption, headings.split('|'), rows))
}
