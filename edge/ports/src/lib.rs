//! The venue as those see it who serve it to others: commands in, their outcomes, reads of the state, feeds, and figures about
//! itself.
//!
//! The API, the demo and the transfer relays between shards hold a [`VenueHandle`]. What runs the venue (`edge/node/src/runtime`)
//! takes [`Inbound`] and [`Request`] from its queues, and publishes through a [`Feed`]. So the two sides know this crate and not
//! each other.
//!
//! *Deliberately absent*: HTTP and JSON (`edge/api`); the threads that order, log and apply (`edge/node`).
//!
//! *Invariants*
//! - A visit to the state is bounded, whatever is in it (`visits.rs`), and a round of the thread that applies commands has few. A look from
//!   which a command follows counts as that command.
//! - Every queue is bounded. A full one refuses or drops the slow reader; it never grows and never stops the market.
//! - What is public is given out at its release time, not before.
//! - A publication is encoded once, however many connections it goes to.
//! - A request of several commands runs to its end, also where its client is gone (`whole.rs`).
//!
//! *Start reading* at [`VenueHandle`], then [`Push`] and [`Feed`].

mod account;
mod account_fee;
mod batches;
mod catalog;
mod cluster;
mod doorbell;
mod feed;
mod handle;
mod numbered;
mod outcome;
mod pages;
mod records;
mod release_source;
mod request;
mod rounds;
mod shards;
mod signatures;
mod stages;
mod status;
mod visits;
mod whole;

pub use account::{AccountPart, AccountPush, AccountWatch, OrderUpdate, balances};
pub use account_fee::fee_in_units;
pub use batches::{
    BatchLook, BatchPush, DemandCurve, PRICE_DIGITS, TransactionStage, batch_look, demand_curve, float, significant,
    transaction_outcome, transaction_outcomes, whole,
};
pub use catalog::{AssetScale, BatchName, Catalog, InstrumentScale, SharedCatalog, batch_name};
pub use cluster::{
    ClusterStatus, ClusterView, FairAccessView, FairTime, LeafView, NodeFigures, PeerView, RecallFigures, RelayOut, TreeView,
};
pub use doorbell::Doorbell;
pub use feed::{
    BookPush, ConnectionId, Feed, HoldStatus, HoldView, Indicatives, InstrumentsPush, ListedInstrument, OrdersPush, Publication,
    Push, Shared, ShownOrders, Subscription, TOP_LEVELS, TickerPush, shown_orders, ticker,
};
pub use handle::{VenueHandle, VenueParts};
pub use numbered::{Asker, NumberedReply};
pub use outcome::{Answer, Reply};
pub use records::{ForwardRecords, KnownOrder, OrderKey, RecordFilter, RecordsPage, known_order, open_order};
pub use release_source::ReleaseSource;
pub use request::{ClusterRequest, CommandOrLook, Inbound, Look, Queues, Request, View};
pub use rounds::{RoundOfVisits, VISITS_PER_ROUND};
pub use shards::{RelayHandle, RelayReport, Shards, TRANSFERS_AT_ONCE};
pub use signatures::{Changes, KeyRing, Signatures, Verdicts};
pub use stages::{QUANTILES, RECENT, Stage, StageView, Stages, TIMED_ONE_OF};
pub use status::{DemoStatus, Progress, Status};
pub use visits::{
    INSTRUMENTS_PER_VISIT, ListedOrder, NoCursor, OFFERS_PER_VISIT, ORDERS_PER_VISIT, OrderCursor, instruments_from, is_position,
    offers_from, orders_from,
};
pub use walras_replica::{Kept, NoOutcome, Number, NumberedOutcome, OrderWait, OrderWaits, Outcome, Storage};
pub use whole::{WHOLE_MAX, WHOLE_PER_ACCOUNT_MAX, WholeRequests};
