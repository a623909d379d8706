#!/bin/bash
# Larder as a dependency: the library for C is installed, a tiny rebar3 project and tiny mix
# projects are made in a temporary folder, fetch this tree as it is now (from a git repository made
# of it), build it, and use it. So do projects that have the package for Hex, with a prebuilt
# library and without cargo. Nothing but git, cargo's own registry, rebar3 and mix is used: no Hex.
# The packages come from a folder like dist/, which scripts/dist.sh makes.
# Last line: `N passed, N failed`.
set -uo pipefail
cd "$(dirname "$0")/.."
. scripts/common.sh

readonly ROOT=$PWD
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
passed=0 failed=0

# What the stage `build` has compiled needs no compiling a second time (see `dated_back`).
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$ROOT/target}
# An empty home of each tool: what is tested must not need archives or caches of this machine.
export MIX_HOME=$WORK/mix_home HEX_HOME=$WORK/hex_home REBAR_CACHE_DIR=$WORK/rebar_cache MIX_ENV=dev
# A tool that asks for a password or for an archive to be installed must fail, not wait.
export GIT_TERMINAL_PROMPT=0 GIT_CONFIG_GLOBAL=/dev/null

check() {
  local name=$1 start=$SECONDS log=$WORK/log; shift
  if ("$@") >"$log" 2>&1 </dev/null; then
    passed=$((passed + 1)); printf 'ok      %-38s %4d s\n' "$name" $((SECONDS - start))
  else
    failed=$((failed + 1)); printf 'FAILED  %-38s %4d s\n' "$name" $((SECONDS - start)); cat "$log"
  fi
}

# The tree as it is, uncommitted changes included, as a repository with one commit.
make_repository() {
  mkdir -p "$WORK/larder" || return 1
  { git ls-files -co --exclude-standard -z 2>/dev/null || return 1; } |
    while IFS= read -r -d '' f; do [ -e "$f" ] && printf '%s\0' "$f"; done |
    tar --null -T - -cf - | tar -xf - -C "$WORK/larder" || return 1
  cd "$WORK/larder" && committed 'The tree under test'
}

# What is in this folder becomes a repository with one commit.
committed() {
  git init -q -b main && git add -A -f &&
    git -c user.name=test -c user.email=test@example.org commit -q -m "$1"
}

# What cargo says where it doesn't run is shown; `make -j` does one thing after the other.
setup_says() {
  mkdir -p "$WORK/no_rust" || return 1
  printf '#!/bin/sh\necho "error: rustup could not choose a version of cargo to run" >&2\nexit 1\n' >"$WORK/no_rust/cargo"
  chmod +x "$WORK/no_rust/cargo"
  if PATH=$WORK/no_rust:$PATH scripts/setup.sh rust 2>"$WORK/said"; then return 1; fi
  cat "$WORK/said"; grep -q 'rustup could not choose' "$WORK/said" || return 1
  printf '#!/bin/sh\nsleep 1; echo done >>"%s"; exit 1\n' "$WORK/set_up" >"$WORK/no_rust/cargo"
  if PATH=$WORK/no_rust:$PATH make -j8 build; then return 1; fi
  sleep 2; [ "$(wc -l <"$WORK/set_up")" = 1 ]
}

# Debian's packages are unpacked in a folder with a space in its name, too.
unpacks() {
  local folder="$WORK/a folder"
  mkdir -p "$folder/made/DEBIAN" "$folder/_build/packages" && echo here >"$folder/made/file" &&
    printf '%s\n' 'Package: larder-tiny' 'Version: 1:2' 'Architecture: all' 'Maintainer: test <test@example.org>' \
      'Description: tiny' >"$folder/made/DEBIAN/control" &&
    dpkg-deb -b "$folder/made" "$folder/_build/packages/larder-tiny_1%3a2_all.deb" || return 1
  (cd "$folder" && . "$ROOT/scripts/common.sh" && unpack root larder-tiny=1:2 larder-tiny && grep here root/file)
}

