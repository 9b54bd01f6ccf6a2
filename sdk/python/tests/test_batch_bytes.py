"""Transactions of batch markets without a venue: their bytes, signatures and limits are those of the Rust that reads them."""

from __future__ import annotations

import base64
import json
import pathlib
import re
from decimal import Decimal
from fractions import Fraction
from typing import Any, get_args

import pytest

import walras
from walras import batch
from walras._transactions import cost

REPOSITORY = pathlib.Path(__file__).parents[3]
DOCUMENT = REPOSITORY / "docs" / "batch-transactions.md"
#: edge/batch-signatures/tests/batch_signatures/python_vector.rs makes it.
VECTOR = json.loads((pathlib.Path(__file__).parent / "transactions.json").read_text())
#: edge/batch-signatures/tests/batch_signatures/typescript_vector.rs makes it.
LIMITS = json.loads((REPOSITORY / "sdk" / "typescript" / "test" / "transaction-vector.json").read_text())["limits"]


def key_of_seed(seed: bytes) -> walras.Key:
    return walras.Key("ed_test." + base64.urlsafe_b64encode(seed).decode().rstrip("="))


def operation(row: dict[str, Any]) -> batch.Operation:
    fields: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in row["fields"].items()}
    if "key" in fields:
        fields["key"] = bytes.fromhex(fields["key"])
    made: batch.Operation = getattr(batch, row["class"])(**fields)
    return made


def test_every_operation_is_what_rust_makes_of_it() -> None:
    key, domain = key_of_seed(bytes.fromhex(VECTOR["seed"])), bytes.fromhex(VECTOR["domain"])
    assert key.public is not None and key.public.hex() == VECTOR["public_key"]
    for row in VECTOR["transactions"]:
        terms = {name: row[name] for name in ("until", "chain", "joined")}
        transaction = batch.encode(row["account"], row["sequence"], operation(row), **terms)
        assert transaction.hex() == row["transaction"], row
        assert batch.sign(key, domain, transaction).hex() == row["signed"], row
    assert {row["class"] for row in VECTOR["transactions"]} == {kind.__name__ for kind in get_args(batch.Operation)}


def test_the_document_shows_a_signed_transaction() -> None:
    (shown,) = re.findall(r"```text\npublic key  (\w+)\ntransaction (\w+)\nsignature   (\w+)\n```", DOCUMENT.read_text())
    key = key_of_seed(bytes([3] * 32))
    transaction = batch.encode(2, 8, batch.Payment(to=1, asset=0, amount=5))
    signed = batch.sign(key, bytes([9] * 32), transaction)
    assert key.public is not None
    assert (key.public.hex(), transaction.hex(), signed[len(transaction) :].hex()) == shown


def test_a_last_block_and_a_place_in_a_chain_are_flags_of_the_operation() -> None:
    payment = batch.Payment(to=1, asset=0, amount=5)
    plain = batch.encode(2, 8, payment)
    assert batch.encode(2, 8, payment, joined=True) == plain[:12] + bytes([plain[12] | 0x40]) + plain[13:]
    until = batch.encode(2, 8, payment, until=0x0102030405)
    assert until == plain[:12] + bytes([plain[12] | 0x80]) + bytes([5, 4, 3, 2, 1]) + plain[13:]
    assert batch.encode(2, 8, payment, until=1, joined=True) == plain[:12] + bytes([plain[12] | 0xC0, 1, 0, 0, 0, 0]) + plain[13:]
    places: list[tuple[batch.Place, int]] = [("first", 0x50), ("middle", 0x70), ("last", 0x30)]
    for chain, bits in places:
        assert batch.encode(2, 8, payment, chain=chain) == plain[:12] + bytes([plain[12] | bits]) + plain[13:], chain
    assert [batch.place_in_chain(0, 1), *(batch.place_in_chain(place, 3) for place in range(3))] == [None, "first", "middle", "last"]
    wrong_terms: list[dict[str, Any]] = [{"chain": "second"}, {"chain": "first", "joined": True}]
    for terms in wrong_terms:
        with pytest.raises(ValueError, match="'first', 'middle' or 'last'"):
            batch.encode(2, 8, payment, **terms)
    for wrong in (-1, 0, 1 << 40):
        with pytest.raises(ValueError, match="until"):
            batch.encode(2, 8, payment, until=wrong)


