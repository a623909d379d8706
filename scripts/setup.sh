#!/usr/bin/env bash
# Installs what is missing, says what it does, and does nothing when all is there.
#
#   setup.sh rust    nothing is installed, only the toolchain looked for
#   setup.sh build   a Rust toolchain, a linker, Erlang/OTP: enough for the library
#   setup.sh run     and a Debian package index to work on, and a program to move
#   setup.sh test    and what the tests and checks use: PropEr, Dialyzer, EDoc, Elixir, rebar3, a
#                    C++ compiler, CMake, pkg-config, valgrind, a JDK and Maven; Mnesia's sources,
#                    if they can be had
#   setup.sh proof   what `make proof` uses: the same
#   setup.sh jvm     what `make jvm` uses: a JDK and Maven
#   setup.sh mnesia  what `make bench-mnesia` uses: Mnesia's sources
#   setup.sh ra      what `make replicated-kv` uses: the library Ra, which the tests use, too
#
# Made for Debian 12, whose packages are Erlang/OTP 25.2.3, Elixir 1.14.0, rebar3 3.19.0 and PropEr
# 1.2. Elsewhere it checks for the same tools and says which are missing. The Rust toolchain is
# never installed for you.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/common.sh

readonly LEVEL=${1:-test}
readonly MIN_OTP=25
readonly MIN_RUST_MINOR=$(scripts/msrv.sh | cut -d. -f2)

# The packages of each level, by Debian's names.
readonly BUILD_PACKAGES="gcc libc6-dev erlang-base erlang-dev erlang-crypto erlang-parsetools erlang-syntax-tools"
readonly TEST_PACKAGES="git ca-certificates g++ cmake pkg-config erlang-tools erlang-eunit erlang-edoc erlang-xmerl erlang-dialyzer
  erlang-proper erlang-proper-dev erlang-runtime-tools erlang-mnesia erlang-inets erlang-ssl erlang-public-key erlang-asn1 erlang-common-test elixir rebar3 valgrind"
# The library for the JVM.
readonly JVM_PACKAGES="openjdk-17-jdk-headless maven"
# The documentation in the shell is made by EDoc.
readonly EDOC_PACKAGES="erlang-edoc erlang-xmerl"
# Mnesia's sources, for the bench of it.
readonly MNESIA_PACKAGES="erlang-src"
# The browser that the bench's report is tried in.
readonly BROWSER_PACKAGES="chromium"
# The OTP applications of each level: what the packages above are for.
readonly BUILD_APPS="stdlib compiler crypto syntax_tools"
readonly TEST_APPS="tools eunit edoc xmerl dialyzer proper runtime_tools mnesia"

main() {
  case $LEVEL in
    rust)  need_rust ;;
    build) need_rust; packages_for "$BUILD_PACKAGES" "$BUILD_APPS" "erl erlc escript"; want_edoc ;;
    run)   need_rust; packages_for "$BUILD_PACKAGES" "$BUILD_APPS" "erl erlc escript"; need_index; want_yaws ;;
    test | proof)
           need_rust
           packages_for "$BUILD_PACKAGES $TEST_PACKAGES" "$BUILD_APPS $TEST_APPS" "erl erlc escript git elixir mix rebar3 dialyzer c++ cmake pkg-config valgrind"
           need_lint_tools
           need_browser
           need_ra
           need_jvm
           want_mnesia
           want_yaws ;;
    jvm)   need_rust; need_jvm ;;
    mnesia) packages_for "$BUILD_PACKAGES" "$BUILD_APPS" "erl erlc"; want_mnesia ;;
    ra)    need_rust; packages_for "$BUILD_PACKAGES" "$BUILD_APPS" "erl erlc"; need_ra ;;
    *) die "setup.sh: unknown level '$LEVEL' (rust, build, run, test, proof, jvm, mnesia or ra)" ;;
  esac
}

# --- Rust -----------------------------------------------------------------------------------------

