//! One run of a study: its options, its time limit, and the figures that become its result.

use super::contender::{listed, others, Contender};
use super::{Extent, Plan, StudyOptions};
use crate::maps::peers::Filter;
use crate::result::{ensure, Outcome, Plot, Point, Published, Study, X};
use crate::stats::{ends, median};
use crate::table::origin;
use crate::time::clock::{readable, Clock};
use crate::time::memory;
use crate::time::progress::Progress;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The number of turns of a part, and the share of the study's time until its end.
pub type Turns = (usize, f64);

/// The place of a figure: the id of its plot, its series, its x.
type Place = (String, String, X);

pub struct Run {
    pub options: StudyOptions,
    pub extent: Extent,
    pub threads: usize,
    pub out: PathBuf,
    pub progress: Progress,
    pub clock: Clock,
    pub filter: Filter,
    /// The turn of the part that is being measured, from 0.
    turn: usize,
    /// The figures of the runs at each place, in the order in which places first appear.
    figures: Vec<(Place, Vec<f64>)>,
    /// The result, save its points.
    result: Study,
    /// Whether the results of this run have been written.
    written: bool,
}

/// The y axis, the unit and the direction of a throughput.
const RATE: &str = "millions of operations a second, log | M op/s, more";

const NO_TIME: &str = "not in the time that was given (--minutes)";

/// The note of results that are written before the end.
const UNDER_WAY: &str = "what came later: the study was broken off, or is under way";

impl Run {
    /// Begins a run of a study with a name, a title and a source.
    pub fn begin(
        [name, title, source]: [&str; 3],
        options: &StudyOptions,
        clock: Clock,
        filter: &Filter,
        out: &Path,
    ) -> Run {
        Run {
            options: options.clone(),
            extent: options.extent(),
            threads: options.threads.unwrap_or_else(cores).max(1),
            out: out.to_owned(),
            progress: Progress::new(options.no_progress),
            clock,
            filter: filter.clone(),
            turn: 0,
            figures: Vec::new(),
            result: Study {
                study: name.into(),
                title: title.into(),
                source: source.into(),
                origin: origin(),
                ..Study::default()
            },
            written: false,
        }
    }

    /// Begins a run of a published study. Its options are part of the result.
    pub fn new(plan: &Plan, options: &StudyOptions, filter: &Filter, out: &Path) -> Run {
        let seconds = options.seconds(plan).map(|s| s.clamp(0.0, 1e8));
        let limit = seconds.map(Duration::from_secs_f64);
        let clock = Clock::new(limit, options.minutes.is_some());
        let names = [plan.name, plan.title, plan.source];
        let mut run = Run::begin(names, options, clock, filter, out);
        run.setting("scale", run.extent.name());
        run.setting("seed", run.options.seed);
        run.setting("threads", run.threads);
        if !filter.0.is_empty() {
            run.setting("only", filter.0.join(","));
        }
        if !options.sizes.is_empty() {
            let sizes: Vec<_> = options.sizes.iter().map(usize::to_string).collect();
            run.setting("sizes", sizes.join(","));
        }
        if let Some(minutes) = options.minutes {
            run.setting("minutes", minutes);
        }
        if limit.is_none() && run.extent == Extent::Full {
            let about = readable(plan.full_hours * 3600.0);
            run.setting("expected", &about);
            run.progress.say(&format!("about {about} on a machine with two cores; figures are written on the way, `--minutes` sets an end"));
        }
        run
    }

