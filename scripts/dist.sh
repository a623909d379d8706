#!/bin/bash
# What is published, into dist/:
#
#   larder-VERSION.tar                              the package for Hex, for rebar3 and mix
#   larder-VERSION-nif-2.15-PLATFORM.tar.gz         a prebuilt native library, stripped
#   SHA256SUMS                                      of all of these
#
#   dist.sh                           everything that can be made here, and says what can't
#   dist.sh native PLATFORM...        the archives of these platforms; all must be made
#   dist.sh host                      all of it, with one library: that of `make build`, stripped,
#                                     as if it had been built for this platform (make test)
#   dist.sh package                   the package: it lists the archives that are in dist/
#   dist.sh publishable [VERSION]     whether it may be published, as that version
#
# Libraries for Linux are built with the C compiler and linker of Zig, which comes from PyPI, and
# Rust's standard library for the platform, from rustup: so they need nothing newer than glibc 2.17,
# or any musl, whatever this machine has. Those for macOS are built on macOS.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/common.sh

readonly ZIG_VERSION=0.15.2 GLIBC=2.17
readonly LINUX='x86_64-linux-gnu aarch64-linux-gnu x86_64-linux-musl aarch64-linux-musl'
readonly MACOS='x86_64-apple-darwin aarch64-apple-darwin'
# Larger than this nothing is published.
readonly PACKAGE_LIMIT=3000000 ARCHIVE_LIMIT=4000000
# The crates that the native library is made of, those first that others name.
readonly CRATES='larder-term larder-index larder-judy larder-studies larder-matchspec larder-derive larder larder-nif'
readonly SCRIPTS='app_file.escript common.sh documentation.escript erlc.sh larder_move msrv.sh native.escript nif.sh setup.sh'

readonly VERSION=$(sed -n 's/.*{vsn, *"\([^"]*\)".*/\1/p' erlang/larder.app.src)
# The version of the native interface that the library asks for.
readonly NIF=2.$(sed -n 's/^ *minor: \([0-9]*\),.*/\1/p' crates/larder-nif/src/lib.rs)
readonly TARGET=${CARGO_TARGET_DIR:-$PWD/target}
readonly DIST=${DIST:-$PWD/dist}
readonly STAGE=$PWD/_build/dist/larder-$VERSION

main() {
  mkdir -p "$DIST" _build/dist
  case ${1:-all} in
    all) all ;;
    native)
      shift
      [ $# -gt 0 ] || die "dist.sh native: which platforms? ($LINUX $MACOS)"
      local platform
      for platform in "$@"; do native "$platform"; done ;;
    host) host ;;
    package) package ;;
    publishable) publishable "${2:-$VERSION}" ;;
    *) die "dist.sh: unknown command '$1' (native, host, package or publishable)" ;;
  esac
}

# A platform that can't be had is left out, and the last lines say so.
all() {
  local platform lacks left=''
  begin
  for platform in $LINUX $MACOS; do
    if lacks=$(lacks "$platform"); [ -z "$lacks" ]; then native "$platform"
    else left+="  $platform: $lacks"$'\n'
    fi
  done
  complete
  if [ -n "$left" ]; then
    say "larder: LEFT OUT, for lack of a toolchain; .github/workflows/release.yml builds all:"
    say "${left%$'\n'}"
  fi
}

# What this platform takes is in dist/, without a build.
host() {
  local platform library
  platform=$(scripts/native.escript platform) || die "native.escript knows no name of this platform"
  library=$(mktemp -d)/larder_nif.so
  begin
  strip -o "$library" priv/larder_nif.so || die "priv/larder_nif.so is not there: make build comes first"
  archive "$platform" "$library"
  rm -r "${library%/*}"
  complete
}

begin() {
  [ -z "$(git status --porcelain 2>/dev/null)" ] || say "larder: with changes that are not committed"
  rm -f "$DIST"/larder-* "$DIST/SHA256SUMS"
}

complete() {
  package
  (cd "$DIST" && ls -l larder-* | awk '{printf "dist/%s  %s bytes\n", $NF, $5}')
  publishable "$VERSION" || true
}

# --- native libraries -----------------------------------------------------------------------------

triple() {
  case $1 in
    x86_64-linux-*) echo "x86_64-unknown-${1#*-}" ;;
    aarch64-linux-*) echo "aarch64-unknown-${1#*-}" ;;
    *) echo "$1" ;;
  esac
}

