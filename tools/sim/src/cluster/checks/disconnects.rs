//! A client that wants its orders cancelled with its connection has them cancelled: where the leader sees the connection end and
//! goes on leading, the log has the cancel before the client's account is back with another session. Without fair access; with it
//! the request is on its way through the hold, and the client may be back before.

use std::collections::BTreeMap;

use walras_consensus::{ReplicaId, Role};
use walras_types::{AccountId, LogIndex};
use walras_wire::{Command, MassCancel, OpenSession, OrderCommand, SessionCommand};

use crate::common::checks::replay::Replayed;
use crate::common::checks::{Checked, Violation};

/// By the account whose cancel is to come: the leader that saw its connection end, and the last entry that it had made by then.
#[derive(Debug, Default)]
pub(super) struct Disconnects {
    expected: BTreeMap<AccountId, (ReplicaId, LogIndex)>,
    seen: u64,
}

const CHECK: &str = "disconnect";

impl Disconnects {
    /// Cancels that came.
    pub(super) fn count(&self) -> u64 {
        self.seen
    }

    /// A leader, which has made entries up to `made`, sees the connection of such a client end.
    pub(super) fn on_lost(&mut self, leader: ReplicaId, account: AccountId, made: LogIndex) {
        self.expected.entry(account).or_insert((leader, made));
    }

    /// A replica begins: what it was to do is lost.
    pub(super) fn on_start(&mut self, replica: ReplicaId) {
        self.expected.retain(|_, (leader, _)| *leader != replica);
    }

    /// The role of a replica changes. Where another one leads, those before it may have ended, or make no entries, and not know it.
    pub(super) fn on_role(&mut self, replica: ReplicaId, role: Role) {
        match role {
            Role::Leader => self.expected.clear(),
            Role::Follower { .. } | Role::Candidate => self.on_start(replica),
        }
    }

    pub(super) fn on_entry(&mut self, replayed: &Replayed) -> Checked {
        let index = replayed.entry.log_index;
        match replayed.entry.content.command() {
            Some(Command::Order(OrderCommand::MassCancel(MassCancel { account, instrument: None, side: None })))
                if replayed.entry.ordinal.is_none() =>
            {
                self.seen += u64::from(self.expected.remove(account).is_some());
            }
            Some(Command::Session(SessionCommand::Open(OpenSession { account: Some(account), .. }))) => {
                let Some(&(leader, made)) = self.expected.get(account).filter(|(_, made)| *made < index) else { return Ok(()) };
                let detail = format!(
                    "entry {index} opens a session of account {account}, whose connection replica {leader} saw end after entry {made} and which wanted its orders cancelled then"
                );
                return Err(Violation::new(CHECK, detail));
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(index: u64, command: Command) -> Replayed {
        Replayed::plain(index, 1, command, Vec::new())
    }

    #[test]
    fn who_is_back_before_his_orders_were_cancelled_is_found() {
        let account = AccountId(1);
        let open = Command::Session(SessionCommand::Open(OpenSession { account: Some(account), token: 1 }));
        let cancel = Command::Order(OrderCommand::MassCancel(MassCancel { account, instrument: None, side: None }));
        let leader = ReplicaId::new(1).unwrap();
        let mut disconnects = Disconnects::default();
        disconnects.on_lost(leader, account, LogIndex(5));
        disconnects.on_entry(&entry(5, open)).unwrap();
        assert!(disconnects.on_entry(&entry(6, open)).is_err());
        disconnects.on_entry(&entry(7, cancel)).unwrap();
        disconnects.on_entry(&entry(8, open)).unwrap();
        assert_eq!(disconnects.count(), 1);
        disconnects.on_lost(leader, account, LogIndex(8));
        disconnects.on_start(leader);
        disconnects.on_entry(&entry(9, open)).unwrap();
        disconnects.on_lost(leader, account, LogIndex(9));
        disconnects.on_role(ReplicaId::new(2).unwrap(), Role::Leader);
        disconnects.on_entry(&entry(10, open)).unwrap();
    }
}
