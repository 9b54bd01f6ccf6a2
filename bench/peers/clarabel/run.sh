#!/bin/sh
# Builds the Clarabel peer when it is not built yet, then runs it: see README.md, or the head of src/main.rs.
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
program=$here/target/release/clarabel-prices

fail() {
    echo "clarabel peer: $1" >&2
    exit 2
}

if [ ! -x "$program" ] || [ "$here/src/main.rs" -nt "$program" ] || [ "$here/Cargo.lock" -nt "$program" ]; then
    command -v cargo >/dev/null 2>&1 || fail "cargo is missing; install Rust (https://rustup.rs) and run this again."
    cargo build --release --locked --quiet --manifest-path "$here/Cargo.toml" --target-dir "$here/target" >&2 ||
        fail "the build failed (its output is above); it needs the crates of Cargo.lock, so a network the first time."
fi
[ "${1:-}" = --build-only ] && exit 0
exec "$program" "$@"
