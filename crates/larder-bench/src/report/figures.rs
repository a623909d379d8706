//! Tables of figures in Markdown pages, written from the CSVs of the results.
//!
//! A page says where a table stands and what it shows; the lines between the two comments are ours:
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
//! A `figures` comment that says something else is an error, and so is a column that the file
//! lacks.

use crate::report::number;
use crate::report::Error;
use crate::stats::{distinct, quantile, sorted};
use std::path::Path;

const BEGIN: &str = "<!-- figures ";
/// The heading of a count, which has no decimals.
const CELLS: &str = "cells";
const END: &str = "<!-- end of figures -->";

/// The page with its tables made anew from the files in `results`.
///
/// # Errors
/// If the page or a file can't be read, or a table can't be made; says which.
///
/// # Complexity
/// Reads a file for each table.
pub fn fill(page: &Path, results: &Path) -> Result<String, Error> {
    let text = std::fs::read_to_string(page).map_err(|error| Error::Io(page.into(), error))?;
    let read = |name: &str| {
        let path = results.join(name);
        std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
    };
    filled(&text, read).map_err(|why| Error::Figures(page.into(), why))
}

fn filled(text: &str, read: impl Fn(&str) -> Result<String, String>) -> Result<String, String> {
    let mut out = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        // All lines are kept but those between the two comments, which are replaced.
        out += &format!("{line}\n");
        let Some(asked) = line.strip_prefix(BEGIN) else {
            continue;
        };
        let asked = asked
            .strip_suffix(" -->")
            .ok_or_else(|| format!("no --> at the end of {line:?}"))?;
        // Skip the old table.
        if !lines.any(|line| line == END) {
            return Err(format!("no {END} after {line:?}"));
        }
        let table = Asked::parse(asked)
            .and_then(|asked| asked.table(&asked.read(&read)?))
            .map_err(|why| format!("{asked:?}: {why}"))?;
        out += &format!("{table}{END}\n");
    }
    Ok(out)
}

/// What a comment asks for.
#[derive(Default)]
struct Asked<'a> {
    file: &'a str,
    rows: Vec<&'a str>,
    what: Fields<'a>,
    only: Vec<(&'a str, &'a str)>,
    worst: Option<usize>,
}

/// What makes a row's field of its lines.
type Field = Box<dyn Fn(&[&csv::StringRecord]) -> Option<f64>>;

