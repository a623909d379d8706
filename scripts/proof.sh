#!/bin/bash
# `make proof`: the long form of everything that docs/promises.md names, one after another, and a
# dated page of what ran.
#
#   scripts/proof.sh [STAGE...]   all stages, or only these of them:
#
#   isolation faults differential alone linearisability model memcheck sanitizers fuzz soak
#
# The page shows the last run of each stage, so that they may be run one by one: what a stage found
# lies beside it, in STAGE.row. PROOF_MINUTES (30) is how long the soak takes, and the fuzzers
# together. PROOF_TIMES (20) is how many times the usual work the histories and the sanitizer's
# threads do; PROOF_CASES (500) how many percent of the usual random cases the Erlang suites do. The
# page is results/proof/README.md, the logs lie in _build/proof. Fails if a stage fails or ran
# nothing.
set -uo pipefail
cd "$(dirname "$0")/.."
. scripts/common.sh

MAKE=${MAKE:-make}
TARGET=${CARGO_TARGET_DIR:-$PWD/target}
MINUTES=${PROOF_MINUTES:-30} TIMES=${PROOF_TIMES:-20} CASES=${PROOF_CASES:-500}
OUT=${PROOF_OUT:-results/proof}
LOGS=_build/proof
ONLY=$*
STAGES=(isolation faults differential alone linearisability model memcheck sanitizers fuzz soak)
COMMIT=$(git rev-parse --short HEAD 2>/dev/null || echo unknown)
export ERL_CRASH_DUMP_SECONDS=0 CARGO_TERM_COLOR=never
mkdir -p "$LOGS" "$OUT"
ran=0 failed=0

# What a log says of how much was done: counts, cases, histories, executions, inputs.
figures() {
  grep -hoE '^[0-9]+ passed, [0-9]+ failed|[0-9]+ (histories|executions|schedules|mutated ones)[^,]*|soak: [0-9]+ s, [0-9]+ operations, [0-9]+ owners|^ok +[a-z_]+ +[0-9]+ inputs|^memcheck: .*|killed at [0-9]+ yield points' "$1" |
    sed -E 's/ +/ /g' | awk '/yield points/ {y += $3; next} {print} END {if (y) print y " yield points"}' | sort | uniq -c |
    awk '{n = $1; $1 = ""; sub(/^ /, ""); print (n > 1 ? n " times " : "") $0}' | paste -sd ';' | sed 's/;/; /g; s/|/ /g'
  awk '/^test result: / {for (i = 1; i < NF; i++) {if ($(i + 1) == "passed;") p += $i; if ($(i + 1) == "failed;") f += $i}}
       END {if (p + f) print p " tests passed, " f " failed"}' "$1"
}

# stage NAME WHAT LIMIT COMMAND...
stage() {
  local name=$1 what=$2 limit=$3 start=$SECONDS log=$LOGS/$1.log status how; shift 3
  if [ -n "$ONLY" ] && [[ " $ONLY " != *" $name "* ]]; then return; fi
  printf '=== %s\n' "$name"
  timeout --kill-after=30 "$limit" "$@" </dev/null >"$log" 2>&1
  status=$?
  if [ "$status" = 0 ]; then how=passed; else how="FAILED ($status)"; failed=$((failed + 1)); tail -40 "$log"; fi
  local said; said=$(figures "$log" | paste -sd ' ')
  printf '=== %-16s %-12s %6d s  %s\n' "$name" "$how" $((SECONDS - start)) "$said"
  ran=$((ran + 1))
  echo "| $name | $what | $(date -u '+%Y-%m-%d %H:%M'), $COMMIT | $how | $((SECONDS - start)) s | ${said:-no figures} |" >"$OUT/$name.row"
}

erlang() {
  LARDER_ONLY=$1 erl -noinput +P 1000000 -pa _build/larder/ebin _build/tests -s larder_test_runner main
}
linearisability() {
  LARDER_SOAK=$TIMES cargo test --release --quiet --locked -p larder-index -p larder-studies -p larder --features larder/studies --test linearizability --target-dir "$TARGET" -- --nocapture
}
export -f erlang linearisability
export TIMES TARGET MINUTES

"$MAKE" --no-print-directory -s build test-beams || die "the library does not build"
stage isolation "every function on others' tables" 1200 bash -c 'erlang isolation'
stage faults "kills at every yield point, files, disks, reload, hostile data" 7200 \
  env LARDER_FAULT_SAY=1 LARDER_FAULT_ROWS=20000 LARDER_CASES="$CASES" bash -c 'erlang fault,hostile'
stage differential "random commands and specifications beside ets, new ones" 10800 \
  env LARDER_SEED=random LARDER_CASES="$CASES" bash -c 'erlang diff_,conc_,structures'
stage alone "the engine without features" 3600 \
  cargo test --quiet --locked -p larder --lib --test operations --target-dir "$TARGET"
stage linearisability "histories of threads, every structure" 7200 bash -c linearisability
stage model "interleavings of index, structures and tables" 7200 scripts/model.sh --long
stage memcheck "the library in an emulator under valgrind" 3600 scripts/memcheck.sh
stage sanitizers "address, leak and thread sanitizer" 14400 env LARDER_SOAK="$TIMES" scripts/sanitize.sh
stage fuzz "coverage-guided, all targets" $((MINUTES * 60 + 1800)) scripts/fuzz.sh "$MINUTES"
stage soak "mixed work on every type" $((MINUTES * 180 + 600)) \
  env LARDER_SOAK_SECONDS=$((MINUTES * 60)) erl -noinput +P 1000000 -pa _build/larder/ebin _build/tests -s larder_soak main

[ "$ran" -gt 0 ] || die "no stage of that name"
{
  echo "# make proof, $(date -u '+%Y-%m-%d')"
  echo
  model=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)
  echo "OTP $(erl -noinput -eval 'io:put_chars(erlang:system_info(otp_release)), halt()')," \
    "$(rustc --version), $(nproc) processors ($model)."
  echo "Each stage's last run, its end (UTC) and commit."
  echo
  echo '| stage | what | end, commit | result | time | how much |'
  echo '|---|---|---|---|---|---|'
  missing=''
  for name in "${STAGES[@]}"; do
    if [ -f "$OUT/$name.row" ]; then cat "$OUT/$name.row"; else missing+=" $name"; fi
  done
  echo
  echo "$(cat "$OUT"/*.row | grep -c FAILED) stages failed.${missing:+ Not run:$missing.}"
} >"$OUT/README.md"
cat "$OUT/README.md"
[ "$failed" = 0 ]
