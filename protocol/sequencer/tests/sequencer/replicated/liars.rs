//! Replicas that say what is not so: in the name of others, or of a leader that they are not.

use walras_consensus::{ReplicaId, Term};
use walras_fair_access::GatewayId;
use walras_fair_access::clock::ClockStatus;
use walras_fair_access::delay::DelaySettings;
use walras_fair_access::resequence::Stamp;
use walras_sequencer::{
    FairAccess, ForwardSettings, GatewayHost, GatewayMessage, GatewayTime, IntakeSettings, NotTaken, RemoteOpening, SessionUse,
    SignedBy,
};
use walras_types::{AccountId, Ordinal, RejectReason, SessionId, SessionSeq, TimeNs};
use walras_wire::{Command, MassCancel, OpenSession, OrderCommand};

use super::{CHECKPOINT_EVERY, World, id};

/// A replica of the cluster says things in the name of others: that their states are other ones, that they lead later terms. It is
/// heard as itself or not at all: the others go on as if it had said nothing.
#[test]
fn what_a_replica_says_in_the_name_of_another_is_not_heard() {
    let mut world = World::new(1, None);
    let all = [0, 1, 2];
    all.into_iter().for_each(|n| world.start(n));
    world.live_until(&all, "somebody leads", |world| world.leader_among(&all).is_some());
    let leader = world.leader_among(&all).unwrap();
    let (liar, other) = ((leader + 1) % 3, (leader + 2) % 3);
    while world.account < CHECKPOINT_EVERY as u32 + 2 {
        world.send_a_pack(leader);
        world.live_until(&all, "it is applied", |world| {
            all.iter().all(|n| world.sequencer(*n).engine().last_applied().0 >= u64::from(world.account))
        });
    }
    let before = world.sequencer(other).status();

    // What they all said at the first checkpoint, with another state in it; a leader's sign of life, of a later term.
    let lies = |as_whom: ReplicaId| {
        let words = [7, as_whom.get(), CHECKPOINT_EVERY].into_iter().flat_map(u64::to_le_bytes);
        let hash: Vec<u8> = words.chain([9; 32]).chain([1]).collect();
        let header = [7, as_whom.get(), id(other).get(), before.term.0 + 5, 0, 0, 0, 0, 0];
        let (version, heartbeat) = (1, 5);
        let mut sign: Vec<u8> =
            [version, heartbeat, 0, 0].into_iter().chain(header.into_iter().flat_map(u64::to_le_bytes)).collect();
        sign.extend([0; 8]);
        sign.push(0);
        [hash, sign]
    };
    let now_ns = world.now_ns;
    let tell = |world: &mut World, as_whom| {
        for said in lies(as_whom) {
            world.with(other, |sequencer, around| sequencer.on_message(now_ns, id(liar), said.into(), around));
        }
    };
    tell(&mut world, id(leader));
    assert!(world.nodes[other].halted.is_none() && world.sequencer(other).status() == before, "it has heard nothing");
    // In its own name it is heard, and a later term counts. Two voters whose states are equal, and not its own, would have stopped
    // it: this is one.
    tell(&mut world, id(liar));
    assert_eq!(world.nodes[other].halted, None);
    assert_eq!(world.sequencer(other).status().term.0, before.term.0 + 5);
}

/// Participants at a replica with fair access, and its links.
#[derive(Default)]
struct People {
    sent: Vec<(ReplicaId, GatewayMessage)>,
    refused_openings: Vec<u64>,
}

impl GatewayHost<Option<Ordinal>> for People {
    fn send(&mut self, to: ReplicaId, bytes: Vec<u8>) {
        self.sent.push((to, GatewayMessage::decode(&bytes.into()).unwrap()));
    }

    fn opens_at(&mut self, _: RemoteOpening) -> Option<Ordinal> {
        None
    }

    fn opening_refused(&mut self, open: &OpenSession, _: RejectReason) {
        self.refused_openings.push(open.token);
    }

    fn opened(&mut self, _: &OpenSession, _: SessionId, _: SessionSeq) {}
    fn refused(&mut self, _: Ordinal, _: RejectReason) {}
    fn late(&mut self, _: Ordinal, _: u64) {}
    fn replaced_before(&mut self, _: SessionId, _: u64) {}
    fn not_taken(&mut self, _: Option<Ordinal>, _: NotTaken) {}
    fn differs(&mut self, _: GatewayId, _: Ordinal) {}
}

/// Three replicas that all know the leader, and the leader's index.
fn with_leader() -> (World, usize) {
    let mut world = World::new(2, None);
    let all = [0, 1, 2];
    all.into_iter().for_each(|n| world.start(n));
    world.live_until(&all, "all know who leads", |world| {
        world.leader_among(&all).is_some_and(|leader| all.iter().all(|n| world.sequencer(*n).leader() == Some(id(leader))))
    });
    let leader = world.leader_among(&all).unwrap();
    (world, leader)
}

