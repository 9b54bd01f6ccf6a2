//! What one replica does and refuses, seen from its host.

use walras_consensus::{
    Body, Effect, HardState, MemberChange, Members, Pack, ReadToken, Recovered, Refused, Replica, ReplicaId, Role, Settings, Slot,
    SlotEntry, StartError, StepError, Term, Ticket,
};

const MS: u64 = 1_000_000;

fn id(id: u64) -> ReplicaId {
    ReplicaId::new(id).unwrap()
}

fn start(at: u64, recovered: Recovered) -> (Replica, Vec<Effect>) {
    let mut effects = Vec::new();
    let replica = Replica::start(0, Settings::new(1, id(at)), recovered, 1, &mut effects).unwrap();
    (replica, effects)
}

fn genesis(voters: u64) -> Recovered {
    Recovered::genesis(Members::of_voters((1..=voters).map(id)))
}

fn pack(entries: &[&[u8]]) -> Pack {
    let mut pack = Pack::new();
    entries.iter().for_each(|entry| pack.push(entry));
    pack
}

fn sent(effects: &[Effect]) -> Vec<(ReplicaId, Vec<u8>)> {
    let send = |effect: &Effect| if let Effect::Send { to, bytes } = effect { Some((*to, bytes.clone())) } else { None };
    effects.iter().filter_map(send).collect()
}

fn tickets(effects: &[Effect]) -> Vec<Ticket> {
    effects.iter().filter_map(|effect| if let Effect::Persist(write) = effect { Some(write.ticket) } else { None }).collect()
}

fn committed(effects: &[Effect]) -> Vec<(u64, Slot, Vec<Vec<u8>>)> {
    let packs = effects.iter().filter_map(|effect| if let Effect::Committed(committed) = effect { Some(committed) } else { None });
    packs.map(|c| (c.first.0, c.slot, c.pack.entries().map(<[u8]>::to_vec).collect())).collect()
}

/// Hands over what was sent and makes durable what was written, until all is quiet; returns all effects of each.
fn settle(replicas: &mut [Replica], now_ns: u64, effects: Vec<Vec<Effect>>) -> Vec<Vec<Effect>> {
    settle_without(None, replicas, now_ns, effects)
}

/// The same with one that is dead and hears nothing.
fn settle_without(dead: Option<usize>, replicas: &mut [Replica], now_ns: u64, mut effects: Vec<Vec<Effect>>) -> Vec<Vec<Effect>> {
    let mut all: Vec<Vec<Effect>> = vec![Vec::new(); replicas.len()];
    while effects.iter().any(|effects| !effects.is_empty()) {
        let mut next = vec![Vec::new(); replicas.len()];
        for (at, effects) in effects.into_iter().enumerate() {
            if let Some(ticket) = tickets(&effects).last() {
                replicas[at].on_persisted(*ticket, &mut next[at]);
            }
            for (to, bytes) in sent(&effects) {
                let to = to.get() as usize - 1;
                if let Some(replica) = replicas.get_mut(to).filter(|_| dead != Some(to)) {
                    replica.on_message(now_ns, bytes.into(), &mut next[to]).unwrap();
                }
            }
            all[at].extend(effects);
        }
        effects = next;
    }
    all
}

/// Three replicas, linked from the start; the first one leads.
fn led() -> Vec<Replica> {
    let mut replicas: Vec<Replica> = (1..=3).map(|at| start(at, genesis(3)).0).collect();
    for (at, replica) in (1..).zip(&mut replicas) {
        (1..=3).filter(|other| *other != at).for_each(|other| replica.on_linked(0, id(other)));
    }
    let mut effects = vec![Vec::new(); 3];
    replicas[0].on_timer(301 * MS, &mut effects[0]);
    let all = settle(&mut replicas, 301 * MS, effects);
    assert!(all[0].contains(&Effect::Leading { term: Term(1) }));
    replicas
}

