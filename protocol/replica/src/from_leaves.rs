//! What leaf gateways send ([`crate::leaf`]): it is taken as what participants here send is.

use bytes::Bytes;
use walras_consensus::ReplicaId;
use walras_fair_access::clock::ClockStatus;
use walras_fair_access::resequence::Stamp;
use walras_sequencer::{GatewayMessage, GatewayTime, NotTaken, RemoteOpening, SessionUse, behind_fingerprint, open_session};
use walras_types::{Ordinal, RejectReason, SessionId};
use walras_wire::order_entry::Role;
use walras_wire::{Command, OrderCommand, decode_command};

use crate::Origin;
use crate::effect::Effect;
use crate::entry_backend::{Backend, usage_in_force};
use crate::host::ReplicaHost;
use crate::leaf::LeafMessage;
use crate::order_entry::EntryBackend;
use crate::pending_cancels::all_of;
use crate::probe::Probe;
use crate::reads::Reader;
use crate::replica::{Replica, ReplicaDisk};

impl<P: Probe, D: ReplicaDisk> Replica<P, D> {
    /// A message of a leaf gateway, by its link. What is none counts for nothing.
    pub(crate) fn on_leaf_message(&mut self, at: GatewayTime, leaf: ReplicaId, bytes: &Bytes) {
        let Ok(message) = LeafMessage::decode(bytes) else { return };
        if let LeafMessage::Attach { epoch } = message {
            return self.ask_to_attach(leaf, epoch);
        }
        let ReplicaHost { leaves, reports, entry, effects, .. } = &mut self.host;
        if !leaves.is_attached(leaf) {
            return;
        }
        match message {
            LeafMessage::Gateway(GatewayMessage::Open { open, logon_seq, usage }) => {
                let has_copies = usage.has_copies();
                self.open_for_leaf(at, (RemoteOpening { gateway: leaf, open, logon_seq, has_copies }, usage));
            }
            LeafMessage::Gateway(GatewayMessage::Order { stamp, ordinal, content }) => {
                self.on_leaf_order((at, stamped(at, stamp)), leaf, ordinal, &content);
            }
            LeafMessage::Gateway(GatewayMessage::Behind { stamp, session, content }) => {
                self.cancel_behind_leaf((at, stamped(at, stamp)), leaf, session, &content);
            }
            LeafMessage::Gateway(GatewayMessage::Watermark { term, until }) => leaves.show(leaf, term.0, until),
            LeafMessage::Begin(begin) => {
                let past = (self.sequencer.engine(), &*reports);
                leaves.begin(leaf, begin, past, (at.now_ns, &mut entry.resends), effects);
            }
            LeafMessage::Leave { session } => leaves.leave(leaf, session),
            LeafMessage::List => leaves.list(leaf, self.sequencer.engine(), effects),
            LeafMessage::Names => leaves.name(leaf, self.sequencer.engine(), effects),
            LeafMessage::Gateway(_) | LeafMessage::Attach { .. } => {}
            LeafMessage::Attached { .. } | LeafMessage::Detached { .. } | LeafMessage::Begun { .. } => {}
            LeafMessage::NotBegun { .. } | LeafMessage::Answered { .. } | LeafMessage::Opened { .. } => {}
            LeafMessage::Reported { .. } | LeafMessage::Cancelled { .. } | LeafMessage::Busy => {}
            LeafMessage::Asset(_) | LeafMessage::Instrument(_) | LeafMessage::Listed | LeafMessage::Published(_) => {}
            LeafMessage::Version(_) => {}
        }
    }

    /// A leaf begins here once the state has all that was acknowledged anywhere: another replica may have answered its participants.
    fn ask_to_attach(&mut self, leaf: ReplicaId, epoch: u64) {
        let (leads, is_alone) = (self.sequencer.is_leading(), self.is_alone());
        let is_refusing = self.is_refusing();
        let ReplicaHost { leaves, reads, fair, effects, leader, me, .. } = &mut self.host;
        leaves.ask(leaf, epoch);
        if fair.is_none() && !leads {
            leaves.detach(leaf, leader.filter(|leader| leader != me), effects);
        } else if is_refusing && !is_alone {
            leaves.detach(leaf, None, effects);
        } else {
            reads.wait(Reader::Leaf(leaf, epoch));
        }
    }

