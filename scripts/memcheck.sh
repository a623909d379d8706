#!/bin/bash
# The native library in a real emulator under valgrind's memcheck: what is read or written beside a
# block of memory or after it was freed, and what is freed twice or was never a block; in the
# library or, because of it, in the emulator.
#
#   scripts/memcheck.sh [TEST...]
#
#   LARDER_CASES (1)                 percent of the usual random cases
#   LARDER_MEMCHECK_SECONDS (1500)   how long each run may take
#   LARDER_MEMCHECK_ROUNDS (60)      what each process does to a table that several work on
#
# TEST is a module of erlang/test, MODULE:FUNCTION, or -MODULE:FUNCTION for all but that;
# larder_memcheck runs it, with all the time it needs.
#
# What depends on bytes that nobody wrote is *not* asked for (--undef-value-errors=no): the code
# that the emulator's compiler makes has 28,000 such reports without Larder. Nor does an error count
# whose address is inside a block that is in use: that code has the processor's stack pointer go
# through the heaps of processes, and memcheck takes what is below a stack pointer for lost. What
# lies before or after a block, or in one that was freed, nobody may touch. Leaks are not asked for,
# either: the leaves of tables are led to by words that are more than addresses; leak_tests and
# crates/larder/tests/leaks.rs count instead. Every allocator of the emulator that can be is off
# (+Mea min), and the library is built with the system's, so that memcheck knows each block. The
# emulator writes code as it goes (--smc-check=all). Schedulers that wait don't spin, as valgrind
# lets one thread run at a time.
#
# Three runs: faults that are planted (crates/larder-index/src/memory/mod.rs), each of which must be
# found; random work on `ets` alone, which says what errors the emulator has of its own; and the
# library, in which any other error counts, with or without a frame of the library. Before them, the
# programs in C (crates/larder-capi/tests/c), with nothing left out, and no block lost but those to
# which a pointer with a tag leads, which memcheck calls possibly lost. The last line is
# `N passed, M failed`.
set -uo pipefail
cd "$(dirname "$0")/.."
. scripts/common.sh

MAKE=${MAKE:-make}
PLACE=$PWD/_build/memcheck
TARGET=${CARGO_TARGET_DIR:-$PWD/target}/memcheck
SECONDS_EACH=${LARDER_MEMCHECK_SECONDS:-1500}
export LARDER_SEED=${LARDER_SEED:-2026,11,21} LARDER_CASES=${LARDER_CASES:-1} ERL_CRASH_DUMP_SECONDS=0
ALONE=(larder_memcheck:together_test_)
# Left out: how long the heir of a thousand processes waits says nothing here, and two hundred
# thousand rows teach no more than a thousand.
LIBRARY=(larder_memcheck larder_nif_tests -larder_nif_tests:heir_hears_first_test -larder_nif_tests:long_work_lets_others_run_test_)
passed=0 failed=0
have valgrind || die "valgrind is needed (apt-get install valgrind)"

library() {
  "$MAKE" --no-print-directory -s beams test-beams &&
    RUSTFLAGS="${RUSTFLAGS:-} --cfg larder_sanitize" cargo build --quiet --locked -p larder-nif --target-dir "$TARGET" &&
    rm -rf "$PLACE" &&
    mkdir -p "$PLACE/larder/priv" &&
    cp -r _build/larder/ebin "$PLACE/larder/ebin" &&
    cp "$TARGET/debug/liblarder_nif.so" "$PLACE/larder/priv/larder_nif.so"
}
library || die "the library does not build"

# check STATUS WHAT
check() {
  if [ "$1" = 0 ]; then passed=$((passed + 1)); echo "ok      $2"; else failed=$((failed + 1)); echo "FAILED  $2"; fi
}

ROOTDIR=$(erl -noinput -eval 'io:put_chars(code:root_dir()), halt().')
BINDIR=$(dirname "$(find "$ROOTDIR"/erts-*/bin -name beam.smp | sort | tail -n 1)")
export ROOTDIR BINDIR EMU=beam PROGNAME=erl

