//! The connections of all ports together: how many there may be, who keeps one, and what the log says of them.
//!
//! HTTP, WebSocket and order entry share one [`Doors`], because they share the process's descriptors. *Start reading* there; how
//! many places there are is in `budget.rs`, who leaves for whom in [`walras_gateway::Admission`].

mod budget;
mod doors;
mod lines;

use tracing::{info, warn};
use walras_peer_link::listener::ShortageNews;

pub use budget::{Budget, CLOSING_MAX, prepare_descriptors};
pub use doors::{Door, Doors, Guest};
pub use lines::Kind;

/// A line for the beginning of a shortage and one for its end.
pub fn tell_shortage(port: &str, news: ShortageNews) {
    match news {
        ShortageNews::Begun(why) => warn!(
            "{port}: connections cannot be accepted: {why}; they wait and are tried again; raise the limit of open files (ulimit -n) or \
             look for what holds so many"
        ),
        ShortageNews::Over(lasted) => info!("{port}: connections are accepted again, after {} s", lasted.as_secs()),
    }
}
