"""`walras.light` says what the vectors say, which a test in Rust takes from a venue's state; and what the document shows works."""

from __future__ import annotations

import dataclasses
import pathlib
import re
import struct
from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from walras import batch, light

REPOSITORY = pathlib.Path(__file__).parent.parent.parent.parent
VECTORS = REPOSITORY / "core" / "batch" / "tests" / "golden" / "light-client.txt"
DOCUMENT = REPOSITORY / "docs" / "light-client.md"


def of_bits(text: str) -> float:
    price: float = struct.unpack("<d", struct.pack("<Q", int(text)))[0]
    return price


def bits(price: float) -> str:
    return str(struct.unpack("<Q", struct.pack("<d", price))[0])


def of_hex(text: str) -> bytes:
    return b"" if text == "-" else bytes.fromhex(text)


def header_text(block: light.LightBlock) -> str:
    assert block.prices is not None and block.trades is not None and len(block.prices) == block.asset_count
    prices = ",".join("-" if price is None else bits(price) for price in block.prices)
    trades = []
    for trade in block.trades:
        key = trade.marginal
        name = key.account << 38 | key.sequence
        trades.append(f"{trade.sell}:{trade.buy}:{trade.sold}:{bits(key.limit)}:{key.tie}:{name}")
    place = f"{block.market} {block.transaction_count} {block.parent.hex()} {block.batch_hash.hex()}"
    quality = f"{block.rules.hex()} {block.gap_ppb} {block.unserved_ppb} {block.set_aside} {block.certificate.hex()}"
    return f"{place} {quality} {prices} {','.join(trades) or '-'}"


def account_text(account: light.Account | None) -> str:
    if account is None:
        return "absent"
    balances = [f"{asset}:{balance.available}:{balance.reserved}" for asset, balance in account.balances.items()]
    return f"{account.key.hex() if account.key else '-'} {account.last} {','.join(balances) or '-'}"


def offer_text(offer: light.Offer | None) -> str:
    return "absent" if offer is None else f"{offer.amount} {bits(offer.stated_limit)}"


def trade_text(trade: light.Trade | None) -> str:
    if trade is None:
        return "absent"
    key = trade.marginal
    return f"{trade.sold} {bits(key.limit)} {key.tie} {key.account << 38 | key.sequence}"


def outcome_text(outcome: light.Outcome | None) -> str:
    if outcome is None:
        return "absent"
    traded = outcome.traded
    words = [
        outcome.operation.hex() if outcome.operation else "-",
        f"{traded.sell}:{traded.buy}:{traded.sold}:{traded.bought}" if traded else "-",
        "-" if outcome.returned is None else str(outcome.returned),
        "-" if outcome.created is None else str(outcome.created),
    ]
    return " ".join(words)


Blocks = dict[str, tuple[bytes, bytes, bytes]]


def said(words: list[str], blocks: Blocks, lights: Blocks) -> tuple[str, list[str]]:
    """What a client says in a case, and what it should."""

    def block(number: str) -> light.LightBlock:
        return light.open_block(*blocks[number])

    if words[0] in ("block", "bad-block"):
        start = 2 if words[0] == "block" else 1
        trusted, header, roots = map(of_hex, words[start : start + 3])
        opened = light.open_block(trusted, header, roots)
        assert opened.hash == trusted and str(opened.number) == words[1]
        blocks[words[1]] = (trusted, header, roots)
        return header_text(opened), words[5:]
    if words[0] == "light":
        trusted, header, roots = blocks[words[1]]
        opened, full = light.open_block(trusted, of_hex(words[2]), roots), light.open_block(trusted, header, roots)
        assert (opened.prices, opened.trades) == (None, None)
        assert dataclasses.replace(full, prices=None, trades=None) == opened
        lights[words[1]] = (trusted, of_hex(words[2]), roots)
        return "ok", words[3:]
    if words[0] == "price":
        price = light.open_block(*lights[words[1]]).price(int(words[2]), of_hex(words[3]))
        return "absent" if price is None else bits(price), words[4:]
    if words[0] == "trade":
        return trade_text(light.open_block(*lights[words[1]]).trade(int(words[2]), int(words[3]), of_hex(words[4]))), words[5:]
    if words[0] == "outcome":
        return outcome_text(light.open_block(*lights[words[1]]).outcome(int(words[2]), int(words[3]), of_hex(words[4]))), words[5:]
    if words[0] == "account":
        return account_text(block(words[1]).account(int(words[2]), of_hex(words[3]))), words[4:]
    if words[0] == "offer":
        name = int(words[6])
        key = light.OfferKey(int(words[2]), int(words[3]), of_bits(words[4]), int(words[5]), name >> 38, name & ((1 << 38) - 1))
        return offer_text(block(words[1]).offer(key, of_hex(words[7]))), words[8:]
    assert words[0] == "chain"
    newest, oldest = (blocks[number][0] for number in words[1:3])
    links = [blocks[number][1:] for number in words[3].split(",") if number != "-"]
    chain = light.open_chain(newest, oldest, links)
    assert [str(block.number) for block in chain] == words[3].split(",")
    return "ok", words[4:]