# emulator NAME TEST...: fails if a test does, or if it comes to no end. memcheck's words are in
# NAME.log, the tests' in NAME.out.
emulator() {
  local name=$1 arguments start=$SECONDS status=0; shift
  mapfile -t arguments < <(erl -emu_args_exit +S 2:2 +SDcpu 1:1 +SDio 1 +A 1 +sbwt none +sbwtdcpu none +sbwtdio none +Mea min +P 1000000 \
    -noinput -pa "$PLACE/larder/ebin" _build/tests -s larder_memcheck main -extra "$@")
  timeout --kill-after=20 "$SECONDS_EACH" valgrind --tool=memcheck --undef-value-errors=no --leak-check=no --smc-check=all --fair-sched=yes --error-limit=no \
    --num-callers=20 --max-stackframe=65536 --freelist-vol=200000000 --child-silent-after-fork=yes --log-file="$PLACE/$name.log" \
    "$BINDIR/beam.smp" "${arguments[@]}" >"$PLACE/$name.out" 2>&1 || status=$?
  cat "$PLACE/$name.out"
  echo "$name: status $status, $((SECONDS - start)) s; $(sed -nE 's/^==[0-9]+== (ERROR SUMMARY)/\1/p' "$PLACE/$name.log" | tail -1)"
  grep -q 'ERROR SUMMARY' "$PLACE/$name.log" || { echo "memcheck came to no end:"; tail -20 "$PLACE/$name.log"; return 1; }
  return "$status"
}

# What memcheck says in NAME.log of accesses beside blocks and in freed ones, and of frees: a
# paragraph each.
errors() {
  sed -E 's/^==[0-9]+== ?//' "$PLACE/$1.log" |
    awk -v RS= -v ORS='\n\n' '/bytes (before|after) a block/ || / free.d(\n|$)/ || /(Invalid|Mismatched) free/'
}
count() { errors "$1" | awk -v RS= 'END {print NR}'; }
# Those of OTHER that NAME has not, by what went wrong and by the functions on the way there.
new_errors() {
  { errors "$1"; printf 'OTHER\n\n'; errors "$2"; } | awk -v RS= -v ORS='\n\n' '
    /^OTHER/ {other = 1; next}
    {way = $0; sub(/\n Address.*/, "", way); gsub(/0x[0-9A-F]+|Thread [^\n]*\n/, "", way)}
    !other {known[way]; next}
    !(way in known)'
}

echo "programs in C"
RUSTFLAGS="${RUSTFLAGS:-} --cfg larder_sanitize" LARDER_C_RUNNER='valgrind --tool=memcheck --leak-check=full --errors-for-leak-kinds=definite --fair-sched=yes --error-exitcode=9' \
  cargo test --quiet --locked -p larder-capi --test c --target-dir "$TARGET"
check $? "what memcheck says of the programs in C"

echo "planted faults"
LARDER_PLANTED=yes emulator planted larder_memcheck:dropped_test >/dev/null
# found ERROR ADDRESS: one whose first line and whose address are so, with a frame of the module
# `planted`. (Of a file memcheck tells no folder: it is any mod.rs.)
found() { errors planted | awk -v RS= -v error="$1" -v address="$2" '/planted/ && $0 ~ error && $0 ~ address {n++} END {exit !n}'; }
found 'Invalid read' 'bytes after a block'; check $? "the fault that is planted is found: a read beside a block"
found 'Invalid read' "bytes inside a block.*free'd"; check $? "the fault that is planted is found: a read after a block was freed"
found 'Invalid free' "bytes inside a block.*free'd"; check $? "the fault that is planted is found: a block that is freed twice"

echo "the emulator alone: ${ALONE[*]}"
LARDER_SUT=ets emulator alone "${ALONE[@]}"
check $? "the emulator alone, with $(count alone) errors of its own"

[ "$#" -gt 0 ] || set -- "${LIBRARY[@]}"
echo "the library: $*"
emulator library "$@"
check $? "the tests of the library"
found=$(new_errors alone library | awk -v RS= 'END {print NR}')
new_errors alone library | awk 'NR <= 300'
[ "$found" = 0 ]
check $? "what memcheck says of them"
echo "memcheck: $found errors that the emulator alone has not, $(sed -n 's/^\([0-9]* tests\), 0 of.*/\1/p' "$PLACE/library.out")"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
