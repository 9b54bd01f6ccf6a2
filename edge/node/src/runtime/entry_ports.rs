//! The ports of order entry, binary and FIX, as the configuration has them.

use std::net::SocketAddr;
use std::ops::Range;
use std::path::Path;

use mio::Registry;
use tracing::info;
use walras_access::connections::Doors;
use walras_config::{EntryOptions, EntryTlsOptions, FixOptions};
use walras_entry_port::{EntrySockets, EntryTls, EntryTlsError, PortKind, SharedAccess};
use walras_ports::Doorbell;
use walras_wire::order_entry::Sealing;

use super::RecoveryError;

/// The ports, open.
pub(super) struct EntryPorts {
    pub(super) sockets: EntrySockets,
    /// What those show that speak TLS.
    pub(super) shown: Option<EntryTls>,
    /// Whether binary order entry seals what it sends.
    pub(super) sealing: Sealing,
}

/// The certificate that order entry shows, where it speaks TLS.
pub(super) fn entry_tls(options: &EntryTlsOptions, data: &Path, listen: SocketAddr) -> Result<Option<EntryTls>, EntryTlsError> {
    let made = match options {
        EntryTlsOptions::Off => return Ok(None),
        EntryTlsOptions::Own => EntryTls::own(data, listen.ip()),
        EntryTlsOptions::Files { certificate, private_key } => EntryTls::load(certificate, private_key),
    };
    let tls = made?;
    info!("order entry speaks TLS; its clients need {}, or its authority's certificate", tls.certificate().display());
    Ok(Some(tls))
}

/// Opens them.
pub(super) fn open(
    (registry, tokens): (&Registry, Range<usize>),
    (binary, fix): (Option<&EntryOptions>, Option<&FixOptions>),
    data: &Path,
    access: SharedAccess,
    inside: (Doors, Doorbell),
) -> Result<EntryPorts, RecoveryError> {
    let refused = |error: EntryTlsError| RecoveryError::Replica(error.to_string());
    let mut sockets = EntrySockets::new(registry, tokens, access, inside).map_err(RecoveryError::Thread)?;
    let (mut shown, mut sealing) = (None, Sealing::Required);
    let ports = [(PortKind::Binary, "order_entry.listen", binary), (PortKind::Fix, "fix.listen", fix.map(|fix| &fix.port))];
    for (kind, key, options) in ports {
        let Some(EntryOptions { listen, tls }) = options else { continue };
        let tls = match (&shown, tls) {
            (_, EntryTlsOptions::Off) => None,
            (Some(shown), _) => Some(EntryTls::clone(shown)),
            (None, tls) => entry_tls(tls, data, *listen).map_err(refused)?,
        };
        if kind == PortKind::Binary && tls.is_some() {
            sealing = Sealing::Off;
        }
        shown = shown.or_else(|| tls.clone());
        sockets.listen(kind, *listen, tls).map_err(|e| {
            let advice = format!("order entry can not listen on {listen}: {e}; choose another address for {key}, or \"\" for none");
            RecoveryError::Replica(advice)
        })?;
    }
    Ok(EntryPorts { sockets, shown, sealing })
}
