#!/bin/bash
# Links of the pages lead somewhere: a relative target is a file or folder of the tree, an anchor is
# a heading of the page it names (by GitHub's rules). Prints FILE:LINE and the target of each that
# doesn't, and fails if there is any. Targets on the network are not tried.
set -euo pipefail
cd "$(dirname "$0")/.."

mapfile -t PAGES < <(git ls-files -co --exclude-standard -- '*.md')
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT

# PAGE#ANCHOR, a line for each heading: lower case, without punctuation, blanks as hyphens; the
# second heading of a text gets -1. And what `<a id="...">` says.
LC_ALL=C awk '
  FNR == 1 { fence = 0; split("", seen) }
  /^```/ { fence = !fence }
  fence { next }
  match($0, /<a (id|name)="[^"]*"/) {
    text = substr($0, RSTART, RLENGTH); gsub(/.*="|"/, "", text); print FILENAME "#" text
  }
  /^#+ / {
    text = tolower($0); sub(/^#+ +/, "", text); gsub(/\]\([^)]*\)/, "", text)
    gsub(/\342\200[\220-\277]|[^a-z0-9_ \200-\377-]/, "", text); gsub(/ /, "-", text)
    print FILENAME "#" text (seen[text]++ ? "-" seen[text] - 1 : "")
  }' "${PAGES[@]}" >"$WORK/anchors"

# PAGE LINE TARGET, a line for each link: [text](target), [text]: target, src="target".
awk '
  FNR == 1 { fence = 0 }
  /^ *```/ { fence = !fence; next }
  fence { next }
  {
    line = $0; gsub(/`[^`]*`/, "", line)
    while (match(line, /\]\([^) ]+|^\[[^]]+\]: +[^ ]+|(src|href)="[^"]+/)) {
      target = substr(line, RSTART, RLENGTH); line = substr(line, RSTART + RLENGTH)
      sub(/^\]\(|^\[[^]]+\]: +|^(src|href)="/, "", target)
      print FILENAME "\t" FNR "\t" target
    }
  }' "${PAGES[@]}" >"$WORK/links"

dead=0
while IFS=$'\t' read -r page line target; do
  case $target in *://* | mailto:*) continue ;; esac
  file=${target%%#*} anchor=
  [[ $target != *#* ]] || anchor=${target#*#}
  path=$page
  [ -z "$file" ] || path=$(realpath -m --relative-to=. "$(dirname "$page")/$file")
  if [ ! -e "$path" ]; then
    echo "$page:$line: no file $target"; dead=1
  elif [ -n "$anchor" ] && [[ $path == *.md ]] && ! grep -qxF -- "$path#$anchor" "$WORK/anchors"; then
    echo "$page:$line: no heading $target"; dead=1
  fi
done <"$WORK/links"
exit $dead
