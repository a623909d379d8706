//! Tables of figures in Markdown pages, written from the CSVs of the results.
//!
//! A comment says where a table stands and what it shows. The lines up to the second comment are
//! generated:
//!
//! ```text
//! <!-- figures wide.csv | rows: kind | quantiles: ratio | where: rows=1000 -->
//! | kind | cells | p10 | median | p90 | p99 | worst |
//! …
//! <!-- end of figures -->
//! ```
//!
//! | part | what it means |
//! |---|---|
//! | `A.csv + B.csv` | the lines of both, whose columns have to be the same |
//! | `rows: A, B` | a line for each pair of values in columns A and B, in the file's order |
//! | `columns: C; value: V` | a column for each value in column C; fields are medians of column V |
//! | `values: V, W as X` | a column of medians for each of these, W with the heading X |
//! | `values: V / 1000000` | the same, and each figure of V is divided by that many |
//! | `quantiles: V` | columns that describe the distribution of V |
//! | `where: C=X, D=Y` | only lines of the file that have these values |
//! | `worst: N` | only the N lines whose last column is largest, the largest first |
//!
//! Another part is an error, and so is a column that the file lacks.

use crate::report::lines::csv;
use crate::report::number::{self, grouped};
use crate::report::Error;
use crate::stats::{distinct, quantile, sorted};
use csv::StringRecord;
use std::path::Path;

const BEGIN: &str = "<!-- figures ";
const END: &str = "<!-- end of figures -->";
/// The heading of a count, which has no decimals.
const CELLS: &str = "cells";

/// The page with its tables made anew from the files in `results`.
pub fn fill(page: &Path, results: &Path) -> Result<String, Error> {
    let text = std::fs::read_to_string(page).map_err(|error| Error::Io(page.into(), error))?;
    let read = |name: &str| {
        let path = results.join(name);
        std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
    };
    filled(&text, read).map_err(|why| Error::Figures(page.into(), why))
}

fn filled(text: &str, read: impl Fn(&str) -> Result<String, String>) -> Result<String, String> {
    let (mut out, mut lines) = (String::new(), text.lines());
    while let Some(line) = lines.next() {
        out += &format!("{line}\n");
        let Some(comment) = line.strip_prefix(BEGIN) else {
            continue;
        };
        let comment = comment.strip_suffix(" -->");
        let comment = comment.ok_or_else(|| format!("no --> at the end of {line:?}"))?;
        // The old table is skipped.
        if !lines.any(|line| line == END) {
            return Err(format!("no {END} after {line:?}"));
        }
        let table = table(comment, &read).map_err(|why| format!("{comment:?}: {why}"))?;
        out += &format!("{table}{END}\n");
    }
    Ok(out)
}

/// The lines of one file, or of several that have the same columns.
struct File {
    header: StringRecord,
    lines: Vec<StringRecord>,
}

impl File {
    fn read(names: &str, read: impl Fn(&str) -> Result<String, String>) -> Result<File, String> {
        let mut file: Option<File> = None;
        for name in names.split(" + ") {
            let text = read(name)?;
            let mut reader = csv(&text);
            let error = |error: csv::Error| error.to_string();
            let header = reader.headers().map_err(error)?.clone();
            let lines: Result<Vec<_>, _> = reader.records().collect();
            let lines = lines.map_err(error)?;
            match &mut file {
                None => file = Some(File { header, lines }),
                Some(file) if file.header == header => file.lines.extend(lines),
                Some(_) => return Err("the files have different columns".into()),
            }
        }
        file.ok_or_else(|| "it names no file".into())
    }

    fn column(&self, name: &str) -> Result<usize, String> {
        let column = self.header.iter().position(|column| column == name);
        column.ok_or_else(|| format!("the file has no column {name:?}"))
    }
}

/// A column of a table: its heading, and the function from the lines of a row to the field.
type Column = (String, Box<dyn Fn(&[&StringRecord]) -> Option<f64>>);

