//! The state machine's outputs: turns the library's ready work into effects, and holds back what must not leave before it is
//! durable.
//!
//! The library works asynchronously (`advance_append_async`): while one write is being synced, the next is collected. A leader's
//! messages leave at once, so that its followers sync in parallel with it. A follower's messages are promises, so they wait for its
//! disk.

use crate::durable::{Body, HardState, SlotEntry, SnapshotMeta, Write};
use crate::effect::{Committed, Effect, Role};
use crate::ids::{ReplicaId, Ticket};
use crate::members::{Members, changes_to_raft};
use crate::pack::Packed;
use crate::replica::Replica;
use crate::settings::Durability;
use crate::window::{entry_from_raft, hard_state_from_raft, snapshot_from_raft};
use crate::wire;
use raft::eraftpb::{Entry, Message};
use raft::{INVALID_ID, Ready, StateRole};

/// A unit of the library's work that completes once a write is durable.
pub(crate) struct Pending {
    /// The library's number for it.
    number: u64,
    /// The last write that it needs.
    ticket: Ticket,
    /// Whether it includes a term, a vote or a snapshot.
    has_promise: bool,
    /// Whether it waits for the disk at all.
    waits: bool,
    /// Messages to send once it is durable.
    messages: Vec<Message>,
}

impl Replica {
    /// Processes the library's output until there is none left.
    pub(crate) fn pump(&mut self, effects: &mut Vec<Effect>) {
        loop {
            self.release(effects);
            if !self.node.has_ready() {
                break;
            }
            let ready = self.node.ready();
            self.process(ready, effects);
        }
        self.note_role(effects);
        self.answer_reads(effects);
        if !self.node.mut_store().take_wanting().is_empty() {
            effects.push(Effect::SnapshotWanted { slot: self.delivered });
        }
    }

    fn process(&mut self, mut ready: Ready, effects: &mut Vec<Effect>) {
        let hard_state = hard_state_from_raft(&self.node.raft.hard_state());
        let installed = (!ready.snapshot().is_empty())
            .then(|| snapshot_from_raft(ready.snapshot()).expect("decoding checked it, or this crate made it"));
        let has_promise = (hard_state.term, hard_state.vote) != (self.promised.term, self.promised.vote) || installed.is_some();
        let entries = ready.take_entries();
        if let Some(meta) = &installed {
            self.install(meta.clone(), effects);
        }
        self.node.mut_store().append(&entries);
        // A commit index alone is not a promise: it is written with the next write.
        if has_promise || !entries.is_empty() {
            self.persist(hard_state, installed, &entries, effects);
        }
        let mut messages = ready.take_persisted_messages();
        let at_once = ready.take_messages();
        // A leader's messages need not wait for its entries, but must wait for its term: a sole voter is elected before its term is
        // durable.
        if has_promise || self.pending.iter().any(|pending| pending.has_promise && pending.ticket > self.durable) {
            messages.extend(at_once);
        } else {
            self.send(at_once, effects);
        }
        let committed = ready.take_committed_entries();
        for read in ready.take_read_states() {
            self.note_read(read.index, &read.request_ctx);
        }
        let waits = has_promise || self.settings.durability == Durability::Disk;
        self.pending.push_back(Pending { number: ready.number(), ticket: self.last_ticket, has_promise, waits, messages });
        self.node.advance_append_async(ready);
        self.deliver(&committed, effects);
    }

    fn persist(&mut self, hard_state: HardState, installed: Option<SnapshotMeta>, entries: &[Entry], effects: &mut Vec<Effect>) {
        let ticket = Ticket(self.last_ticket.0 + 1);
        self.last_ticket = ticket;
        self.promised = hard_state;
        if installed.is_some() {
            self.installing = Some(ticket);
        }
        let entries = entries.iter().map(entry_from_raft).collect();
        effects.push(Effect::Persist(Write { ticket, hard_state, installed, entries }));
    }

