//! The gateway's access control: who keeps a connection, who asks, whether they may, how often; and the exact decimals that people write.
//!
//! A signed request passes, in this order: its source's throttle, its shape, its stamp against the clock, its signature, its key's
//! permission, the memory of nonces, its key's throttle. What comes before the signature costs little and changes nothing that belongs to
//! a key, so nobody can use up another's allowance or nonces; what refuses has changed nothing but the source's throttle, so the same
//! request may be sent again.
//!
//! *Deliberately absent*: HTTP, WebSocket, JSON and key files (they are `edge/`'s: here are plain structs), clocks and randomness (time
//! and entropy are arguments).
//!
//! *Invariants*
//! - A request is taken at most once: a (key, nonce) is remembered for as long as its stamp is acceptable, and where there is no room
//!   to remember it the request is refused, never forgotten. A restart forgets
//!   the nonces; [`GatewayConfig::following`] refuses every stamp that may have come with one of them.
//! - Time never goes back in here: an earlier `now_ns` than before counts as the latest seen.
//! - Signatures and secrets are compared in constant time; secrets are wiped when dropped and never printed by `Debug`.
//! - Every table is bounded by [`limits`] or by the configuration.
//! - A decimal converts to ticks, lots or units exactly or not at all; what is printed parses back to the same number. No floats.
//!
//! *Start reading* at [`Gateway::authorize`], then [`InstrumentScale`]; order entry is in [`session`].
//!
//! *Sources*: RFC 8032 (Ed25519), RFC 2104 and RFC 4231 (HMAC-SHA256 and its test vectors), RFC 4648 section 5 (base64url).
#![deny(clippy::float_arithmetic)]

mod admission;
mod decimal;
mod gate;
mod key;
mod key_id;
mod key_sharing;
pub mod limits;
mod nonce;
mod scale;
pub mod session;
mod signing;
mod throttle;

pub use admission::{Admission, Admitted, ConnectionNumber, Leaves, Places, Standing};
pub use decimal::Decimal;
pub use gate::{Allowance, Gateway, GatewayConfig, Principal, Refusal, SourceId, Verified};
pub use key::{Algorithm, ClientKey, Credential, KeyError, KeyRecord, Permission, Permissions};
pub use key_id::KeyId;
pub use key_sharing::{KeyJournal, KeyLinks, KeysLacking, NewKeys};
pub use nonce::generate_nonce;
pub use scale::{AssetScale, InstrumentScale, Quantity, QuantityError, ScaleError};
pub use signing::{AuthFields, Request, signed_bytes};
pub use throttle::{Denied, Rate, TokenBucket};