#[test]
fn alone_it_leads_and_decides_what_its_disk_has() {
    let (mut replica, mut effects) = start(1, genesis(1));
    replica.on_timer(301 * MS, &mut effects);
    assert_eq!(replica.status().role, Role::Leader);
    let last = *tickets(&effects).last().unwrap();
    effects.clear();
    replica.on_persisted(last, &mut effects);
    assert_eq!(effects, [Effect::Leading { term: Term(1) }]);
    effects.clear();
    assert_eq!(replica.propose(pack(&[b"a", b"b"]), &mut effects), Ok((Slot(2), Term(1))));
    assert_eq!(committed(&effects), []);
    let first = tickets(&effects)[0];
    replica.propose(pack(&[b"c"]), &mut effects).unwrap();
    let second = tickets(&effects)[1];
    effects.clear();
    replica.on_persisted(first, &mut effects);
    assert_eq!(committed(&effects), [(1, Slot(2), vec![b"a".to_vec(), b"b".to_vec()])]);
    effects.clear();
    replica.on_persisted(second, &mut effects);
    assert_eq!(committed(&effects), [(3, Slot(3), vec![b"c".to_vec()])]);
}

#[test]
fn alone_it_tells_its_learner_nothing_of_a_term_that_its_disk_does_not_know() {
    let mut recovered = genesis(1);
    recovered.snapshot.members.learners.insert(id(2));
    let (mut replica, mut effects) = start(1, recovered);
    replica.on_timer(301 * MS, &mut effects);
    assert_eq!((replica.status().role, sent(&effects)), (Role::Leader, vec![]));
    let tickets = tickets(&effects);
    effects.clear();
    replica.on_persisted(*tickets.last().unwrap(), &mut effects);
    assert!(!sent(&effects).is_empty());
}

/// Nor does one that was removed: it has no vote either.
#[test]
fn a_learner_forgets_a_leader_that_it_does_not_hear_any_more() {
    let of = |at| {
        let mut recovered = genesis(1);
        recovered.snapshot.members.learners.insert(id(2));
        start(at, recovered).0
    };
    let mut replicas = vec![of(1), of(2)];
    replicas[0].on_linked(0, id(2));
    replicas[1].on_linked(0, id(1));
    let mut now_ns = 301 * MS;
    let lead = |replicas: &mut Vec<Replica>, now_ns: u64| {
        let mut effects = vec![Vec::new(); 2];
        replicas[0].on_timer(now_ns, &mut effects[0]);
        settle(replicas, now_ns, effects);
        assert_eq!(replicas[1].status().role, Role::Follower { leader: Some(id(1)) });
    };
    for _ in 0..10 {
        lead(&mut replicas, now_ns);
        now_ns += 60 * MS;
    }
    let mut effects = Vec::new();
    for _ in 0..60 {
        now_ns += 10 * MS;
        replicas[1].on_timer(now_ns, &mut effects);
    }
    assert_eq!((replicas[1].status().role, sent(&effects)), (Role::Follower { leader: None }, vec![]));
    lead(&mut replicas, now_ns);
}

#[test]
fn a_leader_sends_before_its_disk_is_done_and_a_follower_answers_after() {
    let mut replicas = led();
    let (mut leader, mut follower) = (Vec::new(), Vec::new());
    replicas[0].propose(pack(&[b"a"]), &mut leader).unwrap();
    let (to, bytes) = sent(&leader).into_iter().find(|(to, _)| *to == id(2)).expect("sent at once");
    assert_eq!((to, tickets(&leader).len()), (id(2), 1), "and not yet durable");
    replicas[1].on_message(302 * MS, bytes.into(), &mut follower).unwrap();
    assert_eq!(sent(&follower), [], "it would promise what a crash takes");
    let written = tickets(&follower)[0];
    follower.clear();
    replicas[1].on_persisted(written, &mut follower);
    let answer = sent(&follower).remove(0).1;
    let written = tickets(&leader)[0];
    leader.clear();
    replicas[0].on_message(303 * MS, answer.into(), &mut leader).unwrap();
    assert_eq!(committed(&leader), [], "this release of the library hands out what is durable here too");
    replicas[0].on_persisted(written, &mut leader);
    assert_eq!(committed(&leader).len(), 1);
}

