//! A chart as SVG: in the page, for those without a script, and as a file.
//!
//! ```text
//!   x a number: lines                         x a name: a row a name, series in lanes
//!   y │      .·'¯¯ larder                     set        │   ●──   ◇
//!     │  .·'  _.-◇ other                      btree      │      ■  ─◇─
//!     └──┴────┴────┴── x                                 └──┴────┴────┴── y
//! ```
//!
//! The bar of a marker goes from the smallest figure of the runs to the largest. If there are more
//! than [`CROWDED`] places, a line has no markers, and its spread is drawn as an area.

use crate::report::chart::{Chart, From, Series, Spot};
use crate::report::number::short;
use crate::report::scale::Axis;
use crate::report::style::{DASHES, MARKERS};
use crate::result::{Better, Scale};
use maud::{html, Markup, PreEscaped};

/// The width of every plot.
pub const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 380.0;
const TOP: f64 = 14.0;
const RIGHT: f64 = 18.0;
const BOTTOM: f64 = 46.0;
const LEFT: f64 = 64.0;
/// The most places that get markers.
pub const CROWDED: usize = 40;
/// About the width of a letter of the plots' text.
const LETTER: f64 = 6.4;

/// The style sheet of plots, in the page as in files.
pub const SHEET: &str = include_str!("../../assets/plot.css");

/// Where things lie in a plot.
struct Frame {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    x: Option<Axis>,
    y: Axis,
    /// The height of a name's row.
    row: f64,
    /// Whether there are too many places for markers.
    crowded: bool,
}

impl Frame {
    fn of(chart: &Chart) -> Frame {
        let shown = chart.shown();
        let spots = || shown.iter().flat_map(|one| &one.points);
        // The axis has room for the spreads, not only for the medians.
        let figures = spots().flat_map(|spot| [spot.low, spot.y, spot.high]);
        let mut frame = Frame {
            left: LEFT,
            right: WIDTH - RIGHT,
            top: TOP,
            bottom: HEIGHT - BOTTOM,
            x: None,
            y: Axis::fit(figures, chart.plot.y_scale == Scale::Log),
            row: 0.0,
            crowded: false,
        };
        if chart.plot.x_scale == Scale::Names {
            // Names stand left of the drawing, so the longest one decides where it begins.
            let longest = chart.names.iter().map(|name| name.chars().count()).max();
            frame.left = (longest.unwrap_or(0) as f64 * LETTER + 18.0).clamp(LEFT, 330.0);
            frame.row = row_height(chart.series.len(), chart.names.len());
            frame.bottom = TOP + frame.row * chart.names.len().max(1) as f64;
        } else {
            let mut x = Axis::fit(spots().map(|spot| spot.x), chart.plot.x_scale == Scale::Log);
            // Threads and keys come whole.
            if spots().all(|spot| spot.x.fract() == 0.0) {
                x.ticks.retain(|tick| tick.fract() == 0.0);
            }
            frame.x = Some(x);
            frame.crowded = chart.places(chart.series.iter()).len() > CROWDED;
        }
        frame
    }

    fn height(&self) -> f64 {
        self.bottom + BOTTOM
    }

    /// Across, for a place on the axis that lies.
    fn across(&self, part: f64) -> f64 {
        self.left + part * (self.right - self.left)
    }

    fn up(&self, part: f64) -> f64 {
        self.bottom - part * (self.bottom - self.top)
    }

    /// Where a figure is, and the ends of its spread.
    fn place(&self, spot: &Spot, lane: f64) -> Option<[(f64, f64); 3]> {
        let y = |figure: f64| self.y.at(figure);
        // A logarithmic axis has no place for zero. Then the spread begins at the figure itself.
        let (low, high) = (y(spot.low).or(y(spot.y))?, y(spot.high)?);
        match &self.x {
            Some(axis) => {
                let x = self.across(axis.at(spot.x)?);
                Some([y(spot.y)?, low, high].map(|part| (x, self.up(part))))
            }
            None => {
                // With names, figures go across. Series of one name stand in lanes, below one
                // another.
                let down = self.top + (spot.x + lane) * self.row;
                Some([y(spot.y)?, low, high].map(|part| (self.across(part), down)))
            }
        }
    }
}

/// Enough for a lane a series, within reason: few rows may be higher.
fn row_height(series: usize, rows: usize) -> f64 {
    let most = (700.0 / rows.max(1) as f64).max(90.0);
    (10.0 + 8.0 * series as f64).clamp(22.0, most)
}

