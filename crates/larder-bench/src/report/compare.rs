//! Two runs of the same studies, figure by figure.

use crate::report::chart::{Chart, From, Series};
use crate::report::read::Findings;
use crate::report::verdict::{factor, sure, Sure};

/// The same figure in both runs.
#[derive(Debug)]
pub struct Pair<'a> {
    /// The plot that it is in.
    pub chart: &'a Chart,
    /// Its series.
    pub series: &'a str,
    /// Its place.
    pub x: f64,
    /// What this run measured, and the other.
    pub figures: (f64, f64),
    /// How many times as good this run is as the other.
    pub factor: f64,
    /// How sure that is.
    pub sure: Sure,
}

/// Every figure that both runs have.
pub fn pairs(charts: &[Chart]) -> Vec<Pair<'_>> {
    let mut all = Vec::new();
    for chart in charts {
        for here in chart.measured() {
            let there = |one: &&Series| one.from == From::Other && one.name == here.name;
            let Some(there) = chart.series.iter().find(there) else {
                continue;
            };
            for spot in &here.points {
                all.extend(there.at(spot.x).and_then(|other| {
                    let better = chart.better?;
                    Some(Pair {
                        chart,
                        series: &here.name,
                        x: spot.x,
                        figures: (spot.y, other.y),
                        factor: factor(better, spot.y, other.y)?,
                        sure: sure(spot, other),
                    })
                }));
            }
        }
    }
    all
}

/// A fact that is not the same in both runs: its name, here, there.
pub type Fact = (String, String, String);

/// What else is different between the runs, by study: a difference in the machine explains one in
/// the figures.
pub fn facts(here: &Findings, there: &Findings) -> Vec<(String, Vec<Fact>)> {
    let mut all = Vec::new();
    for study in &here.studies {
        let Some(other) = there.studies.iter().find(|s| s.study == study.study) else {
            continue;
        };
        let mut different = vec![
            ("commit".into(), study.commit.clone(), other.commit.clone()),
            (
                "started".into(),
                study.started.clone(),
                other.started.clone(),
            ),
        ];
        for (ours, theirs) in [
            (&study.machine, &other.machine),
            (&study.settings, &other.settings),
        ] {
            let mut names: Vec<&String> = ours.keys().chain(theirs.keys()).collect();
            names.sort();
            names.dedup();
            let fact = |of: &std::collections::BTreeMap<String, String>, name: &String| {
                of.get(name).cloned().unwrap_or_else(|| "–".into())
            };
            different.extend(
                names
                    .into_iter()
                    .map(|name| (name.clone(), fact(ours, name), fact(theirs, name))),
            );
        }
        different.retain(|(_, a, b)| a != b);
        all.push((study.study.clone(), different));
    }
    all
}
