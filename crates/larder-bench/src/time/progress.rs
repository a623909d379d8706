//! Bars on the standard error: what is being measured, how much of it is done, and how long the
//! rest will take.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::time::Duration;

/// The bar of a bench or a study.
pub struct Progress {
    bar: ProgressBar,
    /// Without bars, each part is a line.
    plain: bool,
}

impl Progress {
    /// A bar where the standard error is a terminal; lines elsewhere, or if `plain` is asked for.
    pub fn new(plain: bool) -> Progress {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(4));
        // A bar that is drawn to a file or a pipe would fill it with control characters.
        let plain = plain || bar.is_hidden();
        if plain {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        } else {
            bar.enable_steady_tick(Duration::from_millis(500));
        }
        Progress { bar, plain }
    }

    /// Begins a part with a number of steps.
    pub fn part(&self, what: &str, steps: usize) {
        let style = "{prefix} [{bar:30}] {pos}/{len} {elapsed} (about {eta} left) {msg}";
        let style =
            ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar());
        self.bar.set_style(style.progress_chars("=> "));
        // The estimate of the rest is that of this part. Steps of another part took another time.
        self.bar.reset();
        self.bar.set_length(steps as u64);
        self.bar.set_prefix(what.to_owned());
        if self.plain {
            eprintln!("  {what}: {steps} steps");
        }
    }

    /// Shows the name of the current step.
    pub fn at(&self, what: &str) {
        self.bar.set_message(what.to_owned());
    }

    /// Measures a structure, in one step.
    pub fn measure<T>(&self, what: &str, work: impl FnOnce() -> T) -> T {
        self.at(what);
        let done = work();
        self.step();
        done
    }

    /// A step is done.
    pub fn step(&self) {
        self.bar.inc(1);
    }

    /// A line that stays.
    pub fn say(&self, what: &str) {
        if self.plain {
            eprintln!("  {what}");
        } else {
            self.bar.println(format!("  {what}"));
        }
    }

    /// Ends the bar.
    pub fn end(&self) {
        self.bar.finish_and_clear();
    }
}
