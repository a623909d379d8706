#!/bin/bash
# `make programs`: programs of Debian's at work, as their packages have them and moved to Larder by
# scripts/larder_move, the same work on both, side by side. What the work has to find is checked.
#
#   scripts/programs.sh [PROGRAM...]     rabbitmq, ejabberd; both unless one is named
#
# ROUNDS=3 says how often each copy does its work; the medians are shown. The packages are unpacked
# under _build/programs, nothing is installed. Figures go to results/programs/programs.csv.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/common.sh

readonly PLACE=$PWD/_build/programs RESULTS=$PWD/${LARDER_BENCH_OUT:-results/programs}
readonly OTP=1:25.2.3+dfsg-1+deb12u4
ROUNDS=${ROUNDS:-3}

mkdir -p "$PLACE" "$RESULTS"

# move_copy PROGRAM: what was moved of it goes to the log.
move_copy() {
  local log=$PLACE/$1/move.log; shift
  scripts/larder_move move "$@" >"$log" || { cat "$log" >&2; die "it did not move"; }
  head -1 "$log"
}

# work PROGRAM LIBS CLIENT_LIBS: what libraries the program has to find beside its own, and the
# client. Larder is found by the copy that was moved alone.
work() {
  local program=$1 libs=$2 client=$3 place=$PLACE/$1
  mkdir -p "$place/ebin" "$place/work" "$place/larder_lib"
  ln -sfn "$PWD/_build/larder" "$place/larder_lib/larder"
  ERL_LIBS=$client EXTRA_FLAGS='+warnings_as_errors' scripts/erlc.sh "$place/ebin" +debug_info \
    erlang/programs/larder_program.erl "erlang/programs/larder_program_$program.erl"
  ERL_LIBS=$client erl -noinput -sname "client_$$" -pa "$place/ebin" -run larder_program main \
    "$program" "$ROUNDS" "$RESULTS/programs.csv" "$place/work" "$place/ets" "$place/larder" "$libs" "$libs:$place/larder_lib"
}

# Both look into Mnesia's tables by functions of `ets`: a copy of Mnesia moves with them.
rabbitmq() {
  local place=$PLACE/rabbitmq plugins
  if [ ! -e "$place/.made" ]; then
    rm -rf "$place"
    unpack "$place/ets" rabbitmq-server=3.10.8-1.1+deb12u1
    unpack "$place/otp" "erlang-os-mon=$OTP" "erlang-eldap=$OTP"
    cp -r "$place/ets" "$place/larder"
    plugins=$(echo "$place"/larder/usr/lib/rabbitmq/lib/*/plugins)
    cp -r "$(lib_dir mnesia)" "$plugins/"
    move_copy rabbitmq "$plugins"
    touch "$place/.made"
  fi
  work rabbitmq "$place/otp/usr/lib/erlang/lib" "$(echo "$place"/ets/usr/lib/rabbitmq/lib/*/plugins)"
}

ejabberd() {
  local place=$PLACE/ejabberd
  if [ ! -e "$place/.made" ]; then
    rm -rf "$place"
    unpack "$place/ets" ejabberd=23.01-1 "erlang-odbc=$OTP" "erlang-os-mon=$OTP" erlang-base64url=1.0.1-6 \
      erlang-goldrush=0.2.0-8 erlang-idna=6.1.1-4 erlang-jiffy=1.1.1-1 erlang-jose=1.11.5-1 erlang-lager=3.9.2-2 \
      erlang-p1-acme=1.0.22-1 erlang-p1-cache-tab=1.0.30-2 erlang-p1-eimp=1.0.22-2 erlang-p1-mqtree=1.0.15-2 \
      erlang-p1-pkix=1.0.9-2 erlang-p1-stringprep=1.0.29-2 erlang-p1-stun=1.2.7-1 erlang-p1-tls=1.1.16-2 \
      erlang-p1-utils=1.0.25-2 erlang-p1-xml=1.1.49-2 erlang-p1-xmpp=1.6.1-1 erlang-p1-yaml=1.0.36-1 \
      erlang-p1-yconf=1.0.15-1 erlang-p1-zlib=1.0.12-2 erlang-unicode-util-compat=0.7.0-4
    cp -r "$place/ets" "$place/larder"
    cp -r "$(lib_dir mnesia)" "$place/larder/usr/lib/erlang/lib/"
    move_copy ejabberd "$place/larder/usr/lib"
    touch "$place/.made"
  fi
  work ejabberd "$place/otp" ""
}

# lib_dir APPLICATION: of the installed OTP.
lib_dir() { erl -noinput -boot start_clean -eval "io:put_chars(code:lib_dir($1)), halt()."; }

[ $# -gt 0 ] || set -- rabbitmq ejabberd
for program in "$@"; do
  case $program in
    rabbitmq | ejabberd) "$program" ;;
    *) die "programs.sh: no program '$program'" ;;
  esac
done
