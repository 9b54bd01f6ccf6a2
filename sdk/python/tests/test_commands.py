"""Commands as JSON, without a venue."""

from __future__ import annotations

from decimal import Decimal

import pytest

from walras import commands


def test_an_order_has_the_fields_of_openapi() -> None:
    assert commands.order("BTC/USD", "buy", Decimal("0.50"), 30_000, client_order_id="bid-7", peak="0.1", expires_ns=5) == {
        "op": "order", "instrument": "BTC/USD", "side": "buy", "type": "limit", "size": "0.50", "price": "30000",
        "client_order_id": "bid-7", "time_in_force": "gtt", "expire_time_ns": "5", "display": "iceberg", "peak": "0.1",
    }
    stop = commands.order("BTC/USD", "sell", 1, trigger="29000", tif="gtc", exit_of=7)
    assert (stop["type"], stop["trigger"], stop["time_in_force"], stop["exit_of"]) == ("stop", "29000", "gtc", "7")
    assert commands.order("BTC/USD", "sell", 1, take_profit=31_000)["trigger"] == "31000"
    assert commands.order("BTC/USD", "sell", 1, 30_000, trail_ppm=500)["type"] == "trailing_stop_limit"


def test_an_order_has_its_exits() -> None:
    entry = commands.order(
        "BTC/USD", "buy", 1, 50_000,
        exits={"take_profit": {"trigger": Decimal("55000.0")}, "stop_loss": {"trigger": 48_000, "price": "47900", "client_order_id": 3}},
    )
    assert entry["take_profit"] == {"trigger": "55000.0"}
    assert entry["stop_loss"] == {"trigger": "48000", "price": "47900", "client_order_id": "3"}
    assert "trigger" not in entry and "exits" not in entry and entry["type"] == "limit"
    # A trigger of the order's own is not an exit.
    assert commands.order("BTC/USD", "buy", 1, take_profit=9, exits={"stop_loss": {"trigger": 5}})["type"] == "take_profit"
    assert "take_profit" not in commands.order("BTC/USD", "buy", 1, exits=None)


def test_what_is_wrong_with_an_order_is_said() -> None:
    with pytest.raises(TypeError, match="stop: terms of an order are client_order_id, exit_of"):
        commands.order("BTC/USD", "buy", 1, stop="29000")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="give a str, a Decimal or an int"):
        commands.order("BTC/USD", "buy", 0.5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="names no order"):
        commands.order("BTC/USD", "buy", 1, oco_with=True)
    with pytest.raises(ValueError, match="not two of them"):
        commands.order("BTC/USD", "sell", 1, trigger=1, take_profit=2)
    with pytest.raises(ValueError, match="trail or trail_ppm"):
        commands.order("BTC/USD", "sell", 1, trail=1, trail_ppm=2)
    with pytest.raises(TypeError, match="profit: exits of an order are stop_loss, take_profit"):
        commands.order("BTC/USD", "buy", 1, exits={"profit": {"trigger": 1}})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="at: fields of stop_loss are client_order_id, price, trigger"):
        commands.order("BTC/USD", "buy", 1, exits={"stop_loss": {"trigger": 1, "at": 2}})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="stop_loss: an exit needs a trigger"):
        commands.order("BTC/USD", "buy", 1, exits={"stop_loss": {"price": 1}})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="take_profit.trigger: give a str, a Decimal or an int"):
        commands.order("BTC/USD", "buy", 1, exits={"take_profit": {"trigger": 0.5}})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="a peak or is hidden"):
        commands.order("BTC/USD", "sell", 1, 5, peak=1, hidden=True)
