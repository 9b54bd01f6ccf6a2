//! What replicas are sent and what stands in their log: any bytes are refused or taken, and nobody panics.

use std::collections::VecDeque;

use walras_consensus::{DurableLog, Effect, Members, MemoryLog, Pack, Replica, ReplicaId, Settings, StepError};
use walras_sequencer::decode_entry;
use walras_types::LogIndex;

use crate::Choices;

const REPLICAS: u64 = 3;
const MS: u64 = 1_000_000;
const STEPS_MAX: usize = 400;

fn id(number: u64) -> ReplicaId {
    ReplicaId::new(number).expect("it counts from 1")
}

/// What decodes as an entry of the log encodes to the same bytes.
pub fn log_entry(bytes: &[u8]) {
    if let Ok(entry) = decode_entry(LogIndex(7), bytes) {
        let mut again = Vec::new();
        entry.encode(&mut again).expect("what decodes can be written");
        assert_eq!(again, bytes, "one encoding per value");
    }
}

struct Node {
    /// `None` when it has stopped: somebody told it what can not be.
    replica: Option<Replica>,
    log: MemoryLog,
}

/// Three replicas talk; some of what they say is changed on the way. Whatever it makes of them, none panics.
pub fn messages(bytes: &[u8]) {
    let mut c = Choices::of_bytes(bytes);
    let members = Members::of_voters((1..=REPLICAS).map(id));
    let mut effects = Vec::new();
    let mut network: VecDeque<(ReplicaId, Vec<u8>)> = VecDeque::new();
    let mut nodes: Vec<Node> = Vec::new();
    let mut now_ns = 0;
    for number in 1..=REPLICAS {
        let log = MemoryLog::new(members.clone());
        let Ok(recovered) = log.recover();
        let replica = Replica::start(0, Settings::new(1, id(number)), recovered, number, &mut effects);
        let replica = replica.expect("the settings are sound, and so is an empty log");
        nodes.push(Node { replica: Some(replica), log });
        follow(&mut nodes, number as usize - 1, &mut effects, &mut network);
    }
    for _ in 0..STEPS_MAX {
        let at = c.below(REPLICAS) as usize;
        match c.weighted(&[10, 4, 3, 2, 1]) {
            0 | 1 => {
                let Some((to, mut message)) = network.pop_front() else { continue };
                let to = to.get() as usize - 1;
                if c.one_in(4) && !message.is_empty() {
                    for _ in 0..1 + c.below(3) {
                        let place = c.below(message.len() as u64) as usize;
                        message[place] = c.byte();
                    }
                }
                let Some(replica) = &mut nodes[to].replica else { continue };
                match replica.on_message(now_ns, message.into(), &mut effects) {
                    Ok(()) | Err(StepError::Message(_)) => follow(&mut nodes, to, &mut effects, &mut network),
                    Err(StepError::LostSlots { .. } | StepError::TwoLeaders { .. }) => {
                        effects.clear();
                        nodes[to].replica = None;
                    }
                }
            }
            2 => {
                now_ns += (1 + c.below(400)) * MS;
                if let Some(replica) = &mut nodes[at].replica {
                    replica.on_timer(now_ns, &mut effects);
                }
                follow(&mut nodes, at, &mut effects, &mut network);
            }
            3 => {
                let mut pack = Pack::new();
                pack.push(&[at as u8]);
                if let Some(replica) = &mut nodes[at].replica {
                    // Whoever does not lead refuses.
                    let _ = replica.propose(pack, &mut effects);
                }
                follow(&mut nodes, at, &mut effects, &mut network);
            }
            _ => {
                let message = c.bytes(60);
                if let Some(replica) = &mut nodes[at].replica
                    && matches!(replica.on_message(now_ns, message.into(), &mut effects), Ok(()) | Err(StepError::Message(_)))
                {
                    follow(&mut nodes, at, &mut effects, &mut network);
                }
                effects.clear();
            }
        }
    }
}

/// Does what a replica asks: writes are durable at once.
fn follow(nodes: &mut [Node], at: usize, effects: &mut Vec<Effect>, network: &mut VecDeque<(ReplicaId, Vec<u8>)>) {
    while !effects.is_empty() {
        let mut persisted = None;
        for effect in std::mem::take(effects) {
            match effect {
                // It answers whoever says that it asked; the links know who is there.
                Effect::Send { to, bytes } if to.get() <= REPLICAS => network.push_back((to, bytes)),
                Effect::Persist(write) => {
                    persisted = Some(write.ticket);
                    let Ok(()) = nodes[at].log.write(write);
                }
                // Nobody has a state here, so a snapshot goes nowhere.
                _ => {}
            }
        }
        if let (Some(ticket), Some(replica)) = (persisted, &mut nodes[at].replica) {
            replica.on_persisted(ticket, effects);
        }
    }
}
