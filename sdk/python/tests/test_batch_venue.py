"""Batch markets of the venue in the process: prices, limits and balances after blocks, refusals, and that blocks repeat."""

from __future__ import annotations

import pickle
import random
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

import walras
from walras import batch

DECIMALS = {"USD": 2, "EUR": 2, "ETH": 6, "BTC": 8}
WORTHS = {"USD": 1.0, "EUR": 1.1, "ETH": 2_000.0, "BTC": 30_000.0}
EPS = Fraction(1, 2**15)

#: Limits in smallest units, by account and number of the offer.
Limits = dict[tuple[int, int], int]


def venue(accounts: int = 3, riches: int = 10**6, **rules: Any) -> walras.Venue:
    """The market `main` of four assets, and accounts that can pay."""
    v = walras.Venue()
    for symbol, decimals in DECIMALS.items():
        v.create_asset(symbol, decimals)
    v.create_batch_market("main", list(DECIMALS), **rules)
    for _ in range(accounts):
        v.create_account(**dict.fromkeys(DECIMALS, riches))
    return v


def units(asset: str, amount: Decimal) -> int:
    return int(amount.scaleb(DECIMALS[asset]))


def has(v: walras.Venue, account: int, asset: str) -> tuple[Decimal, Decimal]:
    balance = v.balance(account, asset)
    return balance.available, balance.reserved


def check(v: walras.Venue, block: batch.Block, limits: Limits) -> None:
    """One vector of prices, limits that hold, and nothing made or lost."""
    for trade in block.trades:
        sell_bits, buy_bits = block.price_bits[trade.sell], block.price_bits[trade.buy]
        assert sell_bits is not None and buy_bits is not None
        sold, bought = units(trade.sell, trade.sold), units(trade.buy, trade.bought)
        rate = Fraction(batch.price_of(sell_bits)) / Fraction(batch.price_of(buy_bits)) * (1 - EPS)
        assert sold > 0 and bought == sold * rate // 1
        assert bought >= batch.bought_at_least(limits[trade.account, trade.sequence], sold)
    for asset in v.assets():
        balances = [v.balance_units(account, asset.id) for account in range(v.account_count)]
        supply, fees = v.supply_units(asset.id)
        assert sum(available + reserved for available, reserved in balances) + fees + v.pooled_units(asset.id) == supply
    v.check_invariants()


def offer(v: walras.Venue, limits: Limits, account: int, draw: random.Random) -> None:
    """Offers a small amount near the worth of its assets."""
    sell, buy = draw.sample(list(DECIMALS), 2)
    amount = f"{draw.uniform(100, 1_000) / WORTHS[sell]:.{DECIMALS[sell]}f}"
    price = f"{WORTHS[sell] / WORTHS[buy] * draw.uniform(0.97, 1.02):.12f}"
    market = v.batch("main", account)
    sent = market.sell(amount, sell, buy, price)
    limits[account, sent.sequence] = batch.limit_bits(price, DECIMALS[sell], DECIMALS[buy], market.units(sell, amount))


def study(v: walras.Venue, seed: int, blocks: int = 6) -> list[batch.Block]:
    draw = random.Random(seed)
    limits: Limits = {}
    done: list[batch.Block] = []
    for _ in range(blocks):
        for _ in range(30):
            offer(v, limits, draw.randrange(v.account_count), draw)
        for account in range(v.account_count):
            for standing in v.batch("main", account).offers()[:2]:
                v.batch("main", account).cancel(standing.sequence)
        done.append(v.clear_batch("main", time_ns=v.time_ns + 500_000_000))
        check(v, done[-1], limits)
    return done


