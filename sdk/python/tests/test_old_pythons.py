"""The package in other interpreters than the one that tests it: its wheel is of the stable ABI, and says that Python 3.9 will do."""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess

import pytest

import walras

#: Run by the other interpreter, with the folder that has the package; no other package is there.
PROGRAM = '''
import importlib, pathlib, sys
sys.path.insert(0, sys.argv[1])
import walras
for file in pathlib.Path(walras.__file__).parent.glob("*.py"):
    if file.stem not in ("__init__", "gym"):
        importlib.import_module(f"walras.{file.stem}")
from walras import agents, schema
venue = walras.Venue()
venue.create_asset("BTC", 8)
venue.create_asset("USD", 4)
venue.create_instrument("BTC/USD", "BTC", "USD", tick_size="0.5", lot_size="0.01", reference_price=30_000, taker_fee_ppm=250)
alice, bob = venue.create_account(BTC=2), venue.create_account(USD=100_000)
venue.submit(alice, "BTC/USD", "sell", "0.5", "30000.5")
assert len(venue.submit(bob, "BTC/USD", "buy", "0.2", "30001", tif="ioc").trades) == 1
result = agents.simulate(agents.Design(), agents.population(zero_intelligence=5), seed=1, seconds=2)
assert len(result.trades) > 0 and len(vars(schema)) > 150
print("all of it ran in", "%d.%d" % sys.version_info[:2])
'''


def interpreter(version: str) -> str | None:
    """An interpreter of this version, if there is one here."""
    versions = pathlib.Path(os.environ.get("PYENV_ROOT", pathlib.Path.home() / ".pyenv")) / "versions"
    found = [shutil.which(f"python{version}"), *map(str, sorted(versions.glob(f"{version}.*/bin/python")))]
    for path in filter(None, found):
        asked = subprocess.run([path, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], capture_output=True, text=True)
        if asked.returncode == 0 and asked.stdout.strip() == version:
            return path
    return None


def test_the_oldest_python_is_the_one_that_the_wheel_is_built_for() -> None:
    folder = pathlib.Path(__file__).parents[1]
    (least,) = re.findall(r'requires-python = ">=(\d+\.\d+)"', (folder / "pyproject.toml").read_text())
    assert f'abi3-py{least.replace(".", "")}' in (folder / "Cargo.toml").read_text() and least == "3.9"


@pytest.mark.parametrize("version", ["3.9", "3.10", "3.12", "3.13"])
def test_it_runs_in_another_python(version: str, tmp_path: pathlib.Path) -> None:
    path = interpreter(version)
    if path is None:
        pytest.skip(f"there is no Python {version} here")
    (tmp_path / "walras").symlink_to(pathlib.Path(walras.__file__).parent)
    ran = subprocess.run([path, "-B", "-s", "-c", PROGRAM, str(tmp_path)], capture_output=True, text=True, cwd=tmp_path)
    assert ran.returncode == 0 and ran.stdout.strip() == f"all of it ran in {version}", ran.stderr
