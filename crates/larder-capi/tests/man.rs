//! `man/larder.3` is what the header says. `LARDER_WRITE_HEADER=1` writes it anew: `make header`.

use std::fmt::Write;
use std::path::Path;

const BEGINNING: &str = r#".SH NAME
larder \- tables of tuples in memory, shared by many threads
.SH SYNOPSIS
.nf
.B #include <larder.h>
.PP
.B cc program.c $(pkg-config \-\-cflags \-\-libs larder)
.fi
.SH DESCRIPTION
Larder keeps sets, ordered sets and bags of tuples, and finds them by key, by order or by pattern.
A program makes a
.B larder
(a world of tables), tables in it, and terms (rows and keys) in a
.BR larder_terms .
Results come in a
.BR larder_terms ,
too, and are read by a
.BR larder_view .
.PP
Every function that can fail gives a
.BR larder_status ;
.BR larder_message ()
says more. Only a lack of memory ends the process. Many threads may use a
.BR larder ,
a
.B larder_table
and a
.B larder_prepared
at once; everything else one at a time. In C++17,
.B larder.hpp
wraps all of this.
.PP
What holds for all functions isn't repeated with each.
.TP
Statuses
.B LARDER_BAD_ARGUMENT
if a pointer that is needed is null, a text isn't UTF-8, or a number is out of range;
.B LARDER_BAD_TERM
if a view or a key is of nothing, or the last term of a sequence isn't complete;
.B LARDER_NO_TABLE
if the table was dropped;
.B LARDER_READ_ONLY
if a function that writes was called with a snapshot;
.B LARDER_FULL
and
.B LARDER_NOT_UNIQUE
if a row was to be inserted or changed, and a limit or a unique index is in the way;
.B LARDER_PANIC
for a bug in the library.
.TP
Cost
n is the number of rows in the table. O(1) in a table that isn't ordered is expected time. Reading
and writing rows, keys and terms also takes time in proportion to their bytes. Costs are those of
the default structure.
.TP
Other threads
An operation on one key takes effect at one instant between its call and its return, for all
threads. It waits at most while another thread changes the same leaf or commits a change of the
same key. If a list is being inserted that is short, or has the key many times, it first helps to
finish that.
.SH EXAMPLE
.nf
larder *world = larder_new();
larder_options ordered = {.size = sizeof ordered, .kind = LARDER_ORDERED_SET};
larder_table *stock;
if (larder_table_new(world, "stock", &ordered, &stock) != LARDER_OK)
    errx(1, "%s", larder_message());
larder_put_i64(stock, larder_key_str("apple"), 3);
int64_t apples;
larder_add_i64(stock, larder_key_str("apple"), 10, &apples);
larder_table_free(stock);
larder_free(world);
.fi
"#;

const END: &str = "\
.SH SEE ALSO
.BR pkg-config (1)
.PP
The page docs/c.md of Larder's sources has an introduction and whole programs.
";

/// A comment of the header and what it is about.
struct Entry {
    comment: Vec<String>,
    code: String,
}

impl Entry {
    /// The first line of the code.
    fn begins(&self, with: &str) -> bool {
        self.code.starts_with(with)
    }

    /// The name of a function.
    fn function(&self) -> Option<&str> {
        let (before, _) = self.code.split_once('(')?;
        let name = before.rsplit([' ', '*']).next()?;
        (self.code.ends_with(");\n") && name.starts_with("larder_")).then_some(name)
    }
}

/// The comments of the header that stand at the margin, each with the code up to the next blank
/// line.
fn entries(header: &str) -> Vec<Entry> {
    let mut entries = Vec::new();
    for paragraph in header.split("\n\n") {
        let lines = || paragraph.lines();
        let comment = lines().take_while(|line| line.starts_with("//"));
        let comment: Vec<_> = comment
            .map(|line| line.trim_start_matches('/').trim_start().to_owned())
            .collect();
        let code = lines()
            .skip(comment.len())
            .fold(String::new(), |code, line| code + line + "\n");
        if !comment.is_empty() && !code.is_empty() {
            entries.push(Entry { comment, code });
        }
    }
    entries
}

/// Text as roff has it: code between backquotes is bold.
fn roff(text: &str) -> String {
    let mut out = String::new();
    let mut is_code = false;
    for c in text.chars() {
        match c {
            '`' => {
                is_code = !is_code;
                out += if is_code { "\\fB" } else { "\\fR" };
            }
            '\\' => out += "\\e",
            '-' => out += "\\-",
            '\'' => out += "\\(aq",
            c => out.push(c),
        }
    }
    out
}

/// Paragraphs, which blank lines of the comment part. What is said under "Safety" follows.
fn prose(out: &mut String, comment: &[String]) {
    for line in comment {
        match line.as_str() {
            "" => out.push_str(".PP\n"),
            "Safety:" => out.push_str(".I Safety:\n"),
            // A line that begins with a dot would be a request.
            line => writeln!(out, "\\&{}", roff(line)).expect("a text takes all"),
        }
    }
}

fn code(out: &mut String, code: &str) {
    out.push_str(".nf\n.ft B\n");
    for line in code.lines() {
        writeln!(out, "\\&{}", roff(line)).expect("a text takes all");
    }
    out.push_str(".ft R\n.fi\n.PP\n");
}

fn generated() -> String {
    let header = std::fs::read_to_string(root().join("include/larder.h")).expect("larder.h");
    let entries = entries(&header);
    let version = env!("CARGO_PKG_VERSION");
    let mut out = format!(
        ".\\\" Made from include/larder.h by `make header`: change the sources.\n\
         .TH LARDER 3 \"\" \"Larder {version}\" \"Library Functions\"\n{BEGINNING}.SH TYPES\n"
    );
    for entry in entries.iter().filter(|entry| entry.begins("typedef")) {
        let name = entry.code.trim_end().trim_end_matches(';');
        let name = name.rsplit([' ', '}']).next().unwrap_or(name);
        writeln!(out, ".SS {name}").expect("a text takes all");
        prose(&mut out, &entry.comment);
        if entry.code.contains('{') {
            out.push_str(".PP\n");
            code(&mut out, &entry.code);
        }
    }
    out.push_str(".SH FUNCTIONS\n");
    for entry in &entries {
        if let Some(name) = entry.function() {
            writeln!(out, ".SS {name}").expect("a text takes all");
            code(&mut out, &entry.code);
            prose(&mut out, &entry.comment);
        }
    }
    out + END
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn man_page_is_what_the_header_says() {
    let path = root().join("man/larder.3");
    let page = generated();
    if std::env::var_os("LARDER_WRITE_HEADER").is_some() {
        std::fs::write(&path, &page).expect("the page can be written");
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        there == page,
        "man/larder.3 is not what include/larder.h says: `make header` writes it anew"
    );
}

#[test]
fn man_page_has_every_function() {
    let header = std::fs::read_to_string(root().join("include/larder.h")).expect("larder.h");
    let page = generated();
    let mut functions = 0;
    for line in header.lines().filter(|line| !line.starts_with("//")) {
        let before = line.split('(').next().unwrap_or_default();
        let name = before.rsplit([' ', '*']).next().unwrap_or_default();
        if line.starts_with([' ', '#', '}']) || !name.starts_with("larder_") || before == line {
            continue;
        }
        functions += 1;
        assert!(
            page.contains(&format!("\n.SS {name}\n")),
            "{name} is missing"
        );
    }
    assert!(functions > 100, "the header has {functions} functions");
}
