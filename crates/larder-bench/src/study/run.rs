//! One run of a study: what was asked for, what was found, and where it goes.

use super::contender::Contender;
use super::{Extent, Options, Plan};
use crate::maps::peers::Only;
use crate::result::{self, Better, Failure, Plot, Point, Published, X};
use crate::stats::{ends, median};
use crate::table::facts;
use crate::time::clock::{self, Clock, Turns};
use crate::time::memory;
use crate::time::progress::Progress;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The figures of one point, run by run.
struct Figures {
    plot: String,
    series: String,
    x: X,
    unit: &'static str,
    better: Better,
    runs: Vec<f64>,
}

/// A study under way.
pub struct Run {
    /// How long it may take.
    pub scale: Extent,
    /// Keys and orders follow from it.
    pub seed: u64,
    /// Keys of tables, if others were asked for than the study's own.
    pub sizes: Vec<usize>,
    /// The most threads.
    pub threads: usize,
    /// Whether a structure that forgets keys takes part.
    pub plant: bool,
    /// Where the Erlang modules lie.
    pub root: PathBuf,
    /// Where results go.
    pub out: PathBuf,
    /// Bars.
    pub progress: Progress,
    runs: Option<usize>,
    only: Only,
    figures: Vec<Figures>,
    result: result::Study,
    clock: Clock,
    /// Whether a file of this run's is there already.
    written: bool,
}

/// Why something is left out.
const NO_TIME: &str = "not in the time that was given (--minutes)";

/// What a file says that was written on the way.
const UNDER_WAY: &str = "what came later: the study was broken off, or is under way";

impl Run {
    /// Begins a study: its name, its title and its source.
    pub fn begin([name, title, source]: [&str; 3], only: Only, out: &Path) -> Run {
        let (machine, commit, started) = origin();
        Run {
            scale: Extent::Quick,
            seed: 0,
            sizes: Vec::new(),
            threads: cores(),
            plant: false,
            root: PathBuf::from("."),
            out: out.to_owned(),
            progress: Progress::new(true),
            runs: None,
            only,
            figures: Vec::new(),
            clock: Clock::new(None, false),
            written: false,
            result: result::Study {
                study: name.into(),
                title: title.into(),
                source: source.into(),
                machine,
                commit,
                started,
                ..result::Study::default()
            },
        }
    }

    /// Begins one as it was asked for.
    pub fn new(study: &Plan, options: &Options, only: &[String], out: &Path) -> Run {
        let names = [study.name, study.title, study.source];
        let begun = Run::begin(names, Only(only.to_vec()), out);
        let mut run = Run {
            scale: options.scale(),
            seed: options.seed,
            sizes: options.sizes.iter().map(|&n| n as usize).collect(),
            threads: options.threads.unwrap_or_else(cores).max(1),
            plant: options.plant,
            root: options.root.clone(),
            progress: Progress::new(options.no_progress),
            runs: options.runs,
            clock: clock(study, options),
            ..begun
        };
        run.setting("scale", run.scale.name());
        run.setting("seed", run.seed);
        run.setting("threads", run.threads);
        if !only.is_empty() {
            run.setting("only", only.join(","));
        }
        if !run.sizes.is_empty() {
            let sizes: Vec<_> = run.sizes.iter().map(usize::to_string).collect();
            run.setting("sizes", sizes.join(","));
        }
        if let Some(minutes) = options.minutes {
            run.setting("minutes", minutes);
        }
        run
    }

    /// Says about how long it will take, where nobody limits it.
    pub fn announce(&mut self, seconds: f64) {
        let about = clock::said(seconds);
        self.setting("expected", &about);
        self.progress.say(&format!(
            "about {about} on a machine with two cores; figures are written on the way, `--minutes` sets an end"
        ));
    }

    /// Turns of a part that may last until this share of the study's time is over; see
    /// [`Run::turn`].
    pub fn turns(&self, runs: usize, share: f64) -> Turns {
        self.clock.turns(runs, share)
    }

