#!/bin/sh
# Solves a problem worked out by hand, and holds every refusal to its words.
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

expect() { # what it should print, then the arguments
    wanted=$1
    shift
    printed=$("$here/run.sh" "$@" 2>&1) || true
    case $printed in
    *"$wanted"*) ;;
    *)
        echo "check: expected '$wanted', got '$printed'" >&2
        failures=$((failures + 1))
        ;;
    esac
}

"$here/run.sh" --build-only

# 100 of asset 0 for asset 1; back at most 60 directly, and at most 30 by way of asset 2: 90 + 60 + 30 + 30.
printf '3 4 0\n0 1 0 100\n1 0 0 60\n1 2 0 50\n2 0 0 30\n' >"$work/hand"
expect '"objective": 210.000000' "$work/hand" --rounds 2
expect '"method": "dual"' "$work/hand" --method dual --rounds 1
# With half kept as commission, all trade: 100 + 60 + 50 + 30, and nobody is short.
printf '3 4 1\n0 1 0 100\n1 0 0 60\n1 2 0 50\n2 0 0 30\n' >"$work/half"
expect '"objective": 240.000000' "$work/half"
printf '2 2 0\n0 1 5 9\n1 0 0 3\n' >"$work/infeasible"
expect 'the bounds of this problem can not hold' "$work/infeasible"
printf '2 1 0\n0 0 0 3\n' >"$work/loop"
expect 'a line is not FROM TO LOWER UPPER' "$work/loop"
printf 'x\n' >"$work/garbage"
expect 'the first line is not' "$work/garbage"
expect 'the file does not open' "$work/absent"
expect '--rounds takes' "$work/hand" --rounds 0

[ "$failures" = 0 ] || exit 1
echo "glpk peer: all checks passed"