/// Makes the table of a comment.
fn table(comment: &str, read: impl Fn(&str) -> Result<String, String>) -> Result<String, String> {
    let (names, parts) = comment.split_once('|').unwrap_or((comment, ""));
    let file = File::read(names.trim(), read)?;
    let (mut rows, mut lines, mut worst) =
        (Vec::new(), file.lines.iter().collect::<Vec<_>>(), None);
    let mut fields = None;
    for part in parts
        .split('|')
        .map(str::trim)
        .filter(|part| !part.is_empty())
    {
        let (name, list) = part
            .split_once(": ")
            .ok_or_else(|| format!("no ': ' in {part:?}"))?;
        match name {
            "rows" => rows = list.split(", ").collect(),
            "columns" | "values" | "quantiles" => fields = Some((name, list)),
            "worst" => worst = Some(list.parse().map_err(|_| "worst is no number")?),
            "where" => {
                for pair in list.split(", ") {
                    let (name, value) = pair.split_once('=').ok_or("no = in where")?;
                    let column = file.column(name)?;
                    lines.retain(|line| line[column] == *value);
                }
            }
            _ => return Err(format!("no such part: {name}")),
        }
    }
    let (kind, list) = fields.ok_or("it says neither columns, values nor quantiles")?;
    let columns = columns(kind, list, &file, &lines)?;
    let keys: Vec<usize> = rows
        .iter()
        .map(|name| file.column(name))
        .collect::<Result<_, _>>()?;
    let key = |line: &StringRecord| -> Vec<String> {
        keys.iter()
            .map(|column| line[*column].to_string())
            .collect()
    };
    // A row without any figure is left out.
    let mut body: Vec<(Vec<String>, Vec<Option<f64>>)> = Vec::new();
    for row in distinct(lines.iter().map(|line| key(line))) {
        let of: Vec<_> = lines
            .iter()
            .copied()
            .filter(|line| key(line) == row)
            .collect();
        let fields: Vec<_> = columns.iter().map(|(_, field)| field(&of)).collect();
        if fields.iter().any(Option::is_some) {
            body.push((row, fields));
        }
    }
    if let Some(most) = worst {
        let last = |fields: &[Option<f64>]| fields.last().copied().flatten().unwrap_or(0.0);
        body.sort_by(|a, b| last(&b.1).total_cmp(&last(&a.1)));
        body.truncate(most);
    }
    if body.is_empty() {
        return Err("the file has no such lines".into());
    }
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let headings = columns.iter().map(|(heading, _)| grouped(heading));
    let mut out = line(
        rows.iter()
            .map(|name| name.to_string())
            .chain(headings)
            .collect(),
    );
    // Names are left-aligned, figures right-aligned.
    let marks = [vec!["---"; rows.len()], vec!["--:"; columns.len()]].concat();
    out += &line(marks.into_iter().map(String::from).collect());
    for (row, fields) in body {
        let fields = columns
            .iter()
            .zip(fields)
            .map(|((heading, _), field)| match field {
                None => String::new(),
                Some(count) if heading == CELLS => format!("{count:.0}"),
                Some(figure) => number::table(figure),
            });
        out += &line(row.iter().map(|name| grouped(name)).chain(fields).collect());
    }
    Ok(out)
}

/// The columns of a table, by the kind of its fields.
fn columns(
    kind: &str,
    list: &str,
    file: &File,
    lines: &[&StringRecord],
) -> Result<Vec<Column>, String> {
    if kind == "values" {
        let column = |value: &str| -> Result<Column, String> {
            let (value, heading) = value.split_once(" as ").unwrap_or((value, value));
            let divided = value.rsplit_once(" / ");
            let divided = divided.and_then(|(name, by)| Some((name, by.parse::<f64>().ok()?)));
            let (name, by) = divided.unwrap_or((value, 1.0));
            let at = file.column(name)?;
            Ok((
                heading.into(),
                Box::new(move |of| Some(part(0.5, of, at)? / by)),
            ))
        };
        return list.split(", ").map(column).collect();
    }
    if kind == "columns" {
        let pair = list
            .split_once("; value: ")
            .ok_or("no '; value: ' after columns")?;
        let (columns, value) = (file.column(pair.0)?, file.column(pair.1)?);
        let column = |heading: String| -> Column {
            let name = heading.clone();
            let field = move |of: &[&StringRecord]| {
                let of = of.iter().filter(|line| line[columns] == *name);
                part(0.5, &of.copied().collect::<Vec<_>>(), value)
            };
            (heading, Box::new(field))
        };
        let headings = distinct(lines.iter().map(|line| line[columns].to_string()));
        return Ok(headings.into_iter().map(column).collect());
    }
    let at = file.column(list)?;
    let count = move |of: &[&StringRecord]| {
        let count = figures(of, at).len();
        (count > 0).then_some(count as f64)
    };
    let parts = [
        ("p10", 0.1),
        ("median", 0.5),
        ("p90", 0.9),
        ("p99", 0.99),
        ("worst", 1.0),
    ];
    let mut columns: Vec<Column> = vec![(CELLS.into(), Box::new(count))];
    columns.extend(parts.map(|(heading, share)| -> Column {
        (heading.into(), Box::new(move |of| part(share, of, at)))
    }));
    Ok(columns)
}

