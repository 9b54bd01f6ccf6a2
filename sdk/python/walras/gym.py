"""An environment for gymnasium: a market maker among the agents of :mod:`walras.agents`, on the real engine. ``pip install walras[gym]``.

>>> import gymnasium
>>> import walras.gym
>>> env = gymnasium.make("walras/MarketMaking-v0", seconds=5)
>>> observation, info = env.reset(seed=1)
>>> observation, reward, terminated, truncated, info = env.step(env.action_space.sample())
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from walras import agents

__all__ = ["MarketMaking"]


class _Learner(agents.Agent):
    """The one whom the policy moves; it does nothing by itself."""

    def wake(self, view: agents.View) -> None:
        pass


class MarketMaking(gymnasium.Env[NDArray[np.float32], NDArray[np.int64]]):
    """Quote both sides of a market, or one, or none, ``step_ms`` after ``step_ms``.

    *Actions*: ``MultiDiscrete([levels + 1, levels + 1])``, the bid and the ask: 0 is no quote; n is a quote of ``lots``, n ticks times
    ``ticks_per_level`` behind the middle that the agent saw. The quotes before are cancelled first. What is sent arrives as late as any agent's.

    *Observations*, as float32: best bid and best ask as ticks from the middle, their lots, the return of the middle since the step before (in basis
    points), the position as a share of ``position_max``, the share of the episode that is left, 1 if both sides have a best price.

    *Reward*: money made in the step, with the position at the middle, in ticks times lots, less ``aversion`` times the square of the position.

    *End*: ``terminated`` when the position passes ``position_max``; ``truncated`` after ``seconds``. ``info`` has ``wealth``, ``position_lots``
    and the middle. An episode is a function of the seed of ``reset`` and the actions.
    """

    metadata = {"render_modes": []}

    def __init__(
        self,
        *,
        design: agents.Design | None = None,
        others: Sequence[agents.Agent] | None = None,
        news: agents.News | None = None,
        seconds: float = 60.0,
        step_ms: int = 100,
        levels: int = 10,
        ticks_per_level: int = 1,
        lots: int = 10,
        position_max: int = 1_000,
        aversion: float = 0.0,
    ) -> None:
        if min(levels, lots, ticks_per_level, step_ms, position_max) < 1 or seconds <= 0:
            raise ValueError("levels, lots, ticks_per_level, step_ms, position_max and seconds must be at least 1 (seconds: above 0)")
        self.design = design or agents.Design()
        self.others = list(agents.population() if others is None else others)
        self.news = news or agents.News()
        self.seconds, self.step_ns, self.levels, self.ticks_per_level = seconds, step_ms * 1_000_000, levels, ticks_per_level
        self.lots, self.position_max, self.aversion = lots, position_max, aversion
        self.action_space = spaces.MultiDiscrete([levels + 1, levels + 1])
        self.observation_space = spaces.Box(-1e9, 1e9, (8,), np.float32)
        self._market: agents._Market | None = None
        self._names: list[int] = []

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Begins an episode, after a second in which the others made a market."""
        super().reset(seed=seed)
        drawn = int(self.np_random.integers(2**62))
        market = agents._Market(self.design, [*self.others, _Learner()], self.news, drawn, self.seconds + 1.0)
        market.agents[-1].every_ns = 2**60
        market.begin()
        self._market, self._learner = market, market.agents[-1]
        self._names = []
        self._now_ns = agents.SECOND_NS
        market.run_until(self._now_ns)
        self._view = view = self._look()
        self._wealth = self._worth(view)
        return self._observation(view), self._info(view)

    def step(self, action: NDArray[np.int64]) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Quotes, and lets ``step_ms`` pass."""
        market = self._market
        if market is None:
            raise RuntimeError("the episode has not begun: call reset() first")
        # What the policy saw: data of another age may have another middle.
        view = self._view
        for name in self._names:
            view.cancel(name)
        self._names = []
        for side, level in enumerate(int(level) for level in action):
            if level:
                away = level * self.ticks_per_level
                self._names.append(view.rest(side, self.lots, view.middle - away if side == 0 else view.middle + away))
        self._now_ns += self.step_ns
        market.run_until(self._now_ns)
        market.now_ns = self._now_ns
        view = self._look()
        wealth = self._worth(view)
        reward = wealth - self._wealth - self.aversion * view.position_lots**2
        self._wealth = wealth
        observation = self._observation(view)
        self._view = view
        terminated = abs(view.position_lots) > self.position_max
        truncated = self._now_ns >= market.end_ns
        return observation, float(reward), terminated, truncated, self._info(view)

    def _look(self) -> agents.View:
        assert self._market is not None
        return self._market.view(self._learner, self._now_ns)

    def _worth(self, view: agents.View) -> float:
        """Money and position, in ticks times lots."""
        assert self._market is not None
        money = sum(self._market.venue.balance_units(self._learner.number, 1)) / 10.0**8 - 1_000_000
        return money / (self._market.tick * 0.01) + view.position_lots * view.middle

    def _observation(self, view: agents.View) -> NDArray[np.float32]:
        assert self._market is not None
        middle = view.middle
        left = max(self._market.end_ns - self._now_ns, 0) / (self.seconds * agents.SECOND_NS)
        seen = [
            view.bid - middle if view.bid else 0.0,
            view.ask - middle if view.ask else 0.0,
            view.bid_lots,
            view.ask_lots,
            1e4 * (middle / self._view.middle - 1) if self._view.middle else 0.0,
            view.position_lots / self.position_max,
            left,
            1.0 if view.bid and view.ask else 0.0,
        ]
        return np.array(seen, dtype=np.float32)

    def _info(self, view: agents.View) -> dict[str, Any]:
        return {"wealth": self._worth(view), "position_lots": view.position_lots, "middle_ticks": view.middle, "time_ns": self._now_ns}


gymnasium.register(id="walras/MarketMaking-v0", entry_point="walras.gym:MarketMaking")
