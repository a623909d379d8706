//! `erlang/src/larder_nif_stubs.hrl` has the version of the native library, and what the table of
//! native functions in larder-nif's `src/lib.rs` says. `LARDER_WRITE_STUBS=1` writes it anew:
//! `make stubs`.
#![cfg(test)]

use std::path::Path;

/// Names and arguments of the functions that Erlang sees, as the table has them.
fn functions(table: &str) -> Vec<(&str, Vec<&str>)> {
    let lines = table.lines().skip_while(|line| *line != "natives! {");
    let rows = lines.skip(1).take_while(|line| *line != "}");
    rows.filter_map(|row| {
        let (head, _) = row.split_once(" => ").expect("a row has an arrow");
        let (name, arguments) = head.trim().split_once('(')?;
        let arguments = arguments.trim_end_matches(')').split(", ");
        Some((name, arguments.filter(|name| !name.is_empty()).collect()))
    })
    .collect()
}

fn stubs(table: &str) -> String {
    let functions = functions(table);
    let exported: Vec<String> = functions
        .iter()
        .map(|(name, arguments)| format!("{name}/{}", arguments.len()))
        .collect();
    let mut text = format!(
        "%% Made by `make stubs` from the table in crates/larder-nif/src/lib.rs: change that.\n\
         -define(VERSION, \"{}\").\n\
         -export([{}]).\n\n",
        env!("CARGO_PKG_VERSION"),
        exported.join(",\n         ")
    );
    for (name, arguments) in functions {
        let arguments: Vec<String> = arguments.iter().map(|name| format!("_{name}")).collect();
        text += &format!("{name}({}) -> ?STUB.\n", arguments.join(", "));
    }
    text
}

#[test]
fn stubs_are_what_the_table_says() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let table = std::fs::read_to_string(here.join("../src/lib.rs")).expect("the table can be read");
    let path = here.join("../../../erlang/src/larder_nif_stubs.hrl");
    let stubs = stubs(&table);
    if std::env::var_os("LARDER_WRITE_STUBS").is_some() {
        std::fs::write(&path, &stubs).expect("the stubs can be written");
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        there == stubs,
        "larder_nif_stubs.hrl is not what the table says: `make stubs` writes it anew"
    );
}