# What the projects do with Larder; each language the same.
erlang_program() {
  cat <<'ERL'
-module(tiny).
-export([main/0, moved/0]).
-compile({parse_transform, larder_transform}).

main() ->
    T = larder:new(tiny, [ordered_set]),
    true = larder:insert(T, [{N, N * N} || N <- lists:seq(1, 100)]),
    [{7, 49}] = larder:lookup(T, 7),
    100 = larder:info(T, size),
    [9, 16] = larder:select(T, [{{'$1', '$2'}, [{'>', '$1', 2}, {'<', '$1', 5}], ['$2']}]),
    Priv = code:priv_dir(larder),
    true = filelib:is_regular(filename:join(Priv, "larder_nif.so")),
    moved(),
    %% The documentation that h(larder, insert) shows.
    {ok, Docs} = code:get_doc(larder),
    Text = unicode:characters_to_binary(shell_docs:render(larder, insert, Docs)),
    {_, _} = binary:match(Text, <<"list of objects">>),
    io:format("tiny: good~n").

%% The same source says ets; the parse transform makes it Larder.
moved() ->
    T = ets:new(moved, [bag]),
    true = ets:insert(T, {k, 1}),
    [{k, 1}] = larder:lookup(T, k).
ERL
}

rebar3_project() {
  mkdir -p "$WORK/reb/src" && cd "$WORK/reb" || return 1
  cat >rebar.config <<ERL
{erl_opts, [debug_info, warnings_as_errors]}.
{deps, [{larder, {git, "file://$WORK/larder", {branch, "main"}}}]}.
ERL
  cat >src/tiny.app.src <<'ERL'
{application, tiny, [{description, "uses Larder"}, {vsn, "0.1.0"}, {registered, []},
                     {applications, [kernel, stdlib, larder]}, {modules, []}]}.
ERL
  erlang_program >src/tiny.erl
  rebar3 get-deps && dated_back _build/default/lib/larder && rebar3 compile
}

rebar3_runs() {
  cd "$WORK/reb" &&
    erl -noinput -pa _build/default/lib/*/ebin -eval '
      {ok, _} = application:ensure_all_started(tiny), tiny:main(), halt(0).' | tee "$WORK/said" &&
    grep -qx 'tiny: good' "$WORK/said"
}

# mix_project FOLDER DEPENDENCY
mix_project() {
  mkdir -p "$WORK/$1/lib" && cd "$WORK/$1" || return 1
  cat >mix.exs <<EX
defmodule Tiny.MixProject do
  use Mix.Project
  def project, do: [app: :tiny, version: "0.1.0", elixir: "~> 1.14", deps: [{:larder, $2}]]
  def application, do: [extra_applications: [:logger]]
end
EX
  cat >lib/tiny.ex <<'EX'
defmodule Tiny do
  def main do
    t = :larder.new(:tiny, [:set, :public])
    true = :larder.insert(t, for(n <- 1..100, do: {n, %{square: n * n}}))
    [{7, %{square: 49}}] = :larder.lookup(t, 7)
    100 = :larder.info(t, :size)
    %{square: 81} = :larder.lookup_element(t, 9, 2)
    {:docs_v1, _, :erlang, _, %{"en" => _}, _, _} = Code.fetch_docs(:larder)
    {:docs_v1, _, :elixir, _, %{"en" => _}, _, _} = Code.fetch_docs(Larder)
    IO.puts("tiny: good")
  end
end
EX
  mix deps.get && dated_back deps/larder && mix compile
}

# The sources of a dependency in git get an old date: cargo takes what it has compiled of the same
# sources for theirs.
dated_back() {
  [ ! -d "$1" ] || find "$1" -exec touch -h -d '2000-01-01' {} +
}

mix_runs() {
  cd "$WORK/$1" && mix run --no-compile -e 'Tiny.main()' | tee "$WORK/said" && grep -qx 'tiny: good' "$WORK/said"
}

# What builds Larder does so elsewhere: bash isn't in /bin everywhere, and that of macOS is 3.2.
portable_scripts() {
  local scripts; scripts=$(sed -n "s/^readonly SCRIPTS='\(.*\)'/\1/p" scripts/dist.sh)
  cd scripts && [ -n "$scripts" ] &&
    ! grep -nE '^#!/bin/bash|\b(mapfile|readarray|declare -A|inherit_errexit)\b' $scripts
}

# The version is written in one place.
versions_agree() {
  local app cargo
  app=$(sed -n 's/.*{vsn, *"\([^"]*\)".*/\1/p' erlang/larder.app.src)
  cargo=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
  echo "application: $app, crates: $cargo"
  [ -n "$app" ] && [ "$app" = "$cargo" ]
}

