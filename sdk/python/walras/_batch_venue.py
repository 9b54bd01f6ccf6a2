"""Batch markets of the venue in the process: transactions collect, and a block clears when the caller says so.

See :meth:`walras.Venue.batch`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from walras._clear import _exponent
from walras._market import _NUMBERS_MAX, Collected
from walras._transactions import (
    ANY_PRICE,
    CancelOffer,
    CreateOffer,
    Operation,
    Payment,
    cost,
    encode,
    limit_bits,
    place_in_chain,
    price_of,
)
from walras._venue import Exact, Refused, _done

if TYPE_CHECKING:
    from walras._venue import Venue

_INTAKES = ("filter", "reserve")
_CURRENCIES_MAX = 100
#: Quotients are shown to so many digits.
_SHOWN = Context(prec=12)


class BlockTrade(NamedTuple):
    """What an offer traded in a block, in whole units of its assets."""

    account: int
    #: The number of the transaction that created the offer.
    sequence: int
    sell: str
    buy: str
    sold: Decimal
    bought: Decimal
    #: What it still has to sell.
    left: Decimal

    @property
    def price(self) -> Decimal:
        """What each whole unit sold brought, to 12 digits."""
        return _SHOWN.divide(self.bought, self.sold)


class PoolTrade(NamedTuple):
    """What a pool traded in a block, in whole units. Account and number are those of the transaction that created the pool."""

    account: int
    sequence: int
    sell: str
    buy: str
    sold: Decimal
    bought: Decimal


class Cancelled(NamedTuple):
    """An offer, or the rest of one, that is gone without a trade: by a cancel, or since no units of it can honour its limit."""

    account: int
    sequence: int
    sell: str
    buy: str
    #: What it did not sell, which is available again.
    amount: Decimal


class Dropped(NamedTuple):
    """A transaction that its block left out. Codes and names are those of docs/batch-transactions.md."""

    account: int
    sequence: int
    code: int
    name: str
    advice: str


class StandingOffer(NamedTuple):
    """An offer that stands in a batch market."""

    #: The number of the transaction that created it.
    sequence: int
    sell: str
    buy: str
    #: What it has to sell, in whole units.
    amount: Decimal
    #: The whole units that it asks for each whole one, to 12 digits; ``None`` for any price.
    stated_price: Decimal | None
    #: Its place among the offers: the limit in force, in smallest units (see :func:`walras.batch.price_of`), and its tie-break.
    limit_bits: int
    tie: int


@dataclass(frozen=True, repr=False)
class Block:
    """A block of a batch market: prices, and what it did with the offers and transactions of all accounts."""

    number: int
    time_ns: int
    #: Its hash, which is that of the market's state after it: equal where all that came before is equal.
    hash: bytes
    #: How many transactions it kept.
    transactions: int
    #: What a whole unit of each asset is worth in the numeraire, the market's first asset, to 12 digits; ``None`` where it has no price.
    prices: dict[str, Decimal | None]
    #: The valuation of a smallest unit, as the bits of a float (:func:`walras.batch.price_of`); only ratios of two mean something.
    price_bits: dict[str, int | None]
    #: By pair, and in a pair by limit.
    trades: list[BlockTrade]
    pool_trades: list[PoolTrade]
    cancelled: list[Cancelled]
    dropped: list[Dropped]
    #: Of what could trade at the prices, the share that did not, at most; in parts per billion.
    gap_ppb: int
    #: Of what offers clearly in the money wanted to sell, the share that did not trade, of the asset that is worst off; in parts per
    #: billion.
    unserved_ppb: int
    #: Assets that could have traded with others and were left without a price.
    set_aside: int

    def __repr__(self) -> str:
        counts = f"{self.transactions} transactions, {len(self.dropped)} dropped, {len(self.trades)} offers traded"
        return f"Block({self.number}: {counts})"


class VenueMarket:
    """A batch market of the venue in this process, seen by one account. Made by :meth:`walras.Venue.batch`.

    Its methods are those of :class:`walras.batch.Market`: amounts are exact (``str``, ``Decimal`` or ``int``, no ``float``), in whole
    units, and assets are symbols. Nothing is signed, and nothing ends by itself: ``until`` is the last block that may have a transaction,
    ``None`` for no end. What a transaction does shows when :meth:`walras.Venue.clear_batch` clears its block.
    """

    def __init__(self, venue: Venue, name: str, account: int) -> None:
        self._venue = venue
        #: The market's number, and its name.
        self.id, self.name = venue._batch_id(name), name.lower()
        self.account = account
        known = venue.assets()
        self._ids = {asset.symbol: asset.id for asset in known}
        self._decimals = {asset.symbol: asset.decimals for asset in known}
        #: The market's assets; the first is the numeraire of its prices.
        self.assets = tuple(known[asset].symbol for asset in venue._batch(self.id)[0])

    def __repr__(self) -> str:
        return f"VenueMarket({self.name!r}, {len(self.assets)} assets, account {self.account})"

    @property
    def collecting_block(self) -> int:
        """The block that the next transactions are to be in."""
        return self._venue._batch(self.id)[1]

    def prices(self) -> dict[str, Decimal | None]:
        """The last block's prices, as :attr:`Block.prices`; empty before a block."""
        _, _, number, bits = self._venue._batch(self.id)
        return _prices(self._venue, self.assets, bits) if number else {}

    def offers(self) -> list[StandingOffer]:
        """The account's offers that stand, oldest first. What still collects is not among them. Looks at all offers of the market."""
        symbols = [asset.symbol for asset in self._venue.assets()]
        offers = []
        for sequence, sell, buy, units, stated, limit, tie in self._venue._batch_offers(self.id, self.account):
            names = symbols[sell], symbols[buy]
            decimals = self._decimals[names[0]] - self._decimals[names[1]]
            price = None if stated == ANY_PRICE else _shown(Fraction(price_of(stated)) * Fraction(10) ** decimals)
            offers.append(StandingOffer(sequence, *names, Decimal(units).scaleb(-self._decimals[names[0]]), price, limit, tie))
        return offers

    def units(self, asset: str, amount: Exact) -> int:
        """An amount in smallest units. ``ValueError`` where it is not a whole number of them."""
        return self._venue._amount_units(self._id(asset), amount)

    def sell(
        self,
        amount: Exact,
        sell: str,
        buy: str,
        price: Exact | None = None,
        *,
        until: int | None = None,
        time_ns: int | None = None,
    ) -> Collected:
        """Offers to sell an amount for at least ``price`` whole units of ``buy`` for each; for any price without it.

        Raises :class:`walras.Refused` where the venue refuses the transaction at once, ``ValueError`` for an asset that is none of the
        market's and for a number out of range, ``TypeError`` for a float.
        """
        pair, units = self._pair(sell, buy), self.units(sell, amount)
        limit = ANY_PRICE if price is None else limit_bits(price, self._decimals[sell], self._decimals[buy], units)
        return self._one(CreateOffer(self.id, *pair, units, limit), until, time_ns)

    def buy(
        self, amount: Exact, buy: str, sell: str, price: Exact, *, until: int | None = None, time_ns: int | None = None
    ) -> Collected:
        """Offers what ``amount`` costs at ``price`` whole units of ``sell`` for each, and asks for all of it; at a better price it brings
        more. Raises as :meth:`sell`.
        """
        pair = self._pair(sell, buy)
        paid, limit = cost(price, self.units(buy, amount), self._decimals[sell], self._decimals[buy])
        return self._one(CreateOffer(self.id, *pair, paid, limit), until, time_ns)

    def cancel(self, sequence: int, *, until: int | None = None, time_ns: int | None = None) -> Collected:
        """Cancels the offer that the transaction ``sequence`` created. ``KeyError`` where none of the account's stands in this market.

        The offer is out of the market when the batch is closed, before its block is priced.
        """
        for offer in self.offers():
            if offer.sequence == sequence:
                place = offer.limit_bits, offer.tie, sequence
                return self._one(CancelOffer(self.id, *self._pair(offer.sell, offer.buy), *place), until, time_ns)
        raise KeyError(f"no offer {sequence} of account {self.account} stands in {self.name}: see offers()")

    def pay(self, to: int, amount: Exact, asset: str, *, until: int | None = None, time_ns: int | None = None) -> Collected:
        """Pays another account, in any asset of the venue."""
        return self._one(Payment(to, self._id(asset), self.units(asset, amount)), until, time_ns)

    def send(
        self, *operations: Operation, until: int | None = None, joined: bool = False, time_ns: int | None = None
    ) -> list[Collected | Refused]:
        """Numbers up to 64 operations of :mod:`walras.batch` and puts them into the batch; what came of each, in their order.

        An account has 64 numbers in a batch. ``joined``: a block keeps all of them, or none.
        """
        if not 1 <= len(operations) <= _NUMBERS_MAX:
            raise ValueError(f"{len(operations)} operations: give 1 to {_NUMBERS_MAX}, as many numbers as an account has in one batch")
        first = self._venue._next_transaction(self.account)
        count = len(operations) if joined else 1
        encoded = [
            encode(self.account, first + place, operation, until=until, chain=place_in_chain(place, count))
            for place, operation in enumerate(operations)
        ]
        results: list[Collected | Refused] = []
        for sequence, transaction in enumerate(encoded, first):
            block, outcome = self._venue._submit_transaction(self.id, transaction, time_ns)
            refused = Refused(outcome.code, outcome.reason or "", outcome.advice or "") if outcome.code else None
            results.append(refused or Collected(sequence, block))
        return results

    def _one(self, operation: Operation, until: int | None, time_ns: int | None) -> Collected:
        (result,) = self.send(operation, until=until, time_ns=time_ns)
        if isinstance(result, Refused):
            raise result
        return result

    def _id(self, asset: str) -> int:
        if asset not in self._ids:
            raise ValueError(f"the venue has no asset {asset!r}: it has {', '.join(self._ids)}")
        return self._ids[asset]

    def _pair(self, sell: str, buy: str) -> tuple[int, int]:
        for asset in (sell, buy):
            if asset not in self.assets:
                raise ValueError(f"the market has no asset {asset!r}: it has {', '.join(self.assets)}")
        if sell == buy:
            raise ValueError(f"an offer sells an asset for another one: name another than {sell!r} to buy")
        return self._ids[sell], self._ids[buy]


