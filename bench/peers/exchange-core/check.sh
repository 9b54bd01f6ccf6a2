#!/bin/sh
# Runs every mode of the peer on eleven commands whose result was worked out by hand, and holds every refusal to its words.
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
peer=exchange-core
# shellcheck source=bench/peers/checks.sh
. "$here/../checks.sh"
export EC_PEER_JAVA_OPTS="-Xms256m -Xmx256m -XX:-AlwaysPreTouch"

"$here/run.sh" --build-only

python3 - "$work/small.bin" <<'PYTHON'
import struct, sys
GTC, IOC, CANCEL, MOVE, REDUCE, ASK, BID = 0, 1, 2, 3, 4, 0, 1
records = [
    (GTC, ASK, 1, 1, 101, 5),
    (GTC, ASK, 2, 2, 101, 3),
    (GTC, BID, 3, 3, 99, 4),
    (GTC, BID, 1, 4, 101, 6),  # takes 5 of order 1 and 1 of order 2
    (REDUCE, 0, 2, 2, 0, 1),  # leaves 1 of order 2
    (MOVE, 0, 3, 3, 101, 0),  # takes that 1, rests with 3 at 101
    (IOC, ASK, 2, 5, 100, 5),  # takes those 3, the other 2 are dropped
    (GTC, ASK, 1, 6, 105, 7),
    (GTC, ASK, 2, 7, 104, 2),
    (GTC, BID, 3, 8, 100, 9),
    (CANCEL, 0, 1, 6, 0, 0),
]
hash = 1469598103934665603
for word in (104, 2, 100, 9):
    hash = (hash ^ word) * 0x100000001B3 % 2**64
with open(sys.argv[1], "wb") as out:
    for op, side, user, order_id, price, size in records:
        out.write(struct.pack("<BBHIqqq", op, side, 0, user, order_id, price, size))
with open(sys.argv[1] + ".expect", "w") as out:
    out.write(f"trades 4 volume 10\nlevels ask 1 bid 1 orders ask 1 bid 1\nl2hash(fnv1a64) {hash}\n")
PYTHON

small=$work/small.bin
equal='"check":"equal","checked_against":"expect-file"'
mkdir "$work/journal"
expect 0 "$equal" book-direct "$small" --rounds 2
expect 0 "$equal" book-direct "$small" --rounds 2 --events drop
expect 0 "$equal" book-direct "$small" --rounds 2 --untimed 3
expect 0 "$equal" book-naive "$small" --rounds 2
expect 0 "$equal" book-latency "$small" --rounds 2
expect 0 "$equal" pipeline "$small" --rounds 2
expect 0 "$equal" pipeline "$small" --rounds 2 --wait blocking --risk exchange --maker-fee 1 --taker-fee 2
expect 0 "$equal" pipeline-journal "$small" --rounds 2 --journal-dir "$work/journal"
expect 0 "$equal" pipeline-latency "$small" 1000 --rounds 2
expect 0 '"checked_against":"own-book"' pipeline "$small" --rounds 1 --commands 5
if [ -n "$(ls -A "$work/journal")" ]; then
    failed "the journal was left behind"
fi

sed 's/volume 10/volume 11/' "$small.expect" >"$work/wrong.expect"
expect 1 "the result differs: expected trades 4 volume 11" book-direct "$small" --rounds 1 --expect "$work/wrong.expect"
expect 1 "the result differs: expected trades 4 volume 11" book-direct "$small" --rounds 1 --events drop --expect "$work/wrong.expect"
expect 1 "the result differs: expected trades 4 volume 11" pipeline "$small" --rounds 1 --expect "$work/wrong.expect"
tail -c 32 "$small" >"$work/cancel-only.bin"
expect 1 "1 commands were refused" book-direct "$work/cancel-only.bin"

head -c 33 "$small" >"$work/torn.bin"
head -c 32 /dev/zero >"$work/zero.bin"
printf '\3757zXZ\0' >"$work/small.bin.xz"
: >"$work/empty.expect"
expect 2 "a mode and a file are needed"
expect 2 "there is no mode 'book'" book "$small"
expect 2 "takes one file" book-direct
expect 2 "takes a file and a rate" pipeline-latency "$small"
expect 2 "is not a file" book-direct "$work/missing.bin"
expect 2 "not a positive multiple of the 32-byte record" book-direct "$work/torn.bin"
expect 2 "record 0 of" book-direct "$work/zero.bin"
expect 2 "still compressed" book-direct "$work/small.bin.xz"
expect 2 "lacks its" book-direct "$small" --expect "$work/empty.expect"
expect 2 "RATE must be a whole number" pipeline-latency "$small" fast
expect 2 "there is no option '--round'" pipeline "$small" --round 1
expect 2 "--rounds needs a value" pipeline "$small" --rounds
expect 2 "--rounds must be a whole number from 1" pipeline "$small" --rounds 0
expect 2 "--wait must be one of [blocking, busy-spin, yielding]" pipeline "$small" --wait sleeping
expect 2 "must be a power of two" pipeline "$small" --ring 1000
expect 2 "at most a quarter of --ring" pipeline "$small" --ring 1024
expect 2 "at least --maker-fee" pipeline "$small" --maker-fee 1
expect 2 "leaves nothing to be timed" book-direct "$small" --untimed 11
expect 2 "--untimed is of book-direct" pipeline "$small" --untimed 1
expect 2 "--journal-dir DIR" pipeline-journal "$small"
expect 2 "is not a folder" pipeline-journal "$small" --journal-dir "$work/missing"

finish
