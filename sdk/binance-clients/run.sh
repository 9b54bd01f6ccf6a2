#!/usr/bin/env bash
# Runs the clients of the Binance dialect against a venue of this machine, each in an environment of its own, and prints a line of JSON for
# each: run.sh small (those of `make test`), or run.sh all. WALRAS_PROGRAM is the program. What came of all goes to results.json and into
# docs/binance.md.
set -euo pipefail
cd "$(dirname "$0")"
PYTHON=${PYTHON:-python3}

environment() { # name
  local folder=.venv-$1 list=requirements-$1.txt
  if [ ! -e "$folder/installed" ] || [ "$list" -nt "$folder/installed" ]; then
    $PYTHON -m venv --clear "$folder" \
      && "$folder/bin/pip" install --quiet --disable-pip-version-check --requirement "$list" \
      && touch "$folder/installed"
  fi
}

# The tests leave the repository as it is.
[ "${1:-all}" != all ] || export WALRAS_RECORD=1

failed=0
client() { # environment, program
  { environment "$1" && ".venv-$1/bin/python" "$2"; } || failed=1
}

client small document.py
client small ccxt_client.py
client small python_binance_client.py
if [ "${1:-all}" = all ]; then
  client connector connector_client.py
  client large cryptofeed_client.py
  client large nautilus_client.py
  client freqtrade freqtrade_client.py
  # It needs Python 3.12, and its package is built from its source: minutes.
  newer=${PYTHON312:-$(command -v python3.12 || true)}
  if [ -n "$newer" ] && "$newer" -c 'import sys; sys.exit(sys.version_info < (3, 12))' 2>/dev/null; then
    PYTHON=$newer client hummingbot hummingbot_client.py
  else
    echo "hummingbot was NOT RUN: it needs Python 3.12; PYTHON312 names one" >&2
  fi
  $PYTHON results.py
fi
exit $failed
