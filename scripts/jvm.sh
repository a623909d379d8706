#!/bin/bash
# The jar of bindings/jvm, with the native library of this machine in it.
#
#   scripts/jvm.sh package LIBRARY   compiles, and puts the jar at _build/jvm/larder.jar
#   scripts/jvm.sh test LIBRARY      runs the tests, too; the last line is `N passed, N failed`
#   scripts/jvm.sh bench ROWS SECONDS   measures the jar beside maps of the JDK, so many seconds a
#                                    column; each map has a JVM of its own with HEAP (256m)
#   scripts/jvm.sh pace MAP ROWS RATE SECONDS   writes at a rate, and how late they were
#
# Maven gets what it needs the first time, and needs no network from then on.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/common.sh

readonly MODULE=bindings/jvm OUT=_build/jvm

# The folder of the native library in the jar, as NativeLibrary.java has it.
platform() {
  local arch; arch=$(uname -m)
  case $arch in amd64) arch=x86_64 ;; arm64) arch=aarch64 ;; esac
  printf '%s-%s' "$(uname -s | tr '[:upper:]' '[:lower:]')" "$arch"
}

# The libraries of other machines, which a packager put there, stay.
put_library() {
  local folder=$OUT/natives/native/$(platform)
  mkdir -p "$folder"
  # Without what only a debugger reads, which is most of it.
  if ! strip --strip-debug -o "$folder/liblarder_jni.so" "$1" 2>/dev/null; then
    cp "$1" "$folder/liblarder_jni.so"
  fi
}

same_version() {
  local jar crate
  jar=$(sed -n 's|^  <version>\(.*\)</version>|\1|p' $MODULE/pom.xml)
  crate=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
  [ "$jar" = "$crate" ] || die "$MODULE/pom.xml has version $jar, Cargo.toml $crate"
}

# What Maven got once it doesn't ask for again.
maven() { mvn -q -B -Dstyle.color=never -f $MODULE/pom.xml "$@"; }

# The counts of all classes, from the reports. A line of its own: Maven ends without one.
count() {
  sed -n 's/^Tests run: \([0-9]*\), Failures: \([0-9]*\), Errors: \([0-9]*\), Skipped: \([0-9]*\).*/\1 \2 \3 \4/p' \
    "$OUT"/target/surefire-reports/*.txt |
    awk '{p += $1 - $2 - $3 - $4; f += $2 + $3} END {print "\n" p + 0 " passed, " f + 0 " failed"}'
}

bench() {
  local map heap=-Xmx${HEAP:-256m}
  mkdir -p $OUT/bench
  javac --release 17 -cp $OUT/larder.jar -d $OUT/bench $MODULE/bench/*.java
  echo "longs to longs, $1 rows, $heap; nanoseconds a call, a scan's a row"
  echo
  echo '| map                   |     fill |      put |      get |      add |     scan | longest ms | GC    ms | heap MiB |  RSS MiB |'
  echo '|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|'
  for map in LarderLongTable LarderTable ConcurrentSkipListMap HashMap; do
    java "$heap" -cp $OUT/larder.jar:$OUT/bench MapBench $map "$1" "$2" ||
      echo "| $map | did not end (see above) |"
  done
}

# Writes at a rate.
pace() {
  local map=$1; shift
  mkdir -p $OUT/bench
  javac --release 17 -cp $OUT/larder.jar -d $OUT/bench $MODULE/bench/*.java
  java "-Xmx${HEAP:-256m}" -cp $OUT/larder.jar:$OUT/bench PaceBench "$map" "$@"
}

main() {
  local status=0
  case $1 in
    bench) bench "$2" "$3"; return ;;
    pace) shift; pace "$@"; return ;;
  esac
  have javac && have mvn || die "a JDK of 17 or newer and Maven are needed: make setup-jvm"
  same_version
  put_library "$2"
  case $1 in
    package)
      maven package -DskipTests
      cp $OUT/target/larder-*.jar $OUT/larder.jar ;;
    test)
      rm -rf $OUT/target/surefire-reports
      maven package || status=$?
      count
      return $status ;;
    *) die "jvm.sh: unknown part '$1' (package or test)" ;;
  esac
}

[ $# -ge 2 ] || die "jvm.sh: package or test, and the native library; or bench or pace and what they take"
main "$@"
