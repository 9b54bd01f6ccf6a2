#!/usr/bin/env bash
# Checks the toolchains, and installs what is needed beside them, or says the one line to run.
#   tools/setup.sh build   Rust, Node.js and a C compiler: what the program and its page need
#   tools/setup.sh test    also rustfmt, clippy, Chromium and Python: what the tests need
set -euo pipefail
cd "$(dirname "$0")/.."

case "${1:-}" in
    build | test) part=$1 ;;
    *) printf 'usage: tools/setup.sh build|test\n' >&2; exit 2 ;;
esac

say() { printf 'setup: %s\n' "$*" >&2; }
stop() { say "$1"; say "run this, then try again: $2"; exit 1; }
has() { command -v "$1" >/dev/null 2>&1; }
# at_least 20.20.2 20.19
at_least() { [ "$(printf '%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]; }

# The versions are those that the manifests ask for.
rust_wanted=$(sed -nE 's/^rust-version = "([0-9.]+)".*/\1/p' Cargo.toml)
node_wanted=$(sed -nE 's/.*"node": *">=([0-9.]+)".*/\1/p' web/package.json)
python_wanted=3.11

rustup_line="curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh"
{ has cargo && has rustc; } || stop "Rust is missing, $rust_wanted or newer is needed" "$rustup_line"
rust=$(rustc --version | sed -E 's/^rustc ([0-9.]+).*/\1/') || rust=0
if ! at_least "$rust" "$rust_wanted"; then
    if has rustup; then line='rustup update stable && rustup default stable'; else line=$rustup_line; fi
    stop "Rust $rust_wanted or newer is needed, this is $rust" "$line"
fi
if [ "$part" = test ]; then
    for component in rustfmt clippy; do
        cargo "${component/rustfmt/fmt}" --version >/dev/null 2>&1 || rustup component add "$component"
    done
fi

# `n` is a manager of Node versions; it installs under /usr/local.
{ has node && has npm; } || stop "Node.js or npm is missing, Node.js $node_wanted or newer is needed" \
    "sudo sh -c 'apt-get update && apt-get install -y nodejs npm && npx --yes n lts' && hash -r"
node=$(node --version | sed -E 's/^v([0-9.]+).*/\1/') || node=0
at_least "$node" "$node_wanted" || stop "Node.js $node_wanted or newer is needed, this is $node" "sudo npx --yes n lts && hash -r"

# Without these nothing is built; the others are only for tests.
needed=()
program=$'#include <string.h>\nint main(void) { return (int)strlen(""); }'
${CC:-cc} -x c -o /dev/null - >/dev/null 2>&1 <<<"$program" || needed+=(gcc libc6-dev)

wanted=()
python=${PYTHON:-python3}
if [ "$part" = test ]; then
    has "${CHROMIUM:-chromium-headless-shell}" || wanted+=(chromium-headless-shell)
    # The page is looked at in Chinese too.
    { has fc-list && [ -n "$(fc-list :lang=zh-cn family)" ]; } || wanted+=(fontconfig fonts-wqy-microhei)
    # The tests of the Python package run in a virtual environment of their own.
    has "$python" || wanted+=(python3)
    "$python" -c 'import ensurepip, venv' >/dev/null 2>&1 || wanted+=(python3-venv)
fi

missing=(${needed[@]+"${needed[@]}"} ${wanted[@]+"${wanted[@]}"})
if [ ${#missing[@]} -gt 0 ]; then
    line="apt-get update && apt-get install -y --no-install-recommends ${missing[*]}"
    if [ "$(id -u)" = 0 ] && has apt-get; then
        say "installing ${missing[*]} (about a minute)"
        DEBIAN_FRONTEND=noninteractive tools/quietly.sh "setup: fetching the list of packages" apt-get update -qq \
            && DEBIAN_FRONTEND=noninteractive tools/quietly.sh "setup: apt-get install ${missing[*]}" \
                apt-get install -y -qq --no-install-recommends "${missing[@]}" \
            || { say "that failed; run: $line"; exit 1; }
    else
        say "run this once: sudo sh -c '$line'"
        if [ ${#needed[@]} -gt 0 ]; then
            say "(a C compiler is needed to build the venue)"
            exit 1
        fi
        say "(the browser and the font are only for the page's own tests, Python for its package's; the venue runs without them)"
        [ -z "${CI:-}" ] || exit 1
    fi
fi

if [ "$part" = test ] && has "$python" && ! "$python" -c "import sys; sys.exit(sys.version_info < ($(sed 's/\./, /' <<<"$python_wanted")))"; then
    say "the tests of the Python package need Python $python_wanted or newer, and $("$python" --version) is none: name one with make PYTHON=python$python_wanted ..."
    [ -z "${CI:-}" ] || exit 1
fi