    /// The number of the next turn of a part, if there is time for one. What was found so far is
    /// written before it begins; a part for which there is no time at all is said to be left out.
    ///
    /// # Errors
    /// Those of the files.
    pub fn turn(&mut self, part: &str, turns: &mut Turns) -> Result<Option<usize>, Failure> {
        self.save()?;
        let turn = self.clock.turn(turns);
        if turns.done().0 == 0 {
            self.skip(format!("{part}: {NO_TIME}"));
        }
        Ok(turn)
    }

    /// Measures the items in turns, each time beginning with another one, as long as there is time
    /// for another turn (see [`Run::turn`]). `each` is given the turn's seed, and takes so many
    /// steps.
    ///
    /// # Errors
    /// Those of `each`, and of the files.
    pub fn in_turns<T>(
        &mut self,
        part: &str,
        (runs, share): (usize, f64),
        (items, steps): (&[T], usize),
        mut each: impl FnMut(&mut Run, u64, &T) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut turns = self.turns(runs, share);
        while let Some(turn) = self.turn(part, &mut turns)? {
            self.begin_turn(part, turn, items.len() * steps);
            for item in rotated(items, turn) {
                each(self, self.seed + turn as u64, item)?;
            }
        }
        Ok(())
    }

    /// Shows that a turn of so many steps begins.
    pub fn begin_turn(&self, part: &str, turn: usize, steps: usize) {
        let what = format!("{}, {part}, run {}", self.result.study, turn + 1);
        self.progress.part(&what, steps);
    }

    /// How long each of so many may take, if this share of the study's time is to be enough; see
    /// [`Clock::patience`].
    pub fn patience(&self, share: f64, left: usize) -> Option<Duration> {
        self.clock.patience(share, left)
    }

    /// Whole seconds that are left, for a program that measures; nothing where there is no end.
    pub fn seconds_left(&self) -> String {
        let left = self.clock.patience(1.0, 1);
        left.map_or(String::new(), |left| left.as_secs().max(1).to_string())
    }

    /// Whether nothing at all is begun after the end.
    pub fn is_strict(&self) -> bool {
        self.clock.is_strict()
    }

    /// Whether the study, if it has an end, can be over by then with something that takes so many
    /// seconds.
    pub fn has_time(&self, seconds: f64) -> bool {
        self.clock.has_time(seconds)
    }

    /// Whether there is no time any more, in a part with this share, for something that takes so
    /// many seconds; if so, says what is left out.
    pub fn is_over(&mut self, what: &str, (share, seconds): (f64, f64)) -> bool {
        let over = self.clock.is_over(share, seconds);
        if over {
            self.skip(format!("{what}: {NO_TIME}"));
        }
        over
    }

    /// Writes what was found so far, so that a study which is broken off leaves that.
    ///
    /// # Errors
    /// Those of the files.
    pub fn save(&mut self) -> Result<(), Failure> {
        if self.figures.is_empty() {
            return Ok(());
        }
        let mut study = self.found();
        study.skipped.push(UNDER_WAY.into());
        study.write(&self.out)?;
        self.written = true;
        Ok(())
    }

    /// Takes back what was written on the way: a study that fails leaves nothing.
    pub fn take_back(&self) {
        if self.written {
            for kind in ["json", "csv"] {
                let name = format!("{}.{kind}", self.result.study);
                // What can't be removed is gone already.
                let _ = std::fs::remove_file(self.out.join(name));
            }
        }
    }

    /// How often things are measured, where the study would do it so often.
    pub fn runs(&mut self, own: usize) -> usize {
        let runs = self.runs.unwrap_or(own).max(1);
        self.setting("runs", runs);
        runs
    }

    /// The numbers of threads to measure with: 1, 2, 4 and so on up to the most, which is one of
    /// them.
    pub fn thread_counts(&self) -> Vec<usize> {
        let mut counts: Vec<_> = (0..)
            .map(|i| 1 << i)
            .take_while(|&n| n < self.threads)
            .collect();
        counts.push(self.threads);
        counts
    }

    /// Those that are wanted; and the planted one, which forgets keys, if it was asked for.
    ///
    /// # Errors
    /// If none is left.
    pub fn contenders(&self, all: Vec<Contender>) -> Result<Vec<Contender>, Failure> {
        let mut wanted: Vec<_> = all.into_iter().filter(|c| self.only.has(&c.name)).collect();
        if self.plant {
            let first = wanted
                .first()
                .cloned()
                .unwrap_or_else(Contender::default_set);
            wanted.push(first.planted());
        }
        if wanted.is_empty() {
            return Err(Failure::Impossible(
                "no structure of this study is called so (--only)".into(),
            ));
        }
        Ok(wanted)
    }

