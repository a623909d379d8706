#!/bin/bash
# Figures that say how readable the tree is, for `make lint` to print at its end. They fail nothing;
# a circle of imports does.
#
#   scripts/readability.sh             the table
#   scripts/readability.sh circles     the files of each circle of imports, also of one that passes
#                                      through re-exported names; fails if there is one
#   scripts/readability.sh doubled     names that two types of one crate have
#   scripts/readability.sh duplicates  pairs of files that have 12 lines of code or more in common
#   scripts/readability.sh long        functions in Rust of over 80 lines
set -euo pipefail
cd "$(dirname "$0")/.."

mapfile -t RUST < <(git ls-files -co --exclude-standard -- 'crates/*/src/*.rs')
mapfile -t CODE < <(git ls-files -co --exclude-standard -- 'crates/*/src/*.rs' 'crates/*.java' \
  'crates/*.cc' 'crates/*.[ch]' 'bindings/*/main/*.java' 'bindings/*/bench/*.java' 'erlang/*.[eh]rl' \
  'lib/*.ex' 'examples/*' 'scripts/*.sh' ':!erlang/test/*' ':!*.md')
mapfile -t ALL < <(git ls-files -co --exclude-standard -- '*.rs' '*.erl' '*.hrl' '*.c' '*.h' '*.sh')

# Lines of comments; those over 100 columns, in drawings and tables, too.
comments() {
  LC_ALL=C awk '
    $1 ~ /^(\/\/|%|#[^\[!idue{]|#$|\/\*|\*$|\* )/ {
      lines++
      gsub(/[\200-\277]/, ""); if (length($0) > 100) over++
    }
    END { printf "%d of %d (%.1f %%)\n", over, lines, 100 * over / lines }' "${ALL[@]}"
}

# Comments within functions (indented, not documentation) by lines of code, in some sources.
density() {
  awk '/^[ \t]+\/\/($|[^\/!])/ { inside++; next }
    /[^ \t]/ && !/^[ \t]*\/\// { code++ }
    END { printf "%.1f %%\n", 100 * inside / code }' "$@"
}

