//! The gateway's access control (connections, authentication, permissions, throttles) and the exact decimals of requests.
//!
//! The checks of a signed request, in order: its source's throttle, its format, its stamp against the clock, its signature, its
//! key's permission, its nonce, its key's throttle. The checks before the signature are cheap and change no state of a key, so
//! nobody can use up another participant's allowance or nonces. A refused request has changed nothing but its source's throttle, so
//! it may be sent again unchanged.
//!
//! *Deliberately absent*: HTTP, WebSocket, JSON and key files (in `edge/`; this crate has plain structs), clocks and randomness
//! (time and entropy are arguments).
//!
//! *Invariants*
//! - A request is accepted at most once: its (key, nonce) is remembered for as long as its stamp is acceptable. If there is no room
//!   to remember it, the request is refused. A restart loses the nonces; [`GatewayConfig::following`] refuses every stamp that may
//!   have come with one of them.
//! - Time never goes back: an earlier `now_ns` than before counts as the latest seen.
//! - Signatures and secrets are compared in constant time; secrets are wiped when dropped and never printed by `Debug`.
//! - Every table is bounded by [`limits`] or by the configuration.
//! - A decimal converts to ticks, lots or units exactly or not at all; printed numbers parse back to the same value. No floats.
//!
//! *Start reading* at [`Gateway::authorize`], then [`InstrumentScale`]; order entry is in [`session`].
//!
//! *Sources*: RFC 8032 (Ed25519), RFC 2104 and RFC 4231 (HMAC-SHA256 and its test vectors), RFC 8017 (RSA), RFC 4648 section 5 (base64url).
#![deny(clippy::float_arithmetic)]

mod admission;
mod client_order;
mod decimal;
mod gate;
mod key;
mod key_id;
mod key_sharing;
pub mod limits;
mod nonce;
mod rsa;
mod scale;
pub mod session;
mod signing;
mod throttle;

pub use admission::{Admission, Admitted, ConnectionNumber, Leaves, NoPlace, Places, Standing};
pub use client_order::{ClientOrder, NoClientOrder};
pub use decimal::Decimal;
pub use gate::{Allowance, Gateway, GatewayConfig, Principal, Refusal, SignedText, SourceId, Verified, Verifier};
pub use key::{Algorithm, ClientKey, Credential, KeyError, KeyRecord, Permission, Permissions};
pub use key_id::KeyId;
pub use key_sharing::{KeyJournal, KeyLinks, KeysLacking, NewKeys};
pub use nonce::generate_nonce;
pub use scale::{AssetScale, InstrumentScale, Quantity, QuantityError, ScaleError};
pub use signing::{AuthFields, Request, signed_bytes};
pub use throttle::{Denied, Rate, Throttle, TokenBucket};
