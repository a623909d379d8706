//! A chart as SVG: in the page, for readers without a script, and as a file.
//!
//! ```text
//!   x a number: lines                         x a name: a row a name, series in lanes
//!   y │      .·'¯¯ larder                     set        │   ●──   ◇
//!     │  .·'  _.-◇ other                      btree      │      ■  ─◇─
//!     └──┴────┴────┴── x                                 └──┴────┴────┴── y
//! ```
//!
//! The bar of a marker goes from the least figure of the runs to the greatest. With more than
//! [`CROWDED`] places, a line has no markers, and its spread is drawn as an area.

use crate::report::chart::{places, Chart, Series, Source, Spot};
use crate::report::number::short;
use crate::report::scale::Axis;
use crate::report::style::{DASHES, MARKERS};
use crate::result::{Better, Scale};
use maud::{html, Markup, PreEscaped};

/// The width of a plot.
pub const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 380.0;
const TOP: f64 = 14.0;
const RIGHT: f64 = WIDTH - 18.0;
const BOTTOM: f64 = 46.0;
const LEFT: f64 = 64.0;
/// The most places with markers.
const CROWDED: usize = 40;
/// About the width of a letter.
const LETTER: f64 = 6.4;

/// The style sheet of a plot.
pub const SHEET: &str = include_str!("../../assets/plot.css");

/// The positions in a plot. Without an x axis, names go down and figures go across.
struct Frame {
    left: f64,
    bottom: f64,
    x: Option<Axis>,
    y: Axis,
    /// The height of a name's row.
    row: f64,
    crowded: bool,
}

impl Frame {
    fn new(chart: &Chart) -> Frame {
        let shown = chart.shown();
        let spots = || shown.iter().flat_map(|one| &one.points);
        let figures = spots().flat_map(|spot| [spot.low, spot.y, spot.high]);
        let mut frame = Frame {
            left: LEFT,
            bottom: HEIGHT - BOTTOM,
            x: None,
            y: Axis::fit(figures, chart.plot.y_scale == Scale::Log),
            row: 0.0,
            crowded: false,
        };
        if chart.plot.x_scale == Scale::Names {
            let longest = chart.names.iter().map(|name| name.chars().count()).max();
            frame.left = (longest.unwrap_or(0) as f64 * LETTER + 18.0).clamp(LEFT, 330.0);
            // Few rows may be high enough for a lane a series.
            let rows = chart.names.len().max(1) as f64;
            let row = 10.0 + 8.0 * chart.series.len() as f64;
            frame.row = row.clamp(22.0, (700.0 / rows).max(90.0));
            frame.bottom = TOP + frame.row * rows;
        } else {
            let mut x = Axis::fit(spots().map(|spot| spot.x), chart.plot.x_scale == Scale::Log);
            // Threads and keys are whole numbers.
            if spots().all(|spot| spot.x.fract() == 0.0) {
                x.ticks.retain(|tick| tick.fract() == 0.0);
            }
            frame.x = Some(x);
            frame.crowded = places(chart.series.iter()).len() > CROWDED;
        }
        frame
    }

    fn height(&self) -> f64 {
        self.bottom + BOTTOM
    }

    fn across(&self, part: f64) -> f64 {
        self.left + part * (RIGHT - self.left)
    }

    fn up(&self, part: f64) -> f64 {
        self.bottom - part * (self.bottom - TOP)
    }

    /// The positions of a figure and of the ends of its spread. On a logarithmic axis, a spread
    /// from zero begins at the figure.
    fn place(&self, spot: &Spot, lane: f64) -> Option<[(f64, f64); 3]> {
        let y = |figure: f64| self.y.at(figure);
        let parts = [y(spot.y)?, y(spot.low).or(y(spot.y))?, y(spot.high)?];
        match &self.x {
            Some(axis) => {
                let x = self.across(axis.at(spot.x)?);
                Some(parts.map(|part| (x, self.up(part))))
            }
            None => {
                let down = TOP + (spot.x + lane) * self.row;
                Some(parts.map(|part| (self.across(part), down)))
            }
        }
    }
}

