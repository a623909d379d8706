//! `wide.csv` of `make bench-wide` as a heat map for each size: operations down, kinds of rows
//! across.
//!
//! A field is the median of the ratios of its cells (types of tables, by reference and by name).
//! Its colour shows the distance from 1. The number stands in it, too.

use crate::report::read::{Cell, Wide};
use crate::report::tables::table;
use crate::stats::{distinct, quantile};
use crate::table::{Pivot, QUANTILES};
use maud::{html, Markup};

impl Wide {
    fn distribution(&self, title: &str, row: impl Fn(&Cell) -> String) -> Markup {
        let mut ratios = Pivot::default();
        for cell in &self.cells {
            ratios.extend([&*row(cell)], "ratio", cell.ratio);
        }
        let mut rows = ratios.rows();
        rows.sort_by_key(|(name, _)| *name);
        let line = |(name, ratios): &(&[String], Vec<Vec<f64>>)| {
            let slower = ratios[0].iter().filter(|ratio| **ratio > 1.0).count();
            html! { tr {
                th scope="row" { (name[0].trim()) } td { (ratios[0].len()) }
                @for (_, part) in QUANTILES { td { (format!("{:.2}", quantile(&ratios[0], part))) } }
                td { (slower) }
            } }
        };
        let quantiles = QUANTILES.map(|(heading, _)| heading);
        let headings = [&[title, "cells"], &quantiles[..], &["slower"]].concat();
        let caption = format!("Distribution of the ratios {title}");
        table(&caption, headings, rows.iter().map(line))
    }

    fn heat_map(&self, rows: u64) -> Markup {
        let mut ratios = Pivot::default();
        for cell in self.cells.iter().filter(|cell| cell.rows == rows) {
            ratios.extend([&*cell.operation], &cell.kind, cell.ratio);
        }
        // The classes of colours, by the greatest ratio of each: three for quicker, four for
        // slower.
        let classes = [0.5, 0.8, 1.0, 1.4, 2.0, 4.0];
        let line = |(operation, fields): (&[String], Vec<Vec<f64>>)| {
            html! { tr {
                th scope="row" { (operation[0]) }
                @for ratios in &fields {
                    @if ratios.is_empty() { td {} } @else {
                        @let ratio = quantile(ratios, 0.5);
                        @let class = classes.iter().take_while(|most| ratio > **most).count();
                        td class=(format!("h{class}")) { (format!("{ratio:.1}")) }
                    }
                }
            } }
        };
        let caption = format!("{rows} rows: Larder's time by that of ets, median");
        let kinds = ratios.columns.iter().map(|kind| &**kind);
        let headings = std::iter::once("operation").chain(kinds);
        html! { div.heat { (table(&caption, headings, ratios.rows().into_iter().map(line))) } }
    }

    /// The part of the page about all functions and all kinds of rows.
    pub fn section(&self) -> Markup {
        let mut sizes = distinct(self.cells.iter().map(|cell| cell.rows));
        sizes.sort();
        html! {
            section id="wide" {
                h2 { "Every function, every kind of row" }
                p { "Larder's time by that of ets; under 1, Larder is quicker. " (self.cells.len())
                    " cells, " (self.left_out) " left out." }
                (self.distribution("by size", |cell| format!("{:>8} rows", cell.rows)))
                (self.distribution("by operation", |cell| cell.operation.clone()))
                (self.distribution("by kind of row", |cell| cell.kind.clone()))
                @for rows in sizes { (self.heat_map(rows)) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::report::read::wide;

    const FILE: &str = "# seed: 1\noperation,type,kind,rows,ratio,left_out\n\
        lookup_hit,set,int,10,0.45,\nlookup_hit,bag,int,10,3.00,\n\
        next,set,ref,1000,9.00,\nfoldl,set,ref,1000,,\"would take 9 s\"\n";

    #[test]
    fn cells_become_fields_with_their_medians() {
        let run = wide(FILE).expect("such a file");
        assert_eq!((run.cells.len(), run.left_out), (3, 1));
        let page = run.section().into_string();
        let has = |y| page.contains(&format!("<td class=\"h0\">{y}</td>"));
        assert!(has("0.5") || has("0.4"));
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
