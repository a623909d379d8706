#!/bin/bash
# Mnesia for `make bench-mnesia`, from the sources in Debian's package erlang-src, compiled once as
# it is and once with the parse transform: _build/mnesia/ets/mnesia/ebin and .../larder/mnesia/ebin.
#
#   scripts/mnesia.sh [FLAGS...]   compiles what is missing and runs the bench; FLAGS are erl's
#
# Where there are no sources, which scripts/setup.sh tries to install, it says so and does nothing.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/common.sh

PLACE=_build/mnesia

SOURCES=$(mnesia_sources)
[ -n "$SOURCES" ] || { say "larder: no sources of Mnesia (Debian's package erlang-src), so the bench of it is left out"; exit 0; }
LARDER_BENCH_MNESIA_VERSION=$(basename "$(dirname "$SOURCES")")
export LARDER_BENCH_MNESIA_VERSION

# compile SIDE FLAGS...: unless it was done, from these sources and with this parse transform.
compile() {
  local side=$1 out=$PLACE/$1/mnesia/ebin; shift
  [ "$out/mnesia.app" -nt "$SOURCES/mnesia.erl" ] && [ "$out/mnesia.app" -nt _build/larder/ebin/larder_transform.beam ] && return
  say "larder: compiling Mnesia for $side"
  rm -rf "$out" && mkdir -p "$out"
  erlc "$@" -I "$SOURCES" -o "$out" "$SOURCES"/*.erl >"$PLACE/$side.log" 2>&1 || { cat "$PLACE/$side.log" >&2; return 1; }
  if grep -q 'larder has no function' "$PLACE/$side.log"; then cat "$PLACE/$side.log" >&2; return 1; fi
  # The package of the sources has no application file.
  echo '{application, mnesia, [{vsn, "'"${LARDER_BENCH_MNESIA_VERSION#mnesia-}"'"}, {modules, []}, {registered, []},
    {applications, [kernel, stdlib]}, {mod, {mnesia_app, []}}]}.' >"$out/mnesia.app"
}

compile ets
compile larder -pa _build/larder/ebin '+{parse_transform,larder_transform}'
exec erl -noinput "$@" -s larder_bench_run main larder_bench_mnesia