# `make -s ebin` prints the directory and nothing else, and what it prints is all that erl needs.
ebin_is_enough() {
  local dir
  dir=$(make -s ebin 2>/dev/null) || return 1
  [ "$(printf '%s\n' "$dir" | wc -l)" = 1 ] && [ -d "$dir" ] || { echo "printed: $dir"; return 1; }
  cd "$WORK" && erl -noinput -pa "$dir" -eval '
    T = larder:new(t, []), true = larder:insert(T, {a, 1}), [{a, 1}] = larder:lookup(T, a), halt(0).'
}

# A build that fails is no success because an earlier one has left a library. What is taken is what
# cargo says it has built, wherever that is. A folder with a space in its name is one argument.
native_build() {
  local left=$WORK/left host; host=$(rustc -vV | sed -n 's/^host: //p')
  mkdir -p "$left"/{release,profiled/"$host"/release,elsewhere} || return 1
  echo earlier | tee "$left"/{release,profiled/"$host"/release}/liblarder_nif.so >/dev/null
  export CARGO_TARGET_DIR=$left NIF=$left/larder_nif.so
  for LARDER_PROFILE in on off; do
    export LARDER_PROFILE
    if make nif CARGO=false NIF="$NIF"; then echo "a failure is a success"; return 1; fi
    [ ! -e "$NIF" ] || return 1
  done
  echo new >"$left/elsewhere/liblarder_nif.so"
  cat >"$left/cargo" <<SH
#!/bin/sh
printf %s "\$CARGO_ENCODED_RUSTFLAGS" >"$left/flags"
echo '{"filenames":["$left/elsewhere/liblarder_nif.so"],"fresh":false}'
SH
  chmod +x "$left/cargo" && make nif CARGO="$left/cargo" NIF="$NIF" && [ "$(cat "$NIF")" = new ] || return 1
  mkdir -p "$left/a folder/crates/larder-nif" && cp -r scripts "$left/a folder/" || return 1
  cp -r crates/larder-nif/profile "$left/a folder/crates/larder-nif/"
  (cd "$left/a folder" && rustc -vV | sed -n -e 's/^rustc //p' -e 's/^host: //p' | paste -s -d ' ' - >crates/larder-nif/profile/compiler &&
    LARDER_PROFILE=on RUSTFLAGS='-Cone -Ctwo' CARGO=$left/cargo scripts/nif.sh build target --release) || return 1
  tr '\037' '\n' <"$left/flags" | grep -qx -- "-Cprofile-use=$left/a folder/_build/profile/[0-9]*.profdata" &&
    tr '\037' '\n' <"$left/flags" | grep -qx -- -Ctwo
}

# The Erlang of a page.
page_erlang() { escript scripts/readme_erlang.escript "$1" _build/larder/ebin "$WORK/telemetry"; }

# The Rust of the pages hides no line: hosts of repositories and crates show them all. rustdoc runs
# it in the stage `rust`.
pages_rust() {
  awk '/^```/ {rust = /^```rust/} rust {lines++}
       rust && /^ *#( |$)/ {print FILENAME ":" FNR ": " $0; bad = 1}
       END {exit bad || lines < 40}' README.md docs/*.md crates/*/README.md
}

# Of the library telemetry, the function that the page on monitoring calls, which is as strict.
telemetry() {
  mkdir -p "$WORK/telemetry" && cat >"$WORK/telemetry.erl" <<'ERL' && erlc -o "$WORK/telemetry" "$WORK/telemetry.erl"
-module(telemetry).
-export([execute/3]).
execute([_ | _], Measurements, Metadata) when is_map(Metadata) ->
    true = lists:all(fun is_number/1, maps:values(Measurements)),
    ok.
ERL
}

