//! Fuzz targets: functions that take any bytes and must neither panic nor find Larder contradicting
//! itself. Each target is listed with what its bytes are, and what must hold.
//!
//! - `etf`: a term in the external format. What decodes encodes to what decodes to the same. Its
//!   bytes end where they say.
//! - `text`: a term as Erlang writes it. What parses prints to what parses to the same.
//! - `order`: two terms, by [`Input`]. Order keys compare as the terms do, one way and the other.
//! - `object`: a tuple, by [`Input`]. Stored in every form it comes back, element by element.
//! - `matchspec`: a specification and a tuple, by [`Input`]. A stored tuple gives what a plain one
//!   gives. The plan covers it. A replacement that is said to keep the key keeps it.
//! - `spec_text`: a specification and a tuple, as text. The same holds.
//! - `file`: a table file, whose checksums are put right unless its first byte is odd. It gives an
//!   error or a table, verified or not. The table saved again is the same.
//! - `operations`: a table's options and operations, by [`Input`]. What the table answers is what a
//!   list of rows answers.
//!
//! Three ways to run them: the tests of this crate (the kept corpus, then a moment of simple
//! mutation each), `make fuzz` (libFuzzer, guided by coverage), and `larder-fuzz FILE` for one
//! input that failed.

#![forbid(unsafe_code)]

mod file;
mod input;
mod operations;
mod spec;
mod terms;

pub use input::Input;

/// A target: its name, what it does, and inputs to begin with.
pub struct Target {
    /// Its name.
    pub name: &'static str,
    /// What it does with an input. Panics if something is wrong with Larder.
    pub run: fn(&[u8]),
    /// Inputs that get far.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

/// All targets.
pub const TARGETS: &[Target] = &[
    Target {
        name: "etf",
        run: terms::etf,
        seeds: terms::etf_seeds,
    },
    Target {
        name: "text",
        run: terms::text,
        seeds: terms::text_seeds,
    },
    Target {
        name: "order",
        run: terms::order,
        seeds: noise,
    },
    Target {
        name: "object",
        run: terms::object,
        seeds: noise,
    },
    Target {
        name: "matchspec",
        run: spec::matchspec,
        seeds: noise,
    },
    Target {
        name: "spec_text",
        run: spec::spec_text,
        seeds: spec::text_seeds,
    },
    Target {
        name: "file",
        run: file::file,
        seeds: file::seeds,
    },
    Target {
        name: "operations",
        run: operations::operations,
        seeds: noise,
    },
];

/// The target of a name.
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}

/// Bytes of all kinds, for targets that make something of any.
fn noise() -> Vec<Vec<u8>> {
    let mut state = 1u32;
    let mut next = move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    [8usize, 40, 200, 1000]
        .iter()
        .map(|&length| (0..length).map(|_| next()).collect())
        .collect()
}
