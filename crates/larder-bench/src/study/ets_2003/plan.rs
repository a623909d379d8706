//! Decides what is measured at which size. The limits are memory and time, as estimated from the
//! smaller sizes.

use super::SET;
use crate::study::contender::Contender;
use crate::study::run::Run;
use crate::study::Extent;
use crate::table::grouped;

/// What tables took so far, from which the next size is estimated.
#[derive(Default)]
pub struct Taken {
    /// Name, bytes a row, seconds a row in the whole course, and at how many keys that was.
    seen: Vec<(String, f64, f64, usize)>,
}

impl Taken {
    /// Bytes a row, before anything is known.
    const UNKNOWN: f64 = 150.0;
    /// What a table takes while it doubles what it has, and what allocators keep.
    pub const PEAK: f64 = 1.7;
    /// Sizes up to this are measured in any case; larger ones while there is time, if hours were
    /// not asked for.
    const ALWAYS: usize = 70_000;

    /// Bytes a row, as measured, or a guess.
    pub fn bytes(&self, name: &str) -> f64 {
        let known = self.seen.iter().find(|(of, ..)| of == name);
        known.map_or(Self::UNKNOWN, |(_, bytes, ..)| *bytes)
    }

    /// Seconds of the whole course with `n` keys. A row takes longer in a larger table: about half
    /// as long again for each factor of ten.
    pub fn seconds(&self, name: &str, n: usize) -> f64 {
        let known = self.seen.iter().find(|(of, ..)| of == name);
        known.map_or(0.0, |(_, _, seconds, keys)| {
            let tens = (n as f64 / *keys as f64).log10().max(0.0);
            n as f64 * seconds * (1.0 + 0.5 * tens)
        })
    }

    /// Records what a course took.
    pub fn note(&mut self, name: &str, bytes: f64, seconds: f64, keys: usize) {
        self.seen.retain(|(of, ..)| of != name);
        self.seen.push((name.to_owned(), bytes, seconds, keys));
    }
}

/// The contenders for which there is memory and time at a size. The others are reported as skipped.
pub fn fitting<'c>(
    run: &mut Run,
    taken: &Taken,
    n: usize,
    all: &'c [Contender],
) -> Vec<&'c Contender> {
    let (mut planned, mut late) = (0.0, Vec::new());
    let mut fit = Vec::new();
    // In order, so that the most important ones get the time that there is.
    for contender in all {
        let name = &contender.name;
        let what = format!("{} keys, {name}", grouped(n));
        let seconds = taken.seconds(name, n);
        // Without `set` there is nothing to be relative to.
        let patient = run.scale == Extent::Full || name == SET || n <= Taken::ALWAYS;
        // In a quick study, a large size is left out if it would take longer than there is time.
        if !patient && !run.clock.has_time(planned + seconds) {
            late.push(format!("{name} ({seconds:.0} s)"));
            continue;
        }
        // A structure that grows needs more memory for a moment than it has afterwards.
        let bytes = n as f64 * taken.bytes(name) * Taken::PEAK;
        if !run.is_over(&what, (1.0, seconds)) && run.fits(&what, bytes) {
            planned += seconds;
            fit.push(contender);
        }
    }
    if !late.is_empty() {
        let late = late.join(", ");
        run.skip(format!(
            "{} keys: no time in a quick study for {late}",
            grouped(n)
        ));
    }
    fit
}

/// Keys.
pub const SIZES: [usize; 8] = [
    700, 7_000, 70_000, 700_000, 7_000_000, 14_000_000, 21_000_000, 54_000_000,
];

/// Rows that small tables go through the course with, in a full study.
pub const ROUNDS_FULL: usize = 400_000;

/// Large sizes are measured once.
pub fn turns_of(runs: usize, n: usize) -> usize {
    if n > 7_000_000 {
        1
    } else {
        runs
    }
}

/// The sizes that were requested, or as many as the scale has. Those that are left out are
/// reported.
pub fn sizes(run: &mut Run) -> Vec<usize> {
    if !run.options.sizes.is_empty() {
        return run.options.sizes.clone();
    }
    let most = run.scale.pick(2, 4, SIZES.len());
    if most < SIZES.len() {
        let more: Vec<_> = SIZES[most..].iter().map(|&n| grouped(n)).collect();
        run.skip(format!(
            "{} keys: asked for by --full alone",
            more.join("; ")
        ));
    }
    SIZES[..most].to_vec()
}
