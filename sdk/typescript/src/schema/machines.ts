// Written by `npm run generate` from edge/api/openapi.yaml and edge/api/asyncapi.yaml; a test compares them. Quantities are decimal
// strings, times and 64-bit ids strings of digits.

export interface Clock {
  source: "system" | "chrony" | "phc" | "mesh";
  /** Only a `good` clock stamps; an `unknown` one has no time. */
  status: "good" | "wide" | "unknown";
  time_ns: string | null;
  /** The venue's true time lies within this of `time_ns`. */
  bound_ns: string | null;
  /** The widest bound that stamps. */
  bound_max_ns: string;
  /** The system's clock less the venue's time. */
  system_ahead_ns: string | null;
  /** What is wrong, and what to do about it. */
  trouble: string | null;
  mesh: null | ClockMesh;
}

export interface ClockMesh {
  /** This node's place in the list of nodes, from 0. */
  node: number;
  /** Which node joins what all of them measured. */
  coordinator: number;
  /** Whose clock is the venue's time. */
  reference: number | null;
  /** The last window whose result this node has. */
  window: string | null;
  /** What edges leave open in their loops, as a standard deviation. */
  loop_error_ns: string;
  /** The same of the change from window to window. */
  noise_ns: string;
  peers: ClockPeer[];
  /** Nodes whose clocks are bad. The coordinator knows them all, another node itself. */
  excluded: ClockExcluded[];
  refused: ClockRefused;
}

export interface ClockPeer {
  node: number;
  heard_ago_ns: string | null;
  /** The residual of the edge to it in the last window in which that was measured. */
  residual_ns: string | null;
}

export interface ClockExcluded {
  node: number;
  why: string;
}

/** Datagrams that were not taken, by cause. */
export interface ClockRefused {
  malformed: string;
  /** Without the key of this mesh. */
  unauthenticated: string;
  /** Of another incarnation of a node, not for this one, or from somebody who may not say such a thing. */
  misplaced: string;
  /** Of windows that are over. */
  late: string;
}

export interface Shard {
  shard: number;
  is_own: boolean;
  /** Where its replicas serve this API. */
  urls: string[];
  /** Those that are traded there, as this shard is configured. */
  instruments: string[];
  /** Transfers from this shard on their way to there. */
  in_transit: number;
  oldest_sent_at_ns: string | null;
  /**
   * Whether the two agree on what moved between them: doubted until they have compared their numbers since this shard restarted,
   * stopped if one was set back to an older state; null of the own shard.
   */
  standing: "agreed" | "doubted" | "stopped" | null;
  /** The number of the oldest transfer in transit to there, or of the next; null of the own shard. */
  oldest_transfer_out: string | null;
  /** The number of the transfer that is sent next to there; null of the own shard. */
  next_transfer_out: string | null;
  /** The number of the transfer that is taken next from there; null of the own shard. */
  next_transfer_in: string | null;
  /** Transfers that the other shard took or refused since this node's start; null for the own shard. */
  delivered: string | null;
  /** How often that failed. */
  failures: string | null;
  /** What failed last, if nothing succeeded since. */
  trouble: string | null;
}

export interface Shards {
  own: number;
  count: number;
  shards: Shard[];
}

export interface Readiness {
  ready: boolean;
  /** Why not, in words. */
  reasons: string[];
}

export interface PathFaults {
  lost_per_million?: number;
  delay_ns?: number;
}

export interface ClusterReplica {
  replica: number;
  member: "voter" | "learner" | "none";
  is_linked: boolean;
  version: string | null;
  /** As of the view, where the replica is linked. */
  engine_newest: number | null;
  trouble: string | null;
  http: string | null;
  order_entry: string | null;
}

export interface ClusterView {
  cluster_id: string;
  replica: number;
  role: "leader" | "follower" | "candidate";
  term: string;
  leader: number | null;
  takes_commands: boolean;
  log_index: string;
  last_slot: string;
  decided_slot: string;
  waiting: number;
  halted: string | null;
  /** How long the leader holds orders after their stamps; null without fair access. */
  sequencing_delay_ns: number | null;
  /** Whether this replica's clock may stamp orders; null without fair access. */
  clock: "good" | "wide" | "unknown" | null;
  version: string;
  wire_version: number;
  /** The version of the engine in force: the rules that entries of the log are applied by. */
  engine_version: number;
  /** The newest version of the engine that this replica's program knows. */
  engine_newest: number;
  is_changing: boolean;
  replicas: ClusterReplica[];
  /** The leaf gateways that may link with this replica. */
  gateways: ClusterGateway[];
  /** The relay tree that the binary feed is sent by; null where there is none. */
  tree: RelayTree | null;
  /**
   * Further trees, by which the packets of other markets travel: market m by tree m modulo their number. Requests of receivers
   * count with the first.
   */
  parallel_trees: RelayTree[];
}

