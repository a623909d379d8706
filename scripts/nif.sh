#!/usr/bin/env bash
# The native library of the emulator: `make nif` builds it, `make nif-profile` records its profile.
#
#   scripts/nif.sh build TARGET CARGO-OPTION...   builds it, and prints the folder that has it
#   scripts/nif.sh record                         records the profile anew
#   scripts/nif.sh flags TRIPLE                   prints the flags of a build by the profile, one a
#                                                 line, if it serves that target by this compiler
#
# The compiler lays out and inlines code by a *profile*: how often each branch of the library was
# taken while a part of `make bench-wide` ran (profile-guided optimisation). Calls take 7 to 25 %
# less time by it. Names in a profile depend on the compiler and on Cargo.lock, so it serves the
# compiler that recorded it. With another one the library is built without, as it is in debug builds
# and with LARDER_PROFILE=off. Functions that have changed since the recording are compiled without,
# until the profile is recorded again.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/common.sh

CARGO=${CARGO:-cargo}
readonly RECORDED=crates/larder-nif/profile
# What the recording runs: a tenth of the cells of the wide bench, by another seed than the
# published figures, so that nine in ten of those are of other cells.
readonly CELLS='LARDER_BENCH_SHARE=0.1 LARDER_BENCH_SEED=777 LARDER_BENCH_SIZES=10,1000,65536 LARDER_BENCH_RUNS=1'

compiler() { rustc -vV | sed -n -e 's/^rustc //p' -e 's/^host: //p' | paste -s -d ' ' -; }
host() { rustc -vV | sed -n 's/^host: //p'; }

# The profile as a file, named by its checksum, so that cargo sees when it is another one; or
# nothing, if it isn't this compiler's.
profile() {
  local packed=$RECORDED/larder_nif.profdata.gz file
  [ "${LARDER_PROFILE:-on}" != off ] && [ -f "$packed" ] && have gzip &&
    [ "$(compiler)" = "$(cat "$RECORDED/compiler")" ] || return 0
  file=$PWD/_build/profile/$(cksum <"$packed" | cut -d' ' -f1).profdata
  [ -f "$file" ] || { mkdir -p "${file%/*}" && gzip -dc "$packed" >"$file.$$" && mv -f "$file.$$" "$file"; } || return
  echo "$file"
}

# by_profile FILE: adds the flags of a build by this profile to the array `flags`. The blocks of a
# function that never ran while it was recorded are put into a section of their own. So the code
# that runs is dense in the processor's caches, which the library shares with its caller.
by_profile() {
  flags+=("-Cprofile-use=$1" -Cllvm-args=-no-pgo-warn-mismatch
    -Cllvm-args=-enable-split-machine-functions)
}

# built TARGET CARGO-OPTION...: builds, and prints the folder that has the library, as cargo says
# it: a configuration may choose another one. With flags (the array `flags`) it is built for this
# machine and by a --target, so that they are not those of programs that run during the build. In a
# command substitution `set -e` doesn't hold.
built() {
  local target=$1 options=() given said folder; shift
  if [ ${#flags[@]} -gt 0 ]; then
    options=(--target "$(host)")
    # Beside those of the environment. Spaces separate none of ours: a path may have one.
    given=(${RUSTFLAGS:-})
    [ -z "${CARGO_ENCODED_RUSTFLAGS:-}" ] || given=("$CARGO_ENCODED_RUSTFLAGS")
    given+=("${flags[@]}")
    export CARGO_ENCODED_RUSTFLAGS; CARGO_ENCODED_RUSTFLAGS=$(IFS=$'\x1f'; echo "${given[*]}")
  fi
  said=$("$CARGO" build "$@" -p larder-nif ${options[@]+"${options[@]}"} --target-dir "$target" \
    --message-format=json-render-diagnostics) || return
  folder=$(sed -n 's|.*"filenames":\["\([^"]*\)/liblarder_nif\.[a-z]*".*|\1|p' <<<"$said" | tail -n 1)
  [ -n "$folder" ] || die "cargo has built no library that can be loaded for $(host)"
  echo "$folder"
}

build() {
  local target=$1 file flags=(); shift
  # Rust links the C library of musl into all that it builds, and so builds no library to be loaded.
  case $(host) in *musl) flags=(-Ctarget-feature=-crt-static) ;; esac
  case " $* " in *" dev "*) file='' ;; *) file=$(profile) ;; esac
  if [ -n "$file" ]; then
    # Apart from what is built without: the last steps of both write the same files.
    target+=/profiled
    by_profile "$file"
  fi
  built "$target" "$@"
}

record() {
  local place=$PWD/_build/profile tools started=$SECONDS
  tools=$(rustc --print sysroot)/lib/rustlib/$(host)/bin
  [ -x "$tools/llvm-profdata" ] || die "llvm-profdata is not here: rustup component add llvm-tools"
  rm -rf "$place" && mkdir -p "$place/larder/priv" "$RECORDED"
  say "larder: building a library that counts (some minutes)"
  local library flags=("-Cprofile-generate=$place/counts")
  library=$(built "${CARGO_TARGET_DIR:-$PWD/target}/profiling" --quiet --locked --release)
  cp -r _build/larder/ebin "$place/larder/"
  cp "$library/liblarder_nif.so" "$place/larder/priv/larder_nif.so"
  rm -rf "$place/counts"
  say "larder: running cells of the wide bench"
  env $CELLS LARDER_BENCH_OUT="$place/cells" erl -noinput +MIscs 4096 -pa "$place/larder/ebin" _build/demo _build/bench \
    -s larder_bench_wide main >"$place/cells.txt" || die "the bench failed: $place/cells.txt"
  "$tools/llvm-profdata" merge --sparse -o "$place/larder_nif.profdata" "$place"/counts/*.profraw
  gzip -9nc "$place/larder_nif.profdata" >"$RECORDED/larder_nif.profdata.gz"
  compiler >"$RECORDED/compiler"
  say "larder: recorded in $((SECONDS - started)) s: $RECORDED ($(stat -c %s "$RECORDED/larder_nif.profdata.gz") bytes), for $(compiler)"
}

case ${1:-} in
  build) shift; build "$@" ;;
  record) record ;;
  # Names depend on the target, too: it serves the one of the recording.
  flags)
    case "$(compiler)" in *" $2") file=$(profile) ;; *) file='' ;; esac
    [ -z "$file" ] || { by_profile "$file" && printf '%s\n' "${flags[@]}"; }
    ;;
  *) die "nif.sh: build TARGET CARGO-OPTION..., record, or flags TRIPLE" ;;
esac