    /// Measures the items of a part in turns, as long as there is time for another turn. Writes the
    /// results before each turn. `measure` gets the seed of the turn.
    pub fn in_turns<N: AsRef<str>, T>(
        &mut self,
        part: &str,
        (runs, share): Turns,
        items: &[(N, T)],
        mut measure: impl FnMut(&mut Run, u64, &T) -> Outcome,
    ) -> Outcome {
        let mut last = 0.0;
        // Turns are the outer loop: what disturbs the machine for a while disturbs all items.
        for turn in 0..runs {
            self.save()?;
            if !self.clock.allows(turn, share, last) {
                if turn == 0 {
                    self.skip(format!("{part}: {NO_TIME}"));
                }
                break;
            }
            self.turn = turn;
            let begin = self.clock.seconds();
            let name = format!("{}, {part}, run {}", self.result.study, turn + 1);
            self.progress.part(&name, items.len());
            // Each turn begins with another item, since the first one may be colder.
            let (before, after) = items.split_at(turn % items.len().max(1));
            for (name, item) in after.iter().chain(before) {
                let name = name.as_ref();
                if self.is_over(&format!("{part}, from {name} on"), share, 0.0) {
                    break;
                }
                self.progress.at(name);
                measure(self, self.options.seed + turn as u64, item)?;
                self.progress.step();
            }
            last = self.clock.seconds() - begin;
        }
        self.turn = 0;
        self.save()
    }

    /// Measures contenders with numbers of threads, in turns. `measure` returns a figure of the
    /// plot.
    pub fn by_threads(
        &mut self,
        plot: &str,
        turns: Turns,
        contenders: &[Contender],
        counts: &[usize],
        measure: impl Fn(&Contender, usize, u64) -> Outcome<f64>,
    ) -> Outcome {
        let all = with_threads(contenders, Contender::name, counts);
        self.in_turns(plot, turns, &all, |run, seed, &(contender, threads)| {
            let figure = measure(contender, threads, seed)?;
            run.figure(plot, &contender.name, threads, figure);
            Ok(())
        })
    }

    /// Whether there is no time for work of so many seconds in a part with this share. If so, the
    /// work is skipped. What a later turn leaves out was measured in the first one, or was skipped
    /// there.
    pub fn is_over(&mut self, what: &str, share: f64, seconds: f64) -> bool {
        let over = self.clock.is_over(share, seconds);
        if over && self.turn == 0 {
            self.skip(format!("{what}: {NO_TIME}"));
        }
        over
    }

    /// Writes the results so far. They remain if the study is interrupted.
    pub fn save(&mut self) -> Outcome {
        if !self.figures.is_empty() {
            let mut study = self.study();
            study.skipped.push(UNDER_WAY.into());
            study.write(&self.out)?;
            self.written = true;
        }
        Ok(())
    }

    /// Removes the results that this run has written.
    pub fn remove_results(&self) {
        if self.written {
            for kind in ["json", "csv"] {
                let name = format!("{}.{kind}", self.result.study);
                // A file that can't be removed is gone already.
                let _ = std::fs::remove_file(self.out.join(name));
            }
        }
    }

    /// The number of runs: the user's, or the study's own.
    pub fn runs(&mut self, usual: usize) -> usize {
        let runs = self.options.runs.unwrap_or(usual).max(1);
        self.setting("runs", runs);
        runs
    }

    /// Numbers of threads to measure with: the powers of two below the most, and the most.
    pub fn thread_counts(&self) -> Vec<usize> {
        let powers = (0..).map(|i| 1 << i).take_while(|&n| n < self.threads);
        powers.chain([self.threads]).collect()
    }

    /// The contenders of a study's own list, all other structures, and `more`, as far as the filter
    /// accepts them.
    pub fn contenders(&self, known: &str, more: Vec<Contender>) -> Outcome<Vec<Contender>> {
        let known = listed(known);
        let others = others(&known);
        let all = [known, others, more].concat();
        self.chosen(all, |one| &one.name, Contender::planted)
    }

    /// The contenders of a list that the filter accepts.
    pub fn accepted(&self, lines: &str) -> Vec<Contender> {
        let mut all = listed(lines);
        all.retain(|contender| self.filter.accepts(&contender.name));
        all
    }

