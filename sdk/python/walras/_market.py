"""One account's view of a batch market: reads, transactions sent once, proofs checked. See ``walras.batch``."""

from __future__ import annotations

import contextlib
import os
import threading
import time
import urllib.parse
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, Optional, TypeVar, Union, cast

from walras import _native, light
from walras._entry import _count
from walras._rest import _AGAIN, _UNCERTAIN, Json, KeyLike, Lost, OutcomeUnknown, key_of, refusal
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
    cost,
    encode,
    last_of_blocks,
    limit_bits,
    place_in_chain,
    price_of,
    sign,
)
from walras._venue import Exact, Refused

if TYPE_CHECKING:
    from walras import schema
    from walras._rest import Client

T = TypeVar("T")

#: A block's hash from a source that you trust; a function of the block's number that gives it; or ``None`` to take the venue's own word.
Trusted = Union[bytes, Callable[[int], bytes], None]

#: After a retry: it was taken the first time, if the account's transactions have it.
_TAKEN = {12, 32, 27}
_BATCH_FULL = 50
#: A transaction with one of these results is not in a batch yet, and is sent again under its number.
_SEND_AGAIN = _AGAIN | {_BATCH_FULL}
#: Refusals of an end: its block has passed, or an engine of an earlier version knows no ends.
_EXPIRED, _NEEDS_LATER_VERSION = 27, 39
#: The block that collects is asked for again after this part of the time that a transaction counts.
_STALE_PART = 12
#: An account's numbers that one batch takes.
_NUMBERS_MAX = 64
_PAUSE_S, _PAUSE_S_MAX = 0.05, 1.0


class Collected(NamedTuple):
    """A transaction is in a batch and in the log. What its block does with it, :meth:`Market.wait` says."""

    #: Its number among the account's.
    sequence: int
    #: The block that its batch becomes.
    block: int


class _Head(NamedTuple):
    """What was known at a time of ``time.monotonic()`` of the block that collects."""

    collecting: int
    interval_ms: int
    at_s: float

    @staticmethod
    def of(row: Json | schema.Batch) -> _Head:
        return _Head(int(row["collecting_block"]), int(row["interval_ms"]), time.monotonic())


@dataclass(frozen=True)
class Proven(Generic[T]):
    """What a statement proves of a block."""

    block: light.LightBlock
    """The block. Where no hash was given to trust, compare ``block.hash`` with what other sources say of this block."""
    value: T


def new_key() -> _native.Key:
    """A new Ed25519 key. Keep its line, ``key.token()``, in a file that only you read; ``key.public`` is for others."""
    return _native.Key.generate(os.urandom(44))


def _public(key: KeyLike | bytes) -> bytes:
    if isinstance(key, bytes):
        return key
    found = key_of(key)
    if found.public is None:
        raise ValueError(f"{found.id} is no Ed25519 key, and transactions are signed with Ed25519: give an ed_ key, such as new_key()")
    return found.public


