// The venue's objects with every field that its description asks for: a test says what matters to it, the rest is as of a plain one.

import type {
  Batch, BatchBlock, ClusterReplica, ClusterView, Fill, GatewayFigures, Instrument, Order, OrderAnswer, OrderState, OrderUpdate,
  RelayNode, RelayTree,
  ReleaseFigures, ReleaseJudged, SequencerFigures,
} from "walras";

export function instrument(more: Partial<Instrument> = {}): Instrument {
  return {
    instrument_id: 0, symbol: "BTC/USD", base: "BTC", quote: "USD", tick_size: "0.01", lot_size: "0.001", price_decimals: 2,
    size_decimals: 3, allocation: { kind: "price_time" }, maker_fee_ppm: 0, taker_fee_ppm: 400, collar_ppm: 1_000_000, band_ppm: 1_000_000,
    phase: "continuous", phase_cause: "operator", reference_price: "10.00", last_price: null, last_uncross: null, ...more,
  };
}

export function order(more: Partial<Order> = {}): Order {
  return {
    instrument: "BTC/USD", order_id: "91", client_order_id: "1", side: "buy", type: "limit", price: "10.00", trigger: null, trail: null,
    trail_ppm: null, open: "1.0", shown: "1.0", time_in_force: "gtc", expire_time_ns: null, post_only: "off", display: "full", peak: null,
    self_trade: "cancel_newest", linked_order_id: null, original_size: null, filled: null, average_price: null, entered_at_ns: null,
    status: "resting", ...more,
  };
}

/** An update says of an order what changed, and always this. */
export function orderUpdate(more: Partial<OrderUpdate> = {}): OrderUpdate {
  return {
    instrument: "BTC/USD", order_id: "91", client_order_id: "1", side: "buy", open: "1.0", shown: "1.0", status: "resting", ...more,
  };
}

export function orderState(more: Partial<OrderState> = {}): OrderState {
  return {
    instrument: "BTC/USD", order_id: "91", client_order_id: "1", side: "buy", type: "limit", price: "10.00", trigger: null, trail: null,
    trail_ppm: null, open: "0", shown: "0", time_in_force: "gtc", expire_time_ns: null, post_only: "off", display: "full", peak: null,
    self_trade: "cancel_newest", linked_order_id: null, original_size: "1.0", filled: "1.0", average_price: "10.00", fee: "0",
    fee_asset: "USD", entered_at_ns: "1", changed_at_ns: "2", ended_at_ns: "2", status: "filled", cancelled: "0", reason: null, ...more,
  };
}

export function orderAnswer(more: Partial<OrderAnswer> = {}): OrderAnswer {
  return {
    log_index: "7", time_ns: "1", order_id: "7", client_order_id: "1", status: "resting", price: null, open: "0.500", fills: [], events: [],
    ...more,
  };
}

export function fill(more: Partial<Fill> = {}): Fill {
  return {
    instrument: "BTC/USD", trade_id: "1", order_id: "91", client_order_id: "1", time_ns: "1", side: "buy", price: "10.00", size: "1.0",
    fee: "0", fee_asset: "USD", role: "maker", ...more,
  };
}

export function batchBlock(more: Partial<BatchBlock> = {}): BatchBlock {
  return {
    block: "1", time_ns: "1", log_index: "1", transactions: 1, dropped: 0, offers_traded: 1, pairs_traded: 1, gap_ppb: 0, unserved_ppb: 0,
    set_aside: 0, state_root: "", prices: {}, price_bits: {}, volumes: {}, turnover: "0", ...more,
  };
}

export function batch(more: Partial<Batch> = {}): Batch {
  return {
    market_id: 0, name: "main", assets: ["USD", "EUR", "JPY"], currencies: ["USD", "EUR", "JPY"], numeraire: "USD",
    interval_ms: 500, commission_exponent: 15, mu_exponent: 10,
    gap_ppb_max: 10_000_000, unserved_ppb_max: 10_000_000, intake: "filter", transactions_max: 100_000, account_fee: null,
    account_fee_next: null, phase: "open", domain: "", collected: 0, collecting_block: "1", closed_block: null, standing_offers: "0",
    idle_blocks: 0, aside_blocks: 0, last_block: null, ...more,
  };
}

