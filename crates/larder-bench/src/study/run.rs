//! One run of a study: what was asked for, what was found, and where it goes.

use super::contender::{listed, others, Contender};
use super::{Extent, Plan, StudyOptions};
use crate::maps::peers::Only;
use crate::result::{self, Better, Failure, Outcome, Plot, Point, Published, X};
use crate::stats::{ends, median, Samples};
use crate::table::facts;
use crate::time::clock::{self, Clock};
use crate::time::memory;
use crate::time::progress::Progress;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where a figure belongs: the id of its plot, its series, its place.
type Place = (String, String, X);

/// A study under way.
pub struct Run {
    /// What was asked for.
    pub options: StudyOptions,
    /// How long it may take.
    pub scale: Extent,
    /// The most threads.
    pub threads: usize,
    /// Where results go.
    pub out: PathBuf,
    /// Bars.
    pub progress: Progress,
    /// The time that there is.
    pub clock: Clock,
    /// Which structures are wanted.
    pub only: Only,
    /// The plots, each with the unit of its figures and which way they are better.
    plots: Vec<(Plot, String, Better)>,
    figures: Samples<Place>,
    result: result::Study,
    /// Whether a file of this run's is there already.
    written: bool,
}

/// The axis, unit and better way of a throughput.
const RATE: &str = "millions of operations a second, log | M op/s, more";

/// Why something is left out.
const NO_TIME: &str = "not in the time that was given (--minutes)";

/// What a file says that was written on the way.
const UNDER_WAY: &str = "what came later: the study was broken off, or is under way";

impl Run {
    /// Begins a study, its name, its title and its source, as it was asked for.
    pub fn begin(
        [name, title, source]: [&str; 3],
        options: &StudyOptions,
        clock: Clock,
        only: &Only,
        out: &Path,
    ) -> Run {
        Run {
            options: options.clone(),
            scale: options.scale(),
            threads: options.threads.unwrap_or_else(cores).max(1),
            out: out.to_owned(),
            progress: Progress::new(options.no_progress),
            clock,
            only: only.clone(),
            plots: Vec::new(),
            figures: Samples::new(),
            written: false,
            result: result::Study {
                study: name.into(),
                title: title.into(),
                source: source.into(),
                origin: origin(),
                ..result::Study::default()
            },
        }
    }