    /// Releases the work that became durable.
    fn release(&mut self, effects: &mut Vec<Effect>) {
        while self.pending.front().is_some_and(|pending| !pending.waits || pending.ticket <= self.durable)
            && let Some(pending) = self.pending.pop_front()
        {
            self.node.on_persist_ready(pending.number);
            if self.installing.is_some_and(|ticket| ticket <= self.durable) {
                self.installing = None;
            }
            self.send(pending.messages, effects);
            self.report_applied();
        }
    }

    fn send(&mut self, messages: Vec<Message>, effects: &mut Vec<Effect>) {
        for message in messages {
            let to = ReplicaId::new(message.to).expect("a member has an id");
            let snapshot = wire::announced_snapshot(&message);
            if self.is_on_probation_with(to, self.ticked_ns) {
                self.hold_back(to, snapshot.is_some());
                continue;
            }
            let bytes = wire::encode(self.settings.cluster_id, &message);
            effects.push(match snapshot {
                Some(snapshot) => Effect::SendSnapshot { to, snapshot, bytes },
                None => Effect::Send { to, bytes },
            });
        }
    }

    fn install(&mut self, meta: SnapshotMeta, effects: &mut Vec<Effect>) {
        self.node.mut_store().install(meta.clone());
        (self.delivered, self.log_index) = (meta.slot, meta.log_index);
        self.members = [(meta.slot, meta.members.clone())].into();
        self.marks = [(meta.slot, meta.log_index)].into();
        effects.push(Effect::Install(meta.clone()));
        effects.push(Effect::MembersChanged { slot: meta.slot, members: meta.members });
    }

    fn deliver(&mut self, committed: &[Entry], effects: &mut Vec<Effect>) {
        for raft in committed {
            let SlotEntry { slot, term, body } = entry_from_raft(raft);
            assert_eq!(slot, self.delivered.next(), "slots are delivered in order, each once");
            self.delivered = slot;
            match body {
                Body::Empty => {}
                Body::Pack(bytes) => {
                    let pack = Packed::decode(bytes).expect("checked when it came in");
                    let first = self.log_index.next();
                    self.log_index.0 += pack.len() as u64;
                    self.marks.push_back((slot, self.log_index));
                    effects.push(Effect::Committed(Committed { slot, term, first, pack }));
                }
                Body::Members(changes) => {
                    // A change that cannot be applied is applied by no replica, because all have the same members at this slot.
                    if let Ok(state) = self.node.apply_conf_change(&changes_to_raft(&changes)) {
                        let members = Members::from_raft(&state).expect("members have ids");
                        self.members.insert(slot, members.clone());
                        effects.push(Effect::MembersChanged { slot, members });
                        self.resign_unless_voter();
                    }
                }
            }
        }
        self.report_applied();
    }

    /// A leader that is no longer a voter steps down at once. The library leaves this to its user, and panics if a write of a
    /// leader that is not a member becomes durable.
    fn resign_unless_voter(&mut self) {
        let raft = &mut self.node.raft;
        if raft.state == StateRole::Leader && !raft.promotable() {
            let term = raft.term;
            raft.become_follower(term, INVALID_ID);
        }
    }

    /// Reports delivered slots to the library as applied, as far as they are durable here.
    fn report_applied(&mut self) {
        let log = &self.node.raft.raft_log;
        let applied = self.delivered.0.min(log.persisted).min(log.committed);
        if applied > log.applied {
            self.node.advance_apply_to(applied);
        }
    }

    fn note_role(&mut self, effects: &mut Vec<Effect>) {
        let now = self.role_now();
        if self.role != Some(now) {
            self.role = Some(now);
            effects.push(Effect::Role(now));
        }
        let leads = now.role == Role::Leader && self.node.raft.apply_to_current_term();
        if leads && self.leading != Some(now.term) {
            self.leading = Some(now.term);
            effects.push(Effect::Leading { term: now.term });
        }
    }

    fn answer_reads(&mut self, effects: &mut Vec<Effect>) {
        while let Some(&(slot, token)) = self.waiting_reads.first() {
            if slot > self.delivered {
                break;
            }
            self.waiting_reads.pop_first();
            effects.push(Effect::ReadReady { token });
        }
    }
}
