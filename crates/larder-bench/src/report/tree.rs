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
use crate::report::svg::WIDTH;
use crate::report::tables::table;
use crate::result::{Event, EventKind, Recording};
use maud::{html, Markup};
use serde::Serialize;

/// Where the history lies; the script draws the moment above it on the same keys.
#[derive(Debug, Serialize)]
struct HistoryFrame {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    /// Milliseconds from top to bottom.
    end: f64,
}

const FRAME: HistoryFrame = HistoryFrame {
    left: 64.0,
    right: 610.0,
    top: 30.0,
    bottom: 470.0,
    end: 1.0,
};
const HEIGHT: f64 = 510.0;
/// Where the curve of the number of bases lies.
const CURVE: (f64, f64) = (640.0, 742.0);

/// A border between two bases: its key, and from when to when it was there.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Border {
    key: f64,
    from: f64,
    to: f64,
}

/// What the script needs.
#[derive(Serialize)]
pub struct TreeData<'a> {
    recording: &'a Recording,
    frame: HistoryFrame,
}

/// The recording with its frame, for the script.
pub fn data(tree: &Recording) -> TreeData<'_> {
    TreeData {
        recording: tree,
        frame: frame(tree),
    }
}

fn frame(tree: &Recording) -> HistoryFrame {
    let last = |times: &mut dyn Iterator<Item = f64>| times.fold(0.0, f64::max);
    let events = last(&mut tree.events.iter().map(|event| event.at));
    let samples = last(&mut tree.samples.iter().map(|sample| sample.at));
    HistoryFrame {
        end: events.max(samples).max(1e-3),
        ..FRAME
    }
}

/// The part of the page.
pub fn section(tree: &Recording) -> Markup {
    let count = |what| tree.events.iter().filter(|e| e.event == what).count();
    html! {
        section #catree {
            h2 { "A tree that adapts" }
            p { "A contention-adapting tree keeps its keys in " em { "bases" } ", ordinary trees with a lock each, under a few routing nodes. Where writers wait for each other a base is split, so that "
                "they get a lock each; where nobody waits two bases are joined, so that scans take fewer locks. What follows was recorded while threads worked on one, and is played back slowly." }
            p { (tree.title) ": " (tree.note) "." }
            p { (count(EventKind::Split)) " splits and " (count(EventKind::Join)) " joins in " (figure(frame(tree).end)) " ms, " (tree.threads) " threads." }
            figure #tree data-tree {
                div.controls role="group" aria-label="Animation" data-tree-controls {}
                div.canvas #tree-now {}
                p #tree-text aria-live="polite" {}
                div.canvas { (history(tree)) }
                figcaption { "Above: the bases at one moment, each as wide as its keys and as deep as the routes above it; the fuller a box, the nearer its lock's statistic is to a split (dotted: quiet, near a join); triangles are threads. "
                    "Below: the whole run, time going down. A line is a border between two bases, from the split that made it to the join that took it away. "
                    "Keys: Space plays and stops, Left and Right step, Home and End jump." }
            }
            details { summary { "Every split and join" } (events(tree)) }
            details { summary { "Machine and settings" } (crate::report::study::facts("Machine", &tree.origin.machine)) (crate::report::study::facts("Settings", &tree.settings)) }
        }
    }
}

/// The history as a file of its own.
pub fn file(tree: &Recording) -> String {
    crate::report::svg::file_of(&tree.title, &heard(tree), (26.0, -6, HEIGHT), body(tree))
}

fn heard(tree: &Recording) -> String {
    format!(
        "{} Borders between bases over time, and the number of bases. All events are in the table below.",
        tree.title
    )
}

