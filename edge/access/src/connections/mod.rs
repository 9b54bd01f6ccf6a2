//! The connections of all ports together: their limit, who keeps one, and log lines about them.
//!
//! HTTP, WebSocket and order entry share one [`Doors`], because they share the process's descriptors. *Start reading* there; the
//! number of places is computed in `budget.rs`; [`walras_gateway::Admission`] decides which connection is closed for another.

mod budget;
mod doors;
mod lines;

use tracing::{info, warn};
use walras_peer_link::listener::ShortageNews;

pub use budget::{Budget, CLIENTS_MIN, CLOSING_MAX, prepare_descriptors};
pub use doors::{Door, Doors, Guest};
pub use lines::Kind;

/// Logs the start and the end of a shortage.
pub fn log_shortage(port: &str, news: ShortageNews) {
    match news {
        ShortageNews::Begun(why) => warn!(
            "{port}: connections cannot be accepted: {why}; they wait and are tried again; raise the limit of open files (ulimit -n) or \
             look for what holds so many"
        ),
        ShortageNews::Over(lasted) => info!("{port}: connections are accepted again, after {} s", lasted.as_secs()),
    }
}
