"""Clocks, replicas, relays, shards and latency.

Written by tools/write_schema.py from edge/api/openapi.yaml and edge/api/asyncapi.yaml; a test compares them. Quantities are
decimal strings, times and 64-bit ids strings of digits.
"""

from __future__ import annotations

from typing import Literal, Optional, TypedDict, final

__all__ = [
    "Clock", "ClockExcluded", "ClockMesh", "ClockPeer", "ClockRefused", "ClusterGateway", "ClusterReplica",
    "ClusterView", "FairAccessView", "GatewayCounts", "GatewayFigures", "Latency", "LayerDelivery", "PathFaults",
    "Readiness", "RelayNode", "RelayReceiver", "RelayTree", "ReleaseFigures", "ReleaseJudged", "ReleaseReceivers",
    "SequencerFigures", "Shard", "Shards", "StageTimes", "StampClock",
]


@final
class Clock(TypedDict):
    source: Literal["system", "chrony", "phc", "mesh"]
    #: Only a `good` clock stamps; an `unknown` one has no time.
    status: Literal["good", "wide", "unknown"]
    time_ns: Optional[str]
    #: The venue's true time lies within this of `time_ns`.
    bound_ns: Optional[str]
    #: The widest bound that stamps.
    bound_max_ns: str
    #: The system's clock less the venue's time.
    system_ahead_ns: Optional[str]
    #: What is wrong, and what to do about it.
    trouble: Optional[str]
    mesh: Optional[ClockMesh]


@final
class ClockMesh(TypedDict):
    #: This node's place in the list of nodes, from 0.
    node: int
    #: Which node joins what all of them measured.
    coordinator: int
    #: Whose clock is the venue's time.
    reference: Optional[int]
    #: The last window whose result this node has.
    window: Optional[str]
    #: What edges leave open in their loops, as a standard deviation.
    loop_error_ns: str
    #: The same of the change from window to window.
    noise_ns: str
    peers: list[ClockPeer]
    #: Nodes whose clocks are bad. The coordinator knows them all, another node itself.
    excluded: list[ClockExcluded]
    refused: ClockRefused


@final
class ClockPeer(TypedDict):
    node: int
    heard_ago_ns: Optional[str]
    #: The residual of the edge to it in the last window in which that was measured.
    residual_ns: Optional[str]


@final
class ClockExcluded(TypedDict):
    node: int
    why: str


@final
class ClockRefused(TypedDict):
    """Datagrams that were not taken, by cause."""

    malformed: str
    #: Without the key of this mesh.
    unauthenticated: str
    #: Of another incarnation of a node, not for this one, or from somebody who may not say such a thing.
    misplaced: str
    #: Of windows that are over.
    late: str


@final
class Shard(TypedDict):
    shard: int
    is_own: bool
    #: Where its replicas serve this API.
    urls: list[str]
    #: Those that are traded there, as this shard is configured.
    instruments: list[str]
    #: Transfers from this shard on their way to there.
    in_transit: int
    oldest_sent_at_ns: Optional[str]
    #: Whether the two agree on what moved between them: doubted until they have compared their numbers since this shard
    #: restarted, stopped if one was set back to an older state; null of the own shard.
    standing: Optional[Literal["agreed", "doubted", "stopped"]]
    #: The number of the oldest transfer in transit to there, or of the next; null of the own shard.
    oldest_transfer_out: Optional[str]
    #: The number of the transfer that is sent next to there; null of the own shard.
    next_transfer_out: Optional[str]
    #: The number of the transfer that is taken next from there; null of the own shard.
    next_transfer_in: Optional[str]
    #: Transfers that the other shard took or refused since this node's start; null for the own shard.
    delivered: Optional[str]
    #: How often that failed.
    failures: Optional[str]
    #: What failed last, if nothing succeeded since.
    trouble: Optional[str]


@final
class Shards(TypedDict):
    own: int
    count: int
    shards: list[Shard]


@final
class Readiness(TypedDict):
    ready: bool
    #: Why not, in words.
    reasons: list[str]


@final
class PathFaults(TypedDict, total=False):
    lost_per_million: int
    delay_ns: int


@final
class ClusterReplica(TypedDict):
    replica: int
    member: Literal["voter", "learner", "none"]
    is_linked: bool
    version: Optional[str]
    #: As of the view, where the replica is linked.
    engine_newest: Optional[int]
    trouble: Optional[str]
    http: Optional[str]
    order_entry: Optional[str]