export interface ClusterGateway {
  gateway: number;
  is_linked: boolean;
  /** Of its program; null while it is not linked. */
  version: string | null;
  /** It passes on to this replica what its participants send. */
  stands_below: boolean;
  /** Its participants' sessions, while it stands below this replica. */
  sessions: number;
  /** Why the link was lost last. */
  trouble: string | null;
}

/** Counts are of this replica, since its process began. Only the leader sends. */
export interface RelayTree {
  /** Its number, which its packets have. */
  tree: number;
  /** Additional copies of each packet, by other relays. */
  hedge: number;
  /** Nodes of each layer, from the sender on; the last one are the receivers. */
  layers: number[];
  /** Packets given to the first layer. */
  packets: number;
  /** Datagrams that the system did not take. */
  not_taken: number;
  /** Requests of receivers for messages that they missed, answered here. */
  asked: number;
  /** Requests not answered because their source asked too often. */
  asked_too_often: number;
  /** The view by which packets go, which names the relays that are in; 0 before the first. */
  epoch: number;
  /** What each relay said when this replica asked it last, about once a second; empty before the first answer. */
  relays: RelayNode[];
  /** When packets reach each layer, from the sender on; the last one are the receivers. */
  delivery: LayerDelivery[];
  /** What receivers said when this replica asked them last: those that answer, which are leaf gateways. */
  receivers: RelayReceiver[];
}

/** Counts are since the relay began; null where it does not answer. */
export interface RelayNode {
  layer: number;
  place: number;
  /** Packets go by it. One that is silent is out until it answers again. */
  is_in: boolean;
  /**
   * Why packets do not go by it: it answers nothing, does not take up the view, or answers and forwards nothing, as those below it
   * say; null where it is in.
   */
  out_because: "silent" | "unaware" | "mute" | null;
  answers: boolean;
  /** First copies, which it passed on. */
  packets: number | null;
  /** Of these, those that came by a hedge. */
  by_hedge: number | null;
  /** Further copies. */
  copies: number | null;
  /** Packets of which no copy came. */
  lost: number | null;
  /** Datagrams that its system did not take. */
  not_taken: number | null;
  /** Datagrams without the seal, of other trees, or that are no packet. */
  refused: number | null;
  /** From the sender to the relay over the last packets, by the clocks of both machines. */
  transit_ns_p50: number | null;
  transit_ns_p99: number | null;
}

/**
 * A leaf gateway that receives market data by the tree. Counts are since it began. It asks the replicas for what it missed, and for
 * what its participants ask for and it does not keep any more; these counts are of all trees, and stand at the first.
 */
export interface RelayReceiver {
  /** In the last layer. */
  place: number;
  /** Packets that came, further copies included. */
  packets: number;
  /** Datagrams without the seal, or that are no packet. */
  refused: number;
  /** Packets that came after their release time. */
  late: number;
  /** Requests to replicas. */
  recalls_asked: number;
  /** Of these, those whose messages came back, or some of them. */
  recalls_answered: number;
  /** Messages that came back. */
  messages_recalled: number;
  /** Runs of messages that no replica had any more, or for which the gateway had no room. Readers go on from a snapshot. */
  recalls_failed: number;
  /** From the sender to the gateway over the last packets, by the clocks of both machines. */
  transit_ns_p50: number;
  transit_ns_p99: number;
}

/** The window of delivery of a layer. It compares the medians of its nodes, each by its own clock. */
export interface LayerDelivery {
  layer: number;
  nodes: number;
  /** Nodes that answered; receivers answer where they are leaf gateways. */
  answering: number;
  /** The least median transit of its nodes; null where none has a packet. */
  earliest_ns: number | null;
  /** The greatest. */
  latest_ns: number | null;
  /** From the one to the other. */
  window_ns: number | null;
  /** The greatest percentile 99 of its nodes. */
  latest_ns_p99: number | null;
  /** Packets that came after their release time, at all its nodes that hold market data. */
  late: number;
}

/** What is switched off here is null. */
export interface FairAccessView {
  /** This replica leads: what stands under sequencer is from now, else from when it led last. */
  is_sequencing: boolean;
  clock: StampClock | null;
  gateway: GatewayCounts | null;
  sequencer: SequencerFigures | null;
  release: ReleaseFigures | null;
}

/** What stamps orders here. */
export interface StampClock {
  status: "good" | "wide" | "unknown";
  bound_ns: number | null;
  /** "system", with a bound that the operator declares, or that of /v1/clock. */
  source: string;
}

