//! Where a leaf's order entry hands commands: what is kept until the replica above has answered it.

use walras_sequencer::{Forwards, GatewayMessage, GatewayTime, NotTaken};
use walras_types::{AccountId, Ordinal, SessionId};
use walras_wire::{Command, OpenSession};

use crate::order_entry::{AskedSession, EntryBackend, Opens};
use crate::pending_cancels::all_of;

/// See the module's documentation.
pub(super) struct LeafBackend<'a> {
    pub(super) forwards: &'a mut Forwards,
    /// When the input came.
    pub(super) at: GatewayTime,
    /// For the replica above.
    pub(super) messages: &'a mut Vec<GatewayMessage>,
}

impl EntryBackend for LeafBackend<'_> {
    fn at(&self) -> GatewayTime {
        self.at
    }

    /// Every leaf takes orders, whoever leads.
    fn leader(&self) -> &str {
        ""
    }

    fn open(&mut self, asked: AskedSession) -> Opens {
        let AskedSession { open, logon_seq, usage, .. } = asked;
        self.messages.extend(self.forwards.open(self.at.now_ns, open, logon_seq, usage));
        Opens::Together
    }

    fn give_up_opening(&mut self, open: OpenSession) {
        self.forwards.give_up_opening(open);
    }

    fn submit(&mut self, ordinal: Ordinal, _: &Command, content: &[u8], _: bool) -> Result<(), NotTaken> {
        let message = self.forwards.order(self.at.now_ns, self.at.stamp(), ordinal, content).map_err(NotTaken::Refused)?;
        self.messages.extend(message);
        Ok(())
    }

    fn cancel_behind(&mut self, session: Option<SessionId>, account: AccountId) {
        // Without a session nothing was ordered here.
        let Some(session) = session else { return };
        let stamp = self.at.stamp();
        self.messages.extend(self.forwards.cancel_behind(self.at.now_ns, stamp, session, all_of(account)));
    }
}