    /// The items that the filter accepts, and the one with a planted fault if it was requested. It
    /// is an error if there is none.
    pub fn chosen<T>(
        &self,
        mut all: Vec<T>,
        name: impl Fn(&T) -> &str,
        planted: impl FnOnce() -> T,
    ) -> Outcome<Vec<T>> {
        all.retain(|one| self.filter.accepts(name(one)));
        all.extend(self.options.plant.then(planted));
        ensure!(!all.is_empty(); "nothing of this study is called so (--only)");
        Ok(all)
    }

    pub fn setting(&mut self, name: &str, value: impl ToString) {
        let (name, value) = (name.to_owned(), value.to_string());
        self.result.settings.insert(name, value);
    }

    /// Adds the plots of a table, a line each (see [`Plot::parse`]). `{NAME}` stands for the value
    /// of that name, and `{rate}` for the axis of a throughput.
    pub fn plots(&mut self, table: &str, values: &[(&str, &str)]) {
        let mut table = table.replace("{rate}", RATE);
        for (name, value) in values {
            table = table.replace(&format!("{{{name}}}"), value);
        }
        let lines = table.lines().filter(|line| !line.trim().is_empty());
        self.result.plots.extend(lines.map(Plot::parse));
    }

    pub fn find_plot(&self, id: &str) -> Option<&Plot> {
        self.result.plots.iter().find(|plot| plot.id == id)
    }

    fn plot(&self, id: &str) -> &Plot {
        let plot = self.find_plot(id);
        plot.unwrap_or_else(|| panic!("the study has no plot {id}"))
    }

    /// Adds the figure of one run to a point.
    pub fn figure(&mut self, plot: &str, series: &str, x: impl Into<X>, y: f64) {
        let place = (plot.to_owned(), series.to_owned(), x.into());
        match self.figures.iter_mut().find(|(known, _)| *known == place) {
            Some((_, runs)) => runs.push(y),
            None => self.figures.push((place, vec![y])),
        }
    }

    /// The median of a point so far.
    pub fn median(&self, plot: &str, series: &str, x: impl Into<X>) -> Option<f64> {
        let place = (plot.to_owned(), series.to_owned(), x.into());
        let (_, runs) = self.figures.iter().find(|(known, _)| *known == place)?;
        Some(median(runs))
    }

    /// Adds a figure of a paper, in the unit of its plot.
    pub fn published(
        &mut self,
        plot: &str,
        series: &str,
        x: impl Into<X>,
        value: f64,
        source: &str,
    ) {
        self.result.published.push(Published {
            plot: plot.into(),
            series: series.into(),
            x: x.into(),
            value,
            unit: self.plot(plot).unit.clone(),
            source: source.into(),
        });
    }

    /// Records that something isn't measured, and why. Each turn may repeat it.
    pub fn skip(&mut self, what: String) {
        if !self.result.skipped.contains(&what) {
            self.progress.say(&format!("skipped: {what}"));
            self.result.skipped.push(what);
        }
    }

    /// Whether there is memory for `bytes`. If not, `what` is skipped.
    pub fn fits(&mut self, what: &str, bytes: f64) -> bool {
        let Some(lack) = memory::lack(bytes) else {
            return true;
        };
        // The amount of free memory changes. Each thing is recorded once.
        let begin = format!("{what}: {}", memory::WOULD_TAKE);
        let mut skipped = self.result.skipped.iter();
        if !skipped.any(|text| text.starts_with(&begin)) {
            self.skip(format!("{what}: {lack}"));
        }
        false
    }

    /// Records what was asserted.
    pub fn check(&mut self, what: &str) {
        if !self.result.checks.iter().any(|known| known == what) {
            self.result.checks.push(what.to_owned());
        }
    }

    pub fn end(self) -> Study {
        self.progress.end();
        self.study()
    }

