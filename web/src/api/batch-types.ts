// The JSON of batch markets. Quantities are decimal strings of whole units, times and 64-bit numbers strings of digits. A price is how many
// whole units of the first asset (the numeraire) a whole unit is worth.

import type { ApiErrorBody } from "./types.ts";

export interface BatchBlock {
  block: string;
  time_ns: string;
  log_index: string;
  transactions: number;
  dropped: number;
  offers_traded: number;
  pairs_traded: number;
  /** Of what could trade at these prices, the share that did not, at most: in parts per 10^9. */
  gap_ppb: number;
  /** Of what offers clearly in the money wanted to sell or to buy of an asset, the share that did not trade, of the asset that is worst off: in parts per 10^9. */
  unserved_ppb: number;
  /** Assets that could have traded with others and were left without a price. */
  set_aside: number;
  state_root: string;
  /** Of each asset; an asset that no cycle of offers reaches has none. */
  prices: Record<string, string | null> | null;
  /** Whole units of each asset that were sold. */
  volumes: Record<string, string>;
  /** All of it, in the numeraire. */
  turnover: string;
}

export interface AccountFee {
  amount: string;
  asset: string;
}

export interface Batch {
  market_id: number;
  name: string;
  assets: string[];
  numeraire: string;
  interval_ms: number;
  /** What a fill buys is less by this: 2^-exponent. */
  commission_exponent: number;
  mu_exponent: number;
  /** A block that leaves more undone is refused, unless nothing trades in it. */
  gap_ppb_max: number;
  unserved_ppb_max: number;
  intake: "filter" | "reserve";
  /** What each account costs that a transaction of the batch that collects opens, and of those after it. */
  account_fee: AccountFee | null;
  account_fee_next: AccountFee | null;
  phase: "closed" | "open";
  /** What signatures are for, 32 bytes in hex. */
  domain: string;
  collected: number;
  /** The block that the collecting batch becomes. */
  collecting_block: string;
  /** The block whose prices are being sought. */
  closed_block: string | null;
  standing_offers: string;
  idle_blocks: number;
  last_block: BatchBlock | null;
}

export interface BatchMessage {
  type: "batch";
  kind: "snapshot" | "update";
  batch: string;
  collected: number;
  closed_block: string | null;
  /** Newest last. */
  blocks: BatchBlock[];
}

export interface DemandPoint {
  /** Of a unit of what is sold, in units of what is bought. */
  price: string;
  /** Units that are offered at this price or better. */
  supply: string;
  /** Units that offers of the other way want at this price. */
  demand: string;
}

export interface Demand {
  batch?: string;
  sell: string;
  buy: string;
  price: string | null;
  points: DemandPoint[];
}

export interface DemandMessage extends Demand {
  type: "demand";
}

/** An offer of one's own that stands. */
export interface Offer {
  batch: string;
  sequence: string;
  sell: string;
  buy: string;
  /** What is left of it. */
  amount: string;
  /** As its owner wrote it; "0" for any price. */
  stated_price: string;
  stated_bits: string;
  /** The effective limit, and with the tie-break and the sequence its place. */
  limit_bits: string;
  tie: string;
  block: string;
}

export interface OfferUpdate extends Partial<Offer> {
  batch: string;
  sequence: string;
  status: "open" | "traded" | "cancelled" | "dropped";
  /** Why the batch left it out. */
  reason?: ApiErrorBody;
  sold?: string;
  bought?: string;
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

export interface AccountInfo {
  account_id: number;
  /** The key that the account's transactions are signed with, in hex. */
  transaction_key?: string | null;
  next_sequence?: string;
}

export type TransactionResult = { account_id: number; sequence: string; block: string } | { error: ApiErrorBody };