# Prints what is missing to build for a platform, or nothing.
lacks() {
  case " $LINUX $MACOS " in *" $1 "*) ;; *) echo "no platform of ours ($LINUX $MACOS)"; return ;; esac
  have cargo || { echo "cargo is not here"; return; }
  case $1 in *darwin) [ "$(uname -s)" = Darwin ] || { echo "is built on macOS only"; return; } ;; esac
  have_std "$(triple "$1")" || { echo "no standard library of Rust for $(triple "$1"), nor by rustup target add"; return; }
  case $1 in *linux*) zig >/dev/null || echo "no Zig $ZIG_VERSION, nor by pip install ziglang" ;; esac
}

have_std() {
  compgen -G "$(rustc --print target-libdir --target "$1")/libstd-*" >/dev/null && return
  have rustup || return 1
  say "larder: rustup target add $1"
  rustup target add "$1" >_build/dist/rustup.log 2>&1
}

# Prints the path of Zig, which is the one of that version.
zig() {
  local zig=$PWD/_build/zig-$ZIG_VERSION/ziglang/zig
  if [ ! -x "$zig" ]; then
    have python3 || return 1
    say "larder: pip install ziglang==$ZIG_VERSION, into _build"
    python3 -m pip install --quiet --disable-pip-version-check --target "_build/zig-$ZIG_VERSION" \
      "ziglang==$ZIG_VERSION" >_build/dist/pip.log 2>&1 || return 1
  fi
  echo "$zig"
}

# What is compiled for the oldest processors of a platform runs on all: nothing of this machine's
# processor, configuration or folders gets into a library.
native() {
  local platform=$1 triple lacks cpu flags flag library profile
  lacks=$(lacks "$platform")
  [ -z "$lacks" ] || die "$platform can't be built here: $lacks"
  triple=$(triple "$platform")
  case $platform in
    x86_64-*) cpu=x86-64 ;;
    aarch64-apple-*) cpu=apple-m1 ;;
    *) cpu=generic ;;
  esac
  flags=("-Ctarget-cpu=$cpu" "--remap-path-prefix=$PWD=larder"
    "--remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=cargo")
  case $platform in *musl) flags+=("-Ctarget-feature=-crt-static") ;; esac
  # Not as settings of the profile `release`: names in the recorded profile depend on those.
  flags+=("-Cdebuginfo=0" "-Cstrip=symbols")
  profile=$(scripts/nif.sh flags "$triple")
  while IFS= read -r flag; do [ -z "$flag" ] || flags+=("$flag"); done <<<"$profile"
  say "larder: building for $platform${profile:+, by the recorded profile}"
  (
    case $platform in *linux*) by_zig "$platform" "$triple" ;; esac
    export CARGO_ENCODED_RUSTFLAGS; CARGO_ENCODED_RUSTFLAGS=$(IFS=$'\x1f'; echo "${flags[*]}")
    cargo build --quiet --locked --release -p larder-nif --target "$triple" --target-dir "$TARGET"
  )
  library=$TARGET/$triple/release/liblarder_nif
  if [ -f "$library.dylib" ]; then library+=.dylib; else library+=.so; fi
  case $platform in *linux*) inspect "$platform" "$library" ;; esac
  archive "$platform" "$library"
}

# Zig is the C compiler and the linker of cargo for a platform.
by_zig() {
  local platform=$1 triple=$2 cc=$PWD/_build/dist/cc-$1 name
  case $platform in *gnu) platform+=.$GLIBC ;; esac
  # Zig names platforms otherwise than the crate cc does in --target.
  cat >"$cc" <<CC
#!/bin/bash
args=()
for arg in "\$@"; do case \$arg in --target=*) ;; *) args+=("\$arg") ;; esac; done
exec '$(zig)' cc -target $platform "\${args[@]}"
CC
  printf '#!/bin/bash\nexec "%s" ar "$@"\n' "$(zig)" >"$cc-ar"
  chmod +x "$cc" "$cc-ar"
  name=${triple//-/_}
  export "CC_$name=$cc" "AR_$name=$cc-ar" "CARGO_TARGET_$(echo "$name" | tr a-z A-Z)_LINKER=$cc"
}

# What a library for Linux asks of its system is no more than was meant.
inspect() {
  local platform=$1 library=$2 needed newest
  have readelf || die "readelf is not here (Debian: binutils)"
  needed=$(LC_ALL=C readelf -dW "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\].*/\1/p' | tr '\n' ' ')
  newest=$(LC_ALL=C readelf -VW "$library" | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -1) || true
  say "larder: $platform needs: $needed$newest"
  case $platform in
    *gnu) [ "$(printf '%s\n' "$newest" "GLIBC_$GLIBC" | sort -V | tail -1)" = "GLIBC_$GLIBC" ] ||
            die "the library for $platform needs $newest, not $GLIBC at most" ;;
    *musl) [ -z "$newest" ] && [ "${needed% }" = libc.so ] || die "the library for $platform needs $needed$newest" ;;
  esac
  LC_ALL=C readelf --dyn-syms -W "$library" | grep ' nif_init$' >/dev/null || die "$library has no nif_init"
  ! LC_ALL=C readelf -SW "$library" | grep '\.debug_\|\.symtab' >/dev/null || die "$library is not stripped"
}

