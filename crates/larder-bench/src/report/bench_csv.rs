//! Reads `bench.csv` of `make bench` as a study. It has every operation of `ets` and of Larder,
//! measured in turns in one node.
//!
//! The file has facts as comments (`# name: "value"`), and then a line for each operation.
//! Operations of one unit and size make a plot, in which the places are the operations. The file
//! has the spread of the ratios only. So the spread of Larder's figure is computed from it: the
//! median of `ets` times the smallest and the largest ratio.
//!
//! Lines without figures are sums of those that follow. They make a separate plot, the first one,
//! which also shows the targets.

use crate::report::number::short;
use crate::result::{Better, Origin, Plot, Point, Published, Study};
use std::collections::BTreeMap;

/// What is used here of a line. Those that sum up have no figures, but for a ratio.
#[derive(serde::Deserialize)]
struct BenchLine {
    rows: f64,
    #[serde(rename = "type")]
    kind: String,
    operation: String,
    unit: String,
    ets: Option<f64>,
    larder: Option<f64>,
    ratio: Option<f64>,
    ratio_least: Option<f64>,
    ratio_most: Option<f64>,
    target: Option<f64>,
    runs: Option<usize>,
}

/// A line that sums up those that follow it, and what these say of the spread.
struct Group {
    rows: f64,
    title: String,
    ratio: f64,
    target: Option<f64>,
    /// Natural logarithms of the least and the most ratios, added up.
    spread: [f64; 2],
    members: usize,
    runs: usize,
}

/// Understands the file; an error says in words why it is no such file.
pub fn parse(text: &str) -> Result<Study, String> {
    // The commit and the date have fields of their own. Other facts describe the machine.
    let mut machine = facts(text);
    let mut take = |name: &str| machine.remove(name).unwrap_or_default();
    let mut study = Study {
        study: "make-bench".into(),
        title: "Larder beside ets, operation by operation".into(),
        source: "the ets of the installed OTP: both do the same work in one node, in turns".into(),
        settings: ["runs", "operations"]
            .map(|name| (name.into(), take(name)))
            .into(),
        ..Study::default()
    };
    study.origin = Origin {
        commit: take("commit"),
        started: take("date"),
        machine,
    };
    let mut groups = Vec::new();
    for line in crate::report::lines::lines::<BenchLine>(text)? {
        // A line with neither figure begins a group: it sums up the lines behind it.
        match (line.ets, line.larder, line.ratio_least, line.ratio_most) {
            (None, ..) => groups.push(group(&line)?),
            (Some(ets), Some(larder), Some(least), Some(most)) => {
                let figures = (ets, larder, [least, most]);
                add(&mut study, groups.last_mut(), &line, figures);
            }
            _ => return Err("figures are missing".into()),
        }
    }
    glance(&mut study, &groups);
    Ok(study)
}

fn group(line: &BenchLine) -> Result<Group, String> {
    let title = line.operation.as_str();
    // The spread and the members are added when their lines are read.
    Ok(Group {
        rows: line.rows,
        title: title
            .strip_suffix(": geometric mean")
            .unwrap_or(title)
            .to_string(),
        ratio: line.ratio.ok_or("a sum has no ratio")?,
        target: line.target,
        spread: [0.0; 2],
        members: 0,
        runs: 0,
    })
}

