#!/bin/bash
# What the pages, and the headers of Rust modules (`//!`), name between backquotes has to be there:
# paths of functions and types (`Table::help`), files (`raw/trie.rs`) and make targets (`make
# bench`). The last two names of a path have to be in one file, or the last one in a file of the
# module that the other one names. Prints what is not, and fails if there is any.
set -euo pipefail
cd "$(dirname "$0")/.."

PAGES=(README.md CONTRIBUTING.md docs/*.md)
mapfile -t HEADERS < <(git ls-files -co --exclude-standard -- 'crates/*/src/*.rs')
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
words=$WORK/words files=$WORK/files quoted=$WORK/quoted targets=$WORK/targets
asked=$WORK/asked where=$WORK/where apart=$WORK/apart

git grep -ohE '[A-Za-z_][A-Za-z0-9_]*' -- crates erlang lib fuzz scripts | sort -u >"$words"
git ls-files -co --exclude-standard >"$files"
sed -nE 's/^([a-z][a-z-]*):.*/\1/p' Makefile | sort -u >"$targets"
# PAGE NAME, a line for each thing that stands between backquotes.
awk 'FNR == 1 { fence = 0 }
  FILENAME ~ /\.rs$/ && !/^\/\/!/ { next }
  /^(\/\/! )?```/ { fence = !fence; next }
  !fence { line = $0
    while (match(line, /`[^`]+`/)) {
      print FILENAME "\t" substr(line, RSTART + 1, RLENGTH - 2); line = substr(line, RSTART + RLENGTH) } }
  ' "${PAGES[@]}" "${HEADERS[@]}" | sort -u >"$quoted"

# The names of paths, and the files that each is in: FILE:NAME, but for comments.
path='^[A-Za-z_][A-Za-z0-9_]*(::[A-Za-z_][A-Za-z0-9_]*)+(\(\))?$'
cut -f2 "$quoted" | grep -E "$path" | sed 's/()$//; s/::/\n/g' | sort -u >"$asked"
grep -vE '^[[:space:]]*//' -r crates fuzz --include='*.rs' --exclude-dir=target |
  awk -v asked="$asked" '
    BEGIN { while ((getline name < asked) > 0) wanted[name] = 1 }
    {
      file = $0; sub(/:.*/, "", file); text = substr($0, length(file) + 2)
      while (match(text, /[A-Za-z_][A-Za-z0-9_]*/)) {
        name = substr(text, RSTART, RLENGTH); text = substr(text, RSTART + RLENGTH)
        if (name in wanted && !((file, name) in seen)) { seen[file, name] = 1; print file ":" name }
      }
    }' >"$where"
# The paths whose last two names are in no file together.
cut -f2 "$quoted" | grep -E "$path" | sed 's/()$//' | sort -u | awk -F'::' -v where="$where" '
  BEGIN { while ((getline line < where) > 0) {
    split(line, at, ":"); seen[at[1], at[2]] = 1; in_files[at[2]] = in_files[at[2]] " " at[1] } }
  {
    n = split(in_files[$NF], at, " "); above = $(NF - 1); found = 0
    for (i = 1; i <= n && !found; i++)
      found = (at[i], above) in seen || at[i] ~ "/" above "(\\.rs$|/)" || above ~ /^(crate|self|super|std|core|larder.*)$/
    if (!found) print $0
  }' >"$apart"

missing=0
report() { printf '%s names %s, which is not there\n' "$1" "$2"; missing=1; }

while IFS=$'\t' read -r page name; do
  case $name in
    *NAME* | results/*) ;; # a pattern; what a command writes
    std::* | erl_nif.h) ;; # of others
    *"::"*)
      [[ $name =~ $path ]] || continue
      if grep -qxF -- "${name%()}" "$apart"; then report "$page" "$name"; continue; fi
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