#[test]
fn it_says_why_it_does_not() {
    let mut replicas = led();
    let mut effects = Vec::new();
    let not_leader = Refused::NotLeader { leader: Some(id(1)) };
    assert_eq!(replicas[1].propose(pack(&[b"a"]), &mut effects), Err(not_leader));
    assert_eq!(not_leader.to_string(), "replica is not the leader; ask replica 1");
    assert_eq!(replicas[1].transfer_to(302 * MS, id(3), &mut effects), Err(not_leader));
    let leader = &mut replicas[0];
    assert_eq!(leader.propose(Pack::new(), &mut effects), Err(Refused::Empty));
    let large = leader.propose(pack(&[&vec![0; 2 << 20]]), &mut effects);
    assert_eq!(large, Err(Refused::TooLarge { bytes: (2 << 20) + 8, bytes_max: 1 << 20 }));
    let remove = |n| MemberChange::Remove(id(n));
    let too_many: Vec<MemberChange> = (4..=65).map(|n| MemberChange::AddLearner(id(n))).collect();
    for nonsense in [&[][..], &[remove(2), remove(2)], &[remove(1), remove(2), remove(3)], &too_many] {
        assert_eq!(leader.change_members(nonsense, &mut effects), Err(Refused::BadChange));
    }
    assert_eq!(leader.transfer_to(302 * MS, id(9), &mut effects), Err(Refused::NoVoter { to: id(9) }));
    assert_eq!(effects, [], "nothing has happened");
    leader.transfer_to(302 * MS, id(2), &mut effects).unwrap();
    assert_eq!(leader.propose(pack(&[b"a"]), &mut effects), Err(Refused::Busy));
    let filled = (0..200).find_map(|_| led_busy(&pack(&[&vec![0; 1 << 19]])));
    assert_eq!(filled, Some(Refused::Busy));
}

/// Fills a leader that nobody answers.
fn led_busy(full: &Pack) -> Option<Refused> {
    let mut leader = led().remove(0);
    (0..200).find_map(|_| leader.propose(full.clone(), &mut Vec::new()).err())
}

#[test]
fn a_follower_reads_what_was_decided_when_it_asked() {
    let mut replicas = led();
    let mut effects = vec![Vec::new(); 3];
    replicas[0].propose(pack(&[b"a"]), &mut effects[0]).unwrap();
    settle(&mut replicas, 302 * MS, effects);
    let mut effects = vec![Vec::new(); 3];
    replicas[1].read(ReadToken(5), &mut effects[1]).unwrap();
    let all = settle(&mut replicas, 303 * MS, effects);
    assert_eq!(all[1].last(), Some(&Effect::ReadReady { token: ReadToken(5) }));
    assert_eq!(replicas[1].status().delivered, Slot(2));
}

#[test]
fn a_replica_whose_disk_lost_what_it_promised_stops_and_says_so() {
    let mut replicas = led();
    let mut effects = vec![Vec::new(); 3];
    replicas[0].propose(pack(&[b"a"]), &mut effects[0]).unwrap();
    settle(&mut replicas, 302 * MS, effects);
    let mut heartbeat = Vec::new();
    replicas[0].on_timer(400 * MS, &mut heartbeat);
    let (_, bytes) = sent(&heartbeat).into_iter().find(|(to, _)| *to == id(2)).unwrap();
    let (mut emptied, mut effects) = start(2, genesis(3));
    let error = emptied.on_message(400 * MS, bytes.into(), &mut effects).unwrap_err();
    assert_eq!(error, StepError::LostSlots { term: Term(1), slot: Slot(2) });
}

#[test]
fn two_leaders_of_a_term_are_noticed() {
    let mut replicas = led();
    // One with another's id, and a vote for itself in a term that was won already.
    let (mut double, mut effects) = start(2, genesis(1));
    assert_eq!(double.status().term, Term(0));
    let mut recovered = genesis(1);
    recovered.snapshot.members = Members::of_voters([id(2)]);
    recovered.snapshot.members.learners.insert(id(1));
    effects.clear();
    (double, effects) = start(2, recovered);
    double.on_timer(301 * MS, &mut effects);
    let last = *tickets(&effects).last().unwrap();
    effects.clear();
    double.on_persisted(last, &mut effects);
    let (_, bytes) = sent(&effects).remove(0);
    let error = replicas[0].on_message(302 * MS, bytes.into(), &mut Vec::new()).unwrap_err();
    assert_eq!(error, StepError::TwoLeaders { term: Term(1), other: id(2) });
}

