#!/bin/bash
# `make bench-instructions`: instructions per call of many operations, from Rust and on a running
# emulator, counted by callgrind and compared with the recorded ones. An operation that takes over
# 5 % more instructions than recorded fails. Times differ from run to run; these counts hardly do.
#
#   scripts/instructions.sh          counts and compares; the last line is `N passed, M failed`
#   scripts/instructions.sh record   counts, writes crates/larder-bench/instructions/recorded.csv
#
# From Rust, crates/larder-bench/instructions/src/main.rs runs the operations; what is counted is
# all within its function `counted`. On the emulator, erlang/bench/larder_bench_instructions.erl
# runs them; what is counted is all within the native functions: neither the code that the
# emulator's compiler makes, nor its garbage collector, nor what other threads do. Each operation is
# done on several tables, and each table is one dump of callgrind. The count is the mean per call.
# Counts repeat: addresses and the environment are the same each time, and so are the seeds of
# hashes, the ends of time slices and what Larder's threads do, which is nothing
# (instructions/steady.c).
set -uo pipefail
cd "$(dirname "$0")/.."
. scripts/common.sh

MAKE=${MAKE:-make}
CARGO=${CARGO:-cargo}
TARGET=${CARGO_TARGET_DIR:-$PWD/target}
PLACE=$PWD/_build/instructions
RECORDED=crates/larder-bench/instructions/recorded.csv
NOW=$PLACE/counted.csv
# Percent.
readonly ALLOWED=5
have valgrind || die "valgrind is needed (apt-get install valgrind)"

# The library is built without its profile: with one, each change of a function that the profile
# has would show as a rise until it is recorded again.
build() {
  rm -rf "$PLACE" && mkdir -p "$PLACE/larder" &&
    LARDER_PROFILE=off "$MAKE" --no-print-directory -s nif bench-beams QUIET=--quiet NIF="$PLACE/larder/priv/larder_nif.so" &&
    cp -r _build/larder/ebin "$PLACE/larder/" &&
    "$CARGO" build --quiet --locked --release -p larder-instructions --target-dir "$TARGET" &&
    shared callgrind_marks -I"$(otp 'code:root_dir()')/usr/include" && shared steady
}

# shared NAME OPTION...: a library of the bench's own.
shared() {
  local name=$1; shift
  cc -O1 -Wall -Wextra -shared -fPIC "$@" -o "$PLACE/$name.so" "${RECORDED%/*}/$name.c"
}

otp() { erl -noinput -boot start_clean -eval "io:put_chars($1), halt()."; }

# callgrind VARIABLE=VALUE... OPTION... PROGRAM...
callgrind() {
  local variables=()
  while [[ $1 = *=* && $1 != -* ]]; do variables+=("$1"); shift; done
  # A space would end the name of what is loaded before: from here, it has none.
  env -i PATH="$PATH" LD_PRELOAD="${PLACE#"$PWD/"}/steady.so" "${variables[@]}" \
    timeout --kill-after=20 600 valgrind --tool=callgrind --quiet --fair-sched=yes --combine-dumps=yes --child-silent-after-fork=yes "$@"
}

# Dumps that are combined in one file have a line `desc: Trigger: ...` and one `totals: N` each.
from_rust() {
  callgrind --callgrind-out-file="$PLACE/rust.out" \
    --toggle-collect='instructions::counted' --dump-after='instructions::counted' \
    "$TARGET/release/instructions" >"$PLACE/rust.txt" || return 1
  awk '/^desc: Trigger: --dump-after/ {wanted = 1} /^totals: / && wanted {print $2; wanted = 0}' "$PLACE/rust.out" >"$PLACE/rust.totals"
  [ "$(wc -l <"$PLACE/rust.totals")" = "$(wc -l <"$PLACE/rust.txt")" ] || { say "callgrind has lost dumps of the program"; return 1; }
  paste -d' ' "$PLACE/rust.totals" "$PLACE/rust.txt" | means rust
}

from_erlang() {
  local root bin arguments
  root=$(otp 'code:root_dir()')
  mapfile -t arguments < <(erl -emu_args_exit +S 1:1 +SDcpu 1:1 +SDio 1 +A 1 +sbwt none +sbwtdcpu none +sbwtdio none \
    -noinput -pa "$PLACE/larder/ebin" _build/bench -s larder_bench_instructions main)
  bin=$(dirname "$(find "$root"/erts-*/bin -name beam.smp | sort | tail -n 1)")
  # The emulator writes code as it goes.
  callgrind ROOTDIR="$root" BINDIR="$bin" EMU=beam PROGNAME=erl HOME="$HOME" \
    ERL_CRASH_DUMP_SECONDS=0 LARDER_BENCH_MARKS="$PLACE/callgrind_marks" --callgrind-out-file="$PLACE/erlang.out" \
    --smc-check=all --instr-atstart=no --toggle-collect='larder_nif::native::*' \
    "$bin/beam.smp" "${arguments[@]}" >&2 || return 1
  awk '/^desc: Trigger: Client Request: / {sub(/^desc: Trigger: Client Request: /, ""); said = $0}
       /^totals: / && said != "" {print $2, said; said = ""}' "$PLACE/erlang.out" | means emulator
}

