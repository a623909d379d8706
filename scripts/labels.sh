#!/bin/bash
# Labels of invariants and steps, as docs/design.md explains under that heading. The table there
# has their letters: capital ones for invariants, two lower-case ones for steps.
#
# - A definition is a line that begins with `* **S4** `, in docs/design.md or in the header of a
#   module (`//!`). Each label has one, and its letters are in the table.
# - A label that a comment or a page mentions is defined. `S4` is taken for a label whatever its
#   letters are, `sn4` if the table has its letters. Backquotes and fenced blocks are left out.
# - Nothing is called "invariant 4" or "step 4 of" something: it would need a label.
#
# Prints FILE:LINE of what is not so, and fails if there is any.
set -euo pipefail
cd "$(dirname "$0")/.."

# What looks like a label, and isn't: names of programs, formats, standards, caches, variables.
OTHERS='C11 D1 F1 F14 LZ4 LZ77 R13 V1 V5'
mapfile -t FILES < <(echo docs/design.md
  git ls-files -co --exclude-standard -- 'crates/*.rs' 'fuzz/*.rs' '*.erl' '*.hrl' '*.ex' \
    'docs/*.md' README.md CONTRIBUTING.md ':!docs/design.md')

wrong=$(awk -v others="$OTHERS" '
  # The text of a comment or a page, without what stands between backquotes; "" if it has none.
  function prose(line) {
    if (kind == "rs") {
      if (!match(line, /(^|[^:"])\/\/.*/)) return ""
      line = substr(line, RSTART); sub(/^.?\/\/[\/!]? ?/, "", line)
    } else if (kind != "md") {
      if (line !~ (kind == "ex" ? "^[ \t]*#" : "^[ \t]*%")) return ""
      sub(/^[ \t]*[%#]+ ?/, "", line)
    }
    if (line ~ /^[ \t]*```/) { fence = !fence; return "" }
    if (fence) return ""
    gsub(/`[^`]*`/, "`", line)
    return line
  }
  function report(what) { print FILENAME ":" FNR ": " what }
  BEGIN { n = split(others, names); for (i = 1; i <= n; i++) is_other[names[i]] = 1 }
  FNR == 1 { fence = table = 0; last = ""; kind = FILENAME; sub(/.*\./, "", kind) }

  # The first pass: the letters, and the definitions. docs/design.md comes first.
  pass == 1 {
    if (FILENAME == "docs/design.md") {
      if (/^## /) table = /^## Labels of invariants and steps$/
      if (table && /^\| [A-Z]/) {
        split($0, cells, "|"); n = split(cells[2] "," cells[3], found, /[ ,]+/)
        for (i = 1; i <= n; i++) if (found[i] != "") letters[found[i]] = 1
      }
    }
    if (match($0, /^(\/\/! )?\* \*\*[A-Za-z]+[0-9]+\*\* /)) {
      label = substr($0, RSTART, RLENGTH); gsub(/[^A-Za-z0-9]/, "", label)
      stem = label; sub(/[0-9]+$/, "", stem)
      if (kind == "md" && FILENAME != "docs/design.md") report(label " is defined outside of docs/design.md")
      if (label in defined) report(label " is defined in " defined[label] ", too")
      if (!(stem in letters)) report("docs/design.md has no letters " stem)
      defined[label] = FILENAME ":" FNR
    }
    next
  }

  # The second pass: the mentions.
  {
    text = prose($0)
    if (text == "") { last = ""; next }
    if (text ~ /[Ii]nvariants? \(?[0-9]/ || (last ~ /[Ii]nvariants?$/ && text ~ /^[ \t]*\(?[0-9]/))
      report("an invariant without a label")
    if (text ~ /[Ss]teps? \(?[0-9]+\)?( (to|and) \(?[0-9]+\)?)? (of|in) (`|the (module|parent))/)
      report("a step of another place without a label")
    last = text
    while (match(text, /[A-Za-z0-9_]+/)) {
      word = substr(text, RSTART, RLENGTH); text = substr(text, RSTART + RLENGTH)
      if (word !~ /^([A-Z][A-Z]?|[a-z][a-z])[0-9][0-9]?$/ || word in defined || word in is_other) continue
      stem = word; sub(/[0-9]+$/, "", stem)
      if (word ~ /^[A-Z]/ || stem in letters) report(word " is not defined")
    }
  }' pass=1 "${FILES[@]}" pass=2 "${FILES[@]}")
[ -z "$wrong" ] || { echo "$wrong"; exit 1; }
