//! Places for connections of clients.

use tracing::{info, warn};
use walras_access::connections::{Budget, CLIENTS_MIN};
use walras_gateway::Places;

/// As many places as are configured, or as the limit of open files leaves after this number for others. Says which. To be called once the
/// log, the links and the ports are open: what is left then is the clients'.
pub(crate) fn bounded(configured: Places, for_others: usize) -> Places {
    let (Budget { limit, clients }, wanted) = (Budget::now(), configured.total);
    let clients = clients.saturating_sub(for_others).max(CLIENTS_MIN);
    let places = Places::new(wanted.min(clients), configured.per_source).with_account_max(configured.per_account);
    let Places { total, per_source, .. } = places;
    match limit {
        Some(limit) if total < wanted => warn!(
            "at most {total} connections of clients at a time, {per_source} of one address: http.connections_max asks for {wanted}, but \
             this process may open {limit} files, and some are for the venue itself; raise the limit (ulimit -n, LimitNOFILE of systemd)"
        ),
        Some(limit) => info!(
            "at most {total} connections of clients at a time, {per_source} of one address; this process may open {limit} files"
        ),
        None => info!("at most {total} connections of clients at a time, {per_source} of one address"),
    }
    places
}
