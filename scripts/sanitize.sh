#!/bin/bash
# The concurrent tests of index, structures and tables under the compiler's sanitizers.
#
#   scripts/sanitize.sh [address] [thread] [CRATE]...
#
# Without arguments: both sanitizers, and the crates index, structures and tables.
#
# address   AddressSanitizer: memory that is read after it was freed, freed twice, or (index and
#           structures) never freed.
# thread    ThreadSanitizer: two threads at one place, one of which writes, with nothing that orders
#           them. It knows no fences, so the epoch is built in the form that it has for this
#           sanitizer (crossbeam_sanitize_thread). scripts/tsan.supp says what is not reported, and
#           why.
#
# Before, each must find a fault that is planted (scripts/planted.rs).
#
# LARDER_SOAK=n: n times as much work. Sanitizers are options of the nightly compiler. Where that is
# installed with the standard library's sources, they are compiled with the same options; where not,
# RUSTC_BOOTSTRAP=1 makes the stable compiler take the options. Then the standard library is as it
# came, which is enough for addresses; for threads its sources are needed, which rustup installs.
# The allocator is the system's, so that blocks are seen.
set -uo pipefail
cd "$(dirname "$0")/.."
. scripts/common.sh
base=${CARGO_TARGET_DIR:-$PWD/target}/sanitize
host=$(rustc -vV | sed -n 's/^host: //p')
passed=0 failed=0
report() {
  if [ "$2" = 0 ]; then passed=$((passed + 1)); echo "ok      $1"; else failed=$((failed + 1)); echo "FAILED  $1"; fi
}
has_sources() { [ -d "$(rustc "$@" --print sysroot 2>/dev/null)/lib/rustlib/src/rust/library" ]; }

# with SANITIZER ARGUMENTS OF cargo test...
with() {
  local sanitizer=$1; shift
  local flags="-Zsanitizer=$sanitizer --cfg larder_sanitize -Cforce-frame-pointers=yes"
  [ "$sanitizer" = address ] || flags+=" --cfg crossbeam_sanitize_thread"
  local to=(--locked --target "$host" --target-dir "$base/$sanitizer")
  if has_sources +nightly; then
    RUSTFLAGS=$flags cargo +nightly test -Zbuild-std "${to[@]}" "$@"
  elif has_sources; then
    RUSTC_BOOTSTRAP=1 RUSTFLAGS=$flags cargo test -Zbuild-std "${to[@]}" "$@"
  elif [ "$sanitizer" = address ]; then
    RUSTC_BOOTSTRAP=1 RUSTFLAGS="$flags -Cunsafe-allow-abi-mismatch=sanitizer" cargo test "${to[@]}" "$@"
  else
    die "the sources of the standard library are needed: rustup component add rust-src"
  fi
}

# A sanitizer that is not at work says nothing of anything.
planted() {
  local at said; at=$(mktemp -d)
  local flags=(--edition 2021 -Zsanitizer="$1" -Cunsafe-allow-abi-mismatch=sanitizer scripts/planted.rs -o "$at/planted")
  { rustc +nightly "${flags[@]}" || RUSTC_BOOTSTRAP=1 rustc "${flags[@]}"; } 2>/dev/null &&
    said=$("$at/planted" "$1" 2>&1)
  grep -qE 'ThreadSanitizer: data race|AddressSanitizer: heap-use-after-free' <<<"${said:-}"
  report "$1: the fault that is planted is found" $?
  rm -rf "$at"
}

tests() {
  local name=$1 leaks=$2; shift 2
  [[ " $crates " == *" $name "* ]] || return 0
  for sanitizer in $sanitizers; do
    ASAN_OPTIONS="detect_leaks=$leaks ${ASAN_OPTIONS:-}" \
      TSAN_OPTIONS="suppressions=$PWD/scripts/tsan.supp second_deadlock_stack=1 ${TSAN_OPTIONS:-}" \
      with "$sanitizer" --quiet --no-fail-fast "$@"
    report "$sanitizer: $name" $?
  done
}

sanitizers='' crates=''
for word in "$@"; do
  case $word in
    address | thread) sanitizers+=" $word" ;;
    index | structures | tables) crates+=" $word" ;;
    *) die "$word: neither a sanitizer (address, thread) nor a crate (index, structures, tables)" ;;
  esac
done
: "${sanitizers:=address thread}" "${crates:=index structures tables}"

if [[ $sanitizers == *thread* ]] && ! has_sources +nightly && ! has_sources && command -v rustup >/dev/null; then
  rustup component add rust-src || die "thread needs the sources of the standard library, which rustup could not install"
fi
for sanitizer in $sanitizers; do planted "$sanitizer"; done
tests index 1 -p larder-index --test threads --test linearizability --test undefined
tests structures 1 -p larder-studies --lib --test threads --test linearizability
# A program may end while its reaper is at work on tables that were dropped, and the leaves of those
# are led to by words that are more than addresses: to LeakSanitizer they look lost.
# crates/larder/tests/leaks.rs counts every byte instead.
tests tables 0 -p larder --features matchspec,studies --test concurrent --test linearizability --test reaper
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
