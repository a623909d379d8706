//! Medians and quantiles of figures.

/// The figures, the least first.
pub fn sorted(figures: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let mut sorted: Vec<f64> = figures.into_iter().collect();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// Each value once, in the order in which they are first met.
pub fn distinct<T: PartialEq>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut out = Vec::new();
    for value in values {
        if !out.contains(&value) {
            out.push(value);
        }
    }
    out
}

/// The middle one, or the mean of the two in the middle.
pub fn median(runs: &[f64]) -> f64 {
    let sorted = sorted(runs.iter().copied());
    let n = sorted.len();
    (sorted[(n - 1) / 2] + sorted[n / 2]) / 2.0
}

/// The least of `sorted` that is not below `part` of its figures.
pub fn quantile(sorted: &[f64], part: f64) -> f64 {
    let place = (part * sorted.len() as f64).ceil() as usize;
    sorted[place.clamp(1, sorted.len()) - 1]
}

/// The least and the most.
pub fn ends(figures: &[f64]) -> [f64; 2] {
    let least = figures.iter().copied().fold(f64::INFINITY, f64::min);
    [
        least,
        figures.iter().copied().fold(f64::NEG_INFINITY, f64::max),
    ]
}

/// Figures of several runs, by what they are of. Each `K` stands where it was first met.
pub struct Samples<K>(Vec<(K, Vec<f64>)>);

impl<K: PartialEq> Samples<K> {
    /// None yet.
    pub fn new() -> Samples<K> {
        Samples(Vec::new())
    }

    /// Adds one run's figure.
    pub fn add(&mut self, of: K, figure: f64) {
        match self.0.iter_mut().find(|(known, _)| *known == of) {
            Some((_, runs)) => runs.push(figure),
            None => self.0.push((of, vec![figure])),
        }
    }

    /// The median of the runs, if there are any.
    pub fn median(&self, of: &K) -> Option<f64> {
        let (_, runs) = self.iter().find(|(known, _)| known == of)?;
        Some(median(runs))
    }

    /// All of them, with their runs.
    pub fn iter(&self) -> impl Iterator<Item = &(K, Vec<f64>)> {
        self.0.iter()
    }
}
