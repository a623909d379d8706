#!/bin/bash
# The jar of bindings/jvm, with the native library of this machine in it.
#
#   scripts/jvm.sh package LIBRARY   compiles, and puts the jar at _build/jvm/larder.jar
#   scripts/jvm.sh test LIBRARY      runs the tests, too; the last line is `N passed, N failed`
#   scripts/jvm.sh example ARGUMENT...   the example, with the jar
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

jar_version() { sed -n 's|^  <version>\(.*\)</version>|\1|p' $MODULE/pom.xml; }

same_version() {
  local jar crate classes
  jar=$(jar_version)
  crate=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
  [ "$jar" = "$crate" ] || die "$MODULE/pom.xml has version $jar, Cargo.toml $crate"
  classes=$(sed -n 's/.* VERSION = "\(.*\)";/\1/p' $MODULE/src/main/java/larder/NativeLibrary.java)
  [ "$classes" = "$crate" ] || die "NativeLibrary.java has version $classes, Cargo.toml $crate"
}

# What Maven got once it doesn't ask for again.
maven() { mvn -q -B -Dstyle.color=never -f $MODULE/pom.xml "$@"; }

# The example beside a jar, or beside what was compiled for the tests.
example() {
  local classes=$1; shift
  mkdir -p $OUT/example
  javac --release 17 -Xlint:all -Werror -cp "$classes" -d $OUT/example examples/bank_jvm/Bank.java &&
    java -Xmx256m -cp "$classes:$OUT/example" Bank "$@"
}

# The program of docs/jvm.md: imports, then statements, which are put into a class.
page_program() {
  local folder=$OUT/page
  rm -rf $folder
  mkdir -p $folder
  awk '/^```/ && lines {exit} java && !/^import/ && !main {
         main = 1; print "public class Page {\npublic static void main(String[] arguments) {"}
       java {lines++; print}
       /^```java$/ {java = 1}
       END {print "}\n}"}' docs/jvm.md >$folder/Page.java
  # In a condition `set -e` doesn't hold.
  javac --release 17 -cp "$1" -d $folder $folder/Page.java &&
    [ "$(java -cp "$1:$folder" Page | tail -n 1)" = '{Ann=35, Bob=27, Eve=51}' ]
}

# The JVM only warns of most calls of JNI that are wrong (-Xcheck:jni), and Maven puts the warnings,
# which are none of its own words, beside the reports. Prints those of the library's functions, and
# fails if there are any.
no_warnings() {
  cat /dev/null $OUT/target/surefire-reports/*.dumpstream 2>/dev/null |
    awk '/WARNING in native method/ {said = $0; next}
         said != "" && /at / {if (/larder\./) {print said; print; n++}; said = ""}
         END {exit n > 0}'
}

# The counts of all classes, from the reports, and those of the example, the page and the warnings.
# A line of its own: Maven ends without one.
count() {
  sed -n 's/^Tests run: \([0-9]*\), Failures: \([0-9]*\), Errors: \([0-9]*\), Skipped: \([0-9]*\).*/\1 \2 \3 \4/p' \
    "$OUT"/target/surefire-reports/*.txt |
    awk -v p="$1" -v f="$2" '{p += $1 - $2 - $3 - $4; f += $2 + $3} END {print "\n" p + 0 " passed, " f + 0 " failed"}'
}

# Some peers look into the JDK; one would tell its makers that it is used.
OPENS=$(printf -- '--add-opens=java.base/%s=ALL-UNNAMED ' java.lang java.lang.reflect java.io java.nio \
  java.util sun.nio.ch)
OPENS+=$(printf -- ' --add-exports=java.base/%s=ALL-UNNAMED' jdk.internal.ref jdk.internal.misc sun.nio.ch)
OPENS+=' --add-exports=jdk.compiler/com.sun.tools.javac.file=ALL-UNNAMED'
OPENS+=' --add-opens=jdk.compiler/com.sun.tools.javac=ALL-UNNAMED'
OPENS+=' -Dchronicle.analytics.disable=true'
readonly OPENS

# The benches, and each map whose library could be had.
compile_bench() {
  local map
  rm -rf $OUT/bench
  mkdir -p $OUT/bench $OUT/peers
  mvn -q -B -f $MODULE/bench/pom.xml dependency:copy-dependencies "-DoutputDirectory=$PWD/$OUT/peers" >&2 ||
    say "larder: not all maps could be had"
  readonly CLASSES="$OUT/larder.jar:$OUT/bench:$OUT/peers/*"
  javac --release 17 -cp "$CLASSES" -d $OUT/bench $MODULE/bench/*.java
  for map in "$MODULE"/bench/maps/*.java; do
    javac --release 17 -cp "$CLASSES" -d $OUT/bench "$map" || say "larder: without $(basename "$map" .java)"
  done
}

# run CLASS ROWS ARGUMENT...
run() {
  # shellcheck disable=SC2086
  java "-Xmx${HEAP:-256m}" "-XX:MaxDirectMemorySize=${DIRECT:-8g}" $OPENS "-Drows=$3" -cp "$CLASSES" "$@"
}

bench() {
  local map
  compile_bench
  echo "longs to longs, $1 rows, a heap of ${HEAP:-256m}; nanoseconds a call, a scan's a row"
  echo
  echo '| map                    |     fill |      put |      get |      add |     scan | longest ms |    GC ms | heap MiB |  RSS MiB |'
  echo '|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|'
  for map in LarderLongs LarderBoxed SkipList Hash Fastutil Caffeine MapDb Chronicle; do
    [ -e $OUT/bench/$map.class ] || continue
    run MapBench $map "$1" "$2" "$(sed -n 's|^// name: ||p' $MODULE/bench/maps/$map.java)" 2>$OUT/bench/$map.log ||
      say "larder: $map did not end: $(grep -m 1 -E 'Error|Exception' $OUT/bench/$map.log)"
  done
}

# Writes at a rate.
pace() {
  compile_bench
  run PaceBench "$@"
}

main() {
  local status=0
  case $1 in
    bench) bench "$2" "$3"; return ;;
    example) shift; example $OUT/larder.jar "$@"; return ;;
    pace) shift; pace "$@"; return ;;
  esac
  have javac && have mvn || die "a JDK of 17 or newer and Maven are needed: make setup-jvm"
  same_version
  put_library "$2"
  case $1 in
    package)
      maven package -DskipTests
      # Jars of earlier versions may lie there, too. A program that runs has the old one open.
      cp "$OUT/target/larder-$(jar_version).jar" $OUT/larder.jar.new
      mv -f $OUT/larder.jar.new $OUT/larder.jar ;;
    test)
      rm -rf $OUT/target/surefire-reports
      maven package -Dmaven.compiler.failOnWarning=true || status=$?
      local failed=0
      example $OUT/target/classes 2000 2 3 || failed=1
      page_program $OUT/target/classes || failed=$((failed + 1))
      # cat fails where there is nothing to warn of: the last command counts.
      (set +o pipefail; no_warnings) || failed=$((failed + 1))
      [ $failed = 0 ] || status=1
      count $((3 - failed)) $failed
      return $status ;;
    *) die "jvm.sh: unknown part '$1' (package or test)" ;;
  esac
}

[ $# -ge 2 ] || die "jvm.sh: package or test, and the native library; or example, bench or pace and what they take"
main "$@"
