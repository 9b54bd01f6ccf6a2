"""Transactions of batch markets as the bytes that an account signs: docs/batch-transactions.md, version 1. Needs no venue."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Literal, Optional, Union

from walras import _native
from walras._venue import Exact

_PURPOSE, _VERSION = b"walras batch transaction", 1
_UNTIL, _JOINED = 0x80, 0x40
_PLACES = {"first": 0x50, "middle": 0x70, "last": 0x30}
_ACCOUNTS, _ASSETS, _SEQUENCES, _AMOUNTS, _BLOCKS = 1 << 26, 1 << 12, 1 << 38, 1 << 63, 1 << 40

#: The last block that may have a transaction; ``None``: any block may have it; ``"auto"``: as the market gives it one.
Until = Union[int, Literal["auto"], None]
#: Where a transaction stands in a chain, of which a block keeps all or none.
Place = Literal["first", "middle", "last"]
#: A transaction whose sender says no end counts for about so long.
_COUNTS_MS = 120_000

#: The limit of an offer that takes any price.
ANY_PRICE = 0
_FRACTION_BITS = 52
_EXPONENT_BIAS = 1023 + _FRACTION_BITS
_BITS_MIN, _BITS_MAX = (1023 - 126) << _FRACTION_BITS, (1023 + 126) << _FRACTION_BITS
#: Beyond these powers of ten no price is in range, whatever the decimals of its assets.
_POWER_MAX = 400


def _below(what: str, value: int, end: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{what}: give an int: {value!r} is none")
    if not 0 <= value < end:
        raise ValueError(f"{what} {value}: give a whole number from 0 to {end - 1}")
    return value


def _account(value: int) -> int:
    return _below("account", value, _ACCOUNTS)


def _asset(what: str, value: int) -> int:
    return _below(what, value, _ASSETS)


def _amount(what: str, value: int) -> int:
    return _below(what, value, _AMOUNTS)


def _market(value: int) -> int:
    return _below("market", value, 1 << 16)


def _sequence(what: str, value: int) -> int:
    return _below(what, value, _SEQUENCES)


def _limit(bits: int) -> int:
    if bits != ANY_PRICE and not _BITS_MIN <= bits <= _BITS_MAX:
        raise ValueError(f"limit {bits}: give ANY_PRICE, or what limit_bits() makes of a price")
    return bits


def _block(until: int) -> int:
    if until == 0:
        raise ValueError("until 0: give the number of a block, from 1 on, or None for no end")
    return _below("until", until, _BLOCKS)


def _key(key: bytes) -> bytes:
    if len(key) != 32:
        raise ValueError(f"a key of {len(key)} bytes: give the 32 bytes of an Ed25519 public key, such as Key(...).public")
    return bytes(key)


@dataclass(frozen=True)
class CreateAccount:
    """Opens an account for a key that no account has. Costs the market's account fee, if it has one."""

    key: bytes

    def _bytes(self) -> bytes:
        return b"\x01" + _key(self.key)


@dataclass(frozen=True)
class CreateOffer:
    """Offers to sell ``amount`` units of ``sell`` for at least ``limit`` (of :func:`limit_bits`) units of ``buy`` each."""

    market: int
    sell: int
    buy: int
    amount: int
    limit: int = ANY_PRICE

    def _bytes(self) -> bytes:
        pair = _market(self.market), _asset("sell", self.sell), _asset("buy", self.buy)
        return struct.pack("<BHIIQQ", 2, *pair, _amount("amount", self.amount), _limit(self.limit))


@dataclass(frozen=True)
class CancelOffer:
    """Cancels an offer. ``limit``, ``tie`` and ``sequence`` are its place, as ``GET /v1/offers`` has it now."""

    market: int
    sell: int
    buy: int
    limit: int
    tie: int
    sequence: int

    def _bytes(self) -> bytes:
        pair = _market(self.market), _asset("sell", self.sell), _asset("buy", self.buy)
        place = _limit(self.limit), _below("tie", self.tie, 1 << 64), _sequence("the offer's sequence", self.sequence)
        return struct.pack("<BHIIQQQ", 3, *pair, *place)


@dataclass(frozen=True)
class Payment:
    """Pays another account."""

    to: int
    asset: int
    amount: int

    def _bytes(self) -> bytes:
        return struct.pack("<BIIQ", 4, _account(self.to), _asset("asset", self.asset), _amount("amount", self.amount))


@dataclass(frozen=True)
class Issue:
    """Makes units of an asset; by its issuer alone."""

    asset: int
    amount: int

    def _bytes(self) -> bytes:
        return struct.pack("<BIQ", 5, _asset("asset", self.asset), _amount("amount", self.amount))


@dataclass(frozen=True)
class Burn:
    """Destroys units of an asset; by its issuer alone."""

    asset: int
    amount: int

    def _bytes(self) -> bytes:
        return struct.pack("<BIQ", 6, _asset("asset", self.asset), _amount("amount", self.amount))


