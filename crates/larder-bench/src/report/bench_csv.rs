//! Reads `bench.csv` of `make bench` as a study. It has every operation of `ets` and of Larder,
//! measured in turns in one node.
//!
//! The file has facts as comments (`# name: "value"`), and then a line for each operation.
//! Operations of one unit and size make a plot, in which the places are the operations. The file
//! only has the spread of the ratios. The spread of Larder's figure is the median of `ets` times
//! the least and the greatest ratio.
//!
//! Lines without figures sum up those that follow. They make the first plot, with the targets.

use crate::report::number::short;
use crate::result::{Better, Origin, Plot, Point, Published, Study};
use crate::table::lines;

/// The columns that are used here. Lines that sum up only have a ratio and a target.
#[derive(serde::Deserialize)]
struct Line {
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

const GLANCE: &str = "glance | In short: Larder's time or memory beside that of ets | work, names | times that of ets, log | times, less | Left of 1, Larder is quicker or smaller than ets. Geometric means of the operations of a kind; the targets are the project's own.";

const NOTE: &str = "Larder's spread is that of the paired ratios, around the median of ets.";

/// Parses the file. Another file is an error.
pub fn parse(text: &str) -> Result<Study, String> {
    let facts = text
        .lines()
        .filter_map(|line| line.strip_prefix("# ")?.split_once(": "));
    let facts = facts.map(|(name, fact)| (name.to_string(), fact.trim_matches('"').to_string()));
    let mut origin: Origin = facts.collect();
    let mut take = |name: &str| origin.machine.remove(name).unwrap_or_default();
    let settings = ["runs", "operations"].map(|name| (name.into(), take(name)));
    let mut study = Study {
        study: "make-bench".into(),
        title: "Larder beside ets, operation by operation".into(),
        source: "the ets of the installed OTP: both do the same work in one node, in turns".into(),
        settings: settings.into(),
        origin,
        ..Study::default()
    };
    let all = lines::<Line>(text)?;
    let is_sum = |line: &Line| line.ets.is_none();
    for line in all.iter().filter(|line| !is_sum(line)) {
        add_operation(&mut study, line)?;
    }
    for i in (0..all.len()).filter(|&i| is_sum(&all[i])) {
        // Each sum has the operations that follow it.
        let members = all[i + 1..].iter().take_while(|line| !is_sum(line));
        add_sum(&mut study, &all[i], &members.collect::<Vec<_>>())?;
    }
    if all.iter().any(is_sum) {
        study.plots.insert(0, Plot::parse(GLANCE));
    }
    Ok(study)
}

/// A point of times, bytes or ratios.
fn point(plot: &str, series: &str, x: &str, figure: [f64; 3], unit: &str, runs: usize) -> Point {
    Point::new(plot, series, x.into(), figure, runs, unit, Better::Less)
}

fn add_operation(study: &mut Study, line: &Line) -> Result<(), String> {
    let (Some(ets), Some(larder), Some(least), Some(most)) =
        (line.ets, line.larder, line.ratio_least, line.ratio_most)
    else {
        return Err("figures are missing".into());
    };
    // Only figures of one unit and size are compared.
    let (unit, rows) = (&*line.unit, line.rows);
    let id = format!("{unit}-{rows}");
    if study.plots.iter().all(|plot| plot.id != id) {
        let (title, y_label) = match unit {
            "ns" => ("Time of an operation", "nanoseconds an operation"),
            "bytes" => ("Memory of a row", "resident bytes a row"),
            other => (other, other),
        };
        study.plots.push(Plot::parse(&format!(
            "{id} | {title}, {} rows | operation, names | {y_label}, log | {unit}, less | {NOTE}",
            short(rows)
        )));
    }
    let x = format!("{}: {}", line.kind, line.operation);
    let runs = line.runs.unwrap_or(0);
    let spread = [larder, least * ets, most * ets];
    let figures = [("ets", [ets; 3]), ("larder", spread)];
    let points = figures.map(|(series, figure)| point(&id, series, &x, figure, unit, runs));
    study.points.extend(points);
    Ok(())
}

fn add_sum(study: &mut Study, sum: &Line, members: &[&Line]) -> Result<(), String> {
    let ratio = sum.ratio.ok_or("a sum has no ratio")?;
    let x = sum.operation.trim_end_matches(": geometric mean");
    // The ends of the spread are geometric means, as the ratio is.
    let mean = |ratio: fn(&Line) -> Option<f64>| {
        let logs = members.iter().filter_map(|line| ratio(line)).map(f64::ln);
        (logs.sum::<f64>() / members.len().max(1) as f64).exp()
    };
    let spread = [mean(|line| line.ratio_least), mean(|line| line.ratio_most)];
    let runs = members.iter().filter_map(|line| line.runs).max();
    let (runs, size) = (runs.unwrap_or(0), short(sum.rows));
    let ours = format!("larder, {size} rows");
    let figure = [ratio, spread[0], spread[1]];
    let ours = point("glance", &ours, x, figure, "times", runs);
    // The line of `ets` has each kind of work once.
    let ets = point("glance", "ets", x, [1.0; 3], "times", runs);
    let same = |p: &Point| (&p.plot, &p.series, &p.x) == (&ets.plot, &ets.series, &ets.x);
    let known = study.points.iter().any(same);
    study.points.push(ours);
    study.points.extend((!known).then_some(ets));
    study.published.extend(sum.target.map(|value| Published {
        plot: "glance".into(),
        series: format!("target, {size} rows"),
        x: x.into(),
        value,
        unit: "times".into(),
        source: "the project's targets".into(),
    }));
    Ok(())
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
        let origin = &study.origin;
        assert_eq!((&*origin.commit, &*origin.machine["otp"]), ("abc", "25"));
        let ids: Vec<_> = study.plots.iter().map(|plot| &*plot.id).collect();
        assert_eq!(ids, ["glance", "ns-1000"]);
        let (x, unit) = ("set: insert, in order", "ns");
        let ets = point("ns-1000", "ets", x, [200.0; 3], unit, 5);
        assert_eq!(study.points[0], ets);
        let larder = point("ns-1000", "larder", x, [500.0, 450.0, 550.0], unit, 5);
        assert_eq!(study.points[1], larder);
        let sum = &study.points[2];
        assert_eq!((&*sum.series, &sum.x), ("larder, 1 k rows", &"set".into()));
        assert_eq!((sum.y, sum.runs), (2.3, 5));
        assert!((sum.low - 2.25).abs() < 1e-9 && (sum.high - 2.75).abs() < 1e-9);
        let glance = point("glance", "ets", "set", [1.0; 3], "times", 5);
        assert_eq!(study.points[3], glance);
        assert_eq!(study.published[0].value, 0.9);
    }

    #[test]
    fn another_file_is_an_error() {
        assert!(parse("a,b\n1,2\n").is_err());
        assert!(parse(&FILE.replace("200,500", "200,many")).is_err());
    }
}
