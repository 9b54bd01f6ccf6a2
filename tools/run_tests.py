#!/usr/bin/env python3
"""Runs the test programs of some crates as the whole workspace's build has them: tools/run_tests.py FOLDER...

`cargo test --package` would choose features for these crates alone and compile again what differs. Each program runs in its crate's folder,
as cargo runs it. All of them run, also after one that failed; the last line then names those that failed.
"""

from __future__ import annotations

import json
import os
import pathlib
import shlex
import subprocess
import sys
from dataclasses import dataclass

ROOT = pathlib.Path(__file__).resolve().parents[1]
CARGO = shlex.split(os.environ.get("CARGO", "cargo"))
#: The same as in the Makefile, so that nothing is compiled again.
BUILD = [*CARGO, "test", "--workspace", "--tests", "--no-run", "--message-format=json-render-diagnostics"]


@dataclass(frozen=True, order=True)
class Program:
    #: The crate's folder and the file that the program begins with, from the root.
    folder: str
    source: str
    executable: str


def built() -> list[Program]:
    """Builds all test programs of the workspace, and returns them."""
    cargo = subprocess.run(BUILD, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    if cargo.returncode != 0:
        sys.exit(cargo.returncode)
    programs = []
    for line in cargo.stdout.splitlines():
        message = json.loads(line)
        if message["reason"] != "compiler-artifact" or not message["profile"]["test"] or not message["executable"]:
            continue
        folder = pathlib.Path(message["manifest_path"]).parent.relative_to(ROOT)
        source = pathlib.Path(message["target"]["src_path"]).relative_to(ROOT)
        programs.append(Program(folder.as_posix(), source.as_posix(), message["executable"]))
    return sorted(programs)


def passes(program: Program) -> bool:
    print(f"     Running {program.source}", flush=True)
    folder = ROOT / program.folder
    environment = {**os.environ, "CARGO_MANIFEST_DIR": str(folder)}
    return subprocess.run([program.executable, "--quiet"], cwd=folder, env=environment).returncode == 0


def main(folders: list[str]) -> None:
    if not folders:
        sys.exit("usage: tools/run_tests.py FOLDER...")
    folders = [pathlib.PurePosixPath(folder).as_posix() for folder in folders]
    programs = [program for program in built() if program.folder in folders]
    missing = set(folders) - {program.folder for program in programs}
    if missing:
        sys.exit(f"no test program has its crate in {', '.join(sorted(missing))}: name folders of members of the workspace")
    failed = [program.source for program in programs if not passes(program)]
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


main(sys.argv[1:])
