// Written by `npm run generate` from edge/api/openapi.yaml and edge/api/asyncapi.yaml; a test compares them. Quantities are decimal
// strings, times and 64-bit ids strings of digits.

import type { PathFaults } from "./machines.ts";
import type { Account, AccountStatus, Allocation, Permission, Phase } from "./trading.ts";

export interface AccountKeyRequest {
  account_id: number;
  key: string;
}

export interface AccountKeyAnswer {
  log_index: string;
  time_ns: string;
  account_id: number;
  key: string;
}

export interface IssuerRequest {
  asset: string;
  account_id: number;
}

export interface TransferOutRequest {
  asset: string;
  amount: string;
  to_shard: number;
  /** Larger than any before on the account; the time in nanoseconds without it. */
  client_transfer_id?: string;
}

export interface Transfer {
  to_shard: number;
  /** Its number among those to that shard. */
  transfer_seq: string;
  client_transfer_id: string;
  asset: string;
  amount: string;
  sent_at_ns: string;
}

export interface TransferAnswer extends Transfer {
  log_index: string;
}

export interface Transfers {
  /** At most 1000. */
  transfers: Transfer[];
  /** The largest so far, in transit or not. */
  last_client_transfer_id: string | null;
}

export interface InstrumentShardRequest {
  instrument: string;
  shard: number;
}

export interface DeliveredTransfer {
  transfer_seq: string;
  account_id: number;
  asset_id: number;
  amount_units: string;
}

export interface TransfersInRequest {
  from_shard: number;
  to_shard: number;
  /** 1 to 64 that follow each other. */
  transfers: DeliveredTransfer[];
}

export interface TransfersInAnswer {
  outcomes: ({
    transfer_seq: string;
    /** A refused transfer goes back to its account at the shard that sent it. */
    outcome: "taken" | "refused";
  })[];
  /** The number that is taken next from there. */
  next_transfer_seq: string | null;
}

export interface AdminAccount extends Account {
  /** Of the last deposit or withdrawal; the next must have a larger one. */
  last_transfer_id: string | null;
  limits: ({
    instrument: string;
    limits: BindingLimits;
  })[];
}

/** The account's own, or the instrument's default; null where there is none. */
export interface BindingLimits {
  order_size_max: string | null;
  order_value_max: string | null;
  open_orders_max: number | null;
  position_max: string | null;
}

export interface Accounts {
  accounts: ({
    account_id: number;
    status: AccountStatus;
    /** Names of its keys; ids of those without. */
    keys: string[];
  })[];
  /** Of all. */
  count: number;
  /** Where to go on; null at the end. */
  next: number | null;
}

export interface Fees {
  fees: ({
    asset: string;
    amount: string;
  })[];
}

export interface FeesAnswer {
  log_index: string;
  time_ns: string;
  asset: string;
  /** How much was moved. */
  amount: string;
}

export interface OperatorAnswer {
  log_index: string;
  time_ns: string;
}

export interface AssetRequest {
  symbol: string;
  decimals: number;
}

export interface AssetAnswer {
  log_index: string;
  time_ns: string;
  asset_id: number;
}

export interface Limits {
  order_size_max?: string;
  order_value_max?: string;
  open_orders_max?: number;
  position_max?: string;
}

export interface InstrumentRequest {
  symbol: string;
  base: string;
  quote: string;
  tick_size: string;
  lot_size: string;
  reference_price: string;
  maker_fee_ppm?: number;
  taker_fee_ppm?: number;
  /**
   * How far a limit may lie from the last trade's price, before any trade from the reference price, for a stop from its trigger.
   */
  collar_ppm?: number;
  band_ppm?: number;
  allocation?: Allocation;
  default_limits?: Limits;
}

export interface InstrumentAnswer {
  log_index: string;
  time_ns: string;
  instrument_id: number;
}

export interface AccountRequest {
}

export interface AccountAnswer {
  log_index: string;
  time_ns: string;
  account_id: number;
}

export interface AccountStatusRequest {
  account_id: number;
  status: AccountStatus;
}

/** transfer_id must be larger than any before on the account: repeating one moves nothing twice. */
export interface TransferRequest {
  account_id: number;
  asset: string;
  amount: string;
  transfer_id: string;
}

export interface FeesRequest {
  account_id: number;
  asset: string;
}

export interface LimitsRequest {
  account_id: number;
  instrument: string;
  limits: Limits;
}

export interface PhaseRequest {
  instrument: string;
  phase: Phase;
}

/**
 * key_id and public_key together register a key whose secret stays with its holder: Ed25519 (ed_..., the 32 bytes in base64url) or
 * RSA (rs_..., 2048 to 4096 bits, the public key in PEM).
 */
export interface KeyRequest {
  permissions: Permission[];
  account_id?: number;
  algorithm?: "ed25519" | "hmac-sha256";
  key_id?: string;
  public_key?: string;
  /** For people, such as its holder's name: 1 to 64 characters. It stays. */
  name?: string | null;
  /**
   * When it expires: requests with it are refused from then on (KeyExpired, 119), and its connections end. Without it the key never
   * expires.
   */
  expire_time_ns?: string;
}

export interface KeyAnswer extends Key {
  key?: string;
}

export interface Key {
  key_id: string;
  name: string | null;
  account_id: number | null;
  permissions: Permission[];
  expire_time_ns: string | null;
}

export interface Keys {
  keys: Key[];
}

export interface KeyRevoked {
  key_id: string;
}

export interface SnapshotAnswer {
  log_index: string;
}

export interface Done {
}

export interface ReplicaRequest {
  replica: number;
}

export interface EngineVersionRequest {
  engine_version: number;
}

export interface AddReplicaRequest {
  replica: number;
  learner?: boolean;
}

export interface FaultsRequest {
  replica: number;
  out?: PathFaults;
  back?: PathFaults;
}
