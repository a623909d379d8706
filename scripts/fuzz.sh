#!/bin/bash
# Fuzzing guided by coverage: libFuzzer over the targets of fuzz/, with the stable compiler's own coverage counters.
#
#   scripts/fuzz.sh MINUTES [TARGET...]    so many minutes in all, shared by the targets (all of them)
#
# The first line says what is run. What was found that reaches new code goes to _build/fuzz/TARGET and stays there; an input that fails is
# kept in _build/fuzz/failures and printed. Ends with `N passed, N failed`.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/common.sh

MINUTES=${1:-5}; shift || true
TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}/fuzz
HOST=$(rustc -vV | sed -n 's/^host: //p')
TARGETS=(${@:-etf text order object matchspec spec_text file operations})
command -v c++ >/dev/null || die "libFuzzer is C++: a c++ compiler is needed (apt-get install g++)"

echo "fuzzing for $MINUTES minutes: ${TARGETS[*]}"
# The counters only: no sanitizer is needed for code without unsafe blocks of its own, and debug assertions are on.
RUSTFLAGS="${RUSTFLAGS:-} -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1" \
  cargo build --quiet --locked -p larder-fuzz --features libfuzzer --target "$HOST" --target-dir "$TARGET_DIR"

mkdir -p _build/fuzz/failures
cargo run --quiet --locked -p larder-fuzz --example seeds --target-dir "${CARGO_TARGET_DIR:-$PWD/target}" -- _build/fuzz
seconds=$((MINUTES * 60 / ${#TARGETS[@]})) passed=0 failed=0
[ "$seconds" -ge 1 ] || seconds=1
for target in "${TARGETS[@]}"; do
  mkdir -p "_build/fuzz/$target" "fuzz/corpus/$target"
  log=_build/fuzz/$target.log
  if LARDER_FUZZ_TARGET=$target "$TARGET_DIR/$HOST/debug/larder-fuzz" -max_total_time="$seconds" -max_len=4096 -timeout=30 \
       -rss_limit_mb=4096 -print_final_stats=1 -artifact_prefix="_build/fuzz/failures/$target-" \
       "_build/fuzz/$target" "fuzz/corpus/$target" >"$log" 2>&1; then
    passed=$((passed + 1)) how=ok
  else
    failed=$((failed + 1)) how=FAILED
  fi
  printf '%-7s %-11s %10s inputs in %s s, %s edges covered\n' "$how" "$target" \
    "$(sed -n 's/^stat::number_of_executed_units: *//p' "$log" | tail -1)" "$seconds" \
    "$(grep -ao 'cov: [0-9]*' "$log" | tail -1 | cut -d' ' -f2)"
  [ "$how" = ok ] || tail -30 "$log"
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
