//! `include/larder.h` is what the sources say. `LARDER_WRITE_HEADER=1` writes it anew:
//! `make header`.

use std::path::Path;

const INTRODUCTION: &str = "\
/* Larder for C: tables of tuples in memory, shared by many threads, queried by key, by order or by
 * pattern.
 *
 * Made from the sources by `make header`: change those. docs/c.md has an introduction and an
 * example; link with -llarder.
 *
 * Every function that can fail returns a larder_status: LARDER_OK, or an error, which
 * larder_message() explains. Only a lack of memory ends the process. A pointer that must not be
 * null is checked. The caller has to meet the other requirements for pointers, which stand under
 * \"Safety\". Until a call returns, nobody else may free an object that it uses, or change a text, an
 * array or terms that it reads.
 *
 * Many threads may use a larder, a larder_table and a larder_prepared at once; everything else one
 * at a time.
 *
 * What holds for all functions, and isn't repeated with each:
 *
 * - Statuses. LARDER_BAD_ARGUMENT: a pointer that is needed is null, a text isn't UTF-8, or a
 *   number is out of range. LARDER_BAD_TERM: a view or a key is of nothing, or the last term of a
 *   sequence isn't complete. LARDER_NO_TABLE: the table was dropped. LARDER_READ_ONLY: a function
 *   that writes was called with a snapshot. LARDER_FULL and LARDER_NOT_UNIQUE: a row was to be
 *   inserted or changed, and a limit or a unique index is in the way. LARDER_PANIC: a bug in the
 *   library.
 * - Cost. n is the number of rows in the table. O(1) in a table that isn't ordered is expected
 *   time. Reading and writing rows, keys and terms also takes time in proportion to their bytes.
 *   Costs are those of the default structure.
 * - Other threads. An operation on one key takes effect at one instant between its call and its
 *   return, for all threads. It waits at most while another thread changes the same leaf or commits
 *   a change of the same key. If a list is being inserted that is short, or has the key many times,
 *   it first helps to finish that. If a function takes effect at more than one instant, its
 *   description says so.
 */";

/// The version of the header: as numbers, as one number to be compared, and as a text.
const VERSION: &str = concat!(
    "\n// The version of this header. That of the library that runs: larder_version_number().\n",
    "#define LARDER_VERSION_MAJOR ",
    env!("CARGO_PKG_VERSION_MAJOR"),
    "\n#define LARDER_VERSION_MINOR ",
    env!("CARGO_PKG_VERSION_MINOR"),
    "\n#define LARDER_VERSION_PATCH ",
    env!("CARGO_PKG_VERSION_PATCH"),
    "\n#define LARDER_VERSION \"",
    env!("CARGO_PKG_VERSION"),
    "\"\n#define LARDER_VERSION_NUMBER \\\n    ",
    "(10000 * LARDER_VERSION_MAJOR + 100 * LARDER_VERSION_MINOR + LARDER_VERSION_PATCH)"
);

/// Where a part of the header begins: its title, and its first function.
const PARTS: [(&str, &str); 17] = [
    ("Worlds; tables made and found", "larder_new"),
    ("Errors", "larder_message"),
    ("Terms, pushed", "larder_terms_new"),
    ("Terms, read", "larder_view_kind"),
    ("Tables and their handles", "larder_table_free"),
    ("Rows by key", "larder_insert"),
    ("Keys in order", "larder_first"),
    ("Tables as a whole", "larder_clear"),
    ("Keys and values, without terms", "larder_key_i64"),
    ("Maps in rows", "larder_map_put"),
    ("Rows that expire", "larder_insert_for"),
    ("Queries, ranges and scans", "larder_select"),
    ("Queries with parameters", "larder_prepare"),
    ("Ranks", "larder_rank"),
    ("Secondary indexes", "larder_add_index"),
    ("Snapshots and feeds", "larder_snapshot"),
    ("Several changes at one instant", "larder_operations_new"),
];

/// Puts the titles of the parts between the functions.
fn with_titles(header: &str) -> String {
    let mut titled = 0;
    let mut title_of = |paragraph: &str| {
        let is_of = |first: &&(&str, &str)| {
            let declared = |mark| paragraph.contains(&format!("{mark}{}(", first.1));
            paragraph.starts_with("//") && (declared(" ") || declared(" *"))
        };
        PARTS
            .iter()
            .find(is_of)
            .map_or(String::new(), |(title, _)| {
                titled += 1;
                format!("/* --- {title} --- */\n\n")
            })
    };
    let paragraphs = header.split("\n\n");
    let paragraphs: Vec<_> = paragraphs
        .map(|paragraph| title_of(paragraph) + paragraph)
        .collect();
    assert_eq!(titled, PARTS.len(), "a part begins with no function");
    paragraphs.join("\n\n")
}

fn generated() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut config = cbindgen::Config {
        language: cbindgen::Language::C,
        cpp_compat: true,
        header: Some(INTRODUCTION.to_owned()),
        include_guard: Some("LARDER_H".to_owned()),
        after_includes: Some(VERSION.to_owned()),
        documentation_style: cbindgen::DocumentationStyle::C99,
        style: cbindgen::Style::Both,
        usize_is_size_t: true,
        line_length: 100,
        ..cbindgen::Config::default()
    };
    config.enumeration.rename_variants = cbindgen::RenameRule::QualifiedScreamingSnakeCase;
    // What only fields and parameters of another type mean.
    let meant = ["larder_type", "larder_evict", "larder_index_flags"];
    config.export.include.extend(meant.map(str::to_owned));
    let renamed = [("Status", "larder_status")];
    let renamed = renamed.map(|(from, to)| (from.to_owned(), to.to_owned()));
    config.export.rename.extend(renamed);
    let mut header = Vec::new();
    cbindgen::Builder::new()
        .with_crate(root)
        .with_config(config)
        .generate()
        .expect("the sources can be read")
        .write(&mut header);
    let header = String::from_utf8(header).expect("a header is text");
    with_titles(&header)
        .replace("LARDER_STATUS_", "LARDER_")
        .replace("LARDER_TYPE_", "LARDER_")
        .replace("LARDER_INDEX_FLAGS_", "LARDER_INDEX_")
        .replace("// # Safety\n", "// Safety:\n")
}

#[test]
fn header_is_what_the_sources_say() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("include/larder.h");
    let header = generated();
    if std::env::var_os("LARDER_WRITE_HEADER").is_some() {
        std::fs::write(&path, &header).expect("the header can be written");
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        there == header,
        "include/larder.h is not what the sources say: `make header` writes it anew"
    );
}
