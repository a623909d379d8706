//! `wide.csv` of `make bench-wide` as a heat map for each size: operations down, kinds of rows
//! across.
//!
//! A field is the median of the ratios of its cells (types of tables, by reference and by name).
//! Its colour shows the distance from 1. The number stands in it, too.

use crate::report::lines::{Cell, Wide};
use crate::report::tables::table;
use crate::stats::{distinct, quantile, sorted};
use maud::{html, Markup};
use std::collections::BTreeMap;

fn ratios(cells: &[&Cell]) -> Vec<f64> {
    sorted(cells.iter().filter_map(|cell| cell.ratio))
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
            @for (rows, cells) in &sizes { (heat_map(*rows, cells)) }
        }
    }
}

fn groups<'a, K: Ord>(
    cells: impl IntoIterator<Item = &'a Cell>,
    key: impl Fn(&'a Cell) -> K,
) -> BTreeMap<K, Vec<&'a Cell>> {
    let mut groups: BTreeMap<K, Vec<&Cell>> = BTreeMap::new();
    for cell in cells {
        groups.entry(key(cell)).or_default().push(cell);
    }
    groups
}

fn distributions(title: &str, groups: BTreeMap<String, Vec<&Cell>>) -> Markup {
    let line = |(name, cells): (&String, &Vec<&Cell>)| {
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
    table(&caption, headings, groups.iter().map(line))
}

/// The heat map of a size.
fn heat_map(rows: u64, cells: &[&Cell]) -> Markup {
    let operations = distinct(cells.iter().map(|cell| &cell.operation));
    let kinds = distinct(cells.iter().map(|cell| &cell.kind));
    let fields = groups(cells.iter().copied(), |cell| (&cell.operation, &cell.kind));
    // The classes of colours, by the greatest ratio of each: three for quicker, four for slower.
    let classes = [
        (0.5, "h0"),
        (0.8, "h1"),
        (1.0, "h2"),
        (1.4, "h3"),
        (2.0, "h4"),
        (4.0, "h5"),
    ];
    let line = |operation: &&String| {
        html! { tr {
            th scope="row" { (operation) }
            @for kind in &kinds {
                @if let Some(cells) = fields.get(&(*operation, *kind)) {
                    @let ratio = quantile(&ratios(cells), 0.5);
                    @let class = classes.iter().find(|(most, _)| ratio <= *most).map_or("h6", |(_, class)| class);
                    td class=(class) { (format!("{ratio:.1}")) }
                } @else { td {} }
            }
        } }
    };
    let caption = format!("{rows} rows: Larder's time by that of ets, median");
    let headings = ["operation"]
        .into_iter()
        .chain(kinds.iter().map(|kind| kind.as_str()));
    html! { div.heat { (table(&caption, headings, operations.iter().map(line))) } }
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
        assert!(["0.5", "0.4"]
            .iter()
            .any(|y| page.contains(&format!("<td class=\"h0\">{y}</td>"))));
        assert!(page.contains("<td class=\"h6\">9.0</td>"));
        assert!(page.contains("3 cells, 1 left out"));
        assert_eq!(page.matches("class=\"heat\"").count(), 2);
        assert!(page.contains("<td>3.00</td>"), "the worst of 10 rows");
    }

    #[test]
    fn another_file_is_an_error() {
        assert!(wide("a,b\n1,2\n").is_err());
        assert!(wide(&FILE.replace("3.00", "many")).is_err());
    }
}
