"""Batch markets from Python against a venue of their own: offers, prices, pools, keys, frames, proofs, and answers that are lost."""

from __future__ import annotations

import asyncio
import itertools
import pathlib
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

import walras
from venue_process import PATIENCE_S, PROGRAM, LossyProxy, Venue, run
from walras import batch, light

BOT = pathlib.Path(__file__).parents[3] / "docs" / "batch-offer.py"
BTC_UNIT, USD_UNIT = 10**8, 10**4

pytestmark = pytest.mark.skipif(not PROGRAM, reason="needs the program: `make bot-test` sets WALRAS_PROGRAM")


class BatchVenue(Venue):
    """A venue whose two accounts have Ed25519 keys that sign their transactions too; each test has a market of its own."""

    def set_up(self) -> None:
        self.admin = walras.Client(self.url, self.folder / "data" / "operator.key")
        for symbol, decimals in (("BTC", 8), ("USD", 4)):
            self.admin.request("POST", "/v1/admin/assets", {"symbol": symbol, "decimals": decimals})
        self.keys: list[str] = []
        self.accounts: list[int] = []
        self.numbers = itertools.count(1)
        for _ in range(2):
            account = self.admin.request("POST", "/v1/admin/accounts", {})["account_id"]
            for place, asset in enumerate(("BTC", "USD")):
                transfer = {"account_id": account, "asset": asset, "amount": "1000000", "transfer_id": str(place + 1)}
                self.admin.request("POST", "/v1/admin/deposits", transfer)
            wanted = {"permissions": ["read", "trade"], "account_id": account, "algorithm": "ed25519"}
            line = self.admin.request("POST", "/v1/admin/keys", wanted)["key"]
            public = walras.Key(line).public
            assert public
            self.admin.request("POST", "/v1/admin/account-keys", {"account_id": account, "key": public.hex()})
            self.keys.append(line)
            self.accounts.append(account)

    def market(self) -> tuple[batch.Market, batch.Market]:
        """A new market, as each of the two accounts sees it."""
        name = f"m{next(self.numbers)}"
        self.admin.request("POST", "/v1/admin/batches", {"name": name, "assets": ["USD", "BTC"], "interval_ms": 50})
        first, second = (walras.Client(self.url, key).batch(name) for key in self.keys)
        return first, second


@pytest.fixture(scope="module")
def venue(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BatchVenue]:
    with BatchVenue(tmp_path_factory.mktemp("venue")).running() as venue:
        yield venue


def available(market: batch.Market, asset: str) -> Decimal:
    balances = market._client.account(fresh=True)["balances"]
    return next((Decimal(row["available"]) for row in balances if row["asset"] == asset), Decimal(0))


def test_offers_trade_at_one_price_and_the_block_proves_it(venue: BatchVenue) -> None:
    alice, bob = venue.market()
    assert (alice.assets, alice.prices(), alice.offers()) == (("USD", "BTC"), {}, [])
    before = available(alice, "USD")
    sold = alice.sell("0.1", "BTC", "USD", price=29_000)
    bought = bob.buy("0.1", "BTC", "USD", price="30030")
    assert bob.wait(bought.sequence)["status"] == "cleared"
    row = alice.wait(sold.sequence)
    assert row["status"] == "cleared" and Decimal("0.09") < Decimal(row["sold"]) <= Decimal("0.1"), row
    prices = alice.prices()
    assert prices["USD"] == 1 and prices["BTC"] is not None and 29_000 <= prices["BTC"] <= 30_031
    assert Decimal(row["bought"]) == available(alice, "USD") - before >= 29_000 * Decimal(row["sold"])

    # What is shown is proven too, of the block in which it traded.
    traded = next(block for block in alice.blocks() if block["offers_traded"] == 2)
    number = int(traded["block"])
    proven = alice.prove_transaction(sold.sequence, number, trusted=bob.block_hash)
    assert proven.block.hash == bytes.fromhex(traded["state_root"]) == bob.block_hash(number)
    assert proven.value is not None and proven.value.traded is not None
    assert proven.value.traded.sold == Decimal(row["sold"]) * BTC_UNIT and proven.value.traded.bought == Decimal(row["bought"]) * USD_UNIT
    trade = alice.prove_trade("BTC", "USD", number, trusted=proven.block.hash).value
    assert trade is not None and trade.sold == proven.value.traded.sold and trade.marginal.sequence == sold.sequence
    btc, usd = (alice.prove_price(asset, number).value for asset in ("BTC", "USD"))
    assert btc and usd and abs(btc / usd * BTC_UNIT / USD_UNIT / float(prices["BTC"]) - 1) < 1e-6
    full = alice.open_block(number, trusted=bob.block_hash)
    assert full.prices == (usd, btc) and full.trades is not None and trade in full.trades
    with pytest.raises(light.LightError) as caught:
        alice.prove_transaction(sold.sequence, number, trusted=bytes(32))
    assert caught.value.code == 3
    state = alice.prove_account(trusted=bob.block_hash)
    assert state.value is not None and state.value.key == walras.Key(venue.keys[0]).public
    asset = next(row["asset_id"] for row in alice._client.assets() if row["symbol"] == "USD")
    assert state.value.balance(asset).available == available(alice, "USD") * USD_UNIT
    assert alice.prove_account(1_000).value is None
    with pytest.raises(walras.Refused) as refused:
        alice.prove_account(venue.accounts[1])
    assert refused.value.name == "Forbidden"
    assert alice.demand("BTC", "USD")["points"]


