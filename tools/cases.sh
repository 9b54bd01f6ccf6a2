#!/usr/bin/env bash
# Looks for cases that the property tests do not know yet: tools/cases.sh ROUNDS
# `make test` draws the same cases every time, so that it judges a change and not the draw. This draws others in every round, and says
# with which seed a failure is drawn again.
set -euo pipefail
cd "$(dirname "$0")/.."

rounds=${1:-}
if ! [[ $rounds =~ ^[1-9][0-9]*$ ]]; then
    echo "usage: tools/cases.sh ROUNDS" >&2
    exit 2
fi
mapfile -t crates < <(grep -l '^proptest' ./*/Cargo.toml ./*/*/Cargo.toml | xargs dirname)
for ((round = 1; round <= rounds; round++)); do
    seed=$((RANDOM << 30 | RANDOM << 15 | RANDOM))
    echo "round $round of $rounds: cases of seed $seed" >&2
    if ! PROPTEST_RNG_SEED=$seed tools/run_tests.py "${crates[@]}"; then
        echo "these cases again: PROPTEST_RNG_SEED=$seed cargo test --package NAME (what was found belongs into a test of its own)" >&2
        exit 1
    fi
done