    /// Begins one of the published studies.
    pub fn new(study: &Plan, options: &StudyOptions, only: &Only, out: &Path) -> Run {
        let names = [study.name, study.title, study.source];
        let mut run = Run::begin(names, options, clock(study, options), only, out);
        // What was asked for is part of the result, so that it can be repeated.
        run.setting("scale", run.scale.name());
        run.setting("seed", run.options.seed);
        run.setting("threads", run.threads);
        if !only.0.is_empty() {
            run.setting("only", only.0.join(","));
        }
        if !run.options.sizes.is_empty() {
            let sizes: Vec<_> = run.options.sizes.iter().map(usize::to_string).collect();
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

    /// Measures the items, which have names for those who wait, in turns, each time beginning with
    /// another one, as long as there is time for another turn. `each` is given the turn's seed.
    /// What was found so far is written before each turn. A part for which there is no time at all
    /// is said to be left out.
    pub fn in_turns<T>(
        &mut self,
        part: &str,
        (runs, share): (usize, f64),
        items: &[(String, T)],
        mut each: impl FnMut(&mut Run, u64, &T) -> Outcome,
    ) -> Outcome {
        let mut turns = self.clock.turns(runs, share);
        // Turns are outside: what disturbs the machine for a while disturbs all items and not one.
        loop {
            self.save()?;
            let turn = self.clock.turn(&mut turns);
            // No turn of this part was done, so nothing of it is measured.
            if turns.done().0 == 0 {
                self.skip(format!("{part}: {NO_TIME}"));
            }
            let Some(turn) = turn else {
                return Ok(());
            };
            let what = format!("{}, {part}, run {}", self.result.study, turn + 1);
            self.progress.part(&what, items.len());
            // Each turn begins with another item, since the first one of a turn may be colder than
            // the others.
            for (name, item) in rotated(items, turn) {
                if self.is_over(&format!("{part}, from {name} on"), (share, 0.0)) {
                    break;
                }
                self.progress.at(name);
                each(self, self.options.seed + turn as u64, item)?;
                self.progress.step();
            }
        }
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
    pub fn save(&mut self) -> Outcome {
        if self.figures.iter().next().is_none() {
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
        let runs = self.options.runs.unwrap_or(own).max(1);
        self.setting("runs", runs);
        runs
    }

    /// The numbers of threads to measure with: 1, 2, 4 and so on up to the most, which is one of
    /// them.
    pub fn thread_counts(&self) -> Vec<usize> {
        // The powers of two below the maximum, and then the maximum.
        let mut counts: Vec<_> = (0..)
            .map(|i| 1 << i)
            .take_while(|&n| n < self.threads)
            .collect();
        counts.push(self.threads);
        counts
    }

    /// Those of a study's own table that are wanted, all other structures, and `more`; and the
    /// planted one, which forgets keys, if it was asked for.
    pub fn contenders(&self, own: &str, more: Vec<Contender>) -> Outcome<Vec<Contender>> {
        let own = listed(own);
        let others = others(&own);
        // A contender that forgets keys, to see that the study notices.
        let planted = || Contender::default_set().planted();
        let all = [own, others, more].concat();
        self.wanted(all, |contender| &contender.name, planted)
    }

    /// Those of `all` whose names are wanted, and the one that `planted` makes, if that was asked
    /// for.
    ///
    /// # Errors
    /// If there is none.
    pub fn wanted<T>(
        &self,
        mut all: Vec<T>,
        name: impl Fn(&T) -> &str,
        planted: impl FnOnce() -> T,
    ) -> Outcome<Vec<T>> {
        all.retain(|one| self.only.has(name(one)));
        all.extend(self.options.plant.then(planted));
        match all.is_empty() {
            true => Err(Failure::Impossible(
                "nothing of this study is called so (--only)".into(),
            )),
            false => Ok(all),
        }
    }

    /// Tells of an option's value.
    pub fn setting(&mut self, name: &str, value: impl ToString) {
        self.result
            .settings
            .insert(name.to_owned(), value.to_string());
    }

    /// Adds plots: a table as [`Plot::said`] has it, a line each, in which `{NAME}` stands for what
    /// is given with that name, and `{rate}` for the axis of a throughput.
    pub fn plots(&mut self, table: &str, values: &[(&str, &str)]) {
        let mut table = table.replace("{rate}", RATE);
        for (name, value) in values {
            table = table.replace(&format!("{{{name}}}"), value);
        }
        // Each line describes a plot. Empty lines only separate them.
        let lines = table.lines().filter(|line| !line.trim().is_empty());
        self.plots.extend(lines.map(Plot::said));
    }

    /// The plot of this id, with the unit of its figures and which way they are better.
    fn find(&self, id: &str) -> Option<&(Plot, String, Better)> {
        self.plots.iter().find(|(plot, ..)| plot.id == id)
    }

    fn plot(&self, id: &str) -> &(Plot, String, Better) {
        let found = self.find(id);
        found.unwrap_or_else(|| panic!("the study has no plot {id}"))
    }

    /// How x is laid out in a plot, if there is such a plot.
    pub fn x_scale(&self, id: &str) -> Option<result::Scale> {
        self.find(id).map(|(plot, ..)| plot.x_scale)
    }

    /// Adds one run's figure to a point. Runs come in turns, so a point's figures are collected
    /// over the whole study.
    pub fn figure(&mut self, plot: &str, series: &str, x: impl Into<X>, y: f64) {
        let place = (plot.to_owned(), series.to_owned(), x.into());
        self.figures.add(place, y);
    }

    /// The median of a point so far.
    pub fn median(&self, plot: &str, series: &str, x: impl Into<X>) -> Option<f64> {
        let place = (plot.to_owned(), series.to_owned(), x.into());
        self.figures.median(&place)
    }

    /// Adds a figure that a paper gives.
    pub fn published(
        &mut self,
        plot: &str,
        series: &str,
        x: impl Into<X>,
        value: f64,
        source: &str,
    ) {
        // A published figure has the unit of its plot, or it couldn't be compared.
        let (_, unit, _) = self.plot(plot);
        self.result.published.push(Published {
            plot: plot.into(),
            series: series.into(),
            x: x.into(),
            value,
            unit: unit.clone(),
            source: source.into(),
        });
    }

    /// Says that something is not measured, and why; once.
    pub fn skip(&mut self, what: String) {
        // Each turn comes here again, but the reader needs to know it once.
        if !self.result.skipped.contains(&what) {
            self.progress.say(&format!("skipped: {what}"));
            self.result.skipped.push(what);
        }
    }

    /// Whether there is memory for `bytes`. If not, says so of `what`, once.
    pub fn fits(&mut self, what: &str, bytes: f64) -> bool {
        let Some(lack) = memory::lack(bytes) else {
            return true;
        };
        // Say it once for each thing that doesn't fit, whatever is free at the time.
        let begin = format!("{what}: {}", memory::WOULD_TAKE);
        if !self
            .result
            .skipped
            .iter()
            .any(|text| text.starts_with(&begin))
        {
            self.skip(format!("{what}: {lack}"));
        }
        false
    }

    /// Says what was asserted; once.
    pub fn check(&mut self, what: &str) {
        if !self.result.checks.iter().any(|there| there == what) {
            self.result.checks.push(what.to_owned());
        }
    }

    /// What it is measured on, and since when.
    pub fn origin(&self) -> result::Origin {
        self.result.origin.clone()
    }

    /// Ends the study: the result, with plots that have nothing in them left out.
    pub fn end(self) -> result::Study {
        self.progress.end();
        self.found()
    }

    /// What was found so far.
    fn found(&self) -> result::Study {
        // The figures of the runs become a median with a spread.
        let points: Vec<_> = self.figures.iter().map(|f| self.point(f)).collect();
        let mut plots: Vec<_> = self.plots.iter().map(|(plot, ..)| plot.clone()).collect();
        let published = &self.result.published;
        // A plot without points isn't shown.
        plots.retain(|plot| {
            points.iter().any(|p| p.plot == plot.id) || published.iter().any(|p| p.plot == plot.id)
        });
        result::Study {
            points,
            plots,
            seconds: self.clock.seconds(),
            ..self.result.clone()
        }
    }

    fn point(&self, ((id, series, x), runs): &(Place, Vec<f64>)) -> Point {
        let (_, unit, better) = self.plot(id);
        // The point is the median of its runs. The bar goes from the smallest to the largest.
        let [low, high] = ends(runs);
        Point {
            plot: id.clone(),
            series: series.clone(),
            x: x.clone(),
            y: median(runs),
            low,
            high,
            unit: unit.clone(),
            runs: runs.len(),
            better: *better,
        }
    }
}

/// When a study ends: when it was asked to; a quick one when it says itself; else when all is done.
fn clock(study: &Plan, options: &StudyOptions) -> Clock {
    let own = (options.scale() == Extent::Quick).then_some(study.quick_seconds);
    let asked = options.minutes.map(|minutes| minutes * 60.0);
    let end = asked
        .or(own)
        .map(|s| Duration::from_secs_f64(s.clamp(0.0, 1e8)));
    Clock::new(end, asked.is_some())
}

/// Every item with every number of threads, named for those who wait.
pub fn with_threads<T: Copy>(
    items: impl IntoIterator<Item = T>,
    name: impl Fn(T) -> String,
    counts: &[usize],
) -> Vec<(String, (T, usize))> {
    let mut all = Vec::new();
    for item in items {
        let named = |&threads| {
            let of_threads = format!("{}, {threads} threads", name(item));
            (of_threads, (item, threads))
        };
        all.extend(counts.iter().map(named));
    }
    all
}

/// The items, beginning with another one in each turn.
fn rotated<T>(items: &[T], turn: usize) -> impl Iterator<Item = &T> {
    let (last, first) = items.split_at(turn % items.len().max(1));
    first.iter().chain(last)
}

/// Processors that this program may use.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn origin() -> result::Origin {
    let facts = facts().into_iter();
    let mut machine: BTreeMap<_, _> = facts.map(|(name, fact)| (name.to_owned(), fact)).collect();
    let mut take = |name| machine.remove(name).unwrap_or_default();
    let (commit, started) = (take("commit"), take("date"));
    result::Origin {
        machine,
        commit,
        started,
    }
}

/// The points as a table on the terminal, plot by plot.
pub fn table(study: &result::Study) -> String {
    let line = |series: &str, x: &X, y: f64, unit: &str, rest: String| {
        let x = x.to_string();
        format!("  {series:36} {x:>24} {y:>14.3} {unit:12} {rest}\n")
    };
    let mut text = String::new();
    // Ours first, and then the published figures of the same plot.
    for plot in &study.plots {
        text += &format!("\n{} ({})\n", plot.title, plot.y_label);
        for p in study.points.iter().filter(|p| p.plot == plot.id) {
            let spread = format!("[{:.3} .. {:.3}]", p.low, p.high);
            text += &line(&p.series, &p.x, p.y, &p.unit, spread);
        }
        for p in study.published.iter().filter(|p| p.plot == plot.id) {
            text += &line(&p.series, &p.x, p.value, &p.unit, "published".into());
        }
    }
    for skipped in &study.skipped {
        text += &format!("skipped: {skipped}\n");
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
        options: StudyOptions,
    }

    fn run(arguments: &[&str], only: Only) -> Run {
        let line = Line::parse_from([&["bench"], arguments].concat());
        Run::new(super::super::all()[0], &line.options, &only, Path::new("."))
    }

    #[test]
    fn a_point_is_the_median_of_its_runs() {
        let mut run = run(&["x", "--tiny", "--threads", "6"], Only(Vec::new()));
        assert_eq!(run.thread_counts(), [1, 2, 4, 6]);
        run.plots(
            "p | of {what} | x, log | y, log | ns, less | ",
            &[("what", "it")],
        );
        for y in [5.0, 1.0, 3.0] {
            run.figure("p", "s", 7.0, y);
        }
        run.figure("p", "s", 8.0, 9.0);
        assert_eq!(run.median("p", "s", 7.0), Some(3.0));
        let result::Study { points, plots, .. } = run.end();
        assert_eq!((plots[0].title.as_str(), points.len()), ("of it", 2));
        assert_eq!(
            (points[0].low, points[0].high, points[0].runs),
            (1.0, 5.0, 3)
        );
    }

    #[test]
    fn what_can_not_fit_is_skipped_and_said() {
        let mut run = run(&["x"], Only(vec!["set".to_owned()]));
        assert!(run.fits("little", 1e6));
        assert!(!run.fits("the world", 1e18));
        let result = run.end();
        assert_eq!(result.skipped.len(), 1);
        assert!(result.skipped[0].starts_with("the world: would take about 1000000000.0 GB"));
        assert_eq!(result.settings["only"], "set");
    }
}
