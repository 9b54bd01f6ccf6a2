"""A day of a venue's archive as data frames have it: the files are those that a test in Rust makes again byte by byte; and what the document shows works."""

from __future__ import annotations

import json
import pathlib
import re
import shutil
from decimal import Decimal
from typing import Any

import databento_dbn
import duckdb
import pytest
import zstandard

REPOSITORY = pathlib.Path(__file__).parent.parent.parent.parent
GOLDEN = REPOSITORY / "edge" / "archive" / "tests" / "golden" / "2026-11-20"
COMPRESSED = GOLDEN.parents[1] / "golden-zstd" / GOLDEN.name
DOCUMENT = REPOSITORY / "docs" / "history.md"

polars = pytest.importorskip("polars", reason="reads Parquet with polars, which is not installed")


def rows(name: str) -> int:
    manifest = json.loads((GOLDEN / "manifest.json").read_text())
    (count,) = [file["rows"] for file in manifest["files"] if file["name"] == name]
    return int(count)


def test_trades() -> None:
    trades = polars.read_parquet(GOLDEN / "BTC-USD.0.trades.parquet")
    assert trades.height == rows("BTC-USD.0.trades.parquet") == 4
    assert trades["taker_side"].to_list() == ["buy", "sell", "buy", "buy"]
    assert trades["price_ticks"].to_list() == [60_002, 59_999, 60_002, 60_003]
    assert trades["price"].to_list() == [Decimal("30001.0"), Decimal("29999.5"), Decimal("30001.0"), Decimal("30001.5")]
    assert trades["size"].to_list() == [Decimal("0.002"), Decimal("0.001"), Decimal("0.003"), Decimal("0.003")]
    assert trades["instrument"].unique().to_list() == ["BTC/USD"]
    assert trades.schema["time_ns"] == polars.Datetime("ns")
    assert trades["log_index"].is_sorted() and trades["time_ns"].is_sorted()


def test_books() -> None:
    books = polars.read_parquet(GOLDEN / "BTC-USD.0.books.parquet")
    assert books.height == rows("BTC-USD.0.books.parquet")
    best = books.filter(polars.col("level") == 0)
    spread = best.pivot("side", index="log_index", values="price").drop_nulls()
    assert spread.height > 0 and (spread["sell"] > spread["buy"]).all()