/// A number of a path: no more digits than can be seen.
fn n(number: f64) -> String {
    let text = format!("{number:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_string)
}

/// The chart for the page: the legend is the page's.
pub fn inline(chart: &Chart) -> Markup {
    let frame = Frame::of(chart);
    html! {
        svg class="plot" viewBox=(format!("0 0 {WIDTH} {}", n(frame.height()))) role="img" aria-label=(summary(chart)) {
            (body(chart, &frame))
        }
    }
}

/// What one hears instead of seeing the plot.
pub fn summary(chart: &Chart) -> String {
    let names: Vec<String> = chart.series.iter().map(Series::label).collect();
    format!(
        "{}. {} by {}; {}. The figures are in the table below.",
        chart.plot.title,
        chart.plot.y_label,
        chart.plot.x_label,
        names.join(", ")
    )
}

/// The chart as a file of its own, with its legend and the styles.
pub fn file(chart: &Chart) -> String {
    let frame = Frame::of(chart);
    let rows = legend_rows(&chart.shown());
    // Below the frame there is a row of the legend after another.
    let height = frame.height() + 20.0 * rows.len() as f64 + 8.0;
    let inside = html! {
        (body(chart, &frame))
        @for (i, row) in rows.iter().enumerate() {
            @for (x, series) in row {
                g transform=(format!("translate({},{})", n(*x), n(frame.height() + 14.0 + 20.0 * i as f64))) { (key(series)) text x="36" y="4" { (series.label()) } }
            }
        }
    };
    file_of(
        &chart.plot.title,
        &summary(chart),
        (30.0, -9, height),
        inside,
    )
}

/// A file with a title above the drawing. Of the tuple, the first number is the height of the
/// title, the second the line of its text, the third the height of the drawing.
pub fn file_of(
    title: &str,
    heard: &str,
    (head, base, height): (f64, i32, f64),
    inside: Markup,
) -> String {
    let whole = n(height + head);
    html! {
        svg xmlns="http://www.w3.org/2000/svg" class="plot" viewBox=(format!("0 {} {WIDTH} {whole}", -head)) width=(WIDTH) height=(whole) role="img" aria-label=(heard) {
            title { (title) }
            style { (PreEscaped(SHEET)) }
            rect.paper x="0" y=(-head) width=(WIDTH) height=(whole) {}
            text.title x="12" y=(base) { (title) }
            (inside)
        }
    }
    .into_string()
}

/// Legend entries in rows, each with its x.
fn legend_rows<'a>(series: &[&'a Series]) -> Vec<Vec<(f64, &'a Series)>> {
    let (mut rows, mut x): (Vec<Vec<(f64, &Series)>>, f64) = (vec![Vec::new()], 16.0);
    for one in series {
        // An estimate of the width: letters, the marker and the gap. The width of a text isn't
        // known here.
        let width = one.label().chars().count() as f64 * LETTER + 62.0;
        // The entry doesn't fit into the row any more. The first entry of a row always stays.
        if x + width > WIDTH && x > 16.0 {
            rows.push(Vec::new());
            x = 16.0;
        }
        rows.last_mut().expect("it has one").push((x, one));
        x += width;
    }
    rows
}

/// A piece of the series' line with its marker, 30 wide.
pub fn key(series: &Series) -> Markup {
    html! {
        g class=(classes(series)) {
            path.line d="M0,0H30" stroke-dasharray=[dash(series)] {}
            path.mark d=(MARKERS[series.style.marker]) transform="translate(15,0)" {}
        }
    }
}

/// The classes of a series, in the style sheet's words.
pub fn classes(series: &Series) -> String {
    let from = match series.from {
        From::Run => "",
        From::Published => " published",
        From::Other => " other",
    };
    let ours = if series.style.ours { " ours" } else { "" };
    format!("series c{}{ours}{from}", series.style.colour)
}

fn dash(series: &Series) -> Option<&'static str> {
    let dash = match series.from {
        From::Run => DASHES[series.style.dash],
        From::Published | From::Other => "1 4",
    };
    (!dash.is_empty()).then_some(dash)
}

fn body(chart: &Chart, frame: &Frame) -> Markup {
    let shown = chart.shown();
    let lane = |i: usize| (i as f64 + 1.0) / (shown.len() as f64 + 1.0);
    html! {
        (axes(chart, frame))
        @for (i, series) in shown.iter().enumerate() { (draw(series, frame, lane(i))) }
    }
}

