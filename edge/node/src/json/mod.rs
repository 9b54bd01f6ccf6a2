//! JSON: what is read from requests and what is answered. Quantities are decimal text, exact; it stops here.

pub mod account_fee;
pub mod batches;
pub mod log_entry;
pub mod names;
pub mod once;
pub mod outcome;
pub mod requests;
mod scale;
pub mod strict;
pub mod views;

pub use requests::Refusal;
pub use scale::{AssetScale, BatchName, Catalog, InstrumentScale, SharedCatalog};