# Names that two types of one crate have, outside of tests: CRATE NAME.
doubled() {
  awk '
    FNR == 1 { tests = 0; crate = FILENAME; sub(/^crates\//, "", crate); sub(/\/src\/.*/, "", crate) }
    /^#\[cfg\(test\)\]/ { tests = 1 }
    !tests && match($0, /^(pub(\([a-z ]*\))? )?(struct|enum|trait|union|type) [A-Z][A-Za-z0-9]*/) {
      name = substr($0, RSTART, RLENGTH); sub(/.* /, "", name); print crate, name
    }' "${RUST[@]}" | sort | uniq -d
}

# A file imports another if it names a path in it. Parent and child modules may name each other.
# With `trace=1`, a name that a module re-exports from its child leads to the child. Prints, for
# each crate, sets of files that reach one another.
circles() {
  awk -v trace="${1:-0}" '
    function module(file) {
      sub(/^crates\/[^\/]*\/src\//, "", file); sub(/\.rs$/, "", file); sub(/\/mod$|^(lib|main)$/, "", file)
      gsub(/\//, "::", file); return file
    }
    # Paths with braces, one by one.
    function groups(path,   open, i, c, depth, start, n, parts, k) {
      open = index(path, "{")
      if (!open) { if (exported) export(path); else wanted[root, here, full(path)] = 1; return }
      depth = 0; start = open + 1; n = 0
      for (i = open; i <= length(path); i++) {
        c = substr(path, i, 1)
        if (c == "{") depth++
        if (c == "}") depth--
        if ((c == "," && depth == 1) || (c == "}" && depth == 0)) {
          parts[++n] = substr(path, start, i - start); start = i + 1
        }
        if (depth == 0) break
      }
      for (k = 1; k <= n; k++) if (parts[k] != "") groups(substr(path, 1, open - 1) parts[k])
    }
    # A path from the root of the crate.
    function full(path,   up) {
      if (sub(/^crate::/, "", path)) return path
      up = here
      while (path ~ /^(super|self)::/) {
        if (path ~ /^super/) { if (up ~ /::/) sub(/::[^:]*$/, "", up); else up = "" }
        sub(/^(super|self)::/, "", path)
      }
      return (up == "" ? "" : up "::") path
    }
    # Notes which path a re-exported name stands for, if its module is one of this crate.
    function export(path,   name) {
      path = full(path); name = path; sub(/.*(::| as )/, "", name); sub(/ as .*/, "", path)
      sub(/::self$/, "", path)
      alias[root, (here == "" ? "" : here "::") name] = path
    }
    # The longest beginning of a path that is a module of this crate. Re-exported names are replaced
    # by what they stand for.
    function edge(root, here, path,   k, n, part, at, turns) {
      for (k = n = 1; k <= n && turns < 9; k++) {
        if (k == 1) { n = split(path, part, "::"); at = "" }
        at = at (k > 1 ? "::" : "") part[k]
        if ((root, at) in known) continue
        if (!((root, at) in alias)) break
        path = alias[root, at] substr(path, length(at) + 1); k = 0; turns++
      }
      while (path != "" && !((root, path) in known)) if (!sub(/::[^:]*$/, "", path)) path = ""
      if (path == here || path == "" || here == "") return
      if (index(path "::", here "::") == 1 || index(here "::", path "::") == 1) return
      reach[root, here, path] = 1
    }
    function finish(   text, path) {
      text = whole; exported = 1
      while (trace && match(text, /pub(\([a-z ]*\))? use [^;]*;/)) {
        path = substr(text, RSTART, RLENGTH - 1); text = substr(text, RSTART + RLENGTH)
        sub(/^pub[^ ]* use /, "", path); gsub(/[ \t]+/, " ", path)
        gsub(/ ?, ?/, ",", path); gsub(/\{ /, "{", path); gsub(/ \}/, "}", path); groups(path)
      }
      text = whole; exported = 0
      while (match(text, /(crate|super|self)::[A-Za-z0-9_:]*(\{[^;]*;)?/)) {
        path = substr(text, RSTART, RLENGTH); text = substr(text, RSTART + RLENGTH)
        gsub(/[ \t;]/, "", path); groups(path)
      }
    }
    BEGIN {
      for (i = 1; i < ARGC; i++) {
        root = ARGV[i]; sub(/\/src\/.*/, "", root)
        known[root, module(ARGV[i])] = ARGV[i]; roots[root] = 1
        names[root] = names[root] " " module(ARGV[i])
      }
    }
    FNR == 1 {
      if (NR > 1) finish()
      whole = ""; tests = 0; here = module(FILENAME); root = FILENAME; sub(/\/src\/.*/, "", root)
    }
    /^#\[cfg\(test\)\]/ { tests = 1 }
    tests { next }
    { sub(/\/\/.*/, ""); whole = whole " " $0 }
    END {
      finish()
      for (one in wanted) { split(one, at, SUBSEP); edge(at[1], at[2], at[3]) }
      for (root in roots) {
        n = split(names[root], at, " ")
        for (k = 1; k <= n; k++) for (i = 1; i <= n; i++) if ((root, at[i], at[k]) in reach)
          for (j = 1; j <= n; j++) if ((root, at[k], at[j]) in reach) reach[root, at[i], at[j]] = 1
        for (i = 1; i <= n; i++) {
          if (((root, at[i]) in told) || !((root, at[i], at[i]) in reach)) continue
          line = root ":"
          for (j = 1; j <= n; j++)
            if (((root, at[i], at[j]) in reach) && ((root, at[j], at[i]) in reach)) {
              line = line " " at[j]; told[root, at[j]] = 1
            }
          print line
        }
      }
    }' "${RUST[@]}" | sort
}

# Runs of 12 lines of code, in any language, that two files, or two places, have in common; lines
# that are only brackets, attributes and imports do not count.
duplicates() {
  awk '
    FNR == 1 { n = tests = 0 }
    /^#\[cfg\(test\)\]/ { tests = 1 }
    tests { next }
    {
      sub(/\/\/.*/, ""); gsub(/^[ \t]+|[ \t]+$/, "")
      if ($0 !~ /[A-Za-z0-9]/ || $0 ~ /^(use |pub use|mod |pub mod|import |#|%|\*|\/\*|@)/) next
      row[n % 12] = $0; at[n % 12] = FNR; n++
      if (n < 12) next
      text = ""
      for (i = n; i < n + 12; i++) text = text "\n" row[i % 12]
      first = at[n % 12]
      if (!(text in seen)) { seen[text] = FILENAME ":" first; next }
      other = seen[text]; sub(/:[0-9]*$/, "", other)
      if (!((FILENAME, other) in told)) { told[FILENAME, other] = 1; print seen[text] " " FILENAME ":" first }
    }' "${CODE[@]}"
}

# Functions of over 80 lines in Rust, tests among them, by the bracket at the column of their first
# line: FILE:LINE NAME LINES.
long() {
  awk '
    FNR == 1 { delete begin }
    /^ *[^\/"]*fn [a-z_0-9]+[<(]/ && !/[;}]$/ {
      column = match($0, /[^ ]/); begin[column] = FNR
      text = $0; sub(/.*fn /, "", text); sub(/[<(].*/, "", text); name[column] = text
    }
    # A declaration without a body ends with its arguments.
    /^ *\).*;$/ { delete begin[match($0, /[^ ]/)] }
    /^ *}$/ {
      column = match($0, /}/)
      if (column in begin && FNR - begin[column] >= 80)
        print FILENAME ":" begin[column], name[column], FNR - begin[column] + 1
      delete begin[column]
    }' $(git ls-files -co --exclude-standard -- '*.rs')
}

# Words per sentence of a page: median, 90th percentile, most. Tables, fenced blocks and headings
# don't count; an item of a list is a sentence of its own.
sentences() {
  awk '
    function end(   n, i, part, words) {
      n = split(text, part, /[.!?][")*_]* +/)
      for (i = 1; i <= n; i++) if (split(part[i], words, / +/) > 0 && part[i] ~ /[A-Za-z]/) {
        sub(/^ +/, "", part[i]); print split(part[i], words, / +/)
      }
      text = ""
    }
    /^ *```/ { fence = !fence; end(); next }
    fence || /^#/ || /^ *\|/ || /^    +[^ ]/ && text == "" { next }
    /^ *$/ { end(); next }
    /^ *([-*]|[0-9]+\.) / { end(); sub(/^ *([-*]|[0-9]+\.) /, "") }
    { sub(/^ +/, ""); text = text " " $0 }
    END { end() }' "$1" | sort -n |
    awk '{ n[NR] = $1 } END { printf "%d / %d / %d\n", n[int((NR + 1) / 2)], n[int(NR * 0.9 + 0.5)], n[NR] }'
}

case ${1:-table} in
  circles)
    found=$(circles; circles 1)
    [ -z "$found" ] || { echo "$found"; exit 1; } ;;
  doubled) doubled ;;
  duplicates) duplicates ;;
  long) long ;;
  table)
    row() { printf '  %-52s %s\n' "$1" "$2"; }
    row 'comment lines over 100 columns' "$(comments)"
    row 'comments inside functions, per line of code' "$(density "${RUST[@]}")"
    for crate in larder-index larder; do
      mapfile -t own < <(printf '%s\n' "${RUST[@]}" | grep "^crates/$crate/")
      row "  $crate" "$(density "${own[@]}")"
    done
    row 'inline(always)' "$(cat "${RUST[@]}" | grep -c 'inline(always)')"
    count() { awk '{ n++; files += NF - 1 } END { print n + 0 ", " files + 0 }'; }
    row 'circles of imports: how many, files in them' "$(circles | count)"
    row '  with re-exported names traced' "$(circles 1 | count)"
    row 'names that two types of one crate have' "$(doubled | wc -l)"
    row 'terms in the glossary (rows of its tables)' "$(grep -E '^\| [^-]' docs/glossary.md | grep -vc '^| term ')"
    row 'pairs of files with 12 lines in common' "$(duplicates | wc -l)"
    row 'functions of over 80 lines' "$(long | wc -l)"
    row 'words per sentence, median / p90 / most: design.md' "$(sentences docs/design.md)"
    row '  semantics.md' "$(sentences docs/semantics.md)" ;;
  *) echo "readability.sh: '$1' is not circles, doubled, duplicates or long" >&2; exit 1 ;;
esac
