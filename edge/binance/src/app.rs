//! What every request of the facade needs.

use std::ops::Deref;
use std::sync::Arc;

use walras_access::Access;
use walras_config::Config;
use walras_ports::VenueHandle;
use walras_types::{AccountId, TimeNs};

use crate::error::{Asked, Error, without_outcome};
use crate::listen_keys::ListenKeys;
use crate::names::{Names, SharedNames};
use crate::past_pages::PastPages;
use crate::streams::HubHandle;
use crate::values::ms;
use crate::weights::Weights;

/// What every request needs. Clones share it: a request is given several.
#[derive(Clone, Debug)]
pub struct App(Arc<AppParts>);

/// What an [`App`] gives.
#[derive(Debug)]
pub struct AppParts {
    /// The market.
    pub venue: VenueHandle,
    /// Who may do what.
    pub access: Arc<Access>,
    /// Limits.
    pub config: Arc<Config>,
    /// Where readers of streams are served.
    pub readers: tokio::runtime::Handle,
    /// Tells connections that the server stops.
    pub stopping: tokio::sync::watch::Receiver<bool>,
    names: SharedNames,
    weights: Weights,
    listen_keys: ListenKeys,
    past_pages: PastPages,
    hub: HubHandle,
}

impl Deref for App {
    type Target = AppParts;

    fn deref(&self) -> &AppParts {
        &self.0
    }
}

impl App {
    /// A facade of a venue.
    #[must_use]
    pub fn new(
        venue: VenueHandle,
        access: Arc<Access>,
        config: Arc<Config>,
        readers: tokio::runtime::Handle,
        stopping: tokio::sync::watch::Receiver<bool>,
    ) -> Self {
        Self(Arc::new(AppParts {
            names: SharedNames::default(),
            weights: Weights::new(config.throttle.rates()),
            listen_keys: ListenKeys::default(),
            past_pages: PastPages::default(),
            hub: HubHandle::default(),
            venue,
            access,
            config,
            readers,
            stopping,
        }))
    }

    /// Symbols of the dialect, as of now.
    pub(crate) fn names(&self) -> Arc<Names> {
        self.0.names.of(self.venue.catalog())
    }

    pub(crate) fn weights(&self) -> &Weights {
        &self.0.weights
    }

    pub(crate) fn listen_keys(&self) -> &ListenKeys {
        &self.0.listen_keys
    }

    pub(crate) fn past_pages(&self) -> &PastPages {
        &self.0.past_pages
    }

    pub(crate) fn hub(&self) -> &HubHandle {
        &self.0.hub
    }

    /// Runs what takes several commands to its end, also where the request that asked for it ends before.
    pub(crate) async fn run_whole<T: Send + 'static>(
        &self,
        account: AccountId,
        request: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T, Error> {
        self.venue.run_whole(Some(account), request).await.unwrap_or_else(|why| Err(without_outcome(Asked::Order, why)))
    }

    pub(crate) fn now(&self) -> TimeNs {
        self.venue.clock().now()
    }

    pub(crate) fn now_ms(&self) -> u64 {
        ms(self.now())
    }
}
