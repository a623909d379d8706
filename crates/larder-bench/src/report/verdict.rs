//! Who wins where, and whether that is more than noise.
//!
//! A difference is *within the noise* if the two spreads overlap. A spread goes from the least
//! figure of the runs to the greatest. A single run has no spread, so there is no verdict on it.

use crate::report::chart::{places, Chart, Series, Source, Spot};
use crate::result::Better;

/// The best at one place of a chart, and the next.
#[derive(Debug)]
pub struct Win<'a> {
    pub x: f64,
    pub best: (&'a Series, &'a Spot),
    pub next: (&'a Series, &'a Spot),
    pub certainty: Certainty,
}

/// Whether a difference is more than noise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certainty {
    /// The spreads don't overlap.
    Clear,
    /// The spreads overlap.
    Noise,
    /// One of them is a single run.
    OneRun,
}

impl Certainty {
    /// The certainty of the difference of two figures. A single run may be within the spread of the
    /// other figure, but is never clearly apart from it.
    pub fn of(a: &Spot, b: &Spot) -> Certainty {
        if a.low <= b.high && b.low <= a.high {
            Certainty::Noise
        } else if a.runs < 2 || b.runs < 2 {
            Certainty::OneRun
        } else {
            Certainty::Clear
        }
    }

    pub fn text(self) -> &'static str {
        match self {
            Certainty::Clear => "clear",
            Certainty::Noise => "within the noise",
            Certainty::OneRun => "one run: noise unknown",
        }
    }
}

/// How many times as good as the second figure the first is, if that is defined.
pub fn factor(better: Better, first: f64, second: f64) -> Option<f64> {
    let factor = match better {
        Better::Less => second / first,
        Better::More => first / second,
    };
    (factor.is_finite() && factor > 0.0).then_some(factor)
}

/// The best at every place with at least two figures of this run.
pub fn wins(chart: &Chart) -> Vec<Win<'_>> {
    let measured = || chart.of(Source::Run);
    let win = |x| match ranked(chart, measured(), x)[..] {
        [best, next, ..] => {
            let certainty = Certainty::of(best.1, next.1);
            Some(Win {
                x,
                best,
                next,
                certainty,
            })
        }
        _ => None,
    };
    places(measured()).into_iter().filter_map(win).collect()
}

/// The figures at a place, the best first. None if nothing was measured.
fn ranked<'a>(
    chart: &Chart,
    series: impl Iterator<Item = &'a Series>,
    x: f64,
) -> Vec<(&'a Series, &'a Spot)> {
    let all = series.filter_map(|one| Some((one, one.at(x)?)));
    let mut all: Vec<_> = all.filter(|_| chart.better.is_some()).collect();
    all.sort_by(|(_, a), (_, b)| match chart.better {
        Some(Better::More) => b.y.total_cmp(&a.y),
        _ => a.y.total_cmp(&b.y),
    });
    all
}

/// Larder's best beside the best of the others.
#[derive(Debug, Default, PartialEq)]
pub struct Standing {
    /// The number of places where Larder is clearly better.
    pub won: usize,
    /// The number of places without a clear difference.
    pub open: usize,
    /// The number of places where another is clearly better.
    pub lost: usize,
    /// How many times as good Larder is, at each place where that is defined.
    pub factors: Vec<f64>,
}

impl Standing {
    /// The number of places where both have figures.
    pub fn places(&self) -> usize {
        self.won + self.open + self.lost
    }

    /// Larder's standing in all of these charts.
    pub fn of<'a>(charts: impl IntoIterator<Item = &'a Chart>) -> Standing {
        let mut all = Standing::default();
        charts.into_iter().for_each(|chart| all.add(chart));
        all
    }

    fn add(&mut self, chart: &Chart) {
        for x in places(chart.of(Source::Run)) {
            let best = |ours| {
                let some = chart
                    .of(Source::Run)
                    .filter(move |one| one.style.ours == ours);
                ranked(chart, some, x).first().map(|(_, spot)| *spot)
            };
            let (Some(our), Some(their), Some(better)) = (best(true), best(false), chart.better)
            else {
                continue;
            };
            let factor = factor(better, our.y, their.y);
            match (Certainty::of(our, their), factor) {
                (Certainty::Clear, Some(f)) if f > 1.0 => self.won += 1,
                (Certainty::Clear, Some(_)) => self.lost += 1,
                _ => self.open += 1,
            }
            self.factors.extend(factor);
        }
    }
}
