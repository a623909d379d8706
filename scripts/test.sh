#!/bin/bash
# `make test`, set-up done: every check and every test, in stages. A stage that fails doesn't stop
# the others, so that one run shows all there is to mend. The last line is `N passed, N failed`; the
# exit status is 0 only if nothing failed and every stage has really run something.
#
#   scripts/test.sh [STAGE...]    all stages, or only these of them:
#
#   build rust instructions jvm packaging erlang model lint bench demo elixir times
#
# Two stages run at a time, since parts of most have one thread. What a stage prints is shown when
# it ends. LARDER_STAGES=1 runs them one by one, and shows all at once, as where only one is asked
# for.
set -uo pipefail
cd "$(dirname "$0")/.."
. scripts/common.sh

MAKE=${MAKE:-make}
TARGET=${CARGO_TARGET_DIR:-$PWD/target}
LOGS=_build/logs
export CARGO_NET_RETRY=${CARGO_NET_RETRY:-5} CARGO_TERM_COLOR=never ERL_CRASH_DUMP_SECONDS=0
mkdir -p "$LOGS"

total_passed=0 total_failed=0 summary='' failures=''
ONLY=$*
AT_ONCE=${LARDER_STAGES:-2}
[ $# != 1 ] || AT_ONCE=1
[[ $AT_ONCE =~ ^[1-9][0-9]*$ ]] || die "LARDER_STAGES is '$AT_ONCE', not a number of stages"
# Of each stage that runs: what counts its log, its limit, when it began.
declare -A counts=() limits=() starts=()

# stage NAME COUNT LIMIT COMMAND...: begins a stage, as soon as there is room for it. COUNT reads
# the log on stdin and prints `passed failed`; LIMIT is in seconds, so that something that hangs is
# a failure and not a silence.
stage() {
  local name=$1 count=$2 limit=$3 log=$LOGS/$1.log; shift 3
  if [ -n "$ONLY" ] && [[ " $ONLY " != *" $name "* ]]; then return; fi
  while [ "${#starts[@]}" -ge "$AT_ONCE" ]; do next_end; done
  counts[$name]=$count limits[$name]=$limit starts[$name]=$SECONDS
  if [ "$AT_ONCE" = 1 ]; then
    printf '\n=== %s\n' "$name"
    timeout --kill-after=30 "$limit" "$@" </dev/null 2>&1 | tee "$log"
    ended "$name" "${PIPESTATUS[0]}"
  else
    printf '=== %s begins\n' "$name"
    {
      trap 'kill $!' TERM
      timeout --kill-after=30 "$limit" "$@" </dev/null >"$log" 2>&1 &
      wait $!
      echo "$name $?" >&"$ENDS"
    } &
  fi
}

# Where stages that run side by side say that they have ended, and how.
exec {ENDS}<> <(:)
trap 'kill $(jobs -p) 2>/dev/null; exit 130' INT TERM

# Waits for the end of a stage.
next_end() {
  local name status
  read -r name status <&"$ENDS"
  printf '\n=== %s\n' "$name"
  cat "$LOGS/$name.log"
  ended "$name" "$status"
}

# Waits for the end of a stage that others need; without a name, of all.
after() {
  while [ "${#starts[@]}" -gt 0 ] && { [ $# = 0 ] || [ -n "${starts[$1]:-}" ]; }; do next_end; done
}

# ended NAME STATUS: counts what it did.
ended() {
  local name=$1 status=$2 log=$LOGS/$1.log took=$((SECONDS - starts[$1])) why='' passed failed line
  read -r passed failed < <("${counts[$name]}" "$status" <"$log")
  [ "$status" = 124 ] && why="did not end within ${limits[$name]} s"
  unset "starts[$name]"
  # The exit status has the last word: no count talks a failure away, and a stage without a test is
  # no success.
  if [ "$status" != 0 ] && [ "$failed" = 0 ]; then failed=1; fi
  if [ "$status" = 0 ] && [ "$passed" = 0 ] && [ "$failed" = 0 ]; then why='ran nothing'; failed=1; fi
  [ -z "$why" ] || echo "=== $name $why"
  [ "$failed" = 0 ] || failures+="$name: $why"$'\n'"$(signs "$log")"$'\n'
  total_passed=$((total_passed + passed)) total_failed=$((total_failed + failed))
  line=$(printf '%-12s %6d passed %4d failed %6d s' "$name" "$passed" "$failed" "$took")
  printf '=== %s\n' "$line"
  summary+="$line"$'\n'
}

# The lines of a failed stage's log that say what failed, at most so many, for the end of the
# output: often all that is kept of it.
signs() { grep -aEn 'FAILED|panicked at|signal: |^error|^ *[0-9]+\) (test|doctest) ' "$1" | cut -c1-200 | head -n 12; }

# --- how each stage's output is counted -----------------------------------------------------------

by_status() { cat >/dev/null; if [ "$1" = 0 ]; then echo 1 0; else echo 0 1; fi; }

# The last line `N passed, N failed`.
by_last_line() {
  awk '/^[0-9]+ passed, [0-9]+ failed$/ {p = $1; f = $3} END {print p + 0, f + 0}'
}

# `test result: ok. 3 passed; 0 failed; ...`, once for each crate.
by_cargo() {
  awk '/^test result: / {for (i = 1; i < NF; i++) {if ($(i + 1) == "passed;") p += $i; if ($(i + 1) == "failed;") f += $i}}
       END {print p + 0, f + 0}'
}

# `1 doctest, 5 tests, 0 failures`
by_exunit() {
  awk '/^([0-9]+ doctests?, )?[0-9]+ tests?, [0-9]+ failures?/ {
         for (i = 1; i < NF; i++) {w = $(i + 1); if (w ~ /^(doc)?tests?,/) t += $i; if (w ~ /^failures?/) f += $i}}
       END {print t - f + 0, f + 0}'
}

# --- the stages -----------------------------------------------------------------------------------

# All crates with all features, and the examples of their documentation; then the operations of the
# engine without features (`make proof` runs its unit tests so, too). The programs of the crates'
# examples/ are compiled by clippy. The study of Erlang's tables waits for the stage `bench`: beside
# this one its modules and the library are being built.
rust() {
  local failed=0
  export LARDER_BUILT=no
  cargo test --quiet --no-fail-fast --locked --workspace --tests --target-dir "$TARGET" || failed=1
  cargo test --quiet --no-fail-fast --locked --workspace --doc --target-dir "$TARGET" || failed=1
  cargo test --quiet --locked -p larder --lib --test operations --target-dir "$TARGET" &&
    [ "$failed" = 0 ]
}
# The library, and all the Erlang that the stages share: none compiles it beside another.
build() { "$MAKE" --no-print-directory build demo-beams bench-beams test-beams; }
# The suites that measure how long calls take.
TIMES=hold_,yield_
erlang_suites() { [ -n "${LARDER_ONLY:-}" ] || export LARDER_WITHOUT=$TIMES; suites; }
erlang_times() { export LARDER_ONLY=${LARDER_ONLY:-$TIMES}; suites; }
suites() {
  # The same random cases each time, so that a change is judged by what it does; `make hunt` takes
  # new ones.
  export LARDER_SEED=${LARDER_SEED:-2026,11,21}
  # Ra, for the suites that need it.
  export ERL_LIBS=$PWD/_build/ra${ERL_LIBS:+:$ERL_LIBS}
  "$MAKE" --no-print-directory -s demo-beams test-beams || return
  local status
  TMPDIR=$(files_folder) || return
  export TMPDIR
  erl -noinput +P 1000000 -pa _build/larder/ebin _build/demo _build/tests -s larder_test_runner main
  status=$?
  rm -rf "$TMPDIR"
  return $status
}
# A new folder for the files of tests: in memory, where that has room and lets programs be run, as
# much of what they do there, such as fsync, waits for a disk.
files_folder() {
  local folder
  if folder=$(mktemp -d /dev/shm/larder.XXXXXX 2>/dev/null); then
    if cp "$(type -P true)" "$folder/" && "$folder/true" &&
      [ "$(df --output=avail -k "$folder" | tail -n 1)" -ge 2000000 ]; then
      rm "$folder/true" && echo "$folder" && return
    fi
    rm -rf "$folder"
  fi
  mktemp -d
}
# Of the engine nothing is built anew: the stage `build` has its release build.
jvm() { "$MAKE" --no-print-directory -s QUIET=--quiet test-jvm; }
# The whole of `make run`, on a part of the packages.
demo() {
  LARDER_DEMO_PACKAGES=4000 "$MAKE" --no-print-directory run
}
# Every measurement of the benches, small: they check their answers. Then the study of Erlang's
# tables, for which all is built by now.
bench() {
  export LARDER_BENCH_OUT=$LOGS/bench LARDER_BENCH_RUNS=1
  # The stage `rust` has built what draws the reports.
  [ -n "$ONLY" ] || export REPORTER="'$TARGET/debug/larder-bench'"
  LARDER_BENCH_SIZES=500 LARDER_BENCH_OPERATIONS=1000 "$MAKE" --no-print-directory bench-ets &&
    LARDER_BENCH_RANGE=2000 LARDER_BENCH_MS=5 "$MAKE" --no-print-directory bench-scaling &&
    LARDER_BENCH_GROWTH=9000 LARDER_BENCH_PART=1000 "$MAKE" --no-print-directory bench-growth &&
    LARDER_BENCH_SIZES=10,100 LARDER_BENCH_SHARE=0.005 "$MAKE" --no-print-directory bench-wide &&
    LARDER_BENCH_SIZES=5,2000 LARDER_BENCH_OPERATIONS=20000 "$MAKE" --no-print-directory bench-ranks &&
    LARDER_BENCH_CAPACITY=100 LARDER_BENCH_OPERATIONS=20000 "$MAKE" --no-print-directory bench-caches-erlang &&
    LARDER_BENCH_MNESIA=100 "$MAKE" --no-print-directory bench-mnesia &&
    LARDER_BUILT=yes cargo test --quiet --locked --workspace --test program --target-dir "$TARGET" -- --exact studies::erlang
}
export -f build rust suites files_folder erlang_suites erlang_times jvm demo bench
export MAKE LOGS TARGET TIMES ONLY

# Those that have one thread most of the time (the linking of a release, callgrind, the model
# checker) beside those that have several. The compiler's debug profile is in the hands of one stage
# at a time: `rust`, then `lint`.
stage build     by_status    1800 bash -c build
stage rust      by_cargo     2400 bash -c rust
after build
stage instructions by_last_line 1500 scripts/instructions.sh
stage jvm       by_last_line 1200 bash -c jvm
stage packaging by_last_line 1200 scripts/packaging_test.sh
stage erlang    by_last_line 1800 bash -c erlang_suites
stage model     by_cargo     1200 scripts/model.sh
after rust
stage lint      by_last_line 1200 scripts/lint.sh
stage bench     by_status    900  bash -c bench
stage demo      by_status    900  bash -c demo
stage elixir    by_exunit    900  mix test
after
# Alone: it measures how long calls take.
stage times     by_last_line 900  bash -c erlang_times
after

[ -z "$failures" ] || printf '\n%s' "$failures"
printf '\n%s\n' "$summary"
echo "all stages: $SECONDS s; logs in $LOGS"
echo "$total_passed passed, $total_failed failed"
[ "$total_failed" = 0 ] && [ "$total_passed" -gt 0 ]