def test_document(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    shutil.copytree(GOLDEN, tmp_path / "archive" / "2026-11-20")
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    names: dict[str, object] = {}
    exec(compile(block, "docs/history.md", "exec"), names)
    by_side, best = names["by_side"], names["best"]
    assert isinstance(by_side, polars.DataFrame) and by_side.height == 2
    assert isinstance(best, polars.DataFrame) and best.height > 0


def test_duckdb(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    database: Any = duckdb
    found = database.sql(f"SELECT sum(size), count(*) FROM read_parquet('{GOLDEN}/*.trades.parquet')").fetchall()
    assert found == [(Decimal("0.009"), 4)]
    shutil.copytree(GOLDEN, tmp_path / "archive" / "2026-11-20")
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"```sql\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    ((_, vwap, volume),) = database.sql(block).fetchall()
    assert volume == Decimal("0.009") and 30_000 < vwap < 30_002


def test_orders() -> None:
    orders = polars.read_parquet(GOLDEN / "BTC-USD.0.orders.parquet")
    assert orders.height == rows("BTC-USD.0.orders.parquet")
    assert orders["action"].to_list()[:4] == ["cleared", "added", "added", "added"]
    assert set(orders["action"]) == {"cleared", "added", "traded", "executed"}
    # What trades took, and the orders lost.
    traded, executed = (orders.filter(polars.col("action") == action) for action in ("traded", "executed"))
    trades = polars.read_parquet(GOLDEN / "BTC-USD.0.trades.parquet")
    for column in ("trade_id", "price", "size", "time_ns", "log_index"):
        assert traded[column].to_list() == trades[column].to_list(), column
    assert traded["side"].to_list() == trades["taker_side"].to_list()
    assert executed["size"].sum() == trades["size"].sum()
    # What stands at the end, order by order.
    last = orders.filter(polars.col("order_id") > 0).group_by("order_id", maintain_order=True).last()
    assert last["shown_lots"].to_list() == [0, 4, 3] and last["side"].to_list() == ["sell", "sell", "buy"]


def records(name: str) -> list[Any]:
    """What Databento's own package reads of a file, without its header."""
    decoder = databento_dbn.DBNDecoder()
    decoder.write((GOLDEN / name).read_bytes())
    decoded: list[Any] = list(decoder.decode())
    header, *found = decoded
    assert (header.version, header.dataset, header.symbols) == (3, "WALRAS", ["BTC/USD"])
    return found


def test_dbn_trades() -> None:
    trades = records("BTC-USD.0.trades.dbn")
    assert len(trades) == rows("BTC-USD.0.trades.dbn")
    parquet = polars.read_parquet(GOLDEN / "BTC-USD.0.trades.parquet")
    lot = Decimal("0.001")
    assert [Decimal(trade.price).scaleb(-9) for trade in trades] == parquet["price"].to_list()
    assert [trade.size * lot for trade in trades] == parquet["size"].to_list()
    assert [{"B": "buy", "A": "sell"}[str(trade.side)] for trade in trades] == parquet["taker_side"].to_list()
    assert [trade.ts_event for trade in trades] == parquet["time_ns"].to_physical().to_list()
    assert [trade.sequence for trade in trades] == parquet["trade_id"].to_list()


def test_dbn_books() -> None:
    books = records("BTC-USD.0.mbp-10.dbn")
    assert len(books) == rows("BTC-USD.0.mbp-10.dbn")
    parquet = polars.read_parquet(GOLDEN / "BTC-USD.0.books.parquet")
    for book in books:
        known = parquet.filter(polars.col("log_index") == book.sequence)
        for depth, level in enumerate(book.levels):
            for side, price, count in [("buy", level.bid_px, level.bid_ct), ("sell", level.ask_px, level.ask_ct)]:
                row = known.filter((polars.col("side") == side) & (polars.col("level") == depth))
                assert (count > 0) == (row.height == 1), (book.sequence, side, depth)
                if row.height:
                    assert Decimal(price).scaleb(-9) == row["price"].item()


def test_dbn_orders() -> None:
    orders = records("BTC-USD.0.mbo.dbn")
    assert len(orders) == rows("BTC-USD.0.mbo.dbn") == 16
    assert "".join(str(order.action) for order in orders) == "RAAATFMTFMTFCTFM"
    parquet = polars.read_parquet(GOLDEN / "BTC-USD.0.orders.parquet")
    for action, name in (("A", "added"), ("T", "traded"), ("F", "executed")):
        sizes = [order.size for order in orders if str(order.action) == action]
        assert sizes == parquet.filter(polars.col("action") == name)["size_lots"].to_list(), name
    assert [order.sequence for order in orders] == list(range(1, 17))
    # Of each entry the last record says so. No two of these have the same time.
    followed = [one.ts_event == other.ts_event for one, other in zip(orders, orders[1:])] + [False]
    assert [bool(int(order.flags) & 128) for order in orders] == [not more for more in followed]


def test_dbn_definition() -> None:
    (definition,) = records("BTC-USD.0.definition.dbn")
    assert (definition.raw_symbol, definition.asset, definition.currency) == ("BTC/USD", "BTC", "USD")
    assert (definition.min_price_increment, definition.unit_of_measure_qty) == (500_000_000, 1_000_000)
    assert (str(definition.instrument_class), definition.instrument_id, definition.publisher_id) == ("X", 0, 0)


def test_databentos_client_reads_what_is_compressed() -> None:
    import databento

    for schema in ("trades", "mbp-10", "mbo", "definition"):
        packed = COMPRESSED / f"BTC-USD.0.{schema}.dbn.zst"
        with packed.open("rb") as file, zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True) as stream:
            assert stream.read() == (GOLDEN / f"BTC-USD.0.{schema}.dbn").read_bytes(), schema
        store = databento.DBNStore.from_file(packed)
        assert (store.dataset, str(store.schema), store.symbols) == ("WALRAS", schema, ["BTC/USD"])
        assert len(store.to_ndarray()) == rows(f"BTC-USD.0.{schema}.dbn")
