//! What a replica says about itself and its cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use walras_config::Addresses;
use walras_consensus::{Members, ReplicaId, Role, RoleChange, Slot, Term};
use walras_engine::versions::OLDEST;
use walras_fair_access::clock::ClockStatus;
use walras_sequencer::{ArrivalCounts, ForwardCounts, IntakeFigures, ReleaseCounts};
use walras_types::{EngineVersion, LogIndex};

/// Figures of a replica. Clones share them.
#[derive(Clone, Debug)]
pub struct ClusterStatus {
    me: ReplicaId,
    inner: Arc<Mutex<ClusterView>>,
}

/// A look at a cluster from one of its replicas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterView {
    /// The cluster's number.
    pub cluster_id: u64,
    /// This replica.
    pub me: ReplicaId,
    /// Its term.
    pub term: Term,
    /// Its role.
    pub role: Role,
    /// Whether it takes commands.
    pub is_taking: bool,
    /// Who belongs to the cluster.
    pub members: Members,
    /// The last slot in its log, the last one that it knows to be decided, the last one applied.
    pub last_slot: Slot,
    /// See `last_slot`.
    pub decided_slot: Slot,
    /// The last entry applied.
    pub log_index: LogIndex,
    /// The version of the engine in force.
    pub engine_version: EngineVersion,
    /// The newest version of the engine that this replica's program knows.
    pub engine_newest: EngineVersion,
    /// Commands taken and not decided.
    pub waiting: usize,
    /// The other replicas.
    pub peers: BTreeMap<ReplicaId, PeerView>,
    /// Why it stopped.
    pub halted: Option<String>,
    /// Fair access here, if it is switched on.
    pub fair_access: Option<FairAccessView>,
    /// What became of the market data that it had released; `None` where it does not lead or nothing is held.
    pub release: Option<ReleaseCounts>,
    /// What is wrong with this machine's clock, if most of the others find that.
    pub clock_trouble: Option<String>,
    /// The leaf gateways that may link with this replica.
    pub leaves: BTreeMap<ReplicaId, LeafView>,
    /// The relay trees that the binary feed is sent by, if there are any.
    pub trees: Vec<TreeView>,
}

/// A leaf gateway, from here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeafView {
    /// The software that it runs; `None` while it is not linked.
    pub software: Option<String>,
    /// It passes on to this replica what its participants send.
    pub stands_below: bool,
    /// Its participants' sessions, while it stands below.
    pub sessions: usize,
    /// Why the link was lost last.
    pub trouble: Option<String>,
}

/// The relay tree, from the end that sends. Counts are since the process began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TreeView {
    /// Its number, which its packets have.
    pub number: u32,
    /// Additional copies of each packet, by other relays.
    pub hedge: u32,
    /// Nodes of each layer; the last one are the receivers.
    pub layers: Vec<usize>,
    /// Packets that were made and given to the first layer.
    pub packets: u64,
    /// Datagrams that this system did not take.
    pub not_taken: u64,
    /// Requests of receivers for messages that they missed, answered here.
    pub asked: u64,
    /// Requests that were not answered because their source asked too often.
    pub asked_too_often: u64,
    /// The view by which packets go, and relays that are out of it: the relays of all layers are numbered from 0 on.
    pub epoch: u16,
    /// Likewise, each with why it is out.
    pub out: Vec<(u32, RelayOut)>,
    /// What the nodes said when they were asked last, by layer and place: of the receivers, those that answer such questions. Empty before
    /// the first round of questions.
    pub nodes: Arc<Vec<Vec<Option<NodeFigures>>>>,
}

/// Why packets do not go by a relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelayOut {
    /// It answers nothing.
    Silent,
    /// It does not take up the view.
    Unaware,
    /// It answers, and forwards nothing: those below it say so.
    Mute,
}

/// What came to a node of the tree since it began, and how long its packets were under way lately.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeFigures {
    /// First copies of packets.
    pub packets: u64,
    /// Of these, those that came by a hedge.
    pub by_hedge: u64,
    /// Further copies.
    pub copies: u64,
    /// Packets of which no copy came.
    pub lost: u64,
    /// Datagrams that its system did not take.
    pub not_taken: u64,
    /// Datagrams without the seal, of other trees, or that are no packet.
    pub refused: u64,
    /// From the sender to there, by the clocks of both machines: the median of the last packets.
    pub transit_ns_p50: u64,
    /// The same, percentile 99.
    pub transit_ns_p99: u64,
    /// At a receiver that holds market data: packets that came after their release time.
    pub late: u64,
    /// At a leaf gateway: what it asked the replicas for.
    pub recalls: RecallFigures,
}