class Market:
    """A batch market of a running venue, seen by one account. Made by :meth:`walras.Client.batch`. Safe to use from several threads.

    Amounts are exact (``str``, ``Decimal`` or ``int``, no ``float``), in whole units; answers are the JSON objects of
    ``edge/api/openapi.yaml``, typed by ``walras.schema``. It counts the account's numbers by itself: another program that sends for the
    same account at the same time needs a range of its own.
    """

    def __init__(
        self,
        client: Client,
        name: str,
        key: KeyLike | None = None,
        *,
        patience_s: float = 60.0,
        blocks: int | Literal["auto"] | None = "auto",
    ) -> None:
        self._client, self.patience_s = client, patience_s
        if blocks is not None and blocks != "auto":
            last_of_blocks(1, blocks)
        # How many blocks may have a transaction whose call has no `until`.
        self._blocks = blocks
        self._key = client.key if key is None else key_of(key)
        listed = client.get("/v1/batches")["batches"]
        found = [row for row in listed if row["name"].lower() == name.lower()]
        if not found:
            there = ", ".join(row["name"] for row in listed) or "none"
            raise ValueError(f"the venue has no batch market {name!r}: it has {there}")
        #: Its name and its number.
        self.name, self.id = str(found[0]["name"]), int(found[0]["market_id"])
        #: What is signed with each transaction, so that it counts in this market alone.
        self.domain = bytes.fromhex(found[0]["domain"])
        #: Its assets, in the order in which proofs count them.
        self.assets = tuple(str(symbol) for symbol in found[0]["assets"])
        self._head = _Head.of(found[0])
        rows = client.assets()
        self._ids = {str(row["symbol"]): int(row["asset_id"]) for row in rows}
        self._decimals = {str(row["symbol"]): int(row["decimals"]) for row in rows}
        self._path = f"/v1/batches/{urllib.parse.quote(self.name, safe='')}"
        self._numbering = threading.Lock()
        self._account: int | None = None
        self._next: int | None = None

    def __repr__(self) -> str:
        return f"Market({self.name!r}, {len(self.assets)} assets)"

    # What everybody sees.

    def status(self) -> schema.Batch:
        """The market's row of ``GET /v1/batches``: phase, interval, fees, what it collects, its last block."""
        rows: list[schema.Batch] = self._client.get("/v1/batches")["batches"]
        found = next(row for row in rows if row["market_id"] == self.id)
        self._head = _Head.of(found)
        return found

    def blocks(self, limit: int = 100) -> list[schema.BatchBlock]:
        """The last blocks, newest first, with their prices, volumes and quality."""
        return list(self._client.get(f"{self._path}/blocks", limit=limit)["blocks"])

    def prices(self) -> dict[str, Decimal | None]:
        """The last block's prices: what a whole unit of each asset is worth in the numeraire; ``None`` without one, empty before a
        block.
        """
        last = self.blocks(1)
        return {symbol: None if price is None else Decimal(price) for symbol, price in last[0]["prices"].items()} if last else {}

    def demand(self, sell: str, buy: str, span_ppm: int | None = None) -> schema.BatchDemand:
        """Supply and demand of a pair around its last price."""
        return cast("schema.BatchDemand", self._client.get(f"{self._path}/demand", sell=sell, buy=buy, span_ppm=span_ppm))

    def pools(self) -> list[schema.Pool]:
        """The market's pools."""
        return list(self._client.get(f"{self._path}/pools")["pools"])

    def block_hash(self, block: int) -> bytes:
        """What this venue says is the hash of a block: for others to compare with, or to trust."""
        return bytes.fromhex(self._client.get(f"{self._path}/blocks/{block}/header")["roots"]["state"])

    # The account.

    @property
    def account(self) -> int:
        """The account of the client's key."""
        if self._account is None:
            self._account = int(self._client.account()["account_id"])
        return self._account

    def offers(self) -> list[schema.Offer]:
        """The account's offers that stand in this market, oldest first."""
        offers: list[schema.Offer] = []
        cursor: str | None = None
        while True:
            page = self._client.get("/v1/offers", signed=True, fresh=True, cursor=cursor)
            offers += [offer for offer in page["offers"] if offer["batch"] == self.name]
            cursor = page["next"]
            if cursor is None:
                return offers

    def shares(self) -> list[schema.PoolShare]:
        """The account's shares of this market's pools, and what they are worth."""
        return [row for row in self._client.get("/v1/shares", signed=True, fresh=True)["shares"] if row["batch"] == self.name]

    def transactions(self, limit: int = 64) -> list[schema.TransactionOutcome]:
        """What came of the account's last transactions, of all batch markets, the one collected last first."""
        return list(self._client.get("/v1/transactions", signed=True, fresh=True, limit=limit)["transactions"])

    def outcome(self, sequence: int) -> schema.TransactionOutcome:
        """What came of a transaction so far.

        ``KeyError`` where it is none of the account's last 64, and none whose offer stands or ended late.
        """
        found = self._client.get("/v1/transactions", signed=True, fresh=True, sequence=str(sequence))["transactions"]
        for row in found:
            if int(row["sequence"]) == sequence:
                return cast("schema.TransactionOutcome", row)
        raise KeyError(f"no transaction {sequence} is among the account's last 64: prove_transaction() reaches further back")

    def wait(self, sequence: int, timeout_s: float = 60.0) -> schema.TransactionOutcome:
        """What came of a transaction once its block is cleared, or the transaction dropped: ``status`` says which.

        ``TimeoutError`` where that takes longer; it may still come.
        """
        ends = time.monotonic() + timeout_s
        while True:
            row = self.outcome(sequence)
            if row["status"] in ("cleared", "dropped"):
                return row
            if time.monotonic() >= ends:
                raise TimeoutError(f"transaction {sequence} is {row['status']} after {timeout_s} s: look again with outcome({sequence})")
            time.sleep(min(max(self._head.interval_ms / 4e3, 0.01), 0.5))

    # Transactions.

    def units(self, asset: str, amount: Exact, what: str = "amount") -> int:
        """An amount in smallest units. ``ValueError`` where it is not a whole number of them."""
        self._id(asset)
        return _count(what, amount, Decimal(1).scaleb(-self._decimals[asset])) or 0

    def _id(self, asset: str) -> int:
        if asset not in self._ids:
            raise ValueError(f"the venue has no asset {asset!r}: it has {', '.join(self._ids)}")
        return self._ids[asset]

    def _index(self, asset: str) -> int:
        if asset not in self.assets:
            raise ValueError(f"the market has no asset {asset!r}: it has {', '.join(self.assets)}")
        return self.assets.index(asset)

    def last_block(self, blocks: int | None = None) -> int:
        """The last of the next ``blocks`` blocks, as the venue says now: for ``until``. The first of them is the one that collects.

        Without a number they are as many as the market has in about two minutes.
        """
        self.status()
        return self._last_of("auto" if blocks is None else blocks)

    def _last_of(self, blocks: int | Literal["auto"]) -> int:
        head = self._head
        return last_of_blocks(head.collecting, blocks_of_two_minutes(head.interval_ms) if blocks == "auto" else blocks)

    def _default_end(self) -> int | None:
        """The end of what has no ``until``, counted from the block that collected lately.

        A market closes at most one block in an interval, so that one is behind by a small part of the blocks. Where it is behind by
        more, the venue refuses the end.
        """
        if self._blocks is None:
            return None
        head = self._head
        counts_s = (blocks_of_two_minutes(head.interval_ms) if self._blocks == "auto" else self._blocks) * head.interval_ms / 1e3
        if (time.monotonic() - head.at_s) * _STALE_PART > counts_s:
            # A venue that does not answer now may take the transaction later.
            with contextlib.suppress(Lost, OutcomeUnknown, Refused):
                self.status()
        return self._last_of(self._blocks)

    def sell(self, amount: Exact, sell: str, buy: str, price: Exact | None = None, *, until: Until = "auto") -> Collected:
        """Offers to sell an amount for at least ``price`` whole units of ``buy`` for each; for any price without it."""
        units = self.units(sell, amount)
        limit = ANY_PRICE if price is None else limit_bits(price, self._decimals[sell], self._decimals[self._known(buy)], units)
        return self._one(CreateOffer(self.id, self._id(sell), self._id(buy), units, limit), until)

    def buy(self, amount: Exact, buy: str, sell: str, price: Exact, *, until: Until = "auto") -> Collected:
        """Offers what ``amount`` costs at ``price`` whole units of ``sell`` for each, and asks for all of it; at a better price it
        brings more.
        """
        units = self.units(buy, amount)
        paid, limit = cost(price, units, self._decimals[self._known(sell)], self._decimals[buy])
        return self._one(CreateOffer(self.id, self._id(sell), self._id(buy), paid, limit), until)

    def cancel(self, sequence: int, *, until: Until = "auto") -> Collected:
        """Cancels the offer that the transaction ``sequence`` created. ``KeyError`` where none of the account's stands in this market."""
        for offer in self.offers():
            if int(offer["sequence"]) == sequence:
                place = int(offer["limit_bits"]), int(offer["tie"]), sequence
                return self._one(CancelOffer(self.id, self._id(offer["sell"]), self._id(offer["buy"]), *place), until)
        raise KeyError(f"no offer {sequence} of the account stands in {self.name}: outcome({sequence}) says what came of it")

    def pay(self, to: int, amount: Exact, asset: str, *, until: Until = "auto") -> Collected:
        """Pays another account."""
        return self._one(Payment(to, self._id(asset), self.units(asset, amount)), until)

    def issue(self, amount: Exact, asset: str, *, until: Until = "auto") -> Collected:
        """Makes units of an asset; by its issuer alone."""
        return self._one(Issue(self._id(asset), self.units(asset, amount)), until)

    def burn(self, amount: Exact, asset: str, *, until: Until = "auto") -> Collected:
        """Destroys units of an asset; by its issuer alone."""
        return self._one(Burn(self._id(asset), self.units(asset, amount)), until)

    def create_account(self, key: KeyLike | bytes, *, until: Until = "auto") -> Collected:
        """Opens an account for a key (of :func:`new_key`, or the 32 bytes of a public one). The account pays the market's fee for
        it, if any.
        """
        return self._one(CreateAccount(_public(key)), until)

    def set_key(self, key: KeyLike | bytes, *, until: Until = "auto") -> Collected:
        """Replaces the account's key once the block is cleared. From then on use ``client.batch(name, key=new)``."""
        return self._one(SetKey(_public(key)), until)

    def create_pool(
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
        """Creates a pool of two assets; its name is the account and the number of this transaction. See docs/batch-markets.md for
        the rules.
        """
        amounts = self.units(first, first_amount, "first_amount"), self.units(second, second_amount, "second_amount")
        return self._one(CreatePool(self.id, self._id(first), self._id(second), *amounts, fee_ppm, weights, amplification), until)

    def deposit(self, pool: tuple[int, int], first_amount: Exact, second_amount: Exact, *, until: Until = "auto") -> Collected:
        """Adds to a pool, at most so much of each asset. ``pool`` is (account, number of the transaction that created it)."""
        for row in self.pools():
            if (row["account_id"], int(row["sequence"])) == tuple(pool):
                amounts = self.units(row["first"], first_amount, "first_amount"), self.units(row["second"], second_amount, "second_amount")
                return self._one(DepositToPool(self.id, pool, *amounts), until)
        raise KeyError(f"the market has no pool {pool}: see pools()")

    def withdraw(self, pool: tuple[int, int], shares: int | None = None, *, until: Until = "auto") -> Collected:
        """Gives shares of a pool back for their part of what it has; all that the account has without a number."""
        if shares is None:
            own = [row for row in self.shares() if (row["account_id"], int(row["sequence"])) == tuple(pool)]
            if not own:
                raise KeyError(f"the account has no shares of pool {pool}: see shares()")
            shares = int(own[0]["shares"])
        return self._one(WithdrawFromPool(self.id, pool, shares), until)

    def _known(self, asset: str) -> str:
        self._id(asset)
        return asset

    def _one(self, operation: Operation, until: Until) -> Collected:
        (result,) = self.send(operation, until=until)
        if isinstance(result, Refused):
            raise result
        return result

    def send(self, *operations: Operation, until: Until = "auto", joined: bool = False) -> list[Collected | Refused]:
        """Numbers, signs and sends up to 64 operations; what came of each, in their order.

        ``until`` is the last block that may have them: without it that of the market's ``blocks``, with ``None`` any. ``joined``: a block
        keeps all of them, or none. What is not answered is sent again, by any replica, for ``patience_s``: a number is taken once, so
        that does no harm. :class:`walras.OutcomeUnknown` where no answer comes. Without ``until``, a venue of an earlier version gets
        them without an end. Joined ones need engine version 14.
        """
        if not 1 <= len(operations) <= _NUMBERS_MAX:
            raise ValueError(f"{len(operations)} operations: give 1 to {_NUMBERS_MAX}, as many numbers as an account has in one batch")
        with self._numbering:
            first = self._first()
            signed = self.signed(first, *operations, until=until, joined=joined)
            # Where it ends in an error, the venue says what the next number is.
            self._next = None
            is_chain = joined and len(operations) > 1
            results = self._answered(dict(enumerate(signed, first)), chain=dict(enumerate(operations, first)) if is_chain else None)
            if until == "auto" and self._blocks is not None and not is_chain:
                self._send_with_other_ends(dict(enumerate(operations, first)), results)
            if not any(isinstance(result, Refused) for result in results.values()):
                self._next = first + len(operations)
        return [results[sequence] for sequence in range(first, first + len(operations))]

    def signed(self, first: int, *operations: Operation, until: Until = "auto", joined: bool = False) -> list[bytes]:
        """These operations as signed transactions under the numbers from ``first`` on, for :meth:`walras.OrderEntry.send_transactions`.

        A venue of an earlier version takes no ends: give ``until=None``.
        """
        if self._key is None:
            raise ValueError("transactions need a key: give Client(..., key=) or batch(..., key=) the path of the file of an ed_ key")
        end = self._default_end() if until == "auto" else until
        count = len(operations) if joined else 1
        return [
            self._signed(self._key, first + place, operation, end, place_in_chain(place, count))
            for place, operation in enumerate(operations)
        ]

    def _signed(self, key: _native.Key, number: int, operation: Operation, until: int | None, chain: Place | None) -> bytes:
        return sign(key, self.domain, encode(self.account, number, operation, until=until, chain=chain))

    def next_sequence(self) -> int:
        """The number after all that the account has used or that are collected, as the venue says."""
        return int(self._client.account(fresh=True)["next_sequence"])

    def _first(self) -> int:
        return self.next_sequence() if self._next is None else self._next

    def _send_with_other_ends(self, operations: dict[int, Operation], results: dict[int, Collected | Refused]) -> None:
        """Sends again what was refused for the end that it has by default: with a later one, or with none to a venue of an earlier version.

        A number is taken once, so this does no harm. Not for joined transactions: a batch may have some of them, and drops those without
        the others.
        """
        for code in (_EXPIRED, _NEEDS_LATER_VERSION):
            refused = [number for number, result in results.items() if isinstance(result, Refused) and result.code == code]
            if not refused:
                continue
            end = None
            if code == _EXPIRED:
                try:
                    self.status()
                except (Lost, OutcomeUnknown, Refused):
                    continue
                end = self._default_end()
            again = {number: self.signed(number, operations[number], until=end)[0] for number in refused}
            results.update(self._answered(again, may_be_taken=True))

    def _rest_of_chain(
        self, chain: dict[int, Operation], done: dict[int, Collected | Refused], refused: dict[int, Refused]
    ) -> dict[int, bytes] | None:
        """What may be sent again of joined transactions: only for the block that has some of them, and nothing where one is refused."""
        blocks = [result.block for result in done.values() if isinstance(result, Collected)]
        if self._key is None or any(isinstance(result, Refused) for result in done.values()):
            return {}
        if not blocks:
            return None
        first = min(chain)
        return {
            number: self._signed(self._key, number, chain[number], min(blocks), place_in_chain(number - first, len(chain)))
            for number in refused
        }

    def _answered(
        self, waiting: dict[int, bytes], may_be_taken: bool = False, chain: dict[int, Operation] | None = None
    ) -> dict[int, Collected | Refused]:
        """Sends what has no answer again, by any replica. ``may_be_taken``: something under these numbers was sent before. ``chain``: all
        of them are joined.
        """
        done: dict[int, Collected | Refused] = {}
        ends, pause_s = time.monotonic() + self.patience_s, _PAUSE_S
        while True:
            why: Exception | None = None
            refused_now: dict[int, Refused] = {}
            try:
                body = {"transactions": [signed.hex() for signed in waiting.values()]}
                answers = self._client.request("POST", f"{self._path}/transactions", body, signed=False)["results"]
                if len(answers) != len(waiting):
                    raise OutcomeUnknown(f"{len(answers)} results for {len(waiting)} transactions: is this the address of a venue?")
                for sequence, answer in zip(list(waiting), answers):
                    result = self._result(sequence, answer, may_be_taken)
                    if isinstance(result, Refused) and result.code in _SEND_AGAIN:
                        why = refused_now[sequence] = result
                    else:
                        done[sequence] = result
                        del waiting[sequence]
            except (Lost, OutcomeUnknown) as lost:
                why, may_be_taken = lost, True
            except Refused as refused:
                if refused.code not in _SEND_AGAIN:
                    raise
                why = refused
            if why is None:
                return done
            # Where a look at the account's transactions failed, all that wait are sent again as they are.
            is_answered = len(refused_now) == len(waiting)
            rest = self._rest_of_chain(chain, done, refused_now) if chain is not None and is_answered else None
            if rest is not None:
                if not rest:
                    return done | refused_now
                waiting = rest
            if isinstance(why, Refused) and why.code in _UNCERTAIN:
                may_be_taken = True
                self._client._transport.next_replica(self._client._transport.current)
            if time.monotonic() >= ends:
                numbers = ", ".join(map(str, waiting))
                raise OutcomeUnknown(
                    f"no answer within {self.patience_s} s ({why}) to transactions {numbers}: look at transactions() before sending others"
                ) from why
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, _PAUSE_S_MAX)

    def _result(self, sequence: int, answer: Json, may_be_taken: bool) -> Collected | Refused:
        if "error" not in answer:
            collected = Collected(int(answer["sequence"]), int(answer["block"]))
            if collected.block > self._head.collecting:
                self._head = self._head._replace(collecting=collected.block)
            return collected
        refused = refusal(answer)
        if may_be_taken and refused.code in _TAKEN:
            # It was taken the first time.
            for row in self.transactions():
                if int(row["sequence"]) == sequence and row["batch"] == self.name:
                    return Collected(sequence, int(row["block"]))
        return refused

    # Proofs: asked of the venue, checked here.

    def _opened(self, answer: Json, trusted: Trusted, asked: int | None, header: str = "light_header") -> light.LightBlock:
        said = bytes.fromhex(answer["roots"]["state"])
        given = trusted(int(answer["block"])) if callable(trusted) else trusted
        block = light.open_block(said if given is None else given, bytes.fromhex(answer[header]), bytes.fromhex(answer["light_roots"]))
        if block.market != self.id or block.number != int(answer["block"]) or asked not in (None, block.number):
            raise light.LightError(3, f"the venue shows block {block.number} of market {block.market}, not what was asked for")
        return block

    def _proof(self, what: str, trusted: Trusted, signed: bool = False, **asked: Any) -> tuple[Json, light.LightBlock]:
        answer = self._client.get(f"{self._path}/proofs/{what}", signed=signed, **asked)
        return answer, self._opened(answer, trusted, asked.get("block"))

    def open_block(self, block: int, trusted: Trusted = None) -> light.LightBlock:
        """A block with all its prices and trades, checked against a hash."""
        return self._opened(self._client.get(f"{self._path}/blocks/{block}/header"), trusted, block, "header")

    def prove_price(self, asset: str, block: int | None = None, trusted: Trusted = None) -> Proven[Optional[float]]:
        """The valuation of an asset in a block, or in the last one; only ratios of two mean something. ``None`` where it has none."""
        answer, opened = self._proof("block", trusted, block=block, asset=asset)
        return Proven(opened, opened.price(self._index(asset), bytes.fromhex(answer["price_statement"])))

    def prove_trade(self, sell: str, buy: str, block: int | None = None, trusted: Trusted = None) -> Proven[Optional[light.Trade]]:
        """What a pair traded in a block, or in the last one; ``None`` for nothing."""
        answer, opened = self._proof("block", trusted, block=block, sell=sell, buy=buy)
        statement = bytes.fromhex(answer["trade_statement"])
        return Proven(opened, opened.trade(self._index(sell), self._index(buy), statement))

    def prove_transaction(self, sequence: int, block: int | None = None, trusted: Trusted = None) -> Proven[Optional[light.Outcome]]:
        """What a block did with a transaction of the account, or with the offer that it created: without ``block`` the newest that did."""
        answer, opened = self._proof(f"transaction/{sequence}", trusted, signed=True, block=block)
        return Proven(opened, opened.outcome(self.account, sequence, bytes.fromhex(answer["statement"])))

    def prove_account(self, account: int | None = None, trusted: Trusted = None) -> Proven[Optional[light.Account]]:
        """The account after the last block, or that there is none of another number.

        A venue proves it as long as it is as that block left it: ``Refused`` (109) says to ask again after the next block.
        """
        account = self.account if account is None else account
        answer, opened = self._proof(f"account/{account}", trusted, signed=True)
        return Proven(opened, opened.account(account, bytes.fromhex(answer["statement"])))

    def prove_offer(self, offer: schema.Offer, account: int | None = None, trusted: Trusted = None) -> Proven[Optional[light.Offer]]:
        """Whether an offer, a row of :meth:`offers`, stood after the last block; ``None`` where it did not."""
        account = self.account if account is None else account
        answer, opened = self._proof(
            "offer",
            trusted,
            account_id=account,
            sequence=offer["sequence"],
            sell=offer["sell"],
            buy=offer["buy"],
            limit_bits=offer["limit_bits"],
            tie=offer["tie"],
        )
        limit, tie, sequence = price_of(int(offer["limit_bits"])), int(offer["tie"]), int(offer["sequence"])
        key = light.OfferKey(self._index(offer["sell"]), self._index(offer["buy"]), limit, tie, account, sequence)
        return Proven(opened, opened.offer(key, bytes.fromhex(answer["statement"])))

    def prove_pool(self, pool: tuple[int, int], trusted: Trusted = None) -> Proven[Optional[light.Pool]]:
        """What a pool had after the last block; ``None`` where there was none."""
        answer, opened = self._proof("pool", trusted, account_id=pool[0], sequence=pool[1])
        return Proven(opened, opened.pool(*pool, bytes.fromhex(answer["statement"])))

    def prove_shares(self, pool: tuple[int, int], trusted: Trusted = None) -> Proven[int]:
        """The account's shares of a pool after the last block."""
        answer, opened = self._proof("shares", trusted, signed=True, account_id=pool[0], sequence=pool[1])
        return Proven(opened, opened.pool_shares(*pool, self.account, bytes.fromhex(answer["statement"])))
