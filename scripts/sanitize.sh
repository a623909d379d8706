#!/bin/bash
# The concurrent tests of index, structures and tables under AddressSanitizer: what is read after it was freed, freed twice, or (index and structures) never freed.
#
#   scripts/sanitize.sh     LARDER_SOAK=n: n times as much work
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
  local name=$1 leaks=$2; shift 2
  ASAN_OPTIONS="detect_leaks=$leaks ${ASAN_OPTIONS:-}" with address --quiet --no-fail-fast "$@"
  report "address: $name" $?
}

tests index 1 -p larder-index --test threads --test linearizability --test undefined
tests structures 1 -p larder-structures --lib --test threads --test linearizability
# A program may end while its reaper is at work on tables that were dropped, and the leaves of those are led to by words that are more than addresses: to
# LeakSanitizer they look lost. crates/larder/tests/leaks.rs counts every byte instead.
tests tables 0 -p larder --test concurrent --test linearizability --test reaper
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
