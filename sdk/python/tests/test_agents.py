"""Agents on the real engine: runs of a seed are the same, designs differ in what they are for, the environment keeps gymnasium's promises."""

from __future__ import annotations

import doctest
import multiprocessing
import statistics
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from walras import agents


def test_docstring() -> None:
    assert doctest.testmod(agents).failed == 0 and doctest.testmod(agents).attempted >= 3


def test_a_seed_is_a_run() -> None:
    people = agents.population(zero_intelligence=10, snipers=1)
    first, again = (agents.simulate(agents.Design(), people, seed=7, seconds=5) for _ in range(2))
    assert first.state_hash == again.state_hash and first.trades == again.trades and first.figures == again.figures
    other = agents.simulate(agents.Design(), people, seed=8, seconds=5)
    assert other.state_hash != first.state_hash
    assert len(first.trades) > 20 and first.figures["two_sided_share"] > 0.9 and first.figures["refused"] == 0
    assert first.figures["fees"] == 0 and sum(first.profit.values()) == pytest.approx(0, abs=1e-6)
    kinds = {"ZeroIntelligence", "Value", "Momentum", "MarketMaker", "Sniper"}
    assert set(first.profit) == kinds and not any(agent.names for agent in people if isinstance(agent, agents.MarketMaker))


def test_a_study_is_the_same_wherever_it_is_made() -> None:
    designs = {"continuous": agents.Design(), "pro rata": agents.Design(allocation="pro_rata"), "fees": agents.Design(taker_fee_ppm=300)}
    people = agents.population(zero_intelligence=10)
    here = agents.study(designs, people, seeds=iter(range(2)), seconds=2)
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        there = agents.study(designs, people, seeds=range(2), seconds=2, map=pool.map)
    with ThreadPoolExecutor(2) as threads:
        beside = agents.study(designs, people, seeds=range(2), seconds=2, map=threads.map)
    assert here == there == beside and [row["seed"] for row in here] == [0, 1] * 3
    by_design = {name: [row for row in here if row["design"] == name] for name in designs}
    assert all(row["fees"] > 0 for row in by_design["fees"]) and all(row["fees"] == 0 for row in by_design["continuous"])
    assert by_design["pro rata"][0]["state_hash"] != by_design["continuous"][0]["state_hash"]


def mean(rows: list[dict[str, Any]], design: str, figure: str) -> float:
    return statistics.fmean(row[figure] for row in rows if row["design"] == design)


def test_snipers_live_on_continuous_trading() -> None:
    people = agents.population(zero_intelligence=5, value=0, momentum=0, market_makers=2, snipers=3)
    news = agents.News(jumps_per_s=2.0, jump=2e-3)
    designs = {"continuous": agents.Design(), "batch": agents.Design(batch_ns=100_000_000)}
    rows = agents.study(designs, people, seeds=range(3), seconds=10, news=news)
    # In a batch all who hear of news meet at one price, and makers have moved their quotes by then.
    assert mean(rows, "continuous", "profit_Sniper") > 0
    assert mean(rows, "batch", "profit_Sniper") < 0.5 * mean(rows, "continuous", "profit_Sniper")
    assert all(row["trades"] > 0 for row in rows)


def test_holding_orders_keeps_their_order() -> None:
    people = agents.population(zero_intelligence=20, snipers=3)
    designs = {"none": agents.Design(), "held": agents.Design(sequencing_ns=5_000_000, release_ns=5_000_000)}
    rows = agents.study(designs, people, seeds=range(2), seconds=5, news=agents.News(jumps_per_s=5))
    assert mean(rows, "none", "overtaken_share") > 0.01
    assert mean(rows, "held", "overtaken_share") < 0.1 * mean(rows, "none", "overtaken_share")
    assert mean(rows, "held", "late_share") < 0.01


def test_a_coarse_tick_is_a_wide_spread() -> None:
    people = agents.population(zero_intelligence=20)
    rows = agents.study({"fine": agents.Design(tick_size="0.01"), "coarse": agents.Design(tick_size="0.25")}, people, seeds=range(2), seconds=5)
    assert mean(rows, "coarse", "spread_bp") > 2 * mean(rows, "fine", "spread_bp")


