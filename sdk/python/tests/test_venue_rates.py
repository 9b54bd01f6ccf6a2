"""The bench of the venue in the process: what it gives to ABIDES, and that it finds out a book that trades otherwise."""

from __future__ import annotations

import importlib
import pathlib
import sys
from typing import Any

import pytest

import walras

np = pytest.importorskip("numpy")

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "bench"))
abides_book = importlib.import_module("abides_book")
venue_rates = importlib.import_module("venue_rates")

CANCEL = walras.KINDS.index("cancel")


class Side:
    BID, ASK = 1, -1


class LimitOrder:
    def __init__(self, account: int, at: int, symbol: str, size: int, side: int, price: int, order_id: int) -> None:
        self.size, self.side, self.price, self.order_id = size, side, price, order_id


class Book:
    """A naive book with the calls of ABIDES' that are made: the best price first, then the order that came first."""

    def __init__(self, owner: Any, symbol: str) -> None:
        self.resting: list[LimitOrder] = []
        self.history: list[dict[str, Any]] = []

    def first(self, orders: list[LimitOrder]) -> LimitOrder:
        return min(orders, key=lambda order: order.side * -order.price)

    def handle_limit_order(self, order: LimitOrder) -> None:
        while met := [o for o in self.resting if o.side != order.side and (order.price - o.price) * order.side >= 0]:
            maker = self.first(met)
            size = min(maker.size, order.size)
            maker.size -= size
            order.size -= size
            self.history.append({"type": "EXEC", "order_id": maker.order_id, "oppos_order_id": order.order_id, "quantity": size})
            if maker.size == 0:
                self.resting.remove(maker)
            if order.size == 0:
                return
        self.resting.append(order)
        self.history.append({"type": "LIMIT", "order_id": order.order_id})

    def cancel_order(self, order: LimitOrder) -> bool:
        if is_there := order in self.resting:
            self.resting.remove(order)
        return is_there


class LastFirst(Book):
    """The order that came last trades first."""

    def first(self, orders: list[LimitOrder]) -> LimitOrder:
        return super().first(orders[::-1])


class Agreeable(Book):
    """Says that it cancelled what is gone."""

    def cancel_order(self, order: LimitOrder) -> bool:
        super().cancel_order(order)
        return True


def compared(book: type[Book]) -> dict[str, Any]:
    abides = abides_book.Abides("ABIDES", book, LimitOrder, Side)
    found: dict[str, Any] = venue_rates.compared_with_abides(abides, venue_rates.flow(2_000, 3), 2)
    return found


def test_no_account_meets_itself_and_each_cancel_names_an_order() -> None:
    flow = venue_rates.flow(5_000, 2)
    rows = abides_book.orders_alike(flow)
    orders, cancels = rows[rows["kind"] == 0], rows[rows["kind"] == CANCEL]
    assert len(orders) == np.count_nonzero(flow["kind"] == 0) and 500 < len(cancels) < np.count_nonzero(flow["kind"] == CANCEL)
    assert set(orders["account"] % 2 * 2 + orders["side"]) == {0, 3}
    owners = dict(zip(orders["client_order_id"].tolist(), orders["account"].tolist()))
    assert all(owners[name] == account for name, account in zip(cancels["client_order_id"].tolist(), cancels["account"].tolist()))


def test_a_book_with_the_same_rules_makes_the_same_trades() -> None:
    found = compared(Book)
    assert len(found) == 3 and all(figure["orders_per_s"] > 0 for figure in found.values())
    (same,) = {(figure["trades"], figure["lots"], figure["refused"]) for figure in found.values()}
    assert same[0] > 500 and same[1] > same[0] and same[2] > 50


def test_a_book_that_trades_otherwise_is_found_out() -> None:
    with pytest.raises(AssertionError, match="ABIDES made other trades than ours"):
        compared(LastFirst)


def test_a_book_that_answers_cancels_otherwise_is_found_out() -> None:
    with pytest.raises(AssertionError, match="ABIDES refused 0 of"):
        compared(Agreeable)


def test_a_folder_that_is_no_checkout_is_refused(tmp_path: pathlib.Path) -> None:
    with pytest.raises(SystemExit, match="is no checkout of ABIDES: it has no folder abides-core"):
        abides_book.load(tmp_path)


def test_a_checkout_that_does_not_load_says_what_it_needs(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", sys.path[:])
    for package in abides_book.PACKAGES:
        (tmp_path / package).mkdir()
    with pytest.raises(SystemExit, match="does not load.*pip install pandas scipy"):
        abides_book.load(tmp_path)


def test_the_extension_of_the_tests_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = pathlib.Path(__file__).resolve().parents[1]
    monkeypatch.setattr(walras, "__file__", str(folder / ".venv/lib/python3.11/site-packages/walras/__init__.py"))
    venue_rates.refuse_the_extension_of_the_tests()
    monkeypatch.setattr(walras, "__file__", str(folder / "walras/__init__.py"))
    with pytest.raises(SystemExit, match="make python"):
        venue_rates.refuse_the_extension_of_the_tests()
