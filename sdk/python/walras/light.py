"""Check what a venue says of a batch market, without trusting it and without its state.

All that you trust is the 32 bytes of a block's hash, from whom you like: several replicas, an auditor, a newspaper. Anybody may hand over the rest,
and nothing that is not so gets through:

    block = open_block(trusted, header, roots)      # what the block says: its place, and of a full header prices and trades
    block.price(0, statement)                       # the price of an asset, by a light header of some 250 bytes
    block.trade(0, 1, statement)                    # what a pair traded, or None
    block.outcome(12, 7, statement)                 # what the block did with transaction 7 of account 12, or None
    account = block.account(12, statement)          # an account, or None when there is none
    account.balances[3].available                   # units of the ledger's asset 3
    block.offer(key, statement)                     # an offer that stands, or None
    block.pool(12, 7, statement)                    # a pool, or None; block.pool_shares(12, 7, 30, statement) of an account
    open_chain(newest, oldest, [(header, roots), ...])

The bytes, and where they come from, are described in ``docs/light-client.md`` of the repository. They are read by the same code as in the venue.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Callable, Iterable, Optional, TypeVar

from walras import _native

__all__ = [
    "Account",
    "Balance",
    "LightBlock",
    "LightError",
    "Offer",
    "OfferKey",
    "OfferTraded",
    "Outcome",
    "Pool",
    "PoolMoved",
    "Trade",
    "open_block",
    "open_chain",
]

_SEQUENCE_BITS = 38
_WEIGHTED, _STABLE_SWAP = 1, 2
_T = TypeVar("_T")


class LightError(ValueError):
    """Nothing is proven. ``code`` says why, and stays the same over versions:

    1 bytes of an unknown version; 2 bytes that are nothing of the kind; 3 header and roots of another block; 4 a statement that this block does
    not prove; 5 something proven that no state can hold; 6 a pair that the market has not; 7 a block that is not the one right before; 8 a chain
    that ends at another block; 9 an asset that the market has not; 0 an argument that no call takes, such as a hash that has not 32 bytes.
    """

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class Balance:
    """What an account had of one asset, in the asset's smallest units."""

    available: int = 0
    reserved: int = 0


@dataclass(frozen=True)
class Account:
    """What an account was when a block ended."""

    key: Optional[bytes]
    """Its Ed25519 key, 32 bytes, if it has one."""
    last: int
    """The highest number that it used for a transaction."""
    balances: dict[int, Balance] = field(hash=False)
    """By the ledger's asset; those that are not there are zero, see :meth:`balance`."""

    def balance(self, asset: int) -> Balance:
        """What it had of an asset of the ledger."""
        return self.balances.get(asset, Balance())


@dataclass(frozen=True)
class OfferKey:
    """Which offer: the pair as indexes among the market's assets, and the place that the venue reported."""

    sell: int
    buy: int
    limit: float
    """The effective limit: units bought for each unit sold, at least."""
    tie: int
    account: int
    sequence: int
    """The number of the transaction that created it."""


@dataclass(frozen=True)
class Offer:
    """An offer that stood when a block ended."""

    amount: int
    """Units for sale."""
    stated_limit: float
    """The limit that its account stated."""


@dataclass(frozen=True)
class Pool:
    """What a pool was when a block ended."""

    first: int
    """Its first asset, as an index among the market's."""
    second: int
    weights: Optional[tuple[int, int]]
    """Of a weighted pool."""
    amplification: Optional[int]
    """Of a stable swap; with neither it keeps the product constant."""
    fee_ppm: int
    first_reserve: int
    """Units of its first asset."""
    second_reserve: int
    shares: int
    """All its shares."""


@dataclass(frozen=True)
class Trade:
    """What a pair traded in a block, and the last offer that did."""

    sell: int
    buy: int
    sold: int
    """Units of the asset sold."""
    marginal: OfferKey


@dataclass(frozen=True)
class OfferTraded:
    """What an offer traded in a block; assets are the ledger's numbers, amounts their smallest units."""

    sell: int
    buy: int
    sold: int
    bought: int


@dataclass(frozen=True)
class PoolMoved:
    """What a transaction gave a pool or took from it."""

    first: int
    """Units of the pool's first asset."""
    second: int
    """Units of its second asset."""
    shares: int
    """Shares that the account got for them, or gave."""


@dataclass(frozen=True)
class Outcome:
    """What a block did with a transaction, or with the offer that it created."""

    operation: Optional[bytes]
    """What the transaction asked, as its bytes have it from the operation on, when it is in this block."""
    traded: Optional[OfferTraded]
    """What the offer of this number traded, when it did."""
    returned: Optional[int]
    """Units of the offer that came back: it was cancelled, or no units of its rest can honour its limit."""
    created: Optional[int]
    """The account that the transaction opened."""
    pooled: Optional[PoolMoved] = None
    """What came of a transaction on a pool."""


