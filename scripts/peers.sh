#!/bin/bash
# What `make bench-peers` does before it measures: gets what the stores from elsewhere need, one by
# one, and says of each that it could not get. Nothing that is missing stops the rest.
#
#   peers.sh debian   Debian's packages: the libraries that cpp/*.cc name, redis-server, memcached
#   peers.sh jvm      the JVM's maps: their jars by version and checksum, through Maven, and a
#                     javac for each that could be had
#
# The JVM's go to _build/peers/jvm: jars/, classes/, and peers.txt, a line `CLASS<TAB>NAME` each.
set -uo pipefail
cd "$(dirname "$0")/.."
. scripts/common.sh

readonly PEERS=crates/larder-bench JVM=_build/peers/jvm LIST=_build/peers/missing.txt
missing=0

# What could not be had goes to a file, too: the report says it.
lacks() { say "larder: could not get $1"; echo "$1: could not be installed" >>"$LIST"; missing=$((missing + 1)); }

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; elif have sudo; then sudo "$@"; else return 1; fi
}

installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

# install PACKAGE: quietly, if it is not there. RUNLEVEL=1: a server's package starts no service;
# the bench starts its own.
install() {
  installed "$1" && return
  say "larder: installing $1 from Debian's packages"
  as_root env RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y -q --no-install-recommends "$1" >/dev/null 2>&1
}

# The value of `// NAME: ` in a peer's first comments.
fact() { sed -n "s|^// $2: ||p" "$1" | head -1; }

debian() {
  have apt-get || { lacks "the C++ libraries and the servers: this is no Debian"; return; }
  local package packages
  packages=$(for f in "$PEERS"/cpp/*.cc; do fact "$f" package; done | sort -u)
  for package in $packages redis-server memcached; do
    if ! installed "$package" && [ -z "${updated:-}" ]; then as_root apt-get update -q >/dev/null 2>&1; updated=yes; fi
    install "$package" || lacks "$package"
  done
}

# jar GROUP:NAME:VERSION SHA256: into jars/, if it is what it should be.
jar() {
  local file=$JVM/jars/$(cut -d: -f2 <<<"$1")-$(cut -d: -f3 <<<"$1").jar
  if ! [ -s "$file" ]; then
    mvn -q -B dependency:copy "-Dartifact=$1" "-DoutputDirectory=$PWD/$JVM/jars" >&2 || return 1
  fi
  if ! echo "$2  $file" | sha256sum -c --quiet - >/dev/null 2>&1; then
    say "larder: $file is not what it should be"
    rm -f "$file"
    return 1
  fi
}

jvm() {
  have javac || install openjdk-17-jdk-headless
  have mvn || install maven
  have javac || { lacks "the JVM's maps: no javac"; return; }
  mkdir -p "$JVM/jars" "$JVM/classes"
  : >"$JVM/peers.txt.new"
  javac -d "$JVM/classes" "$PEERS/jvm/Bench.java" || { lacks "the JVM's maps"; return; }
  local source class name type pin
  while IFS='|' read -r class name type pin; do
    class=${class% } name=${name# } name=${name% } pin=${pin# } type=${type# }
    # shellcheck disable=SC2086
    if [ -n "$pin" ] && ! { have mvn && jar $pin </dev/null; }; then lacks "$name"; continue; fi
    source=$JVM/$class.java
    sed "s|CLASS|$class|; s|TYPE|${type% }|g" "$PEERS/jvm/Map.java.in" >"$source"
    if javac -cp "$JVM/classes:$JVM/jars/*" -d "$JVM/classes" "$source"; then
      printf '%s\t%s\n' "$class" "$name" >>"$JVM/peers.txt.new"
    else
      lacks "$name"
    fi
  done < <(grep -v '^#' "$PEERS/jvm/maps.txt")
  mv -f "$JVM/peers.txt.new" "$JVM/peers.txt"
}

mkdir -p "${LIST%/*}" && : >"$LIST"
for part in "$@"; do
  case $part in
    debian) debian ;;
    jvm)    jvm ;;
    *) die "peers.sh: unknown part '$part' (debian or jvm)" ;;
  esac
done
[ "$missing" = 0 ] || say "larder: $missing peers or packages could not be had; the rest is measured."
exit 0
