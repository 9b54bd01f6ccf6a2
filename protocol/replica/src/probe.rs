//! What may be observed of a replica while it runs.

use walras_consensus::{ReplicaId, RoleChange};
use walras_engine::Engine;
use walras_fair_access::publications::ReleaseTime;
use walras_feed::publisher::PublishError;
use walras_market_data::{AccountDelta, Inconsistency, MarketData};
use walras_sequencer::{AppliedEntry, FairAccess, GatewayTime, Timed};
use walras_types::{AccountId, LogIndex, Ordinal, RejectReason, SessionId};

use crate::Origin;
use crate::feed::FeedPiece;
use crate::state::Derived;

/// Observes a replica as it runs: feeds and measurements in production, checkers in a simulation. Its methods do nothing by
/// default, and what they do changes nothing here. It is called where the state is as each method says, which no effect could be:
/// the state has moved on when effects are carried out.
pub trait Probe {
    /// A session's command came in and was passed on.
    fn passed_on(&mut self, passed: &PassedOn<'_>) {
        let _ = passed;
    }

    /// A connection is lost whose orders are to be cancelled behind its session's commands.
    fn cancels_behind(&mut self, at: GatewayTime, session: SessionId) {
        let _ = (at, session);
    }

    /// A session's command that came in here was not taken.
    fn order_refused(&mut self, ordinal: Ordinal, reason: RejectReason) {
        let _ = (ordinal, reason);
    }

    /// This message leaves for a gateway, or several as one.
    fn sent_to_gateway(&mut self, to: ReplicaId, bytes: &[u8]) {
        let _ = (to, bytes);
    }

    /// Where this replica leads: of the orders that it held, those that were due went to the sequencer, which had made the entries
    /// up to `before` and has now made those up to `after`.
    fn released(&mut self, at: GatewayTime, before: LogIndex, after: LogIndex) {
        let _ = (at, before, after);
    }

    /// An order that is timed left the hold.
    fn timed(&mut self, timed: Timed) {
        let _ = timed;
    }

    /// Where this replica leads: what had collected was proposed. The last entry made has this place, unless it is not taken.
    fn proposed(&mut self, made: LogIndex) {
        let _ = made;
    }

    /// Another term, role or leader.
    fn role(&mut self, change: RoleChange) {
        let _ = change;
    }

    /// The entries of a pack are decided, and are applied next.
    fn decided(&mut self) {}

    /// An entry was applied, and market data has taken it. Sessions hear of it next.
    fn applied(&mut self, applied: &mut Applied<'_>) {
        let _ = applied;
    }

    /// An entry was applied at which this replica publishes market data, to be held until its release time. How long ago the entry
    /// was made, by the clock by which market data is released; `None` where that is not known.
    fn publish(&mut self, publication: Publication<'_>) -> Option<i64> {
        let _ = publication;
        None
    }

    /// Market data did not follow from what was before: a defect.
    fn inconsistent(&mut self, error: Inconsistency) {
        let _ = error;
    }

    /// What an entry publishes in the binary feed, from the first one on that the replica applies; `engine` has its state after it.
    fn feed(&mut self, engine: &Engine, piece: &FeedPiece) {
        let _ = (engine, piece);
    }

    /// The binary feed did not follow from what was before, and is published here no more: a defect.
    fn feed_stopped(&mut self, error: PublishError) {
        let _ = error;
    }

    /// The replica starts from this state. `known_from` is when all of it may be known, where market data is held.
    fn begun(&mut self, engine: &Engine, derived: &Derived, known_from: Option<ReleaseTime>) {
        let _ = (engine, derived, known_from);
    }

    /// The state was replaced by a later one. What the observer derives from entries begins again. `known_from` is as for
    /// [`begun`](Self::begun).
    fn installed(&mut self, engine: &Engine, derived: &Derived, known_from: Option<ReleaseTime>) {
        let _ = (engine, derived, known_from);
    }

    /// The state is about to be kept for a snapshot, while everything else stands still.
    fn freezes(&mut self) {}

    /// It is kept.
    fn frozen(&mut self) {}
}

/// A session's command that came in over a connection.
#[derive(Clone, Copy, Debug)]
pub struct PassedOn<'a> {
    /// When its bytes came, as it is stamped.
    pub at: GatewayTime,
    /// When it came here: later where a leaf gateway stamped it.
    pub came: GatewayTime,
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

/// An entry that was applied.
pub struct Applied<'a> {
    /// The state after it.
    pub engine: &'a Engine,
    /// What was derived from it. What changed since the last publication is taken from market data.
    pub derived: &'a mut Derived,
    /// The entry, and what came of it.
    pub entry: &'a AppliedEntry<'a, Origin>,
    /// What changed for which account.
    pub deltas: &'a [(AccountId, AccountDelta)],
    /// Fair access here, if it is switched on.
    pub fair: Option<&'a FairAccess<Origin>>,
    /// From when on the state after it may be known, where market data is held.
    pub known_from: Option<ReleaseTime>,
}

/// A point at which all replicas publish market data.
pub struct Publication<'a> {
    /// The state to publish.
    pub engine: &'a Engine,
    /// The same; what changed since the last publication is taken from it.
    pub market: &'a mut MarketData,
    /// How far the clock that stamped the entry was ahead of the venue's time.
    pub ahead_ns: Option<i64>,
    /// From when on it may be known.
    pub known_from: ReleaseTime,
}