# The same library gives the same bytes.
archive() {
  local platform=$1 library=$2 name=larder-$VERSION-nif-$NIF-$1.tar.gz folder size
  [ -f "$library" ] || die "$library is not there"
  folder=$(mktemp -d)
  cp "$library" "$folder/larder_nif.so" && cp LICENSE "$folder/"
  touch -t 200001010000 "$folder"/*
  if tar --version | grep -q GNU; then
    tar -C "$folder" --owner=0 --group=0 --numeric-owner --mode=644 -cf - LICENSE larder_nif.so
  else
    tar -C "$folder" --uid 0 --gid 0 -cf - LICENSE larder_nif.so
  fi | gzip -9n >"$DIST/$name"
  rm -r "$folder"
  size=$(wc -c <"$DIST/$name")
  [ "$size" -lt $ARCHIVE_LIMIT ] || die "$name has $size bytes, which is too much ($ARCHIVE_LIMIT)"
}

# --- the package ----------------------------------------------------------------------------------

sums() { if have sha256sum; then sha256sum "$@"; else shasum -a 256 "$@"; fi; }

package() {
  local archives=() size
  mapfile -t archives < <(cd "$DIST" && compgen -G "larder-$VERSION-nif-*.tar.gz" | sort)
  [ ${#archives[@]} -gt 0 ] || die "no archive of a native library in $DIST: dist.sh native comes first"
  stage
  (cd "$DIST" && sums "${archives[@]}") >"$STAGE/prebuilt.sha256"
  scripts/hex_package.escript "$STAGE" "$DIST/larder-$VERSION.tar" >/dev/null
  size=$(wc -c <"$DIST/larder-$VERSION.tar")
  [ "$size" -lt $PACKAGE_LIMIT ] || die "larder-$VERSION.tar has $size bytes, which is too much ($PACKAGE_LIMIT)"
  (cd "$DIST" && sums "larder-$VERSION.tar" "${archives[@]}" >SHA256SUMS)
}

# The folder of the package: what a program that depends on Larder compiles, without tests.
stage() {
  local crate manifest
  rm -rf "$STAGE" && mkdir -p "$STAGE"
  git ls-files -co --exclude-standard -z -- LICENSE README.md CHANGELOG.md Makefile mix.exs rebar.config \
    Cargo.toml Cargo.lock erlang/larder.app.src erlang/src lib $(printf 'scripts/%s ' $SCRIPTS) \
    $(printf 'crates/%s/Cargo.toml crates/%s/src ' $(for crate in $CRATES; do echo "$crate $crate"; done)) \
    crates/larder-nif/build.rs crates/larder-nif/profile |
    tar --null -T - -cf - | tar -xf - -C "$STAGE"
  # The workspace has these crates alone, which have no tests.
  sed -i.whole "s|^members = .*|members = [$(printf '"crates/%s", ' $CRATES)]|" "$STAGE/Cargo.toml"
  for manifest in "$STAGE"/crates/*/Cargo.toml; do
    awk '/^\[/ { test = /dev-dependencies\]$|^\[\[(test|bench|example)\]\]/ } !test' "$manifest" >"$manifest.new"
    mv "$manifest.new" "$manifest"
  done
  rm "$STAGE/Cargo.toml.whole"
  # cargo warns of settings for crates that aren't there.
  awk '/^\[/ { absent = /^\[profile\.dev\.package\]/ } !absent' "$STAGE/Cargo.toml" >"$STAGE/Cargo.toml.new"
  mv "$STAGE/Cargo.toml.new" "$STAGE/Cargo.toml"
  # Its lock has fewer crates than the tree's, and the same versions of them.
  (cd "$STAGE" && { cargo update --workspace --offline --quiet || cargo update --workspace --quiet; })
  ! grep -vxFf Cargo.lock <(grep '^checksum' "$STAGE/Cargo.lock") || die "the package's Cargo.lock has other crates than the tree's"
}

# The address of the project is written in one place, before the first publication.
publishable() {
  local known
  [ "$1" = "$VERSION" ] || die "this is version $VERSION, not $1 (erlang/larder.app.src)"
  known=$(grep -c "{\"Repository\", *\"https://" erlang/larder.app.src) || true
  if [ "$known" = 0 ]; then
    say "larder: NOT TO BE PUBLISHED YET: erlang/larder.app.src links to no repository, so the" \
      "package wouldn't know where its prebuilt libraries are. Set links there."
    return 1
  fi
}

main "$@"
