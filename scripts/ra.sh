#!/bin/bash
# Ra, the Raft library, for the tests of larder_ra and the example: _build/ra/ra-2.2.0 and the
# applications that it needs, from Debian's package rabbitmq-server, which is not installed.
#
#   scripts/ra.sh     unpacks them, unless they are there
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/common.sh

readonly PLACE=_build/ra RABBITMQ=rabbitmq-server=3.10.8-1.1+deb12u1
[ -e "$PLACE/.made" ] && exit

all=$(mktemp -d)
trap 'rm -rf "$all"' EXIT
# A point release of Debian replaces the package.
(unpack "$all" "$RABBITMQ") || { say "larder: taking the rabbitmq-server that there is"; unpack "$all" rabbitmq-server; }
rm -rf "$PLACE" && mkdir -p "$PLACE"
for application in ra aten gen_batch_server seshat; do
  cp -r "$all"/usr/lib/rabbitmq/lib/*/plugins/"$application"-* "$PLACE/" || die "rabbitmq-server has no $application"
done
touch "$PLACE/.made"