    /// Whether something by this name is wanted.
    pub fn wants(&self, name: &str) -> bool {
        self.only.has(name)
    }

    /// Names for peers' files.
    pub fn only(&self) -> Only {
        Only(self.only.0.clone())
    }

    /// Tells of an option's value.
    pub fn setting(&mut self, name: &str, value: impl ToString) {
        self.result
            .settings
            .insert(name.to_owned(), value.to_string());
    }

    /// Adds a plot.
    pub fn plot(
        &mut self,
        id: impl Into<String>,
        title: impl Into<String>,
        x: (&str, result::Scale),
        y: (&str, result::Scale),
        note: impl Into<String>,
    ) {
        self.result.plots.push(Plot {
            id: id.into(),
            title: title.into(),
            x_label: x.0.into(),
            y_label: y.0.into(),
            x_scale: x.1,
            y_scale: y.1,
            note: note.into(),
        });
    }

    /// Adds one run's figure to a point.
    pub fn figure(
        &mut self,
        plot: &str,
        series: &str,
        x: impl Into<X>,
        y: f64,
        unit: (&'static str, Better),
    ) {
        let x = x.into();
        let same = |f: &&mut Figures| f.plot == plot && f.series == series && f.x == x;
        match self.figures.iter_mut().find(same) {
            Some(figures) => figures.runs.push(y),
            None => self.figures.push(Figures {
                plot: plot.to_owned(),
                series: series.to_owned(),
                x,
                unit: unit.0,
                better: unit.1,
                runs: vec![y],
            }),
        }
    }

    /// The median of a point so far.
    pub fn median(&self, plot: &str, series: &str, x: &X) -> Option<f64> {
        self.figures
            .iter()
            .find(|f| f.plot == plot && f.series == series && f.x == *x)
            .map(|f| median(&f.runs))
    }

    /// Adds a figure that a paper gives.
    pub fn published(
        &mut self,
        plot: &str,
        series: &str,
        x: impl Into<X>,
        (value, unit): (f64, &str),
        source: &str,
    ) {
        self.result.published.push(Published {
            plot: plot.into(),
            series: series.into(),
            x: x.into(),
            value,
            unit: unit.into(),
            source: source.into(),
        });
    }

    /// Says that something is not measured, and why; once.
    pub fn skip(&mut self, what: String) {
        if !self.result.skipped.contains(&what) {
            self.progress.say(&format!("skipped: {what}"));
            self.result.skipped.push(what);
        }
    }

    /// Whether so many bytes can be had; if not, says so of `what`.
    pub fn fits(&mut self, what: &str, bytes: f64) -> bool {
        let free = memory::free();
        if bytes <= free {
            return true;
        }
        self.skip(format!(
            "{what}: would take about {:.1} GB of memory, {:.1} GB may be used",
            bytes / 1e9,
            free.max(0.0) / 1e9
        ));
        false
    }

    /// Says what was asserted; once.
    pub fn check(&mut self, what: &str) {
        if !self.result.checks.iter().any(|there| there == what) {
            self.result.checks.push(what.to_owned());
        }
    }

    /// Facts of the machine, the commit and the beginning, for a file of another kind.
    pub fn origin(&self) -> (&result::Study, f64) {
        (&self.result, self.clock.seconds())
    }

    /// Ends the study: the result, with plots that have nothing in them left out.
    pub fn end(self) -> result::Study {
        self.progress.end();
        self.found()
    }

    /// What was found so far.
    fn found(&self) -> result::Study {
        let mut result = self.result.clone();
        result
            .points
            .extend(self.figures.iter().map(Figures::point));
        let (points, published) = (&result.points, &result.published);
        result.plots.retain(|plot| {
            points.iter().any(|p| p.plot == plot.id) || published.iter().any(|p| p.plot == plot.id)
        });
        result.seconds = self.clock.seconds();
        result
    }
}

/// When a study ends: when it was asked to; a quick one when it says itself; else when all is done.
fn clock(study: &Plan, options: &Options) -> Clock {
    let own = (options.scale() == Extent::Quick).then_some(study.quick_seconds);
    let asked = options.minutes.map(|minutes| minutes * 60.0);
    let end = asked
        .or(own)
        .map(|s| Duration::from_secs_f64(s.clamp(0.0, 1e8)));
    Clock::new(end, asked.is_some())
}

impl Figures {
    fn point(&self) -> Point {
        let [low, high] = ends(&self.runs);
        Point {
            plot: self.plot.clone(),
            series: self.series.clone(),
            x: self.x.clone(),
            y: median(&self.runs),
            low,
            high,
            unit: self.unit.into(),
            runs: self.runs.len(),
            better: self.better,
        }
    }
}

/// The items, beginning with another one in each turn.
pub fn rotated<T>(items: &[T], turn: usize) -> impl Iterator<Item = &T> {
    let (last, first) = items.split_at(turn % items.len().max(1));
    first.iter().chain(last)
}

/// Processors that this program may use.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// A number as people read it: `54,000,000`.
pub fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The facts of the machine, by name; the commit; when this is, as `2026-11-22T06:00:00Z`.
fn origin() -> (BTreeMap<String, String>, String, String) {
    let facts = facts().into_iter();
    let mut facts: BTreeMap<_, _> = facts.map(|(name, fact)| (name.to_owned(), fact)).collect();
    let mut take = |name| facts.remove(name).unwrap_or_default();
    let (commit, date) = (take("commit"), take("date"));
    (facts, commit, date)
}

/// The points as a table on the terminal, plot by plot.
pub fn table(study: &result::Study) -> String {
    let mut text = String::new();
    for plot in &study.plots {
        let _ = writeln!(text, "\n{} ({})", plot.title, plot.y_label);
        for point in study.points.iter().filter(|p| p.plot == plot.id) {
            let _ = writeln!(
                text,
                "  {:36} {:>24} {:>14.3} {:12} [{:.3} .. {:.3}]",
                point.series,
                point.x.to_string(),
                point.y,
                point.unit,
                point.low,
                point.high
            );
        }
        for said in study.published.iter().filter(|p| p.plot == plot.id) {
            let _ = writeln!(
                text,
                "  {:36} {:>24} {:>14.3} {:12} published",
                said.series,
                said.x.to_string(),
                said.value,
                said.unit
            );
        }
    }
    for skipped in &study.skipped {
        let _ = writeln!(text, "skipped: {skipped}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }

    fn run(arguments: &[&str], only: &[String]) -> Run {
        let line = Line::parse_from([&["bench"], arguments].concat());
        Run::new(super::super::all()[0], &line.options, only, Path::new("."))
    }

    #[test]
    fn a_point_is_the_median_of_its_runs() {
        let mut run = run(&["x", "--tiny", "--threads", "6"], &[]);
        assert_eq!(run.thread_counts(), [1, 2, 4, 6]);
        for y in [5.0, 1.0, 3.0] {
            run.figure("p", "s", 7.0, y, ("ns", Better::Less));
        }
        run.figure("p", "s", 8.0, 9.0, ("ns", Better::Less));
        assert_eq!(run.median("p", "s", &7.0.into()), Some(3.0));
        let points = run.end().points;
        assert_eq!(points.len(), 2);
        assert_eq!(
            (points[0].low, points[0].high, points[0].runs),
            (1.0, 5.0, 3)
        );
    }

    #[test]
    fn numbers_are_grouped() {
        assert_eq!(
            [7, 700, 7_000, 54_000_000].map(grouped),
            ["7", "700", "7,000", "54,000,000"]
        );
    }

    #[test]
    fn what_can_not_fit_is_skipped_and_said() {
        let mut run = run(&["x"], &["set".to_owned()]);
        assert!(run.fits("little", 1e6));
        assert!(!run.fits("the world", 1e18));
        let result = run.end();
        assert_eq!(result.skipped.len(), 1);
        assert!(result.skipped[0].starts_with("the world: would take about 1000000000.0 GB"));
        assert_eq!(result.settings["only"], "set");
    }
}
