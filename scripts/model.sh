#!/bin/bash
# Each protocol under a model checker: threads change at every touch of an atomic or a lock
# (crates/larder-index/src/sync), by chance, by PCT, and, in small programs, in all orders of few
# changes. Histories must be linearizable; faults that are planted must be found. A build of its
# own.
#
#   scripts/model.sh [--long] [ARGUMENTS OF cargo test...]
#
# LARDER_SOAK=n makes n times as many executions; --long is LARDER_SOAK=30.
#
# The last line says how many executions there were. A failing one prints a schedule;
# LARDER_SCHEDULE=... runs it again.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ "${1:-}" = --long ]; then
  shift
  export LARDER_SOAK=${LARDER_SOAK:-30}
fi
export RUSTFLAGS="${RUSTFLAGS:-} --cfg larder_model"
LARDER_MODEL_LOG=$(mktemp)
export LARDER_MODEL_LOG
target=${CARGO_TARGET_DIR:-$PWD/target}/model
trap 'rm -f "$LARDER_MODEL_LOG"' EXIT
status=0
models() { cargo test --quiet --locked --no-fail-fast --target-dir "$target" "$@" || status=$?; }
# The locks that structures stand on, then the index, the structures and the tables.
models -p larder-studies --lib -- model "$@"
models -p larder-index -p larder-studies -p larder --features larder/matchspec,larder/studies --test interleavings -- "$@"
models -p larder --features matchspec,studies --test interleavings_of_transactions --test interleavings_of_bounds -- "$@"
models -p larder --features matchspec,studies --test interleavings_of_indexes -- "$@"
sed -E 's/^ *[0-9]+ executions of (.*): .*/\1/' "$LARDER_MODEL_LOG" | sort -u | grep -cv '^a planted fault' | {
  read -r programs
  awk -v programs="$programs" -v seconds="$SECONDS" '
    {n += $1} /all orders/ {all++} END {
      printf "model: %d executions of %d programs, %d of them in all orders of few changes of thread, %d s\n", n, programs, all, seconds}' "$LARDER_MODEL_LOG"
}
exit "$status"
