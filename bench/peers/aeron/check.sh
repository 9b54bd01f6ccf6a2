#!/bin/sh
# Holds the peer to short runs of a real cluster, to its refusals, and to leaving nothing behind.
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
peer=aeron
# shellcheck source=bench/peers/checks.sh
. "$here/../checks.sh"
export AERON_PEER_JAVA_OPTS="-Xms128m -Xmx256m"

"$here/run.sh" --build-only

data=$work/data
mkdir "$data"
expect 0 '"check":"equal"' --dir "$data" --outstanding 1 --seconds 1 --warmup 1 --idle sleeping
expect 0 '"sync":false,' --dir "$data" --outstanding 100 --seconds 1 --warmup 1 --idle backoff --sync 0 --threading dedicated --mtu 1408
expect 0 '"offered":1000,"sync":true,' --dir "$data" --offered 1000 --seconds 1 --warmup 1 --idle sleeping --value-bytes 24
expect 0 '"members":1,' --dir "$data" --outstanding 10 --members 1 --seconds 1 --warmup 0 --client-idle sleeping
expect 0 "usage: run.sh" --help
expect 2 "one of --outstanding N and --offered RATE" --dir "$data"
expect 2 "one of --outstanding N and --offered RATE" --dir "$data" --outstanding 1 --offered 1
expect 2 "--dir DIR" --outstanding 1
expect 2 "is not a folder" --outstanding 1 --dir "$work/missing"
expect 2 "--members must be 1, 3 or 5" --dir "$data" --outstanding 1 --members 2
expect 2 "--sync must be a whole number from 0 to 2" --dir "$data" --outstanding 1 --sync 3
expect 2 "--idle must be one of [backoff, sleeping, yielding]" --dir "$data" --outstanding 1 --idle spin
expect 2 "--threading must be one of" --dir "$data" --outstanding 1 --threading many
expect 2 "take 1408" --dir "$data" --outstanding 1 --mtu 1409
expect 2 "--value-bytes must be a whole number from 24" --dir "$data" --outstanding 1 --value-bytes 8
expect 2 "there is no option '--outstand'" --dir "$data" --outstand 1
expect 2 "needs a value after it" --dir "$data" --outstanding

# Interrupted once its members answer: nothing may stay.
"$here/run.sh" --dir "$data" --outstanding 1 --seconds 60 --idle sleeping >"$work/output" 2>&1 &
peer=$!
while kill -0 "$peer" 2>/dev/null && ! grep -q members "$work/output"; do :; done
memory=$(find /dev/shm -maxdepth 1 -name 'aeron-peer-*' -newer "$data" 2>/dev/null || true)
kill -TERM "$peer"
wait "$peer" || true
for left in $memory; do
    [ ! -e "$left" ] || { failed "$left was left behind"; }
done
if [ -n "$(ls -A "$data")" ] || grep -qsF "$data" /proc/[0-9]*/cmdline; then
    failed "members or their folders were left behind"
fi

finish
