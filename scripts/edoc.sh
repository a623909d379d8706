#!/bin/bash
# edoc.sh OUTDIR: the pages of the Erlang modules.
#
# EDoc reads no comments of files that are included, so it gets a copy of module larder with those
# of erlang/src/larder in their places.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p "$1"
whole=$(mktemp -d)
trap 'rm -rf "$whole"' EXIT
cp erlang/src/*.erl erlang/src/*.hrl "$whole"
awk '
  match($0, /^-include\("larder\/[a-z_]+\.hrl"\)/) { split($0, part, "\""); file = "erlang/src/" part[2]
    while ((getline line < file) > 0) print line; close(file); next }
  { print }' erlang/src/larder.erl >"$whole/larder.erl"
erl -noinput -pa _build/larder/ebin -eval '
  Files = filelib:wildcard("'"$whole"'/*.erl"),
  try edoc:files(Files, [{dir, "'"$1"'"}, {preprocess, true}, {includes, ["'"$whole"'"]}]) of
    ok -> halt(0)
  catch _:Reason -> io:format("edoc failed: ~p~n", [Reason]), halt(1)
  end.'
