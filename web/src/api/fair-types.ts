// What the venue says of fair access, as its openapi.yaml documents it: times in nanoseconds, shares in parts per million.

export type ClockStatus = "good" | "wide" | "unknown";

/** `GET /v1/fair-access`. What is switched off is `null`. */
export interface FairAccess {
  /** This replica leads: `sequencer` is from now, else from when it led last. */
  is_sequencing: boolean;
  clock: { status: ClockStatus; bound_ns: number | null; source: string } | null;
  gateway: { leader: number | null; unanswered: number; orders: number; unstamped: number; resent: number; differing: number; overloaded: number; refused: number; late: number; stamped_by_kernel: number; stamped_when_read: number; stamps_raised: number } | null;
  sequencer: SequencerFigures | null;
  release: ReleaseFigures | null;
}

export interface SequencerFigures {
  delay_ns: number;
  target_ppm: number | null;
  judged: number;
  unfair: number;
  unfair_recent_ppm: number;
  /** Orders that came when a later one of their price had matched, as a share of those matched. Older venues do not say. */
  matched?: number;
  unfairly_matched?: number;
  unfairly_matched_recent_ppm?: number;
  worst_gateway: number | null;
  held: number;
  gateways: GatewayFigures[];
}

export interface GatewayFigures {
  gateway: number;
  is_outlier: boolean;
  overtaken: number;
  overtaken_recent_ppm: number;
  duplicates: number;
  differing: number;
  held: number;
  late: number;
  late_ns_max: number;
  unfair: number;
  unstamped: number;
  outlier_stamps: number;
}

export interface ReleaseFigures {
  delay_ns: number;
  target_ppm: number | null;
  publications: number;
  late: number;
  late_ns_max: number;
  /** What the leader concludes from the reports of all replicas; `null` if this one does not lead. */
  judged: JudgedFigures | null;
}

export interface JudgedFigures {
  /** While this is 0, the share has no meaning. */
  publications: number;
  unfair: number;
  unfair_recent_ppm: number;
  outlier_reports: number;
  outliers: number[];
  /** Replicas whose reports are not waited for. Older venues do not say. */
  silent?: number[];
}

/** A leaf gateway, from a replica. */
export interface LeafGateway {
  gateway: number;
  is_linked: boolean;
  version: string | null;
  /** It passes on to this replica what its participants send. */
  stands_below: boolean;
  sessions: number;
  trouble: string | null;
}

/** The relay tree from the end that sends; only the leader does. Counts since its process began. */
export interface RelayTree {
  tree: number;
  /** Additional copies of each packet, by other relays. */
  hedge: number;
  /** Nodes of each layer; the last one are the receivers. */
  layers: number[];
  packets: number;
  not_taken: number;
  asked: number;
  asked_too_often: number;
  /** What each relay said last; older venues do not say. */
  relays?: RelayNode[];
  delivery?: LayerDelivery[];
}

/** A relay; what it did not answer is `null`. */
export interface RelayNode {
  layer: number;
  place: number;
  /** Packets go by it; older venues do not say. */
  is_in?: boolean;
  answers: boolean;
  packets: number | null;
  by_hedge: number | null;
  copies: number | null;
  lost: number | null;
  not_taken: number | null;
  refused: number | null;
  transit_ns_p50: number | null;
  transit_ns_p99: number | null;
}

/** When packets reach a layer, by the medians of its nodes. */
export interface LayerDelivery {
  layer: number;
  nodes: number;
  answering: number;
  earliest_ns: number | null;
  latest_ns: number | null;
  window_ns: number | null;
  latest_ns_p99: number | null;
}

/** `GET /v1/cluster`; the page needs little of it. Older venues say nothing of gateways and the tree. */
export interface Cluster {
  gateways?: LeafGateway[];
  tree?: RelayTree | null;
  replica: number;
  leader: number | null;
  replicas: { replica: number; member: "voter" | "learner" | "none"; is_linked: boolean; trouble: string | null; http: string | null }[];
}

/** `GET /v1/clock`, likewise; only a node with a clock of its own has it. */
export interface NodeClock {
  source: string;
  trouble: string | null;
  mesh: { peers: { node: number; residual_ns: string | null }[]; excluded: { node: number; why: string }[] } | null;
}

export type StageName = "receive" | "transit" | "hold" | "log" | "apply" | "answer" | "order" | "request" | "publish" | "release";

/** `GET /v1/latency`. */
export interface Latency {
  timed_one_of: number;
  recent_s: number;
  stages: StageTimes[];
}

/** Percentiles are `null` when nothing has passed of late. */
export interface StageTimes {
  stage: StageName;
  count: number;
  recent: number;
  p50_ns: number | null;
  p90_ns: number | null;
  p99_ns: number | null;
  p999_ns: number | null;
  ns_max: number | null;
}
