//! The style of a series: a colour, a dash and a marker. Series can be told apart without colours,
//! and look the same in every plot.

use crate::report::read::Findings;
use crate::stats::distinct;
use serde::Serialize;

/// The number of colours (`.c0` and so on in the style sheets).
const COLOURS: usize = 8;
/// Dashes of lines. The first one is a solid line.
pub const DASHES: [&str; 5] = ["", "7 3", "2 3", "9 3 2 3", "14 4"];
/// Markers, around the origin.
pub const MARKERS: [&str; 9] = [
    "M-4,0a4,4 0 1,0 8,0a4,4 0 1,0 -8,0Z",
    "M-3.6,-3.6h7.2v7.2h-7.2Z",
    "M0,-4.8L4.6,3.4H-4.6Z",
    "M0,-5L5,0L0,5L-5,0Z",
    "M0,4.8L4.6,-3.4H-4.6Z",
    "M-1.4,-4.6h2.8v3.2h3.2v2.8h-3.2v3.2h-2.8v-3.2h-3.2v-2.8h3.2Z",
    "M-4.4,-2.4l2,-2l2.4,2.4l2.4,-2.4l2,2l-2.4,2.4l2.4,2.4l-2,2l-2.4,-2.4l-2.4,2.4l-2,-2l2.4,-2.4Z",
    "M0,-5L4.8,-1.5L3,4.1H-3L-4.8,-1.5Z",
    "M-5,-2.2h10v4.4h-10Z",
];

/// The look of a series, by numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Style {
    pub colour: usize,
    pub dash: usize,
    pub marker: usize,
    /// Larder's default is drawn bold, with filled markers.
    pub ours: bool,
}

/// Whether a series is Larder's default. The structures of the studies (`larder set, btree`) are
/// there to be compared with.
pub fn ours(name: &str) -> bool {
    let name = name.to_lowercase();
    let structure = ["larder set, ", "larder ordered_set, "];
    let structure = structure.iter().any(|start| name.starts_with(start));
    (name.starts_with("larder") && !structure) || name.starts_with("default")
}

/// The names of all series of a report. Their positions decide the styles.
#[derive(Debug)]
pub struct Styles(Vec<String>);

impl Styles {
    /// Collects the names of all series of these results.
    pub fn new<'a>(found: impl Iterator<Item = &'a Findings>) -> Styles {
        let studies = found.flat_map(|findings| &findings.studies);
        let mut names = distinct(studies.flat_map(|study| {
            let points = study.points.iter().map(|point| &point.series);
            points.chain(study.published.iter().map(|figure| &figure.series))
        }));
        // Ours come first, so a new peer doesn't change them.
        names.sort_by_key(|name| !ours(name));
        Styles(names.into_iter().cloned().collect())
    }

    /// The style of the series of a name.
    pub fn get(&self, name: &str) -> Style {
        let at = self.0.iter().position(|known| known == name).unwrap_or(0);
        let others = self.0.iter().take_while(|name| ours(name)).count();
        let ours = ours(name);
        // Ours begin with the solid line, the others with the first dashed one. The numbers of
        // colours, dashes and markers are coprime, so combinations repeat late.
        let dash = match ours {
            true => at,
            false => at.saturating_sub(others) + 1,
        };
        Style {
            colour: at % COLOURS,
            dash: dash % DASHES.len(),
            marker: at % MARKERS.len(),
            ours,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ours;

    #[test]
    fn only_defaults_are_ours() {
        let defaults = ["larder set", "default ordered_set", "larder, 1 k rows"];
        assert!(defaults.into_iter().all(ours));
        let others = "larder set, btree; larder ordered_set, lfcatree; ets set; judysl";
        assert!(!others.split("; ").any(ours));
    }
}
