#!/bin/bash
# Fuzzing guided by coverage: libFuzzer over the targets of fuzz/, with the stable compiler's own
# coverage counters.
#
#   scripts/fuzz.sh MINUTES [TARGET...]   fuzzes for so many minutes in all
#   scripts/fuzz.sh keep [TARGET...]      keeps few inputs that reach what all found inputs reach,
#                                         as fuzz/corpus/TARGET.tar.gz
#
# Without TARGET: all targets.
#
# The first line says what is run. What was found that reaches new code goes to _build/fuzz/TARGET
# and stays there; an input that fails is kept in _build/fuzz/failures and printed. Ends with
# `N passed, N failed`.
#
# `make test` runs what is kept, so it is kept small: LARDER_KEEP_BYTES (60000) a target, the
# smallest inputs first; what is left out is reported.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/common.sh

WHAT=${1:-5}; shift || true
TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}/fuzz
HOST=$(rustc -vV | sed -n 's/^host: //p')
TARGETS=(${@:-etf text order object matchspec spec_text file operations})
CORPUS=_build/fuzz/corpus
KEEP_BYTES=${LARDER_KEEP_BYTES:-60000}
[[ $WHAT =~ ^([0-9]+|keep)$ ]] || die "fuzz.sh: '$WHAT' is neither a number of minutes nor 'keep'"
command -v c++ >/dev/null || die "libFuzzer is C++: a c++ compiler is needed (apt-get install g++)"

# The counters only: no sanitizer is needed for code without unsafe blocks of its own, and debug
# assertions are on.
build() {
  RUSTFLAGS="${RUSTFLAGS:-} -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1" \
    cargo build --quiet --locked -p larder-fuzz --features libfuzzer --target "$HOST" --target-dir "$TARGET_DIR"
  cargo run --quiet --locked -p larder-fuzz --example seeds --target-dir "${CARGO_TARGET_DIR:-$PWD/target}" -- _build/fuzz
}

fuzzer() { LARDER_FUZZ_TARGET=$1 "$TARGET_DIR/$HOST/debug/larder-fuzz" -max_len=4096 -timeout=30 -rss_limit_mb=4096 "${@:2}"; }

# The smallest files of FROM, so many bytes in all, go to TO.
smallest() {
  local from=$1 to=$2
  rm -rf "$to"
  mkdir -p "$to"
  find "$from" -type f -printf '%s %f\n' | sort -n | awk -v most="$KEEP_BYTES" '(sum += $1) <= most {print $2}' |
    while read -r name; do mv "$from/$name" "$to/$name"; done
}

# unpack TARGET, pack TARGET: the folder $CORPUS/TARGET and the archive fuzz/corpus/TARGET.tar.gz.
# The same inputs make the same archive.
unpack() {
  rm -rf "${CORPUS:?}/$1"
  mkdir -p "$CORPUS/$1"
  [ ! -f "fuzz/corpus/$1.tar.gz" ] || tar -xzf "fuzz/corpus/$1.tar.gz" -C "$CORPUS/$1"
}
pack() {
  mkdir -p fuzz/corpus
  find "$CORPUS/$1" -type f -printf '%f\n' | LC_ALL=C sort |
    tar --create --format=ustar --mode=644 --mtime=@0 --owner=0 --group=0 --numeric-owner \
      --directory="$CORPUS/$1" --no-recursion --files-from=- | gzip -9n >"fuzz/corpus/$1.tar.gz"
}

# Edges alone count, not how often each is passed: more would be kept than a test has the time for.
keep() {
  local target=$1 found log=_build/fuzz/$1.merge.log
  found=$(mktemp -d)
  unpack "$target" || return 1
  fuzzer "$target" -merge=1 -use_counters=0 "$found" "$CORPUS/$target" "_build/fuzz/$target" \
    >"$log" 2>&1 || { tail -30 "$log"; rm -rf "$found"; return 1; }
  smallest "$found" "$CORPUS/$target"
  pack "$target"
  printf 'kept    %-11s %5d inputs, %d bytes; left out: %d\n' "$target" \
    "$(find "$CORPUS/$target" -type f | wc -l)" \
    "$(cat "$CORPUS/$target"/* | wc -c)" "$(find "$found" -type f | wc -l)"
  rm -rf "$found"
}

# fuzz TARGET SECONDS
fuzz() {
  local target=$1 seconds=$2 log=_build/fuzz/$1.log how=ok
  unpack "$target" || return 1
  fuzzer "$target" -max_total_time="$seconds" -print_final_stats=1 -artifact_prefix="_build/fuzz/failures/$target-" \
    "_build/fuzz/$target" "$CORPUS/$target" >"$log" 2>&1 || how=FAILED
  printf '%-7s %-11s %10s inputs in %s s, %s edges covered\n' "$how" "$target" \
    "$(sed -n 's/^stat::number_of_executed_units: *//p' "$log" | tail -1)" "$seconds" \
    "$(grep -ao 'cov: [0-9]*' "$log" | tail -1 | cut -d' ' -f2)"
  [ "$how" = ok ] || { tail -30 "$log"; return 1; }
}

if [ "$WHAT" = keep ]; then
  echo "keeping what was found: ${TARGETS[*]}"
  each() { keep "$1"; }
else
  echo "fuzzing for $WHAT minutes: ${TARGETS[*]}"
  seconds=$((WHAT * 60 / ${#TARGETS[@]}))
  [ "$seconds" -ge 1 ] || seconds=1
  each() { fuzz "$1" "$seconds"; }
fi
build
mkdir -p _build/fuzz/failures
passed=0 failed=0
for target in "${TARGETS[@]}"; do
  if each "$target"; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