def test_an_offer_stands_until_it_is_cancelled(venue: BatchVenue) -> None:
    alice, _ = venue.market()
    sent = alice.sell(1, "BTC", "USD", price="100000.01")
    assert Decimal(alice.wait(sent.sequence)["standing"]) == 1
    (offer,) = alice.offers()
    assert (offer["sequence"], offer["stated_price"]) == (str(sent.sequence), "100000.01")
    stood = alice.prove_offer(offer, trusted=alice.block_hash).value
    assert stood is not None and stood.amount == BTC_UNIT and stood.stated_limit == batch.price_of(int(offer["stated_bits"]))
    assert alice.wait(alice.cancel(sent.sequence).sequence)["status"] == "cleared"
    assert alice.offers() == [] and alice.prove_offer(offer).value is None
    with pytest.raises(KeyError, match="no offer"):
        alice.cancel(sent.sequence)


def test_payments_in_one_request_and_what_is_refused(venue: BatchVenue) -> None:
    alice, bob = venue.market()
    usd, had = alice._ids["USD"], available(bob, "USD")
    payments = [batch.Payment(venue.accounts[1], usd, units) for units in (1, 20, 300)]
    sent = alice.send(payments[0], batch.Payment(9_999, usd, 1), *payments[1:])
    kinds = [result.code if isinstance(result, walras.Refused) else None for result in sent]
    assert kinds == [None, 1, None, None], sent
    (last,) = sent[-1:]
    assert isinstance(last, batch.Collected) and alice.wait(last.sequence)["status"] == "cleared"
    assert available(bob, "USD") == had + Decimal("0.0321")
    # The numbers go on after what was refused.
    paid = alice.pay(venue.accounts[1], "0.0001", "USD")
    assert paid.sequence == last.sequence + 1 and alice.wait(paid.sequence)["status"] == "cleared"
    dropped = alice.wait(alice.pay(venue.accounts[1], 100_000_000, "USD").sequence)
    assert dropped["status"] == "dropped" and dropped["reason"]["message"], dropped
    wrong: list[tuple[str, Any]] = [
        ("no whole number", lambda: alice.pay(1, "0.00001", "USD")),
        ("no asset", lambda: alice.pay(1, 1, "EUR")),
        ("above zero", lambda: alice.sell(1, "BTC", "USD", price=0)),
        ("1 to 64", lambda: alice.send()),
        ("1 to 64", lambda: alice.send(*payments * 22)),
        ("no batch market", lambda: alice._client.batch("nothing")),
        ("need a key", lambda: walras.Client(venue.url).batch(alice.name).signed(1, payments[0])),
    ]
    for says, call in wrong:
        with pytest.raises(ValueError, match=says):
            call()
    with pytest.raises(walras.Refused, match="SignatureInvalid"):
        alice._client.batch(alice.name, key=batch.new_key()).pay(1, 1, "USD")
    with pytest.raises(KeyError, match="prove_transaction"):
        alice.outcome(1_000_000)


