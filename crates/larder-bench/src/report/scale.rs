//! The positions of figures on an axis, and its ticks. `assets/plots.js` follows the same rules.

use crate::stats::sorted;

/// An axis that was fitted to figures.
#[derive(Debug, PartialEq)]
pub struct Axis {
    log: bool,
    low: f64,
    high: f64,
    pub ticks: Vec<f64>,
}

impl Axis {
    /// A logarithmic axis has all positive figures between two ticks. A linear axis begins at zero,
    /// or at the least figure if it is negative.
    pub fn fit(figures: impl Iterator<Item = f64>, log: bool) -> Axis {
        let figures = sorted(figures.filter(|y| y.is_finite() && (!log || *y > 0.0)));
        match (&figures[..], log) {
            ([], _) => Axis::linear(0.0, 1.0),
            ([least, ..], true) => Axis::logarithmic(*least, figures[figures.len() - 1]),
            ([least, ..], false) => Axis::linear(least.min(0.0), figures[figures.len() - 1]),
        }
    }

    fn linear(low: f64, high: f64) -> Axis {
        let span = if high > low { high - low } else { 1.0 };
        // The least of 1, 2, 5 and 10 times a power of ten that gives at most six steps.
        let power = 10f64.powf((span / 5.0).log10().floor());
        let steps = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power);
        let step = steps.into_iter().find(|step| span / step <= 6.0);
        let step = step.unwrap_or(power * 10.0);
        let (first, last) = ((low / step).floor(), ((low + span) / step).ceil());
        let ticks = (first as i64..=last as i64).map(|i| i as f64 * step);
        Axis {
            log: false,
            low: first * step,
            high: last * step,
            ticks: ticks.collect(),
        }
    }

    fn logarithmic(least: f64, most: f64) -> Axis {
        // The fewer decades there are, the more ticks has each.
        let factors: &[f64] = match (most / least).log10() {
            decades if decades < 1.0 => &[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0],
            decades if decades < 3.0 => &[1.0, 2.0, 5.0],
            _ => &[1.0],
        };
        let decades = (least.log10().floor() as i32)..=(most.log10().ceil() as i32);
        let steps = decades.flat_map(|ten| factors.iter().map(move |f| f * 10f64.powi(ten)));
        let mut ticks: Vec<f64> = steps.collect();
        // Computed powers of ten may be slightly off.
        let slack = 1.0 + 1e-9;
        let low = ticks.iter().rfind(|tick| **tick <= least * slack);
        let low = *low.unwrap_or(&least);
        let high = ticks.iter().find(|tick| **tick * slack >= most);
        let high = match *high.unwrap_or(&most) {
            high if high > low => high,
            // All figures are equal.
            _ => low * 2.0,
        };
        ticks.retain(|tick| (low..=high * slack).contains(tick));
        Axis {
            log: true,
            low,
            high,
            ticks,
        }
    }

    /// From 0 at the beginning of the axis to 1 at its end. `None` for a figure that a logarithmic
    /// axis doesn't have.
    pub fn at(&self, figure: f64) -> Option<f64> {
        if self.log {
            (figure > 0.0).then(|| (figure / self.low).ln() / (self.high / self.low).ln())
        } else {
            Some((figure - self.low) / (self.high - self.low))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fit(figures: &[f64], log: bool) -> Axis {
        Axis::fit(figures.iter().copied(), log)
    }

    #[test]
    fn a_linear_axis_begins_at_zero() {
        let axis = fit(&[13.0, 87.0], false);
        assert_eq!(axis.ticks, [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
        assert_eq!(axis.at(50.0), Some(0.5));
        assert!(fit(&[-3.0, 4.0], false).at(-3.0).expect("linear") >= 0.0);
    }

    #[test]
    fn a_logarithmic_axis_has_all_between_two_ticks() {
        let ticks = fit(&[700.0, 54e6], true).ticks;
        assert_eq!(ticks, [1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8]);
        let axis = fit(&[13.0, 87.0], true);
        assert_eq!((axis.low, axis.high, axis.at(0.0)), (10.0, 100.0, None));
        for figures in [&[3.0, 3.0][..], &[0.02, 0.9], &[1.0, 1000.0], &[7.0, 7.1]] {
            let axis = fit(figures, true);
            let mut places = figures.iter().filter_map(|f| axis.at(*f));
            let all_within = places.all(|at| (-1e-6..=1.000001).contains(&at));
            assert!(all_within && axis.ticks.len() >= 2, "{axis:?}");
        }
    }

    #[test]
    fn without_figures_there_is_an_axis() {
        assert_eq!(fit(&[], true).ticks.len(), 6);
        assert_eq!(fit(&[0.0, -1.0], true).at(0.5), Some(0.5));
        assert_eq!(fit(&[0.0], false).at(0.0), Some(0.0));
    }
}
