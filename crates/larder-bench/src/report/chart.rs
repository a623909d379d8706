//! A plot with all that is drawn in it: the points of a study, the published figures, and the
//! points of another run.

use crate::report::number::{figure, short};
use crate::report::read::Findings;
use crate::report::style::{Style, Styles};
use crate::result::{Better, Plot, Point, Scale, Study, X};
use crate::stats::{place, sorted};
use serde::Serialize;

/// A plot, ready to be drawn. The script of the page gets it as JSON.
#[derive(Clone, Debug, Serialize)]
pub struct Chart {
    #[serde(skip)]
    pub study: String,
    /// The id of the plot in its study. The id in `plot` is unique in the report: it names the
    /// element of the page and the file.
    #[serde(skip)]
    pub id_in_study: String,
    #[serde(flatten)]
    pub plot: Plot,
    pub unit: String,
    /// `None` if the plot only has published figures.
    pub better: Option<Better>,
    /// The names on the x axis, whose positions are the x of the points. Empty on other axes.
    pub names: Vec<String>,
    pub series: Vec<Series>,
}

/// Where a series comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    Run,
    Published,
    /// The run that is compared with this one.
    Other,
}

/// The figures of a structure, in the order of x.
#[derive(Clone, Debug, Serialize)]
pub struct Series {
    pub name: String,
    pub from: Source,
    pub style: Style,
    pub points: Vec<Spot>,
}

/// The median of some runs, the least and the most. Published figures have 0 runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spot {
    pub x: f64,
    pub y: f64,
    pub low: f64,
    pub high: f64,
    pub runs: usize,
}

impl Series {
    /// The name of the series, and where it comes from unless that is this run.
    pub fn label(&self) -> String {
        let source = match self.from {
            Source::Run => "",
            Source::Published => " (published)",
            Source::Other => " (other run)",
        };
        format!("{}{source}", self.name)
    }

    /// The point at an x, if the series has one there.
    pub fn at(&self, x: f64) -> Option<&Spot> {
        self.points.iter().find(|spot| spot.x == x)
    }
}

/// The different places of series, in order.
pub fn places<'a>(series: impl Iterator<Item = &'a Series>) -> Vec<f64> {
    let mut all = sorted(series.flat_map(|one| one.points.iter().map(|spot| spot.x)));
    all.dedup();
    all
}

impl Chart {
    /// The series of one source.
    pub fn of(&self, source: Source) -> impl Iterator<Item = &Series> {
        self.series.iter().filter(move |one| one.from == source)
    }

    /// The series that are drawn at first. The script adds those of the other run on demand.
    pub fn shown(&self) -> Vec<&Series> {
        let shown = self.series.iter().filter(|one| one.from != Source::Other);
        shown.collect()
    }

    /// A place as text: a name, or a number for a table or a heading.
    pub fn place(&self, x: f64) -> String {
        self.name(x).unwrap_or_else(|| figure(x))
    }
    /// A place as text, with a number shortened as for an axis.
    pub fn heading(&self, x: f64) -> String {
        self.name(x).unwrap_or_else(|| short(x))
    }
    fn name(&self, x: f64) -> Option<String> {
        let names = self.plot.x_scale == Scale::Names;
        names.then(|| self.names.get(x as usize).cloned())?
    }

    /// The number of figures that a logarithmic axis doesn't have.
    pub fn off_the_log(&self) -> usize {
        let spots = self.series.iter().flat_map(|one| &one.points);
        spots.filter(|spot| spot.y <= 0.0).count()
    }

    /// Adds those of some points that are in this plot.
    fn add(&mut self, points: &[Point], from: Source, styles: &Styles) {
        for p in points.iter().filter(|p| p.plot == self.id_in_study) {
            let number = match (self.plot.x_scale, &p.x) {
                (Scale::Names, _) => None,
                (_, X::Number(number)) => Some(*number),
                (_, X::Name(name)) => name.parse().ok(),
            };
            // A name gets its position in the order of appearance.
            let x = number.unwrap_or_else(|| place(&mut self.names, p.x.to_string()) as f64);
            // The ends that are computed from the ratios of `bench.csv` must contain the median.
            let (y, runs, low, high) = (p.y, p.runs, p.low.min(p.y), p.high.max(p.y));
            let spot = Spot {
                x,
                y,
                low,
                high,
                runs,
            };
            let known = |one: &&mut Series| one.from == from && one.name == p.series;
            match self.series.iter_mut().find(known) {
                Some(series) => series.points.push(spot),
                None => self.series.push(Series {
                    name: p.series.clone(),
                    from,
                    style: styles.get(&p.series),
                    points: vec![spot],
                }),
            }
        }
    }
}

/// The charts of all studies of this run, with the points of another run if there is one.
pub fn all(here: &Findings, there: Option<&Findings>) -> Vec<Chart> {
    // A series looks the same in all charts.
    let styles = Styles::new(std::iter::once(here).chain(there));
    let mut charts: Vec<Chart> = Vec::new();
    for study in &here.studies {
        let other = there.and_then(|there| there.study(&study.study));
        for plot in &study.plots {
            let mut chart = chart(study, other, plot, &styles);
            while charts.iter().any(|before| before.plot.id == chart.plot.id) {
                chart.plot.id.push('-');
            }
            charts.push(chart);
        }
    }
    charts
}

fn chart(study: &Study, other: Option<&Study>, plot: &Plot, styles: &Styles) -> Chart {
    let published: Vec<_> = study.published.iter().map(Point::from).collect();
    let of = |points: &[Point]| points.iter().find(|p| p.plot == plot.id).cloned();
    let first = of(&study.points);
    let unit = first.clone().or_else(|| of(&published)).map(|p| p.unit);
    let id = file_name(&format!("{}-{}", study.study, plot.id));
    let mut chart = Chart {
        study: study.study.clone(),
        id_in_study: plot.id.clone(),
        plot: Plot { id, ..plot.clone() },
        unit: unit.unwrap_or_default(),
        better: first.map(|p| p.better),
        names: Vec::new(),
        series: Vec::new(),
    };
    chart.add(&study.points, Source::Run, styles);
    chart.add(&published, Source::Published, styles);
    if let Some(other) = other {
        chart.add(&other.points, Source::Other, styles);
    }
    for series in &mut chart.series {
        series.points.sort_by(|a, b| a.x.total_cmp(&b.x));
    }
    chart
}

/// Replaces everything but letters and digits by single hyphens.
pub fn file_name(text: &str) -> String {
    let text = text.to_lowercase();
    let words = text.split(|c: char| !c.is_ascii_alphanumeric());
    let words: Vec<_> = words.filter(|word| !word.is_empty()).collect();
    words.join("-")
}
