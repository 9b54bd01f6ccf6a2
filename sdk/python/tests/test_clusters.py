"""A study spread over the processes of Ray and of Dask comes to what the built-in ``map`` makes of it. `make python-clusters` runs it."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from walras import agents

Map = Callable[[Callable[[Any], Any], list[Any]], list[Any]]
README = pathlib.Path(__file__).parent.parent / "README.md"


class Counted:
    """A ``map`` of a cluster that notes which processes did the work, and how much there was."""

    def __init__(self, spread: Map) -> None:
        self.spread, self.processes, self.count = spread, set[int](), 0

    def __call__(self, function: Callable[[Any], Any], tasks: list[Any]) -> list[Any]:
        # Pickled with the function, so nothing of this file is needed at the other end.
        def work(task: Any) -> tuple[int, Any]:
            import os

            return os.getpid(), function(task)

        done = self.spread(work, tasks)
        self.processes, self.count = {process for process, _ in done}, len(done)
        return [result for _, result in done]


def check(spread: Map) -> None:
    designs = {"continuous": agents.Design(), "batch": agents.Design(batch_ns=100_000_000), "fees": agents.Design(taker_fee_ppm=300)}
    people = agents.population(zero_intelligence=10, market_makers=1, snipers=1)
    news = agents.News(jumps_per_s=1)
    counted = Counted(spread)
    there = agents.study(designs, people, seeds=range(4), seconds=2, news=news, map=counted)
    here = agents.study(designs, people, seeds=range(4), seconds=2, news=news)
    assert there == here and counted.count == len(here) == 12
    assert len({row["state_hash"] for row in here}) == 12 and all(row["trades"] > 0 for row in here)
    assert counted.processes and os.getpid() not in counted.processes


def shown(name: str) -> str:
    """The lines of the README that spread a study so."""
    [block] = [block for block in README.read_text().split("```python\n") if block.startswith(f"# Needs {name}")]
    return block.partition("```")[0]


@pytest.fixture
def ray(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    found = pytest.importorskip("ray", reason="Ray is not installed: make python-clusters")
    # Its processes look for packages where it was started, and the package's folder here has no extension.
    monkeypatch.chdir(tmp_path)
    found.init(num_cpus=2, include_dashboard=False, configure_logging=False, _node_ip_address="127.0.0.1")
    yield found
    found.shutdown()


@pytest.fixture
def dask() -> Iterator[Any]:
    found = pytest.importorskip("distributed", reason="dask.distributed is not installed: make python-clusters")
    with found.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1") as cluster:
        with found.Client(cluster) as client:
            yield client


def test_ray(ray: Any) -> None:
    names: dict[str, Any] = {}
    exec(shown("Ray"), names)
    check(names["over_ray"])


def test_dask(dask: Any) -> None:
    names: dict[str, Any] = {"client": dask}
    exec(shown("Dask"), names)
    check(names["over_dask"])
