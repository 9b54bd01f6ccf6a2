"""What the clients' steps came to: results.json, which the benchmark `access` reads, and the table in docs/binance.md, written from it."""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import os
import pathlib

FILE = pathlib.Path(__file__).with_name("results.json")
PAGE = pathlib.Path(__file__).parents[2] / "docs" / "binance.md"
BEGIN, END = "<!-- clients: written by make facade-test -->\n", "<!-- end of clients -->"


def record(client: str, package: str | None, total: int, failed: list[str]) -> None:
    """Notes how a client did, in the place of how it did before; where WALRAS_RECORD says so."""
    if package is None or "WALRAS_RECORD" not in os.environ:
        return
    known = json.loads(FILE.read_text()) if FILE.exists() else {}
    known[client] = {
        "version": importlib.metadata.version(package),
        "date": datetime.date.today().isoformat(),
        "passed": total - len(failed),
        "total": total,
        "failed": failed,
    }
    FILE.write_text(json.dumps(dict(sorted(known.items())), indent=2) + "\n")


def table() -> str:
    """The table of the document."""
    lines = ["| client | version | steps passed | not passed | on |", "| --- | --- | --- | --- | --- |"]
    for client, result in sorted(json.loads(FILE.read_text()).items()):
        failed = ", ".join(f"`{name}`" for name in result["failed"]) or "none"
        counts = f"{result['passed']} of {result['total']}"
        lines.append(f"| {client} | {result['version']} | {counts} | {failed} | {result['date']} |")
    return "\n".join(lines) + "\n"


def write() -> None:
    """Writes the document's table."""
    text = PAGE.read_text()
    before, _, rest = text.partition(BEGIN)
    assert rest, f"{PAGE} has no line {BEGIN!r}"
    PAGE.write_text(before + BEGIN + table() + END + rest.partition(END)[2])


if __name__ == "__main__":
    write()