/// What a leaf gateway asked the replicas for because it had missed it, or did not keep it any more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecallFigures {
    /// Requests.
    pub asked: u64,
    /// Of these, those whose messages came back, or some of them.
    pub answered: u64,
    /// Messages that came back.
    pub messages: u64,
    /// Runs of messages that no replica had, or for which there was no room.
    pub failed: u64,
}

/// A look at fair access at a replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FairAccessView {
    /// Its clock.
    pub clock: FairTime,
    /// Where it passes orders on to, itself perhaps.
    pub leader: Option<ReplicaId>,
    /// Commands passed on and unanswered.
    pub unanswered: usize,
    /// What it passed on.
    pub forwards: ForwardCounts,
    /// What the stamps of orders here are made of.
    pub arrivals: ArrivalCounts,
    /// What it sequenced, now or when it led last.
    pub intake: IntakeFigures,
}

/// A look at the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FairTime {
    /// What it shows. Where the status is [`ClockStatus::Unknown`] that is the computer's time, which nobody vouches for. It never
    /// goes back, but where one of the two takes the other's place.
    pub time_ns: u64,
    /// How far off it may be.
    pub bound_ns: Option<u64>,
    /// Whether it may stamp.
    pub status: ClockStatus,
}

/// Another replica, from here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeerView {
    /// Where its links are.
    pub link: String,
    /// Where participants reach it.
    pub addresses: Addresses,
    /// The software that it runs; `None` while it is not linked.
    pub software: Option<String>,
    /// The newest version of the engine that its program knows; `None` while it is not linked.
    pub engine_newest: Option<EngineVersion>,
    /// Whether its versions go with ours; `None` while it is not linked.
    pub is_compatible: Option<bool>,
    /// The newest reason for which there is no link.
    pub trouble: Option<String>,
}

impl ClusterStatus {
    /// A replica that has just started.
    pub fn new(
        cluster_id: u64,
        me: ReplicaId,
        members: Members,
        peers: BTreeMap<ReplicaId, PeerView>,
        engine_newest: EngineVersion,
    ) -> Self {
        let view = ClusterView {
            cluster_id,
            me,
            term: Term(0),
            role: Role::Follower { leader: None },
            is_taking: false,
            members,
            last_slot: Slot(0),
            decided_slot: Slot(0),
            log_index: LogIndex(0),
            engine_version: OLDEST,
            engine_newest,
            waiting: 0,
            peers,
            halted: None,
            fair_access: None,
            release: None,
            clock_trouble: None,
            leaves: BTreeMap::new(),
            trees: Vec::new(),
        };
        Self { me, inner: Arc::new(Mutex::new(view)) }
    }

    /// This replica.
    #[must_use]
    pub fn me(&self) -> ReplicaId {
        self.me
    }

    /// As it stands.
    #[must_use]
    pub fn view(&self) -> ClusterView {
        self.lock().clone()
    }

    /// Who leads, as far as it is known, and where it is reached.
    #[must_use]
    pub fn leader(&self) -> Option<(ReplicaId, Addresses)> {
        let view = self.lock();
        let leader = match view.role {
            Role::Leader => Some(self.me),
            Role::Follower { leader } => leader,
            Role::Candidate => None,
        }?;
        Some((leader, view.peers.get(&leader).map(|peer| peer.addresses.clone()).unwrap_or_default()))
    }

    /// Whether it leads and has applied all that earlier leaders decided.
    #[must_use]
    pub fn takes_commands(&self) -> bool {
        self.lock().is_taking
    }

    /// Its role changed.
    pub fn set_role(&self, change: RoleChange) {
        let mut view = self.lock();
        (view.term, view.role) = (change.term, change.role);
        view.is_taking &= change.role == Role::Leader;
    }

    /// What fair access shows here.
    pub fn set_fair_access(&self, fair_access: FairAccessView) {
        self.lock().fair_access = Some(fair_access);
    }

    /// What became of released market data.
    pub fn set_release(&self, release: Option<ReleaseCounts>) {
        self.lock().release = release;
    }

    /// Whether it takes commands.
    pub fn set_taking(&self, is_taking: bool) {
        self.lock().is_taking = is_taking;
    }

    /// Who belongs to the cluster.
    pub fn set_members(&self, members: Members) {
        self.lock().members = members;
    }

