#!/bin/sh
# Holds the driver to its own tests, to short runs of a real cluster, to its refusals, and to leaving nothing behind.
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
peer=etcd
# shellcheck source=bench/peers/checks.sh
. "$here/../checks.sh"

"$here/run.sh" --build-only
(cd "$here" && go vet ./driver && go test ./driver && test -z "$(gofmt -l driver)") || failed "the driver's own tests"

data=$work/data
mkdir "$data"
expect 0 '"check":"equal"' --dir "$data" --seconds 1 --warmup 0
expect 0 '"clients":50,"conns":10,' --dir "$data" --clients 50 --conns 10 --seconds 1 --warmup 1 --target all
expect 0 '"members":1,' --dir "$data" --members 1 --seconds 1 --warmup 0
expect 0 "connections that the clients share" --help
expect 2 "--dir DIR"
expect 2 "is not a folder" --dir "$work/missing"
expect 2 "--members must be 1, 3, 5 or 7" --dir "$data" --members 2
expect 2 "--clients must be from 1" --dir "$data" --clients 0
expect 2 "--conns may be at most --clients" --dir "$data" --clients 2 --conns 3
expect 2 "--target must be leader or all" --dir "$data" --target some
expect 2 "run.sh --help lists the options" --dir "$data" --client 1
expect 2 "is no option" --dir "$data" now

"$here/run.sh" --dir "$data" --seconds 60 >"$work/output" 2>&1 &
driver=$!
# The first line is printed once the members answer.
while kill -0 "$driver" 2>/dev/null && ! grep -q members "$work/output"; do :; done
kill -TERM "$driver"
wait "$driver" || true
grep -qF "interrupted" "$work/output" || failed "an interrupted run did not say so"
if [ -n "$(ls -A "$data")" ] || grep -qsF "$data" /proc/[0-9]*/cmdline; then
    failed "members or their folders were left behind"
fi

finish
