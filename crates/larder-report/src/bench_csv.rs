//! `bench.csv` of `make bench` as a study: every operation of `ets` and of Larder, in turns, in one node.
//!
//! The file has facts as comments (`# name: "value"`), then a line an operation. Operations of one unit and size make a plot; its places are the
//! operations. Ratios' spreads are what the file has, so the spread of Larder's figure is drawn from them: `ets`' median times the least and the most ratio.

use crate::result::{Better, Plot, Point, Scale, Study};
use crate::Error;
use std::collections::BTreeMap;
use std::path::Path;

/// Where the columns are that are used here.
struct Columns {
    rows: usize,
    kind: usize,
    operation: usize,
    unit: usize,
    ets: usize,
    larder: usize,
    least: usize,
    most: usize,
    runs: usize,
}

impl Columns {
    fn find(header: &csv::StringRecord) -> Option<Columns> {
        let at = |name| header.iter().position(|column| column == name);
        Some(Columns {
            rows: at("rows")?,
            kind: at("type")?,
            operation: at("operation")?,
            unit: at("unit")?,
            ets: at("ets")?,
            larder: at("larder")?,
            least: at("ratio_least")?,
            most: at("ratio_most")?,
            runs: at("runs")?,
        })
    }
}

/// Reads the file.
///
/// # Errors
/// If it can't be read, or is not such a file.
pub fn read(path: &Path) -> Result<Study, Error> {
    let text = std::fs::read_to_string(path).map_err(|error| Error::Io(path.into(), error))?;
    parse(&text).map_err(|why| Error::Form(path.into(), why))
}

fn parse(text: &str) -> Result<Study, String> {
    let mut machine = facts(text);
    let mut take = |name: &str| machine.remove(name).unwrap_or_default();
    let mut study = Study {
        study: "make-bench".into(),
        title: "Every operation, ets and Larder in turns in one node (make bench)".into(),
        source: "the installed ets".into(),
        commit: take("commit"),
        started: take("date"),
        settings: ["runs", "operations"]
            .map(|name| (name.into(), take(name)))
            .into(),
        ..Study::default()
    };
    study.machine = machine;
    let mut reader = csv::ReaderBuilder::new()
        .comment(Some(b'#'))
        .from_reader(text.as_bytes());
    let header = reader.headers().map_err(|error| error.to_string())?;
    let columns = Columns::find(header).ok_or("it has not the columns of make bench")?;
    for record in reader.records() {
        add(
            &mut study,
            &columns,
            &record.map_err(|error| error.to_string())?,
        )?;
    }
    Ok(study)
}

fn facts(text: &str) -> BTreeMap<String, String> {
    let lines = text.lines().filter_map(|line| line.strip_prefix("# "));
    let facts = lines.filter_map(|line| line.split_once(": "));
    facts
        .map(|(name, fact)| (name.to_string(), fact.trim_matches('"').to_string()))
        .collect()
}

/// A line whose `ets` is empty is a summary of others.
fn add(study: &mut Study, at: &Columns, line: &csv::StringRecord) -> Result<(), String> {
    if line[at.ets].is_empty() {
        return Ok(());
    }
    let number = |column: usize| -> Result<f64, String> {
        line[column]
            .parse()
            .map_err(|_| format!("{:?} is no number", &line[column]))
    };
    let (rows, unit) = (number(at.rows)?, &line[at.unit]);
    let id = format!("{}-{}", unit, &line[at.rows]);
    if study.plots.iter().all(|plot| plot.id != id) {
        study.plots.push(plot(&id, rows, unit));
    }
    let x = format!("{}: {}", &line[at.kind], &line[at.operation]);
    let runs = number(at.runs)? as usize;
    let (ets, larder) = (number(at.ets)?, number(at.larder)?);
    let spread = [number(at.least)? * ets, number(at.most)? * ets];
    for (series, y, [low, high]) in [("ets", ets, [ets; 2]), ("larder", larder, spread)] {
        study.points.push(Point {
            plot: id.clone(),
            series: series.into(),
            x: x.as_str().into(),
            y,
            low,
            high,
            unit: unit.into(),
            runs,
            better: Better::Less,
        });
    }
    Ok(())
}

fn plot(id: &str, rows: f64, unit: &str) -> Plot {
    let (title, y_label) = match unit {
        "ns" => ("Time of an operation", "nanoseconds an operation"),
        "bytes" => ("Memory of a row", "resident bytes a row"),
        other => (other, other),
    };
    Plot {
        id: id.into(),
        title: format!("{title}, {} rows", crate::number::short(rows)),
        x_label: "operation".into(),
        y_label: y_label.into(),
        x_scale: Scale::Names,
        y_scale: Scale::Log,
        note: "Larder's spread is that of the paired ratios, around the median of ets.".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "# otp: \"25\"\n# commit: \"abc\"\n# runs: 5\nrows,row,type,operation,unit,ets,larder,ratio,ratio_least,ratio_most,target,met,runs,ets_info,larder_info\n\
        1000,set_write,,\"set: geometric mean\",,,,2.3,,,0.9,false,,,\n\
        1000,set_write,set,\"insert, in order\",ns,200,500,2.5,2.25,2.75,0.9,false,5,,\n";

    #[test]
    fn a_file_of_make_bench_is_a_study() {
        let study = parse(FILE).expect("such a file");
        assert_eq!(
            (study.commit.as_str(), study.machine["otp"].as_str()),
            ("abc", "25")
        );
        assert_eq!((study.plots.len(), study.points.len()), (1, 2));
        let larder = &study.points[1];
        assert_eq!(
            (larder.y, larder.low, larder.high, larder.runs),
            (500.0, 450.0, 550.0, 5)
        );
        assert_eq!(larder.x, "set: insert, in order".into());
    }

    #[test]
    fn another_file_is_an_error() {
        assert!(parse("a,b\n1,2\n").is_err());
        assert!(parse(&FILE.replace("200,500", "200,many")).is_err());
    }
}