def test_a_last_block_and_all_or_none(venue: BatchVenue) -> None:
    alice, bob = venue.market()
    usd, had = alice._ids["USD"], available(bob, "USD")
    first = alice.pay(venue.accounts[1], 1, "USD", until=int(alice.status()["collecting_block"]) + 5)
    assert alice.wait(first.sequence)["status"] == "cleared"
    with pytest.raises(walras.Refused, match="AlreadyExpired"):
        alice.pay(venue.accounts[1], 1, "USD", until=first.block)
    payment = batch.Payment(venue.accounts[1], usd, 20)
    nothing = batch.CancelOffer(alice.id, usd, alice._ids["BTC"], batch.ANY_PRICE, 7, first.sequence)
    together = [result for result in alice.send(payment, nothing, joined=True) if isinstance(result, batch.Collected)]
    rows = [alice.wait(sent.sequence) for sent in together]
    assert [row["status"] for row in rows] == ["dropped", "dropped"], rows
    assert [row["reason"]["name"] for row in rows] == ["JoinedDropped", "UnknownOffer"], rows
    (both, last) = alice.send(payment, payment, joined=True)
    assert isinstance(both, batch.Collected) and isinstance(last, batch.Collected)
    assert [alice.wait(sent.sequence)["status"] for sent in (both, last)] == ["cleared", "cleared"]
    assert available(bob, "USD") == had + 1 + Decimal("0.0040")


def test_keys_accounts_and_an_issuer(venue: BatchVenue) -> None:
    _, bob = venue.market()
    issued = venue.admin.request("POST", "/v1/admin/assets", {"symbol": "EUR", "decimals": 2})
    assert issued
    venue.admin.request("POST", "/v1/admin/issuers", {"asset": "EUR", "account_id": venue.accounts[1]})
    bob = bob._client.batch(bob.name)
    bob.wait(bob.issue("12.50", "EUR").sequence)
    bob.wait(bob.burn("2.50", "EUR").sequence)
    assert available(bob, "EUR") == 10
    friend = batch.new_key()
    opened = bob.create_account(friend)
    bob.wait(opened.sequence)
    outcome = bob.prove_transaction(opened.sequence).value
    assert outcome is not None and outcome.created is not None and outcome.created not in venue.accounts
    new = batch.new_key()
    bob.wait(bob.set_key(new).sequence)
    with pytest.raises(walras.Refused, match="SignatureInvalid"):
        bob.pay(outcome.created, 1, "EUR")
    bob = bob._client.batch(bob.name, key=new)
    assert bob.wait(bob.pay(outcome.created, 1, "EUR").sequence)["status"] == "cleared"
    bob.wait(bob.set_key(venue.keys[1]).sequence)


