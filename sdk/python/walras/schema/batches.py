"""Batch markets: blocks, offers, pools, transactions, proofs (docs/batch-markets.md).

Written by tools/write_schema.py from edge/api/openapi.yaml and edge/api/asyncapi.yaml; a test compares them. Quantities are
decimal strings, times and 64-bit ids strings of digits.
"""

from __future__ import annotations

from typing import Literal, Optional, TypedDict, Union, final

from walras.schema.trading import Error, ErrorBody

__all__ = [
    "AccountFee", "Batch", "BatchAccountProof", "BatchBlock", "BatchBlockProof", "BatchBlocks", "BatchCollected",
    "BatchCreated", "BatchDemand", "BatchHeader", "BatchOfferProof", "BatchPhaseRequest", "BatchPoint", "BatchRequest",
    "BatchResults", "BatchRoots", "BatchSharesProof", "BatchTransactionProof", "BatchTransactions", "Batches", "Offer",
    "OfferFill", "OfferUpdate", "Offers", "Pool", "PoolShare", "PoolShares", "Pools", "TransactionOutcome",
    "TransactionOutcomes",
]


@final
class BatchBlock(TypedDict):
    block: str
    time_ns: str
    log_index: str
    transactions: int
    dropped: int
    offers_traded: int
    pairs_traded: int
    #: Of what could trade at the prices, the share that did not, at most; in parts per billion.
    gap_ppb: int
    #: Of what offers clearly in the money wanted to sell or to buy of an asset, the share that did not trade, of the
    #: asset that is worst off; in parts per billion.
    unserved_ppb: int
    #: Assets that could have traded with others and were left without a price.
    set_aside: int
    state_root: str
    #: By symbol: what a whole unit is worth in whole units of the numeraire, to 8 digits; null where it has no price.
    prices: dict[str, Optional[str]]
    #: By symbol: the bits of the valuation as binary64, whose ratios alone have a meaning; null if there is none.
    price_bits: dict[str, Optional[str]]
    #: By symbol: how much offers sold.
    volumes: dict[str, str]
    turnover: str


@final
class Batch(TypedDict):
    market_id: int
    name: str
    #: In the market's order, which numbers them. Two of them are a pair if at least one is a currency.
    assets: list[str]
    #: The first of the assets: all of them, unless the market says otherwise.
    currencies: list[str]
    numeraire: Optional[str]
    interval_ms: int
    commission_exponent: Optional[int]
    mu_exponent: int
    gap_ppb_max: int
    unserved_ppb_max: int
    intake: Literal["filter", "reserve"]
    transactions_max: int
    #: Fee for an account that a transaction of the collecting batch opens.
    account_fee: Optional[AccountFee]
    #: The same of the batches after it.
    account_fee_next: Optional[AccountFee]
    phase: Literal["open", "closed"]
    domain: str
    collected: int
    #: The block that the collecting batch becomes.
    collecting_block: str
    closed_block: Optional[str]
    standing_offers: str
    #: The last blocks in a row in which nothing traded and something was set aside that could have.
    idle_blocks: int
    #: The last blocks in a row in which some assets were set aside that could have traded, whether others traded or
    #: not.
    aside_blocks: int
    last_block: Optional[BatchBlock]


@final
class AccountFee(TypedDict):
    amount: str
    asset: str


@final
class Batches(TypedDict):
    batches: list[Batch]


@final
class BatchBlocks(TypedDict):
    blocks: list[BatchBlock]


@final
class BatchRoots(TypedDict):
    accounts: str
    offers: str
    touched: str
    state: str


@final
class BatchHeader(TypedDict):
    block: str
    header: str
    roots: BatchRoots
    light_roots: str


@final
class BatchPoint(TypedDict):
    price: str
    supply: str
    demand: str


@final
class BatchDemand(TypedDict):
    sell: str
    buy: str
    price: Optional[str]
    points: list[BatchPoint]


@final
class BatchTransactions(TypedDict):
    """Each in hexadecimal."""

    transactions: list[str]


@final
class BatchCollected(TypedDict):
    account_id: int
    sequence: str
    block: str


@final
class BatchResults(TypedDict):
    """One for each transaction in their order."""

    results: list[Union[BatchCollected, Error]]


class _BatchBlockProof(TypedDict):
    block: str
    light_header: str
    roots: BatchRoots
    light_roots: str