def test_a_ring_of_three_trades_at_one_vector_of_prices() -> None:
    v = venue()
    sales = [(0, "9000", "USD", "BTC", "0.000033"), (1, "0.3", "BTC", "EUR", "27000"), (2, "8200", "EUR", "USD", "1.09")]
    limits: Limits = {}
    for account, amount, sell, buy, price in sales:
        sent = v.batch("main", account).sell(amount, sell, buy, price)
        assert sent == (1, 1)
        limits[account, 1] = batch.limit_bits(price, DECIMALS[sell], DECIMALS[buy], units(sell, Decimal(amount)))
    assert v.batch("main", 0).prices() == {} and v.batch("main", 0).offers() == []
    block = v.clear_batch("main", time_ns=7)
    check(v, block, limits)
    assert (block.number, block.time_ns, block.transactions, v.time_ns) == (1, 7, 3, 7) and block.dropped == []
    assert repr(block) == "Block(1: 3 transactions, 0 dropped, 3 offers traded)"
    for account, amount, sell, buy, price in sales:
        (trade,) = (trade for trade in block.trades if trade.account == account)
        assert (trade.sell, trade.buy, trade.sequence) == (sell, buy, 1)
        assert trade.sold > Decimal(amount) * Decimal("0.9") and trade.left == Decimal(amount) - trade.sold
        assert trade.price > Decimal(price) * Decimal("0.999")
        assert v.balance(account, buy).available == 10**6 + trade.bought
        assert sum(has(v, account, sell)) == 10**6 - trade.sold
    assert block.prices["USD"] == 1 and v.batch("main", 1).prices() == block.prices
    btc, eur = block.prices["BTC"], block.prices["EUR"]
    assert btc is not None and eur is not None and 29_000 < btc < 31_000 and Decimal("1.08") < eur < Decimal("1.13")
    assert all(v.fees(asset) > 0 for asset in ("USD", "EUR", "BTC")) and v.fees("ETH") == 0


@pytest.mark.parametrize("seed", range(3))
def test_random_offers_keep_every_promise_and_blocks_repeat(seed: int) -> None:
    v, again = venue(12), venue(12)
    blocks = study(v, seed)
    assert study(again, seed) == blocks and again.state_hash() == v.state_hash()
    pairs = {(trade.sell, trade.buy) for block in blocks for trade in block.trades}
    assert len(pairs) >= 6 and any(block.cancelled for block in blocks) and [block.number for block in blocks] == [1, 2, 3, 4, 5, 6]
    assert len({block.hash for block in blocks}) == 6
    # A copy begins from the same prices.
    for other in (v.copy(), pickle.loads(pickle.dumps(v))):
        assert other.batch("MAIN", 3).offers() == v.batch("main", 3).offers() and other.batch("main", 3).prices() == blocks[-1].prices
        assert other.state_hash() == v.state_hash()


def test_a_copy_goes_on_to_the_same_block() -> None:
    v = venue(12)
    study(v, 9, blocks=2)
    other, draws = v.copy(), (random.Random(1), random.Random(1))
    for one, draw in zip((v, other), draws):
        for account in range(12):
            offer(one, {}, account, draw)
    assert v.clear_batch("main") == other.clear_batch("main") and v.state_hash() == other.state_hash()


def test_a_large_block_is_carried_out_in_steps() -> None:
    v = venue(100)
    draw = random.Random(4)
    limits: Limits = {}
    for account in range(100):
        for _ in range(25):
            offer(v, limits, account, draw)
    block = v.clear_batch("main")
    assert block.transactions == 2_500 and block.dropped == [] and len(block.trades) > 500
    check(v, block, limits)


def test_a_purchase_brings_what_it_asks_for() -> None:
    v = venue(2)
    v.batch("main", 0).buy("50", "EUR", "USD", price="1.10")
    v.batch("main", 1).sell("200", "EUR", "USD")
    (bought,) = (trade for trade in v.clear_batch("main").trades if trade.account == 0)
    assert bought.bought >= Decimal("49.5") and bought.sold <= Decimal("55.00")


def test_a_cancelled_offer_gives_its_funds_back() -> None:
    v = venue(1)
    market = v.batch("main", 0)
    sequence = market.sell("10", "USD", "EUR", "0.92").sequence
    with pytest.raises(KeyError, match="no offer 1 of account 0 stands in main"):
        market.cancel(sequence)
    v.clear_batch("main")
    (standing,) = market.offers()
    assert (standing.sequence, standing.sell, standing.buy, standing.amount) == (sequence, "USD", "EUR", Decimal("10.00"))
    assert standing.stated_price == Decimal("0.92") and v.balance(0, "USD").reserved == 10
    assert market.cancel(sequence) == (2, 2) and market.collecting_block == 2
    block = v.clear_batch("main")
    assert block.cancelled == [(0, sequence, "USD", "EUR", Decimal("10.00"))] and block.trades == [] and market.offers() == []
    assert has(v, 0, "USD") == (Decimal(10**6), Decimal(0))


