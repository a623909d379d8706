# Small helpers for the scripts of this folder; sourced, not run.

# Messages go to stderr: some callers (`make -s ebin`) promise a clean stdout.
say() { printf '%s\n' "$*" >&2; }
die() { say "larder: $*"; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }
# The folder of Mnesia's sources, or nothing.
mnesia_sources() {
  local folder
  for folder in "$(erl -noinput -boot start_clean -eval 'io:put_chars(code:lib_dir()), halt().')"/mnesia-*/src; do
    [ ! -s "$folder/mnesia.erl" ] || printf '%s' "$folder"
  done
}

# Debian's packages that are used without being installed. apt-get downloads them, and checks them.
PACKAGES=$PWD/_build/packages

# package NAME[=VERSION]...: downloads what is not there, and prints the files' names.
package() {
  local spec name version file
  have apt-get || die "the package $1 is Debian's, and apt-get is not here"
  mkdir -p "$PACKAGES"
  for spec in "$@"; do
    name=${spec%%=*} version=${spec#"$name"} version=${version#=}
    file=$PACKAGES/${name}_${version//:/%3a}
    if ! compgen -G "${file}*.deb" >/dev/null; then
      say "larder: downloading $name $version"
      (cd "$PACKAGES" && apt-get download -q "$spec" >apt.log 2>&1) ||
        { cat "$PACKAGES/apt.log" >&2; die "no package $spec to be had: is this Debian 12, and apt-get update done?"; }
    fi
    compgen -G "${file}*.deb"
  done
}

# unpack ROOT NAME[=VERSION]...: the files of packages.
unpack() {
  local root=$1 files file; shift
  have dpkg-deb || die "dpkg-deb is not here"
  mkdir -p "$root"; files=$(package "$@") || return
  while IFS= read -r file; do dpkg-deb -x "$file" "$root" || return; done <<<"$files"
}