    /// The results so far. Plots without figures are left out.
    pub fn study(&self) -> Study {
        let point = |((id, series, x), runs): &(Place, Vec<f64>)| {
            let (plot, [low, high]) = (self.plot(id), ends(runs));
            let (x, figure) = (x.clone(), [median(runs), low, high]);
            Point::new(id, series, x, figure, runs.len(), &plot.unit, plot.better)
        };
        let mut study = self.result.clone();
        study.points = self.figures.iter().map(point).collect();
        study.seconds = self.clock.seconds();
        let plots = study.points.iter().map(|point| &point.plot);
        let plots = plots.chain(study.published.iter().map(|figure| &figure.plot));
        let plots: HashSet<_> = plots.collect();
        study.plots.retain(|plot| plots.contains(&plot.id));
        study
    }
}

/// Every item with every number of threads, with names for the progress bar.
pub fn with_threads<T: Copy>(
    items: impl IntoIterator<Item = T>,
    name: impl Fn(T) -> String,
    counts: &[usize],
) -> Vec<(String, (T, usize))> {
    let all = items.into_iter().flat_map(|item| {
        let name = name(item);
        counts
            .iter()
            .map(move |&threads| (format!("{name}, {threads} threads"), (item, threads)))
    });
    all.collect()
}

pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The points as a table for the terminal, plot by plot.
pub fn table(study: &Study) -> String {
    let line = |series: &str, x: &X, y: f64, unit: &str, rest: String| {
        let x = x.to_string();
        format!("  {series:36} {x:>24} {y:>14.3} {unit:12} {rest}\n")
    };
    let mut text = String::new();
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

    fn run(threads: Option<usize>, only: &[&str]) -> Run {
        let options = StudyOptions {
            threads,
            no_progress: true,
            ..StudyOptions::default()
        };
        let filter = Filter(only.iter().map(|part| part.to_string()).collect());
        Run::new(super::super::ALL[0], &options, &filter, Path::new("."))
    }

    #[test]
    fn a_point_is_the_median_of_its_runs() {
        let mut run = run(Some(6), &[]);
        assert_eq!(run.thread_counts(), [1, 2, 4, 6]);
        let line = "p | of {what} | x, log | y, log | ns, less | ";
        run.plots(line, &[("what", "it")]);
        for y in [5.0, 1.0, 3.0] {
            run.figure("p", "s", 7.0, y);
        }
        run.figure("p", "s", 8.0, 9.0);
        assert_eq!(run.median("p", "s", 7.0), Some(3.0));
        let Study { points, plots, .. } = run.end();
        assert_eq!((plots[0].title.as_str(), points.len()), ("of it", 2));
        let first = &points[0];
        assert_eq!((first.low, first.high, first.runs), (1.0, 5.0, 3));
    }

    /// What a later turn has no time for was measured, so it isn't among what was not.
    #[test]
    fn a_later_turn_skips_nothing() {
        let mut run = run(None, &[]);
        let items = [(String::from("item"), ())];
        let measured = run.in_turns("part", (2, 1.0), &items, |run, turn, ()| {
            let turn = turn - run.options.seed;
            // The clock of a user whose time is over.
            let clock = Clock::new(Some(Duration::ZERO), true);
            let clock = std::mem::replace(&mut run.clock, clock);
            assert!(run.is_over(&format!("turn {turn}"), 1.0, 0.0));
            run.clock = clock;
            Ok(())
        });
        measured.expect("nothing is wrong");
        assert_eq!(run.end().skipped, [format!("turn 0: {NO_TIME}")]);
    }

    #[test]
    fn a_lack_of_memory_is_recorded() {
        let mut run = run(None, &["set"]);
        assert!(run.fits("little", 1e6));
        assert!(!run.fits("the world", 1e18));
        let study = run.end();
        assert_eq!(study.skipped.len(), 1);
        assert!(study.skipped[0].starts_with("the world: would take about 1000000000.0 GB"));
        assert_eq!(study.settings["only"], "set");
    }
}
