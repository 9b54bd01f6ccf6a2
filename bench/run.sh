#!/usr/bin/env bash
# Builds and runs a bench: bench/run.sh NAME|all [options], as `make bench NAME=...` does; `target/release/walras-bench --help` lists
# both.
# Prints a table and writes bench/results/NAME.json. Everything else on the machine takes time away from what is measured: run nothing
# beside it. docs/performance.md says how to read the figures.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

names=${1:-all}
shift || true

fail() {
    echo "bench: $1" >&2
    exit 2
}

command -v cargo >/dev/null || fail "cargo is missing; install Rust (https://rustup.rs) and run this again."
command -v setsid >/dev/null || fail "setsid is missing; install util-linux (Debian: apt-get install util-linux) and run this again."

# The peer is built before anything is measured. It may be missing: the report then says so.
bench/peers/exchange-core/run.sh --build-only || echo "bench: going on without exchange-core" >&2

# Peers that their bench would build are built now, for a build during the bench would count as load.
case "$names" in batch | all)
    for peer in clarabel glpk; do
        bench/peers/$peer/run.sh --build-only || echo "bench: going on without $peer" >&2
    done
    ;;
esac

# Linux shares the processors first among sessions, then among the processes of one: in a session of its own with more weight the bench
# is not slowed by a build in the next window. The weight is a nice value; going below 0 needs the right to.
in_own_session() {
    # shellcheck disable=SC2016
    setsid bash -c '
        if [ -w /proc/self/autogroup ]; then { echo -15 >/proc/self/autogroup; } 2>/dev/null || true; fi
        exec "$@"' bash "$@" &
    child=$!
    # A session of its own does not get the interrupt of the keyboard.
    trap 'kill -TERM -- "-$child" 2>/dev/null; exit 130' INT TERM
    wait "$child"
}

features=()
case "$names" in overlay | all) features=(--features walras-bench/strategies) ;; esac
cargo build --release -p walras-bench -p walras-node "${features[@]}"
case "$names" in promises | all) cargo build --release -p walras-node --example rehearsal ;; esac
case "$names" in overlay | all) cargo build --release -p walras-experiments-jasper-2024 ;; esac
[ "$names" = all ] && names=$(target/release/walras-bench list)
for name in $names; do
    echo "== $name" >&2
    in_own_session target/release/walras-bench "$name" "$@"
done