    /// How far its log is, and how many commands wait.
    pub fn set_progress(&self, status: &walras_consensus::Status, waiting: usize) {
        let mut view = self.lock();
        (view.last_slot, view.decided_slot, view.log_index) = (status.last, status.committed, status.log_index);
        view.waiting = waiting;
    }

    /// Under which version of the engine it goes on.
    pub fn set_engine_version(&self, version: EngineVersion) {
        self.lock().engine_version = version;
    }

    /// It stopped, for this reason.
    pub fn set_halted(&self, why: &str) {
        self.lock().halted = Some(why.to_owned());
    }

    /// What is wrong with this machine's clock, if anything.
    pub fn set_clock_trouble(&self, trouble: Option<String>) {
        self.lock().clock_trouble = trouble;
    }

    /// Changes what is known of another replica.
    pub fn with_peer(&self, id: ReplicaId, change: impl FnOnce(&mut PeerView)) {
        change(self.lock().peers.entry(id).or_default());
    }

    /// Changes what is known of a leaf gateway.
    pub fn with_leaf(&self, id: ReplicaId, change: impl FnOnce(&mut LeafView)) {
        change(self.lock().leaves.entry(id).or_default());
    }

    /// These gateways may be linked from now on. What is known of those who stay is kept.
    pub fn set_leaves(&self, known: &BTreeSet<ReplicaId>) {
        let mut view = self.lock();
        view.leaves.retain(|id, _| known.contains(id));
        for id in known {
            view.leaves.entry(*id).or_default();
        }
    }

    /// Which gateways stand below this replica, with how many sessions; no other does.
    pub fn set_below(&self, below: &BTreeMap<ReplicaId, usize>) {
        for (id, leaf) in &mut self.lock().leaves {
            (leaf.stands_below, leaf.sessions) = below.get(id).map_or((false, 0), |sessions| (true, *sessions));
        }
    }

    /// What the sender of the binary feed shows.
    pub fn set_trees(&self, trees: Vec<TreeView>) {
        self.lock().trees = trees;
    }

    /// Where participants reach this replica, where the configuration does not say.
    pub fn set_own_addresses(&self, own: Addresses) {
        self.with_peer(self.me, |peer| {
            let Addresses { http, order_entry } = &mut peer.addresses;
            for (known, own) in [(http, own.http), (order_entry, own.order_entry)] {
                if known.is_empty() {
                    *known = own;
                }
            }
        });
    }

    /// These are the other replicas from now on, and this one. What is known of those who stay is kept.
    pub fn set_peers(&self, peers: impl IntoIterator<Item = (ReplicaId, PeerView)>) {
        let mut view = self.lock();
        let mut before = std::mem::take(&mut view.peers);
        let known = |(id, peer): (ReplicaId, PeerView)| {
            let was = before.remove(&id).unwrap_or_default();
            let addresses = if peer.addresses == Addresses::default() { was.addresses.clone() } else { peer.addresses };
            (id, PeerView { link: peer.link, addresses, ..was })
        };
        view.peers = peers.into_iter().map(known).collect();
    }

    fn lock(&self) -> MutexGuard<'_, ClusterView> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gateways_that_stay_keep_what_is_known_and_those_below_change_together() {
        let id = |number| ReplicaId::new(number).expect("not 0");
        let members = Members { voters: BTreeSet::from([id(1)]), ..Members::default() };
        let status = ClusterStatus::new(1, id(1), members, BTreeMap::new(), OLDEST);
        status.set_leaves(&BTreeSet::from([id(40), id(41)]));
        status.with_leaf(id(40), |leaf| leaf.software = Some("0.1.0".into()));
        status.set_below(&BTreeMap::from([(id(40), 3)]));
        let leaf = |number| status.view().leaves.get(&id(number)).cloned();
        assert_eq!(leaf(40).map(|leaf| (leaf.stands_below, leaf.sessions)), Some((true, 3)));
        status.set_leaves(&BTreeSet::from([id(40), id(42)]));
        assert_eq!((leaf(40).and_then(|leaf| leaf.software), leaf(41)), (Some("0.1.0".into()), None));
        status.set_below(&BTreeMap::from([(id(42), 1), (id(99), 1)]));
        assert_eq!(leaf(40).map(|leaf| (leaf.stands_below, leaf.sessions)), Some((false, 0)));
        assert_eq!((leaf(42).map(|leaf| leaf.stands_below), leaf(99)), (Some(true), None), "only those that may link");
    }
}