# Lines `INSTRUCTIONS CALLS OPERATION`, several for an operation, become one each in the CSV.
means() {
  awk -v through="$1" '
    {n = $1; calls = $2; $1 = $2 = ""; name = substr($0, 3)
     if (!(name in all)) order[++many] = name
     all[name] += n; of[name] += calls}
    END {for (i = 1; i <= many; i++) printf "%s,\"%s\",%.0f\n", through, order[i], all[order[i]] / of[order[i]]
         exit many == 0}'
}

facts() {
  echo "# $(valgrind --version)"
  echo "# $(rustc --version)"
  echo "# OTP $(otp 'erlang:system_info(otp_release)'), erts $(otp 'erlang:system_info(version)')"
  echo "# $(ldd --version | head -n 1)"
  echo "# processor: $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)"
}

count() {
  { facts && echo "through,operation,instructions" && from_rust && from_erlang; } >"$NOW.new" && mv -f "$NOW.new" "$NOW"
}

# compare RECORDED COUNTED: a line for each operation; fails if one takes more, or is missing on
# either side.
compare() {
  awk -v allowed="$ALLOWED" -v csv='^(rust|emulator),' '
    $0 !~ csv {next}
    {name = $0; sub(/,[0-9]+$/, "", name); value = $0; sub(/.*,/, "", value); sub(/,"/, ": ", name); sub(/"$/, "", name)}
    FILENAME == ARGV[1] {recorded[name] = value; next}
    {seen[name]; n++}
    !(name in recorded) {printf "FAILED  %-75s %9d  is not recorded\n", name, value; failed++; next}
    value <= 0 {printf "FAILED  %-75s %9d  nothing was counted\n", name, value; failed++; next}
    {change = 100 * (value / recorded[name] - 1); word = change > allowed ? "FAILED" : change < -allowed ? "less" : "ok"
     failed += change > allowed; less += change < -allowed
     printf "%-7s %-75s %9d  recorded %9d  %+.1f %%\n", word, name, value, recorded[name], change}
    END {for (name in recorded) if (!(name in seen)) {printf "FAILED  %s: recorded, and not counted\n", name; failed++; n++}
         if (less) print less " operations take over " allowed " % less than recorded: record them, so that the gate holds them there."
         printf "%d passed, %d failed\n", n - failed, failed
         exit failed > 0 || n == 0}' "$1" "$2"
}

# smaller ONE OTHER: the first, with the lesser of both counts of each operation.
smaller() {
  awk -v csv='^(rust|emulator),' '
    $0 !~ csv {if (FILENAME == ARGV[1]) lines[++n] = $0; next}
    {name = $0; sub(/,[0-9]+$/, "", name); value = $0; sub(/.*,/, "", value)}
    FILENAME == ARGV[1] {lines[++n] = name; least[name] = value + 0; next}
    name in least && value + 0 < least[name] {least[name] = value + 0}
    END {for (i = 1; i <= n; i++) print (lines[i] in least) ? lines[i] "," least[lines[i]] : lines[i]}' "$1" "$2"
}

# Where blocks of memory come to lie depends a little on the emulator's other threads:
# what fails is counted again, twice at most, and the least of each counts.
again() {
  local try
  for try in 1 2; do
    compare "$RECORDED" "$NOW" >"$PLACE/compared.txt" && return
    say "counting again, because of:"
    grep '^FAILED' "$PLACE/compared.txt" >&2
    cp "$NOW" "$PLACE/before.csv"
    count || return 1
    smaller "$NOW" "$PLACE/before.csv" >"$PLACE/least.csv" && mv -f "$PLACE/least.csv" "$NOW"
  done
}

# The gate is tried: with one recorded figure a tenth lower, that operation and no other has to
# fail.
gate_holds() {
  local name='emulator: set of small integers: lookup' said
  awk -F, -v OFS=, '/^emulator,"set of small integers: lookup",/ {$NF = int($NF / 1.1)} {print}' "$NOW" >"$PLACE/planted.csv"
  said=$(compare "$PLACE/planted.csv" "$NOW") && { say "a rise of a tenth that was planted is not found"; return 1; }
  [ "$(grep -c '^FAILED' <<<"$said")" = 1 ] && grep -q "^FAILED  $name " <<<"$said" ||
    { say "a rise that was planted is taken for another"; return 1; }
}

build || die "the benches of instructions do not build"
start=$SECONDS
count || die "instructions could not be counted"
say "counted in $((SECONDS - start)) s"
case ${1:-} in
  record)
    mkdir -p "${RECORDED%/*}"
    cp "$NOW" "$RECORDED"
    say "recorded: $RECORDED" ;;
  '')
    gate_holds || { echo "0 passed, 1 failed"; exit 1; }
    again || die "instructions could not be counted"
    compare "$RECORDED" "$NOW" && exit
    if ! diff <(grep '^#' "$RECORDED") <(grep '^#' "$NOW") >/dev/null; then
      echo "recorded with: $(grep '^#' "$RECORDED" | sed 's/^# //' | paste -sd ';')"
      echo "counted with:  $(grep '^#' "$NOW" | sed 's/^# //' | paste -sd ';')"
    fi
    echo "Where a rise has a reason, record it: make bench-instructions RECORD=1, and say the reason in the commit."
    compare "$RECORDED" "$NOW" | tail -n 1
    exit 1 ;;
  *) die "instructions.sh: record, or nothing" ;;
esac
