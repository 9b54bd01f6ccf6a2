#!/bin/sh
# Builds the etcd peer when it is not built yet, then runs it: see README.md, or `run.sh --help`.
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
target=$here/target
stamp=$target/.built

fail() {
    echo "etcd peer: $1" >&2
    exit 2
}

if [ ! -f "$stamp" ] || [ -n "$(find "$here/go.mod" "$here/go.sum" "$here/driver" -newer "$stamp" -print -quit)" ]; then
    command -v go >/dev/null 2>&1 ||
        fail "go is missing; install Go 1.26 or newer (https://go.dev/doc/install) and run this again."
    mkdir -p "$target"
    # The server is etcd's own main package, unchanged; both are built from the versions that go.mod and go.sum pin.
    if ! (cd "$here" && go build -trimpath -o "$target/etcd" go.etcd.io/etcd/server/v3 &&
        go build -trimpath -o "$target/driver" ./driver) >"$target/build.log" 2>&1; then
        cat "$target/build.log" >&2
        fail "the build failed (its output is above); if it could not download, check that Go reaches its module proxy (go env GOPROXY), then run this again."
    fi
    touch "$stamp"
fi
[ "${1:-}" = --build-only ] && exit 0
exec "$target/driver" --etcd "$target/etcd" "$@"