@dataclass(frozen=True)
class CreatePool:
    """Creates a pool: a weighted one where there are ``weights``, a stable swap where there is an ``amplification``, else constant
    product.
    """

    market: int
    first: int
    second: int
    first_amount: int
    second_amount: int
    fee_ppm: int = 0
    weights: Optional[tuple[int, int]] = None
    amplification: Optional[int] = None

    def _bytes(self) -> bytes:
        if self.weights is not None and self.amplification is not None:
            raise ValueError("a pool has weights or an amplification, not both: leave one out")
        rule = (0, 0)
        if self.weights is not None:
            first, second = self.weights
            if not (1 <= first <= 1_000 and 1 <= second <= 1_000):
                raise ValueError(f"weights {first} and {second}: give 1 to 1000 each")
            rule = (1, first | second << 16)
        elif self.amplification is not None:
            if not 1 <= self.amplification <= 1_000_000:
                raise ValueError(f"amplification {self.amplification}: give 1 to 1000000")
            rule = (2, self.amplification)
        assets = _asset("first", self.first), _asset("second", self.second)
        amounts = _amount("first_amount", self.first_amount), _amount("second_amount", self.second_amount)
        return struct.pack("<BHIIBIIQQ", 7, _market(self.market), *assets, *rule, _below("fee_ppm", self.fee_ppm, 1_000_000), *amounts)


@dataclass(frozen=True)
class DepositToPool:
    """Adds to a pool, at most so much of each asset. ``pool`` is the account and the number of the transaction that created it."""

    market: int
    pool: tuple[int, int]
    first_amount: int
    second_amount: int

    def _bytes(self) -> bytes:
        name = _account(self.pool[0]), _sequence("the pool's sequence", self.pool[1])
        amounts = _amount("first_amount", self.first_amount), _amount("second_amount", self.second_amount)
        return struct.pack("<BHIQQQ", 8, _market(self.market), *name, *amounts)


@dataclass(frozen=True)
class WithdrawFromPool:
    """Gives shares of a pool back for their part of what it has."""

    market: int
    pool: tuple[int, int]
    shares: int

    def _bytes(self) -> bytes:
        name = _account(self.pool[0]), _sequence("the pool's sequence", self.pool[1])
        return struct.pack("<BHIQQ", 9, _market(self.market), *name, _amount("shares", self.shares))


@dataclass(frozen=True)
class SetKey:
    """Replaces the sender's key from the moment when the block is cleared."""

    key: bytes

    def _bytes(self) -> bytes:
        return b"\x0a" + _key(self.key)


Operation = Union[
    CreateAccount, CreateOffer, CancelOffer, Payment, Issue, Burn, CreatePool, DepositToPool, WithdrawFromPool, SetKey
]


