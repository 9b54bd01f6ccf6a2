//! The entry points of the fuzz targets: any bytes in, nothing out, a panic where something is wrong.
//!
//! What they check beside "no panic": what decodes encodes to the same bytes; what restores saves to the same bytes; two price
//! indices, and a naive book, do the same; every invariant holds after every command; what a log holds is what was written; a block that is
//! rejected leaves no trace.

pub mod batch;
pub mod books;
pub mod clearing;
pub mod engine;
pub mod feed;
pub mod fix;
pub mod gateway;
pub mod history;
pub mod log;
pub mod order_entry;
pub mod replicas;
pub mod wire;

/// A fuzz target: its name in `tools/fuzz`, and what it does with bytes.
pub type Target = (&'static str, fn(&[u8]));

/// Every fuzz target.
pub const TARGETS: &[Target] = &[
    ("wire_command", wire::command),
    ("wire_event", wire::event),
    ("engine_apply", engine::apply),
    ("engine_restore", engine::restore),
    ("market_data_restore", engine::market_data_restore),
    ("order_book", books::order_book),
    ("clearing_verify", clearing::verification),
    ("history_lobster", history::lobster),
    ("history_itch", history::itch),
    ("history_sse", history::sse),
    ("history_bitstamp_log", history::bitstamp_log),
    ("history_bitstamp_orders", history::bitstamp_orders),
    ("history_workload", history::workload),
    ("log_recovery", log::recovery),
    ("snapshot_store", log::snapshot_store),
    ("gateway_request", gateway::request),
    ("gateway_decimal", gateway::decimal),
    ("order_entry", order_entry::stream),
    ("reports", order_entry::reports),
    ("reports_restore", order_entry::reports_restore),
    ("feed_messages", feed::messages),
    ("feed_restore", feed::restore),
    ("replica_messages", replicas::messages),
    ("log_entry", replicas::log_entry),
    ("batch_transaction", wire::batch_transaction),
    ("block_proposal", wire::block_proposal),
    ("batch_proofs", batch::proofs),
    ("batch_restore", batch::restore),
    ("block_validation", batch::validation),
    ("history_expect", history::expect),
    ("history_archive", history::archive),
    ("fix_orders", fix::orders),
];
