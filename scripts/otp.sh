#!/bin/bash
# The Erlang suites on the OTP of another Debian release: a small system of it is made in _build/otp
# by debootstrap (as root, some hundred megabytes), and the suites run inside, beside the `ets` that
# is there. The native library is the one that was built here.
#
#   scripts/otp.sh RELEASE...     trixie has OTP 27, sid the newest
#
# LARDER_ONLY, LARDER_SEED and LARDER_CASES mean what they mean for `make test`.
#
# Suites that need a network or a whole machine of their own kind are as on any machine; `make demo`
# is not run, and what needs Ra is left out.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/common.sh

readonly MIRROR=${LARDER_DEBIAN:-http://deb.debian.org/debian}
readonly PACKAGES=erlang-base,erlang-dev,erlang-eunit,erlang-edoc,erlang-crypto,erlang-tools,erlang-runtime-tools,erlang-mnesia,erlang-inets,erlang-ssl,erlang-public-key,erlang-asn1,erlang-xmerl,erlang-parsetools,erlang-syntax-tools,erlang-proper,erlang-proper-dev,xz-utils,gzip,procps
export LARDER_SEED=${LARDER_SEED:-2026,11,21}

[ $# -gt 0 ] || die "otp.sh: name a Debian release, trixie for example"
[ "$(id -u)" = 0 ] || die "otp.sh: a system inside the system is for root to make"
[ -e priv/larder_nif.so ] || die "otp.sh: build the library first (make build)"
have debootstrap || apt-get install -y -q debootstrap >&2

# inside ROOT COMMAND...: in the project's folder there.
inside() {
  local root=$1; shift
  chroot "$root" env HOME=/root LC_ALL=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin ERL_CRASH_DUMP_SECONDS=0 \
    LARDER_NO_RA=1 LARDER_SEED="$LARDER_SEED" LARDER_CASES="${LARDER_CASES:-100}" ${LARDER_ONLY:+LARDER_ONLY="$LARDER_ONLY"} bash -c 'cd /larder && "$@"' - "$@"
}

# What is made is kept: only the project's files are new each time.
prepare() {
  local release=$1 root=$2
  if [ ! -e "$root/.made" ]; then
    say "otp.sh: making a Debian $release in $root"
    rm -rf "$root"; mkdir -p "$root"
    debootstrap --variant=minbase "$release" "$root" "$MIRROR" >"$root.log" 2>&1 || die "debootstrap failed: see $root.log"
    # Not by debootstrap, which chooses none of several packages that provide a dependency.
    chroot "$root" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends ${PACKAGES//,/ } \
      >>"$root.log" 2>&1 || die "the packages of $release can't be installed: see $root.log"
    touch "$root/.made"
  fi
  rm -rf "$root/larder"; mkdir -p "$root/larder/priv" "$root/larder/_build"/{larder/ebin,demo,tests}
  cp -r erlang examples scripts docs README.md CHANGELOG.md CONTRIBUTING.md Makefile "$root/larder"
  # Tests that the documents name are looked up there.
  cp -r crates fuzz lib test "$root/larder"
  cp priv/larder_nif.so "$root/larder/priv"
  ln -s ../../priv "$root/larder/_build/larder/priv"
}

beams() {
  local root=$1 flags=(+debug_info -I erlang/include -pa _build/larder/ebin)
  inside "$root" scripts/erlc.sh _build/larder/ebin "${flags[@]}" $(echo erlang/src/*.erl)
  inside "$root" scripts/app_file.escript erlang/larder.app.src _build/larder/ebin
  inside "$root" scripts/documentation.escript chunks _build/larder/ebin
  inside "$root" scripts/erlc.sh _build/demo "${flags[@]}" $(echo erlang/demo/*.erl examples/*/*.erl)
  inside "$root" scripts/erlc.sh _build/tests "${flags[@]}" -I erlang/test $(echo erlang/test/*.erl)
}

# A subshell with `set -e` of its own: what doesn't compile must not leave out the suites after it.
run() (
  set -e
  release=$1 root=$PWD/_build/otp/$1
  prepare "$release" "$root"
  mount -t proc proc "$root/proc"; mount -t sysfs sysfs "$root/sys"; mount --bind /dev "$root/dev"
  trap "umount -l '$root/proc' '$root/sys' '$root/dev'" EXIT
  beams "$root"
  inside "$root" erl -noinput -eval 'io:format("OTP ~s on ~s~n", [erlang:system_info(otp_release), "'"$release"'"]), halt().'
  inside "$root" erl -noinput +P 1000000 -pa _build/larder/ebin _build/demo _build/tests -s larder_test_runner main
)

# Not `run ... ||`: in a condition `set -e` doesn't hold.
failed=0
for release in "$@"; do
  set +e; run "$release"; status=$?; set -e
  [ "$status" = 0 ] || failed=1
done
exit "$failed"
