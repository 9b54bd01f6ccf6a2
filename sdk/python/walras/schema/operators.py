"""What operators ask and are answered (docs/operations.md).

Written by tools/write_schema.py from edge/api/openapi.yaml and edge/api/asyncapi.yaml; a test compares them. Quantities are
decimal strings, times and 64-bit ids strings of digits.
"""

from __future__ import annotations

from typing import Literal, Optional, TypedDict, final

from walras.schema.machines import PathFaults
from walras.schema.trading import AccountStatus, Allocation, Balance, Permission, Phase, Position

__all__ = [
    "AccountAnswer", "AccountKeyAnswer", "AccountKeyRequest", "AccountRequest", "AccountStatusRequest", "Accounts",
    "AccountsAccount", "AddReplicaRequest", "AdminAccount", "AdminAccountLimit", "AssetAnswer", "AssetRequest",
    "BindingLimits", "DeliveredTransfer", "Done", "EngineVersionRequest", "FaultsRequest", "Fees", "FeesAnswer",
    "FeesFee", "FeesRequest", "InstrumentAnswer", "InstrumentRequest", "InstrumentShardRequest", "IssuerRequest", "Key",
    "KeyAnswer", "KeyRequest", "KeyRevoked", "Keys", "Limits", "LimitsRequest", "OperatorAnswer", "PhaseRequest",
    "ReplicaRequest", "SnapshotAnswer", "Transfer", "TransferAnswer", "TransferOutRequest", "TransferRequest",
    "Transfers", "TransfersInAnswer", "TransfersInAnswerOutcome", "TransfersInRequest",
]


@final
class AccountKeyRequest(TypedDict):
    account_id: int
    key: str


@final
class AccountKeyAnswer(TypedDict):
    log_index: str
    time_ns: str
    account_id: int
    key: str


@final
class IssuerRequest(TypedDict):
    asset: str
    account_id: int


class _TransferOutRequest(TypedDict):
    asset: str
    amount: str
    to_shard: int


@final
class TransferOutRequest(_TransferOutRequest, total=False):
    #: Larger than any before on the account; the time in nanoseconds without it.
    client_transfer_id: str


@final
class Transfer(TypedDict):
    to_shard: int
    #: Its number among those to that shard.
    transfer_seq: str
    client_transfer_id: str
    asset: str
    amount: str
    sent_at_ns: str


@final
class TransferAnswer(TypedDict):
    log_index: str
    to_shard: int
    transfer_seq: str
    client_transfer_id: str
    asset: str
    amount: str
    sent_at_ns: str


@final
class Transfers(TypedDict):
    #: At most 1000.
    transfers: list[Transfer]
    #: The largest so far, in transit or not.
    last_client_transfer_id: Optional[str]


@final
class InstrumentShardRequest(TypedDict):
    instrument: str
    shard: int


@final
class DeliveredTransfer(TypedDict):
    transfer_seq: str
    account_id: int
    asset_id: int
    amount_units: str


@final
class TransfersInRequest(TypedDict):
    from_shard: int
    to_shard: int
    #: 1 to 64 that follow each other.
    transfers: list[DeliveredTransfer]


@final
class TransfersInAnswerOutcome(TypedDict):
    transfer_seq: str
    #: A refused transfer goes back to its account at the shard that sent it.
    outcome: Literal["taken", "refused"]


@final
class TransfersInAnswer(TypedDict):
    outcomes: list[TransfersInAnswerOutcome]
    #: The number that is taken next from there.
    next_transfer_seq: Optional[str]


@final
class AdminAccountLimit(TypedDict):
    instrument: str
    limits: BindingLimits


@final
class AdminAccount(TypedDict):
    account_id: int
    status: AccountStatus
    balances: list[Balance]
    positions: list[Position]
    transaction_key: Optional[str]
    next_sequence: str
    #: Of the last deposit or withdrawal; the next must have a larger one.
    last_transfer_id: Optional[str]
    limits: list[AdminAccountLimit]


@final
class BindingLimits(TypedDict):
    """The account's own, or the instrument's default; null where there is none."""

    order_size_max: Optional[str]
    order_value_max: Optional[str]
    open_orders_max: Optional[int]
    position_max: Optional[str]


