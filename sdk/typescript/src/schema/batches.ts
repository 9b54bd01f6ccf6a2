// Written by `npm run generate` from edge/api/openapi.yaml and edge/api/asyncapi.yaml; a test compares them. Quantities are decimal
// strings, times and 64-bit ids strings of digits.

import type { Error, ErrorBody } from "./trading.ts";

export interface BatchBlock {
  block: string;
  time_ns: string;
  log_index: string;
  transactions: number;
  dropped: number;
  offers_traded: number;
  pairs_traded: number;
  /** Of what could trade at the prices, the share that did not, at most; in parts per billion. */
  gap_ppb: number;
  /**
   * Of what offers clearly in the money wanted to sell or to buy of an asset, the share that did not trade, of the asset that is
   * worst off; in parts per billion.
   */
  unserved_ppb: number;
  /** Assets that could have traded with others and were left without a price. */
  set_aside: number;
  state_root: string;
  /** By symbol: what a whole unit is worth in whole units of the numeraire, to 8 digits; null where it has no price. */
  prices: Record<string, string | null>;
  /** By symbol: the bits of the valuation as binary64, whose ratios alone have a meaning; null if there is none. */
  price_bits: Record<string, string | null>;
  /** By symbol: how much offers sold. */
  volumes: Record<string, string>;
  turnover: string;
}

export interface Batch {
  market_id: number;
  name: string;
  /** In the market's order, which numbers them. Two of them are a pair if at least one is a currency. */
  assets: string[];
  /** The first of the assets: all of them, unless the market says otherwise. */
  currencies: string[];
  numeraire: string | null;
  interval_ms: number;
  commission_exponent: number | null;
  mu_exponent: number;
  gap_ppb_max: number;
  unserved_ppb_max: number;
  intake: "filter" | "reserve";
  transactions_max: number;
  /** Fee for an account that a transaction of the collecting batch opens. */
  account_fee: AccountFee | null;
  /** The same of the batches after it. */
  account_fee_next: AccountFee | null;
  phase: "open" | "closed";
  domain: string;
  collected: number;
  /** The block that the collecting batch becomes. */
  collecting_block: string;
  closed_block: string | null;
  standing_offers: string;
  /** The last blocks in a row in which nothing traded and something was set aside that could have. */
  idle_blocks: number;
  /** The last blocks in a row in which some assets were set aside that could have traded, whether others traded or not. */
  aside_blocks: number;
  last_block: BatchBlock | null;
}

export interface AccountFee {
  amount: string;
  asset: string;
}

export interface Batches {
  batches: Batch[];
}

export interface BatchBlocks {
  blocks: BatchBlock[];
}

export interface BatchRoots {
  accounts: string;
  offers: string;
  touched: string;
  state: string;
}

export interface BatchHeader {
  block: string;
  header: string;
  roots: BatchRoots;
  light_roots: string;
}

export interface BatchPoint {
  price: string;
  supply: string;
  demand: string;
}

export interface BatchDemand {
  sell: string;
  buy: string;
  price: string | null;
  points: BatchPoint[];
}

/** Each in hexadecimal. */
export interface BatchTransactions {
  transactions: string[];
}

export interface BatchCollected {
  account_id: number;
  sequence: string;
  block: string;
}

/** One for each transaction in their order. */
export interface BatchResults {
  results: (BatchCollected | Error)[];
}

/** `asset_index`, `sell_index` and `buy_index` are the assets' places in the market. */
export interface BatchBlockProof {
  block: string;
  light_header: string;
  roots: BatchRoots;
  light_roots: string;
  asset_index?: number;
  price_statement?: string;
  sell_index?: number;
  buy_index?: number;
  trade_statement?: string;
}

/** `blocks` are those remembered that did something under the number, oldest first. */
export interface BatchTransactionProof {
  block: string;
  light_header: string;
  roots: BatchRoots;
  light_roots: string;
  account_id: number;
  sequence: string;
  statement: string;
  blocks: string[];
}

