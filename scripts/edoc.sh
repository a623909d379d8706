#!/bin/bash
# edoc.sh OUTDIR: the pages of the Erlang modules.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p "$1"
erl -noinput -pa _build/larder/ebin -eval '
  Files = filelib:wildcard("erlang/src/*.erl"),
  try edoc:files(Files, [{dir, "'"$1"'"}, {preprocess, true}, {includes, ["erlang/include", "erlang/src"]}]) of
    ok -> halt(0)
  catch _:Reason -> io:format("edoc failed: ~p~n", [Reason]), halt(1)
  end.'
