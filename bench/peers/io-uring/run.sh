#!/bin/sh
# Builds the measurement when it is not built yet, then runs it: see README.md, or the head of datagrams.c.
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
program=$here/target/datagrams

if [ ! -x "$program" ] || [ "$here/datagrams.c" -nt "$program" ]; then
    command -v cc >/dev/null 2>&1 || {
        echo "io-uring peer: cc is missing; install a C compiler (Debian: apt-get install gcc) and run this again." >&2
        exit 2
    }
    mkdir -p "$here/target"
    cc -O2 -Wall -Wextra -o "$program" "$here/datagrams.c"
fi
[ "${1:-}" = --build-only ] && exit 0
exec "$program" "$@"
