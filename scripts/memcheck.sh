#!/bin/bash
# The native library in a real emulator under valgrind's memcheck: what is read or written beside a block or after it was freed, and what depends on
# bytes that nobody wrote, in the library or, because of it, in the emulator.
#
#   scripts/memcheck.sh [TEST...]     LARDER_CASES (5): percent of the usual random cases
#
# TEST is a module of erlang/test, or MODULE:FUNCTION; larder_memcheck runs it, with all the time it needs.
#
# The emulator is not built for valgrind and has errors of its own there: a first run, of the same random commands on `ets` alone, says which; whatever
# else is reported counts, with or without a frame of the library. Every emulator allocator that can be is off (+Mea min), and the library is built with the
# system's, so that memcheck knows every block. The emulator's compiler writes code as it goes (--smc-check=all). Leaks are not asked for: the leaves
# of tables are led to by words that are more than addresses. leak_tests and crates/larder/tests/leaks.rs count instead.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/common.sh

MAKE=${MAKE:-make}
HOME_DIR=$PWD/_build/memcheck
TARGET=${CARGO_TARGET_DIR:-$PWD/target}/memcheck
export LARDER_SEED=${LARDER_SEED:-2026,11,21} LARDER_CASES=${LARDER_CASES:-5} ERL_CRASH_DUMP_SECONDS=0
RANDOM_ONES=(diff_statem_tests:same_as_ets_test_ diff_ms_tests:specs_test_ diff_ms_tests:tables_test_)
have valgrind || die "valgrind is needed (apt-get install valgrind)"

"$MAKE" --no-print-directory -s beams test-beams
RUSTFLAGS="${RUSTFLAGS:-} --cfg larder_sanitize" cargo build --quiet --locked -p larder-nif --target-dir "$TARGET"
rm -rf "$HOME_DIR"
mkdir -p "$HOME_DIR/larder/priv" "$HOME_DIR/larder/ebin"
cp _build/larder/ebin/* "$HOME_DIR/larder/ebin"
cp "$TARGET/debug/liblarder_nif.so" "$HOME_DIR/larder/priv/larder_nif.so"

ROOTDIR=$(erl -noinput -eval 'io:put_chars(code:root_dir()), halt().')
BINDIR=$(dirname "$(find "$ROOTDIR"/erts-*/bin -name beam.smp | sort | tail -n 1)")
export ROOTDIR BINDIR EMU=beam PROGNAME=erl

# emulator LOG VALGRIND'S OPTIONS... -- TEST...: its status is the tests'.
emulator() {
  local log=$1 options=(); shift
  while [ "$1" != -- ]; do options+=("$1"); shift; done
  shift
  local arguments
  mapfile -t arguments < <(erl -emu_args_exit +S 2:2 +SDcpu 1:1 +SDio 1 +A 1 +Mea min +P 1000000 -noinput -pa "$HOME_DIR/larder/ebin" _build/tests \
    -s larder_memcheck main -extra "$@")
  valgrind --tool=memcheck --leak-check=no --smc-check=all --fair-sched=yes --error-limit=no --num-callers=30 --log-file="$HOME_DIR/$log" \
    --gen-suppressions=all "${options[@]}" "$BINDIR/beam.smp" "${arguments[@]}"
}

# The errors that LOG has, without their suppressions: a paragraph each.
errors() { sed -E 's/^==[0-9]+== ?//; /^\{/,/^\}/d' "$HOME_DIR/$1" | awk -v RS= -v ORS='\n\n' '/ at 0x/'; }

echo "the emulator alone, ${RANDOM_ONES[*]}"
LARDER_SUT=ets emulator alone.log -- "${RANDOM_ONES[@]}"
sed -n '/^{/,/^}/p' "$HOME_DIR/alone.log" >"$HOME_DIR/alone.supp"
echo "memcheck: $(grep -c '^{' "$HOME_DIR/alone.supp") errors of the emulator alone"

[ "$#" -gt 0 ] || set -- larder_smoke_tests "${RANDOM_ONES[@]}"
echo "with the library, $*"
status=0
emulator larder.log --suppressions="$HOME_DIR/alone.supp" -- "$@" || status=$?
grep -q 'ERROR SUMMARY' "$HOME_DIR/larder.log" || { echo "memcheck came to no end"; tail -20 "$HOME_DIR/larder.log"; exit 1; }
found=$(grep -c '^{' "$HOME_DIR/larder.log" || true)
ours=$(errors larder.log | awk -v RS= '/larder_nif/ {n++} END {print n + 0}')
errors larder.log | head -n 300
echo "memcheck: $found errors that the emulator alone has not, $ours of them with a frame of the library"
[ "$status" = 0 ] && [ "$found" = 0 ]
