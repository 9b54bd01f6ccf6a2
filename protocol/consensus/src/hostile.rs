//! Messages that no sound replica sends: a replica refuses them, or goes on, and never panics.

use crate::durable::{Body, SlotEntry, SnapshotMeta};
use crate::effect::Effect;
use crate::ids::{ReplicaId, Slot, Term};
use crate::members::{MemberChange, Members};
use crate::pack::Pack;
use crate::replica::Replica;
use crate::window::{entry_to_raft, snapshot_to_raft};
use crate::{Recovered, Settings, wire};
use proptest::prelude::*;
use raft::eraftpb::{Message, MessageType};
use walras_types::LogIndex;

const MS: u64 = 1_000_000;

fn id(id: u64) -> ReplicaId {
    ReplicaId::new(id).unwrap()
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![6 => 0_u64..8, 1 => Just(1 << 40), 1 => Just((1 << 62) - 1), 1 => Just(u64::MAX)]
}

fn members() -> impl Strategy<Value = Members> {
    let set = || prop::collection::btree_set((1_u64..5).prop_map(id), 0..3);
    (set(), set(), set(), set()).prop_map(|(voters, learners, outgoing, next_learners)| Members {
        voters,
        learners,
        outgoing,
        next_learners,
    })
}

fn body() -> impl Strategy<Value = Body> {
    let change = (0_u8..3, 1_u64..5).prop_map(|(kind, n)| match kind {
        0 => MemberChange::AddVoter(id(n)),
        1 => MemberChange::AddLearner(id(n)),
        _ => MemberChange::Remove(id(n)),
    });
    let mut pack = Pack::new();
    pack.push(b"x");
    prop_oneof![Just(Body::Empty), Just(Body::Pack(pack.into_bytes())), prop::collection::vec(change, 0..3).prop_map(Body::Members)]
}

fn message() -> impl Strategy<Value = Message> {
    let kinds = prop::sample::select(wire::KINDS);
    let bodies = prop::collection::vec((0_u64..4, body()), 0..4);
    (kinds, 2_u64..4, prop::array::uniform7(number()), any::<bool>(), bodies, members()).prop_map(
        |(kind, from, n, reject, mut bodies, members)| {
            let mut m = Message::default();
            m.set_msg_type(kind);
            (m.from, m.to, m.term, m.reject) = (from, 1, n[0], reject);
            (m.index, m.log_term, m.commit, m.commit_term, m.reject_hint) = (n[1], n[2], n[3], n[4], n[5]);
            if reject || n[6] < 6 {
                // Mostly well-formed, so that it gets past the decoder.
                m.term = if kind == MessageType::MsgReadIndex { 0 } else { m.term.max(1) };
                m.log_term = if m.index == 0 { 0 } else { m.log_term.max(1) };
                bodies.sort_by_key(|(term, _)| *term);
                bodies.iter_mut().for_each(|(term, _)| *term = (*term).max(m.log_term).max(1));
                if kind != MessageType::MsgAppend {
                    let is_read = matches!(kind, MessageType::MsgReadIndex | MessageType::MsgReadIndexResp);
                    bodies = if is_read { vec![(1, Body::Pack(vec![7; 24].into()))] } else { Vec::new() };
                }
            }
            for (at, (term, body)) in bodies.into_iter().enumerate() {
                let slot = Slot(m.index.wrapping_add(1 + at as u64));
                m.entries.push(entry_to_raft(&SlotEntry { slot, term: Term(term), body }));
            }
            if kind == MessageType::MsgSnapshot {
                m.entries.clear();
                m.set_snapshot(snapshot_to_raft(&SnapshotMeta {
                    slot: Slot(n[1]),
                    term: Term(n[2]),
                    log_index: LogIndex(n[6]),
                    members,
                }));
            }
            m
        },
    )
}

#[derive(Clone, Debug)]
enum Step {
    Message(Message),
    Wait(u64),
    Propose,
    Persist,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![8 => message().prop_map(Step::Message), 2 => (1_u64..400).prop_map(Step::Wait), 1 => Just(Step::Propose), 3 => Just(Step::Persist)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]
    #[test]
    fn whatever_a_peer_sends_a_replica_does_not_panic(steps in prop::collection::vec(step(), 1..30)) {
        let mut effects = Vec::new();
        let genesis = Recovered::genesis(Members::of_voters([id(1), id(2), id(3)]));
        let mut replica = Replica::start(0, Settings::new(1, id(1)), genesis, 1, &mut effects).unwrap();
        let mut now_ns = 0;
        for step in steps {
            match step {
                Step::Message(message) => {
                    let bytes = wire::encode(1, &message).into();
                    if let Err(error) = replica.on_message(now_ns, bytes, &mut effects) && !matches!(error, crate::StepError::Message(_)) {
                        // Its host stops it here.
                        return Ok(());
                    }
                }
                Step::Wait(ms) => {
                    now_ns += ms * MS;
                    replica.on_timer(now_ns, &mut effects);
                }
                Step::Propose => {
                    let mut pack = Pack::new();
                    pack.push(b"y");
                    let _ = replica.propose(pack, &mut effects);
                }
                Step::Persist => {
                    let writes = effects.iter().filter_map(|effect| if let Effect::Persist(write) = effect { Some(write.ticket) } else { None });
                    if let Some(ticket) = writes.last() {
                        replica.on_persisted(ticket, &mut effects);
                    }
                }
            }
        }
    }
}
