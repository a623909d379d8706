//! The tables under a plot: all of its figures, who is best where, and what was published beside
//! what was measured.

use crate::report::chart::{Chart, Series, Spot};
use crate::report::number::{figure, times};
use crate::report::verdict::{factor, wins, Win};
use crate::result::Scale;
use maud::{html, Markup};
use std::iter::once;

/// More places than this go down the page, not across it.
const ACROSS: usize = 10;

/// A table that may be wider than the page: it scrolls by itself, by keyboard, too. A heading that
/// ends with a colon, which isn't shown, is that of a column of texts.
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

/// The caption of a chart's table, which also says what is measured and in which unit.
fn caption(chart: &Chart, what: &str) -> String {
    format!("{}: {what}, {}", chart.plot.title, chart.unit)
}

/// All figures of a chart: medians, with the least and the most run.
pub fn figures(chart: &Chart) -> Markup {
    let (places, all) = (chart.places(chart.series.iter()), &chart.series);
    let caption = caption(chart, "medians (least – most run)");
    let row = |name: String, spots: Vec<Option<&Spot>>| {
        html! { tr { th scope="row" { (name) } @for spot in spots { td { (cell(spot)) } } } }
    };
    // A row for each series can be read at a glance while there are few places. A long series goes
    // down the page instead.
    if places.len() <= ACROSS {
        let headings = places.iter().map(|x| head(chart, *x));
        let row = |series| {
            let spots = places.iter().map(|x| Series::at(series, *x));
            row(series.label(), spots.collect())
        };
        let rows = all.iter().map(row);
        table(&caption, once("series".into()).chain(headings), rows)
    } else {
        let headings = all.iter().map(Series::label);
        let spots = |x: f64| all.iter().map(|series| series.at(x)).collect();
        let rows = places.iter().map(|x| row(chart.place(*x), spots(*x)));
        let corner = chart.plot.x_label.clone();
        table(&caption, once(corner).chain(headings), rows)
    }
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
    let caption = caption(chart, "the best at each place");
    let x = &*chart.plot.x_label;
    let headings = [
        x,
        "best:",
        "figure",
        "next:",
        "figure",
        "as good",
        "difference:",
    ];
    Some(table(&caption, headings, wins.iter().map(line)))
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
    let caption = caption(chart, "published figures beside ours");
    let x = format!("{}:", chart.plot.x_label);
    let headings = [
        "series",
        &x,
        "published",
        "here",
        "here by published",
        "source:",
    ];
    let spots = |series: &Series| -> Vec<Markup> {
        series
            .points
            .iter()
            .map(|spot| line(series, spot))
            .collect()
    };
    Some(table(&caption, headings, chart.published().flat_map(spots)))
}
