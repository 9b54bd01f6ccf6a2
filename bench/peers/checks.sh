# Sourced by the check.sh of a peer, which has set `here`, its folder, and `peer`, its name. Gives a folder $work, `expect` and `finish`.
# shellcheck shell=sh disable=SC2154
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

# failed WORDS: a check failed.
failed() {
    echo "FAILED: $1" >&2
    failures=$((failures + 1))
}

# expect STATUS WORDS ARGUMENT...: the exit status, and words that its output must hold.
expect() {
    status=$1 words=$2
    shift 2
    got=0
    "$here/run.sh" "$@" >"$work/output" 2>&1 || got=$?
    if [ "$got" -ne "$status" ] || ! grep -qF -e "$words" "$work/output"; then
        failed "run.sh $*: status $got, wanted $status and '$words':"
        cat "$work/output" >&2
    else
        echo "ok: run.sh $*"
    fi
}

# finish: says what came of it.
finish() {
    if [ "$failures" -gt 0 ]; then
        echo "$peer peer: $failures checks failed" >&2
        exit 1
    fi
    echo "$peer peer: all checks passed"
}
