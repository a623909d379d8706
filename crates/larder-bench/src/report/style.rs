//! The style of a series: a colour, a marker and a dash. It can be recognized without colours, and
//! is the same in every plot.

use crate::report::read::Findings;
use crate::stats::distinct;
use serde::Serialize;

/// How many colours there are (`.c0` and so on in the style sheets).
pub const COLOURS: usize = 8;
/// Dashes of lines; the first is none.
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

/// How one series looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Style {
    /// The colour's number.
    pub colour: usize,
    /// The dash's number.
    pub dash: usize,
    /// The marker's number.
    pub marker: usize,
    /// Whether it is Larder's own default: then it is drawn bolder, its markers filled.
    pub ours: bool,
}

/// Whether a series is what Larder gives who asks for nothing special; the structures of the
/// studies (`larder set, btree`) are Larder's, too, but are there to be compared with.
pub fn ours(name: &str) -> bool {
    let name = name.to_lowercase();
    let structure = ["larder set, ", "larder ordered_set, "];
    let asked = structure.iter().any(|start| name.starts_with(start));
    (name.starts_with("larder") && !asked) || name.starts_with("default")
}

/// The series of a report, in the order in which they are first met.
#[derive(Debug)]
pub struct Styles(Vec<String>);

impl Styles {
    /// Of all the series that there are.
    pub fn of(found: &[&Findings]) -> Styles {
        let studies = found.iter().flat_map(|findings| &findings.studies);
        let mut names = distinct(studies.flat_map(|study| {
            let points = study.points.iter().map(|point| &point.series);
            points.chain(study.published.iter().map(|figure| &figure.series))
        }));
        // Ours first. So a new peer changes no style of ours.
        names.sort_by_key(|name| !ours(name));
        Styles(names.into_iter().cloned().collect())
    }

    /// How the series looks.
    pub fn get(&self, name: &str) -> Style {
        // The place in the list of all series decides everything, so it is the same in each plot.
        let at = self.0.iter().position(|of| of == name).unwrap_or(0);
        let first_other = self.0.iter().take_while(|name| ours(name)).count();
        let ours = ours(name);
        Style {
            // The numbers of colours, dashes and markers have no common divisor. So their
            // combinations repeat only after all of them were used.
            colour: at % COLOURS,
            // Ours begin with the solid line. The others begin with the first dashed one.
            dash: if ours {
                at % DASHES.len()
            } else {
                (at - first_other.min(at) + 1) % DASHES.len()
            },
            marker: at % MARKERS.len(),
            ours,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ours;

    #[test]
    fn the_default_is_ours_and_a_structure_is_not() {
        for name in [
            "larder set",
            "default ordered_set",
            "larder hash",
            "larder, 1 k rows",
        ] {
            assert!(ours(name), "{name}");
        }
        for name in [
            "larder set, btree",
            "larder ordered_set, lfcatree",
            "ets set",
            "judysl",
        ] {
            assert!(!ours(name), "{name}");
        }
    }
}
