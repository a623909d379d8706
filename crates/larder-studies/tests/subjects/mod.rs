//! What the suites run over: every structure with its defaults, and with options that make its rare
//! paths common.
#![allow(dead_code)]

use larder_index::{Multi, Unique};
use larder_studies::{build_multi, build_unique, structures, Order, Value};
use std::sync::OnceLock;

/// A structure and its options.
#[derive(Clone, Debug)]
pub struct Subject {
    pub name: &'static str,
    pub ordered: bool,
    pub options: Vec<(String, Value)>,
}

impl Subject {
    pub fn unique(&self, order: Order) -> Box<dyn Unique> {
        build_unique(self.name, &self.options, order).expect("a structure that is listed")
    }

    pub fn multi(&self) -> Box<dyn Multi> {
        build_multi(self.name, &self.options).expect("a structure that is listed")
    }
}

/// The orders that a structure has.
pub fn orders(subject: &Subject) -> &'static [Order] {
    if subject.ordered {
        &[Order::Hash, Order::Key]
    } else {
        &[Order::Hash]
    }
}

/// Options beside the defaults, by the names of structures.
type Said = &'static [(&'static str, &'static str)];

const MORE: &[(&str, &[Said])] = &[
    (
        "avl",
        &[&[("static_stack", "false"), ("reader_groups", "3")]],
    ),
    (
        "linear_hash",
        &[
            &[("chain", "6")],
            &[("locks", "16"), ("reader_groups", "2")],
            &[("locks", "auto")],
        ],
    ),
    (
        "catree",
        &[
            // Every write divides, or every second.
            &[
                ("high", "-1"),
                ("quiet", "1"),
                ("low", "-5"),
                ("depth", "6"),
            ],
            &[
                ("over", "btree"),
                ("contended", "5"),
                ("high", "3"),
                ("low", "-4"),
                ("clamp", "20"),
            ],
            &[
                ("over", "judysl"),
                ("high", "-1"),
                ("quiet", "1"),
                ("depth", "6"),
                ("low", "-5"),
            ],
            &[
                ("over", "judyesl"),
                ("high", "3"),
                ("contended", "5"),
                ("low", "-4"),
            ],
        ],
    ),
    (
        "judyl_hash",
        &[&[("bits", "1")], &[("bits", "48"), ("reader_groups", "2")]],
    ),
    ("judysl", &[&[("reader_groups", "3")]]),
    ("lfcatree", &[&[("high", "-3"), ("low", "-2")]]),
    ("split_ordered", &[&[("load", "1")]]),
    (
        "lockfree_hash",
        &[&[("buckets", "1")], &[("buckets", "13")]],
    ),
    ("btree", &[&[("m", "3")], &[("m", "32")]]),
];

fn value(text: &str) -> Value {
    match text.parse() {
        Ok(n) => Value::Int(n),
        Err(_) => text
            .parse()
            .map_or_else(|_| Value::Name(text.to_owned()), Value::Flag),
    }
}

/// All that is tested. `LARDER_STRUCTURE=name` picks one structure.
pub fn subjects() -> &'static [Subject] {
    static ALL: OnceLock<Vec<Subject>> = OnceLock::new();
    ALL.get_or_init(|| {
        assert!(MORE
            .iter()
            .all(|(n, _)| structures().iter().any(|s| s.name == *n)));
        let only = std::env::var("LARDER_STRUCTURE").ok();
        let mut all = Vec::new();
        for s in structures() {
            if only.as_ref().is_some_and(|only| only != s.name) {
                continue;
            }
            let more = MORE.iter().filter(|(name, _)| *name == s.name);
            let more = more.flat_map(|(_, options)| options.iter().copied());
            for options in std::iter::once(&[][..]).chain(more) {
                let options = options.iter().map(|(n, v)| ((*n).to_owned(), value(v)));
                all.push(Subject {
                    name: s.name,
                    ordered: s.ordered,
                    options: options.collect(),
                });
            }
        }
        all
    })
}
