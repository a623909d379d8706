//! The place of a figure on an axis, and the places of the axis' ticks. `assets/plots.js` follows
//! the same rules.

/// An axis that was fitted to figures.
#[derive(Debug, PartialEq)]
pub struct Axis {
    log: bool,
    low: f64,
    high: f64,
    /// Where the lines are.
    pub ticks: Vec<f64>,
}

impl Axis {
    /// A logarithmic axis has all figures above zero between two ticks; a linear one goes from zero
    /// (or from the least, if that is below zero).
    pub fn fit(figures: impl Iterator<Item = f64> + Clone, log: bool) -> Axis {
        let figures = figures.filter(|figure| figure.is_finite() && (!log || *figure > 0.0));
        let least = figures.clone().fold(f64::INFINITY, f64::min);
        let most = figures.fold(f64::NEG_INFINITY, f64::max);
        match (least <= most, log) {
            (false, _) => Axis::linear(0.0, 1.0),
            (true, true) => Axis::logarithmic(least, most),
            (true, false) => Axis::linear(least.min(0.0), most),
        }
    }

    fn linear(low: f64, high: f64) -> Axis {
        let span = if high > low { high - low } else { 1.0 };
        // The power of ten below a fifth of the span. The step is one, two, five or ten of it, and
        // the smallest of them with at most six ticks.
        let rough = 10f64.powf((span / 5.0).log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0]
            .map(|factor| factor * rough)
            .into_iter()
            .find(|step| span / step <= 6.0)
            .unwrap_or(rough * 10.0);
        // The axis begins and ends at a tick.
        let (first, last) = ((low / step).floor(), ((low + span) / step).ceil());
        Axis {
            log: false,
            low: first * step,
            high: last * step,
            ticks: (first as i64..=last as i64)
                .map(|i| i as f64 * step)
                .collect(),
        }
    }

    fn logarithmic(least: f64, most: f64) -> Axis {
        let decades = (most / least).log10();
        // The fewer decades there are, the more ticks in each.
        let within: &[f64] = match () {
            () if decades < 1.0 => &[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0],
            () if decades < 3.0 => &[1.0, 2.0, 5.0],
            () => &[1.0],
        };
        // All candidates, from the decade below the least figure to the one above the most.
        let around = (least.log10().floor() as i32)..=(most.log10().ceil() as i32);
        let steps: Vec<f64> = around
            .flat_map(|ten| within.iter().map(move |factor| factor * 10f64.powi(ten)))
            .collect();
        // Figures that are powers of ten may be slightly off, since they were computed.
        let slack = 1.0 + 1e-9;
        // The axis begins at the last candidate below the figures, and ends at the first above
        // them.
        let low = *steps
            .iter()
            .rfind(|step| **step <= least * slack)
            .unwrap_or(&least);
        let mut high = *steps
            .iter()
            .find(|step| **step * slack >= most)
            .unwrap_or(&most);
        // All figures are equal. The axis still needs an extent.
        if high <= low {
            high = low * 2.0;
        }
        let ticks = steps
            .into_iter()
            .filter(|step| (low..=high * slack).contains(step));
        Axis {
            log: true,
            low,
            high,
            ticks: ticks.collect(),
        }
    }

    /// From 0 (the axis begins) to 1 (it ends); nothing for what has no place on a logarithmic
    /// axis.
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
        assert_eq!(
            fit(&[700.0, 54e6], true).ticks,
            [1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8]
        );
        let axis = fit(&[13.0, 87.0], true);
        assert_eq!(
            (axis.ticks[0], *axis.ticks.last().expect("ticks")),
            (10.0, 100.0)
        );
        assert_eq!(fit(&[1.0, 2.0, 0.0], true).at(0.0), None);
        for figures in [&[3.0, 3.0][..], &[0.02, 0.9], &[1.0, 1000.0], &[7.0, 7.1]] {
            let axis = fit(figures, true);
            let places: Vec<f64> = figures.iter().filter_map(|f| axis.at(*f)).collect();
            assert!(
                places.iter().all(|at| (-1e-6..=1.000001).contains(at)),
                "{axis:?}"
            );
            assert!(axis.ticks.len() >= 2, "{axis:?}");
        }
    }

    #[test]
    fn nothing_at_all_still_has_an_axis() {
        assert_eq!(fit(&[], true).ticks.len(), 6);
        assert_eq!(fit(&[0.0, -1.0], true).at(0.5), Some(0.5));
        assert_eq!(fit(&[0.0], false).at(0.0), Some(0.0));
    }
}