@final
class ClusterView(TypedDict):
    cluster_id: str
    replica: int
    role: Literal["leader", "follower", "candidate"]
    term: str
    leader: Optional[int]
    takes_commands: bool
    log_index: str
    last_slot: str
    decided_slot: str
    waiting: int
    halted: Optional[str]
    #: How long the leader holds orders after their stamps; null without fair access.
    sequencing_delay_ns: Optional[int]
    #: Whether this replica's clock may stamp orders; null without fair access.
    clock: Optional[Literal["good", "wide", "unknown"]]
    version: str
    wire_version: int
    #: The version of the engine in force: the rules that entries of the log are applied by.
    engine_version: int
    #: The newest version of the engine that this replica's program knows.
    engine_newest: int
    is_changing: bool
    replicas: list[ClusterReplica]
    #: The leaf gateways that may link with this replica.
    gateways: list[ClusterGateway]
    #: The relay tree that the binary feed is sent by; null where there is none.
    tree: Optional[RelayTree]
    #: Further trees, by which the packets of other markets travel: market m by tree m modulo their number. Requests of
    #: receivers count with the first.
    parallel_trees: list[RelayTree]


@final
class ClusterGateway(TypedDict):
    gateway: int
    is_linked: bool
    #: Of its program; null while it is not linked.
    version: Optional[str]
    #: It passes on to this replica what its participants send.
    stands_below: bool
    #: Its participants' sessions, while it stands below this replica.
    sessions: int
    #: Why the link was lost last.
    trouble: Optional[str]


@final
class RelayTree(TypedDict):
    """Counts are of this replica, since its process began. Only the leader sends."""

    #: Its number, which its packets have.
    tree: int
    #: Additional copies of each packet, by other relays.
    hedge: int
    #: Nodes of each layer, from the sender on; the last one are the receivers.
    layers: list[int]
    #: Packets given to the first layer.
    packets: int
    #: Datagrams that the system did not take.
    not_taken: int
    #: Requests of receivers for messages that they missed, answered here.
    asked: int
    #: Requests not answered because their source asked too often.
    asked_too_often: int
    #: The view by which packets go, which names the relays that are in; 0 before the first.
    epoch: int
    #: What each relay said when this replica asked it last, about once a second; empty before the first answer.
    relays: list[RelayNode]
    #: When packets reach each layer, from the sender on; the last one are the receivers.
    delivery: list[LayerDelivery]
    #: What receivers said when this replica asked them last: those that answer, which are leaf gateways.
    receivers: list[RelayReceiver]


@final
class RelayNode(TypedDict):
    """Counts are since the relay began; null where it does not answer."""

    layer: int
    place: int
    #: Packets go by it. One that is silent is out until it answers again.
    is_in: bool
    #: Why packets do not go by it: it answers nothing, does not take up the view, or answers and forwards nothing, as
    #: those below it say; null where it is in.
    out_because: Optional[Literal["silent", "unaware", "mute"]]
    answers: bool
    #: First copies, which it passed on.
    packets: Optional[int]
    #: Of these, those that came by a hedge.
    by_hedge: Optional[int]
    #: Further copies.
    copies: Optional[int]
    #: Packets of which no copy came.
    lost: Optional[int]
    #: Datagrams that its system did not take.
    not_taken: Optional[int]
    #: Datagrams without the seal, of other trees, or that are no packet.
    refused: Optional[int]
    #: From the sender to the relay over the last packets, by the clocks of both machines.
    transit_ns_p50: Optional[int]
    transit_ns_p99: Optional[int]


@final
class RelayReceiver(TypedDict):
    """A leaf gateway that receives market data by the tree. Counts are since it began. It asks the replicas for what it
    missed, and for what its participants ask for and it does not keep any more; these counts are of all trees, and
    stand at the first.
    """

    #: In the last layer.
    place: int
    #: Packets that came, further copies included.
    packets: int
    #: Datagrams without the seal, or that are no packet.
    refused: int
    #: Packets that came after their release time.
    late: int
    #: Requests to replicas.
    recalls_asked: int
    #: Of these, those whose messages came back, or some of them.
    recalls_answered: int
    #: Messages that came back.
    messages_recalled: int
    #: Runs of messages that no replica had any more, or for which the gateway had no room. Readers go on from a
    #: snapshot.
    recalls_failed: int
    #: From the sender to the gateway over the last packets, by the clocks of both machines.
    transit_ns_p50: int
    transit_ns_p99: int


@final
class LayerDelivery(TypedDict):
    """The window of delivery of a layer. It compares the medians of its nodes, each by its own clock."""

    layer: int
    nodes: int
    #: Nodes that answered; receivers answer where they are leaf gateways.
    answering: int
    #: The least median transit of its nodes; null where none has a packet.
    earliest_ns: Optional[int]
    #: The greatest.
    latest_ns: Optional[int]
    #: From the one to the other.
    window_ns: Optional[int]
    #: The greatest percentile 99 of its nodes.
    latest_ns_p99: Optional[int]
    #: Packets that came after their release time, at all its nodes that hold market data.
    late: int


@final
class FairAccessView(TypedDict):
    """What is switched off here is null."""

    #: This replica leads: what stands under sequencer is from now, else from when it led last.
    is_sequencing: bool
    clock: Optional[StampClock]
    gateway: Optional[GatewayCounts]
    sequencer: Optional[SequencerFigures]
    release: Optional[ReleaseFigures]