def blocks_of_two_minutes(interval_ms: int) -> int:
    """How many blocks a market of this interval has in about two minutes: the one that collects, and as many as it may close in that
    time.
    """
    return -(-_COUNTS_MS // max(interval_ms, 1)) + 1


def last_of_blocks(collecting: int, blocks: int) -> int:
    """The number of the last of so many blocks; the first one is ``collecting``."""
    if isinstance(blocks, bool) or not isinstance(blocks, int):
        raise TypeError(f"blocks: give an int: {blocks!r} is none")
    if blocks < 1:
        raise ValueError(f"{blocks} blocks: give a whole number from 1 on")
    return collecting + blocks - 1


def place_in_chain(place: int, count: int) -> Place | None:
    """Where one of so many transactions stands in their chain, counted from 0; ``None`` for one alone."""
    if count < 2:
        return None
    if place == 0:
        return "first"
    return "middle" if place < count - 1 else "last"


def encode(
    account: int,
    sequence: int,
    operation: Operation,
    *,
    until: int | None = None,
    chain: Place | None = None,
    joined: bool = False,
) -> bytes:
    """The bytes of a transaction, without its signature.

    ``until`` is the last block that may have it: a batch that becomes a later block drops it. ``chain``: where it stands in a chain, whose
    transactions have numbers that follow each other and are kept in one block, or not at all. ``joined``: it is kept only together with
    the transaction of the account's next number, which may be kept alone; that is how engine versions before 14 join transactions. A
    number out of range is a ``ValueError``.
    """
    if chain is not None and (joined or chain not in _PLACES):
        raise ValueError(f"chain={chain!r}: give 'first', 'middle' or 'last', and joined=True only outside of a chain")
    head = struct.pack("<IQ", _account(account), _sequence("sequence", sequence))
    asked = operation._bytes()
    tag = asked[0] | (0 if until is None else _UNTIL) | (_JOINED if joined else 0) | (0 if chain is None else _PLACES[chain])
    last = b"" if until is None else _block(until).to_bytes(5, "little")
    return head + bytes([tag]) + last + asked[1:]


def signed_message(domain: bytes, transaction: bytes) -> bytes:
    """What is signed of a transaction. ``domain`` is the market's, 32 bytes: so a signature for one market is none for another."""
    if len(domain) != 32:
        raise ValueError(f"a domain of {len(domain)} bytes: give the 32 bytes of the market's `domain` of GET /v1/batches")
    return _PURPOSE + struct.pack("<H", _VERSION) + domain + transaction


def sign(key: _native.Key, domain: bytes, transaction: bytes) -> bytes:
    """A signed transaction: its bytes, then the signature."""
    signature = key.sign_message(signed_message(domain, transaction))
    if signature is None:
        raise ValueError(f"{key.id} is no Ed25519 key, and transactions are signed with Ed25519: give the file of an ed_ key")
    return transaction + signature


def limit_bits(price: Exact, sell_decimals: int, buy_decimals: int, amount: int | None = None) -> int:
    """The limit of an offer that asks for ``price`` whole units of what it buys for each whole unit that it sells.

    Prices of a batch market are binary fractions, so most decimals are between two of them. With the ``amount`` that is offered, in
    smallest units, the limit asks for as many units as ``price`` does, never for less, and for more only where no limit asks for
    exactly as many; without it the limit is never below ``price``.
    """
    return limit_of_ratio(_ratio(price) * Fraction(10) ** (buy_decimals - sell_decimals), amount)


def cost(price: Exact, bought: int, sell_decimals: int, buy_decimals: int) -> tuple[int, int]:
    """What ``bought`` units cost at most where a whole one of them costs ``price``, and the limit at which so much brings all of them."""
    paid = -(-(_ratio(price) * Fraction(10) ** (sell_decimals - buy_decimals) * bought) // 1)
    if not 1 <= paid < _AMOUNTS:
        raise ValueError(f"{price} for each makes no offer of this amount: it costs {paid} units, and an offer has 1 to 2^63 - 1")
    return paid, limit_of_ratio(Fraction(bought, paid), paid)


def limit_of_ratio(ratio: Fraction, amount: int | None) -> int:
    """The limit of an offer of ``amount`` that asks for ``ratio`` smallest units for each one that it sells."""
    if ratio <= 0:
        raise ValueError("a limit is above zero: give a price above zero, or none to take any price")
    below = None if amount is None else _bits(ratio, up=False)
    if amount is not None and below is not None and bought_at_least(below, amount) == -(-(ratio * amount) // 1):
        return below
    above = _bits(ratio, up=True)
    if above is None:
        raise ValueError("no price of a batch market is so low or so high: in smallest units it is not within 2^-126 and 2^126")
    return above


def bought_at_least(limit: int, sold: int) -> int:
    """The least number of units that ``sold`` units must bring to honour the limit."""
    if limit == ANY_PRICE:
        return 0
    mantissa = limit & ((1 << _FRACTION_BITS) - 1) | 1 << _FRACTION_BITS
    exponent = (limit >> _FRACTION_BITS) - _EXPONENT_BIAS
    return mantissa * sold << exponent if exponent >= 0 else -(-(mantissa * sold) >> -exponent)


def price_of(bits: int) -> float:
    """A limit, or a valuation of ``price_bits``, as the float that its bits are."""
    price: float = struct.unpack("<d", struct.pack("<Q", bits))[0]
    return price


def _ratio(price: Exact) -> Fraction:
    if isinstance(price, bool) or not isinstance(price, (str, int, Decimal)):
        raise TypeError(f"price: give a str, a Decimal or an int: {price!r} is no exact number")
    try:
        number = Decimal(price)
    except InvalidOperation:
        raise ValueError(f"price: {price!r} is no number: give one such as 0.92") from None
    if not number.is_finite() or number <= 0 or abs(number.adjusted()) > _POWER_MAX:
        raise ValueError(f"price: {price}: give a number above zero, such as 0.92, or no price to take any")
    return Fraction(number)


def _bits(ratio: Fraction, *, up: bool) -> int | None:
    """The price next to a ratio; ``None`` where that is out of range."""
    numerator, denominator = ratio.numerator, ratio.denominator
    # Scaled until the quotient has 53 or 54 bits: one too many is cut off below, and what is cut off counts in the rounding.
    shift = _FRACTION_BITS + 1 + denominator.bit_length() - numerator.bit_length()
    quotient, rest = divmod(numerator << max(shift, 0), denominator << max(-shift, 0))
    exponent = -shift
    if quotient >> _FRACTION_BITS + 1:
        rest |= quotient & 1
        quotient, exponent = quotient >> 1, exponent + 1
    quotient += 1 if up and rest else 0
    if quotient >> _FRACTION_BITS + 1:
        quotient, exponent = quotient >> 1, exponent + 1
    bits = (exponent + _EXPONENT_BIAS << _FRACTION_BITS) + (quotient - (1 << _FRACTION_BITS))
    return bits if _BITS_MIN <= bits <= _BITS_MAX else None
