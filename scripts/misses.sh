#!/bin/bash
# `make bench-misses`: instructions and misses of an operation of the index on a million entries, as
# CSV on the standard output. Callgrind simulates the processor's two caches of data, and then its
# two tables of pages' addresses as caches whose lines are pages. The loop around the operation, of
# eight instructions and one line, is counted, too. About four minutes.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/common.sh
have valgrind || die "valgrind is needed (apt-get install valgrind)"

CARGO=${CARGO:-cargo}
TARGET=${CARGO_TARGET_DIR:-$PWD/target}
readonly ROWS=1000000 OPERATIONS=100000
"$CARGO" build --quiet --locked --release -p larder-index --example counted --target-dir "$TARGET"
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT

# count ORDER OPERATION D1 LL: an operation's instructions, and its misses of data in each cache.
# The events are Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw.
count() {
  valgrind --tool=callgrind --quiet --collect-atstart=no --toggle-collect='*measured*' \
    --cache-sim=yes --I1=32768,8,64 --D1="$3" --LL="$4" --callgrind-out-file="$WORK/out" \
    "$TARGET/release/examples/counted" "$1" "$ROWS" "$2" "$OPERATIONS" >/dev/null 2>&1
  awk -v n="$OPERATIONS" '/^totals:/ { printf "%.0f,%.1f,%.1f", $2 / n, ($6 + $7) / n, ($9 + $10) / n }' "$WORK/out"
}

echo "# date: $(date -u +%Y-%m-%dT%H:%M:%SZ)"
echo "# rustc: $(rustc --version)"
echo "# commit: $(git describe --always --dirty --abbrev=12)"
echo "order,operation,instructions,lines not in 48 KiB,lines not in 2 MiB,pages not among 64,\"pages not among 2,048\""
for order in hash ordered; do
  for operation in get put; do
    lines=$(count $order $operation 49152,12,64 2097152,16,64)
    pages=$(count $order $operation 262144,4,4096 8388608,8,4096)
    echo "$order,$operation,$lines,${pages#*,}"
  done
done