/// A number of a path, with as many digits as can be seen.
fn n(number: f64) -> String {
    let text = format!("{number:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_string)
}

/// The chart for the page, which has the legend.
pub fn inline(chart: &Chart) -> Markup {
    let frame = Frame::new(chart);
    html! {
        svg class="plot" viewBox=(format!("0 0 {WIDTH} {}", n(frame.height()))) role="img" aria-label=(summary(chart)) {
            (body(chart, &frame))
        }
    }
}

fn summary(chart: &Chart) -> String {
    let names: Vec<String> = chart.series.iter().map(Series::label).collect();
    let (plot, names) = (&chart.plot, names.join(", "));
    let (title, y, x) = (&plot.title, &plot.y_label, &plot.x_label);
    format!("{title}. {y} by {x}; {names}. The figures are in the table below.")
}

/// The chart as a file, with its legend and the styles.
pub fn file(chart: &Chart) -> String {
    let frame = Frame::new(chart);
    let rows = legend_rows(&chart.shown());
    let height = frame.height() + 20.0 * rows.len() as f64 + 8.0;
    let down = |i: usize| n(frame.height() + 14.0 + 20.0 * i as f64);
    let inside = html! {
        (body(chart, &frame))
        @for (i, row) in rows.iter().enumerate() {
            @for (x, series) in row {
                g transform=(format!("translate({},{})", n(*x), down(i))) { (key(series)) text x="36" y="4" { (series.label()) } }
            }
        }
    };
    let label = summary(chart);
    file_of(&chart.plot.title, &label, 30.0, -9, height, inside)
}

/// A file with a title above the drawing. The numbers are the height of the title, the line of its
/// text, and the height of the drawing.
pub fn file_of(
    title: &str,
    label: &str,
    head: f64,
    base: i32,
    height: f64,
    inside: Markup,
) -> String {
    let whole = n(height + head);
    html! {
        svg xmlns="http://www.w3.org/2000/svg" class="plot" viewBox=(format!("0 {} {WIDTH} {whole}", -head)) width=(WIDTH) height=(whole) role="img" aria-label=(label) {
            title { (title) }
            style { (PreEscaped(SHEET)) }
            rect.paper x="0" y=(-head) width=(WIDTH) height=(whole) {}
            text.title x="12" y=(base) { (title) }
            (inside)
        }
    }
    .into_string()
}

/// Legend entries in rows, each with its x. The width of a text is estimated.
fn legend_rows<'a>(series: &[&'a Series]) -> Vec<Vec<(f64, &'a Series)>> {
    let (mut rows, mut x): (Vec<Vec<(f64, &Series)>>, f64) = (vec![Vec::new()], 16.0);
    for one in series {
        let width = one.label().chars().count() as f64 * LETTER + 62.0;
        // The first entry of a row stays there in any case.
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

/// The classes of a series in the style sheet.
fn classes(series: &Series) -> String {
    let from = match series.from {
        Source::Run => "",
        Source::Published => " published",
        Source::Other => " other",
    };
    let ours = if series.style.ours { " ours" } else { "" };
    format!("series c{}{ours}{from}", series.style.colour)
}

fn dash(series: &Series) -> Option<&'static str> {
    let dash = match series.from {
        Source::Run => DASHES[series.style.dash],
        _ => "1 4",
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

fn axes(chart: &Chart, frame: &Frame) -> Markup {
    let better = match chart.better {
        Some(Better::Less) => " (less is better)",
        Some(Better::More) => " (more is better)",
        None => "",
    };
    let y_label = format!("{}{better}", chart.plot.y_label);
    let (left, right, top, bottom) = (n(frame.left), n(RIGHT), n(TOP), n(frame.bottom));
    let (middle, before) = (n((frame.left + RIGHT) / 2.0), n(frame.left - 8.0));
    // The horizontal axis and its lines.
    let horizontal = |axis: &Axis| {
        html! { @for tick in &axis.ticks {
            @let at = n(frame.across(axis.at(*tick).unwrap_or(0.0)));
            path.grid d=(format!("M{at},{top}V{bottom}")) {}
            text.tick x=(at) y=(n(frame.bottom + 17.0)) text-anchor="middle" { (short(*tick)) }
        } }
    };
    html! {
        @if let Some(x) = &frame.x {
            @for tick in &frame.y.ticks {
                @let y = n(frame.up(frame.y.at(*tick).unwrap_or(0.0)));
                path.grid d=(format!("M{left},{y}H{right}")) {}
                text.tick x=(before) y=(y) dy="4" text-anchor="end" { (short(*tick)) }
            }
            (horizontal(x))
        } @else {
            (horizontal(&frame.y))
            @for (i, name) in chart.names.iter().enumerate() {
                @let y = TOP + frame.row * i as f64;
                @if i > 0 { path.grid d=(format!("M12,{}H{right}", n(y))) {} }
                text.tick x=(before) y=(n(y + frame.row / 2.0)) dy="4" text-anchor="end" { (cut(name, frame.left)) }
            }
        }
        path.axis d=(format!("M{left},{top}V{bottom}H{right}")) {}
        text.label x=(middle) y=(n(frame.bottom + 38.0)) text-anchor="middle" { @if frame.x.is_some() { (chart.plot.x_label) } @else { (y_label) } }
        @if frame.x.is_some() { text.label transform=(format!("translate(14,{}) rotate(-90)", n((TOP + frame.bottom) / 2.0))) text-anchor="middle" { (y_label) } }
    }
}

/// The beginning of a name, as far as it fits. The table has the whole name.
fn cut(name: &str, width: f64) -> String {
    let (fit, letters) = (((width - 14.0) / LETTER) as usize, name.chars());
    match name.chars().count() <= fit {
        true => name.to_string(),
        false => letters.take(fit.saturating_sub(1)).chain(['…']).collect(),
    }
}

fn draw(series: &Series, frame: &Frame, lane: f64) -> Markup {
    let spots = series.points.iter();
    let places = spots.filter_map(|spot| frame.place(spot, lane));
    let places: Vec<[(f64, f64); 3]> = places.collect();
    let middle = places.iter().map(|[middle, ..]| *middle);
    // The area goes along the least runs, and back along the greatest.
    let there = places.iter().map(|[_, low, _]| *low);
    let area = there.chain(places.iter().rev().map(|[_, _, high]| *high));
    html! {
        g class=(classes(series)) {
            @if frame.crowded && series.from == Source::Run { path.area d=(path(area) + "Z") {} }
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
    let steps = points.enumerate().map(|(i, (x, y))| {
        let step = if i == 0 { 'M' } else { 'L' };
        format!("{step}{},{}", n(x), n(y))
    });
    steps.collect()
}
