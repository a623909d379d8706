#!/bin/sh
# scripts/keep.sh FOLDER: copies the files of FOLDER, and of its plots, that results/latest has,
# too, over those. So results/latest holds one set of each bench, the last one that was worth
# keeping.
set -eu
cd "$(dirname "$0")/.."
FROM=${1:-}
if [ ! -d "$FROM" ]; then
  echo "keep: there is no folder '$FROM'; say which run to keep: make keep FROM=results/wide" >&2
  exit 2
fi
kept=0
for file in results/latest/*; do
  name=${file##*/}
  for new in "$FROM/$name" "$FROM/report-plots/$name"; do
    if [ -f "$new" ]; then
      cp "$new" "$file"
      echo "kept $new"
      kept=$((kept + 1))
    fi
  done
done
if [ "$kept" = 0 ]; then
  echo "keep: $FROM has none of the files of results/latest" >&2
  exit 2
fi
