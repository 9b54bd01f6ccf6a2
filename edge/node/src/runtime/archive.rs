//! The archive that runs with a replica: opened before the replay, recorded to with every entry, ended after the last.

use tracing::{error, info};
use walras_archive::{Files, Refill, Service, Status};
use walras_config::Config;
use walras_engine::Engine;

/// The archive that the configuration asks for. One that can not be opened does not keep a venue from starting.
pub(super) struct Opened {
    /// It runs.
    pub(super) service: Option<Service>,
    /// What it says of itself; `None` where none is asked for.
    pub(super) status: Option<Status>,
}

pub(super) fn open(config: &Config, refill: Refill) -> Opened {
    let Some(settings) = config.archive.settings() else { return Opened { service: None, status: None } };
    match Service::start(settings.clone(), Files::default(), Some(refill)) {
        Ok(service) => {
            info!("the archive in {} has the log to entry {}", settings.folder.display(), service.durable());
            Opened { status: Some(service.status()), service: Some(service) }
        }
        Err(e) => {
            error!("the venue runs without its archive: {e}");
            Opened { service: None, status: Some(Status::of_trouble(&settings.folder, &e)) }
        }
    }
}

/// Says so where an archive has more than the log, which it can not have of this log.
pub(super) fn compare(service: Option<&Service>, engine: &Engine) {
    let (Some(durable), last) = (service.map(Service::durable), engine.last_applied()) else { return };
    if durable > last {
        error!(
            "the archive has entries to {durable}, and the log ends with {last}: what comes until then is not archived; if the log was restored from \
             a backup, give the archive another folder"
        );
    }
}

/// Ends it, once nobody records any more.
pub(super) fn stop(service: Option<Service>) {
    if let Some(service) = service {
        service.stop();
    }
}