def test_vectors() -> None:
    blocks: Blocks = {}
    lights: Blocks = {}
    kinds: Counter[str] = Counter()
    for line in VECTORS.read_text().splitlines():
        if line.startswith("#"):
            continue
        words = line.split(" ")
        if "error" in words:
            with pytest.raises(light.LightError) as raised:
                said(words, blocks, lights)
            assert str(raised.value.code) == words[-1], line
            assert str(raised.value)
            kinds[f"{words[0]} {words[-1]}"] += 1
        else:
            answer, expected = said(words, blocks, lights)
            assert answer == " ".join(expected), line
            kinds[words[0]] += 1
    of_currencies = light.open_block(*blocks["4"])
    assert (of_currencies.asset_count, of_currencies.currency_count) == (5, 2)
    assert len(blocks) == len(lights) == 4 and len(kinds) >= 30, kinds


def test_every_changed_byte_is_refused() -> None:
    lines = [line.split(" ") for line in VECTORS.read_text().splitlines()]
    _, _, trusted, header, roots = next(words for words in lines if words[:2] == ["block", "3"])[:5]
    block = light.open_block(*map(of_hex, (trusted, header, roots)))
    words = next(words for words in lines if words[:3] == ["account", "3", "1"])
    statement = bytearray(of_hex(words[3]))
    for at in range(len(statement)):
        statement[at] ^= 1
        with pytest.raises(light.LightError):
            block.account(1, bytes(statement))
        statement[at] ^= 1
    found = block.account(1, bytes(statement))
    assert found is not None and found.balance(4_000) == light.Balance()


def test_arguments() -> None:
    with pytest.raises(light.LightError, match="32 bytes"):
        light.open_block(b"short", b"", b"")
    with pytest.raises(light.LightError, match="32 bytes"):
        light.open_chain(b"short", b"", [])
    words = next(line for line in VECTORS.read_text().splitlines() if line.startswith("block 3")).split(" ")
    block = light.open_block(*map(of_hex, words[2:5]))
    for key in [
        light.OfferKey(0, 1, 1.0, 0, 0, 1 << 38),
        light.OfferKey(0, 1, 1.0, 0, -1, 0),
        light.OfferKey(0, 1, -1.0, 0, 0, 0),
        light.OfferKey(0, 1, float("nan"), 0, 0, 0),
        light.OfferKey(0, 1 << 16, 1.0, 0, 0, 0),
        light.OfferKey(0, 1, 1.0, 1 << 64, 0, 0),
    ]:
        with pytest.raises(light.LightError) as raised:
            block.offer(key, b"")
        assert raised.value.code == 0, key
    with pytest.raises(light.LightError):
        block.account(1 << 32, b"")
    calls: list[Callable[[], object]] = [
        lambda: block.outcome(0, 1 << 38, b""),
        lambda: block.price(1 << 16, b""),
        lambda: block.trade(0, -1, b""),
    ]
    for call in calls:
        with pytest.raises(light.LightError) as raised:
            call()
        assert raised.value.code == 0
    # Its name would have the key of account 0.
    calls = [lambda: block.outcome(1 << 26, 1, b""), lambda: block.pool(1 << 26, 1, b"")]
    for call in calls:
        with pytest.raises(light.LightError) as raised:
            call()
        assert raised.value.code == 4


def test_document(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)
    examples = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    assert examples
    for example in examples:
        exec(compile(example, "light-client.md", "exec"), {})


def test_a_proof_of_another_block_than_the_one_asked_for_proves_nothing() -> None:
    lines = [line.split(" ") for line in VECTORS.read_text().splitlines()]

    def found(*words: str) -> list[str]:
        return next(line for line in lines if line[: len(words)] == list(words))

    _, _, state, header, roots = found("block", "3")[:5]
    answer = {"block": "3", "roots": {"state": state}, "header": header, "light_header": found("light", "3")[2], "light_roots": roots}
    answer["price_statement"] = found("price", "3", "0")[3]
    market = batch.Market.__new__(batch.Market)
    market.id, market.assets, market._path, market._account = 7, ("A", "B", "C"), "/v1/batches/main", 0
    market._client = cast(Any, SimpleNamespace(get=lambda path, **_: answer))
    assert [proven.block.number for proven in (market.prove_price("A"), market.prove_price("A", 3))] == [3, 3]
    assert market.open_block(3).number == 3
    asked: list[Callable[[], object]] = [
        lambda: market.prove_price("A", 2),
        lambda: market.prove_trade("A", "B", 2),
        lambda: market.prove_transaction(3, 2),
        lambda: market.open_block(2),
    ]
    for ask in asked:
        with pytest.raises(light.LightError, match="block 3 of market 7, not what was asked for") as caught:
            ask()
        assert caught.value.code == 3
