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
//! | `values: V / W` | the same, and each figure of V is divided by that of W in its line |
//! | `quantiles: V` | columns that describe the distribution of V |
//! | `where: C=X, D=Y` | only lines of the file that have these values |
//! | `worst: N` | only the N lines whose last column is largest, the largest first |
//!
//! Another part is an error, and so is a column that the file lacks.

use crate::report::failed;
use crate::report::number::{self, grouped};
use crate::result::{Failure, Outcome};
use crate::stats::quantile;
use crate::table::{csv, Pivot, QUANTILES};
use csv::StringRecord;
use std::path::Path;

const BEGIN: &str = "<!-- figures ";
const END: &str = "<!-- end of figures -->";
/// The heading of a count, which has no decimals.
const CELLS: &str = "cells";

/// What the figures of a column are divided by.
enum Divisor {
    Number(f64),
    /// The figure of another column in the same line.
    Column(usize),
}

/// The page with its tables made anew from the files in `results`.
pub fn fill(page: &Path, results: &Path) -> Outcome<String> {
    let read = |path: &Path| std::fs::read_to_string(path).map_err(|error| failed(path, error));
    let why = |why| Failure::Impossible(format!("{}: figures {why}", page.display()));
    let result = |name: &str| read(&results.join(name)).map_err(|error| error.to_string());
    filled(&read(page)?, result).map_err(why)
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

/// The header and the lines of one file, or of several that have the same columns.
fn records(
    names: &str,
    read: impl Fn(&str) -> Result<String, String>,
) -> Result<(StringRecord, Vec<StringRecord>), String> {
    let (mut first, mut all) = (None, Vec::new());
    for name in names.split(" + ") {
        let text = read(name)?;
        let mut reader = csv(&text);
        let header = reader.headers().map_err(|error| error.to_string())?.clone();
        if *first.get_or_insert(header.clone()) != header {
            return Err("the files have different columns".into());
        }
        let lines: Result<Vec<_>, _> = reader.records().collect();
        all.extend(lines.map_err(|error| error.to_string())?);
    }
    Ok((first.unwrap_or_default(), all))
}

/// Makes the table of a comment.
fn table(comment: &str, read: impl Fn(&str) -> Result<String, String>) -> Result<String, String> {
    let (names, parts) = comment.split_once('|').unwrap_or((comment, ""));
    let (header, mut lines) = records(names.trim(), read)?;
    let column = |name: &str| {
        let at = header.iter().position(|column| column == name);
        at.ok_or_else(|| format!("the file has no column {name:?}"))
    };
    // Read the parts of the comment. `where` drops lines of the file at once.
    let (mut rows, mut fields, mut worst) = (Vec::new(), None, None);
    let parts = parts.split('|').map(str::trim);
    for part in parts.filter(|part| !part.is_empty()) {
        let pair = part.split_once(": ");
        let (name, list) = pair.ok_or_else(|| format!("no ': ' in {part:?}"))?;
        match name {
            "rows" => rows = list.split(", ").collect(),
            "columns" | "values" | "quantiles" => fields = Some((name, list)),
            "worst" => worst = Some(list.parse().map_err(|_| "worst is no number")?),
            "where" => {
                for pair in list.split(", ") {
                    let (name, value) = pair.split_once('=').ok_or("no = in where")?;
                    let column = column(name)?;
                    lines.retain(|line| line[column] == *value);
                }
            }
            _ => return Err(format!("no such part: {name}")),
        }
    }
    let (kind, list) = fields.ok_or("it says neither columns, values nor quantiles")?;
    let keys: Result<Vec<usize>, _> = rows.iter().map(|name| column(name)).collect();
    let (keys, mut table) = (keys?, Pivot::default());
    let mut add = |line: &StringRecord, heading: &str, at: usize, by: &Divisor| {
        let divisor = match by {
            Divisor::Number(number) => Ok(*number),
            Divisor::Column(at) => line[*at].parse(),
        };
        let figure = divisor.and_then(|by| Ok(line[at].parse::<f64>()? / by));
        table.extend(keys.iter().map(|key| &line[*key]), heading, figure);
    };
    // With `columns`, a field of the file names the column. Otherwise each value has its own.
    if kind == "columns" {
        let pair = list.split_once("; value: ");
        let (columns, value) = pair.ok_or("no '; value: ' after columns")?;
        let (columns, value) = (column(columns)?, column(value)?);
        let lines = lines.iter();
        lines.for_each(|line| add(line, &line[columns], value, &Divisor::Number(1.0)));
    } else {
        let value = |value| {
            let (value, heading) = str::split_once(value, " as ").unwrap_or((value, value));
            // A column's own name may have a stroke in it.
            let divided = value.rsplit_once(" / ").filter(|_| column(value).is_err());
            let (name, by) = match divided {
                None => (value, Divisor::Number(1.0)),
                Some((name, by)) => match by.parse() {
                    Ok(number) => (name, Divisor::Number(number)),
                    Err(_) => (name, Divisor::Column(column(by)?)),
                },
            };
            Ok((heading, column(name)?, by))
        };
        let values: Result<Vec<_>, String> = list.split(", ").map(value).collect();
        let values = values?;
        for line in &lines {
            let values = values.iter();
            values.for_each(|(heading, at, by)| add(line, heading, *at, by));
        }
    }
    markdown(&rows, &table, kind == "quantiles", worst)
}

/// A table of medians, or of the quantiles of its only column, in Markdown. `worst` limits the
/// number of rows.
fn markdown(
    keys: &[&str],
    table: &Pivot,
    quantiles: bool,
    worst: Option<usize>,
) -> Result<String, String> {
    // The fields of a row: the number of figures and their quantiles, or the median of each column.
    let part = |figures: &[f64], part| (!figures.is_empty()).then(|| quantile(figures, part));
    let fields = |fields: Vec<Vec<f64>>| -> Vec<Option<f64>> {
        if !quantiles {
            return fields.iter().map(|figures| part(figures, 0.5)).collect();
        }
        let parts = QUANTILES.map(|(_, share)| part(&fields[0], share));
        [&[Some(fields[0].len() as f64)], &parts[..]].concat()
    };
    let rows = table.rows().into_iter();
    let mut rows: Vec<_> = rows.map(|(key, figures)| (key, fields(figures))).collect();
    if let Some(most) = worst {
        let last = |fields: &[Option<f64>]| fields.last().copied().flatten().unwrap_or(0.0);
        rows.sort_by(|a, b| last(&b.1).total_cmp(&last(&a.1)));
        rows.truncate(most);
    }
    if rows.is_empty() {
        return Err("the file has no such lines".into());
    }
    // The header, the line of alignments, and the rows.
    let headings: Vec<&str> = match quantiles {
        true => [&[CELLS], &QUANTILES.map(|(name, _)| name)[..]].concat(),
        false => table.columns.iter().map(String::as_str).collect(),
    };
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let names = keys.iter().map(|name| name.to_string());
    let names = names.chain(headings.iter().map(|name| grouped(name)));
    // Names are left-aligned, figures right-aligned.
    let marks = [vec!["---"; keys.len()], vec!["--:"; headings.len()]].concat();
    let marks = marks.into_iter().map(String::from);
    let mut out = line(names.collect()) + &line(marks.collect());
    for (key, fields) in rows {
        let fields = headings.iter().zip(fields);
        let fields = fields.map(|(heading, field)| match field {
            None => String::new(),
            Some(count) if *heading == CELLS => format!("{count:.0}"),
            Some(figure) => number::table(figure),
        });
        out += &line(key.iter().map(|name| grouped(name)).chain(fields).collect());
    }
    Ok(out)
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
        // A stroke is the end of a line.
        let cases = "
a.csv | rows: op | columns: kind; value: ratio | where: rows=1000 -> | op | int | ref |/| ---
a.csv | rows: op | columns: kind; value: ratio | where: rows=1000 -> | lookup | 1.00 | 2.00 |/<!-- end
a.csv | rows: kind, rows | values: ratio | worst: 1 -> --: |/| ref | 10 | 31.2 |/<!-- end
a.csv + more.csv | rows: kind | values: ratio as times | where: op=next -> | kind | times |
a.csv + more.csv | rows: kind | values: ratio as times | where: op=next -> | ref | 0.25 |
a.csv | rows: kind | values: ratio / 2 as half | where: rows=10 -> | ref | 15.6 |
a.csv | rows: kind | values: ratio / rows as share | where: rows=10 -> | ref | 3.12 |";
        for case in cases.trim().lines() {
            let (comment, expected) = case.split_once(" -> ").expect("two parts");
            let page = page_of(comment).expect(comment);
            assert!(page.contains(&expected.replace('/', "\n")), "{page}");
        }
    }

    #[test]
    fn a_wrong_comment_is_an_error() {
        let cases = "
a.csv + other.csv | rows: op | values: ratio -> different columns
b.csv | rows: op | values: ratio -> no such file
a.csv | rows: cop | values: ratio -> no column \"cop\"
a.csv | rows: op -> neither columns
a.csv | lines: op -> no such part: lines
a.csv | rows: op | columns: kind -> no '; value: '
a.csv | rows: op | values: ratio | where: rows=7 -> no such lines";
        for case in cases.trim().lines() {
            let (comment, why) = case.split_once(" -> ").expect("two parts");
            let error = page_of(comment).expect_err(comment);
            assert!(error.contains(why), "{error}");
        }
        let open = "<!-- figures a.csv | rows: op | values: ratio -->\n";
        let error = filled(open, |_| Ok(CSV.into())).expect_err("it doesn't end");
        assert!(error.contains("no <!-- end"));
    }
}
