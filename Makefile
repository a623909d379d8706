# The one entry for every task. `make help` lists them.

.DEFAULT_GOAL := help
.SUFFIXES:
# `make -j` must not begin to build before the set-up is done, nor set up twice at a time. cargo
# uses all cores anyway.
.NOTPARALLEL:

# cargo puts its products here; given to cargo explicitly, so that the library is found whatever
# configuration says.
TARGET  := $(if $(CARGO_TARGET_DIR),$(CARGO_TARGET_DIR),$(CURDIR)/target)
# The profile of the native library: release, or dev for a quick unoptimised build.
PROFILE ?= release
CARGO   ?= cargo
ERLC    ?= erlc
comma   := ,
# What a program that uses Larder gets is what Cargo.lock says.
LOCKED  ?= --locked
QUIET   ?=
# rustup puts cargo here; a shell that was open before may not have it in PATH yet.
export PATH := $(PATH):$(HOME)/.cargo/bin

APP      := _build/larder
EBIN     := $(APP)/ebin
DEMO     := _build/demo
BENCH    := _build/bench
TESTBIN  := _build/tests
NIF      := priv/larder_nif.so
BUILT    := $(TARGET)/$(if $(filter dev,$(PROFILE)),debug,$(PROFILE))
SRC      := $(wildcard erlang/src/*.erl)
HEADERS  := $(wildcard erlang/src/*.hrl erlang/src/larder/*.hrl)
APP_SRC  := erlang/larder.app.src
DEMO_SRC := $(wildcard erlang/demo/*.erl examples/*/*.erl)
BENCH_SRC := $(wildcard erlang/bench/*.erl)
TEST_SRC := $(wildcard erlang/test/*.erl)
TEST_HRL := $(wildcard erlang/test/*.hrl)
ERLFLAGS := +debug_info -I erlang/include -pa $(EBIN)

.PHONY: help run bank leaderboard sessions mnesia-cluster replicated-kv test hunt proof soak fuzz build nif nif-profile beams ebin shell dist bench bench-ets bench-full bench-wide bench-wide-full bench-scaling bench-growth bench-rust bench-rust-full bench-caches bench-caches-erlang \
        bench-studies bench-studies-full bench-peers bench-peers-full bench-instructions bench-mnesia bench-ranks programs keep figures rust-bench bench-misses c kvserver install-c c-made header jvm jni test-jvm bank-jvm bench-jvm bench-jvm-pace stubs lint doc clean distclean \
        setup setup-rust setup-run setup-test setup-proof setup-jvm setup-mnesia setup-ra demo-beams test-beams bench-beams

help:
	@echo 'Larder: term tables for Erlang, Elixir, Rust, C and the JVM. What you can make:'
	@echo
	@echo '  make run     all set-up, then ets and Larder do the same work on the Debian package index; then a small bank, a leaderboard, a session store, and a web server of Debian that is moved to Larder'
	@echo '  make bank ACCOUNTS=n SECONDS=n TELLERS=n   examples/bank: transfers, an auditor, a mirror; the sum never varies'
	@echo '  make leaderboard PLAYERS=n SECONDS=n GAMES=n FANS=n   examples/leaderboard: ranks while games go on; an auditor'
	@echo '  make mnesia-cluster ROWS=n MILLISECONDS=n   examples/mnesia_cluster: three nodes with Mnesia; one is killed, parted, joins; on ets and on Larder'
	@echo '  make replicated-kv ROWS=n   examples/replicated_kv: three nodes agree by Raft; pauses of snapshots, rows in a map and in Larder; a leader dies'
	@echo '  make sessions USERS=n SECONDS=n BROWSERS=n IDLE=ms   examples/sessions: sessions that expire, an index by user; a mirror, an auditor'
	@echo '  make test    all set-up, then every check and every test'
	@echo '  make hunt    the Erlang suites with ten times the random cases, new ones each time'
	@echo '  make proof   the long form of everything that docs/promises.md names; a page in results/proof'
	@echo '  make soak MINUTES=n, make fuzz MINUTES=n   mixed work for so long; coverage-guided fuzzing for so long'
	@echo '  make build   the library: $(EBIN) and $(NIF)'
	@echo '  make nif-profile   records the profile by which the compiler lays out the code of $(NIF)'
	@echo '  make ebin    prints the directory for `erl -pa` (make -s ebin), building what is missing'
	@echo '  make shell   an Erlang shell with Larder loaded'
	@echo '  make c       the library for C and C++: $(CDIR)/include, lib, share/man; make install-c PREFIX=/usr/local puts it there'
	@echo '  make kvserver   examples/kvserver: a key-value server over a Unix socket, in C'
	@echo '  make dist    what is published, into dist/: the package for Hex, prebuilt native libraries with checksums'
	@echo '  make jvm     the library for the JVM: $(JAR); make bench-jvm measures it beside maps of the JDK'
	@echo '  make bank-jvm ACCOUNTS=n SECONDS=n TELLERS=n   examples/bank_jvm: transfers and an auditor, in Java'
	@echo '  make bench   in ten minutes: ets and Larder in turns at three sizes, every published study in small, one report of it all'
	@echo '  make bench-ets    every operation and the memory of a row, ets and Larder in turns, with more runs; bench-full adds 16 million rows'
	@echo '  make bench-wide   a seeded fifth of the product of functions, types, kinds of rows and sizes; bench-wide-full: all of it'
	@echo '  make bench-scaling, bench-growth   several processes on one table; the pauses of growth'
	@echo '  make bench-rust   the structures alone and typed tables, from Rust, beside hashbrown, BTreeMap and others; bench-rust-full: to 100 million entries'
	@echo '  make bench-misses   instructions and cache misses of an operation of the index, by callgrind'
	@echo '  make bench-caches   tables that evict, from Rust, beside moka and quick_cache: hits, and requests a second'
	@echo '  make bench-caches-erlang   a cache on ets that a process prunes, beside tables that evict'
	@echo '  make bench-studies   the published studies of ets and of large tables, run again in minutes; bench-studies-full takes hours'
	@echo '  make bench-peers  beside C++ maps, Berkeley DB, Kyoto Cabinet, Redis, memcached and maps of the JVM, which it installs'
	@echo '  make bench-ranks  ranks and pages of a board, and some elements of a row, as written on ets and on Larder'
	@echo '  make bench-mnesia  Mnesia on ets, on Larder, and with Larder as its backend, RAM only'
	@echo '  make programs     RabbitMQ and ejabberd at work, as Debian has them and moved to Larder; PROGRAMS=ejabberd ROUNDS=1'
	@echo '  make keep FROM=results/wide   puts the figures of a run into results/latest and the pages'
	@echo '  make bench-instructions  instructions per call beside the recorded ones; RECORD=1 records'
	@echo '  make lint    formatting, clippy, warnings, xref, dialyzer'
	@echo '  make doc     the pages of the crates and of the Erlang modules'
	@echo '  make clean   removes everything that was built'
	@echo
	@echo 'More: README.md, CONTRIBUTING.md.'

# --- set-up ---------------------------------------------------------------------------------------

setup:
	@scripts/setup.sh build
setup-rust:
	@scripts/setup.sh rust
setup-run:
	@scripts/setup.sh run
setup-test:
	@scripts/setup.sh test
setup-proof:
	@scripts/setup.sh proof
setup-jvm:
	@scripts/setup.sh jvm
setup-mnesia:
	@scripts/setup.sh mnesia
setup-ra:
	@scripts/setup.sh ra

# --- the library ----------------------------------------------------------------------------------

build: setup nif beams

# rebar3 and mix call this target, too, unless a prebuilt library is to be had
# (scripts/native.escript). cargo decides what is to be done; the library is moved into
# its place in one step, so that a running node that has the old one mapped is not disturbed.
nif: setup-rust
	@mkdir -p "$$(dirname '$(NIF)')"
	@built=$$(CARGO='$(CARGO)' scripts/nif.sh build '$(TARGET)' $(QUIET) $(LOCKED) --profile $(PROFILE)) || exit 1; \
	 so=$$built/liblarder_nif.so; [ -f "$$so" ] || so=$$built/liblarder_nif.dylib; \
	 new='$(NIF)'.$$$$; cmp -s "$$so" '$(NIF)' || { cp "$$so" "$$new" && mv -f "$$new" '$(NIF)'; }

# The profile by which the compiler lays out the library's code; to be recorded when much of it has
# changed, when Cargo.lock has, and for another compiler.
nif-profile: build demo-beams bench-beams
	@CARGO='$(CARGO)' scripts/nif.sh record

beams: $(EBIN)/larder.app

# The application file comes last: what was interrupted before it is not done.
$(EBIN)/larder.app: $(SRC) $(HEADERS) $(APP_SRC) scripts/app_file.escript scripts/documentation.escript
	@mkdir -p $(EBIN)
	@[ -e $(APP)/priv ] || ln -s ../../priv $(APP)/priv
	@rm -f $(EBIN)/*.beam
	@scripts/erlc.sh $(EBIN) $(ERLFLAGS) $(SRC)
	@scripts/documentation.escript chunks $(EBIN)
	@scripts/app_file.escript $(APP_SRC) $(EBIN)

ebin:
	@$(MAKE) --no-print-directory -s build QUIET=--quiet 1>&2
	@echo '$(CURDIR)/$(EBIN)'

# What is published; scripts/dist.sh has its parts.
dist: setup
	@scripts/dist.sh

# --- the library for C ----------------------------------------------------------------------------

CDIR    := _build/c
PREFIX  ?= /usr/local
VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
# What the archive asks the system for; the shared object says it itself.
CLIBS   := -lpthread -ldl -lm

# Without the library for Rust programs, beside which cargo optimises neither of these as a whole.
# The structures of the studies are compiled for size, as are numbers of any size: few programs in C
# choose one, or calculate with these. So are the functions of the interface, which only call the
# engine: the shared object has to stay under 4 MB. The allocator is no slower with the second level
# than with the third.
# STRIP=true leaves the debugging information in.
STRIP ?= strip

c: setup-rust
	@$(CARGO) rustc $(QUIET) $(LOCKED) --profile $(PROFILE) \
	  --config 'profile.$(PROFILE).package.larder-studies.opt-level="z"' \
	  --config 'profile.$(PROFILE).package.larder-judy.opt-level="z"' \
	  --config 'profile.$(PROFILE).package.larder-capi.opt-level="s"' \
	  --config 'profile.$(PROFILE).package.num-bigint.opt-level="z"' \
	  --config 'profile.$(PROFILE).package.sha2.opt-level="z"' \
	  --config 'profile.$(PROFILE).package.miniz_oxide.opt-level="s"' \
	  --config 'profile.$(PROFILE).package.ryu.opt-level="z"' \
	  --config 'profile.$(PROFILE).package.libmimalloc-sys.opt-level=2' \
	  -p larder-capi --lib --crate-type cdylib,staticlib --target-dir '$(TARGET)' 1>&2
	@mkdir -p $(CDIR)/include $(CDIR)/lib/pkgconfig $(CDIR)/lib/cmake/larder $(CDIR)/share/man/man3
	@rm -f $(CDIR)/lib/liblarder.*
	@cp crates/larder-capi/include/* $(CDIR)/include/
	@cp '$(BUILT)/liblarder_c.a' $(CDIR)/lib/liblarder.a
	@cp '$(BUILT)/liblarder_c.so' $(CDIR)/lib/liblarder.so.$(VERSION)
	@$(STRIP) -S $(CDIR)/lib/liblarder.a
	@$(STRIP) --strip-unneeded $(CDIR)/lib/liblarder.so.$(VERSION)
	@ln -sf liblarder.so.$(VERSION) $(CDIR)/lib/liblarder.so.0
	@ln -sf liblarder.so.0 $(CDIR)/lib/liblarder.so
	@scripts/pkg_config.sh '$(CURDIR)/$(CDIR)' '$(VERSION)' '$(CLIBS)' >$(CDIR)/lib/pkgconfig/larder.pc
	@cp crates/larder-capi/cmake/larder-config.cmake $(CDIR)/lib/cmake/larder/
	@sed 's/@VERSION@/$(VERSION)/' crates/larder-capi/cmake/larder-config-version.cmake >$(CDIR)/lib/cmake/larder/larder-config-version.cmake
	@cp crates/larder-capi/man/larder.3 $(CDIR)/share/man/man3/

c-made:
	@[ -s $(CDIR)/lib/pkgconfig/larder.pc ] || { echo 'larder: `make c` comes first, without sudo' >&2; exit 1; }

# The example in C: a key-value server over a Unix socket.
kvserver: c
	@cc -std=c11 -O2 -Wall -Wextra -pthread -I $(CDIR)/include examples/kvserver/kvserver.c $(CDIR)/lib/liblarder.a $(CLIBS) -o _build/kvserver
	@echo 'built _build/kvserver: _build/kvserver SOCKET [FILE]; what it understands is at the top of examples/kvserver/kvserver.c'

# DESTDIR is for packagers. Everybody may read what is installed. The shared object is moved into
# its place in one step, so that running programs that have the old one mapped are not disturbed.
# By sudo what `make c` has made is installed: root seldom has a toolchain, nor should it build.
install-c: $(if $(SUDO_USER)$(DOAS_USER),c-made,c)
	@umask 022; to='$(DESTDIR)$(PREFIX)'; so=liblarder.so.$(VERSION); \
	 mkdir -p "$$to/include" "$$to/lib/pkgconfig" "$$to/lib/cmake/larder" "$$to/share/man/man3" && \
	 install -m 644 $(CDIR)/include/* "$$to/include/" && \
	 install -m 644 $(CDIR)/lib/liblarder.a "$$to/lib/" && \
	 install -m 755 "$(CDIR)/lib/$$so" "$$to/lib/.$$so.new" && mv -f "$$to/lib/.$$so.new" "$$to/lib/$$so" && \
	 ln -sf "$$so" "$$to/lib/liblarder.so.0" && ln -sf liblarder.so.0 "$$to/lib/liblarder.so" && \
	 install -m 644 $(CDIR)/lib/cmake/larder/* "$$to/lib/cmake/larder/" && \
	 install -m 644 $(CDIR)/share/man/man3/larder.3 "$$to/share/man/man3/" && \
	 scripts/pkg_config.sh '$(PREFIX)' '$(VERSION)' '$(CLIBS)' >"$$to/lib/pkgconfig/larder.pc"
	@echo 'installed under $(DESTDIR)$(PREFIX); run ldconfig if the loader has not seen that folder yet'

# --- the library for the JVM ----------------------------------------------------------------------

JAR    := _build/jvm/larder.jar
JNI_SO := $(BUILT)/liblarder_jni.so

jvm: setup-jvm jni
	@scripts/jvm.sh package '$(JNI_SO)'

test-jvm: setup-jvm jni
	@scripts/jvm.sh test '$(JNI_SO)'

# The example in Java.
bank-jvm: jvm
	@scripts/jvm.sh example $(ACCOUNTS) $(SECONDS) $(TELLERS)

# A minute or two. HEAP=512m gives each map so much.
BENCH_ROWS    ?= 1000000
BENCH_SECONDS ?= 5

bench-jvm: jvm
	@scripts/jvm.sh bench $(BENCH_ROWS) $(BENCH_SECONDS)

# Writes at a rate, and how late each was. HEAP=8g JVM_MAP=SkipList for that one.
JVM_MAP      ?= LarderLongs
PACE_ROWS    ?= 100000000
PACE_RATE    ?= 200000
PACE_SECONDS ?= 1800

bench-jvm-pace: jvm
	@scripts/jvm.sh pace $(JVM_MAP) $(PACE_ROWS) $(PACE_RATE) $(PACE_SECONDS)

jni: setup-rust
	@$(CARGO) build $(QUIET) $(LOCKED) --profile $(PROFILE) -p larder-jni --target-dir '$(TARGET)' 1>&2

# --- what is written from the sources -------------------------------------------------------------

# Writes crates/larder-capi/include/larder.h from the sources, and man/larder.3 from that; tests say
# when that is due.
header: setup-rust
	@LARDER_WRITE_HEADER=1 $(CARGO) test --quiet $(LOCKED) -p larder-capi --test header --test man --target-dir '$(TARGET)'

# Writes erlang/src/larder_nif_stubs.hrl from the table of native functions; a test says when that
# is due.
stubs: setup-rust
	@LARDER_WRITE_STUBS=1 $(CARGO) test --quiet $(LOCKED) -p larder-stubs --target-dir '$(TARGET)'

shell: build
	@erl -pa $(EBIN) -eval "{module, _} = code:ensure_loaded(larder), io:format(\"Larder is loaded: larder:new(t, []).~n\")"

# --- the main job ---------------------------------------------------------------------------------

run: setup-run build demo-beams
	@erl -noinput +P 1000000 -pa $(EBIN) $(DEMO) -s larder_demo main

# The examples, of any size. `make run` has a short form of each.
ACCOUNTS ?= 1000000
SECONDS  ?= 10
TELLERS  ?= 4

bank: build demo-beams
	@erl -noinput -pa $(EBIN) $(DEMO) -run bank main $(ACCOUNTS) $(SECONDS) $(TELLERS)

PLAYERS ?= 1000000
GAMES   ?= 3
FANS    ?= 2

leaderboard: build demo-beams
	@erl -noinput -pa $(EBIN) $(DEMO) -run leaderboard main $(PLAYERS) $(SECONDS) $(GAMES) $(FANS)

USERS    ?= 1000
BROWSERS ?= 4
IDLE     ?= 2000

sessions: build demo-beams
	@erl -noinput -pa $(EBIN) $(DEMO) -run sessions main $(USERS) $(SECONDS) $(BROWSERS) $(IDLE)

# Three nodes with Mnesia, of ram_copies and of Larder's backend in turns. A node of them loads the
# table of ROWS from another one: 5 million take about five minutes and 6 GB.
ROWS         ?= $(if $(filter replicated-kv,$(MAKECMDGOALS)),1000000,5000000)
MILLISECONDS ?= 2000

mnesia-cluster: build demo-beams
	@erl -noinput -pa $(EBIN) $(DEMO) -run mnesia_cluster main $(ROWS) $(MILLISECONDS)

# Three nodes with Ra, a million rows: about three minutes and 2 GB.
replicated-kv: build setup-ra demo-beams
	@ERL_LIBS='$(CURDIR)/_build/ra' erl -noinput -pa $(EBIN) $(DEMO) -run replicated_kv main $(ROWS)

demo-beams: beams
	@mkdir -p $(DEMO)
	@scripts/erlc.sh $(DEMO) $(ERLFLAGS) $(DEMO_SRC)

# Where the figures go, as larder_bench_env has it.
BENCH_RESULTS := $(if $(LARDER_BENCH_OUT),$(LARDER_BENCH_OUT),results/bench)

# The quick set: operations of ets and Larder, and each study in small; one folder, one report.
# About nine minutes on two cores, after building.
bench: build demo-beams bench-beams rust-bench
	@LARDER_BENCH_OUT='$(BENCH_RESULTS)' erl -noinput -pa $(EBIN) $(DEMO) $(BENCH) -s larder_bench quick
	@$(RUST_BENCH) study all --quick --quiet --out '$(BENCH_RESULTS)' $(STUDY_OPTIONS)
	@$(RUST_BENCH) report '$(BENCH_RESULTS)'

# The report measures nothing: a quick build draws it.
REPORTER ?= $(CARGO) run --quiet $(LOCKED) -p larder-bench --target-dir '$(TARGET)' --

# Keys that take room lie among the emulator's literals, for which it reserves 1 GiB: too little for
# 16 million.
bench-ets: build demo-beams bench-beams
	@LARDER_BENCH_OUT='$(BENCH_RESULTS)' erl -noinput +MIscs 16384 -pa $(EBIN) $(DEMO) $(BENCH) -s larder_bench main
	@$(REPORTER) report '$(BENCH_RESULTS)'

bench-full:
	@LARDER_BENCH_SIZES=1000,65536,1048576,16777216 $(MAKE) --no-print-directory bench-ets

# A seeded fifth of the product of operations, types, kinds of rows and sizes; LARDER_BENCH_OPS,
# _KINDS, _TYPES and _SIZES choose cells.
WIDE_RESULTS := $(if $(LARDER_BENCH_OUT),$(LARDER_BENCH_OUT),results/wide)

bench-wide: build demo-beams bench-beams
	@LARDER_BENCH_OUT='$(WIDE_RESULTS)' erl -noinput +MIscs 4096 -pa $(EBIN) $(DEMO) $(BENCH) -s larder_bench_wide main
	@$(REPORTER) report '$(WIDE_RESULTS)'

bench-wide-full:
	@LARDER_BENCH_SHARE=1 $(MAKE) --no-print-directory bench-wide

bench-scaling: build demo-beams bench-beams
	@erl -noinput -pa $(EBIN) $(DEMO) $(BENCH) -s larder_bench_run main larder_bench_scaling

bench-growth: build demo-beams bench-beams
	@erl -noinput -pa $(EBIN) $(DEMO) $(BENCH) -s larder_bench_run main larder_bench_growth

# The structures from Rust, beside their peers; libJudy is one of them where its header is
# installed.
PEERS := peers$(if $(wildcard /usr/include/Judy.h),$(comma)judy)
RUST_BENCH = '$(TARGET)/release/larder-bench'
RUST_RESULTS ?= results/rust

rust-bench: setup-rust
	@$(CARGO) build --quiet $(LOCKED) --release -p larder-bench --features '$(PEERS)' --target-dir '$(TARGET)'

# A bar says how long the rest will take: about twenty minutes for all of them.
bench-rust: rust-bench
	@for what in engine growth threads skew typed; do $(RUST_BENCH) $$what --out '$(RUST_RESULTS)/'$$what.csv || exit 1; done

# Instructions and cache misses of an operation of the index, simulated, in four minutes.
bench-misses: setup-rust
	@mkdir -p '$(RUST_RESULTS)'
	@CARGO='$(CARGO)' CARGO_TARGET_DIR='$(TARGET)' scripts/misses.sh >'$(RUST_RESULTS)/misses.csv'

# 16 million entries for single operations, 100 million for growth: about half an hour.
bench-rust-full: rust-bench
	@$(RUST_BENCH) engine --full --runs 3 --out '$(RUST_RESULTS)-full/engine.csv'
	@$(RUST_BENCH) growth --full --runs 1 --out '$(RUST_RESULTS)-full/growth.csv'

# Tables that evict beside caches of other crates, in a few minutes. CACHES_OPTIONS='--churn-minutes
# 30' fills one for so long, and says what memory it took.
CACHES_OPTIONS ?=

bench-caches: rust-bench
	@$(RUST_BENCH) caches --out '$(RUST_RESULTS)/caches.csv' $(CACHES_OPTIONS)

# One study alone, or other options: STUDY=ets-2003, STUDY_OPTIONS='--seed 7 --only btree,default'.
STUDY ?= all
STUDY_OPTIONS ?=
STUDY_RESULTS ?= results/studies

bench-studies: build demo-beams bench-beams rust-bench
	@$(RUST_BENCH) study $(STUDY) --quick --out '$(STUDY_RESULTS)' $(STUDY_OPTIONS)
	@$(RUST_BENCH) report '$(STUDY_RESULTS)'

# Hours; STUDY_OPTIONS='--minutes 20' gives each study so long.
bench-studies-full: build demo-beams bench-beams rust-bench
	@$(RUST_BENCH) study $(STUDY) --full --out '$(STUDY_RESULTS)-full' $(STUDY_OPTIONS)
	@$(RUST_BENCH) report '$(STUDY_RESULTS)-full'

# Stores from elsewhere: installs what they need, says what it could not get, and measures the rest,
# in minutes.
PEERS_SCALE ?= --quick
PEERS_RESULTS ?= results/peers
bench-peers: setup-rust
	@scripts/peers.sh debian jvm
	@$(CARGO) build --quiet $(LOCKED) --release -p larder-bench --features peers,cpp --target-dir '$(TARGET)'
	@$(RUST_BENCH) peers run $(PEERS_SCALE) --out '$(PEERS_RESULTS)' $(PEERS_OPTIONS)

bench-peers-full:
	@$(MAKE) --no-print-directory bench-peers PEERS_SCALE=--full

# Less than a minute.
bench-mnesia: build setup-mnesia demo-beams bench-beams
	@scripts/mnesia.sh -pa $(EBIN) $(DEMO) $(BENCH)

# Debian's packages, unpacked under _build and moved there; needs the network the first time.
programs: build
	@scripts/programs.sh $(PROGRAMS)

# About a minute, most of it with a million rows.
bench-ranks: build demo-beams bench-beams
	@erl -noinput -pa $(EBIN) $(DEMO) $(BENCH) -s larder_bench_run main larder_bench_ranks

# Two minutes.
bench-caches-erlang: build demo-beams bench-beams
	@erl -noinput -pa $(EBIN) $(DEMO) $(BENCH) -s larder_bench_run main larder_bench_caches

# About a minute after building. RECORD=1 records the figures as those to compare with.
RECORD ?=
bench-instructions: setup-test
	@MAKE='$(MAKE)' scripts/instructions.sh $(if $(RECORD),record)

# Puts the figures of a run into results/latest, and from there into the pages.
keep:
	@scripts/keep.sh '$(FROM)'
	@$(MAKE) --no-print-directory figures

# Writes the tables of the pages anew; a test says when that is due.
figures:
	@for page in README.md docs/performance.md; do \
	  $(REPORTER) figures $$page results/latest || exit 1; \
	done

bench-beams: beams
	@mkdir -p $(BENCH)
	@scripts/erlc.sh $(BENCH) $(ERLFLAGS) $(BENCH_SRC)

# --- checks ---------------------------------------------------------------------------------------

test: setup-test
	@MAKE='$(MAKE)' scripts/test.sh

test-beams: beams
	@mkdir -p $(TESTBIN)
	@scripts/erlc.sh $(TESTBIN) $(ERLFLAGS) -I erlang/test $(TEST_SRC)

# Ten times the random cases, new ones each time. What it finds carries the seed that finds it
# again.
hunt: setup-test build
	@LARDER_STAGES=1 LARDER_SEED=random LARDER_CASES=$${LARDER_CASES:-1000} MAKE='$(MAKE)' scripts/test.sh erlang times

MINUTES ?= 5

# Everything that docs/promises.md names, for hours; PROOF_MINUTES, PROOF_TIMES and PROOF_CASES say
# how long (scripts/proof.sh).
proof: setup-proof
	@MAKE='$(MAKE)' scripts/proof.sh

soak: setup-test build test-beams
	@LARDER_SOAK_SECONDS=$$(($(MINUTES) * 60)) erl -noinput +P 1000000 -pa $(EBIN) $(TESTBIN) -s larder_soak main

fuzz: setup-rust
	@scripts/fuzz.sh $(MINUTES)

lint: setup-test
	@MAKE='$(MAKE)' scripts/lint.sh

doc: setup-test build
	@$(CARGO) doc --workspace --no-deps --target-dir '$(TARGET)'
	@scripts/documentation.escript pages _build/doc/erlang
	@echo 'crates:  $(TARGET)/doc/larder/index.html'
	@echo 'erlang:  $(CURDIR)/_build/doc/erlang/index.html'

clean:
	rm -rf _build target dist results/run $(NIF) $(NIF).*

distclean: clean