def test_one_balance_backs_both_kinds_of_market() -> None:
    v = venue(2, riches=100)
    v.create_instrument("BTC/USD", "BTC", "USD", tick_size="0.01", lot_size=1, reference_price=10)
    v.submit(0, "BTC/USD", "buy", "6", "10")
    v.batch("main", 0).sell("40", "USD", "EUR", "0.9")
    v.batch("main", 1).sell("40", "USD", "EUR", "0.9")
    assert v.clear_batch("main").dropped == [] and has(v, 0, "USD") == (Decimal(0), Decimal(100))
    v.submit(1, "BTC/USD", "sell", "6", "10")
    assert v.balance(0, "BTC").available == 106 and has(v, 0, "USD") == (Decimal(0), Decimal(40))
    with pytest.raises(walras.Refused):
        v.submit(1, "BTC/USD", "buy", "13", "10")
    v.batch("main", 0).sell("1", "USD", "EUR")
    assert [dropped.name for dropped in v.clear_batch("main").dropped] == ["Overdraft"]


def test_payments_pools_and_new_accounts_go_through_send() -> None:
    v = venue(2)
    market = v.batch("main", 0)
    key = bytes(range(32))
    pool = batch.CreatePool(market.id, 0, 1, market.units("USD", 11_000), market.units("EUR", 10_000), fee_ppm=3_000)
    assert [type(result) for result in market.send(pool, batch.CreateAccount(key))] == [batch.Collected] * 2
    market.pay(1, "12.50", "USD")
    block = v.clear_batch("main")
    assert block.dropped == [] and block.transactions == 3 and v.account_count == 3
    assert v.balance(1, "USD").available == 10**6 + Decimal("12.50") and v.pooled_units(1) == 1_000_000
    v.batch("main", 1).sell("100", "USD", "EUR")
    block = v.clear_batch("main")
    (traded,) = block.pool_trades
    assert traded[:4] == (0, 1, "EUR", "USD") and traded.bought > 98 and 85 < traded.sold < 92
    check(v, block, {(1, 1): batch.ANY_PRICE})
    joined = market.send(batch.Payment(1, 0, 100), batch.Payment(1, 0, 10**15), joined=True)
    assert all(isinstance(result, batch.Collected) for result in joined)
    assert len(v.clear_batch("main").dropped) == 2


def test_reserve_keeps_what_filter_drops() -> None:
    kept = {}
    for intake in ("filter", "reserve"):
        v = venue(1, riches=100, intake=intake)
        for amount in (70, 70, 30):
            v.batch("main", 0).sell(amount, "USD", "EUR", "0.9")
        block = v.clear_batch("main")
        kept[intake] = [offer.amount for offer in v.batch("main", 0).offers()], [dropped[:4] for dropped in block.dropped]
        assert all(dropped.advice for dropped in block.dropped)
    assert kept["filter"] == ([], [(0, sequence, 18, "Overdraft") for sequence in (1, 2, 3)])
    assert kept["reserve"] == ([Decimal(70), Decimal(30)], [(0, 2, 18, "Overdraft")])


def test_stocks_trade_with_currencies_only() -> None:
    v = walras.Venue()
    for symbol, decimals in DECIMALS.items():
        v.create_asset(symbol, decimals)
    v.create_account(**dict.fromkeys(DECIMALS, 100))
    v.create_batch_market("stocks", ["ETH", "BTC"], currencies=["EUR"])
    market = v.batch("stocks", 0)
    assert market.assets == ("EUR", "ETH", "BTC")
    market.sell(1, "ETH", "BTC")
    market.sell(1, "ETH", "EUR")
    assert [dropped.name for dropped in v.clear_batch("stocks").dropped] == ["NoSuchPair"] and len(market.offers()) == 1