rust_help() {
  say "larder: $1"
  say "  Larder needs a Rust toolchain: cargo and rustc 1.$MIN_RUST_MINOR or newer (Debian 12 itself has only 1.63)."
  say "  Install one from https://rustup.rs, for example the stable toolchain, and see that cargo is in PATH."
  exit 1
}

need_rust() {
  have cargo || rust_help "cargo was not found."
  local said version minor
  # That of rustup is there without a toolchain, and says what is missing.
  said=$(cargo --version 2>&1) || rust_help "cargo doesn't run: $said"
  version=$(awk '$1 == "cargo" {print $2; exit}' <<<"$said")
  minor=$(printf '%s' "$version" | cut -d. -f2)
  [ "${version%%.*}" -gt 1 ] 2>/dev/null && return
  [ "${minor:-0}" -ge $MIN_RUST_MINOR ] 2>/dev/null || rust_help "cargo ${version:-(no version)} is too old."
}

need_lint_tools() {
  cargo clippy --version >/dev/null 2>&1 || die "cargo clippy is missing: rustup component add clippy"
  cargo fmt --version >/dev/null 2>&1 || die "cargo fmt is missing: rustup component add rustfmt"
}

# --- Debian packages ------------------------------------------------------------------------------

# packages_for PACKAGES APPS COMMANDS: checks for what the packages are for, installs them if
# something is missing, and checks again.
packages_for() {
  local lacking
  lacking=$(lacking "$2" "$3")
  [ -z "$lacking" ] && return
  say "larder: missing here:$lacking"
  have apt-get || die "this is no Debian: please install these yourself (Erlang/OTP $MIN_OTP or newer, Elixir 1.14 or newer)."
  install_packages $1
  lacking=$(lacking "$2" "$3")
  [ -z "$lacking" ] || die "still missing after the installation:$lacking"
}

# Prints the commands and OTP applications that are not there, or nothing.
lacking() {
  local c out=""
  for c in $2; do have "$c" || out="$out $c"; done
  have cc || out="$out cc"
  # Without its headers gcc is there but links nothing.
  if have cc && ! echo 'int main(void){return 0;}' | cc -x c -o /dev/null - 2>/dev/null; then out="$out libc6-dev"; fi
  if have erl; then out="$out$(lacking_apps "$1")"; fi
  printf '%s' "$out"
}

# Headers alone (erlang-dev) make a folder, too, so an application is here if its .app file is.
lacking_apps() {
  erl -noinput -boot start_clean -eval '
    Otp = list_to_integer(erlang:system_info(otp_release)),
    Otp >= '$MIN_OTP' orelse io:format(" OTP-'$MIN_OTP'-or-newer(here:~w)", [Otp]),
    [io:format(" erlang-~s", [A]) || A <- string:tokens("'"$1"'", " "),
      code:where_is_file(A ++ ".app") =:= non_existing],
    [io:format(" erlang-dev") || filelib:wildcard(code:root_dir() ++ "/usr/include/erl_nif.h") =:= []],
    [io:format(" erlang-proper-dev") || lists:member("proper", string:tokens("'"$1"'", " ")),
      is_list(code:lib_dir(proper)), not filelib:is_regular(filename:join(code:lib_dir(proper), "include/proper.hrl"))],
    halt().' </dev/null
}

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"
  elif have sudo; then say "larder: using sudo for: $*"; sudo "$@"
  else die "needs root to run '$*' (and there is no sudo); please run it yourself, then try again."
  fi
}

# A mirror may be away for a moment; a third party's list that fails must not stop the rest, so the
# last word is apt-get install's.
update_lists() {
  local try
  for try in 1 2 3; do
    say "larder: apt-get update (try $try)"
    if as_root apt-get -o Acquire::Retries=3 update -q >&2; then return 0; fi
    sleep $((try * 5))
  done
  say "larder: apt-get update did not fully succeed; going on with the lists that are there."
}

