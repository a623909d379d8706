#!/usr/bin/env bash
# erlc.sh OUTDIR FLAGS... FILES...: compiles Erlang modules that are newer than their beams, parse
# transforms and behaviours first (a module may be compiled with another one of the same list).
set -euo pipefail
cd "$(dirname "$0")/.."
out=$1; shift

# More flags may come from the environment (the checks add +warnings_as_errors).
flags=(${EXTRA_FLAGS:-}) first=() rest=() newest=''
for arg in "$@"; do
  case $arg in
    *.erl)
      if grep -qE '^(-callback|parse_transform\()' "$arg"; then first+=("$arg"); else rest+=("$arg"); fi ;;
    *) flags+=("$arg") ;;
  esac
done

# A changed header may reach any module: then all are stale.
newest=$(find erlang -name '*.hrl' -newer "$out/.compiled" 2>/dev/null | head -1 || true)
[ -e "$out/.compiled" ] || newest=all

stale() {
  local src beam
  for src in "$@"; do
    beam=$out/$(basename "$src" .erl).beam
    if [ -n "$newest" ] || [ ! -e "$beam" ] || [ "$src" -nt "$beam" ]; then printf '%s\n' "$src"; fi
  done
}

# compiled FILES...: compiles those that are stale, if there are any. The bash of macOS, 3.2, has no
# command that reads lines into an array.
compiled() {
  local src todo=()
  while IFS= read -r src; do todo+=("$src"); done < <(stale "$@")
  [ ${#todo[@]} -gt 0 ] || return 0
  erlc "${flags[@]}" -pa "$out" -o "$out" "${todo[@]}" >&2
  # A parse transform that changed makes every module stale, too.
  newest=all
}

compiled ${first[@]+"${first[@]}"}
compiled ${rest[@]+"${rest[@]}"}
touch "$out/.compiled"
