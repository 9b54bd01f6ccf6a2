"""The command ``walras`` of the package: it becomes the program that the wheel or a variable names, or says how to get one."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pytest

from walras import _program


def run(variable: str | None) -> subprocess.CompletedProcess[str]:
    environment = {} if variable is None else {"WALRAS_PROGRAM": variable}
    code = "import sys; sys.argv = ['walras', 'one', 'two']; from walras._program import main; sys.exit(main())"
    path = str(pathlib.Path(_program.__file__).parents[1])
    return subprocess.run([sys.executable, "-c", code], env={**environment, "PYTHONPATH": path}, cwd="/", capture_output=True, text=True)


def test_it_becomes_the_program(tmp_path: pathlib.Path) -> None:
    program = tmp_path / "walras"
    # Some installers leave the right to execute out.
    program.write_text('#!/bin/sh\necho "arguments: $@"\nexit 7\n')
    done = run(str(program))
    assert (done.returncode, done.stdout) == (7, "arguments: one two\n"), done.stderr


def test_it_says_what_is_missing(tmp_path: pathlib.Path) -> None:
    absent = run(str(tmp_path / "nothing"))
    assert absent.returncode == 4 and "nothing" in absent.stderr
    if (pathlib.Path(_program.__file__).parent / "_bin").exists():
        pytest.skip("this wheel has the program")
    done = run(None)
    assert done.returncode == 4 and "make python-wheel-full" in done.stderr
