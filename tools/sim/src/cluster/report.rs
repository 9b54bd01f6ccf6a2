//! What is simulated, and what a run saw.

use walras_consensus::Durability;

use super::mutation::Mutation;
use super::tempo::Tempo;
use crate::common::counts::report;

/// What is simulated.
#[derive(Clone, Copy, Debug, Default)]
pub struct Settings {
    /// Replicas that begin the cluster, 1 to 5; `None` for a number that the seed decides, mostly 3. One more stands by.
    pub replicas: Option<usize>,
    /// How dense faults and work are; `None` for what the seed decides, one of two being calm. Planted faults are looked for in
    /// storms, unless it says otherwise.
    pub tempo: Option<Tempo>,
    /// Simulated time with faults; `None` for 15 seconds of a storm, 60 of calm.
    pub safety_ns: Option<u64>,
    /// When a replica counts as holding a command; `None` for what the seed decides, one of four being of memory.
    pub durability: Option<Durability>,
    /// Whether disks are lost for good, each with all that was on it; `None` for what the seed decides, as one of three does.
    pub loses_disks: Option<bool>,
    /// Whether, where disks are lost, bits of files turn too while a replica is down; `None` for what the seed decides, as one of
    /// two does.
    pub damage: Option<bool>,
    /// Reports of an account that replicas keep; `None` for what the seed decides: the product's number, or a few.
    pub reports_kept: Option<u32>,
    /// Whether orders are sequenced by the time at which they reached a replica, any of them; `None` for what the seed decides, as
    /// one of three does.
    pub is_fair: Option<bool>,
    /// Whether, with fair access, most clients send each command by two replicas; `None` for what the seed decides, as one of two
    /// does. Not where replicas are lost for good.
    pub has_copies: Option<bool>,
    /// Whether folders of replicas that run are copied and second processes started on the copies; `None` for what the seed
    /// decides, as one of two does. Only where three replicas or more hold commands on disks that are not lost, without fair
    /// access.
    pub has_forks: Option<bool>,
    /// Whether, with fair access, a probe mesh gives every machine the venue's time, whatever its own clock shows; `None` for what
    /// the seed decides, as one of two does.
    pub has_mesh: Option<bool>,
    /// Whether, with fair access, what arrives is stamped by the millisecond, so that stamps are often the same; `None` for what
    /// the seed decides, as one of three does.
    pub coarse_stamps: Option<bool>,
    /// Whether, with fair access, bytes lie in sockets for a while before they are read; `None` for what the seed decides, as one
    /// of two does.
    pub late_reads: Option<bool>,
    /// Whether, with fair access, an order leaves once every gateway has shown a watermark that is past it; `None` for what the
    /// seed decides, as one of two does where bytes are read at once.
    pub merges: Option<bool>,
    /// Whether states are also kept as snapshots from time to time, as in production; `None` for what the seed decides, as one of
    /// two does.
    pub keeps_by_time: Option<bool>,
    /// Whether an operator makes and revokes keys, which replicas share; `None` for what the seed decides, as one of two does. Only
    /// where several replicas keep their disks.
    pub shares_keys: Option<bool>,
    /// Whether somebody changes the members all the time; `None` for what the seed decides, as one of four does. Only where several
    /// replicas began.
    pub restless: Option<bool>,
    /// Whether replicas are upgraded, and taken back, and somebody goes to the next release's rules; `None` for what the seed
    /// decides, as one of three does. Not where second processes are started.
    pub upgrades: Option<bool>,
    /// Whether some clients trade by leaf gateways; `None` for what the seed decides, as one of three does. Not where second processes
    /// are started.
    pub has_leaves: Option<bool>,
    /// Whether some programs trade by FIX; `None` for what the seed decides, as one of three does.
    pub has_fix: Option<bool>,
    /// Whether relays carry the binary feed to readers and leaf gateways; `None` for what the seed decides, as one of four
    /// does. Not where second processes are started.
    pub has_relays: Option<bool>,
    /// Whether, below relays, market data surges to fifteen times its rate now and then, and sockets of nodes have little room; `None`: no
    /// seed decides so.
    pub surges: Option<bool>,
    /// A planted fault.
    pub mutation: Option<Mutation>,
}