@final
class StampClock(TypedDict):
    """What stamps orders here."""

    status: Literal["good", "wide", "unknown"]
    bound_ns: Optional[int]
    #: "system", with a bound that the operator declares, or that of /v1/clock.
    source: str


@final
class GatewayCounts(TypedDict):
    """What participants sent here and this replica passed on to the leader."""

    leader: Optional[int]
    unanswered: int
    orders: int
    unstamped: int
    resent: int
    differing: int
    overloaded: int
    refused: int
    late: int
    #: Reads of order entry stamped by when the kernel received the bytes.
    stamped_by_kernel: int
    #: Reads stamped by when they were read, because the kernel gave no stamp.
    stamped_when_read: int
    #: Of those by the kernel, reads whose bytes had waited for longer than 50 ms: stamped as if for that.
    stamps_raised: int


@final
class SequencerFigures(TypedDict):
    delay_ns: int
    #: The share of unfair orders that the delay is steered to; null where it is fixed.
    target_ppm: Optional[int]
    judged: int
    unfair: int
    unfair_recent_ppm: int
    #: Orders that matched while this replica led, two for each trade.
    matched: int
    #: Orders that came when one of the same side and price with a later stamp had matched: order-matching unfairness,
    #: as the paper on Jasper defines it.
    unfairly_matched: int
    #: The share of these in the last 1,000 to 2,000 orders that matched.
    unfairly_matched_recent_ppm: int
    #: The gateway with the greatest share of unfair orders, which the delay follows; null until one has had enough.
    worst_gateway: Optional[int]
    #: Orders that left before their delay was over, since every gateway's watermark was past their stamps.
    merged: int
    held: int
    early: int
    queueing_p50_ns: int
    queueing_p99_ns: int
    queueing_ns_max: int
    gateways: list[GatewayFigures]


@final
class ReleaseFigures(TypedDict):
    """Market data that was held at this replica until its time."""

    delay_ns: int
    #: The share of late publications that the delay is steered to; null where it is fixed.
    target_ppm: Optional[int]
    #: How far release times here may be from those of other replicas, by the clock that the section [clock] keeps; null
    #: where this machine's own counts.
    clock_bound_ns: Optional[int]
    publications: int
    late: int
    late_ns_max: int
    refused: int
    overshoot_p50_ns: int
    overshoot_p99_ns: int
    overshoot_p999_ns: int
    judged: Optional[ReleaseJudged]


@final
class ReleaseJudged(TypedDict):
    """What this leader concludes from the reports of all replicas; null if it does not lead."""

    #: Publications judged since this replica leads: each by the reports of all replicas that are not silent.
    publications: int
    #: Of these, came to some replica after their release time.
    unfair: int
    #: The share of these in the last window; it has no meaning while `publications` is 0.
    unfair_recent_ppm: int
    #: Reports that did not count, because their replica was an outlier.
    outlier_reports: int
    outliers: list[int]
    #: Replicas that publications are judged without: their link is lost, or they reported none of the latest ones.
    silent: list[int]
    receivers: ReleaseReceivers


@final
class ReleaseReceivers(TypedDict):
    """What receivers of the relay trees reported, since this replica leads."""

    #: Pieces of market data whose arrival at the last receiver is known.
    samples: int
    #: Those that came to some receiver after their release time.
    late: int
    #: How long receivers need market data to be held; null while none is heard. The longer of this and what the
    #: replicas need is in force.
    delay_ns: Optional[int]


@final
class Latency(TypedDict):
    #: Of the orders of a session, those are timed whose number is a multiple of this.
    timed_one_of: int
    #: How far percentiles reach back, at most.
    recent_s: int
    stages: list[StageTimes]


@final
class StageTimes(TypedDict):
    """A stage that something has passed here. Percentiles are null when nothing has of late."""

    stage: Literal["receive", "transit", "hold", "log", "apply", "answer", "order", "request", "publish", "release"]
    #: Timed since the start of this process.
    count: int
    #: Timed of late: what the percentiles are of.
    recent: int
    p50_ns: Optional[int]
    p90_ns: Optional[int]
    p99_ns: Optional[int]
    p999_ns: Optional[int]
    ns_max: Optional[int]


@final
class GatewayFigures(TypedDict):
    """What came by one gateway. docs/fair-access.md says what each figure means."""

    gateway: int
    is_outlier: bool
    judged: int
    overtaken: int
    overtaken_recent_ppm: int
    copies: int
    duplicates: int
    differing: int
    early: int
    refused: int
    malformed: int
    held: int
    late: int
    late_ns_max: int
    out_of_sequence: int
    unfair: int
    future_stamps: int
    stale_stamps: int
    stepped_back: int
    unstamped: int
    behind_watermark: int
    waited_for: int
    outlier_stamps: int