/** What participants sent here and this replica passed on to the leader. */
export interface GatewayCounts {
  leader: number | null;
  unanswered: number;
  orders: number;
  unstamped: number;
  resent: number;
  differing: number;
  overloaded: number;
  refused: number;
  late: number;
  /** Reads of order entry stamped by when the kernel received the bytes. */
  stamped_by_kernel: number;
  /** Reads stamped by when they were read, because the kernel gave no stamp. */
  stamped_when_read: number;
  /** Of those by the kernel, reads whose bytes had waited for longer than 50 ms: stamped as if for that. */
  stamps_raised: number;
}

export interface SequencerFigures {
  delay_ns: number;
  /** The share of unfair orders that the delay is steered to; null where it is fixed. */
  target_ppm: number | null;
  judged: number;
  unfair: number;
  unfair_recent_ppm: number;
  /** Orders that matched while this replica led, two for each trade. */
  matched: number;
  /**
   * Orders that came when one of the same side and price with a later stamp had matched: order-matching unfairness, as the paper on
   * Jasper defines it.
   */
  unfairly_matched: number;
  /** The share of these in the last 1,000 to 2,000 orders that matched. */
  unfairly_matched_recent_ppm: number;
  /** The gateway with the greatest share of unfair orders, which the delay follows; null until one has had enough. */
  worst_gateway: number | null;
  /** Orders that left before their delay was over, since every gateway's watermark was past their stamps. */
  merged: number;
  held: number;
  early: number;
  queueing_p50_ns: number;
  queueing_p99_ns: number;
  queueing_ns_max: number;
  gateways: GatewayFigures[];
}

/** Market data that was held at this replica until its time. */
export interface ReleaseFigures {
  delay_ns: number;
  /** The share of late publications that the delay is steered to; null where it is fixed. */
  target_ppm: number | null;
  /**
   * How far release times here may be from those of other replicas, by the clock that the section [clock] keeps; null where this
   * machine's own counts.
   */
  clock_bound_ns: number | null;
  publications: number;
  late: number;
  late_ns_max: number;
  refused: number;
  overshoot_p50_ns: number;
  overshoot_p99_ns: number;
  overshoot_p999_ns: number;
  judged: ReleaseJudged | null;
}

/** What this leader concludes from the reports of all replicas; null if it does not lead. */
export interface ReleaseJudged {
  /** Publications judged since this replica leads: each by the reports of all replicas that are not silent. */
  publications: number;
  /** Of these, came to some replica after their release time. */
  unfair: number;
  /** The share of these in the last window; it has no meaning while `publications` is 0. */
  unfair_recent_ppm: number;
  /** Reports that did not count, because their replica was an outlier. */
  outlier_reports: number;
  outliers: number[];
  /** Replicas that publications are judged without: their link is lost, or they reported none of the latest ones. */
  silent: number[];
  receivers: ReleaseReceivers;
}

/** What receivers of the relay trees reported, since this replica leads. */
export interface ReleaseReceivers {
  /** Pieces of market data whose arrival at the last receiver is known. */
  samples: number;
  /** Those that came to some receiver after their release time. */
  late: number;
  /**
   * How long receivers need market data to be held; null while none is heard. The longer of this and what the replicas need is in
   * force.
   */
  delay_ns: number | null;
}

export interface Latency {
  /** Of the orders of a session, those are timed whose number is a multiple of this. */
  timed_one_of: number;
  /** How far percentiles reach back, at most. */
  recent_s: number;
  stages: StageTimes[];
}

/** A stage that something has passed here. Percentiles are null when nothing has of late. */
export interface StageTimes {
  stage: "receive" | "transit" | "hold" | "log" | "apply" | "answer" | "order" | "request" | "publish" | "release";
  /** Timed since the start of this process. */
  count: number;
  /** Timed of late: what the percentiles are of. */
  recent: number;
  p50_ns: number | null;
  p90_ns: number | null;
  p99_ns: number | null;
  p999_ns: number | null;
  ns_max: number | null;
}

/** What came by one gateway. docs/fair-access.md says what each figure means. */
export interface GatewayFigures {
  gateway: number;
  is_outlier: boolean;
  judged: number;
  overtaken: number;
  overtaken_recent_ppm: number;
  copies: number;
  duplicates: number;
  differing: number;
  early: number;
  refused: number;
  malformed: number;
  held: number;
  late: number;
  late_ns_max: number;
  out_of_sequence: number;
  unfair: number;
  future_stamps: number;
  stale_stamps: number;
  stepped_back: number;
  unstamped: number;
  behind_watermark: number;
  waited_for: number;
  outlier_stamps: number;
}
