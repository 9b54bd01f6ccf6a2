//! What may be observed of a replica while it runs.

use walras_sequencer::GatewayTime;
use walras_types::{Ordinal, SessionId};

/// Observes a replica: measurements in production, checkers in a simulation. Its methods do nothing by default; it changes nothing.
pub trait Probe {
    /// A session's command came in and was passed on.
    fn passed_on(&mut self, passed: &PassedOn<'_>) {
        let _ = passed;
    }

    /// A connection is lost whose orders are to be cancelled behind its session's commands.
    fn cancels_behind(&mut self, at: GatewayTime, session: SessionId) {
        let _ = (at, session);
    }
}

/// A session's command that came in over a connection.
#[derive(Clone, Copy, Debug)]
pub struct PassedOn<'a> {
    /// When its bytes came.
    pub at: GatewayTime,
    /// Its number.
    pub ordinal: Ordinal,
    /// Its bytes.
    pub content: &'a [u8],
    /// Whether other connections of its session send it too.
    pub has_copies: bool,
    /// Where it went.
    pub route: Route,
}

/// Where a command goes from order entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// To the sequencer of this replica, which leads.
    Sequencer,
    /// Stamped, to the leader's hold: `leads` where that is this replica.
    Stamped {
        /// Whether this replica leads.
        leads: bool,
    },
}