# A build of the Erlang modules that was interrupted, or that had no place for the documentation, is
# not taken for a whole one.
beams_interrupted() {
  local ebin=$WORK/tree/_build/larder/ebin
  mkdir -p "$WORK/tree" && cp -r Makefile Cargo.toml scripts erlang priv "$WORK/tree/" && cd "$WORK/tree" || return 1
  mv scripts/documentation.escript "$WORK/" && printf '#!/bin/sh\nexit 1\n' >scripts/documentation.escript &&
    chmod +x scripts/documentation.escript || return 1
  if make beams; then echo "it did not fail"; return 1; fi
  touch -r erlang/larder.app.src scripts/documentation.escript
  cp -p "$WORK/documentation.escript" scripts/ && make beams && [ -s "$ebin/larder.app" ] || return 1
  erl -noinput -eval '{ok, _} = beam_lib:chunks("'"$ebin"'/larder.beam", ["Docs"]), halt(0).' || return 1
  # No documentation where there is no place for the sources in one piece.
  TMPDIR=/proc/none scripts/documentation.escript chunks "$ebin" &&
    cp erlang/src/larder_heir.erl "$WORK/" && erlc -o "$WORK" "$WORK/larder_heir.erl" &&
    TMPDIR=/proc/none scripts/documentation.escript chunks "$WORK"
}

# The README's Elixir, in the project that has Larder as a git dependency.
readme_elixir() {
  sed -n '/^```elixir$/,/^```$/{/^```/d;p}' README.md >"$WORK/mix_git/readme.exs" && [ -s "$WORK/mix_git/readme.exs" ] || return 1
  cd "$WORK/mix_git" && mix run --no-compile readme.exs
}

# What is installed for C is all that a compiler and a loader need, with pkg-config and by itself.
c_library() {
  local place=$WORK/prefix example=crates/larder-capi/tests/c/example.c
  # What an earlier version has left isn't installed.
  mkdir -p _build/c/lib && touch _build/c/lib/liblarder.so.0.0.0 &&
    make install-c PREFIX="$place" && [ -s "$place/share/man/man3/larder.3" ] && [ ! -e "$place/lib/liblarder.so.0.0.0" ] || return 1
  local flags; flags=$(PKG_CONFIG_PATH=$place/lib/pkgconfig pkg-config --cflags --libs 'larder >= 0.1') || return 1
  cc -std=c11 $example $flags -o "$WORK/shared" && LD_LIBRARY_PATH=$place/lib "$WORK/shared" | grep -qx ok &&
    cc -std=c11 $example -I "$place/include" "$place/lib/liblarder.a" -lpthread -ldl -lm -o "$WORK/static" && "$WORK/static" | grep -qx ok
}

# Installed again it is another file: the first stays as it is for programs that run. Everybody may
# read it, whoever has installed it.
c_again() {
  local place=$WORK/prefix object before
  object=$(readlink -f "$place/lib/liblarder.so") before=$(stat -c %i "$object")
  (umask 077 && make install-c PREFIX="$place") && [ "$(stat -c %i "$object")" != "$before" ] &&
    [ "$(stat -c %a "$object" "$place"/lib/liblarder.a "$place"/lib/pkgconfig/larder.pc "$place"/include/larder.h | tr '\n' ' ')" = '755 644 644 644 ' ] || return 1
  # By sudo nothing is built.
  SUDO_USER=somebody make install-c PREFIX="$WORK/by_sudo" CARGO=false && [ -s "$WORK/by_sudo/lib/liblarder.a" ] || return 1
  mkdir -p "$WORK/pc" && scripts/pkg_config.sh '/a prefix' 0.1.0 -lm >"$WORK/pc/larder.pc" &&
    PKG_CONFIG_PATH=$WORK/pc pkg-config --cflags larder | grep -qF -- '-I/a\ prefix/include'
}

# A project of CMake that finds the installed library: C by the shared object, C++ by the archive.
c_cmake() {
  mkdir -p "$WORK/cmake" && cd "$WORK/cmake" || return 1
  cat >CMakeLists.txt <<CMAKE
cmake_minimum_required(VERSION 3.10)
project(tiny C CXX)
set(CMAKE_CXX_STANDARD 17)
find_package(larder 0.1 CONFIG REQUIRED)
find_package(larder 99.0 CONFIG QUIET)
if(larder_FOUND)
  message(FATAL_ERROR "the package says that it has version 99")
endif()
add_executable(shared $ROOT/crates/larder-capi/tests/c/example.c)
target_link_libraries(shared PRIVATE larder::larder)
add_executable(static $ROOT/crates/larder-capi/tests/c/wrapper_example.cc)
target_link_libraries(static PRIVATE larder::larder_static)
CMAKE
  cmake -S . -B build -DCMAKE_PREFIX_PATH="$WORK/prefix" && cmake --build build &&
    build/shared | grep -qx ok && build/static | grep -qx ok
}