report! {
    /// Simulated time, of the whole venue.
    simulated_ns,
    /// From the end of faults until everybody was answered.
    healing_ns,
    /// Events.
    events,
    /// Things that went wrong: strikes, lost and doubled messages, connections cut, failed starts.
    faults,
    /// Entries in the log.
    entries,
    /// Commands answered, each once.
    answers,
    /// Reports delivered.
    reports,
    /// Reports that clients learned are no longer kept.
    missing_reports,
    /// Blocks of batch markets cleared.
    blocks,
    /// Reads answered.
    reads,
    /// Terms with a leader.
    elections,
    /// Ends of links that were reported.
    lost_links,
    /// Processes that ended other than in good order: power failed, or they were killed.
    crashes,
    /// Attempts to write a log that failed while the process went on.
    disk_failures,
    /// Failures of the disk that passed while the process went on.
    disk_recoveries,
    /// Processes that were asked to stop, and did so in good order.
    orderly_stops,
    /// Disks that were lost with all that was on them.
    lost_disks,
    /// Replicas of whose files a bit turned while they were down.
    damaged,
    /// Of these, such as did not start and said why.
    damage_refused,
    /// Of these, such as went on with all that they had.
    damage_survived,
    /// Replicas that began again under their ids with an empty disk, and were stopped by the others.
    emptied_found,
    /// Second processes that were started under the id of a replica that runs, on a copy of its folder.
    forks,
    /// Of these, such as were started while the first one reached nobody.
    parted_forks,
    /// Of these, such as took its place: the first one was stopped.
    outlived,
    /// Replicas in whose place another one came, under a new id.
    replaced,
    /// Venues in which what is in a majority's memory counts.
    in_memory,
    /// Venues that began with one replica.
    alone,
    /// Venues of a calm tempo.
    calm,
    /// Leaders that led for five seconds or longer without a break.
    long_leads,
    /// Starts from a log of 256 slots or more after its snapshot.
    long_tails,
    /// Venues whose log engines with two and eight threads applied too.
    threaded,
    /// Venues in which orders are sequenced by the time at which they reached a replica.
    fair,
    /// Of these, such as have clients that send each command by two replicas.
    with_copies,
    /// Of the venues with fair access, such as know the venue's time by a mesh.
    with_mesh,
    /// Of the venues with fair access, such as merge orders by watermarks.
    merging,
    /// Watermarks that replicas sent to leaders.
    watermarks,
    /// Of the venues with fair access, such as have stamps of milliseconds.
    coarse_stamps,
    /// Pieces of streams that lay in a socket before they were read.
    late_reads,
    /// Venues that also keep states from time to time.
    by_time,
    /// Venues whose members change all the time.
    restless,
    /// Venues whose replicas share keys.
    shares_keys,
    /// Venues whose replicas are upgraded.
    upgrading,
    /// Commands to go to the next release's rules that a leader took.
    upgrades,
    /// Triggers of stops that wait, amended.
    amended_triggers,
    /// Uncrosses that took several entries.
    stepped_uncrosses,
    /// Ends of a day that took several entries.
    stepped_day_ends,
    /// Orders that were named by a text.
    named_orders,
    /// Dead man's switches that fired.
    switches_fired,
    /// Transactions of frames that were collected, as their senders heard.
    framed_transactions,
    /// Transactions that were sent again in a frame after they had been collected.
    framed_again,
    /// Pairs of linked orders.
    pairs,
    /// Pairs of which one traded, triggered or shrank, so that the other was cancelled.
    pairs_broken,
    /// Cancels on disconnect that were looked for.
    cancels_on_disconnect,
    /// Transactions on pools that were refused since the rules in force do not know them.
    pools_refused,
    /// Transactions on pools that were taken.
    pools_taken,
    /// Requests that were signed with such a key, and of which the replica said whether it knows it.
    keys_tried,
    /// Publications whose true release time was checked.
    timed_releases,
    /// Orders whose sequence was checked.
    held,
    /// Of these, left the leader's hold in another order than they came.
    reordered,
    /// Of these, were stamped at the same instant as one of another gateway that left before.
    ties,
    /// Left after one with a later stamp, as orders do that come too late.
    out_of_sequence,
    /// Of these, came when one of their price with a later stamp had matched.
    unfairly_matched,
    /// Publications of market data that were held at a replica until their time.
    publications,
    /// Messages of the binary feed, in all channels.
    feed_messages,
    /// Venues with leaf gateways.
    with_leaves,
    /// Venues with programs that trade by FIX.
    with_fix,
    /// Logons of these.
    fix_logons,
    /// Execution reports that they were sent, each once.
    fix_reports,
    /// Their messages that became commands of the log, each once.
    fix_commands,
    /// Messages that they were sent again.
    fix_again,
    /// Books that a program read by FIX at a leaf gateway.
    fix_books,
    /// Leaf gateways that were killed.
    leaf_crashes,
    /// Times that a leaf gateway went to a replica after another one, or again.
    leaf_moves,
    /// Orders that a leaf gateway sent to another replica than before.
    leaf_orders_moved,
    /// Watermarks of replicas that were compared with those of the leaf gateways below.
    leaf_watermarks,
    /// Venues with a relay tree.
    with_relays,
    /// Of the venues with relays, such as have two parallel trees.
    with_two_trees,
    /// Surges of market data.
    surges,
    /// Packets that were sent in them in addition to the venue's.
    surge_packets,
    /// Datagrams for which the socket of a relay or a receiver had no room.
    overflowed,
    /// Samples of how late market data comes to leaf gateways that reached leaders.
    late_samples,
    /// Relays that were killed, and started again with nothing.
    relay_crashes,
    /// Relays that stood still for a while.
    relay_stalls,
    /// False reports of relays about their siblings.
    relay_lies,
    /// Views by which a sender went.
    relay_views,
    /// Of these, such as were without a relay because it forwarded nothing.
    relay_mute_views,
    /// Packets that relays passed on.
    packets_passed,
    /// Layers whose nodes all passed a packet on, so that its copies were counted.
    layers_judged,
    /// Milliseconds in which a keeper had to have taken out a relay that was silent.
    silent_relays_judged,
    /// Messages that readers below relays handed out.
    messages_read,
    /// Requests of these readers for messages that they missed.
    messages_asked,
    /// Messages that replicas sent again to leaf gateways, which had missed them or kept them no more.
    messages_recalled,
    /// Times that a reader below relays went on from a snapshot.
    snapshots_read,
    /// Messages that left leaf gateways.
    outlet_releases,
    /// Datagrams of relay trees that were cut on their way.
    datagrams_cut,
    /// Datagrams that somebody without the tree's key sent in the name of a node.
    datagrams_forged,
    /// Of those that were cut or forged, such as arrived and were refused.
    datagrams_refused,
    /// Starts that did not succeed.
    failed_starts,
    /// Starts from a snapshot.
    from_snapshot,
    /// Starts that cut a torn tail.
    torn_tails,
    /// Snapshots written.
    snapshots,
    /// Files of segments that were let go of and became new ones.
    reused_segments,
    /// Snapshots of others that were gone on from.
    installs,
    /// Snapshots whose transfer was cut.
    cut_transfers,
    /// Connections made by clients.
    connections,
    /// Changes of the members.
    member_changes,
    /// Of those, and of replacements, such as went by way of a joint configuration.
    joint_changes,
    /// Leaderships handed over.
    handovers,
    /// Leaders that handed over since their clock was far off.
    clock_handovers,
    /// Commands answered that came over no connection, as over HTTP.
    requests,
    /// Orders answered that were signed by themselves and have no number.
    signed,
    /// Requests of those that were recorded and sent again.
    replayed,
    /// Answers to them that the outcome is unknown.
    in_doubt,
    /// Answers to them that the log cannot be written.
    refused_by_storage,
    /// Notices to clients that a command was late for its place in the order of stamps.
    late,
}