def test_an_empty_block_is_a_block() -> None:
    block = venue().clear_batch("main")
    assert (block.number, block.transactions, block.set_aside) == (1, 0, 0) and block.trades == []


def test_what_is_refused_at_once_changes_nothing() -> None:
    v = venue(2)
    v.create_asset("GBP", 2)
    market = v.batch("main", 0)
    wrong: list[tuple[type[Exception], str, Any]] = [
        (TypeError, "float", lambda: market.sell(0.5, "USD", "EUR")),  # type: ignore[arg-type]
        (TypeError, "exact", lambda: market.sell("5", "USD", "EUR", 0.9)),  # type: ignore[arg-type]
        (ValueError, "amount", lambda: market.sell("0.001", "USD", "EUR")),
        (ValueError, "no asset 'GBP': it has USD", lambda: market.sell("5", "GBP", "EUR")),
        (ValueError, "the venue has no asset 'DKK'", lambda: market.pay(1, 1, "DKK")),
        (ValueError, "another than 'USD'", lambda: market.sell("5", "USD", "USD")),
        (ValueError, "above zero", lambda: market.sell("5", "USD", "EUR", "-1")),
        (ValueError, "0 operations: give 1 to 64", lambda: market.send()),
        (KeyError, "no such batch market", lambda: v.batch("other", 0)),
        (KeyError, "no such batch market", lambda: v.clear_batch("other")),
        (ValueError, "queries", lambda: v.clear_batch("main", queries=-1)),
        (ValueError, "time_ns", lambda: v.clear_batch("main", time_ns=1)),
        (KeyError, "no such asset", lambda: v.create_batch_market("b", ["USD", "DKK"])),
        (ValueError, "named twice", lambda: v.create_batch_market("b", ["USD", "EUR"], currencies=["USD"])),
        (ValueError, "has 2 at least", lambda: v.create_batch_market("b", ["USD"])),
        (TypeError, "one text", lambda: v.create_batch_market("b", "USD")),
        (ValueError, "eps: .* the nearest is 2", lambda: v.create_batch_market("b", ["USD", "EUR"], eps=0.001)),
        (ValueError, "intake", lambda: v.create_batch_market("b", ["USD", "EUR"], intake="all")),
        (ValueError, "is no symbol", lambda: v.create_batch_market("a b", ["USD", "EUR"])),
        (walras.Refused, r"DuplicateSymbol \(9\)", lambda: v.create_batch_market("main", ["USD", "EUR"])),
        (walras.Refused, r"BatchRulesInvalid \(33\)", lambda: v.create_batch_market("b", ["USD", "EUR"], mu=2**-20)),
        (walras.Refused, r"UnknownAccount \(1\)", lambda: v.batch("main", 7).sell("5", "USD", "EUR")),
    ]
    v.tick(5)
    for error, says, call in wrong:
        with pytest.raises(error, match=says):
            call()
    v.check_invariants()
    assert market.offers() == [] and v.clear_batch("main").transactions == 0
    with pytest.raises(KeyError):
        v.batch("b", 0)


def test_a_batch_takes_64_numbers_of_an_account_and_none_of_a_suspended_one() -> None:
    v = venue(2)
    market = v.batch("main", 0)
    operations = [batch.CreateOffer(market.id, 0, 1, 100, batch.ANY_PRICE)] * 64
    assert all(isinstance(result, batch.Collected) for result in market.send(*operations))
    with pytest.raises(walras.Refused, match=r"TransactionSeqOutOfWindow \(32\)"):
        market.sell("1", "USD", "EUR")
    v.suspend(1)
    with pytest.raises(walras.Refused, match=r"AccountSuspended \(8\)"):
        v.batch("main", 1).sell("1", "USD", "EUR")
    assert v.clear_batch("main").transactions == 64
    with pytest.raises(walras.Refused, match=r"AlreadyExpired \(27\)"):
        market.sell("1", "USD", "EUR", until=1)
    assert market.sell("1", "USD", "EUR", until=2) == (65, 2)
    market.pay(0, "1", "USD")
    assert [(dropped.sequence, dropped.code, dropped.name) for dropped in v.clear_batch("main").dropped] == [(66, 13, "PaysItself")]
