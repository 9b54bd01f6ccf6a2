"""Batch markets: offers, prices, pools and proofs.

:class:`Market` is made by ``Client.batch("main")`` (:class:`AsyncMarket` by ``await AsyncClient.batch("main")``); it numbers and signs
transactions, sends them until they are answered, and says what came of them:

    market = walras.Client("http://127.0.0.1:7070", "trader.key").batch("main")
    sent = market.sell("100", "USD", "EUR", price="0.92")       # at least 92 EUR for them
    market.wait(sent.sequence)                                  # once its block is cleared: status, sold, bought, price
    market.prices()                                             # of the last block
    market.prove_transaction(sent.sequence, trusted=block_hash) # what the block did with it, checked here

A transaction ends after about two minutes: no later block may have it. ``until=`` of a call gives another last block, such as one of
:meth:`Market.last_block`, or ``None`` for no end, and ``blocks=`` of ``Client.batch`` another number of blocks for all of its
transactions.

:class:`VenueMarket` is a market of the venue in the process, made by ``walras.Venue().batch("main", account)``: nothing is signed, and
``Venue.clear_batch`` makes each :class:`Block`.

Transactions are signed with Ed25519. The operations (:class:`CreateOffer` and so on), :func:`encode` and :func:`sign` make the bytes of
docs/batch-transactions.md without a venue; amounts and limits in them are in smallest units.
"""

from __future__ import annotations

from walras._async_market import AsyncMarket
from walras._batch_venue import Block, BlockTrade, Cancelled, Dropped, PoolTrade, StandingOffer, VenueMarket
from walras._market import Collected, Market, Proven, Trusted, new_key
from walras._transactions import (
    ANY_PRICE,
    Burn,
    CancelOffer,
    CreateAccount,
    CreateOffer,
    CreatePool,
    DepositToPool,
    Issue,
    Operation,
    Payment,
    Place,
    SetKey,
    Until,
    WithdrawFromPool,
    blocks_of_two_minutes,
    bought_at_least,
    encode,
    last_of_blocks,
    limit_bits,
    place_in_chain,
    price_of,
    sign,
    signed_message,
)

__all__ = [
    "ANY_PRICE",
    "AsyncMarket",
    "Block",
    "BlockTrade",
    "Burn",
    "CancelOffer",
    "Cancelled",
    "Collected",
    "CreateAccount",
    "CreateOffer",
    "CreatePool",
    "DepositToPool",
    "Dropped",
    "Issue",
    "Market",
    "Operation",
    "Payment",
    "Place",
    "PoolTrade",
    "Proven",
    "SetKey",
    "StandingOffer",
    "Trusted",
    "Until",
    "VenueMarket",
    "WithdrawFromPool",
    "blocks_of_two_minutes",
    "bought_at_least",
    "encode",
    "last_of_blocks",
    "limit_bits",
    "new_key",
    "place_in_chain",
    "price_of",
    "sign",
    "signed_message",
]
