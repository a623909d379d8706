#!/bin/bash
# The crates for crates.io: `larder`, and those that it is made of. What `larder` needs comes first.
#
#   publish.sh           packs each and builds what was packed, as `cargo publish --dry-run` does
#   publish.sh pack      packs each and looks into the packages, which takes seconds and no network
#   publish.sh publish   publishes them, which takes cargo 1.90
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/common.sh

# The order is that of publication. All others say `publish = false`.
readonly CRATES='larder-term larder-index larder-judy larder-studies larder-matchspec larder-derive larder'
readonly VERSION=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
readonly TARGET=${CARGO_TARGET_DIR:-$PWD/target}
# Larger than this crates.io takes none.
readonly LIMIT=10000000

packages() { printf -- '-p %s ' $CRATES; }

# cargo says of each test that it isn't packed.
cargo_says() { "$@" --target-dir "$TARGET" $(packages) 2> >(grep -v '^warning: ignoring \(test\|example\) ' >&2); }

pack() {
  local crate
  cargo_says cargo package --quiet --offline --allow-dirty --no-verify
  for crate in $CRATES; do inspect "$crate" "$TARGET/package/$crate-$VERSION.crate"; done
  everything_or_nothing
}

# What people see of a crate on crates.io, and its licence, are in it; tests, which need more than
# it has, are not.
inspect() {
  local crate=$1 file=$2 folder=$1-$VERSION files manifest field size
  files=$(tar -tzf "$file")
  manifest=$(tar -xzOf "$file" "$folder/Cargo.toml")
  for field in description license keywords categories readme rust-version; do
    grep -q "^$field = " <<<"$manifest" || die "$crate: its Cargo.toml has no $field"
  done
  for field in LICENSE README.md src/lib.rs; do
    grep -qx "$folder/$field" <<<"$files" || die "$crate: $field is not in the package"
  done
  ! grep "^$folder/\(tests\|examples\)/" <<<"$files" || die "$crate: these are not to be packed"
  ! grep -q '^\[.*dependencies\.larder-testing\]' <<<"$manifest" || die "$crate: needs larder-testing, which is not published"
  size=$(wc -c <"$file")
  [ "$size" -lt $LIMIT ] || die "$crate: $size bytes, which is too much ($LIMIT)"
  printf '%-18s %7d bytes, %3d files\n' "$crate" "$size" "$(wc -l <<<"$files")"
}

# Each crate of the workspace is published or says that it isn't.
everything_or_nothing() {
  local manifest name
  while IFS= read -r manifest; do
    name=$(sed -n '0,/^name = /s/^name = "\(.*\)"/\1/p' "$manifest")
    case " $CRATES " in
      *" $name "*) ! grep -q '^publish = false' "$manifest" || die "$name: is to be published, and says that it isn't" ;;
      *) grep -q '^publish = false' "$manifest" || die "$name: is neither in scripts/publish.sh nor 'publish = false'" ;;
    esac
  done < <(git ls-files -- '*Cargo.toml' | xargs grep -l '^\[package\]')
}

# The address of the project is written in one place, before the first publication.
has_address() { grep -q '^repository = "https://' Cargo.toml; }

case ${1:-try} in
  pack) pack ;;
  try)
    pack
    cargo_says cargo publish --dry-run --locked --allow-dirty
    has_address || say "larder: NOT TO BE PUBLISHED YET: Cargo.toml names no repository ([workspace.package])" ;;
  publish)
    pack
    has_address || die "Cargo.toml names no repository: set it in [workspace.package], and in each crate repository.workspace = true"
    [ -z "$(git status --porcelain)" ] || die "there are changes that are not committed"
    cargo_says cargo publish --locked ;;
  *) die "publish.sh: unknown command '$1' (pack or publish)" ;;
esac
