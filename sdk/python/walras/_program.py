"""The venue's program, where the wheel was built with it: ``walras demo``, ``walras serve`` and so on, after ``pip install``."""

from __future__ import annotations

import os
import pathlib
import stat
import sys

#: Another program than the one in the wheel.
_VARIABLE = "WALRAS_PROGRAM"


def program() -> pathlib.Path:
    """Where the program is. ``FileNotFoundError`` where this wheel has none."""
    named = os.environ.get(_VARIABLE)
    if named:
        return pathlib.Path(named)
    bundled = pathlib.Path(__file__).parent / "_bin" / "walras"
    if not bundled.is_file():
        raise FileNotFoundError(
            "this wheel was built without the venue's program: build one with it (make python-wheel-full in the repository), "
            f"or name the program in {_VARIABLE}"
        )
    return bundled


def main() -> int:
    """Becomes the program."""
    try:
        path = program()
        if not os.access(path, os.X_OK):
            # Some installers leave the right to execute out.
            path.chmod(path.stat().st_mode | stat.S_IXUSR)
        os.execv(path, [str(path), *sys.argv[1:]])
    except OSError as error:
        print(f"walras: {error}", file=sys.stderr)
    return 4
