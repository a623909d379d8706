#!/usr/bin/env bash
# The oldest Rust that will do is written in one place, `rust-version` of Cargo.toml.
#
#   msrv.sh           prints it
#   msrv.sh pages     the pages that name a version name that one, and this toolchain is as new
#   msrv.sh check     the libraries compile with it, where rustup has it
#   msrv.sh install   gets it by rustup, and checks
#
# Clippy knows it, too: a function of the standard library that is newer fails `make lint`.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/common.sh

readonly LEAST=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
readonly TOOLCHAIN=$LEAST.0

pages() {
  local other ours
  other=$(grep -noE '(cargo|Rust) 1\.[0-9]+' -- *.md docs/*.md crates/*/README.md | grep -v " ${LEAST//./\\.}\$") || true
  [ -z "$other" ] || die "Cargo.toml asks for Rust $LEAST:"$'\n'"$other"
  ours=$(rustc --version | awk '{print $2}')
  [ "$(printf '%s\n' "$LEAST" "$ours" | sort -V | head -1)" = "$LEAST" ] || die "rustc $ours is older than $LEAST"
}

check() {
  cargo "+$TOOLCHAIN" --version >/dev/null 2>&1 || die "no Rust $LEAST here: scripts/msrv.sh install gets it"
  cargo "+$TOOLCHAIN" check --quiet --locked -p larder -p larder-nif -p larder-capi -p larder-jni \
    --target-dir "${CARGO_TARGET_DIR:-target}/msrv"
}

case ${1:-} in
  '') echo "$LEAST" ;;
  pages) pages ;;
  check) check ;;
  install) rustup toolchain install "$TOOLCHAIN" --profile minimal --no-self-update && check ;;
  *) die "msrv.sh: pages, check or install" ;;
esac