#[test]
fn a_log_that_does_not_hold_together_does_not_start() {
    let entry = |slot, term| SlotEntry { slot: Slot(slot), term: Term(term), body: Body::Empty };
    let state = |term, commit| HardState { term: Term(term), vote: None, commit: Slot(commit) };
    let bad_pack = SlotEntry { body: Body::Pack(vec![9].into()), ..entry(1, 1) };
    for (hard_state, entries, bad) in [
        (state(1, 0), vec![entry(2, 1)], 2),
        (state(3, 0), vec![entry(1, 2), entry(2, 1)], 2),
        (state(1, 0), vec![entry(1, 2)], 1),
        (state(1, 2), vec![entry(1, 1)], 1),
        (state(1, 0), vec![bad_pack], 1),
    ] {
        let recovered = Recovered { hard_state, entries, ..genesis(3) };
        let error = Replica::start(0, Settings::new(1, id(1)), recovered, 1, &mut Vec::new()).unwrap_err();
        assert!(matches!(error, StartError::Log { slot, .. } if slot == Slot(bad)), "{error}");
    }
    let nobody = Recovered::genesis(Members::default());
    assert!(Replica::start(0, Settings::new(1, id(1)), nobody, 1, &mut Vec::new()).is_err());
    let settings = Settings { election_timeout_min_ns: 1, ..Settings::new(1, id(1)) };
    assert!(Replica::start(0, settings, genesis(1), 1, &mut Vec::new()).is_err());
}

#[test]
fn one_that_was_held_up_hears_the_leader_before_it_stands_for_election() {
    let mut replicas = led();
    let mut heartbeat = Vec::new();
    replicas[0].on_timer(340 * MS, &mut heartbeat);
    let (_, bytes) = sent(&heartbeat).into_iter().find(|(to, _)| *to == id(2)).unwrap();
    let mut effects = Vec::new();
    replicas[1].on_message(5_000 * MS, bytes.into(), &mut effects).unwrap();
    replicas[1].on_timer(5_000 * MS, &mut effects);
    assert_eq!(replicas[1].status().role, Role::Follower { leader: Some(id(1)) });
    replicas[2].on_timer(5_000 * MS, &mut effects);
    assert_eq!(replicas[2].status().role, Role::Candidate, "it heard nothing");
}

#[test]
fn those_that_lost_the_link_to_their_leader_elect_another_without_waiting_for_a_timeout() {
    let mut replicas = led();
    let mut effects = vec![Vec::new(); 3];
    replicas[0].on_timer(330 * MS, &mut effects[0]);
    settle(&mut replicas, 330 * MS, effects);
    let mut effects = vec![Vec::new(); 3];
    for at in [1, 2] {
        replicas[at].on_link_lost(331 * MS, id(1), &mut effects[at]);
        assert_eq!(replicas[at].status().role, Role::Follower { leader: None });
    }
    settle_without(Some(0), &mut replicas, 331 * MS, effects);
    let led_ns = until_another_leads(&mut replicas, 331 * MS);
    assert!(led_ns < 360 * MS, "it takes as long as a timeout: {led_ns} ns");
    assert_eq!(replicas[1].status().term, Term(2), "and with one election");
}

/// The time at which one of those that are left leads, if the first one has died.
fn until_another_leads(replicas: &mut [Replica], mut now_ns: u64) -> u64 {
    while replicas.iter().skip(1).all(|replica| replica.status().role != Role::Leader) {
        now_ns += MS;
        let mut effects = vec![Vec::new(); 3];
        for at in [1, 2] {
            replicas[at].on_timer(now_ns, &mut effects[at]);
        }
        settle_without(Some(0), replicas, now_ns, effects);
    }
    now_ns
}

