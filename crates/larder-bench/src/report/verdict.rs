//! Who wins where, and whether that is more than noise.
//!
//! A difference is *within the noise* if the two spreads overlap. A spread goes from the smallest
//! figure of the runs to the largest. A single run has no spread, so there is no verdict on it.

use crate::report::chart::{Chart, Series, Spot};
use crate::result::Better;

/// The best at one place of a chart.
#[derive(Debug)]
pub struct Win<'a> {
    /// Where.
    pub x: f64,
    /// Who.
    pub best: (&'a Series, &'a Spot),
    /// Who comes next.
    pub next: (&'a Series, &'a Spot),
    /// How sure that is.
    pub sure: Sure,
}

/// How sure a difference is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sure {
    /// The spreads are apart.
    Clear,
    /// The spreads overlap.
    Noise,
    /// There was but one run of one of them.
    OneRun,
}

impl Sure {
    /// In words.
    pub fn text(self) -> &'static str {
        match self {
            Sure::Clear => "clear",
            Sure::Noise => "within the noise",
            Sure::OneRun => "one run: noise unknown",
        }
    }
}

/// How sure the difference of two figures is.
pub fn sure(a: &Spot, b: &Spot) -> Sure {
    // Spreads that touch overlap. A figure of one run has a spread of one point. So it may be
    // within the spread of another, but it is never clearly apart from it.
    if a.low <= b.high && b.low <= a.high {
        Sure::Noise
    } else if a.runs < 2 || b.runs < 2 {
        Sure::OneRun
    } else {
        Sure::Clear
    }
}

/// How many times as good as the second figure the first is. Nothing if that can't be said.
pub fn factor(better: Better, first: f64, second: f64) -> Option<f64> {
    let factor = match better {
        Better::Less => second / first,
        Better::More => first / second,
    };
    (factor.is_finite() && factor > 0.0).then_some(factor)
}

/// The best at every place that has at least two of this run's figures.
pub fn wins(chart: &Chart) -> Vec<Win<'_>> {
    let Some(better) = chart.better else {
        return Vec::new();
    };
    let places = chart.places(chart.measured());
    let win = |x| {
        let ranked = ranked(chart.measured(), x, better);
        // With fewer than two there is nobody to be better than.
        let [best, next, ..] = ranked[..] else {
            return None;
        };
        Some(Win {
            x,
            best,
            next,
            sure: sure(best.1, next.1),
        })
    };
    places.into_iter().filter_map(win).collect()
}

/// The figures at a place, the best first.
fn ranked<'a>(
    series: impl Iterator<Item = &'a Series>,
    x: f64,
    better: Better,
) -> Vec<(&'a Series, &'a Spot)> {
    let mut all: Vec<_> = series
        .filter_map(|one| one.at(x).map(|spot| (one, spot)))
        .collect();
    // Which way is better depends on the unit: less time, or more operations.
    all.sort_by(|(_, a), (_, b)| match better {
        Better::Less => a.y.total_cmp(&b.y),
        Better::More => b.y.total_cmp(&a.y),
    });
    all
}

/// Larder's best beside the best of the others, place by place.
#[derive(Debug, Default, PartialEq)]
pub struct Standing {
    /// Where Larder is clearly better.
    pub won: usize,
    /// Where the difference is noise, or nobody knows.
    pub open: usize,
    /// Where another is clearly better.
    pub lost: usize,
    /// How many times as good Larder is as the best other, at each place where that can be said.
    pub factors: Vec<f64>,
}

impl Standing {
    /// At how many places both have figures.
    pub fn places(&self) -> usize {
        self.won + self.open + self.lost
    }

    /// How Larder stands in all of these charts. All zero if it is alone there, or not there.
    pub fn of<'a>(charts: impl IntoIterator<Item = &'a Chart>) -> Standing {
        let mut all = Standing::default();
        charts.into_iter().for_each(|chart| all.add(chart));
        all
    }

    fn add(&mut self, chart: &Chart) {
        let Some(better) = chart.better else {
            return;
        };
        for x in chart.places(chart.measured()) {
            // The best of ours and the best of the others at this place.
            let best = |ours| {
                let some = chart.measured().filter(move |one| one.style.ours == ours);
                ranked(some, x, better).first().map(|(_, spot)| *spot)
            };
            let (Some(our), Some(their)) = (best(true), best(false)) else {
                continue;
            };
            let factor = factor(better, our.y, their.y);
            match (sure(our, their), factor) {
                // Only clear differences count as won or lost.
                (Sure::Clear, Some(f)) if f > 1.0 => self.won += 1,
                (Sure::Clear, Some(_)) => self.lost += 1,
                _ => self.open += 1,
            }
            self.factors.extend(factor);
        }
    }
}