install_packages() {
  update_lists
  say "larder: installing from Debian's packages: $*"
  local try
  for try in 1 2 3; do
    if as_root env DEBIAN_FRONTEND=noninteractive apt-get -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300 \
         install -y -q --no-install-recommends "$@" >&2; then return 0; fi
    sleep $((try * 5))
  done
  die "apt-get install failed (see above)."
}

# --- The browser ----------------------------------------------------------------------------------

# The test of the report's page (browser.rs of crates/larder-bench/tests/program/report) takes any
# of these.
need_browser() {
  local name
  [ "${LARDER_NO_BROWSER:-0}" != 0 ] && return
  for name in chromium chromium-browser google-chrome google-chrome-stable; do
    if have $name; then return; fi
  done
  say "larder: missing here: a Chromium, for the test of the bench's report (LARDER_NO_BROWSER=1 leaves that test out)"
  have apt-get || die "this is no Debian: please install Chromium yourself, or set LARDER_NO_BROWSER=1."
  install_packages $BROWSER_PACKAGES
}

# --- The JVM --------------------------------------------------------------------------------------

need_jvm() {
  have javac && have mvn && return
  say "larder: missing here: a JDK or Maven, for the library for the JVM"
  have apt-get || die "this is no Debian: please install a JDK of 17 or newer and Maven yourself."
  install_packages $JVM_PACKAGES
}

# --- EDoc -----------------------------------------------------------------------------------------

# Without it the library is built without the documentation that h(larder) shows; who may not
# install anything still gets the library.
want_edoc() {
  [ -n "$(lacking_apps "edoc xmerl")" ] || return 0
  have apt-get && { [ "$(id -u)" = 0 ] || have sudo; } || return 0
  say "larder: missing here: EDoc, for the documentation in the shell"
  (install_packages $EDOC_PACKAGES) || true
}

# --- Ra -------------------------------------------------------------------------------------------

# Debian's package is unpacked under _build, nothing is installed.
need_ra() {
  [ "${LARDER_NO_RA:-0}" != 0 ] && return
  scripts/ra.sh && return
  have apt-get || die "this is no Debian: Ra can't be had. LARDER_NO_RA=1 leaves out the tests with it."
  update_lists
  scripts/ra.sh || die "Ra can't be had (see above). LARDER_NO_RA=1 leaves out the tests with it."
}

# --- Mnesia's sources -----------------------------------------------------------------------------

# Without them the bench of Mnesia is left out, and says so; nothing else needs them.
want_mnesia() {
  [ -z "$(mnesia_sources)" ] || return 0
  say "larder: missing here: the sources of Mnesia"
  if have apt-get; then (install_packages $MNESIA_PACKAGES) || true; fi
  [ -n "$(mnesia_sources)" ] || say "larder: without them the bench of Mnesia is left out."
}

# --- The data of `make run` -----------------------------------------------------------------------

need_index() {
  compgen -G '/var/lib/apt/lists/*Packages*' >/dev/null && return
  if have apt-get && { [ "$(id -u)" = 0 ] || have sudo; }; then
    say "larder: no package lists under /var/lib/apt/lists"
    update_lists
  fi
  compgen -G '/var/lib/apt/lists/*Packages*' >/dev/null && return
  [ -s /var/lib/dpkg/status ] || die "no Debian package index: neither /var/lib/apt/lists/*Packages* nor /var/lib/dpkg/status."
  say "larder: no package lists, so /var/lib/dpkg/status (the packages installed here) is what will be used."
}

# --- The program that `make run` moves ------------------------------------------------------------

# Debian's package is unpacked under _build, nothing is installed. Without it that part is left out.
want_yaws() {
  [ -e _build/yaws/.made ] && return
  have apt-get && (unpack _build/yaws erlang-yaws && touch _build/yaws/.made) ||
    say "larder: without Debian's package erlang-yaws the part of 'make run' that moves it is left out."
}

main
