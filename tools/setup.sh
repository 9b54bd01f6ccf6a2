#!/usr/bin/env bash
# Installs what the build and the tests need beside the Rust, Node and Python toolchains, or says the one line to run.
set -euo pipefail
cd "$(dirname "$0")/.."

missing=()
say() { printf 'setup: %s\n' "$*" >&2; }

need_tool() { # name, what to do
    command -v "$1" >/dev/null 2>&1 || { say "$1 is missing: $2"; exit 1; }
}
need_tool cargo "install Rust 1.88 or newer"
need_tool node "install Node.js 20 or newer"
need_tool npm "install npm (it comes with Node.js)"
python=${PYTHON:-python3}

rust_minor=$(rustc --version | sed -E 's/^rustc 1\.([0-9]+).*/\1/')
[ "$rust_minor" -ge 88 ] || { say "Rust 1.88 or newer is needed, this is $(rustc --version)"; exit 1; }
for component in rustfmt clippy; do
    cargo "${component/rustfmt/fmt}" --version >/dev/null 2>&1 || rustup component add "$component"
done

have_browser() { command -v "${CHROMIUM:-chromium}" >/dev/null 2>&1; }
have_browser || missing+=(chromium)

# The tests of the Python package run in a virtual environment of their own.
command -v "$python" >/dev/null 2>&1 || missing+=(python3)
"$python" -c 'import ensurepip, venv' >/dev/null 2>&1 || missing+=(python3-venv)

if [ ${#missing[@]} -gt 0 ]; then
    line="apt-get update && apt-get install -y --no-install-recommends ${missing[*]}"
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        say "installing ${missing[*]} (about a minute)"
        log=$(mktemp)
        if ! { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
            tail -5 "$log" >&2
            say "that failed; run: $line"
            exit 1
        fi
        rm -f "$log"
    else
        say "run this once: sudo sh -c '$line'"
        say "(chromium is only for the page's own tests, Python for its package's; the venue runs without them)"
        [ "${1:-}" = --allow-missing ] || [ -z "${CI:-}" ] || exit 1
    fi
fi
