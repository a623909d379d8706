#!/bin/bash
# What the pages name between backquotes has to be there: paths of functions and types
# (`Table::help`), files (`raw/trie.rs`) and make targets (`make bench`). Prints what is not, and
# fails if there is any.
set -euo pipefail
cd "$(dirname "$0")/.."

PAGES=(README.md CONTRIBUTING.md docs/*.md)
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
words=$WORK/words files=$WORK/files quoted=$WORK/quoted targets=$WORK/targets

git grep -ohE '[A-Za-z_][A-Za-z0-9_]*' -- crates erlang lib fuzz scripts | sort -u >"$words"
git ls-files -co --exclude-standard >"$files"
sed -nE 's/^([a-z][a-z-]*):.*/\1/p' Makefile | sort -u >"$targets"
# PAGE NAME, a line for each thing that stands between backquotes.
awk '/^```/ { fence = !fence; next }
  !fence { line = $0
    while (match(line, /`[^`]+`/)) {
      print FILENAME "\t" substr(line, RSTART + 1, RLENGTH - 2); line = substr(line, RSTART + RLENGTH) } }
  ' "${PAGES[@]}" | sort -u >"$quoted"

missing=0
report() { printf '%s names %s, which is not there\n' "$1" "$2"; missing=1; }

while IFS=$'\t' read -r page name; do
  case $name in
    *NAME* | results/*) ;; # a pattern; what a command writes
    *"::"*)
      [[ $name =~ ^[A-Za-z_][A-Za-z0-9_]*(::[A-Za-z_][A-Za-z0-9_]*)+(\(\))?$ ]] || continue
      for word in ${name//::/ }; do
        grep -qxF -- "${word%()}" "$words" || { report "$page" "$name"; break; }
      done ;;
    "make "*)
      [[ $name =~ ^make\ ([a-z][a-z-]*)( |$) ]] || continue
      grep -qxF -- "${BASH_REMATCH[1]}" "$targets" || report "$page" "$name" ;;
    *)
      [[ $name =~ ^[A-Za-z0-9_][A-Za-z0-9_./-]*\.(rs|erl|hrl|ex|sh|c|h|md)$ ]] || continue
      grep -qE -- "(^|/)${name//./\\.}\$" "$files" || report "$page" "$name" ;;
  esac
done <"$quoted"
exit $missing