/// The plot that comes first: each kind of work by its ratio, and the targets.
fn glance(study: &mut Study, groups: &[Group]) {
    const ID: &str = "glance";
    const GLANCE: &str = "glance | In short: Larder's time or memory beside that of ets | work, names | times that of ets, log | times, less | Left of 1, Larder is quicker or smaller than ets. Geometric means of the operations of a kind; the targets are the project's own.";
    if groups.is_empty() {
        return;
    }
    study.plots.insert(0, Plot::said(GLANCE).0);
    for group in groups {
        let point = |series: &str, y: f64, [low, high]: [f64; 2]| Point {
            plot: ID.into(),
            series: series.into(),
            x: group.title.as_str().into(),
            y,
            low,
            high,
            unit: "times".into(),
            runs: group.runs,
            better: Better::Less,
        };
        let size = short(group.rows);
        // The mean of the ends of the spread is geometric, as that of the ratios is.
        let spread = group
            .spread
            .map(|sum| (sum / group.members.max(1) as f64).exp());
        let ours = format!("larder, {size} rows");
        study.points.push(point(&ours, group.ratio, spread));
        // The line of `ets` is at 1, once for each kind of work.
        let there =
            |p: &Point| p.plot == ID && p.series == "ets" && p.x == group.title.as_str().into();
        if !study.points.iter().any(there) {
            study.points.push(point("ets", 1.0, [1.0; 2]));
        }
        if let Some(target) = group.target {
            study.published.push(Published {
                plot: ID.into(),
                series: format!("target, {size} rows"),
                x: group.title.as_str().into(),
                value: target,
                unit: "times".into(),
                source: "the project's targets".into(),
            });
        }
    }
}

fn facts(text: &str) -> BTreeMap<String, String> {
    let lines = text.lines().filter_map(|line| line.strip_prefix("# "));
    let facts = lines.filter_map(|line| line.split_once(": "));
    facts
        .map(|(name, fact)| (name.to_string(), fact.trim_matches('"').to_string()))
        .collect()
}

/// A line with the figures of one operation.
fn add(
    study: &mut Study,
    group: Option<&mut Group>,
    line: &BenchLine,
    (ets, larder, ratios): (f64, f64, [f64; 2]),
) {
    let unit = line.unit.as_str();
    // A plot for each unit and size, since only such figures can be compared.
    let id = format!("{unit}-{}", line.rows);
    if study.plots.iter().all(|plot| plot.id != id) {
        study.plots.push(plot(&id, line.rows, unit));
    }
    let x = format!("{}: {}", line.kind, line.operation);
    let runs = line.runs.unwrap_or(0);
    // The file has the spread of the ratios. Multiply it with the median of `ets`.
    let spread = ratios.map(|ratio| ratio * ets);
    if let Some(group) = group {
        group.members += 1;
        group.runs = group.runs.max(runs);
        // Logarithms are added for the geometric mean.
        for (sum, ratio) in group.spread.iter_mut().zip(ratios) {
            *sum += ratio.ln();
        }
    }
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
}

fn plot(id: &str, rows: f64, unit: &str) -> Plot {
    let (title, y_label) = match unit {
        "ns" => ("Time of an operation", "nanoseconds an operation"),
        "bytes" => ("Memory of a row", "resident bytes a row"),
        other => (other, other),
    };
    let title = format!("{title}, {} rows", short(rows));
    let note = "Larder's spread is that of the paired ratios, around the median of ets.";
    // A plot is described by one line, as in the studies.
    Plot::said(&format!(
        "{id} | {title} | operation, names | {y_label}, log | {unit}, less | {note}"
    ))
    .0
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
            (
                study.origin.commit.as_str(),
                study.origin.machine["otp"].as_str()
            ),
            ("abc", "25")
        );
        assert_eq!((study.plots.len(), study.points.len()), (2, 4));
        let larder = &study.points[1];
        assert_eq!(
            (larder.y, larder.low, larder.high, larder.runs),
            (500.0, 450.0, 550.0, 5)
        );
        assert_eq!(larder.x, "set: insert, in order".into());
        let short = &study.points[2];
        assert_eq!(
            (study.plots[0].id.as_str(), short.plot.as_str()),
            ("glance", "glance")
        );
        assert_eq!(
            (short.series.as_str(), &short.x),
            ("larder, 1 k rows", &"set".into())
        );
        assert_eq!((short.y, short.runs), (2.3, 5));
        assert!((short.low - 2.25).abs() < 1e-9 && (short.high - 2.75).abs() < 1e-9);
        assert_eq!(
            (study.points[3].series.as_str(), study.points[3].y),
            ("ets", 1.0)
        );
        assert_eq!(study.published[0].value, 0.9);
    }

    #[test]
    fn another_file_is_an_error() {
        assert!(parse("a,b\n1,2\n").is_err());
        assert!(parse(&FILE.replace("200,500", "200,many")).is_err());
    }
}
