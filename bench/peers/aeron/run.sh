#!/bin/sh
# Builds the Aeron peer when it is not built yet, then runs it: see README.md, or `run.sh --help`.
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
jar=$here/target/aeron-peer.jar
stamp=$here/target/.built

fail() {
    echo "aeron peer: $1" >&2
    exit 2
}

command -v java >/dev/null 2>&1 ||
    fail "java is missing; install a JDK 17 (Debian: apt-get install openjdk-17-jdk-headless) and run this again."

if [ ! -f "$stamp" ] || [ -n "$(find "$here/pom.xml" "$here/src" -newer "$stamp" -print -quit)" ]; then
    command -v mvn >/dev/null 2>&1 ||
        fail "mvn is missing; install Maven (Debian: apt-get install maven) and run this again."
    mkdir -p "$here/target"
    if ! mvn -q -B -f "$here/pom.xml" package >"$here/target/build.log" 2>&1; then
        cat "$here/target/build.log" >&2
        fail "the build failed (its output is above); if it could not download, check that Maven reaches Maven Central, then run this again."
    fi
    [ -f "$jar" ] || fail "the build left no $jar; remove $here/target and run this again."
    touch "$stamp"
fi
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