/// Which way is better, and the axis' own words.
pub fn y_text(chart: &Chart) -> String {
    let better = match chart.better {
        Some(Better::Less) => " (less is better)",
        Some(Better::More) => " (more is better)",
        None => "",
    };
    format!("{}{better}", chart.plot.y_label)
}

fn axes(chart: &Chart, frame: &Frame) -> Markup {
    let middle = n((frame.left + frame.right) / 2.0);
    html! {
        @if let Some(x) = &frame.x {
            @for tick in &frame.y.ticks {
                @let y = n(frame.up(frame.y.at(*tick).unwrap_or(0.0)));
                path.grid d=(format!("M{},{y}H{}", n(frame.left), n(frame.right))) {}
                text.tick x=(n(frame.left - 8.0)) y=(y) dy="4" text-anchor="end" { (short(*tick)) }
            }
            (upright(x, frame))
        } @else {
            (upright(&frame.y, frame))
            @for (i, name) in chart.names.iter().enumerate() {
                @let y = frame.top + frame.row * i as f64;
                @if i > 0 { path.grid d=(format!("M{},{}H{}", n(12.0), n(y), n(frame.right))) {} }
                text.tick x=(n(frame.left - 8.0)) y=(n(y + frame.row / 2.0)) dy="4" text-anchor="end" { (cut(name, frame.left)) }
            }
        }
        path.axis d=(format!("M{},{}V{}H{}", n(frame.left), n(frame.top), n(frame.bottom), n(frame.right))) {}
        text.label x=(middle) y=(n(frame.bottom + 38.0)) text-anchor="middle" { @if frame.x.is_some() { (chart.plot.x_label) } @else { (y_text(chart)) } }
        @if frame.x.is_some() { text.label transform=(format!("translate(14,{}) rotate(-90)", n((frame.top + frame.bottom) / 2.0))) text-anchor="middle" { (y_text(chart)) } }
    }
}

/// The lines and ticks of the axis that lies.
fn upright(axis: &Axis, frame: &Frame) -> Markup {
    html! { @for tick in &axis.ticks {
        @let at = n(frame.across(axis.at(*tick).unwrap_or(0.0)));
        path.grid d=(format!("M{at},{}V{}", n(frame.top), n(frame.bottom))) {}
        text.tick x=(at) y=(n(frame.bottom + 17.0)) text-anchor="middle" { (short(*tick)) }
    } }
}

/// A name that fits; the table has the whole of it.
fn cut(name: &str, width: f64) -> String {
    let fit = ((width - 14.0) / LETTER) as usize;
    if name.chars().count() <= fit {
        return name.to_string();
    }
    name.chars()
        .take(fit.saturating_sub(1))
        .chain(['…'])
        .collect()
}

fn draw(series: &Series, frame: &Frame, lane: f64) -> Markup {
    // Each point has three places: its median, and the ends of its bar.
    let places: Vec<[(f64, f64); 3]> = series
        .points
        .iter()
        .filter_map(|spot| frame.place(spot, lane))
        .collect();
    let middle = places.iter().map(|[at, ..]| *at);
    html! {
        g class=(classes(series)) {
            @if frame.crowded && series.from == From::Run { path.area d=(area(&places)) {} }
            @if frame.x.is_some() { path.line d=(path(middle)) stroke-dasharray=[dash(series)] {} }
            @if !frame.crowded {
                @for [(x, y), low, high] in &places {
                    @if low != high { path.spread d=(path([*low, *high].into_iter())) {} }
                    path.mark d=(MARKERS[series.style.marker]) transform=(format!("translate({},{})", n(*x), n(*y))) {}
                }
            }
        }
    }
}

fn path(points: impl Iterator<Item = (f64, f64)>) -> String {
    let mut out = String::new();
    for (i, (x, y)) in points.enumerate() {
        let step = if i == 0 { 'M' } else { 'L' };
        out += &format!("{step}{},{}", n(x), n(y));
    }
    out
}

/// From the least runs there to the most back.
fn area(places: &[[(f64, f64); 3]]) -> String {
    let there = places.iter().map(|[_, low, _]| *low);
    let back = places.iter().rev().map(|[_, _, high]| *high);
    path(there.chain(back)) + "Z"
}
