#!/bin/sh
# Runs the program briefly, which counts each datagram itself, and checks the words of refusals.
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
peer=io-uring
# shellcheck source=bench/peers/checks.sh
. "$here/../checks.sh"

"$here/run.sh" --build-only
expect 0 'io_uring receive' 10 single
expect 0 'io_uring, segments' 10 joined
expect 2 'usage:' 0
expect 2 'usage:' 10 both
finish