export function replica(more: Partial<ClusterReplica> = {}): ClusterReplica {
  return {
    replica: 1, member: "voter", is_linked: true, version: null, engine_newest: null, trouble: null, http: null, order_entry: null, ...more,
  };
}

/** Of a venue on one machine. */
export function cluster(more: Partial<ClusterView> = {}): ClusterView {
  return {
    cluster_id: "1", replica: 1, role: "leader", term: "1", leader: 1, takes_commands: true, log_index: "1", last_slot: "1",
    decided_slot: "1", waiting: 0, halted: null, sequencing_delay_ns: null, clock: null, version: "0.1.0", wire_version: 1,
    engine_version: 1, engine_newest: 1, is_changing: false, replicas: [replica()], gateways: [], tree: null, parallel_trees: [], ...more,
  };
}

export function relayTree(more: Partial<RelayTree> = {}): RelayTree {
  return {
    tree: 1, hedge: 1, layers: [], packets: 0, not_taken: 0, asked: 0, asked_too_often: 0, epoch: 0, relays: [], delivery: [],
    receivers: [], ...more,
  };
}

/** One that answers. */
export function relayNode(more: Partial<RelayNode> = {}): RelayNode {
  return {
    layer: 0, place: 0, is_in: true, out_because: null, answers: true, packets: 7, by_hedge: 0, copies: 0, lost: 0, not_taken: 0,
    refused: 0, transit_ns_p50: 1,
    transit_ns_p99: 2, ...more,
  };
}

/** One that does not. */
export function silentRelay(more: Partial<RelayNode> = {}): RelayNode {
  return relayNode({
    is_in: false, out_because: "silent", answers: false, packets: null, by_hedge: null, copies: null, lost: null, not_taken: null,
    refused: null, transit_ns_p50: null,
    transit_ns_p99: null, ...more,
  });
}

/** One that answers and forwards nothing. */
export function muteRelay(more: Partial<RelayNode> = {}): RelayNode {
  return relayNode({ is_in: false, out_because: "mute", packets: 0, ...more });
}

export function sequencerFigures(more: Partial<SequencerFigures> = {}): SequencerFigures {
  return {
    delay_ns: 1, target_ppm: null, judged: 0, unfair: 0, unfair_recent_ppm: 0, matched: 0, unfairly_matched: 0,
    unfairly_matched_recent_ppm: 0, worst_gateway: null, merged: 0, held: 0, early: 0, queueing_p50_ns: 0, queueing_p99_ns: 0,
    queueing_ns_max: 0, gateways: [], ...more,
  };
}

export function releaseJudged(more: Partial<ReleaseJudged> = {}): ReleaseJudged {
  return {
    publications: 0, unfair: 0, unfair_recent_ppm: 0, outlier_reports: 0, outliers: [], silent: [],
    receivers: { samples: 0, late: 0, delay_ns: null }, ...more,
  };
}

export function releaseFigures(more: Partial<ReleaseFigures> = {}): ReleaseFigures {
  return {
    delay_ns: 1, target_ppm: null, clock_bound_ns: null, publications: 0, late: 0, late_ns_max: 0, refused: 0, overshoot_p50_ns: 0,
    overshoot_p99_ns: 0, overshoot_p999_ns: 0, judged: null, ...more,
  };
}

export function gatewayFigures(more: Partial<GatewayFigures> = {}): GatewayFigures {
  return {
    gateway: 1, is_outlier: false, judged: 0, overtaken: 0, overtaken_recent_ppm: 0, copies: 0, duplicates: 0, differing: 0, early: 0,
    refused: 0, malformed: 0, held: 0, late: 0, late_ns_max: 0, out_of_sequence: 0, unfair: 0, future_stamps: 0, stale_stamps: 0,
    stepped_back: 0, unstamped: 0, behind_watermark: 0, waited_for: 0, outlier_stamps: 0, ...more,
  };
}
