//! A contention-adapting tree that adapts: its whole history as one drawing, on which the page's
//! script moves a "now" and draws the bases of that moment.
//!
//! ```text
//!   keys ──────────────────────▶   bases ─▶
//!   time │        │   ·                │·
//!    │   │   │    │   a split: a       │ ·      a border between two bases is a line from the
//!    ▼   │   │        join: ○          │  ·     split that made it to the join that removed it
//! ```

use crate::report::number::{figure, short};
use crate::report::scale::Axis;
use crate::report::study::facts;
use crate::report::svg::{self, WIDTH};
use crate::report::tables::table;
use crate::result::{Event, EventKind, Recording};
use maud::{html, Markup};
use serde::Serialize;
use serde_json::json;

/// The ends of the history across, and down. The script draws the moment above it.
const ACROSS: (f64, f64) = (64.0, 610.0);
const DOWN: (f64, f64) = (30.0, 470.0);
const HEIGHT: f64 = 510.0;
/// The ends of the curve of the number of bases.
const CURVE: (f64, f64) = (640.0, 742.0);

/// A border between two bases: its key, and from when to when it existed.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Border {
    key: f64,
    from: f64,
    to: f64,
}

/// The recording with the position of the history.
pub fn data(tree: &Recording) -> impl Serialize + '_ {
    let ((left, right), (top, bottom)) = (ACROSS, DOWN);
    let frame =
        json!({"left": left, "right": right, "top": top, "bottom": bottom, "end": end(tree)});
    json!({"recording": tree, "frame": frame})
}

/// Milliseconds from top to bottom.
fn end(tree: &Recording) -> f64 {
    let events = tree.events.iter().map(|event| event.at);
    let times = events.chain(tree.samples.iter().map(|sample| sample.at));
    times.fold(1e-3, f64::max)
}

fn across([first, last]: [f64; 2], key: f64) -> f64 {
    // A tree without a span has all of its keys at the left.
    let part = (key - first) / (last - first).max(f64::MIN_POSITIVE);
    ACROSS.0 + part.clamp(0.0, 1.0) * (ACROSS.1 - ACROSS.0)
}

/// The position of a time, of which there are so many milliseconds.
fn down(end: f64, at: f64) -> f64 {
    DOWN.0 + at / end * (DOWN.1 - DOWN.0)
}

/// The part of the page that plays back the recording of a tree.
pub fn section(tree: &Recording) -> Markup {
    let count = |kind| tree.events.iter().filter(|e| e.event == kind).count();
    html! {
        section #catree {
            h2 { "A tree that adapts" }
            p { "A contention-adapting tree keeps its keys in " em { "bases" } ", ordinary trees with a lock each, under a few routing nodes. Where writers wait for each other a base is split, so that "
                "they get a lock each; where nobody waits two bases are joined, so that scans take fewer locks. What follows was recorded while threads worked on one, and is played back slowly." }
            p { (tree.title) ": " (tree.note) "." }
            p { (count(EventKind::Split)) " splits and " (count(EventKind::Join)) " joins in " (figure(end(tree))) " ms, " (tree.threads) " threads." }
            figure #tree data-tree {
                div.controls role="group" aria-label="Animation" data-tree-controls {}
                div.canvas #tree-now {}
                p #tree-text aria-live="polite" {}
                div.canvas { svg class="plot" #tree-history viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-label=(label(tree)) { (body(tree)) } }
                figcaption { "Above: the bases at one moment, each as wide as its keys and as deep as the routes above it; the fuller a box, the nearer its lock's statistic is to a split (dotted: quiet, near a join); triangles are threads. "
                    "Below: the whole run, time going down. A line is a border between two bases, from the split that made it to the join that took it away. "
                    "Keys: Space plays and stops, Left and Right step, Home and End jump." }
            }
            details { summary { "Every split and join" } (events(tree)) }
            details { summary { "Machine and settings" } (facts("Machine", &tree.origin.machine)) (facts("Settings", &tree.settings)) }
        }
    }
}

/// The history as a file.
pub fn file(tree: &Recording) -> String {
    svg::file_of(&tree.title, &label(tree), 26.0, -6, HEIGHT, body(tree))
}

fn label(tree: &Recording) -> String {
    let title = &tree.title;
    format!("{title} Borders between bases over time, and the number of bases. All events are in the table below.")
}

