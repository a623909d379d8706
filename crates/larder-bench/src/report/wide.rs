//! `wide.csv` of `make bench-wide` as a heat map for each size: operations down, kinds of rows
//! across.
//!
//! A field is the median of the ratios of its cells (types of tables, by reference and by name).
//! Its colour shows the distance from 1. It also has the number, so that the colour isn't needed.

use crate::report::lines::{Cell, Wide};
use crate::report::tables::table;
use crate::stats::{distinct, quantile, sorted};
use maud::{html, Markup};
use std::collections::BTreeMap;

fn ratios<'a>(cells: impl IntoIterator<Item = &'a &'a Cell>) -> Vec<f64> {
    sorted(cells.into_iter().filter_map(|cell| cell.ratio))
}

/// The section of the page.
pub fn section(run: &Wide) -> Markup {
    let sizes = groups(&run.cells, |cell| cell.rows);
    html! {
        section id="wide" {
            h2 { "Every function, every kind of row" }
            p { "Larder's time by that of ets; under 1, Larder is quicker. " (run.cells.len())
                " cells, " (run.left_out) " left out." }
            (distributions("by size", groups(&run.cells, |cell| format!("{:>8} rows", cell.rows))))
            (distributions("by operation", groups(&run.cells, |cell| cell.operation.clone())))
            (distributions("by kind of row", groups(&run.cells, |cell| cell.kind.clone())))
            @for (rows, cells) in &sizes { (map(*rows, cells)) }
        }
    }
}

fn groups<'a, K: Ord>(
    cells: impl IntoIterator<Item = &'a Cell>,
    of: impl Fn(&'a Cell) -> K,
) -> BTreeMap<K, Vec<&'a Cell>> {
    let mut groups: BTreeMap<K, Vec<&Cell>> = BTreeMap::new();
    for cell in cells {
        groups.entry(of(cell)).or_default().push(cell);
    }
    groups
}

fn distributions(title: &str, groups: BTreeMap<String, Vec<&Cell>>) -> Markup {
    let line = |name: &str, cells: &[&Cell]| {
        // Sorted, so that quantiles are places in it.
        let ratios = ratios(cells);
        let slower = ratios.iter().filter(|ratio| **ratio > 1.0).count();
        html! { tr {
            th scope="row" { (name.trim()) } td { (ratios.len()) }
            @for part in [0.1, 0.5, 0.9, 0.99, 1.0] { td { (format!("{:.2}", quantile(&ratios, part))) } }
            td { (slower) }
        } }
    };
    let columns = ["cells", "p10", "median", "p90", "p99", "worst", "slower"];
    let headings = [title].into_iter().chain(columns);
    let caption = format!("Distribution of the ratios {title}");
    let rows = groups.iter().map(|(name, cells)| line(name, cells));
    table(&caption, headings, rows)
}

/// The heat map of one size.
fn map<'a>(rows: u64, cells: &[&'a Cell]) -> Markup {
    let operations = distinct(cells.iter().map(|cell| cell.operation.as_str()));
    let kinds = distinct(cells.iter().map(|cell| cell.kind.as_str()));
    // All cells of an operation and a kind of row belong to one field.
    let place = |cell: &'a Cell| (cell.operation.as_str(), cell.kind.as_str());
    let fields = groups(cells.iter().copied(), place);
    let field = |operation: &str, kind: &str| {
        // A pair that was not measured at this size has an empty field.
        let of = fields.get(&(operation, kind));
        of.map(|of| quantile(&ratios(of), 0.5))
    };
    let line = |operation: &&str| {
        html! { tr {
            th scope="row" { (operation) }
            @for kind in &kinds {
                @match field(operation, kind) {
                    Some(ratio) => { td class=(heat(ratio)) { (format!("{ratio:.1}")) } }
                    None => { td {} }
                }
            }
        } }
    };
    let caption = format!("{rows} rows: Larder's time by that of ets, median");
    let headings = std::iter::once("operation").chain(kinds.iter().copied());
    html! { div.heat { (table(&caption, headings, operations.iter().map(line))) } }
}

/// The class of a field's colour: three steps of quicker, four of slower.
fn heat(ratio: f64) -> &'static str {
    let steps = [
        (0.5, "h0"),
        (0.8, "h1"),
        (1.0, "h2"),
        (1.4, "h3"),
        (2.0, "h4"),
        (4.0, "h5"),
    ];
    let step = steps.iter().find(|(most, _)| ratio <= *most);
    step.map_or("h6", |(_, class)| class)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::lines::wide;

    const FILE: &str = "# seed: 1\noperation,type,kind,rows,ratio,left_out\n\
        lookup_hit,set,int,10,0.45,\nlookup_hit,bag,int,10,3.00,\n\
        next,set,ref,1000,9.00,\nfoldl,set,ref,1000,,\"would take 9 s\"\n";

    #[test]
    fn cells_become_fields_with_their_medians() {
        let run = wide(FILE).expect("such a file");
        assert_eq!((run.cells.len(), run.left_out), (3, 1));
        let page = section(&run).into_string();
        assert!(
            page.contains("<td class=\"h0\">0.5</td>")
                || page.contains("<td class=\"h0\">0.4</td>")
        );
        assert!(page.contains("<td class=\"h6\">9.0</td>"));
        assert!(page.contains("3 cells, 1 left out"));
        assert_eq!(page.matches("class=\"heat\"").count(), 2);
        assert!(page.contains("<td>3.00</td>"), "the worst of 10 rows");
    }
}
