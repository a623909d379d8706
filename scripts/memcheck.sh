#!/bin/bash
# The native library in a real emulator under valgrind's memcheck: what is read without having been written, or after it was freed, and what is lost.
#
#   scripts/memcheck.sh     LARDER_ONLY=SUITE,...: other suites than the default
#
# The emulator is not built for valgrind, and what memcheck says of it alone is of no use here: only errors with a frame of the library in their stacks count. Of
# those, scripts/valgrind.supp says which don't, and why. The library is built with the system's allocator, whose blocks memcheck knows.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/common.sh
make=${MAKE:-make}
home=$PWD/_build/memcheck
target=${CARGO_TARGET_DIR:-$PWD/target}/memcheck
"$make" --no-print-directory -s beams test-beams
RUSTFLAGS="${RUSTFLAGS:-} --cfg larder_sanitize" cargo build --quiet --locked -p larder-nif --target-dir "$target"
rm -rf "$home"
mkdir -p "$home/larder/priv"
ln -s "$PWD/_build/larder/ebin" "$home/larder/ebin"
cp "$target/debug/liblarder_nif.so" "$home/larder/priv/larder_nif.so"
ROOTDIR=$(erl -noinput -eval 'io:put_chars(code:root_dir()), halt().')
BINDIR=$(dirname "$(find "$ROOTDIR"/erts-*/bin -name beam.smp | sort | tail -n 1)")
export ROOTDIR BINDIR EMU=beam PROGNAME=erl
export LARDER_SEED=${LARDER_SEED:-2026,11,21} LARDER_ONLY=${LARDER_ONLY:-larder_smoke}
status=0
valgrind --quiet --trace-children=yes --trace-children-skip='*/erl_child_setup,*/inet_gethost,*/sh' --smc-check=all-non-file --fair-sched=yes \
  --error-limit=no --num-callers=40 --leak-check=full --show-leak-kinds=definite --suppressions=scripts/valgrind.supp \
  --xml=yes --xml-file="$home/%p.xml" \
  "$BINDIR/erlexec" -noinput +S 2:2 +SDio 1 +P 1000000 -pa "$home/larder/ebin" _build/tests -s larder_test_runner main || status=$?
# An error is ours where a frame is: its stack, or the one that says where the block came from.
cat "$home"/*.xml | awk -v RS='</error>' -v out="$home/errors.xml" '
  /<error>/ && /larder_nif\.so/ {n++; sub(/^.*<error>/, "<error>"); print $0 "</error>" > out}
  END {printf "memcheck: %d errors with a frame of the library\n", n; exit n > 0}' || {
  status=1
  sed -n 's/.*<\(kind\|what\|text\|fn\|file\|line\)>\(.*\)<.*/\2/p' "$home/errors.xml" | head -n 200
}
exit "$status"
