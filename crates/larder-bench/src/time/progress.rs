//! Bars on the standard error: what is being measured, how much of it is done, and how long the
//! rest will take.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::time::Duration;

/// The bar of a bench or a study.
pub struct Progress {
    bar: ProgressBar,
    /// Lines instead of a bar.
    plain: bool,
}

impl Progress {
    /// A bar if the standard error is a terminal, unless `plain` requests lines.
    pub fn new(plain: bool) -> Progress {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(4));
        // In a file, a bar would consist of control characters.
        let plain = plain || bar.is_hidden();
        if plain {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        } else {
            bar.enable_steady_tick(Duration::from_millis(500));
        }
        Progress { bar, plain }
    }

    /// Begins a part with a number of steps. The remaining time is estimated for each part alone,
    /// since steps of different parts take different times.
    pub fn part(&self, name: &str, steps: usize) {
        let style = "{prefix} [{bar:30}] {pos}/{len} {elapsed} (about {eta} left) {msg}";
        let style = ProgressStyle::with_template(style);
        let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
        self.bar.set_style(style.progress_chars("=> "));
        self.bar.reset();
        self.bar.set_length(steps as u64);
        self.bar.set_prefix(name.to_owned());
        if self.plain {
            eprintln!("  {name}: {steps} steps");
        }
    }

    /// Shows the name of the current step.
    pub fn at(&self, name: &str) {
        self.bar.set_message(name.to_owned());
    }

    pub fn step(&self) {
        self.bar.inc(1);
    }

    pub fn say(&self, line: &str) {
        if self.plain {
            eprintln!("  {line}");
        } else {
            self.bar.println(format!("  {line}"));
        }
    }

    pub fn end(&self) {
        self.bar.finish_and_clear();
    }
}
