#!/usr/bin/env bash
# Fuzzes every target for so many seconds: tools/fuzz/run.sh SECONDS [TARGET...]
# What is found is left in tools/fuzz/artifacts, with the line that runs it again. The corpus grows in tools/fuzz/corpus (not committed);
# a find that is mended goes into tools/fuzz/seeds, which the tests of tools/testkit run on every change.
set -euo pipefail
cd "$(dirname "$0")"

seconds=${1:-}
if ! [[ $seconds =~ ^[1-9][0-9]*$ ]]; then
    echo "usage: tools/fuzz/run.sh SECONDS [TARGET...]   (seconds for each target)" >&2
    exit 2
fi
shift
missing=()
rustup toolchain list 2>/dev/null | grep -q '^nightly' || missing+=("rustup toolchain install nightly --profile minimal")
cargo fuzz --version >/dev/null 2>&1 || missing+=("cargo install cargo-fuzz --locked")
if [ ${#missing[@]} -gt 0 ]; then
    line=${missing[0]}
    for more in "${missing[@]:1}"; do line+=" && $more"; done
    echo "fuzz: run this once: $line" >&2
    exit 1
fi

all=$(sed -n 's/^name = "\([a-z_]*\)"$/\1/p' Cargo.toml)
targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then mapfile -t targets <<<"$all"; fi
for target in "${targets[@]}"; do
    grep -qx "$target" <<<"$all" || { echo "fuzz: no target $target; there are: $(tr '\n' ' ' <<<"$all")" >&2; exit 2; }
done

# The sanitizer finds memory errors, which only unsafe code can make; SANITIZER=none fuzzes several times faster.
sanitizer=${SANITIZER:-address}
failed=()
for target in "${targets[@]}"; do
    mkdir -p "corpus/$target"
    if ! cargo +nightly fuzz build --fuzz-dir . -s "$sanitizer" "$target"; then
        echo "fuzz: $target does not build; see above" >&2
        exit 1
    fi
    echo "fuzz: $target, $seconds s"
    if ! cargo +nightly fuzz run --fuzz-dir . -s "$sanitizer" "$target" "corpus/$target" "seeds/$target" -- \
        -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 -max_len=4096 -print_final_stats=1 -verbosity=0; then
        failed+=("$target")
    fi
done
if [ ${#failed[@]} -gt 0 ]; then
    echo "fuzz: found something in: ${failed[*]}; see tools/fuzz/artifacts" >&2
    exit 1
fi
echo "fuzz: nothing found in ${#targets[@]} targets"