/// A liar says that it leads, and refuses what was sent to the leader.
#[test]
fn a_gateway_passes_orders_on_to_the_leader_alone_and_hears_nobody_else_about_them() {
    let (mut world, leader) = with_leader();
    let (liar, gateway) = (id((leader + 1) % 3), (leader + 2) % 3);
    let term = world.sequencer(gateway).status().term;
    let now_ns = world.now_ns;
    let at = GatewayTime { now_ns, now: TimeNs(now_ns), time_ns: now_ns, status: ClockStatus::Good };

    let intake = IntakeSettings::new(4, DelaySettings::Static { delay_ns: 100_000 }, 7);
    let mut fair = FairAccess::new(id(gateway), ForwardSettings::default(), intake);
    let mut people = People::default();
    let open = |token| OpenSession { account: None, token };
    let sequencer = world.nodes[gateway].sequencer.as_mut().unwrap();
    let mut hear = |fair: &mut FairAccess<_>, people: &mut People, from, message: GatewayMessage| {
        fair.on_message(at, from, &message.encode().into(), sequencer, people);
        fair.settle(at, sequencer, people);
    };
    let opening = |token| GatewayMessage::Open { open: open(token), logon_seq: 1, usage: SessionUse::Alone };

    fair.open(at, open(1), 1, SessionUse::Alone);
    hear(&mut fair, &mut people, liar, GatewayMessage::Leading { term });
    assert_eq!(people.sent, [], "a term has one leader, and it is known");
    hear(&mut fair, &mut people, id(leader), GatewayMessage::Leading { term });
    assert_eq!(people.sent, [(id(leader), opening(1))]);
    fair.open(at, open(2), 1, SessionUse::Alone);
    hear(&mut fair, &mut people, liar, GatewayMessage::Leading { term });
    assert_eq!(people.sent[1..], [(id(leader), opening(2))], "it stays the leader");

    let refusal = |token| GatewayMessage::NotOpened { open: open(token), reason: RejectReason::TooManySessions };
    hear(&mut fair, &mut people, liar, refusal(1));
    assert_eq!(people.refused_openings, [], "it was not asked");
    hear(&mut fair, &mut people, id(leader), refusal(1));
    assert_eq!(people.refused_openings, [1]);
}

/// A watermark is sent behind the orders that it speaks of. It counts at the leader of its term alone, and until the link is lost.
#[test]
fn watermarks_follow_orders_and_count_in_their_term() {
    let (mut world, leader) = with_leader();
    let gateway = (leader + 1) % 3;
    let term = world.sequencer(gateway).status().term;
    let begin_ns = world.now_ns;
    let at = |after_ns| {
        let now_ns = begin_ns + after_ns;
        GatewayTime { now_ns, now: TimeNs(now_ns), time_ns: now_ns, status: ClockStatus::Good }
    };
    let until = |after_ns| Stamp::Gateway(begin_ns + after_ns);
    let intake = IntakeSettings::new(4, DelaySettings::Static { delay_ns: 100_000 }, 7);
    let mut people = People::default();

    let sequencer = world.nodes[gateway].sequencer.as_mut().unwrap();
    let mut fair = FairAccess::new(id(gateway), ForwardSettings::default(), intake);
    fair.on_message(at(0), id(leader), &GatewayMessage::Leading { term }.encode().into(), sequencer, &mut people);
    let open = OpenSession { account: None, token: 1 };
    fair.open(at(0), open, 1, SessionUse::Alone);
    fair.taken_in(until(0));
    fair.settle(at(0), sequencer, &mut people);
    let opening = GatewayMessage::Open { open, logon_seq: 1, usage: SessionUse::Alone };
    let watermark = |after_ns| GatewayMessage::Watermark { term, until: until(after_ns) };
    assert_eq!(people.sent, [(id(leader), opening), (id(leader), watermark(0))]);

    let sequencer = world.nodes[leader].sequencer.as_mut().unwrap();
    let mut fair = FairAccess::new(id(leader), ForwardSettings::default(), intake);
    fair.on_leading(begin_ns, term);
    fair.on_linked(id(gateway));
    let cancel = Command::Order(OrderCommand::MassCancel(MassCancel { account: AccountId(1), instrument: None, side: None }));
    let mut settle = |fair: &mut FairAccess<_>, people: &mut People, after_ns, heard: Option<GatewayMessage>| {
        if let Some(message) = heard {
            fair.on_message(at(after_ns), id(gateway), &message.encode().into(), sequencer, people);
        }
        fair.taken_in(until(after_ns));
        fair.settle(at(after_ns), sequencer, people);
        let figures = fair.sequenced();
        (figures.held, figures.merged)
    };
    fair.submit_alone(at(10), SignedBy::NOBODY, cancel, None);
    assert_eq!(settle(&mut fair, &mut people, 20, None), (1, 0), "the gateway has said nothing");
    let earlier = GatewayMessage::Watermark { term: Term(term.0 - 1), until: until(15) };
    assert_eq!(settle(&mut fair, &mut people, 30, Some(earlier)), (1, 0), "it was said of another term");
    assert_eq!(settle(&mut fair, &mut people, 40, Some(watermark(9))), (1, 0), "it is not past the stamp");
    assert_eq!(settle(&mut fair, &mut people, 50, Some(watermark(10))), (0, 1));
    // A lost link ends the promise. A replica that is not linked is not awaited.
    fair.submit_alone(at(60), SignedBy::NOBODY, cancel, None);
    fair.on_linked(id(gateway));
    assert_eq!(settle(&mut fair, &mut people, 70, None), (1, 1), "it was linked again");
    fair.on_link_lost(id(gateway));
    assert_eq!(settle(&mut fair, &mut people, 80, None), (0, 2));
    // A replica that hangs costs the whole delay, and no more.
    fair.on_linked(id(gateway));
    fair.submit_alone(at(100), SignedBy::NOBODY, cancel, None);
    assert_eq!(settle(&mut fair, &mut people, 100_099, None), (1, 2));
    assert_eq!(fair.wait_ns(at(100_099)), Some(1));
    assert_eq!(settle(&mut fair, &mut people, 100_100, None), (0, 2));
}
