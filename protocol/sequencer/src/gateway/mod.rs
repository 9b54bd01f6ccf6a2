//! Fair access at every replica ([`FairAccess`]): it takes orders in, stamps them, and passes them on to the leader's
//! [`crate::Intake`].
//!
//! What is passed on is kept until the log answers it ([`Forwards`]): it is sent again, with its first stamp, to another leader,
//! after the link was lost, and when no answer comes. The answer itself needs no message: the gateway applies the entry like every
//! replica.

mod access;
mod arrival;
mod forwards;
mod message;
mod promise;

pub use access::{FairAccess, GatewayHost, GatewayTime, RemoteOpening, open_session};
pub use arrival::{ArrivalCounts, Arrivals, WAITED_NS_MAX};
pub use forwards::{ForwardCounts, ForwardSettings, Forwarded, Forwards, behind_fingerprint, behind_nonce, logon_nonce};
pub use message::{GatewayMessage, Pack, SessionUse};
pub use promise::Promise;