#[test]
fn a_leader_that_falls_silent_is_replaced_soon_after_the_shortest_timeout_by_one_election() {
    for seed in 1..100 {
        let started = |at| Replica::start(0, Settings::new(1, id(at)), genesis(3), seed + at, &mut Vec::new()).unwrap();
        let mut replicas: Vec<Replica> = (1..=3).map(started).collect();
        for (at, replica) in (1..).zip(&mut replicas) {
            (1..=3).filter(|other| *other != at).for_each(|other| replica.on_linked(0, id(other)));
        }
        let mut effects = vec![Vec::new(); 3];
        replicas[0].on_timer(301 * MS, &mut effects[0]);
        settle(&mut replicas, 301 * MS, effects);
        // The followers hear it for the last time, one a little later than the other.
        let mut heartbeat = Vec::new();
        replicas[0].on_timer(340 * MS, &mut heartbeat);
        for (to, bytes) in sent(&heartbeat) {
            let heard_ns = 340 * MS + to.get() * (seed % 4) * MS / 2;
            replicas[to.get() as usize - 1].on_message(heard_ns, bytes.into(), &mut Vec::new()).unwrap();
        }
        let led_ns = until_another_leads(&mut replicas, 342 * MS);
        assert!((490 * MS..520 * MS).contains(&led_ns), "seed {seed}: {led_ns} ns");
        let leader = replicas.iter().skip(1).find(|replica| replica.status().role == Role::Leader).unwrap();
        assert_eq!(leader.status().term, Term(2), "seed {seed}");
    }
}

#[test]
fn a_link_that_merely_broke_costs_nobody_the_leader() {
    let mut replicas = led();
    for now_ns in (302..700).map(|ms| ms * MS) {
        let mut effects = vec![Vec::new(); 3];
        // Again and again: the others hear the leader all the time.
        if now_ns % (50 * MS) == 0 {
            replicas[1].on_link_lost(now_ns, id(1), &mut effects[1]);
        }
        for at in 0..3 {
            replicas[at].on_timer(now_ns, &mut effects[at]);
        }
        settle(&mut replicas, now_ns, effects);
    }
    let roles = replicas.iter().map(|replica| replica.status());
    assert!(roles.clone().all(|status| status.term == Term(1)), "{:?}", roles.collect::<Vec<_>>());
    assert_eq!(replicas[0].status().role, Role::Leader);
    assert_eq!(replicas[1].status().role, Role::Follower { leader: Some(id(1)) });
}

#[test]
fn where_a_lost_link_counts_for_nothing_the_timeout_decides() {
    let settings = |at| Settings { fast_fail_over: false, ..Settings::new(1, id(at)) };
    let started = |at| Replica::start(0, settings(at), genesis(3), 1, &mut Vec::new()).unwrap();
    let mut replicas: Vec<Replica> = (1..=3).map(started).collect();
    let mut effects = vec![Vec::new(); 3];
    replicas[0].on_timer(301 * MS, &mut effects[0]);
    settle(&mut replicas, 301 * MS, effects);
    let mut effects = Vec::new();
    replicas[1].on_link_lost(302 * MS, id(1), &mut effects);
    assert_eq!(effects, []);
    assert_eq!(replicas[1].status().role, Role::Follower { leader: Some(id(1)) });
}

