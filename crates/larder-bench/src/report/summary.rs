//! The summary: a line for each plot, with Larder and the best of the others. Losses are shown like
//! wins.

use crate::report::chart::{Chart, Source};
use crate::report::number::times;
use crate::report::read::Findings;
use crate::report::study::anchor;
use crate::report::tables::table;
use crate::report::verdict::{wins, Certainty, Standing};
use crate::result::Study;
use crate::stats::{distinct, ends};
use maud::{html, Markup};

/// The part of the page that says where Larder wins and loses.
pub fn summary(found: &Findings, charts: &[Chart]) -> Markup {
    let all = Standing::of(charts);
    let of = |study: &Study| {
        let of = charts.iter().filter(|chart| chart.study == study.study);
        of.collect::<Vec<_>>()
    };
    let line = |study: &Study| {
        let mine = of(study);
        let all = Standing::of(mine.iter().copied());
        html! { tr {
            th scope="row" { a href=(format!("#{}", anchor(study))) { (study.title) } }
            td { (mine.len()) } td { (all.won) } td { (all.open) } td { (all.lost) }
            td.text { @if all.places() > 0 { (bar(&all)) } }
        } }
    };
    let headings = ["study:", "plots", "better", "open", "worse", "Larder:"];
    html! {
        section #summary {
            h2 { "Who wins where" }
            @if all.places() > 0 {
                p.lead { "Larder's default beside the best other structure, at " (all.places()) " places of " (charts.len()) " plots: clearly better at "
                    strong { (all.won) } ", clearly worse at " strong { (all.lost) } ", and at " strong { (all.open) } " it is open: the difference is within the noise, or was measured once." }
                (bar(&all))
            }
            p { "Blue is better, orange is worse, hatched thinly is open. A difference is " em { "within the noise" } " when the spreads of the runs, from the least to the most, overlap. Where a figure has a single run nobody can tell; both count as " em { "open" } ". "
                "“× as good” is Larder's figure beside that of the best other of all that are in the plot: above 1 Larder is better, below 1 it is worse, from its worst place to its best." }
            (table("Larder's default beside the best other, by study", headings, found.studies.iter().map(line)))
            @for study in &found.studies {
                @let mine = of(study);
                @if !mine.is_empty() {
                    details { summary { (study.title) ", plot by plot" } (by_plot(&study.title, &mine)) }
                }
            }
        }
    }
}

fn by_plot(title: &str, charts: &[&Chart]) -> Markup {
    let caption = format!("{title}: who wins, by plot");
    let headings = "plot:, most often best:, better, open, worse, Larder:, × as good";
    let lines = charts.iter().map(|chart| line(chart));
    table(&caption, headings.split(", "), lines)
}

fn line(chart: &Chart) -> Markup {
    let standing = Standing::of([chart]);
    let has_ours = chart.of(Source::Run).any(|series| series.style.ours);
    html! { tr {
        th scope="row" { a href=(format!("#{}", chart.plot.id)) { (chart.plot.title) } }
        td.text { (most_often(chart)) }
        @if standing.places() > 0 {
            td { (standing.won) } td { (standing.open) } td { (standing.lost) }
            td.text { (bar(&standing)) }
            td { @if !standing.factors.is_empty() { (range(&standing.factors)) } }
        } @else {
            td.none colspan="5" { @if has_ours { "nobody else is measured at the same places" } @else { "Larder's default is not in this plot" } }
        }
    } }
}

fn range(factors: &[f64]) -> String {
    let [least, most] = ends(factors).map(times);
    match least == most {
        true => least,
        false => format!("{least} – {most}"),
    }
}

/// The structure that is best at most places, and at how many of them clearly. Of two, the first
/// one in the plot.
fn most_often(chart: &Chart) -> String {
    let wins = wins(chart);
    let count = |name: &str, clear: bool| {
        let of = wins.iter().filter(|win| win.first.0.name == name);
        of.filter(|win| !clear || win.certainty == Certainty::Clear)
            .count()
    };
    let names = distinct(wins.iter().map(|win| &*win.first.0.name));
    let most = names.into_iter().rev();
    let most = most.max_by_key(|name| count(name, false));
    most.map_or("–".into(), |name| {
        let (all, clear) = (count(name, false), count(name, true));
        format!("{name}: {all} of {} ({clear} clearly)", wins.len())
    })
}

/// Better, open and worse as a bar, told apart by hatching as well as by colour.
fn bar(standing: &Standing) -> Markup {
    let (won, open, lost) = (standing.won, standing.open, standing.lost);
    let all = standing.places().max(1) as f64;
    let width = |count: usize| format!("width:{:.2}%", 100.0 * count as f64 / all);
    let text = format!("better at {won}, open at {open}, worse at {lost}");
    html! {
        span.bar role="img" aria-label=(text) title=(text) {
            span.won style=(width(won)) {} span.open style=(width(open)) {} span.lost style=(width(lost)) {}
        }
    }
}
