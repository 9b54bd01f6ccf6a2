"""``Market`` of ``walras._market`` for asyncio."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import TYPE_CHECKING, Optional

from walras import light
from walras._market import Collected, Market, Proven, Trusted
from walras._rest import KeyLike
from walras._transactions import Operation, Until
from walras._venue import Exact, Refused

if TYPE_CHECKING:
    from walras import schema


class AsyncMarket:
    """:class:`walras.batch.Market` for asyncio: the same methods, awaited; each request runs in a thread. ``plain`` is that market,
    with its ``name``, ``id``, ``domain`` and ``assets``."""

    def __init__(self, plain: Market) -> None:
        self.plain = plain

    async def status(self) -> schema.Batch:
        """As :meth:`walras.batch.Market.status`."""
        return await asyncio.to_thread(self.plain.status)

    async def blocks(self, limit: int = 100) -> list[schema.BatchBlock]:
        """As :meth:`walras.batch.Market.blocks`."""
        return await asyncio.to_thread(self.plain.blocks, limit)

    async def prices(self) -> dict[str, Decimal | None]:
        """As :meth:`walras.batch.Market.prices`."""
        return await asyncio.to_thread(self.plain.prices)

    async def demand(self, sell: str, buy: str, span_ppm: int | None = None) -> schema.BatchDemand:
        """As :meth:`walras.batch.Market.demand`."""
        return await asyncio.to_thread(self.plain.demand, sell, buy, span_ppm)

    async def pools(self) -> list[schema.Pool]:
        """As :meth:`walras.batch.Market.pools`."""
        return await asyncio.to_thread(self.plain.pools)

    async def block_hash(self, block: int) -> bytes:
        """As :meth:`walras.batch.Market.block_hash`."""
        return await asyncio.to_thread(self.plain.block_hash, block)

    async def offers(self) -> list[schema.Offer]:
        """As :meth:`walras.batch.Market.offers`."""
        return await asyncio.to_thread(self.plain.offers)

    async def shares(self) -> list[schema.PoolShare]:
        """As :meth:`walras.batch.Market.shares`."""
        return await asyncio.to_thread(self.plain.shares)

    async def transactions(self, limit: int = 64) -> list[schema.TransactionOutcome]:
        """As :meth:`walras.batch.Market.transactions`."""
        return await asyncio.to_thread(self.plain.transactions, limit)

    async def outcome(self, sequence: int) -> schema.TransactionOutcome:
        """As :meth:`walras.batch.Market.outcome`."""
        return await asyncio.to_thread(self.plain.outcome, sequence)

    async def wait(self, sequence: int, timeout_s: float = 60.0) -> schema.TransactionOutcome:
        """As :meth:`walras.batch.Market.wait`."""
        return await asyncio.to_thread(self.plain.wait, sequence, timeout_s)

    async def last_block(self, blocks: int | None = None) -> int:
        """As :meth:`walras.batch.Market.last_block`."""
        return await asyncio.to_thread(self.plain.last_block, blocks)

    async def sell(self, amount: Exact, sell: str, buy: str, price: Exact | None = None, *, until: Until = "auto") -> Collected:
        """As :meth:`walras.batch.Market.sell`."""
        return await asyncio.to_thread(self.plain.sell, amount, sell, buy, price, until=until)

    async def buy(self, amount: Exact, buy: str, sell: str, price: Exact, *, until: Until = "auto") -> Collected:
        """As :meth:`walras.batch.Market.buy`."""
        return await asyncio.to_thread(self.plain.buy, amount, buy, sell, price, until=until)

    async def cancel(self, sequence: int, *, until: Until = "auto") -> Collected:
        """As :meth:`walras.batch.Market.cancel`."""
        return await asyncio.to_thread(self.plain.cancel, sequence, until=until)

    async def pay(self, to: int, amount: Exact, asset: str, *, until: Until = "auto") -> Collected:
        """As :meth:`walras.batch.Market.pay`."""
        return await asyncio.to_thread(self.plain.pay, to, amount, asset, until=until)

    async def issue(self, amount: Exact, asset: str, *, until: Until = "auto") -> Collected:
        """As :meth:`walras.batch.Market.issue`."""
        return await asyncio.to_thread(self.plain.issue, amount, asset, until=until)

    async def burn(self, amount: Exact, asset: str, *, until: Until = "auto") -> Collected:
        """As :meth:`walras.batch.Market.burn`."""
        return await asyncio.to_thread(self.plain.burn, amount, asset, until=until)

    async def create_account(self, key: KeyLike | bytes, *, until: Until = "auto") -> Collected:
        """As :meth:`walras.batch.Market.create_account`."""
        return await asyncio.to_thread(self.plain.create_account, key, until=until)

    async def set_key(self, key: KeyLike | bytes, *, until: Until = "auto") -> Collected:
        """As :meth:`walras.batch.Market.set_key`."""
        return await asyncio.to_thread(self.plain.set_key, key, until=until)

    async def create_pool(
        self,
        first_amount: Exact,
        first: str,
        second_amount: Exact,
        second: str,
        *,
        fee_ppm: int = 0,
        weights: tuple[int, int] | None = None,
        amplification: int | None = None,
        until: Until = "auto",
    ) -> Collected:
        """As :meth:`walras.batch.Market.create_pool`."""
        return await asyncio.to_thread(
            self.plain.create_pool,
            first_amount,
            first,
            second_amount,
            second,
            fee_ppm=fee_ppm,
            weights=weights,
            amplification=amplification,
            until=until,
        )

    async def deposit(
        self,
        pool: tuple[int, int],
        first_amount: Exact,
        second_amount: Exact,
        *,
        until: Until = "auto",
    ) -> Collected:
        """As :meth:`walras.batch.Market.deposit`."""
        return await asyncio.to_thread(self.plain.deposit, pool, first_amount, second_amount, until=until)

    async def withdraw(self, pool: tuple[int, int], shares: int | None = None, *, until: Until = "auto") -> Collected:
        """As :meth:`walras.batch.Market.withdraw`."""
        return await asyncio.to_thread(self.plain.withdraw, pool, shares, until=until)

    async def send(self, *operations: Operation, until: Until = "auto", joined: bool = False) -> list[Collected | Refused]:
        """As :meth:`walras.batch.Market.send`."""
        return await asyncio.to_thread(self.plain.send, *operations, until=until, joined=joined)

    async def signed(self, first: int, *operations: Operation, until: Until = "auto", joined: bool = False) -> list[bytes]:
        """As :meth:`walras.batch.Market.signed`."""
        return await asyncio.to_thread(self.plain.signed, first, *operations, until=until, joined=joined)

    async def next_sequence(self) -> int:
        """As :meth:`walras.batch.Market.next_sequence`."""
        return await asyncio.to_thread(self.plain.next_sequence)

    async def open_block(self, block: int, trusted: Trusted = None) -> light.LightBlock:
        """As :meth:`walras.batch.Market.open_block`."""
        return await asyncio.to_thread(self.plain.open_block, block, trusted)

    async def prove_price(self, asset: str, block: int | None = None, trusted: Trusted = None) -> Proven[Optional[float]]:
        """As :meth:`walras.batch.Market.prove_price`."""
        return await asyncio.to_thread(self.plain.prove_price, asset, block, trusted)

    async def prove_trade(
        self,
        sell: str,
        buy: str,
        block: int | None = None,
        trusted: Trusted = None,
    ) -> Proven[Optional[light.Trade]]:
        """As :meth:`walras.batch.Market.prove_trade`."""
        return await asyncio.to_thread(self.plain.prove_trade, sell, buy, block, trusted)

    async def prove_transaction(
        self,
        sequence: int,
        block: int | None = None,
        trusted: Trusted = None,
    ) -> Proven[Optional[light.Outcome]]:
        """As :meth:`walras.batch.Market.prove_transaction`."""
        return await asyncio.to_thread(self.plain.prove_transaction, sequence, block, trusted)

    async def prove_account(self, account: int | None = None, trusted: Trusted = None) -> Proven[Optional[light.Account]]:
        """As :meth:`walras.batch.Market.prove_account`."""
        return await asyncio.to_thread(self.plain.prove_account, account, trusted)

    async def prove_offer(self, offer: schema.Offer, account: int | None = None, trusted: Trusted = None) -> Proven[Optional[light.Offer]]:
        """As :meth:`walras.batch.Market.prove_offer`."""
        return await asyncio.to_thread(self.plain.prove_offer, offer, account, trusted)

    async def prove_pool(self, pool: tuple[int, int], trusted: Trusted = None) -> Proven[Optional[light.Pool]]:
        """As :meth:`walras.batch.Market.prove_pool`."""
        return await asyncio.to_thread(self.plain.prove_pool, pool, trusted)

    async def prove_shares(self, pool: tuple[int, int], trusted: Trusted = None) -> Proven[int]:
        """As :meth:`walras.batch.Market.prove_shares`."""
        return await asyncio.to_thread(self.plain.prove_shares, pool, trusted)