/// Of a replica that leads and two that follow, a second process begins under the id of the third.
#[test]
fn a_process_that_has_just_been_linked_promises_nothing_until_its_peers_could_meet_another_one() {
    let mut replicas = led();
    // On a copy of its disk.
    let hard_state = HardState { term: Term(1), vote: Some(id(1)), commit: Slot(0) };
    let opening = SlotEntry { slot: Slot(1), term: Term(1), body: Body::Empty };
    let copy = Recovered { hard_state, entries: vec![opening], ..genesis(3) };
    let (mut second, _) = start(3, copy.clone());
    second.on_linked(400 * MS, id(1));
    let mut effects = Vec::new();
    replicas[0].propose(pack(&[b"a"]), &mut effects).unwrap();
    replicas[0].on_timer(440 * MS, &mut effects);
    let of_leader: Vec<Vec<u8>> = sent(&effects).into_iter().filter(|(to, _)| *to == id(3)).map(|(_, bytes)| bytes).collect();
    assert!(of_leader.len() >= 2, "an append and a sign of life");
    // The other follower asks for its vote.
    let mut effects = Vec::new();
    replicas[1].on_link_lost(441 * MS, id(1), &mut effects);
    (442..470).for_each(|ms| replicas[1].on_timer(ms * MS, &mut effects));
    let of_candidate: Vec<Vec<u8>> = sent(&effects).into_iter().filter(|(to, _)| *to == id(3)).map(|(_, bytes)| bytes).collect();
    assert!(!of_candidate.is_empty(), "{effects:?}");
    second.on_linked(460 * MS, id(2));

    let mut effects = Vec::new();
    let hears = |second: &mut Replica, ms: u64, said: &[Vec<u8>], effects: &mut Vec<Effect>| {
        said.iter().for_each(|bytes| second.on_message(ms * MS, bytes.clone().into(), effects).unwrap());
    };
    // Its own timeouts pass meanwhile: nobody hears of that either.
    for ms in 400..650 {
        hears(&mut second, ms, &of_leader, &mut effects);
        second.on_timer(ms * MS, &mut effects);
    }
    hears(&mut second, 709, &of_candidate, &mut effects);
    assert_eq!((sent(&effects), tickets(&effects)), (vec![], vec![]));
    // One link is older than the other.
    hears(&mut second, 650, &of_leader, &mut effects);
    assert_eq!(second.status().role, Role::Follower { leader: Some(id(1)) });
    let appended = *tickets(&effects).last().expect("it takes what the leader appends");
    second.on_persisted(appended, &mut effects);
    let before = sent(&effects).len();
    assert!(before > 0, "and says so");
    // A link that is made again starts no probation.
    second.on_linked(651 * MS, id(1));
    hears(&mut second, 652, &of_leader, &mut effects);
    assert!(sent(&effects).len() > before);
    // If there cannot be two, there is no probation.
    let settings = Settings { probation_ns: 0, ..Settings::new(1, id(3)) };
    let mut alone = Replica::start(0, settings, copy, 1, &mut Vec::new()).unwrap();
    alone.on_linked(400 * MS, id(1));
    let mut effects = Vec::new();
    hears(&mut alone, 400, &of_leader, &mut effects);
    assert!(!tickets(&effects).is_empty());
}

/// A leader that has just been linked with a learner who lacks what is no longer kept.
#[test]
fn a_snapshot_that_was_held_back_during_probation_is_sent_later() {
    let of_one = Settings { retained_slots: 0, ..Settings::new(1, id(1)) };
    let leader = Replica::start(0, of_one, genesis(1), 1, &mut Vec::new()).unwrap();
    let mut replicas = vec![leader, start(2, genesis(1)).0];
    let with_leader = |replicas: &mut [Replica], ms: u64, act: &mut dyn FnMut(&mut Replica, &mut Vec<Effect>)| {
        let mut effects = vec![Vec::new(); 2];
        act(&mut replicas[0], &mut effects[0]);
        settle(replicas, ms * MS, effects).swap_remove(0)
    };
    with_leader(&mut replicas, 301, &mut |leader, effects| leader.on_timer(301 * MS, effects));
    with_leader(&mut replicas, 301, &mut |leader, effects| assert!(leader.propose(pack(&[b"a"]), effects).is_ok()));
    with_leader(&mut replicas, 301, &mut |leader, effects| {
        leader.on_snapshot_produced(leader.status().delivered, effects).unwrap();
        leader.change_members(&[MemberChange::AddLearner(id(2))], effects).unwrap();
    });
    let all = with_leader(&mut replicas, 340, &mut |leader, effects| leader.on_timer(340 * MS, effects));
    assert!(all.iter().any(|effect| matches!(effect, Effect::SnapshotWanted { .. })), "{all:?}");
    let is_sent = |effects: &[Effect]| effects.iter().any(|effect| matches!(effect, Effect::SendSnapshot { .. }));
    let all = with_leader(&mut replicas, 341, &mut |leader, effects| {
        leader.on_linked(341 * MS, id(2));
        leader.on_snapshot_produced(leader.status().delivered, effects).unwrap();
        leader.propose(pack(&[b"b"]), effects).unwrap();
    });
    assert!(!is_sent(&all), "{all:?}");
    let mut sent_ms = None;
    for ms in 342..700 {
        let all = with_leader(&mut replicas, ms, &mut |leader, effects| leader.on_timer(ms * MS, effects));
        sent_ms = sent_ms.or_else(|| is_sent(&all).then_some(ms));
    }
    assert!(sent_ms.is_some_and(|ms| (591..=630).contains(&ms)), "{sent_ms:?}");
}
