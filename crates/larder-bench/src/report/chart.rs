//! A plot with all that is drawn in it: the points of a study, the published figures, and the
//! points of another run.

use crate::report::read::Findings;
use crate::report::style::{Style, Styles};
use crate::result::{Better, Plot, Scale, Study, X};
use crate::stats::sorted;
use serde::Serialize;

/// One plot, ready to be drawn. Its script gets it as JSON.
#[derive(Clone, Debug, Serialize)]
pub struct Chart {
    /// The study's name.
    #[serde(skip)]
    pub study: String,
    /// The plot's id in the study.
    #[serde(skip)]
    pub of: String,
    /// What it shows. Its id here is that of the page's element and of the file: different in each
    /// chart.
    #[serde(flatten)]
    pub plot: Plot,
    /// The unit of y.
    pub unit: String,
    /// Which way is better; nothing if the plot has published figures alone.
    pub better: Option<Better>,
    /// The names on the x axis, if it is one of names: then x counts them.
    pub names: Vec<String>,
    /// What is drawn.
    pub series: Vec<Series>,
}

/// Where a series is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum From {
    /// This run.
    Run,
    /// A paper.
    Published,
    /// The run that this one is compared with.
    Other,
}

/// The figures of one name.
#[derive(Clone, Debug, Serialize)]
pub struct Series {
    /// Its name.
    pub name: String,
    /// Where it is from.
    pub from: From,
    /// How it looks.
    pub style: Style,
    /// The figures, by x.
    pub points: Vec<Spot>,
}

/// One figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spot {
    /// Where.
    pub x: f64,
    /// The median.
    pub y: f64,
    /// The least run.
    pub low: f64,
    /// The most.
    pub high: f64,
    /// How many runs; 0 if a paper says it.
    pub runs: usize,
}

impl Series {
    /// What a legend calls it.
    pub fn label(&self) -> String {
        match self.from {
            From::Run => self.name.clone(),
            From::Published => format!("{} (published)", self.name),
            From::Other => format!("{} (other run)", self.name),
        }
    }

    /// The figure at a place.
    pub fn at(&self, x: f64) -> Option<&Spot> {
        self.points.iter().find(|spot| spot.x == x)
    }
}

impl Chart {
    /// The series of this run.
    pub fn measured(&self) -> impl Iterator<Item = &Series> {
        self.series.iter().filter(|one| one.from == From::Run)
    }

    /// Those that are drawn at first: what another run measured, when the reader asks for it.
    pub fn shown(&self) -> Vec<&Series> {
        // The page's script adds the other run.
        let shown = self.series.iter().filter(|one| one.from != From::Other);
        shown.collect()
    }

    /// The published ones.
    pub fn published(&self) -> impl Iterator<Item = &Series> {
        self.series.iter().filter(|one| one.from == From::Published)
    }

    /// Every x of the series given, in order.
    pub fn places<'a>(&self, series: impl Iterator<Item = &'a Series>) -> Vec<f64> {
        // Equal places are neighbours in the sorted list.
        let mut all = sorted(series.flat_map(|one| one.points.iter().map(|spot| spot.x)));
        all.dedup();
        all
    }

    /// What a table calls a place.
    pub fn place(&self, x: f64) -> String {
        match self.names.get(x as usize) {
            Some(name) if self.plot.x_scale == Scale::Names => name.clone(),
            _ => crate::report::number::figure(x),
        }
    }

    /// How many figures a logarithmic axis has no place for.
    pub fn off_the_log(&self) -> usize {
        let spots = self.series.iter().flat_map(|one| &one.points);
        spots.filter(|spot| spot.y <= 0.0).count()
    }
}

/// The charts of all studies, in their order. Published figures and the other run's points stand
/// with ours of the same plot.
pub fn all(here: &Findings, there: Option<&Findings>) -> Vec<Chart> {
    let both: Vec<_> = std::iter::once(here).chain(there).collect();
    // Styles are chosen for all plots together, so that a series looks the same in each of them.
    let styles = Styles::of(&both);
    let mut charts: Vec<Chart> = Vec::new();
    for study in &here.studies {
        let other = there.and_then(|found| found.studies.iter().find(|s| s.study == study.study));
        for plot in &study.plots {
            let mut chart = one(study, other, plot, &styles);
            // Two plots may have one name. Make it unique, since files and links are named by it.
            while charts.iter().any(|before| before.plot.id == chart.plot.id) {
                chart.plot.id.push('-');
            }
            charts.push(chart);
        }
    }
    charts
}

