//! With the feature `cpp`: builds one C++ library of all files `cpp/*.cc` whose header is
//! installed, and writes a Rust table of them. A file says itself what it needs, in comments at its
//! beginning:
//!
//! ```text
//! // header: db_cxx.h       not built where this is not installed
//! // link: db_cxx           a library; may be missing
//! // package: libdb++-dev   where Debian has it: for the message, and for scripts/peers.sh
//! ```

fn main() {
    println!("cargo:rerun-if-changed=cpp");
    println!("cargo:rerun-if-changed=build.rs");
    #[cfg(feature = "cpp")]
    shim::build();
}

#[cfg(feature = "cpp")]
mod shim {
    use std::fmt::Write;
    use std::path::{Path, PathBuf};

    /// The facts in a file's first comments.
    fn fact(text: &str, name: &str) -> Option<String> {
        let start = format!("// {name}: ");
        let mut lines = text.lines().take_while(|line| line.starts_with("//"));
        lines.find_map(|line| {
            line.strip_prefix(&start)
                .map(|fact| fact.trim().to_string())
        })
    }

    fn installed(header: &str) -> bool {
        let code = format!("#include <{header}>\n");
        let file = Path::new(&std::env::var("OUT_DIR").expect("cargo sets it")).join("probe.cc");
        std::fs::write(&file, code).expect("OUT_DIR can be written");
        cc::Build::new()
            .cpp(true)
            .file(&file)
            .cargo_metadata(false)
            .try_expand()
            .is_ok()
    }

    /// Builds, and writes `peers.rs`: `HERE`, the tables of those that are there, and `MISSING`,
    /// the others with their packages.
    pub fn build() {
        let mut files: Vec<PathBuf> = std::fs::read_dir("cpp")
            .expect("the folder is in the crate")
            .map(|entry| entry.expect("it can be read").path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "cc"))
            .collect();
        files.sort();
        let mut build = cc::Build::new();
        build.cpp(true).std("c++17").opt_level(3);
        let (mut externs, mut here, mut missing) = (String::new(), String::new(), String::new());
        let mut libraries = Vec::new();
        for file in &files {
            let text = std::fs::read_to_string(file).expect("it can be read");
            let stem = file.file_stem().expect("it has a name").to_string_lossy();
            let header = fact(&text, "header").expect("a peer says its header");
            if !installed(&header) {
                let package = fact(&text, "package").unwrap_or_default();
                println!(
                    "cargo:warning=no {header}: {stem} is left out (Debian has it in {package})"
                );
                writeln!(missing, "    ({stem:?}, {package:?}),").expect("a text");
                continue;
            }
            build.file(file);
            libraries.extend(fact(&text, "link"));
            writeln!(externs, "    static larder_peer_{stem}: Table;").expect("a text");
            writeln!(here, "    // SAFETY: the table is constant; see Table.\n    unsafe {{ &larder_peer_{stem} }},").expect("a text");
        }
        build.compile("larder_peers_cpp");
        for library in libraries {
            println!("cargo:rustc-link-lib={library}");
        }
        let text = format!(
            "extern \"C\" {{\n{externs}}}\n\n/// The peers that were built.\npub fn here() -> Vec<&'static Table> {{ vec![\n{here}] }}\n\n/// Those whose headers are not installed, with Debian's packages.\npub const MISSING: &[(&str, &str)] = &[\n{missing}];\n"
        );
        let out = Path::new(&std::env::var("OUT_DIR").expect("cargo sets it")).join("peers.rs");
        std::fs::write(out, text).expect("OUT_DIR can be written");
    }
}
