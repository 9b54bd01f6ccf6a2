"""The program of docs/binance.md does what it says."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys

from steps import Steps
from venue import Venue

steps = Steps("document")
PAGE = pathlib.Path(__file__).parents[2] / "docs" / "binance.md"


@steps.step
def program(running: Venue) -> None:
    found = re.search(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert found
    text = found[1]
    key = {"BASE_URL": running.rest, "API_KEY": running.taker.api_key, "SECRET": running.taker.secret}
    done = subprocess.run([sys.executable, "-c", text], env={**os.environ, **key}, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "tick 0.01 lot 0.0001" and lines[1].endswith("open") and lines[-2] == "cancelled canceled", lines


if __name__ == "__main__":
    steps.run(lambda running: running)
