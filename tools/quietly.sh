#!/usr/bin/env bash
# quietly.sh WHAT COMMAND...: runs a command whose output matters only when it fails; then all of it is shown. Once it takes over two seconds,
# says WHAT is being done, and on a terminal for how long already.
set -uo pipefail

what=$1
shift
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# Reads nothing: `read` returns above 128 when its time is over, and 1 once the command is done and the other end is closed.
sign_of_life() {
    local seconds=2
    read -rt "${QUIETLY_PATIENCE_S:-2}"
    [ $? -gt 128 ] || return 0
    if [ ! -t 2 ]; then
        printf '%s\n' "$what" >&2
        return 0
    fi
    while printf '\r%s (%d s)' "$what" "$seconds" >&2 && read -rt 1; [ $? -gt 128 ]; do seconds=$((seconds + 1)); done
    printf '\r\033[K' >&2
}

exec 9> >(sign_of_life)
watcher=$!
"$@" >"$log" 2>&1 </dev/null 9>&-
status=$?
exec 9>&-
wait "$watcher" 2>/dev/null
if [ $status -ne 0 ]; then
    cat "$log" >&2
    printf '%s: that failed (exit status %d)\n' "$what" "$status" >&2
fi
exit $status