@final
class AccountsAccount(TypedDict):
    account_id: int
    status: AccountStatus
    #: Names of its keys; ids of those without.
    keys: list[str]


@final
class Accounts(TypedDict):
    accounts: list[AccountsAccount]
    #: Of all.
    count: int
    #: Where to go on; null at the end.
    next: Optional[int]


@final
class FeesFee(TypedDict):
    asset: str
    amount: str


@final
class Fees(TypedDict):
    fees: list[FeesFee]


@final
class FeesAnswer(TypedDict):
    log_index: str
    time_ns: str
    asset: str
    #: How much was moved.
    amount: str


@final
class OperatorAnswer(TypedDict):
    log_index: str
    time_ns: str


@final
class AssetRequest(TypedDict):
    symbol: str
    decimals: int


@final
class AssetAnswer(TypedDict):
    log_index: str
    time_ns: str
    asset_id: int


@final
class Limits(TypedDict, total=False):
    order_size_max: str
    order_value_max: str
    open_orders_max: int
    position_max: str


class _InstrumentRequest(TypedDict):
    symbol: str
    base: str
    quote: str
    tick_size: str
    lot_size: str
    reference_price: str


@final
class InstrumentRequest(_InstrumentRequest, total=False):
    maker_fee_ppm: int
    taker_fee_ppm: int
    #: How far a limit may lie from the last trade's price, before any trade from the reference price, for a stop from
    #: its trigger.
    collar_ppm: int
    band_ppm: int
    allocation: Allocation
    default_limits: Limits


@final
class InstrumentAnswer(TypedDict):
    log_index: str
    time_ns: str
    instrument_id: int


@final
class AccountRequest(TypedDict):
    pass


@final
class AccountAnswer(TypedDict):
    log_index: str
    time_ns: str
    account_id: int


@final
class AccountStatusRequest(TypedDict):
    account_id: int
    status: AccountStatus


@final
class TransferRequest(TypedDict):
    """transfer_id must be larger than any before on the account: repeating one moves nothing twice."""

    account_id: int
    asset: str
    amount: str
    transfer_id: str


@final
class FeesRequest(TypedDict):
    account_id: int
    asset: str


@final
class LimitsRequest(TypedDict):
    account_id: int
    instrument: str
    limits: Limits


@final
class PhaseRequest(TypedDict):
    instrument: str
    phase: Phase


class _KeyRequest(TypedDict):
    permissions: list[Permission]


@final
class KeyRequest(_KeyRequest, total=False):
    """key_id and public_key together register a key whose secret stays with its holder: Ed25519 (ed_..., the 32 bytes
    in base64url) or RSA (rs_..., 2048 to 4096 bits, the public key in PEM).
    """

    account_id: int
    algorithm: Literal["ed25519", "hmac-sha256"]
    key_id: str
    public_key: str
    #: For people, such as its holder's name: 1 to 64 characters. It stays.
    name: Optional[str]
    #: When it expires: requests with it are refused from then on (KeyExpired, 119), and its connections end. Without it
    #: the key never expires.
    expire_time_ns: str


class _KeyAnswer(TypedDict):
    key_id: str
    name: Optional[str]
    account_id: Optional[int]
    permissions: list[Permission]
    expire_time_ns: Optional[str]


@final
class KeyAnswer(_KeyAnswer, total=False):
    key: str


@final
class Key(TypedDict):
    key_id: str
    name: Optional[str]
    account_id: Optional[int]
    permissions: list[Permission]
    expire_time_ns: Optional[str]


@final
class Keys(TypedDict):
    keys: list[Key]


@final
class KeyRevoked(TypedDict):
    key_id: str


@final
class SnapshotAnswer(TypedDict):
    log_index: str


@final
class Done(TypedDict):
    pass


@final
class ReplicaRequest(TypedDict):
    replica: int


@final
class EngineVersionRequest(TypedDict):
    engine_version: int


class _AddReplicaRequest(TypedDict):
    replica: int


@final
class AddReplicaRequest(_AddReplicaRequest, total=False):
    learner: bool


class _FaultsRequest(TypedDict):
    replica: int


@final
class FaultsRequest(_FaultsRequest, total=False):
    out: PathFaults
    back: PathFaults