def test_an_execution_takes_its_share_of_the_volume() -> None:
    people = agents.population(zero_intelligence=20)

    def run(execution: agents.Execution, design: agents.Design) -> tuple[list[tuple[int, int, int]], int, float]:
        """Time, price and lots of its trades; what traded from its first one on; where it ends."""
        result = agents.simulate(design, [*people, execution], seed=1, seconds=30)
        parties = [(trade[0], trade[1], trade[2], len(people) in trade[4:]) for trade in result.trades]
        own = [(at, price, lots) for at, price, lots, is_own in parties if is_own]
        return own, sum(lots for at, _, lots, _ in parties if at >= own[0][0]), result.profit["Execution"]

    for design in (agents.Design(), agents.Design(batch_ns=100_000_000), agents.Design(release_ns=5_000_000, sequencing_ns=5_000_000)):
        # More than it can get: it ends with its share.
        own, total, _ = run(agents.Execution(target_lots=1_000_000, share=0.2, every_ns=agents.SECOND_NS // 10), design)
        traded = sum(lots for *_, lots in own)
        assert len(own) > 20 and 0.19 < traded / total < 0.21, design
        # It stops at its target, and sells as well as it buys.
        for side in (0, 1):
            sold, total, _ = run(agents.Execution(side=side, target_lots=100, share=0.2), design)
            assert sum(lots for *_, lots in sold) == 100 and total > 500, design
    # No share, no trade.
    result = agents.simulate(agents.Design(), [*people, agents.Execution(share=0.0)], seed=1, seconds=5)
    assert result.profit["Execution"] == 0 and len(agents.population(executions=2)) == 70


class Seen:
    """What an agent sees, as the test has it, and what it sends."""

    def __init__(self, bid: int = 100, bid_lots: int = 10, ask: int = 102, ask_lots: int = 10) -> None:
        self.bid, self.bid_lots, self.ask, self.ask_lots = bid, bid_lots, ask, ask_lots
        self.position_lots = self.volume_lots = self.now_ns = 0
        self.sent: list[tuple[Any, ...]] = []

    @property
    def middle(self) -> float:
        return (self.bid + self.ask) / 2

    def take(self, side: int, lots: int, ticks: float) -> int:
        self.sent.append(("take", side, lots, ticks))
        return len(self.sent)

    def rest(self, side: int, lots: int, ticks: float) -> int:
        self.sent.append(("rest", side, lots, ticks))
        return len(self.sent)

    def cancel(self, name: int) -> None:
        self.sent.append(("cancel", name))

    def is_on_its_way(self, name: int) -> bool:
        return False


def woken(agent: agents.Agent, seen: Any) -> list[tuple[Any, ...]]:
    """What it sends."""
    seen.sent.clear()
    agent.wake(seen)
    return list(seen.sent)


def test_the_imbalance_of_the_book_is_followed_until_it_is_gone() -> None:
    agent = agents.Imbalance(lots=3)
    assert woken(agent, Seen(bid_lots=6, ask_lots=4)) == []
    assert woken(agent, Seen(bid_lots=8, ask_lots=2)) == [("take", 0, 3, 102)]
    assert woken(agent, Seen(bid_lots=2, ask_lots=8)) == [("take", 1, 3, 100)]
    held = Seen(bid_lots=8, ask_lots=2)
    held.position_lots = 3
    assert woken(agent, held) == [], "it is as it was"
    held.bid_lots = held.ask_lots = 5
    assert woken(agent, held) == [("take", 1, 3, 100)], "the book is even"
    # Against it: a short one leaves where the price rises too far above the best that it was.
    short = Seen(bid=10_000, ask=10_002, bid_lots=1, ask_lots=9)
    agent = agents.Imbalance(lots=3, stop=1e-3)
    assert woken(agent, short) == [("take", 1, 3, 10_000)]
    short.position_lots, short.bid, short.ask = -3, 9_990, 9_992
    assert woken(agent, short) == []
    short.bid, short.ask = 10_000, 10_002
    assert woken(agent, short) == [("take", 0, 3, 10_002)]


def test_a_maker_by_volume_quotes_its_share() -> None:
    agent, seen = agents.VolumeMarketMaker(share=0.1, lots_min=5, levels=2, half_spread=0.01), Seen()
    assert woken(agent, seen) == [("rest", 0, 5, 99), ("rest", 1, 5, 103), ("rest", 0, 5, 98), ("rest", 1, 5, 104)]
    seen.volume_lots = 1_000
    assert [sent for sent in woken(agent, seen) if sent[0] == "rest"] == [
        ("rest", 0, 100, 99), ("rest", 1, 100, 103), ("rest", 0, 100, 98), ("rest", 1, 100, 104)
    ]
    seen.position_lots = 500
    # It holds as much as it may, and only sells.
    cancels = [("cancel", name) for name in agent.names]
    assert woken(agent, seen) == [*cancels, ("rest", 1, 5, 103), ("rest", 1, 5, 104)]


def test_an_execution_over_a_time_keeps_to_its_profile() -> None:
    people = agents.population(zero_intelligence=20)
    for execution, shares in ((agents.Twap(), {0.1: 0.1, 0.5: 0.5}), (agents.Vwap(), {0.1: 3 / 17, 0.5: 0.5})):
        for passed, share in shares.items():
            assert execution.due(passed) == pytest.approx(share)
        assert execution.due(0.0) == 0 and execution.due(1.0) == 1
        for side in (0, 1):
            execution.side, execution.target_lots, execution.duration_s, execution.every_ns = side, 200, 20.0, agents.SECOND_NS // 10
            result = agents.simulate(agents.Design(), [*people, execution], seed=1, seconds=30)
            own = [(trade[0], trade[2]) for trade in result.trades if trade[5] == len(people)]
            assert sum(lots for _, lots in own) == 200, "all of it, and no more"
            begun = own[0][0]
            half = sum(lots for at, lots in own if at <= begun + 10 * agents.SECOND_NS)
            assert 80 <= half <= 120


def test_a_belief_is_made_of_what_traded_and_what_did_not() -> None:
    chance = agents.HeuristicBelief.chance
    trades, quotes = [(100, 1), (99, 1), (102, 1)], [(98, 101), (100, 103)]
    # Two trades at 100 or below, no ask so low; one bid at 100 or above was left.
    assert chance(0, 100, trades, quotes) == pytest.approx(2 / 3)
    # Two trades at 100 or above and a bid so high; no ask at 100 or below was left.
    assert chance(1, 100, trades, quotes) == 1.0
    assert chance(0, 1, trades, quotes) == 0.0 and chance(1, 500, [], []) == 0.0
    # All know what it is worth, which is always the same: nobody buys above or sells below.
    people = [*agents.population(zero_intelligence=20, value=0), *(agents.HeuristicBelief(noise=0.0) for _ in range(5))]
    news = agents.News(volatility=0.0, jumps_per_s=0.0)
    result = agents.simulate(agents.Design(), people, seed=1, seconds=30, news=news)
    believers = {number for number, agent in enumerate(people) if isinstance(agent, agents.HeuristicBelief)}
    bought = [price for _, price, _, side, maker, taker in result.trades if (taker if side == 0 else maker) in believers]
    sold = [price for _, price, _, side, maker, taker in result.trades if (maker if side == 0 else taker) in believers]
    worth = result.values[0][1]
    assert bought and sold and max(bought) < worth < min(sold) and result.profit["HeuristicBelief"] > 0


def test_all_classes_trade_in_one_market() -> None:
    people = agents.population(heuristic_beliefs=2, imbalances=2, volume_market_makers=1, twaps=1, vwaps=1, executions=1, snipers=1)
    first, again = (agents.simulate(agents.Design(), people, seed=3, seconds=10) for _ in range(2))
    assert first.state_hash == again.state_hash and set(first.profit) == {agent.kind for agent in people} and len(first.profit) == 11
    batch = agents.simulate(agents.Design(batch_ns=100_000_000), people, seed=3, seconds=10)
    assert batch.figures["trades"] > 0


def test_an_agent_of_ones_own() -> None:
    class Once(agents.Agent):
        def wake(self, view: agents.View) -> None:
            if view.ask and not view.position_lots:
                view.take(0, 3, view.ask)

    result = agents.simulate(agents.Design(), [*agents.population(zero_intelligence=10), Once()], seed=1, seconds=10)
    assert "Once" in result.profit and any(taker == 28 for *_, taker in result.trades)


def test_the_environment() -> None:
    gymnasium = pytest.importorskip("gymnasium", reason="needs gymnasium, which is not installed")
    import walras.gym
    from gymnasium.utils.env_checker import check_env

    assert doctest.testmod(walras.gym).failed == 0
    others = agents.population(zero_intelligence=15, value=3, momentum=1, market_makers=1)
    made = walras.gym.MarketMaking(others=others, seconds=3)
    check_env(made, skip_render_check=True)

    def episode(seed: int, action: list[int]) -> tuple[float, list[float], dict[str, Any]]:
        env = gymnasium.make("walras/MarketMaking-v0", others=others, seconds=3)
        _, info = env.reset(seed=seed)
        total, steps, seen = 0.0, 0, []
        while True:
            observation, reward, terminated, truncated, info = env.step(action)
            total, steps = total + reward, steps + 1
            seen += observation.tolist()
            if terminated or truncated:
                assert truncated and steps == 30
                return total, seen, info

    idle, quotes = episode(3, [0, 0]), episode(3, [1, 1])
    assert idle[0] == 0 and idle[2]["position_lots"] == 0
    assert quotes[0] != 0 and episode(3, [1, 1])[:2] == quotes[:2] and episode(4, [1, 1])[:2] != quotes[:2]
    assert quotes[0] == pytest.approx(quotes[2]["wealth"])
    # Quotes lie about the middle of the last observation, however old market data is by the way that it comes.
    _, info = made.reset(seed=1)
    market, learner = made._market, made._learner
    assert market is not None
    learner.path_ns, send = 200_000_000, market.send
    sent: list[tuple[int, int]] = []

    def noted(agent: agents.Agent, kind: str, side: int, lots: int, ticks: int, name: int = 0) -> int:
        if agent is learner and kind == "rest":
            sent.append((side, ticks))
        return send(agent, kind, side, lots, ticks, name)

    market.send = noted  # type: ignore[method-assign]
    for _ in range(20):
        sent.clear()
        middle = info["middle_ticks"]
        *_, info = made.step([1, 1])  # type: ignore[arg-type]
        assert sent == [(0, round(middle - 1)), (1, round(middle + 1))]
    with pytest.raises(ValueError, match="position_max"):
        walras.gym.MarketMaking(position_max=0)
    with pytest.raises(RuntimeError, match="call reset"):
        walras.gym.MarketMaking().step([0, 0])  # type: ignore[arg-type]
