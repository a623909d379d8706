#!/bin/bash
# Every check that needs no running: formatting, clippy, the compiler's warnings, xref, Dialyzer,
# and the rules of the tree. Goes through all of them, and fails if any failed. Before the last
# line, `N passed, N failed`, figures say how readable the tree is (scripts/readability.sh).
set -uo pipefail
cd "$(dirname "$0")/.."
. scripts/common.sh

TARGET=${CARGO_TARGET_DIR:-$PWD/target}
EBIN=_build/larder/ebin
passed=0 failed=0

# check NAME COMMAND...: runs it, shows what it said only if it failed.
check() {
  local name=$1 start=$SECONDS out; shift
  if out=$("$@" 2>&1 </dev/null); then
    passed=$((passed + 1)); printf 'ok      %-22s %4d s\n' "$name" $((SECONDS - start))
  else
    failed=$((failed + 1)); printf 'FAILED  %-22s %4d s\n%s\n' "$name" $((SECONDS - start)) "$out"
  fi
}

fmt() { cargo fmt --all -- --check; }

# With what the bench compares with, which is built for the bench alone. libJudy needn't be
# installed: nothing is linked.
clippy() {
  cargo clippy --quiet --locked --workspace --all-targets \
    --features larder-bench/peers,larder-bench/judy,larder-judy/libjudy --target-dir "$TARGET" \
    -- -D warnings
}

# The engine without features, and with one each; and the fuzz targets with theirs.
clippy_features() {
  local feature
  for feature in '' etf files matchspec mimalloc serde studies; do
    cargo clippy --quiet --locked -p larder --features "$feature" --lib --target-dir "$TARGET" \
      -- -D warnings || return
  done
  # Alone, so that no other crate turns features on: scripts/fuzz.sh builds it so.
  cargo clippy --quiet --locked -p larder-fuzz --lib --target-dir "$TARGET" -- -D warnings
}

# What a Rust program gets that depends on the crate `larder`, without features.
dependencies() {
  local crates
  crates=$(cargo tree --locked -p larder -e normal --prefix none | sed 's/ (.*//' | sort -u) || return
  [ "$(wc -l <<<"$crates")" -lt 25 ] || { echo "larder and what it depends on are 25 crates or more:"; echo "$crates"; return 1; }
  crates=$(cargo tree --locked -p larder -e normal --target all --all-features) || return
  ! grep -w 'shuttle' <<<"$crates" || { echo "the model checker is for tests alone"; return 1; }
}

# All Erlang sources once more, with every warning an error.
erlang_warnings() {
  local out dir; out=$(mktemp -d)
  for dir in erlang/src erlang/demo erlang/bench erlang/test examples/*; do
    compgen -G "$dir/*.erl" >/dev/null || continue
    EXTRA_FLAGS='+warnings_as_errors' scripts/erlc.sh "$out" +debug_info -I erlang/include -I erlang/test -pa "$EBIN" \
      $dir/*.erl || { rm -rf "$out"; return 1; }
    rm -f "$out/.compiled"
  done
  rm -rf "$out"
}

# No call of a function that isn't there, and no function that nobody calls. What larder_rebar calls
# is rebar3's.
xref() {
  erl -noinput -eval '
    Found = [{Kind, [F || F <- All, Kind =/= undefined orelse element(1, element(1, F)) =/= larder_rebar]}
             || {Kind, All} <- xref:d("'$EBIN'")],
    Bad = [F || {Kind, [_ | _]} = F <- Found, Kind =/= deprecated],
    [io:format("~p~n", [F]) || F <- Bad],
    halt(case Bad of [] -> 0; _ -> 1 end).'
}

# The PLT holds OTP only, so it lives outside the tree and is made once for each release.
dialyzer_check() {
  local cache plt
  cache=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/larder
  mkdir -p "$cache" || return 1
  plt=$cache/otp-$(erl -noinput -eval 'io:format("~s-~s", [erlang:system_info(otp_release), erlang:system_info(version)]), halt().')-base.plt
  if [ ! -s "$plt" ]; then
    dialyzer --build_plt --output_plt "$plt.new" --apps erts kernel stdlib >"$plt.log" 2>&1
    # 2 means warnings about OTP itself, which are not ours.
    [ $? -le 2 ] && [ -s "$plt.new" ] && mv -f "$plt.new" "$plt" || { cat "$plt.log"; return 1; }
  fi
  dialyzer --plt "$plt" -Wunmatched_returns -Werror_handling -Wno_improper_lists "$EBIN" _build/demo _build/bench
}

edoc() { scripts/documentation.escript pages "$(mktemp -d)"; }

rustdoc() { RUSTDOCFLAGS='-D warnings -A rustdoc::private-intra-doc-links' cargo doc --quiet --locked --workspace --no-deps --target-dir "$TARGET"; }

elixir_format() { mix format --check-formatted; }

# Files that nobody can read in one go are split. The C header is made of short ones.
file_lengths() {
  local long
  long=$(git ls-files -co --exclude-standard -- '*.rs' '*.erl' '*.hrl' '*.ex' '*.exs' '*.sh' '*.c' '*.h' \
    ':!crates/larder-capi/include/larder.h' 2>/dev/null |
    xargs -r wc -l 2>/dev/null | awk '$2 != "total" && $1 > 800 {print $2 ": " $1 " lines"}')
  [ -z "$long" ] || { echo "over 800 lines:"; echo "$long"; return 1; }
}

# No file imports one that imports it again, but a parent or child module.
circles() {
  local found
  found=$(scripts/readability.sh circles) ||
    { echo "files that import one another:"; echo "$found"; return 1; }
}

msrv() { scripts/msrv.sh pages; }

scripts_parse() {
  local f
  for f in scripts/*.sh .ci/run; do bash -n "$f" || return 1; done
}

${MAKE:-make} --no-print-directory -s build demo-beams bench-beams || die "the library does not build"
check "scripts" scripts_parse
check "file lengths" file_lengths
check "circles" circles
check "columns" scripts/columns.sh
check "links in pages" scripts/links.sh
check "names in pages" scripts/names.sh
check "labels" scripts/labels.sh
check "oldest Rust" msrv
check "cargo fmt" fmt
check "cargo clippy" clippy
check "clippy, features" clippy_features
check "dependencies" dependencies
check "rustdoc" rustdoc
check "mix format" elixir_format
check "erlc warnings" erlang_warnings
check "xref" xref
check "dialyzer" dialyzer_check
check "edoc" edoc
scripts/readability.sh
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