/// The figures of a column in ascending order. Empty fields are left out.
fn figures(lines: &[&StringRecord], at: usize) -> Vec<f64> {
    sorted(lines.iter().filter_map(|line| line[at].parse().ok()))
}

/// A quantile of a column, if it has figures.
fn part(share: f64, lines: &[&StringRecord], at: usize) -> Option<f64> {
    let sorted = figures(lines, at);
    (!sorted.is_empty()).then(|| quantile(&sorted, share))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CSV: &str = "# seed: 1\nop,kind,rows,ratio\nlookup,int,1000,0.5\nlookup,int,1000,1.5\n\
        lookup,int,1000,1.0\nlookup,ref,1000,2.0\nnext,int,10,\nnext,ref,10,31.25\n";

    fn page_of(comment: &str) -> Result<String, String> {
        let page = format!("Before\n<!-- figures {comment} -->\nold\n{END}\nafter\n");
        filled(&page, |name| match name {
            "a.csv" => Ok(CSV.into()),
            "more.csv" => Ok("op,kind,rows,ratio\nnext,ref,10,0.25\n".into()),
            "other.csv" => Ok("op,ratio\nnext,1\n".into()),
            _ => Err("no such file".into()),
        })
    }

    #[test]
    fn the_old_table_is_replaced() {
        let page = page_of("a.csv | rows: op | quantiles: ratio").expect("a table");
        let right = "Before\n<!-- figures a.csv | rows: op | quantiles: ratio -->\n\
            | op | cells | p10 | median | p90 | p99 | worst |\n\
            | --- | --: | --: | --: | --: | --: | --: |\n\
            | lookup | 4 | 0.50 | 1.00 | 2.00 | 2.00 | 2.00 |\n\
            | next | 1 | 31.2 | 31.2 | 31.2 | 31.2 | 31.2 |\n\
            <!-- end of figures -->\nafter\n";
        assert_eq!(page, right);
        assert_eq!(
            filled(&page, |_| Ok(CSV.into())),
            Ok(page),
            "the same again"
        );
    }

    #[test]
    fn each_part_does_what_it_means() {
        for (comment, expected) in [
            (
                "a.csv | rows: op | columns: kind; value: ratio | where: rows=1000",
                "| op | int | ref |\n",
            ),
            (
                "a.csv | rows: op | columns: kind; value: ratio | where: rows=1000",
                "| lookup | 1.00 | 2.00 |\n<!-- end",
            ),
            (
                "a.csv | rows: kind, rows | values: ratio | worst: 1",
                "--: |\n| ref | 10 | 31.2 |\n<!-- end",
            ),
            (
                "a.csv + more.csv | rows: kind | values: ratio as times | where: op=next",
                "| kind | times |",
            ),
            (
                "a.csv + more.csv | rows: kind | values: ratio as times | where: op=next",
                "| ref | 0.25 |",
            ),
            (
                "a.csv | rows: kind | values: ratio / 2 as half | where: rows=10",
                "| ref | 15.6 |",
            ),
        ] {
            let page = page_of(comment).expect(comment);
            assert!(page.contains(expected), "{page}");
        }
    }

    #[test]
    fn a_wrong_comment_is_an_error() {
        for (comment, why) in [
            (
                "a.csv + other.csv | rows: op | values: ratio",
                "different columns",
            ),
            ("b.csv | rows: op | values: ratio", "no such file"),
            ("a.csv | rows: cop | values: ratio", "no column \"cop\""),
            ("a.csv | rows: op", "neither columns"),
            ("a.csv | lines: op", "no such part: lines"),
            ("a.csv | rows: op | columns: kind", "no '; value: '"),
            (
                "a.csv | rows: op | values: ratio | where: rows=7",
                "no such lines",
            ),
        ] {
            let error = page_of(comment).expect_err(comment);
            assert!(error.contains(why), "{error}");
        }
        let open = "<!-- figures a.csv | rows: op | values: ratio -->\n";
        let error = filled(open, |_| Ok(CSV.into())).expect_err("it doesn't end");
        assert!(error.contains("no <!-- end"));
    }
}