/// What the fields of a table are.
#[derive(Default)]
enum Fields<'a> {
    #[default]
    Nothing,
    Pivot {
        columns: &'a str,
        value: &'a str,
    },
    Values(Vec<&'a str>),
    Quantiles(&'a str),
}

impl<'a> Asked<'a> {
    fn parse(text: &'a str) -> Result<Self, String> {
        let mut parts = text.split('|').map(str::trim);
        let mut asked = Asked {
            file: parts.next().unwrap_or_default(),
            ..Asked::default()
        };
        for part in parts {
            // Each part is `name: what it says`.
            let (name, said) = part
                .split_once(": ")
                .ok_or_else(|| format!("no ': ' in {part:?}"))?;
            match name {
                "rows" => asked.rows = list(said),
                "columns" => {
                    let pair = said.split_once("; value: ");
                    let (columns, value) = pair.ok_or("no '; value: ' after columns")?;
                    asked.what = Fields::Pivot { columns, value };
                }
                "values" => asked.what = Fields::Values(list(said)),
                "quantiles" => asked.what = Fields::Quantiles(said),
                "where" => {
                    let pairs = list(said).into_iter().map(|pair| pair.split_once('='));
                    asked.only = pairs.collect::<Option<_>>().ok_or("no = in where")?;
                }
                "worst" => asked.worst = Some(said.parse().map_err(|_| "worst is no number")?),
                _ => return Err(format!("no such part: {name}")),
            }
        }
        Ok(asked)
    }

    fn read(&self, read: impl Fn(&str) -> Result<String, String>) -> Result<File, String> {
        let mut files = self.file.split(" + ").map(|name| File::parse(&read(name)?));
        let mut file = files.next().ok_or("it names no file")??;
        for more in files {
            let more = more?;
            if more.header != file.header {
                return Err("the files have different columns".into());
            }
            file.lines.extend(more.lines);
        }
        Ok(file)
    }

    fn table(&self, file: &File) -> Result<String, String> {
        // 1. Columns are found by name, so that a file may have others.
        let only = self
            .only
            .iter()
            .map(|(name, value)| Ok((file.column(name)?, *value)));
        let only: Vec<(usize, &str)> = only.collect::<Result<_, String>>()?;
        let chosen =
            |line: &&csv::StringRecord| only.iter().all(|(at, value)| line[*at] == **value);
        let lines: Vec<&csv::StringRecord> = file.lines.iter().filter(chosen).collect();
        // 2. The rows of the table are the different values of these columns.
        let rows: Vec<usize> = self
            .rows
            .iter()
            .map(|name| file.column(name))
            .collect::<Result<_, _>>()?;
        let name = |line: &csv::StringRecord| -> Vec<String> {
            rows.iter().map(|at| line[*at].to_string()).collect()
        };
        let names = distinct(lines.iter().map(|line| name(line)));
        // 3. Each column of the table has a heading, and a function from lines to a field.
        let (headings, fields): (Vec<String>, Vec<Field>) =
            self.columns(file, &lines)?.into_iter().unzip();
        let mut body: Vec<(Vec<String>, Vec<Option<f64>>)> = names
            .into_iter()
            .map(|row| {
                // 4. Fill the fields. A row without any figure is left out.
                let of = lines.iter().copied().filter(|line| name(line) == row);
                let of: Vec<_> = of.collect();
                let fields: Vec<_> = fields.iter().map(|field| field(&of)).collect();
                (row, fields)
            })
            .filter(|(_, fields)| fields.iter().any(Option::is_some))
            .collect();
        // 5. Only the worst rows, if that is asked for.
        if let Some(most) = self.worst {
            let last = |fields: &[Option<f64>]| fields.last().copied().flatten().unwrap_or(0.0);
            body.sort_by(|a, b| last(&b.1).total_cmp(&last(&a.1)));
            body.truncate(most);
        }
        // An empty table is an error: the page asks for something that the file doesn't have.
        if body.is_empty() {
            return Err("the file has no such lines".into());
        }
        Ok(self.drawn(&headings, &body))
    }

    /// The headings, and what makes the field under each.
    fn columns(
        &self,
        file: &File,
        lines: &[&csv::StringRecord],
    ) -> Result<Vec<(String, Field)>, String> {
        match &self.what {
            Fields::Nothing => Err("it says neither columns, values nor quantiles".into()),
            Fields::Values(names) => {
                let column = |said: &&str| {
                    // A column may get another heading.
                    let (name, heading) = said.split_once(" as ").unwrap_or((said, said));
                    let (at, by) = file.divided(name)?;
                    let field: Field = Box::new(move |of| Some(part(0.5, of, at)? / by));
                    Ok((heading.into(), field))
                };
                names.iter().map(column).collect()
            }
            Fields::Pivot { columns, value } => {
                let (columns, value) = (file.column(columns)?, file.column(value)?);
                let column = |heading: String| {
                    let of_column = heading.clone();
                    let field: Field = Box::new(move |of| {
                        let of = of.iter().filter(|line| line[columns] == *of_column);
                        part(0.5, &of.copied().collect::<Vec<_>>(), value)
                    });
                    (heading, field)
                };
                // A column for each different value, in the order of the file.
                let headings = distinct(lines.iter().map(|line| line[columns].to_string()));
                Ok(headings.into_iter().map(column).collect())
            }
            Fields::Quantiles(name) => {
                let at = file.column(name)?;
                // How many figures there are, beside their distribution.
                let count = move |of: &[&csv::StringRecord]| {
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
                let parts = parts.map(|(heading, share)| {
                    let field: Field = Box::new(move |of| part(share, of, at));
                    (heading.into(), field)
                });
                let cells: (String, Field) = (CELLS.into(), Box::new(count));
                Ok(std::iter::once(cells).chain(parts).collect())
            }
        }
    }

    fn drawn(&self, headings: &[String], body: &[(Vec<String>, Vec<Option<f64>>)]) -> String {
        let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        let names = self.rows.iter().map(ToString::to_string);
        let shown = headings.iter().map(|heading| number::grouped(heading));
        // Names are left-aligned, figures right-aligned.
        let marks = [vec!["---"; self.rows.len()], vec!["--:"; headings.len()]].concat();
        let mut out = line(names.chain(shown).collect());
        out += &line(marks.into_iter().map(String::from).collect());
        let shown = |(heading, field): (&String, &Option<f64>)| match field {
            // A combination that the file doesn't have stays empty.
            None => String::new(),
            Some(count) if heading == CELLS => format!("{count:.0}"),
            Some(field) => number::table(*field),
        };
        for (row, fields) in body {
            let names = row.iter().map(|name| number::grouped(name));
            let fields = headings.iter().zip(fields).map(shown);
            out += &line(names.chain(fields).collect());
        }
        out
    }
}

/// A CSV in memory; lines that begin with `#` are facts and not looked at.
struct File {
    header: csv::StringRecord,
    lines: Vec<csv::StringRecord>,
}

impl File {
    fn parse(text: &str) -> Result<Self, String> {
        let mut reader = crate::report::lines::csv(text);
        let header = reader.headers().map_err(|error| error.to_string())?.clone();
        let lines = reader
            .records()
            .collect::<Result<_, _>>()
            .map_err(|error| error.to_string())?;
        Ok(File { header, lines })
    }

    fn column(&self, name: &str) -> Result<usize, String> {
        let place = self.header.iter().position(|column| column == name);
        place.ok_or_else(|| format!("the file has no column {name:?}"))
    }

    /// `A / N` is column A, and what its figures are divided by.
    fn divided(&self, said: &str) -> Result<(usize, f64), String> {
        let divided = said
            .rsplit_once(" / ")
            .and_then(|(name, by)| Some((name, by.parse().ok()?)));
        let (name, by) = divided.unwrap_or((said, 1.0));
        Ok((self.column(name)?, by))
    }
}

fn list(said: &str) -> Vec<&str> {
    said.split(", ").collect()
}

/// What a column has in these lines, least first. Empty fields are left out.
fn figures(lines: &[&csv::StringRecord], at: usize) -> Vec<f64> {
    sorted(lines.iter().filter_map(|line| line[at].parse().ok()))
}

/// The quantile of a column's figures in these lines, if there are any.
fn part(share: f64, lines: &[&csv::StringRecord], at: usize) -> Option<f64> {
    let sorted = figures(lines, at);
    (!sorted.is_empty()).then(|| quantile(&sorted, share))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CSV: &str = "# seed: 1\nop,kind,rows,ratio\nlookup,int,1000,0.5\nlookup,int,1000,1.5\n\
        lookup,int,1000,1.0\nlookup,ref,1000,2.0\nnext,int,10,\nnext,ref,10,31.25\n";

    fn made(asked: &str) -> Result<String, String> {
        let page =
            format!("Before\n<!-- figures {asked} -->\nold\n<!-- end of figures -->\nafter\n");
        filled(&page, |name| match name {
            "a.csv" => Ok(CSV.into()),
            "more.csv" => Ok("op,kind,rows,ratio\nnext,ref,10,0.25\n".into()),
            "other.csv" => Ok("op,ratio\nnext,1\n".into()),
            _ => Err("no such file".into()),
        })
    }

    #[test]
    fn a_distribution() {
        let page = made("a.csv | rows: op | quantiles: ratio").expect("a table");
        assert_eq!(
            page,
            "Before\n<!-- figures a.csv | rows: op | quantiles: ratio -->\n\
             | op | cells | p10 | median | p90 | p99 | worst |\n\
             |---|--:|--:|--:|--:|--:|--:|\n"
                .replace("|---|--:|--:|--:|--:|--:|--:|", "| --- | --: | --: | --: | --: | --: | --: |")
                + "| lookup | 4 | 0.50 | 1.00 | 2.00 | 2.00 | 2.00 |\n| next | 1 | 31.2 | 31.2 | 31.2 | 31.2 | 31.2 |\n\
                   <!-- end of figures -->\nafter\n"
        );
    }

    #[test]
    fn a_pivot_and_the_worst_of_some_lines() {
        let page = made("a.csv | rows: op | columns: kind; value: ratio | where: rows=1000")
            .expect("a table");
        assert!(page.contains("| op | int | ref |\n"), "{page}");
        assert!(
            page.contains("| lookup | 1.00 | 2.00 |\n<!-- end"),
            "{page}"
        );
        let page = made("a.csv | rows: kind, rows | values: ratio | worst: 1").expect("a table");
        assert!(
            page.contains("--: |\n| ref | 10 | 31.2 |\n<!-- end"),
            "{page}"
        );
    }

    #[test]
    fn two_files_and_a_heading() {
        let page = made("a.csv + more.csv | rows: kind | values: ratio as times | where: op=next");
        let page = page.expect("a table");
        assert!(page.contains("| kind | times |"), "{page}");
        assert!(page.contains("| ref | 0.25 |"), "{page}");
        let page = made("a.csv | rows: kind | values: ratio / 2 as half | where: rows=10");
        let page = page.expect("a table");
        assert!(page.contains("| ref | 15.6 |"), "{page}");
        let error =
            made("a.csv + other.csv | rows: op | values: ratio").expect_err("other columns");
        assert!(error.contains("different columns"), "{error}");
    }

    #[test]
    fn a_page_made_again_is_the_same() {
        let page = made("a.csv | rows: op | quantiles: ratio").expect("a table");
        assert_eq!(filled(&page, |_| Ok(CSV.into())), Ok(page));
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (asked, why) in [
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
            let error = made(asked).expect_err(asked);
            assert!(error.contains(why), "{error}");
        }
        let open = filled(
            "<!-- figures a.csv | rows: op | values: ratio -->\n",
            |_| Ok(CSV.into()),
        );
        assert!(open.expect_err("it doesn't end").contains("no <!-- end"));
    }
}
