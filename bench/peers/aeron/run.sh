#!/bin/sh
# Builds the Aeron peer when it is not built yet, then runs it: see README.md, or `run.sh --help`.
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
peer=aeron
# shellcheck source=bench/peers/java.sh
. "$here/../java.sh"
[ "${1:-}" = --build-only ] && exit 0

# The members run with the same options. What is opened is what Agrona reaches into; without its bounds checks as Aeron's own scripts run it.
# AERON_PEER_JAVA_OPTS comes last: what it sets wins.
# shellcheck disable=SC2086
exec java -Xms512m -Xmx512m -XX:+UseParallelGC \
    --add-opens java.base/jdk.internal.misc=ALL-UNNAMED \
    --add-opens java.base/java.util.zip=ALL-UNNAMED \
    --add-opens java.base/sun.nio.ch=ALL-UNNAMED \
    -Dagrona.disable.bounds.checks=true \
    ${AERON_PEER_JAVA_OPTS:-} -jar "$jar" "$@"
