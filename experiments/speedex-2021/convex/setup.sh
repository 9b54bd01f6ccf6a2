#!/usr/bin/env bash
# Makes the Python environment in which the convex program runs: target/speedex-convex. Needs Python 3.11 or newer with venv.
set -euo pipefail
folder=$(cd "$(dirname "$0")" && pwd)
environment=${1:-$folder/../../../target/speedex-convex}
python3 -m venv "$environment"
"$environment/bin/pip" install --quiet --disable-pip-version-check --requirement "$folder/requirements.txt"
"$environment/bin/python" "$folder/program.py" --check