fn one(study: &Study, other: Option<&Study>, plot: &Plot, styles: &Styles) -> Chart {
    // The unit is that of the points, or of the published figures if nothing was measured.
    let first = study.points.iter().find(|point| point.plot == plot.id);
    let figures = study.published.iter().find(|figure| figure.plot == plot.id);
    let unit = first
        .map(|point| &point.unit)
        .or(figures.map(|figure| &figure.unit));
    let mut chart = Chart {
        study: study.study.clone(),
        of: plot.id.clone(),
        plot: Plot {
            id: file_name(&format!("{}-{}", study.study, plot.id)),
            ..plot.clone()
        },
        unit: unit.cloned().unwrap_or_default(),
        better: first.map(|point| point.better),
        names: Vec::new(),
        series: Vec::new(),
    };
    add_points(&mut chart, study, From::Run, styles);
    for figure in study.published.iter().filter(|f| f.plot == plot.id) {
        // A published figure has no spread.
        let spot = [figure.value; 3];
        let name = (figure.series.as_str(), From::Published);
        add(&mut chart, name, &figure.x, spot, 0, styles);
    }
    if let Some(other) = other {
        add_points(&mut chart, other, From::Other, styles);
    }
    // Lines are drawn from left to right.
    for series in &mut chart.series {
        series.points.sort_by(|a, b| a.x.total_cmp(&b.x));
    }
    chart
}

fn add_points(chart: &mut Chart, study: &Study, from: From, styles: &Styles) {
    let of = chart.of.clone();
    for point in study.points.iter().filter(|point| point.plot == of) {
        // The bar must contain the point. In `bench.csv` its ends are computed from ratios.
        let (low, high) = (point.low.min(point.y), point.high.max(point.y));
        let (name, spot) = ((point.series.as_str(), from), [point.y, low, high]);
        add(chart, name, &point.x, spot, point.runs, styles);
    }
}

/// Adds the figure (median, least and most) of some runs to the series of this name.
fn add(
    chart: &mut Chart,
    (name, from): (&str, From),
    x: &X,
    [y, low, high]: [f64; 3],
    runs: usize,
    styles: &Styles,
) {
    // Numbers keep their value. On an axis of names, a place is the number of its name.
    let x = match x {
        X::Number(number) if chart.plot.x_scale != Scale::Names => *number,
        place => named(&mut chart.names, &place.to_string(), chart.plot.x_scale),
    };
    let spot = Spot {
        x,
        y,
        low,
        high,
        runs,
    };
    // A series is known by its name and by where it comes from.
    let known = |one: &&mut Series| one.from == from && one.name == name;
    match chart.series.iter_mut().find(known) {
        Some(series) => series.points.push(spot),
        None => chart.series.push(Series {
            name: name.to_string(),
            from,
            style: styles.get(name),
            points: vec![spot],
        }),
    }
}

/// The number of a name. On an axis of numbers, a text that is a number has that number.
fn named(names: &mut Vec<String>, name: &str, scale: Scale) -> f64 {
    if scale != Scale::Names {
        if let Ok(number) = name.parse() {
            return number;
        }
    }
    // Names are numbered as they appear.
    match names.iter().position(|known| known == name) {
        Some(at) => at as f64,
        None => {
            names.push(name.to_string());
            (names.len() - 1) as f64
        }
    }
}

/// Lower-case letters, digits and hyphens alone.
pub fn file_name(text: &str) -> String {
    let mut out = String::new();
    for c in text.to_lowercase().chars() {
        if c.is_ascii_alphanumeric() {
            out.push(c);
        } else if !out.ends_with('-') {
            out.push('-');
        }
    }
    out.trim_matches('-').to_string()
}
