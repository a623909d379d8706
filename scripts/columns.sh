#!/bin/bash
# Comments and prose end at column 100. Prints FILE:LINE and the width of each line that does not,
# and fails if there is any.
#
# Checked: comments in Rust, Erlang, Elixir, C, C++, shell and make; the doc strings of Elixir; the
# paragraphs of Markdown; all lines of Java. Not checked, because they can't be wrapped: tables,
# fenced blocks (drawings, examples), HTML comments, lines with a word of over 60 characters (an
# address). Code is the formatters' business, but that Java has none here.
set -euo pipefail
cd "$(dirname "$0")/.."

long=$(git ls-files -co --exclude-standard -- '*.rs' '*.erl' '*.hrl' '*.escript' '*.ex' '*.exs' \
  '*.c' '*.h' '*.cc' '*.java' '*.sh' '*.supp' '*.md' '*.toml' Makefile .ci/run |
  LC_ALL=C xargs awk '
  BEGIN { word = "[^ ]"; while (length(word) < 61 * 4) word = word "[^ ]" }

  # The columns of a line in UTF-8: its bytes without those that continue a character.
  function columns(text) { gsub(/[\200-\277]/, "", text); return length(text) }

  FNR == 1 {
    fence = string = html = 0
    kind = FILENAME; sub(/.*[.\/]/, "", kind)
    marker = "^#"
    if (kind ~ /^exs?$/) marker = "^(#|@[a-z]*doc \")"
    if (kind ~ /^(rs|cc)$/) marker = "^//"
    if (kind ~ /^(c|h)$/) marker = "^(//|/[*]|[*])"
    if (kind ~ /^(erl|hrl|escript)$/) marker = "^%"
  }
  {
    text = $0; sub(/^[ \t]+/, "", text)
    comment = kind ~ /^(md|java)$/ || string || text ~ marker
    if (kind == "ex" && text ~ /"""/) { string = text !~ /^"""/; fence = 0; next }
    if (!comment) { fence = 0; next }
    sub(/^(\/\/[\/!]?|\/?[*]+|%+|#+)[ \t]*/, "", text)
    if (text ~ /^```/) { fence = !fence; next }
    if (text ~ /<!--/) html = 1
    if (length($0) > 100 && !fence && !html && columns($0) > 100 &&
      text !~ /^\|($|[^|])/ && text !~ word)
      printf "%s:%d: %d columns\n", FILENAME, FNR, columns($0)
    if (text ~ /-->/) html = 0
  }')
[ -z "$long" ] || { echo "$long"; exit 1; }
