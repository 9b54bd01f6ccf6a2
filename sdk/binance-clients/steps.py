"""A list of steps of a client, and what came of each."""

from __future__ import annotations

import asyncio
import inspect
import json
import sys
import traceback
from collections.abc import Callable
from typing import Any

import results
from venue import Venue, venue

Step = Callable[..., Any]


class Steps:
    """Steps in the order in which they are written. One that fails does not keep the others from running."""

    def __init__(self, client: str, package: str | None = None) -> None:
        """`package` is its name at its registry, if it comes from one."""
        self.client, self.package = client, package
        self.steps: list[tuple[str, Step]] = []

    def step(self, function: Step) -> Step:
        self.steps.append((function.__name__, function))
        return function

    def run(self, make: Callable[[Venue], Any]) -> None:
        """Runs all on a venue of their own, prints one line of JSON, and exits."""
        with venue() as running:
            failed = asyncio.run(self._run(running, make))
        name, total = self.client.replace("-", "_"), len(self.steps)
        result = {f"{name}_passed": total - len(failed), f"{name}_total": total, "failed": failed}
        print(json.dumps(result))
        results.record(self.client, self.package, total, failed)
        sys.exit(1 if failed else 0)

    async def _run(self, running: Venue, make: Callable[[Venue], Any]) -> list[str]:
        context = make(running)
        if inspect.isawaitable(context):
            context = await context
        failed = []
        for name, function in self.steps:
            try:
                done = function(context)
                if inspect.isawaitable(done):
                    await asyncio.wait_for(done, 30)
            except Exception:  # noqa: BLE001
                traceback.print_exc()
                failed.append(name)
        close = getattr(context, "close", None)
        if close is not None:
            closed = close()
            if inspect.isawaitable(closed):
                await closed
        return failed


def raises(kind: type[BaseException], call: Callable[[], Any], *texts: str) -> BaseException:
    """What a call raises, which must say these texts."""
    try:
        call()
    except kind as e:
        for text in texts:
            assert text in str(e), f"{e!r} does not say {text!r}"
        return e
    raise AssertionError(f"nothing was raised, where {kind.__name__} was expected")
