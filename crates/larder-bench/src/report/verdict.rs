//! Who wins where, and whether that is more than noise.
//!
//! A difference is *within the noise* if the two spreads overlap. A spread goes from the least
//! figure of the runs to the greatest. A single run has no spread, so there is no verdict on it.

use crate::report::chart::{places, Chart, Series, Source, Spot};
use crate::result::Better;

/// A figure and the series that has it.
pub type Measured<'a> = (&'a Series, &'a Spot);

/// Two figures of one place.
#[derive(Debug)]
pub struct Pair<'a> {
    pub first: Measured<'a>,
    pub second: Measured<'a>,
    /// How many times as good as the second one the first is, if that is defined.
    pub factor: Option<f64>,
    pub certainty: Certainty,
}

/// Whether a difference is more than noise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certainty {
    /// The spreads don't overlap.
    Clear,
    /// The spreads overlap.
    Noise,
    /// One of them is a single run. It may be within the spread of the other, but is never apart.
    OneRun,
}

impl Certainty {
    /// The words of the page for it.
    pub fn text(self) -> &'static str {
        match self {
            Certainty::Clear => "clear",
            Certainty::Noise => "within the noise",
            Certainty::OneRun => "one run: noise unknown",
        }
    }
}

impl<'a> Pair<'a> {
    /// Compares two figures of a chart, unless nothing of it was measured.
    pub fn of(chart: &Chart, first: Measured<'a>, second: Measured<'a>) -> Option<Pair<'a>> {
        let (a, b) = (first.1, second.1);
        let factor = match chart.better? {
            Better::Less => b.y / a.y,
            Better::More => a.y / b.y,
        };
        let certainty = match a.low <= b.high && b.low <= a.high {
            true => Certainty::Noise,
            false if a.runs < 2 || b.runs < 2 => Certainty::OneRun,
            false => Certainty::Clear,
        };
        let factor = (factor.is_finite() && factor > 0.0).then_some(factor);
        Some(Pair {
            first,
            second,
            factor,
            certainty,
        })
    }
}

/// The best at every place with at least two figures of this run, beside the next.
pub fn wins(chart: &Chart) -> Vec<Pair<'_>> {
    let win = |x| match ranked(chart, x, |_| true)[..] {
        [best, next, ..] => Pair::of(chart, best, next),
        _ => None,
    };
    let places = places(chart.of(Source::Run)).into_iter();
    places.filter_map(win).collect()
}

/// The figures of some series of this run at a place, the best first.
fn ranked(chart: &Chart, x: f64, which: impl Fn(&Series) -> bool) -> Vec<Measured<'_>> {
    let series = chart.of(Source::Run).filter(|one| which(one));
    let mut all: Vec<_> = series.filter_map(|one| Some((one, one.at(x)?))).collect();
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
            let [ours, theirs] = [true, false].map(|ours| {
                let ranked = ranked(chart, x, |one| one.style.ours == ours);
                ranked.first().copied()
            });
            let both = ours.zip(theirs);
            if let Some(pair) = both.and_then(|(our, their)| Pair::of(chart, our, their)) {
                match (pair.certainty, pair.factor) {
                    (Certainty::Clear, Some(factor)) if factor > 1.0 => self.won += 1,
                    (Certainty::Clear, Some(_)) => self.lost += 1,
                    _ => self.open += 1,
                }
                self.factors.extend(pair.factor);
            }
        }
    }
}