fn history(tree: &Recording) -> Markup {
    html! { svg class="plot" #tree-history viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-label=(heard(tree)) { (body(tree)) } }
}

fn body(tree: &Recording) -> Markup {
    let frame = frame(tree);
    let x = |key: f64| across(tree, key);
    // Time goes down.
    let y = |at: f64| frame.top + at / frame.end * (frame.bottom - frame.top);
    let times = Axis::fit([0.0, frame.end].into_iter(), false);
    let borders = borders(tree);
    let lines: String = borders
        .iter()
        .map(|b| format!("M{:.1},{:.1}V{:.1}", x(b.key), y(b.from), y(b.to)))
        .collect();
    // Borders that still exist at the end were not ended by a join.
    let joins = borders.iter().filter(|b| b.to < frame.end);
    html! {
        @for tick in times.ticks.iter().filter(|tick| **tick <= frame.end) {
            path.grid d=(format!("M{},{:.1}H{}", frame.left, y(*tick), CURVE.1)) {}
            text.tick x=(frame.left - 8.0) y=(format!("{:.1}", y(*tick))) dy="4" text-anchor="end" { (short(*tick)) }
        }
        path.border d=(lines) {}
        path.split d=(borders.iter().filter(|b| b.from > 0.0).map(|b| format!("M{:.1},{:.1}h4v4h-4Z", x(b.key) - 2.0, y(b.from) - 2.0)).collect::<String>()) {}
        path.join d=(joins.map(|b| format!("M{:.1},{:.1}a3,3 0 1,0 6,0a3,3 0 1,0 -6,0Z", x(b.key) - 3.0, y(b.to))).collect::<String>()) {}
        @for phase in &tree.phases {
            path.phase d=(format!("M{},{:.1}H{}", frame.left, y(phase.at), CURVE.1)) {}
            text.said x=(frame.left + 6.0) y=(format!("{:.1}", y(phase.at) + 13.0)) { (phase.text) }
        }
        path.axis d=(format!("M{},{}V{}H{}", frame.left, frame.top, frame.bottom, frame.right)) {}
        text.label x=((frame.left + frame.right) / 2.0) y=(frame.top - 12.0) text-anchor="middle" { "keys, " (short(tree.keys[0])) " to " (short(tree.keys[1])) }
        text.label transform=(format!("translate(14,{}) rotate(-90)", (frame.top + frame.bottom) / 2.0)) text-anchor="middle" { "milliseconds, going down" }
        (curve(tree, &frame))
        text.tick x=(frame.left) y=(HEIGHT - 12.0) { "■ split   ○ join   │ border between two bases" }
    }
}

/// How many bases there were, beside the history.
fn curve(tree: &Recording, frame: &HistoryFrame) -> Markup {
    // The curve uses its whole width: the most bases are at its right end.
    let most = tree
        .samples
        .iter()
        .map(|s| s.bases.len())
        .max()
        .unwrap_or(1);
    let point = |at: f64, bases: usize| {
        let x = CURVE.0 + bases as f64 / most as f64 * (CURVE.1 - CURVE.0);
        let y = frame.top + at / frame.end * (frame.bottom - frame.top);
        format!("{x:.1},{y:.1}")
    };
    let path: Vec<String> = tree
        .samples
        .iter()
        .map(|sample| point(sample.at, sample.bases.len()))
        .collect();
    html! {
        path.axis d=(format!("M{},{}V{}", CURVE.0, frame.top, frame.bottom)) {}
        @if !path.is_empty() { path.border d=(format!("M{}", path.join("L"))) {} }
        text.label x=((CURVE.0 + CURVE.1) / 2.0) y=(frame.top - 12.0) text-anchor="middle" { "bases, up to " (most) }
    }
}

fn across(tree: &Recording, key: f64) -> f64 {
    let span = tree.keys[1] - tree.keys[0];
    let part = if span > 0.0 {
        ((key - tree.keys[0]) / span).clamp(0.0, 1.0)
    } else {
        0.0
    };
    FRAME.left + part * (FRAME.right - FRAME.left)
}

/// The borders that there have been. Samples set right what events of several threads, told apart
/// only by their times, leave open.
fn borders(tree: &Recording) -> Vec<Border> {
    let (mut open, mut done): (Vec<Border>, Vec<Border>) = (Vec::new(), Vec::new());
    let mut events = tree.events.iter().peekable();
    for sample in &tree.samples {
        // First the events up to this sample, in order.
        while let Some(event) = events.next_if(|event| event.at <= sample.at) {
            step(event, &mut open, &mut done);
        }
        // The borders of the sample: the first base has none on its left.
        let now: Vec<f64> = sample.bases.iter().skip(1).map(|base| base.from).collect();
        // A border that the sample doesn't have ended at some time before it. One that only the
        // sample has began before it.
        close(&mut open, &mut done, sample.at, |key| !now.contains(&key));
        now.into_iter()
            .for_each(|key| begin(&mut open, key, sample.at));
    }
    events.for_each(|event| step(event, &mut open, &mut done));
    let end = frame(tree).end;
    // All other borders last to the end.
    close(&mut open, &mut done, end, |_| true);
    done
}

fn step(event: &Event, open: &mut Vec<Border>, done: &mut Vec<Border>) {
    match (event.event, event.at_key) {
        (EventKind::Split, Some(key)) => begin(open, key, event.at),
        (EventKind::Split, None) => {}
        (EventKind::Join, _) => {
            let [first, last] = event.keys;
            // A join ends every border between the two bases that were joined.
            close(open, done, event.at, |key| first < key && key < last);
        }
    }
}

fn begin(open: &mut Vec<Border>, key: f64, at: f64) {
    if open.iter().all(|border| border.key != key) {
        open.push(Border {
            key,
            from: at,
            to: at,
        });
    }
}

fn close(open: &mut Vec<Border>, done: &mut Vec<Border>, at: f64, gone: impl Fn(f64) -> bool) {
    open.retain_mut(|border| {
        let gone = gone(border.key);
        if gone {
            done.push(Border { to: at, ..*border });
        }
        !gone
    });
}

fn events(tree: &Recording) -> Markup {
    let row = |event: &Event| {
        html! { tr {
            th scope="row" { (figure(event.at)) } td.text { (name(event)) } td { (event.base) } td { @if let Some(with) = event.with { (with) } }
            td.text { (event.becomes.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")) }
            td { (figure(event.keys[0])) } td { (figure(event.keys[1])) } td { @if let Some(key) = event.at_key { (figure(key)) } }
            td { (event.count) } td { (event.entries) } td { (event.thread) }
        } }
    };
    let headings =
        "ms, event:, base, with, becomes:, first key, last key, at key, statistic, entries, thread";
    let headings = headings.split(", ");
    table(
        "Splits and joins, by time",
        headings,
        tree.events.iter().map(row),
    )
}

fn name(event: &Event) -> &'static str {
    match event.event {
        EventKind::Split => "split",
        EventKind::Join => "join",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::{BaseSample, Sample};

    fn event(at: f64, event: EventKind, keys: [f64; 2], at_key: Option<f64>) -> Event {
        Event {
            at,
            event,
            base: 0,
            with: None,
            becomes: Vec::new(),
            keys,
            at_key,
            count: 0,
            entries: 0,
            thread: 0,
        }
    }

    fn sample(at: f64, from: &[f64]) -> Sample {
        let base = |from: &f64| BaseSample {
            base: 0,
            from: *from,
            depth: 0,
            count: 0,
            entries: 0,
        };
        Sample {
            at,
            bases: from.iter().map(base).collect(),
            threads: Vec::new(),
        }
    }

    #[test]
    fn a_border_lives_from_its_split_to_its_join() {
        let tree = Recording {
            keys: [0.0, 100.0],
            events: vec![
                event(1.0, EventKind::Split, [0.0, 100.0], Some(50.0)),
                event(2.0, EventKind::Split, [0.0, 50.0], Some(25.0)),
                event(4.0, EventKind::Join, [0.0, 50.0], None),
            ],
            samples: vec![
                sample(0.0, &[0.0]),
                sample(3.0, &[0.0, 25.0, 50.0]),
                sample(5.0, &[0.0, 50.0]),
            ],
            ..Recording::default()
        };
        let border = |key, from, to| Border { key, from, to };
        assert_eq!(
            borders(&tree),
            [border(25.0, 2.0, 4.0), border(50.0, 1.0, 5.0)]
        );
    }

    #[test]
    fn samples_set_right_what_no_event_told() {
        let tree = Recording {
            keys: [0.0, 100.0],
            samples: vec![
                sample(0.0, &[0.0]),
                sample(3.0, &[0.0, 25.0]),
                sample(5.0, &[0.0]),
            ],
            ..Recording::default()
        };
        assert_eq!(borders(&tree).len(), 1);
        assert_eq!((borders(&tree)[0].from, borders(&tree)[0].to), (3.0, 5.0));
    }
}