def create(
    venue: Venue,
    name: str,
    assets: Sequence[str | int],
    currencies: Sequence[str | int],
    rules: tuple[float, float, str, int],
    time_ns: int | None,
) -> int:
    """See :meth:`walras.Venue.create_batch_market`. ``rules``: eps, mu, intake, the most transactions of a batch."""
    eps, mu, intake, transactions_max = rules
    for what, given in (("assets", assets), ("currencies", currencies)):
        if isinstance(given, (str, bytes)):
            raise TypeError(f"{what}: give a list of assets, such as ['USD', 'EUR']: {given!r} is one text")
    ids = [venue.asset_id(asset) for asset in (*currencies, *assets)]
    if len(set(ids)) < len(ids):
        raise ValueError("assets: one is named twice, among the currencies or the others: name each once")
    if len(currencies) > _CURRENCIES_MAX:
        raise ValueError(f"currencies: {len(currencies)} are named, and a market has at most {_CURRENCIES_MAX}")
    if intake not in _INTAKES:
        raise ValueError(f"intake: {intake!r} is none: give one of {', '.join(_INTAKES)}")
    if not 0 <= transactions_max < 1 << 32:
        raise ValueError(f"transactions_max: {transactions_max}: give 1 to 1048576")
    eps_exponent = None if eps == 0 else _exponent("eps", eps, "0, or 2**-k with k from 1 to 30")
    mu_exponent = _exponent("mu", mu, "2**-k with k from 1 to 30")
    given_rules = (eps_exponent, mu_exponent, intake == "reserve", transactions_max)
    market, outcome = venue._create_batch(name, ids, len(currencies), given_rules, time_ns)
    _done(outcome)
    return market


