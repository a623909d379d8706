//! The summary: a line for each plot, with Larder and the best of the others. Losses are shown like
//! wins.

use crate::report::chart::Chart;
use crate::report::number::times;
use crate::report::read::Findings;
use crate::report::study::has_ours;
use crate::report::tables::table;
use crate::report::verdict::{wins, Standing, Sure};
use crate::result::Study;
use crate::stats::ends;
use maud::{html, Markup};

/// The whole summary.
pub fn summary(found: &Findings, charts: &[Chart]) -> Markup {
    let all = Standing::of(charts);
    let of = |study: &Study| -> Vec<&Chart> {
        let of = charts.iter().filter(|chart| chart.study == study.study);
        of.collect()
    };
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
            (overview(found, &of))
            @for study in &found.studies {
                @let mine = of(study);
                @if !mine.is_empty() {
                    details { summary { (study.title) ", plot by plot" } (by_plot(&study.title, &mine)) }
                }
            }
        }
    }
}

/// A line a study.
fn overview<'a>(found: &Findings, of: &dyn Fn(&Study) -> Vec<&'a Chart>) -> Markup {
    let line = |study: &Study| {
        let mine = of(study);
        let all = Standing::of(mine.iter().copied());
        html! { tr {
            th scope="row" { a href=(format!("#{}", crate::report::study::anchor(study))) { (study.title) } }
            td { (mine.len()) } td { (all.won) } td { (all.open) } td { (all.lost) }
            td.text { @if all.places() > 0 { (bar(&all)) } }
        } }
    };
    let caption = "Larder's default beside the best other, by study";
    let headings = ["study:", "plots", "better", "open", "worse", "Larder:"];
    table(caption, headings, found.studies.iter().map(line))
}

fn by_plot(title: &str, charts: &[&Chart]) -> Markup {
    let caption = format!("{title}: who wins, by plot");
    let headings = "plot:, most often best:, better, open, worse, Larder:, × as good";
    table(
        &caption,
        headings.split(", "),
        charts.iter().map(|chart| line(chart)),
    )
}

fn line(chart: &Chart) -> Markup {
    let standing = Standing::of([chart]);
    html! { tr {
        th scope="row" { a href=(format!("#{}", chart.plot.id)) { (chart.plot.title) } }
        td.text { (most_often(chart)) }
        @if standing.places() > 0 {
            td { (standing.won) } td { (standing.open) } td { (standing.lost) }
            td.text { (bar(&standing)) }
            td { @if !standing.factors.is_empty() { (range(&standing.factors)) } }
        } @else {
            td.none colspan="5" { @if has_ours(chart) { "nobody else is measured at the same places" } @else { "Larder's default is not in this plot" } }
        }
    } }
}

fn range(factors: &[f64]) -> String {
    let [least, most] = ends(factors).map(times);
    if least == most {
        least
    } else {
        format!("{least} – {most}")
    }
}

/// Who is best at most places, and at how many of them clearly.
fn most_often(chart: &Chart) -> String {
    let wins = wins(chart);
    // For each structure, at how many places it is best, and at how many of them clearly.
    let mut counts: Vec<(&str, usize, usize)> = Vec::new();
    for win in &wins {
        let name = win.best.0.name.as_str();
        let clear = usize::from(win.sure == Sure::Clear);
        match counts.iter_mut().find(|(of, ..)| *of == name) {
            Some((_, all, sure)) => (*all, *sure) = (*all + 1, *sure + clear),
            None => counts.push((name, 1, clear)),
        }
    }
    // The sort is stable, so of two that are best equally often the first one in the plot is named.
    counts.sort_by_key(|(_, all, _)| std::cmp::Reverse(*all));
    match counts.first() {
        Some((name, all, clear)) => {
            format!("{name}: {all} of {} ({clear} clearly)", wins.len())
        }
        None => "–".into(),
    }
}

/// Better, open, worse as a bar, told apart by hatching as well as by colour.
fn bar(standing: &Standing) -> Markup {
    let all = standing.places().max(1) as f64;
    let part = |count: usize| format!("width:{:.2}%", 100.0 * count as f64 / all);
    let text = format!(
        "better at {}, open at {}, worse at {}",
        standing.won, standing.open, standing.lost
    );
    html! {
        span.bar role="img" aria-label=(text) title=(text) {
            span.won style=(part(standing.won)) {} span.open style=(part(standing.open)) {} span.lost style=(part(standing.lost)) {}
        }
    }
}