@pytest.mark.parametrize("vector", LIMITS, ids=lambda vector: f"{vector['text']} {vector['sell_decimals']} {vector['buy_decimals']}")
def test_limits_are_those_of_rust(vector: dict[str, Any]) -> None:
    given = vector["text"], vector["sell_decimals"], vector["buy_decimals"]
    if vector["bits"] is None:
        with pytest.raises(ValueError, match="not within"):
            batch.limit_bits(*given)
        return
    limit = batch.limit_bits(*given)
    assert str(limit) == vector["bits"]
    for amount, bought in vector["bought_at_least"]:
        least = batch.bought_at_least(limit, int(amount))
        assert (str(least) if least < 1 << 63 else None) == bought


def test_a_limit_asks_for_what_was_typed() -> None:
    for price in ("0.92", "1.0832", "0.1", "3.333333", "29000.01", "0.00003"):
        for amount in (1, 3, 10_000, 99_999, 10**9 + 7):
            for sell, buy in ((2, 2), (8, 2), (2, 8)):
                typed = Fraction(price) * Fraction(10) ** (buy - sell) * amount
                least = -(-typed // 1)
                assert batch.bought_at_least(batch.limit_bits(price, sell, buy, amount), amount) == least, (price, amount, sell, buy)
    # Offers to buy: 100.00 EUR at 1.08 USD each cost 108.00 USD, and the limit asks for all 100.00.
    paid, limit = cost("1.08", 10_000, 2, 2)
    assert paid == 10_800 and batch.bought_at_least(limit, paid) == 10_000
    assert batch.price_of(batch.limit_bits(2, 0, 0)) == 2.0 and batch.bought_at_least(batch.ANY_PRICE, 5) == 0


def test_what_is_out_of_range_says_what_to_give() -> None:
    offer = batch.CreateOffer(market=0, sell=0, buy=1, amount=5)
    wrong: list[tuple[str, Any]] = [
        ("account", lambda: batch.encode(1 << 26, 1, offer)),
        ("sequence", lambda: batch.encode(0, 1 << 38, offer)),
        ("amount", lambda: batch.encode(0, 1, batch.Payment(to=0, asset=0, amount=1 << 63))),
        ("asset", lambda: batch.encode(0, 1, batch.Issue(asset=4_096, amount=1))),
        ("limit", lambda: batch.encode(0, 1, batch.CreateOffer(0, 0, 1, 5, limit=7))),
        ("32 bytes", lambda: batch.encode(0, 1, batch.SetKey(b"short"))),
        ("not both", lambda: batch.encode(0, 1, batch.CreatePool(0, 0, 1, 5, 5, weights=(1, 1), amplification=1))),
        ("1 to 1000 each", lambda: batch.encode(0, 1, batch.CreatePool(0, 0, 1, 5, 5, weights=(0, 1)))),
        ("domain", lambda: batch.signed_message(b"", b"")),
        ("above zero", lambda: batch.limit_bits("0", 2, 2)),
        ("above zero", lambda: batch.limit_bits("1e999999999", 2, 2)),
        ("no number", lambda: batch.limit_bits("1,5", 2, 2)),
        ("makes no offer", lambda: cost("1e-9", 0, 2, 2)),
        ("Ed25519", lambda: batch.sign(walras.Key("hm_demo.AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"), bytes(32), b"")),
    ]
    for says, call in wrong:
        with pytest.raises(ValueError, match=says):
            call()
    with pytest.raises(TypeError, match="no exact number"):
        batch.limit_bits(0.92, 2, 2)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="give an int"):
        batch.encode(True, 1, offer)
    assert batch.limit_bits(Decimal("0.5"), 2, 2) == batch.limit_bits(".5", 2, 2)


def test_new_keys_are_new_and_read_back() -> None:
    key, other = batch.new_key(), batch.new_key()
    assert key.id.startswith("ed_") and key.public and key.public != other.public
    assert walras.Key(key.token()).public == key.public
    assert key.token().split(".")[1] not in repr(key)
    assert walras.Key("hm_demo.AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8").public is None