def clear(venue: Venue, name: str, queries: int, time_ns: int | None) -> Block:
    """See :meth:`walras.Venue.clear_batch`."""
    if isinstance(queries, bool) or not isinstance(queries, int) or not 0 <= queries < 1 << 63:
        raise ValueError(f"queries: {queries!r}: give a whole number from 0 up")
    market = venue._batch_id(name)
    outcome, block_hash, rows = venue._clear_batch(market, queries, time_ns)
    _done(outcome)
    number, transactions, quality, bits, traded, pools, cancelled, dropped = rows
    known = venue.assets()
    symbols = [asset.symbol for asset in known]
    assets = [symbols[asset] for asset in venue._batch(market)[0]]

    def whole(asset: int, units: int) -> Decimal:
        return Decimal(units).scaleb(-known[asset].decimals)

    gap_ppb, unserved_ppb, set_aside = quality
    return Block(
        number=number,
        time_ns=outcome.time_ns,
        hash=block_hash,
        transactions=transactions,
        prices=_prices(venue, assets, bits),
        price_bits=dict(zip(assets, bits)),
        trades=[
            BlockTrade(account, sequence, symbols[sell], symbols[buy], whole(sell, sold), whole(buy, bought), whole(sell, left))
            for account, sequence, sell, buy, sold, bought, left in traded
        ],
        pool_trades=[
            PoolTrade(account, sequence, symbols[sell], symbols[buy], whole(sell, sold), whole(buy, bought))
            for account, sequence, sell, buy, sold, bought in pools
        ],
        cancelled=[
            Cancelled(account, sequence, symbols[sell], symbols[buy], whole(sell, units))
            for account, sequence, sell, buy, units in cancelled
        ],
        dropped=[Dropped(*row) for row in dropped],
        gap_ppb=gap_ppb,
        unserved_ppb=unserved_ppb,
        set_aside=set_aside,
    )


def _shown(ratio: Fraction) -> Decimal:
    return _SHOWN.divide(Decimal(ratio.numerator), Decimal(ratio.denominator))


def _prices(venue: Venue, assets: Sequence[str], bits: Sequence[int | None]) -> dict[str, Decimal | None]:
    """What a whole unit of each asset is worth in whole units of the first."""
    decimals = {asset.symbol: asset.decimals for asset in venue.assets()}
    worths = [
        None if valuation is None else Fraction(price_of(valuation)) * Fraction(10) ** decimals[asset]
        for asset, valuation in zip(assets, bits)
    ]
    numeraire = worths[0] if worths else None
    return {
        asset: None if worth is None or numeraire is None else _shown(worth / numeraire) for asset, worth in zip(assets, worths)
    }