export interface BatchAccountProof {
  block: string;
  light_header: string;
  roots: BatchRoots;
  light_roots: string;
  account_id: number;
  statement: string;
}

export interface BatchOfferProof {
  block: string;
  light_header: string;
  roots: BatchRoots;
  light_roots: string;
  statement: string;
}

export interface BatchSharesProof {
  block: string;
  light_header: string;
  roots: BatchRoots;
  light_roots: string;
  statement: string;
  provider_account_id: number;
}

export interface Pools {
  pools: Pool[];
}

export interface Pool {
  batch: string;
  /** Who created it. */
  account_id: number;
  /** The number of the transaction that created it; with the account its name. */
  sequence: string;
  first: string;
  second: string;
  rule: "constant_product" | "weighted" | "stable_swap";
  /** Of a weighted pool. */
  weights?: [number, number];
  /** Of a stable-swap pool. */
  amplification?: number;
  /** What it asks beyond its price; it stays in the pool. */
  fee_ppm: number;
  reserves: [string, string];
  shares: string;
}

export interface PoolShares {
  shares: PoolShare[];
}

export interface PoolShare {
  batch: string;
  /** Who created the pool. */
  account_id: number;
  /** The number of the transaction that created it. */
  sequence: string;
  first: string;
  second: string;
  shares: string;
  all_shares: string;
  /** What a withdrawal of them would bring now. */
  worth: [string, string];
}

export interface Offer {
  batch: string;
  sequence: string;
  sell: string;
  buy: string;
  amount: string;
  stated_price: string;
  stated_bits: string;
  limit_bits: string;
  tie: string;
  block: string;
}

export interface Offers {
  offers: Offer[];
  /** The next page's cursor; null when there is no more. */
  next: string | null;
}

export interface TransactionOutcomes {
  transactions: TransactionOutcome[];
}

/**
 * A transaction is collected, then kept or dropped when its batch is closed, then final when its block is cleared. One that is kept
 * and created an offer says what that offer traded so far, at what price, and how much of it stands. The reason is a drop reason
 * whose codes are its own.
 */
export interface TransactionOutcome {
  batch: string;
  sequence: string;
  block: string;
  status: "collected" | "kept" | "dropped" | "cleared";
  reason?: ErrorBody;
  sell?: string;
  buy?: string;
  sold?: string;
  bought?: string;
  standing?: string;
  /** Units of buy for one of sell, over all that traded; null where nothing did. */
  price?: string | null;
}

/**
 * An offer that opened has all of its fields; one that traded in part has the limit_bits under which the rest stands, which are
 * others than before and which its cancel names. The reason of a transaction that was dropped is a drop reason whose codes are its
 * own.
 */
export interface OfferUpdate {
  batch: string;
  sequence: string;
  status: "open" | "traded" | "cancelled" | "dropped";
  sell?: string;
  buy?: string;
  amount?: string;
  sold?: string;
  bought?: string;
  stated_price?: string;
  stated_bits?: string;
  limit_bits?: string;
  tie?: string;
  block?: string;
  reason?: ErrorBody;
}

export interface OfferFill {
  batch: string;
  sequence: string;
  block: string;
  sell: string;
  buy: string;
  sold: string;
  bought: string;
  time_ns: string;
}

export interface BatchRequest {
  name: string;
  /** With `currencies`, its other assets. */
  assets: string[];
  currencies?: string[];
  interval_ms?: number;
  commission?: number;
  mu?: number;
  gap_percent_max?: number;
  unserved_percent_max?: number;
  intake?: "filter" | "reserve";
  transactions_max?: number;
  /** As in AccountFeeRequest. */
  account_fee?: string;
}

export interface BatchCreated {
  log_index: string;
  time_ns: string;
  market_id: number;
  name: string;
  domain: string;
}

export interface BatchPhaseRequest {
  batch: string;
  phase: "open" | "closed";
}