fn body(tree: &Recording) -> Markup {
    let (end, borders) = (end(tree), borders(tree));
    let (x, y) = (|key| across(tree.keys, key), |at| down(end, at));
    let times = Axis::fit([0.0, end].into_iter(), false).ticks.into_iter();
    // Borders that exist at the end were not removed by a join.
    let made = borders.iter().filter(|b| b.from > 0.0);
    let removed = borders.iter().filter(|b| b.to < end);
    let line = |b: &Border| format!("M{:.1},{:.1}V{:.1}", x(b.key), y(b.from), y(b.to));
    let lines = borders.iter().map(line);
    let splits = made.map(|b| format!("M{:.1},{:.1}h4v4h-4Z", x(b.key) - 2.0, y(b.from) - 2.0));
    let circle = "a3,3 0 1,0 6,0a3,3 0 1,0 -6,0Z";
    let joins = removed.map(|b| format!("M{:.1},{:.1}{circle}", x(b.key) - 3.0, y(b.to)));
    let line_at = |at: f64| format!("M{},{:.1}H{}", ACROSS.0, y(at), CURVE.1);
    html! {
        @for tick in times.filter(|tick| *tick <= end) {
            path.grid d=(line_at(tick)) {}
            text.tick x=(ACROSS.0 - 8.0) y=(format!("{:.1}", y(tick))) dy="4" text-anchor="end" { (short(tick)) }
        }
        path.border d=(lines.collect::<String>()) {}
        path.split d=(splits.collect::<String>()) {}
        path.join d=(joins.collect::<String>()) {}
        @for phase in &tree.phases {
            path.phase d=(line_at(phase.at)) {}
            text.said x=(ACROSS.0 + 6.0) y=(format!("{:.1}", y(phase.at) + 13.0)) { (phase.text) }
        }
        path.axis d=(format!("M{},{}V{}H{}", ACROSS.0, DOWN.0, DOWN.1, ACROSS.1)) {}
        text.label x=((ACROSS.0 + ACROSS.1) / 2.0) y=(DOWN.0 - 12.0) text-anchor="middle" { "keys, " (short(tree.keys[0])) " to " (short(tree.keys[1])) }
        text.label transform=(format!("translate(14,{}) rotate(-90)", (DOWN.0 + DOWN.1) / 2.0)) text-anchor="middle" { "milliseconds, going down" }
        (curve(tree, end))
        text.tick x=(ACROSS.0) y=(HEIGHT - 12.0) { "■ split   ○ join   │ border between two bases" }
    }
}

/// The number of bases over time, beside the history.
fn curve(tree: &Recording, end: f64) -> Markup {
    let most = tree.samples.iter().map(|s| s.bases.len()).max();
    let most = most.unwrap_or(1);
    let points = tree.samples.iter().map(|sample| {
        let x = CURVE.0 + sample.bases.len() as f64 / most as f64 * (CURVE.1 - CURVE.0);
        format!("{x:.1},{:.1}", down(end, sample.at))
    });
    let points: Vec<String> = points.collect();
    html! {
        path.axis d=(format!("M{},{}V{}", CURVE.0, DOWN.0, DOWN.1)) {}
        @if !points.is_empty() { path.border d=(format!("M{}", points.join("L"))) {} }
        text.label x=((CURVE.0 + CURVE.1) / 2.0) y=(DOWN.0 - 12.0) text-anchor="middle" { "bases, up to " (most) }
    }
}

/// The borders that exist at a time, and those that existed before.
#[derive(Default)]
struct Borders {
    open: Vec<Border>,
    done: Vec<Border>,
}

impl Borders {
    fn begin(&mut self, key: f64, at: f64) {
        if self.open.iter().all(|border| border.key != key) {
            let (from, to) = (at, at);
            self.open.push(Border { key, from, to });
        }
    }

    fn end(&mut self, at: f64, ends: impl Fn(f64) -> bool) {
        let ended = self.open.extract_if(.., |border| ends(border.key));
        self.done
            .extend(ended.map(|border| Border { to: at, ..border }));
    }

    fn event(&mut self, event: &Event) {
        let [first, last] = event.keys;
        match (event.event, event.at_key) {
            (EventKind::Split, Some(key)) => self.begin(key, event.at),
            (EventKind::Split, None) => {}
            (EventKind::Join, _) => self.end(event.at, |key| first < key && key < last),
        }
    }
}

/// The borders of a recording. The order of events of several threads is uncertain, so each sample
/// corrects the borders.
fn borders(tree: &Recording) -> Vec<Border> {
    let (mut borders, mut events) = (Borders::default(), tree.events.iter().peekable());
    for sample in &tree.samples {
        while let Some(event) = events.next_if(|event| event.at <= sample.at) {
            borders.event(event);
        }
        // The first base has no border on its left.
        let keys: Vec<f64> = sample.bases.iter().skip(1).map(|base| base.from).collect();
        borders.end(sample.at, |key| !keys.contains(&key));
        for key in keys {
            borders.begin(key, sample.at);
        }
    }
    events.for_each(|event| borders.event(event));
    borders.end(end(tree), |_| true);
    borders.done
}

fn events(tree: &Recording) -> Markup {
    let row = |event: &Event| {
        let kind = ["split", "join"][event.event as usize];
        let becomes: Vec<_> = event.becomes.iter().map(u64::to_string).collect();
        html! { tr {
            th scope="row" { (figure(event.at)) } td.text { (kind) } td { (event.base) } td { @if let Some(with) = event.with { (with) } }
            td.text { (becomes.join(", ")) }
            td { (figure(event.keys[0])) } td { (figure(event.keys[1])) } td { @if let Some(key) = event.at_key { (figure(key)) } }
            td { (event.count) } td { (event.entries) } td { (event.thread) }
        } }
    };
    let headings =
        "ms, event:, base, with, becomes:, first key, last key, at key, statistic, entries, thread";
    let rows = tree.events.iter().map(row);
    table("Splits and joins, by time", headings.split(", "), rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two splits and a join.
    fn tree() -> Recording {
        let text = include_str!("../../tests/program/report/tree.json");
        serde_json::from_str(text).expect("a recording")
    }

    fn border(key: f64, from: f64, to: f64) -> Border {
        Border { key, from, to }
    }

    #[test]
    fn a_border_exists_from_its_split_to_its_join() {
        let right = [border(5e5, 1.7, 5.1), border(25e4, 3.4, 5.6)];
        assert_eq!(borders(&tree()), right);
    }

    #[test]
    fn samples_correct_the_borders() {
        let mut tree = tree();
        tree.events.clear();
        let right = [border(5e5, 2.2, 5.6), border(25e4, 3.9, 5.6)];
        assert_eq!(borders(&tree), right);
    }
}
