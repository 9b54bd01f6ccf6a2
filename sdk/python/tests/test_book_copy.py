"""A copy of a book, without a venue: gaps and wrong copies are noticed."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from walras._stream import BookCopy, BookOrder, OrdersCopy

#: The example of docs/websocket.md.
BIDS = [["49950.00", "0.5", 1], ["49900.00", "2.0", 3]]
ASKS = [["50010.00", "1.25", 1]]
CHECKSUM = 1579087614


def message(kind: str, feed_seq: int, bids: list[Any], asks: list[Any], checksum: int | None = None) -> dict[str, Any]:
    body = {"kind": kind, "feed_seq": str(feed_seq), "log_index": "9", "bids": bids, "asks": asks}
    return body if checksum is None else body | {"checksum": checksum}


def test_the_checksum_is_the_documents() -> None:
    book = BookCopy()
    assert book.checksum == 0
    assert book.apply(message("snapshot", 1, BIDS, ASKS, CHECKSUM))
    assert book.checksum == CHECKSUM
    far = [[f"{price}.00", "1.0", 1] for price in range(100, 120)]
    copy = BookCopy()
    assert copy.apply(message("snapshot", 1, far, []))
    best = copy.checksum
    assert copy.apply(message("update", 2, [["100.00", "7.0", 1]], [], best)), "levels further off do not count"
    assert not copy.apply(message("update", 3, [["119.00", "7.0", 1]], [], best))


def test_a_gap_and_a_wrong_copy_are_noticed() -> None:
    book = BookCopy()
    assert book.apply(message("snapshot", 1, BIDS, ASKS))
    assert not book.apply(message("update", 3, [], [])), "the second is missing"
    assert book.apply(message("snapshot", 4, BIDS, ASKS, CHECKSUM))
    assert not book.apply(message("update", 5, [["49950.00", "0.6", 1]], [], CHECKSUM))
    assert book.bids[Decimal("49950.00")] == Decimal("0.6")


def test_a_venue_without_checksums_is_read() -> None:
    book = BookCopy()
    assert book.apply(message("snapshot", 1, BIDS, []))
    assert book.apply(message("update", 2, [["49950.00", "0", 0]], []))
    assert book.best_bid == Decimal("49900.00")


def orders(kind: str, log_index: int, previous: int | None, **changes: list[Any]) -> dict[str, Any]:
    body: dict[str, Any] = {"kind": kind, "log_index": str(log_index), "removed": [], "resized": [], "added": []}
    body |= {"previous_log_index": None if previous is None else str(previous), "has_more_bids": False, "has_more_asks": True}
    return body | changes


def test_orders_stand_in_the_order_of_their_queues() -> None:
    book = OrdersCopy()
    assert not book.apply(orders("update", 5, 4)), "there was no snapshot"
    whole = [["1", "buy", "10.0", "5"], ["2", "buy", "10.0", "3"], ["3", "buy", "9.5", "1"], ["4", "sell", "11.0", "2"]]
    assert book.apply(orders("snapshot", 5, None, added=whole))
    assert [order.order_id for order in book.bids] == [1, 2, 3] and book.has_more_asks and not book.has_more_bids
    # The first one trades in part, the second one is cancelled; new ones stand behind those of their price.
    added = [["6", "buy", "10.0", "7"], ["7", "buy", "9.75", "1"], ["8", "sell", "10.5", "1"], ["9", "sell", "11.0", "4"]]
    assert book.apply(orders("update", 9, 5, removed=["2"], resized=[["1", "4"]], added=added))
    assert [order.order_id for order in book.bids] == [1, 6, 7, 3] and [order.order_id for order in book.asks] == [8, 4, 9]
    assert book.bids[0] == BookOrder(1, Decimal("10.0"), Decimal(4)) and book.log_index == 9
    # One that lost its place.
    assert book.apply(orders("update", 10, 9, removed=["1"], added=[["1", "buy", "10.0", "4"]]))
    assert [order.order_id for order in book.bids] == [6, 1, 7, 3]
    assert not book.apply(orders("update", 12, 11)), "one before it is missing"
    assert book.apply(orders("snapshot", 12, None, added=[["7", "buy", "9.75", "1"]])) and book.asks == []


def test_the_checksum_of_a_book_by_order_is_the_documents() -> None:
    book = OrdersCopy()
    whole = [["4650", "buy", "49950.00", "0.2000"], ["4702", "buy", "49950.00", "0.5000"], ["4688", "sell", "50010.00", "1.2500"]]
    assert book.apply(orders("snapshot", 4712, None, added=whole) | {"checksum": 1285916809})
    changes: dict[str, Any] = {
        "removed": ["4650"], "resized": [["4702", "0.3000"]], "added": [["4720", "buy", "49950.00", "0.5000"]],
    }
    assert book.apply(orders("update", 4720, 4712, **changes) | {"checksum": 2519992097})
    assert not book.apply(orders("update", 4721, 4720, removed=["4720"]) | {"checksum": 2519992097}), "another copy"
    far = [[str(number), "buy", f"{100 - number}.0", "1.0"] for number in range(1, 13)]
    assert book.apply(orders("snapshot", 5000, None, added=far))
    best = book.checksum
    assert book.apply(orders("update", 5001, 5000, removed=["11"]) | {"checksum": best}), "orders further off do not count"
    assert not book.apply(orders("update", 5002, 5001, removed=["10"]) | {"checksum": best})
