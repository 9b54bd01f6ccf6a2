#!/bin/sh
# Builds the GLPK peer when it is not built yet, then runs it: see README.md, or the head of solve.c.
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
program=$here/target/solve

fail() {
    echo "glpk peer: $1" >&2
    exit 2
}

if [ ! -x "$program" ] || [ "$here/solve.c" -nt "$program" ]; then
    command -v cc >/dev/null 2>&1 || fail "cc is missing; install a C compiler (Debian: apt-get install gcc) and run this again."
    mkdir -p "$here/target"
    if ! cc -O2 -std=c11 -D_POSIX_C_SOURCE=200809L -Wall -Wextra -o "$program" "$here/solve.c" -lglpk >"$here/target/build.log" 2>&1; then
        cat "$here/target/build.log" >&2
        fail "the build failed (its output is above); if glpk.h is missing, install GLPK (Debian: apt-get install libglpk-dev) and run this again."
    fi
fi
[ "${1:-}" = --build-only ] && exit 0
exec "$program" "$@"
