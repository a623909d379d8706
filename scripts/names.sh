#!/bin/bash
# What the pages, and the headers of Rust modules (`//!`), name between backquotes has to be there:
#
#   names (`help`)              in the code, not in comments alone; `_add` is the end of one
#   paths (`Table::help`)       the last two names in one file, or the last one in a file of the
#                               module that the other one names
#   files (`hash/trie.rs`)
#   make targets (`make bench`)
#
# Prints what is not, and fails if there is any.
set -euo pipefail
cd "$(dirname "$0")/.."

PAGES=(README.md CONTRIBUTING.md docs/*.md)
mapfile -t HEADERS < <(git ls-files -co --exclude-standard -- 'crates/*/src/*.rs')
# Names of other programs and systems.
OTHERS='ERL_FLAGS SubmissionPublisher __tls_get_addr cskiplist current_function db_lock
  dump_log_write_threshold erl_db_hash etop fsync hp hp_end memsup msacc perf plotters recon
  recon_alloc relx serde_bytes sid telemetry_poller'
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
words=$WORK/words files=$WORK/files quoted=$WORK/quoted targets=$WORK/targets
asked=$WORK/asked where=$WORK/where apart=$WORK/apart code=$WORK/code bare=$WORK/bare

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

# Names that are in no line of code. Bytes in hexadecimal and `vVERSION` are no names.
git ls-files -co --exclude-standard -- crates erlang lib fuzz scripts bindings examples Makefile .ci ':!*.csv' ':!*.gz' ':!*.md' |
  xargs grep -IvhE '^[[:space:]]*(//|%|#[^![])' | grep -oE '[A-Za-z_][A-Za-z0-9_]*' | sort -u >"$code"
grep -P '\t[A-Za-z_]\w*(\(\))?(/[0-9]+)?$' "$quoted" | awk -F'\t' -v code="$code" -v others="$OTHERS" '
  BEGIN {
    while ((getline name < code) > 0) {
      known[name] = 1
      for (at = index(name, "_"); at; at = next_ ? at + next_ : 0) {
        known[substr(name, at)] = 1; next_ = index(substr(name, at + 1), "_") }
    }
    n = split(others, names); for (i = 1; i <= n; i++) known[names[i]] = 1
  }
  { name = $2; sub(/\(\)$/, "", name); sub(/\/.*/, "", name) }
  !(name in known) && name !~ /^[0-9A-F][0-9A-F]$|VERSION|^_[A-Z]+$/' >"$bare"

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
while IFS=$'\t' read -r page name; do report "$page" "$name"; done <"$bare"
exit $missing