# Whoever frees what it has made and waits for the library leaves nothing, as valgrind sees it.
c_no_leaks() {
  local program=$WORK/leaks place=$WORK/prefix
  cc -std=c11 -g -pthread crates/larder-capi/tests/c/leaks.c -I "$place/include" -L "$place/lib" -llarder -o "$program" || return 1
  cd "$WORK" && LD_LIBRARY_PATH=$place/lib valgrind --leak-check=full --error-exitcode=9 "$program" | grep -qx ok
}

# What is installed is small: nothing for debuggers is in it, nor what nobody calls.
c_sizes() {
  local shared archive
  shared=$(stat -L -c %s "$WORK/prefix/lib/liblarder.so") archive=$(stat -c %s "$WORK/prefix/lib/liblarder.a")
  echo "shared object: $shared bytes, archive: $archive"
  [ "$shared" -lt 4000000 ] && [ "$archive" -lt 20000000 ]
}

# The README's C, in a program.
readme_c() {
  { echo '#include <larder.h>'; echo 'int main(void) {'; sed -n '/^```c$/,/^```$/{/^```/d;p}' "$ROOT/README.md"; echo 'return larder_size(stock) != 1; }'; } >"$WORK/readme.c" &&
    grep -q larder_insert "$WORK/readme.c" && cc -std=c11 "$WORK/readme.c" -I "$WORK/prefix/include" "$WORK/prefix/lib/liblarder.a" -lpthread -ldl -lm -o "$WORK/readme" && "$WORK/readme"
}

# --- what is published ----------------------------------------------------------------------------

# What `make dist` makes, for this platform alone, with the library that is built already. rebar3's
# own reader of packages unpacks the package.
hex_package() {
  DIST=$WORK/dist scripts/dist.sh host && (cd "$WORK/dist" && sha256sum -c SHA256SUMS) &&
    tar -xzf "$WORK"/dist/larder-*-nif-*.tar.gz -C "$WORK" larder_nif.so && mv "$WORK/larder_nif.so" "$WORK/stripped.so" || return 1
  cat >"$WORK/unpack.escript" <<'ERL'
#!/usr/bin/env escript
main([Rebar3, Package, Folder]) ->
    {ok, Sections} = escript:extract(Rebar3, []),
    {ok, Files} = zip:unzip(proplists:get_value(archive, Sections), [memory]),
    [{module, _} = code:load_binary(list_to_atom(filename:basename(Name, ".beam")), Name, Beam)
     || {"rebar/ebin/r3_" ++ _ = Name, Beam} <- Files],
    {ok, Bytes} = file:read_file(Package),
    {ok, #{metadata := Metadata}} = r3_hex_tarball:unpack(Bytes, Folder),
    #{<<"name">> := <<"larder">>, <<"app">> := <<"larder">>, <<"licenses">> := [<<"Apache-2.0">>],
      <<"build_tools">> := [<<"mix">>, <<"rebar3">> | _], <<"files">> := Names} = Metadata,
    %% All that it names is there, and nothing of what nobody needs.
    [true = filelib:is_regular(filename:join(Folder, Name)) || Name <- Names],
    [] = [Name || Name <- Names, {match, _} <- [re:run(Name, "^(results|fuzz|docs|target)/|^crates/[^/]+/(tests|examples)/")]].
ERL
  escript "$WORK/unpack.escript" "$(command -v rebar3)" "$WORK"/dist/larder-*.tar "$WORK/package"
}

# Runs a command where there is no cargo but one that says how it was called, and builds nothing.
without_cargo() {
  mkdir -p "$WORK/no_cargo" || return 1
  cat >"$WORK/no_cargo/cargo" <<SH
#!/bin/sh
echo "\$*" >>"$WORK/cargo_called"
case \$1 in --version) echo 'cargo 99.0.0'; exit ;; esac
echo "cargo was called: \$*" >&2
exit 1
SH
  chmod +x "$WORK/no_cargo/cargo" && rm -f "$WORK/cargo_called"
  PATH=$WORK/no_cargo:$PATH "$@"
}

# rebar3 and Larder alone: `rebar3 hex build` needs to find the application in the package's root.
hex_root() {
  cp -r "$WORK/package" "$WORK/root" && cd "$WORK/root" && LARDER_PREBUILT=$WORK/dist without_cargo rebar3 compile &&
    [ ! -e "$WORK/cargo_called" ] && [ -s _build/default/lib/larder/ebin/larder.beam ]
}

