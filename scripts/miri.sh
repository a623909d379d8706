#!/bin/bash
# Undefined behaviour, data races, and what a processor with weaker orders than this one could do: the tests that are small enough for it, under Miri.
#
#   scripts/miri.sh [PART...]    term index structures judy; all without arguments
#
# Its options, and why:
#   -Zmiri-tree-borrows           crossbeam-epoch comes from a field to the record around it, which the older rules (Stacked Borrows) don't allow
#   -Zmiri-permissive-provenance  a handle in a leaf or a row is the number of an address, whose pointer was exposed when the number was made
#   -Zmiri-ignore-leaks           what the epoch has not freed yet when a program ends is led to by a static alone
#   -Zmiri-disable-isolation      seeds and clocks come from the system
set -uo pipefail
cd "$(dirname "$0")/.."
. scripts/common.sh
cargo +nightly miri --version >/dev/null 2>&1 || die "Miri is needed: rustup toolchain install nightly --component miri,rust-src"
export MIRIFLAGS="-Zmiri-tree-borrows -Zmiri-permissive-provenance -Zmiri-ignore-leaks -Zmiri-disable-isolation ${MIRIFLAGS:-}"
target=${CARGO_TARGET_DIR:-$PWD/target}/miri
passed=0 failed=0

# part NAME ARGUMENTS OF cargo miri test...
part() {
  local name=$1; shift
  [ -z "$only" ] || [[ " $only " == *" $name "* ]] || return 0
  if cargo +nightly miri test --quiet --locked --no-fail-fast --target-dir "$target" "$@"; then
    passed=$((passed + 1)); echo "ok      miri: $name $*"
  else
    failed=$((failed + 1)); echo "FAILED  miri: $name $*"
  fi
}
only=$*
part term -p larder-term --test basics
part index -p larder-index --lib
part index -p larder-index --test undefined
part structures -p larder-structures --lib -- raw:: relaxed_avl:: skiplist:: list::
part judy -p larder-judy --lib -- oracle slices
echo "$passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
