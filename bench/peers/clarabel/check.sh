#!/bin/sh
# Solves a market worked out by hand, and checks the words of refusals.
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
peer=clarabel
# shellcheck source=bench/peers/checks.sh
. "$here/../checks.sh"

"$here/run.sh" --build-only
printf '2 2\n0 1 1 100\n1 0 0.25 200\n' >"$work/hand"
expect 0 '"status": "Solved"' "$work/hand" --rounds 1
printf '2 1\n0 1 1 100\n' >"$work/one-way"
expect 2 'asset 1 is sold by nobody' "$work/one-way"
printf 'x\n' >"$work/garbage"
expect 2 'the first line is not' "$work/garbage"
expect 2 'the file does not open' "$work/absent"
expect 2 '--rounds takes' "$work/hand" --rounds 0
expect 2 'unknown option' "$work/hand" --turns 1
finish