@final
class BatchBlockProof(_BatchBlockProof, total=False):
    """`asset_index`, `sell_index` and `buy_index` are the assets' places in the market."""

    asset_index: int
    price_statement: str
    sell_index: int
    buy_index: int
    trade_statement: str


@final
class BatchTransactionProof(TypedDict):
    """`blocks` are those remembered that did something under the number, oldest first."""

    block: str
    light_header: str
    roots: BatchRoots
    light_roots: str
    account_id: int
    sequence: str
    statement: str
    blocks: list[str]


@final
class BatchAccountProof(TypedDict):
    block: str
    light_header: str
    roots: BatchRoots
    light_roots: str
    account_id: int
    statement: str


@final
class BatchOfferProof(TypedDict):
    block: str
    light_header: str
    roots: BatchRoots
    light_roots: str
    statement: str


@final
class BatchSharesProof(TypedDict):
    block: str
    light_header: str
    roots: BatchRoots
    light_roots: str
    statement: str
    provider_account_id: int


@final
class Pools(TypedDict):
    pools: list[Pool]


class _Pool(TypedDict):
    batch: str
    #: Who created it.
    account_id: int
    #: The number of the transaction that created it; with the account its name.
    sequence: str
    first: str
    second: str
    rule: Literal["constant_product", "weighted", "stable_swap"]
    #: What it asks beyond its price; it stays in the pool.
    fee_ppm: int
    reserves: list[str]
    shares: str


@final
class Pool(_Pool, total=False):
    #: Of a weighted pool.
    weights: list[int]
    #: Of a stable-swap pool.
    amplification: int


@final
class PoolShares(TypedDict):
    shares: list[PoolShare]


@final
class PoolShare(TypedDict):
    batch: str
    #: Who created the pool.
    account_id: int
    #: The number of the transaction that created it.
    sequence: str
    first: str
    second: str
    shares: str
    all_shares: str
    #: What a withdrawal of them would bring now.
    worth: list[str]


@final
class Offer(TypedDict):
    batch: str
    sequence: str
    sell: str
    buy: str
    amount: str
    stated_price: str
    stated_bits: str
    limit_bits: str
    tie: str
    block: str


@final
class Offers(TypedDict):
    offers: list[Offer]
    #: The next page's cursor; null when there is no more.
    next: Optional[str]


@final
class TransactionOutcomes(TypedDict):
    transactions: list[TransactionOutcome]


class _TransactionOutcome(TypedDict):
    batch: str
    sequence: str
    block: str
    status: Literal["collected", "kept", "dropped", "cleared"]


@final
class TransactionOutcome(_TransactionOutcome, total=False):
    """A transaction is collected, then kept or dropped when its batch is closed, then final when its block is cleared.
    One that is kept and created an offer says what that offer traded so far, at what price, and how much of it
    stands. The reason is a drop reason whose codes are its own.
    """

    reason: ErrorBody
    sell: str
    buy: str
    sold: str
    bought: str
    standing: str
    #: Units of buy for one of sell, over all that traded; null where nothing did.
    price: Optional[str]


class _OfferUpdate(TypedDict):
    batch: str
    sequence: str
    status: Literal["open", "traded", "cancelled", "dropped"]


@final
class OfferUpdate(_OfferUpdate, total=False):
    """An offer that opened has all of its fields; one that traded in part has the limit_bits under which the rest
    stands, which are others than before and which its cancel names. The reason of a transaction that was dropped is
    a drop reason whose codes are its own.
    """

    sell: str
    buy: str
    amount: str
    sold: str
    bought: str
    stated_price: str
    stated_bits: str
    limit_bits: str
    tie: str
    block: str
    reason: ErrorBody


@final
class OfferFill(TypedDict):
    batch: str
    sequence: str
    block: str
    sell: str
    buy: str
    sold: str
    bought: str
    time_ns: str


class _BatchRequest(TypedDict):
    name: str
    #: With `currencies`, its other assets.
    assets: list[str]


@final
class BatchRequest(_BatchRequest, total=False):
    currencies: list[str]
    interval_ms: int
    commission: int
    mu: int
    gap_percent_max: int
    unserved_percent_max: int
    intake: Literal["filter", "reserve"]
    transactions_max: int
    #: As in AccountFeeRequest.
    account_fee: str


@final
class BatchCreated(TypedDict):
    log_index: str
    time_ns: str
    market_id: int
    name: str
    domain: str


@final
class BatchPhaseRequest(TypedDict):
    batch: str
    phase: Literal["open", "closed"]
