"""A wheel with the venue's program in it: `pip install` into an empty environment, then `walras demo` serves its page."""

from __future__ import annotations

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import urllib.request
import venv

import pytest

WHEEL = os.environ.get("WALRAS_FULL_WHEEL")
PATIENCE_S = 120
PAGE = re.compile(r"^Open (http://127\.0\.0\.1:\d+/)#demo=", re.MULTILINE)

pytestmark = pytest.mark.skipif(not WHEEL, reason="needs a wheel with the program in it: `make python-wheel-full` sets WALRAS_FULL_WHEEL")


def get(url: str) -> tuple[str, bytes]:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.headers["content-type"], answer.read()


def test_demo_runs_after_pip_install(tmp_path: pathlib.Path) -> None:
    assert WHEEL
    venv.create(tmp_path / "venv", with_pip=True)
    programs = tmp_path / "venv" / "bin"
    # Nothing of this shell is to be needed: neither its paths nor its packages.
    environment = {"PATH": f"{programs}:/usr/bin:/bin", "HOME": str(tmp_path)}
    installed = subprocess.run(
        [programs / "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", WHEEL],
        env=environment, cwd=tmp_path, capture_output=True, text=True,
    )
    assert installed.returncode == 0, installed.stdout + installed.stderr
    log = tmp_path / "demo.log"
    with log.open("w") as out:
        command = ["walras", "demo", "--listen", "127.0.0.1:0"]
        demo = subprocess.Popen(command, env=environment, cwd=tmp_path, stdout=out, stderr=subprocess.STDOUT)
    try:
        begun = time.monotonic()
        while (page := PAGE.search(log.read_text())) is None:
            assert demo.poll() is None and time.monotonic() - begun < PATIENCE_S, log.read_text()
            time.sleep(0.05)
        kind, body = get(page[1])
        assert kind.startswith("text/html") and b"<title>Walras" in body, body[:500]
        # What the page loads is in the program too.
        scripts = re.findall(rb'src="/?([^"]+\.js)"', body)
        assert scripts and all(b"" != get(page[1] + script.decode())[1] for script in scripts), body
        before = int(json.loads(get(page[1] + "v1/status")[1])["log_index"])
        while int(json.loads(get(page[1] + "v1/status")[1])["log_index"]) < before + 100:
            assert demo.poll() is None and time.monotonic() - begun < PATIENCE_S, log.read_text()
            time.sleep(0.05)
        demo.send_signal(signal.SIGINT)
        assert demo.wait(PATIENCE_S) == 0, log.read_text()
    finally:
        demo.kill()
        demo.wait()
    assert (tmp_path / ".walras" / "demo").is_dir(), "the data folder is where the command was given"
    # The package finds the program that it has, and is the one of this environment.
    shown = "import pathlib, walras._program; print(walras._program.program())"
    found = subprocess.run([programs / "python", "-c", shown], env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert found.stdout.startswith(str(tmp_path / "venv")) and found.stdout.strip().endswith("_bin/walras"), found.stdout + found.stderr
    assert sys.prefix not in found.stdout
