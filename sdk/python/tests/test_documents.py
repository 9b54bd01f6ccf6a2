"""What the documents show works: the docstring, the README, the notebook."""

from __future__ import annotations

import doctest
import json
import pathlib
import re

import pytest

import walras

FOLDER = pathlib.Path(__file__).parent.parent


def test_docstring() -> None:
    # pytest finds no doctests in an installed package; the name that the example uses is the module's own.
    finder = doctest.DocTestFinder(recurse=False)
    tests = finder.find(walras.clear, "walras.clear", globs={"clear": walras.clear})
    runner = doctest.DocTestRunner()
    for test in tests:
        runner.run(test)
    assert runner.tries > 0 and runner.failures == 0


def test_readme() -> None:
    text = (FOLDER / "README.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    shown: dict[str, object] = {}
    for block in blocks:
        compiled = compile(block, "README.md", "exec")
        # tests/test_client.py, test_backtest.py and test_clusters.py do the like with what these need.
        if not block.startswith("# Needs "):
            names: dict[str, object] = {}
            exec(compiled, names)
            shown.update(names)
    cleared, outcome, result, rows = shown["cleared"], shown["outcome"], shown["result"], shown["rows"]
    assert isinstance(rows, list) and len(rows) == 12 and all(row["trades"] > 0 for row in rows)
    assert isinstance(cleared, walras.Clearing) and len(cleared.fills) > 0
    assert isinstance(outcome, walras.Outcome) and repr(outcome.trades) in text
    assert isinstance(result, walras.Run) and len(result.trades) > 10_000 and result.rejected == 0


@pytest.mark.parametrize("name", ["a_venue", "back_test", "clear_a_batch", "market_design"])
def test_notebook(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.chdir(FOLDER / "examples")
    notebook = json.loads(pathlib.Path(f"{name}.ipynb").read_text())
    names: dict[str, object] = {}
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert len(cells) >= 3
    for number, source in enumerate(cells):
        exec(compile(source, f"{name}.ipynb, code cell {number}", "exec"), names)
    assert "figure" in names