    fn open_for_leaf(&mut self, at: GatewayTime, (opening, usage): (RemoteOpening, SessionUse)) {
        let Self { sequencer, host, .. } = self;
        let ReplicaHost { leaves, fair, effects, leader, .. } = host;
        let usage = usage_in_force(sequencer.engine().version(), usage);
        let RemoteOpening { gateway: leaf, open, logon_seq, .. } = opening;
        let refuse = |effects: &mut Vec<Effect>, reason| {
            let message = LeafMessage::Gateway(GatewayMessage::NotOpened { open, reason });
            effects.push(Effect::Send { to: leaf, bytes: message.encode() });
        };
        if let Some(fair) = fair {
            if let Some(reason) = fair.refusal() {
                return refuse(effects, reason);
            }
            leaves.wait(leaf, &open, logon_seq);
            return fair.open(at, open, logon_seq, usage);
        }
        match open_session(sequencer, at.now, (open, logon_seq, usage), Origin::OpensElsewhere(opening)) {
            Ok(()) => leaves.wait(leaf, &open, logon_seq),
            Err((NotTaken::Refused(reason), _)) => refuse(effects, reason),
            Err((NotTaken::NotLeader { .. }, _)) => leaves.detach(leaf, *leader, effects),
            // It has no number.
            Err((NotTaken::Repeated(_) | NotTaken::OnItsWay, _)) => {}
        }
    }

    fn on_leaf_order(&mut self, times: (GatewayTime, GatewayTime), leaf: ReplicaId, ordinal: Ordinal, content: &Bytes) {
        let Some(session) = self.host.leaves.session(leaf, ordinal.session) else {
            // It hears that a session is closed when it names it. Of any other one it would hear of no answer.
            if self.sequencer.engine().session(ordinal.session).is_some() {
                self.host.leaves.detach(leaf, None, &mut self.host.effects);
            }
            return;
        };
        // The leaf checked it for the role of its session; the engine checks whose account it names.
        let role = if session.account.is_some() { Role::Account } else { Role::Operator };
        let Some(command) = decode_command(content).ok().filter(|command| command.may_be_submitted_by(role)) else { return };
        let taken = self.with_backend(times, |backend| backend.submit(ordinal, &command, content, session.has_copies));
        let ReplicaHost { leaves, fair, effects, leader, .. } = &mut self.host;
        match taken {
            Ok(()) => {
                if let Some(fair) = fair {
                    let (came, at) = times;
                    fair.came(ordinal, at.stamp(), came.time_ns);
                }
            }
            Err(NotTaken::OnItsWay) => {}
            // The state remembers what came of it, not when.
            Err(NotTaken::Repeated(answer)) => leaves.answer(ordinal, answer, None, effects),
            Err(NotTaken::Refused(reason)) => leaves.refused(ordinal, reason, effects),
            Err(NotTaken::NotLeader { .. }) => leaves.detach(leaf, *leader, effects),
        }
    }

    fn cancel_behind_leaf(&mut self, (came, at): (GatewayTime, GatewayTime), leaf: ReplicaId, session: SessionId, content: &Bytes) {
        let Ok(Command::Order(OrderCommand::MassCancel(cancel))) = decode_command(content) else { return };
        if cancel != all_of(cancel.account) {
            return;
        }
        // Where nothing is passed on, what was not stamped is known by when it came.
        let stamp = if self.host.fair.is_some() { at.stamp() } else { Stamp::Gateway(at.time_ns) };
        self.host.leaves.cancel_behind(leaf, session, cancel.account, behind_fingerprint(session, stamp));
        if self.host.fair.is_some() {
            self.with_backend((came, at), |backend| backend.cancel_behind(Some(session), cancel.account));
        } else {
            self.host.cancels.wait(cancel.account, session, stamp);
        }
    }

    /// When it came, and as of its stamp.
    fn with_backend<R>(&mut self, (came, at): (GatewayTime, GatewayTime), act: impl FnOnce(&mut Backend<'_, P>) -> R) -> R {
        let Self { sequencer, host, .. } = self;
        let ReplicaHost { fair, cancels, leader_address, probe, .. } = host;
        act(&mut Backend { sequencer, fair: fair.as_deref_mut(), cancels, at, came, leader: leader_address, probe })
    }
}

impl<P: Probe, D: ReplicaDisk> ReplicaHost<P, D> {
    /// Without fair access: the log has opened a session for a leaf, or refused to. Without copies, those that have it lose it.
    pub(crate) fn opened_for_leaf(&mut self, opening: RemoteOpening, outcome: Result<SessionId, RejectReason>) {
        let RemoteOpening { open, logon_seq, has_copies, .. } = opening;
        let Self { leaves, entry, effects, .. } = self;
        if let (Ok(session), false) = (outcome, has_copies) {
            entry.replaced_before(session, logon_seq);
            leaves.replaced_before(session, logon_seq, effects);
        }
        leaves.opened(&open, outcome, effects);
    }
}

/// As of a leaf's stamp.
fn stamped(at: GatewayTime, stamp: Stamp) -> GatewayTime {
    match stamp {
        Stamp::Gateway(time_ns) => GatewayTime { time_ns, status: ClockStatus::Good, ..at },
        Stamp::OnArrival => GatewayTime { status: ClockStatus::Unknown, ..at },
    }
}