def test_a_pool(venue: BatchVenue) -> None:
    alice, bob = venue.market()
    created = alice.create_pool(1_000, "USD", "0.05", "BTC", fee_ppm=3_000, weights=(80, 20))
    alice.wait(created.sequence)
    pool = (venue.accounts[0], created.sequence)
    (row,) = alice.pools()
    assert (row["account_id"], row["sequence"], row["weights"], row["fee_ppm"]) == (pool[0], str(pool[1]), [80, 20], 3_000)
    proven = alice.prove_pool(pool, trusted=bob.block_hash).value
    assert proven == light.Pool(0, 1, (80, 20), None, 3_000, 1_000 * USD_UNIT, BTC_UNIT // 20, int(row["shares"]))
    assert alice.prove_pool((pool[0], pool[1] + 1)).value is None
    bob.wait(bob.deposit(pool, 500, "0.025").sequence)
    (own,) = bob.shares()
    assert bob.prove_shares(pool, trusted=alice.block_hash).value == int(own["shares"]) > 0
    bob.wait(bob.withdraw(pool, int(own["shares"]) // 2).sequence)
    bob.wait(bob.withdraw(pool).sequence)
    assert bob.shares() == [] and bob.prove_shares(pool).value == 0
    with pytest.raises(KeyError, match="no shares"):
        bob.withdraw(pool)
    with pytest.raises(KeyError, match="no pool"):
        bob.deposit((pool[0], 0), 1, 1)
    alice.wait(alice.withdraw(pool).sequence)
    assert alice.pools() == []


def test_each_transaction_counts_once_however_often_its_answer_is_lost(venue: BatchVenue) -> None:
    alice, bob = venue.market()
    had = available(bob, "USD")
    plan = ["drop answer", "drop request", "pass", "drop request", "drop answer", "drop answer", "pass"]
    proxy = LossyProxy(venue.url.removeprefix("http://"), plan, b"/transactions ")
    try:
        lossy = walras.Client(proxy.url, venue.keys[0], timeout_s=5).batch(alice.name)
        sent = [lossy.pay(venue.accounts[1], Decimal(1).scaleb(-place), "USD") for place in range(4)]
        assert proxy.lost == 5 and not plan
        numbers = [one.sequence for one in sent]
        assert numbers == list(range(numbers[0], numbers[0] + 4))
        assert alice.wait(numbers[-1])["status"] == "cleared"
        assert available(bob, "USD") == had + Decimal("1.111")
        plan.append("drop answer")
        with pytest.raises(walras.OutcomeUnknown, match=f"transactions {numbers[-1] + 1}"):
            walras.Client(proxy.url, venue.keys[0], timeout_s=5).batch(alice.name, patience_s=0).pay(venue.accounts[1], 1, "USD")
    finally:
        proxy.close()
    # It was taken: the next one has the number after it.
    assert alice.next_sequence() == numbers[-1] + 2
    alice.wait(numbers[-1] + 1)


def test_asyncio_and_frames_of_many(venue: BatchVenue) -> None:
    plain, bob = venue.market()

    async def play() -> None:
        had = available(bob, "USD")
        client = walras.AsyncClient(venue.url, venue.keys[0])
        market = await client.batch(plain.name)
        sent = await market.sell("0.1", "BTC", "USD", price=90_000)
        await market.wait(sent.sequence)
        assert [offer["sequence"] for offer in await market.offers()] == [str(sent.sequence)]
        assert (await market.prove_transaction(sent.sequence, trusted=bob.block_hash)).value is not None
        first = await market.next_sequence()
        payments = [batch.Payment(venue.accounts[1], plain._ids["USD"], 1) for _ in range(30)]
        signed = await market.signed(first, *payments)
        forged = signed[3][:-1] + bytes([signed[3][-1] ^ 1])
        async with await client.order_entry(venue.addresses[1]) as entry:
            frames = [entry.send_transactions(market.plain.id, signed[:10]), entry.send_transactions(market.plain.id, [forged])]
            good, bad = await asyncio.gather(*frames)
            assert good.codes == (0,) * 10 and good.blocks is not None and good.retry_after_ns is None
            assert bad.codes[0] in (12, 32, 104) and bad.blocks is None
            # A connection that breaks with frames on their way: they are sent again, and each counts once.
            lost = entry.send_transactions(market.plain.id, signed[10:])
            entry._flush()
            assert entry._transport is not None
            entry._transport.abort()
            assert set((await lost).codes) <= {0, 12, 32} and entry.logon_count == 2
            await market.wait(first + 29)
            with pytest.raises(ValueError, match="no signed transaction has 300 bytes"):
                entry.send_transactions(market.plain.id, [b"abc" * 100])
            with pytest.raises(RuntimeError, match="1 to 256"):
                entry.send_transactions(market.plain.id, [])
            with pytest.raises(walras.WindowFull):
                entry.send_transactions(market.plain.id, signed[:1] * 8_193)
        assert available(bob, "USD") == had + Decimal("0.0030")
        with pytest.raises(walras.SessionEnded):
            entry.send_transactions(market.plain.id, signed[:1])

    run(play())


def test_the_program_of_the_document(venue: BatchVenue, tmp_path: pathlib.Path) -> None:
    _, bob = venue.market()
    bob.wait(bob.buy("0.05", "BTC", "USD", price=30_000).sequence)
    key = tmp_path / "alice.key"
    key.write_text(venue.keys[0])
    command = [sys.executable, str(BOT), venue.url, str(key), bob.name, "BTC", "USD", "0.1", "29000"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "sold 0.0" in done.stdout and "proven against block" in done.stdout and "the cancel is cleared" in done.stdout, done.stdout