# In a folder with a space in its name.
hex_rebar3() {
  mkdir -p "$WORK/hex reb/src" "$WORK/hex reb/_checkouts" && cd "$WORK/hex reb" || return 1
  cp -r "$WORK/package" _checkouts/larder
  echo '{deps, [{larder, "0.1.0"}]}.' >rebar.config
  cp "$WORK/reb/src/tiny.app.src" src/ && erlang_program >src/tiny.erl
  LARDER_PREBUILT=$WORK/dist without_cargo rebar3 compile && [ ! -e "$WORK/cargo_called" ] &&
    cmp _checkouts/larder/priv/larder_nif.so "$WORK/stripped.so" &&
    erl -noinput -pa _build/default/lib/*/ebin _build/default/checkouts/*/ebin \
      -eval 'tiny:main(), halt(0).' | grep -x 'tiny: good'
}

hex_mix() {
  LARDER_PREBUILT=$WORK/dist without_cargo mix_project hex_mix "path: \"$WORK/package\"" &&
    [ ! -e "$WORK/cargo_called" ] && mix_runs hex_mix || return 1
  # Again, from what was kept of it.
  rm "$WORK/package/priv/larder_nif.so" && without_cargo "$WORK/package/scripts/native.escript" &&
    [ ! -e "$WORK/cargo_called" ] && cmp "$WORK/package/priv/larder_nif.so" "$WORK/stripped.so"
}

# `rebar3 larder move` moves a project that says ets, in a project that has the package as a plugin.
hex_plugin() {
  mkdir -p "$WORK/hex_plugin/src" && cp -r "$WORK/package" "$WORK/plugin" && rm -rf "$WORK"/plugin/{priv,_build} || return 1
  (cd "$WORK/plugin" && committed 'The package under test') && cd "$WORK/hex_plugin" || return 1
  echo "{project_plugins, [{larder, {git, \"file://$WORK/plugin\", {branch, \"main\"}}}]}." >rebar.config
  cat >src/shop.app.src <<'ERL'
{application, shop, [{description, "uses ets"}, {vsn, "0.1.0"}, {registered, []},
                     {applications, [kernel, stdlib]}, {modules, []}]}.
ERL
  cat >src/shop.erl <<'ERL'
-module(shop).
-export([where/0]).
where() ->
    T = ets:new(shop, []),
    true = ets:insert(T, {salt, 1}),
    case catch larder:lookup(T, salt) of [{salt, 1}] -> larder; _ -> ets end.
ERL
  export LARDER_PREBUILT=$WORK/dist
  local larder="$WORK/hex reb/_build/default/checkouts/larder/ebin"
  shop() { erl -noinput -pa _build/default/lib/shop/ebin "$larder" -eval 'io:format("~s", [shop:where()]), halt().'; }
  without_cargo rebar3 larder move --plan && [ "$(shop)" = ets ] &&
    without_cargo rebar3 larder move --path _build/default/lib/shop/ebin && [ "$(shop)" = larder ] &&
    without_cargo rebar3 larder move --undo && [ "$(shop)" = ets ] && [ ! -e "$WORK/cargo_called" ] &&
    if without_cargo rebar3 larder move --path no/where; then echo "nowhere was moved"; false; fi
}

# native WORDS COMMAND...: in a package that was never compiled a command fails and says these
# words; no library is there then.
native() {
  local words=$1 said; shift
  rm -rf "$WORK/fresh" && cp -r "$WORK/package" "$WORK/fresh" && rm -rf "$WORK"/fresh/{priv,_build} || return 1
  if said=$(without_cargo "$@" "$WORK/fresh/scripts/native.escript" 2>&1); then echo "it did not fail: $said"; return 1; fi
  echo "$said"; grep -qF -- "$words" <<<"$said" && [ ! -e "$WORK/fresh/priv/larder_nif.so" ]
}

# What is not the library that was published is refused, and nothing is built in its place.
hex_refused() {
  local archive; archive=$(basename "$WORK"/dist/larder-*.tar.gz)
  mkdir -p "$WORK/bad" && cp "$WORK/dist/$archive" "$WORK/bad/" && printf 'x' >>"$WORK/bad/$archive" || return 1
  native "is not the library that was published" env LARDER_PREBUILT="$WORK/bad" && [ ! -e "$WORK/cargo_called" ] &&
    native "neither a URL nor an absolute path" env LARDER_PREBUILT=some/where && [ ! -e "$WORK/cargo_called" ]
}