@dataclass(frozen=True)
class LightBlock:
    """A block whose header and roots hash to what you trust."""

    hash: bytes
    market: int
    number: int
    parent: bytes
    """The hash of the block before; zeros for the first."""
    batch_hash: bytes
    transaction_count: int
    rules: bytes
    """The hash of the market's rules and assets."""
    gap_ppb: int
    """Of what could trade at the prices, the share that did not, at most; in parts per billion."""
    unserved_ppb: int
    """Of what offers clearly in the money wanted to sell or to buy of an asset, the share that did not trade, of the asset that is worst off."""
    set_aside: int
    """Assets that could have traded with others and were left without a price."""
    certificate: bytes
    """The hash of the evidence for the gap, which every validator checked."""
    asset_count: int
    """How many assets the market has."""
    currency_count: int
    """How many of them, from the first on, are currencies: two assets are a pair if at least one of them is."""
    prices: Optional[tuple[Optional[float], ...]]
    """The valuation of a unit of each of the market's assets; only ratios mean something. None of a block opened from a light header."""
    trades: Optional[tuple[Trade, ...]]
    """What each pair traded. None of a block opened from a light header."""
    _native: _native.Block = field(repr=False, compare=False)

    def price(self, asset: int, statement: bytes) -> Optional[float]:
        """The price of an asset, by its index in the market; None when it has none.

        Raises :class:`LightError` when the statement does not prove it.
        """
        return _called(lambda: self._native.price(asset, statement))

    def trade(self, sell: int, buy: int, statement: bytes) -> Optional[Trade]:
        """What a pair traded in the block, and the last offer that did; None when nothing was traded.

        Raises :class:`LightError` when the statement does not prove it.
        """
        found = _called(lambda: self._native.trade((sell, buy), statement))
        return None if found is None else _trade(*found)

    def outcome(self, account: int, sequence: int, statement: bytes) -> Optional[Outcome]:
        """What the block did with a transaction, or with the offer that it created; None when it did nothing under that number.

        Raises :class:`LightError` when the statement does not prove it.
        """
        _check(sequence)
        found = _called(lambda: self._native.outcome(account, sequence, statement))
        if found is None:
            return None
        operation, traded, returned, created, pooled = found
        of_offer = None if traded is None else OfferTraded(*traded)
        return Outcome(operation, of_offer, returned, created, None if pooled is None else PoolMoved(*pooled))

    def account(self, account: int, statement: bytes) -> Optional[Account]:
        """What an account was when the block ended; None when there was no such account.

        Raises :class:`LightError` when the statement does not prove it.
        """
        found = _called(lambda: self._native.account(account, statement))
        if found is None:
            return None
        key, last, balances = found
        return Account(key, last, {asset: Balance(available, reserved) for asset, available, reserved in balances})

    def offer(self, key: OfferKey, statement: bytes) -> Optional[Offer]:
        """The offer that stood under a key when the block ended; None when none did.

        Raises :class:`LightError` when the statement does not prove it.
        """
        _check(key.sequence)
        name = (key.limit, key.tie, key.account << _SEQUENCE_BITS | key.sequence)
        found = _called(lambda: self._native.offer((key.sell, key.buy), name, statement))
        return None if found is None else Offer(*found)

    def pool(self, account: int, sequence: int, statement: bytes) -> Optional[Pool]:
        """The pool that transaction ``sequence`` of ``account`` created; None when there was none.

        Raises :class:`LightError` when the statement does not prove it.
        """
        _check(sequence)
        found = _called(lambda: self._native.pool(account, sequence, statement))
        if found is None:
            return None
        assets, (rule, parameters), fee_ppm, reserves, shares = found
        weights = (parameters & 0xFFFF, parameters >> 16) if rule == _WEIGHTED else None
        return Pool(*assets, weights, parameters if rule == _STABLE_SWAP else None, fee_ppm, *reserves, shares)

    def pool_shares(self, account: int, sequence: int, provider: int, statement: bytes) -> int:
        """A provider's shares of that pool; 0 when it had none, or when there was no such pool.

        Raises :class:`LightError` when the statement does not prove it.
        """
        _check(sequence)
        return _called(lambda: self._native.pool_shares(account, sequence, provider, statement))


def open_block(trusted: bytes, header: bytes, roots: bytes) -> LightBlock:
    """The block of a hash that you trust, from the bytes of its header, light or full, and of its roots.

    Raises :class:`LightError` when they are those of another block, or of none.
    """
    return _block(_called(lambda: _native.open_block(trusted, header, roots)))


def open_chain(newest: bytes, oldest: bytes, blocks: Iterable[tuple[bytes, bytes]]) -> list[LightBlock]:
    """The blocks from the newest, whose hash you trust, back to the oldest: header and roots of each.

    Trust goes back only: anybody can put a block on top of another. Raises :class:`LightError` when one is not the block right before.
    """
    links = list(blocks)
    return [_block(block) for block in _called(lambda: _native.open_chain(newest, oldest, links))]


def _check(sequence: int) -> None:
    if not 0 <= sequence < 1 << _SEQUENCE_BITS:
        raise LightError(0, f"sequence {sequence}: a transaction's number is below 2**38")


def _called(call: Callable[[], _T]) -> _T:
    try:
        return call()
    except ValueError as error:
        if len(error.args) != 2:
            raise
        raise LightError(*error.args) from None
    except OverflowError as error:
        raise LightError(0, f"a number that is out of range: {error}") from None


def _block(native: _native.Block) -> LightBlock:
    market, number, parent, batch_hash, transaction_count = native.header()
    prices, trades = native.prices(), native.trades()
    place = (native.hash(), market, number, parent, batch_hash, transaction_count)
    return LightBlock(
        *place,
        *native.quality(),
        native.asset_count(),
        native.currency_count(),
        None if prices is None else tuple(prices),
        None if trades is None else tuple(_trade(*trade) for trade in trades),
        native,
    )


def _trade(sell: int, buy: int, sold: int, limit: float, tie: int, name: int) -> Trade:
    return Trade(sell, buy, sold, OfferKey(sell, buy, limit, tie, name >> _SEQUENCE_BITS, name & ((1 << _SEQUENCE_BITS) - 1)))
