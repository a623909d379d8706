#!/bin/bash
# The concurrent tests of index, structures and tables under the compiler's sanitizers, and the native library in an emulator under valgrind.
#
#   scripts/sanitize.sh [thread] [address] [nif]     all three without arguments. LARDER_SOAK=n: n times as much work
#
# thread   ThreadSanitizer: data races. It knows no fences, which the epoch is made of: scripts/tsan.supp says what is not reported therefore.
# address  AddressSanitizer and LeakSanitizer: what is read after it was freed, freed twice, or never.
# nif      valgrind's memcheck over the emulator and the library's smoke tests; what it says of the library counts (scripts/valgrind.supp).
#
# Sanitizers are options of the nightly compiler. Where that is installed with the standard library's sources, they are compiled with the same options; where
# not, RUSTC_BOOTSTRAP=1 makes the stable compiler take the options, and the standard library is as it came. The allocator is the system's, so that blocks are seen.
set -uo pipefail
cd "$(dirname "$0")/.."
base=${CARGO_TARGET_DIR:-$PWD/target}/sanitize
host=$(rustc -vV | sed -n 's/^host: //p')
passed=0 failed=0
report() {
  if [ "$2" = 0 ]; then passed=$((passed + 1)); echo "ok      $1"; else failed=$((failed + 1)); echo "FAILED  $1"; fi
}

# with SANITIZER ARGUMENTS OF cargo test...
with() {
  local sanitizer=$1; shift
  local flags="-Zsanitizer=$sanitizer --cfg larder_sanitize -Cforce-frame-pointers=yes"
  local sources; sources=$(rustc +nightly --print sysroot 2>/dev/null)/lib/rustlib/src/rust/library
  if [ -d "$sources" ]; then
    RUSTFLAGS=$flags cargo +nightly test -Zbuild-std --locked --target "$host" --target-dir "$base/$sanitizer" "$@"
  else
    RUSTC_BOOTSTRAP=1 RUSTFLAGS=$flags cargo test --locked --target "$host" --target-dir "$base/$sanitizer" "$@"
  fi
}

tests() {
  with "$1" --quiet --no-fail-fast -p larder-index --test threads --test linearizability --test undefined; report "$1: index" $?
  with "$1" --quiet --no-fail-fast -p larder-structures --lib --test threads --test linearizability; report "$1: structures" $?
  with "$1" --quiet --no-fail-fast -p larder --test concurrent --test linearizability --test reaper; report "$1: tables" $?
}

thread() {
  TSAN_OPTIONS="suppressions=$PWD/scripts/tsan.supp halt_on_error=0 second_deadlock_stack=1 ${TSAN_OPTIONS:-}" tests thread
}

address() {
  ASAN_OPTIONS="detect_leaks=1 detect_stack_use_after_return=0 ${ASAN_OPTIONS:-}" tests address
}

nif() {
  scripts/memcheck.sh; report "nif: memcheck" $?
}

for what in "${@:-thread address nif}"; do
  for one in $what; do "$one"; done
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