# Where there is nothing prebuilt, or it is not wanted, cargo is called; what is missing is named.
hex_builds() {
  native "cargo" env LARDER_BUILD=1 LARDER_PREBUILT="$WORK/dist" && [ -e "$WORK/cargo_called" ] || return 1
  # What the environment has for the build of a program is not for this one.
  native "cargo" env LARDER_BUILD=1 PROFILE=prod QUIET=1 MAKEFLAGS=' -- TARGET=elsewhere NIF=elsewhere' &&
    grep -q '^build --locked --profile release -p larder-nif ' "$WORK/cargo_called" &&
    ! grep elsewhere "$WORK/cargo_called" || return 1
  native "$WORK/nowhere/larder-" env LARDER_PREBUILT="$WORK/nowhere" && [ -e "$WORK/cargo_called" ] || return 1
  native "the package names no place" env -u LARDER_PREBUILT && [ -e "$WORK/cargo_called" ] || return 1
  # A proxy would say something else.
  native "econnrefused" env -u http_proxy -u HTTP_PROXY LARDER_PREBUILT=http://127.0.0.1:1/larder &&
    [ -e "$WORK/cargo_called" ]
}

# From a server, as from the release of a repository.
hex_url() {
  erl -noinput -eval '
    {ok, _} = application:ensure_all_started(inets),
    {ok, Server} = inets:start(httpd, [{port, 0}, {bind_address, {127, 0, 0, 1}}, {server_name, "test"},
                                       {server_root, "'"$WORK"'"}, {document_root, "'"$WORK/dist"'"}]),
    [{port, Port}] = httpd:info(Server, [port]),
    true = os:putenv("LARDER_PREBUILT", "http://127.0.0.1:" ++ integer_to_list(Port)),
    os:unsetenv("http_proxy"), os:unsetenv("HTTP_PROXY"),
    io:put_chars(os:cmd("escript '"$WORK/package"'/scripts/native.escript 2>&1")), halt().' >"$WORK/said" &
  rm -rf "$WORK/package/priv" "$WORK/package/_build"
  wait $!; cat "$WORK/said"
  grep -q 'the native library is http://' "$WORK/said" && cmp "$WORK/package/priv/larder_nif.so" "$WORK/stripped.so"
}

check "one version everywhere" versions_agree
check "make -s ebin" ebin_is_enough
check "make nif, what cargo has built" native_build
check "README, Erlang" page_erlang README.md
telemetry
check "docs/monitoring.md, Erlang" page_erlang docs/monitoring.md
check "docs/moving.md, Erlang" page_erlang docs/moving.md
check "docs/mnesia.md, Erlang" page_erlang docs/mnesia.md
check "the pages' Rust, nothing hidden" pages_rust
check "a repository of this tree" make_repository
check "library for C, installed" c_library
check "library for C, installed again" c_again
check "library for C, by CMake" c_cmake
check "library for C, no leaks" c_no_leaks
check "library for C, sizes" c_sizes
check "README, C" readme_c
check "rebar3 git dependency, built" rebar3_project
check "rebar3 git dependency, used" rebar3_runs
check "make beams, interrupted" beams_interrupted
check "mix git dependency, built" mix_project mix_git "git: \"file://$WORK/larder\", branch: \"main\""
check "mix git dependency, used" mix_runs mix_git
check "README, Elixir" readme_elixir
check "mix path dependency, built" mix_project mix_path "path: \"$WORK/larder\""
check "mix path dependency, used" mix_runs mix_path
check "crates for crates.io" "$ROOT/scripts/publish.sh" pack
check "scripts for other systems" portable_scripts
check "package for Hex" hex_package
check "package, by erlc alone" without_cargo sh scripts/dist_try.sh "$WORK/dist"
check "package, rebar3 in it" hex_root
check "package, rebar3, prebuilt" hex_rebar3
check "package, mix, prebuilt" hex_mix
check "package, rebar3 larder move" hex_plugin
check "package, another library refused" hex_refused
check "package, built for want of one" hex_builds
check "package, library from a server" hex_url
check "set-up, what it says" setup_says
check "set-up, a folder with a space" unpacks
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
