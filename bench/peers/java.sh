# Sourced by the run.sh of a peer in Java, which has set `here`, its folder, and `peer`, its name: builds $jar by Maven where it is not built
# yet or older than its source.
# shellcheck shell=sh disable=SC2154
jar=$here/target/$peer-peer.jar
stamp=$here/target/.built

fail() {
    echo "$peer peer: $1" >&2
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
