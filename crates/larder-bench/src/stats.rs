//! Medians and quantiles of figures.

/// The figures in ascending order.
pub fn sorted(figures: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let mut sorted: Vec<f64> = figures.into_iter().collect();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// The different values, in the order in which they first appear.
pub fn distinct<T: PartialEq>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut out = Vec::new();
    for value in values {
        place(&mut out, value);
    }
    out
}

/// The position of a value, which is added at the end if it is new.
pub fn place<T: PartialEq>(known: &mut Vec<T>, value: T) -> usize {
    let found = known.iter().position(|known| *known == value);
    found.unwrap_or_else(|| {
        known.push(value);
        known.len() - 1
    })
}

/// The middle figure, or the mean of the two in the middle.
pub fn median(runs: &[f64]) -> f64 {
    let sorted = sorted(runs.iter().copied());
    let n = sorted.len();
    (sorted[(n - 1) / 2] + sorted[n / 2]) / 2.0
}

/// The smallest of the sorted figures that isn't less than this part of them.
pub fn quantile(sorted: &[f64], part: f64) -> f64 {
    let place = (part * sorted.len() as f64).ceil() as usize;
    sorted[place.clamp(1, sorted.len()) - 1]
}

/// The least figure and the greatest.
pub fn ends(figures: &[f64]) -> [f64; 2] {
    let figures = figures.iter().copied();
    let least = figures.clone().fold(f64::INFINITY, f64::min);
    [least, figures.fold(f64::NEG_INFINITY, f64::max)]
}
