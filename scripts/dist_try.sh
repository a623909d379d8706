#!/bin/sh
# dist_try.sh FOLDER: whether what is in dist/, or another folder like it, works here. The package
# is unpacked, gets its prebuilt library for this platform, and is compiled and used. Nothing is
# needed but Erlang/OTP, and nothing is built by cargo.
set -eu
dist=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

tar -xOf "$dist"/larder-*[0-9].tar contents.tar.gz | tar -xzf -
# Where no library is prebuilt for this platform, make would build it.
mkdir no_make && printf '#!/bin/sh\nexit 1\n' >no_make/make && cp no_make/make no_make/gmake && chmod +x no_make/*
PATH=$work/no_make:$PATH LARDER_PREBUILT=$dist escript scripts/native.escript

# Parse transforms and behaviours first: others are compiled with them.
mkdir ebin
first=$(grep -lE '^(-callback|parse_transform\()' erlang/src/*.erl)
erlc -o ebin $first
erlc -pa ebin -o ebin erlang/src/*.erl
cp erlang/larder.app.src ebin/larder.app
mkdir -p lib/larder && mv ebin priv lib/larder/

ERL_LIBS=$work/lib erl -noinput -eval '
  T = larder:new(tiny, [ordered_set, public, {index, [{square, 2, []}]}]),
  true = larder:insert(T, [{N, N * N, #{text => <<0:(N * 8)>>}} || N <- lists:seq(1, 10000)]),
  [{7, 49, _}] = larder:lookup(T, 7),
  [{8, 64, _}] = larder:index_lookup(T, square, 64),
  [Key, Square] = [list_to_atom(Name) || Name <- ["$1", "$2"]],
  [9, 16] = larder:select(T, [{{Key, Square, list_to_atom("_")}, [{list_to_atom(">"), Key, 2},
                               {list_to_atom("<"), Key, 5}], [Square]}]),
  10000 = larder:info(T, size),
  true = larder:delete(T),
  io:format("larder: good on ~s, OTP ~s~n", [erlang:system_info(system_architecture),
                                             erlang:system_info(otp_release)]),
  halt().'
