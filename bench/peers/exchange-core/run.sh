#!/bin/sh
# Builds the exchange-core peer when it is not built yet, then runs it: see README.md, or `run.sh --help`.
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
peer=exchange-core
# shellcheck source=bench/peers/java.sh
. "$here/../java.sh"
[ "${1:-}" = --build-only ] && exit 0

# The heap is fixed and touched before the first round, so that no round pays for growing it.
# Chronicle Bytes and Wire reach by reflection into what the three openings name; without one the peer hangs after its first command.
# EC_PEER_JAVA_OPTS comes last: what it sets wins.
# shellcheck disable=SC2086
exec java -Xms4g -Xmx4g -XX:+AlwaysPreTouch -XX:+UseParallelGC \
    --add-opens java.base/java.lang=ALL-UNNAMED \
    --add-opens java.base/java.nio=ALL-UNNAMED \
    --add-opens java.base/sun.nio.ch=ALL-UNNAMED \
    -Dorg.slf4j.simpleLogger.defaultLogLevel=warn \
    ${EC_PEER_JAVA_OPTS:-} -jar "$jar" "$@"
