//! Where a replica's own order entry hands commands: its sequencer, or fair access, which passes them on.

use walras_fair_access::resequence::Stamp;
use walras_sequencer::{FairAccess, GatewayTime, NotTaken, ReplicatedSequencer, SessionUse, open_session};
use walras_types::{AccountId, EngineVersion, Ordinal, SessionId};
use walras_wire::{Command, OpenSession};

use crate::Origin;
use crate::order_entry::{AskedSession, EntryBackend, Opens};
use crate::pending_cancels::{PendingCancels, all_of};
use crate::probe::{PassedOn, Probe, Route};

/// See the module's documentation.
pub(crate) struct Backend<'a, P> {
    /// The sequencer of this replica.
    pub(crate) sequencer: &'a mut ReplicatedSequencer<Origin>,
    /// Passes commands on to the leader; `None`: only a leader takes commands.
    pub(crate) fair: Option<&'a mut FairAccess<Origin>>,
    /// Keeps cancels on disconnect, where nothing is passed on.
    pub(crate) cancels: &'a mut PendingCancels,
    /// When the input came, as it is stamped.
    pub(crate) at: GatewayTime,
    /// When it came here: later than its stamp where a leaf gateway made that.
    pub(crate) came: GatewayTime,
    /// Where the leader takes orders, as far as it is known.
    pub(crate) leader: &'a str,
    /// Observes.
    pub(crate) probe: &'a mut P,
}

impl<P: Probe> EntryBackend for Backend<'_, P> {
    fn at(&self) -> GatewayTime {
        self.at
    }

    fn leader(&self) -> &str {
        self.leader
    }

    fn open(&mut self, asked: AskedSession) -> Opens {
        let AskedSession { stream, open, logon_seq, usage } = asked;
        let Self { sequencer, fair, at, .. } = self;
        let usage = usage_in_force(sequencer.engine().version(), usage);
        if let Some(fair) = fair {
            if let Some(reason) = fair.refusal() {
                return Opens::Not(NotTaken::Refused(reason));
            }
            fair.open(*at, open, logon_seq, usage);
            return Opens::Together;
        }
        match open_session(sequencer, at.now, (open, logon_seq, usage), Origin::Opens(stream)) {
            Ok(()) => Opens::Direct,
            Err((why, _)) => Opens::Not(why),
        }
    }

    fn give_up_opening(&mut self, open: OpenSession) {
        if let Some(fair) = &mut self.fair {
            fair.give_up_opening(open);
        }
    }

    fn submit(&mut self, ordinal: Ordinal, command: &Command, content: &[u8], has_copies: bool) -> Result<(), NotTaken> {
        let Self { sequencer, fair, at, came, probe, .. } = self;
        let route = match fair {
            Some(fair) => {
                fair.submit(*at, sequencer.engine(), ordinal, content)?;
                Route::Stamped { leads: sequencer.is_leading() }
            }
            None => {
                sequencer.submit(at.now, Some(ordinal), command, None).map_err(|(why, _)| why)?;
                Route::Sequencer
            }
        };
        probe.passed_on(&PassedOn { at: *at, came: *came, ordinal, content, has_copies, route });
        Ok(())
    }

    fn cancel_behind(&mut self, session: Option<SessionId>, account: AccountId) {
        match (&mut self.fair, session) {
            (Some(fair), Some(session)) => {
                fair.cancel_behind(self.at, session, all_of(account));
                self.probe.cancels_behind(self.came, session);
            }
            (_, session) => {
                self.cancels.wait(account, session.unwrap_or(SessionId(0)), Stamp::Gateway(self.at.now.0));
            }
        }
    }
}

/// How the log is asked for a session: programs that know no later version than 12 do not know a logon that is good once.
pub(crate) fn usage_in_force(version: EngineVersion, usage: SessionUse) -> SessionUse {
    let is_before = version < EngineVersion(13);
    if is_before && usage == SessionUse::AloneOnce { SessionUse::Alone } else { usage }
}
