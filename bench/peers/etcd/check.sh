#!/bin/sh
# Holds the driver to its own tests, to short runs of a real cluster, to its refusals, and to leaving nothing behind.
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

"$here/run.sh" --build-only
(cd "$here" && go vet ./driver && go test ./driver && test -z "$(gofmt -l driver)") || failures=$((failures + 1))

# expect STATUS WORDS ARGUMENT...: the exit status, and words that its output must hold.
expect() {
    status=$1 words=$2
    shift 2
    got=0
    "$here/run.sh" "$@" >"$work/output" 2>&1 || got=$?
    if [ "$got" -ne "$status" ] || ! grep -qF -e "$words" "$work/output"; then
        echo "FAILED: run.sh $*: status $got, wanted $status and '$words':" >&2
        cat "$work/output" >&2
        failures=$((failures + 1))
    else
        echo "ok: run.sh $*"
    fi
}

data=$work/data
mkdir "$data"
expect 0 '"check":"equal"' --dir "$data" --seconds 1 --warmup 0
expect 0 '"clients":50,"conns":10,' --dir "$data" --clients 50 --conns 10 --seconds 1 --warmup 1 --target all
expect 0 '"members":1,' --dir "$data" --members 1 --seconds 1 --warmup 0
expect 0 "connections that the clients share" --help
expect 2 "--dir DIR"
expect 2 "is not a folder" --dir "$work/missing"
expect 2 "--members must be 1, 3 or 5" --dir "$data" --members 2
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
grep -qF "interrupted" "$work/output" || { echo "FAILED: an interrupted run did not say so" >&2; failures=$((failures + 1)); }
if [ -n "$(ls -A "$data")" ] || grep -qsF "$data" /proc/[0-9]*/cmdline; then
    echo "FAILED: members or their folders were left behind" >&2
    failures=$((failures + 1))
fi

if [ "$failures" -gt 0 ]; then
    echo "$failures checks failed" >&2
    exit 1
fi
echo "etcd peer: all checks passed"
