"""A thread in which an asyncio loop runs, for clients that are not of asyncio."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class LoopThread:
    """A loop in a thread of its own. What :meth:`wait` runs there, the caller waits for."""

    def __init__(self, name: str) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name=name, daemon=True)

    def start(self) -> None:
        """Starts it."""
        self._thread.start()

    def wait(self, what: Coroutine[Any, Any, T]) -> T:
        """Runs it in the thread; what it returns or raises."""
        if not self._thread.is_alive():
            what.close()
            raise ConnectionError("it is not open: use it inside of its `with`")
        if threading.current_thread() is self._thread:
            what.close()
            raise RuntimeError("this is the thread for which it would wait: call it in another one")
        return asyncio.run_coroutine_threadsafe(what, self.loop).result()

    def stop(self) -> None:
        """Ends the thread, and waits for that."""
        if not self._thread.is_alive():
            return
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()
