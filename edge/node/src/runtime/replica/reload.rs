//! Other replicas that come while this one runs: what the configuration says when it is read again.

use std::collections::BTreeMap;
use std::sync::Arc;

use tracing::{info, warn};
use walras_config::{Addresses, Config, ConfigError, EntryOptions, EntryTlsOptions, LinkOptions};
use walras_consensus::{Members, ReplicaId};
use walras_entry_port::{EntryTls, EntryTlsError};
use walras_log_store::Disk;
use walras_ports::{ClusterRequest, ClusterStatus, PeerView};

use super::ReplicaThread;
use super::start::ReplicaVenue;
use crate::runtime::entry_ports::entry_tls;

/// Why a configuration was not taken over. Nothing was changed then, but for [`ReloadError::Links`].
#[derive(Debug, thiserror::Error)]
pub enum ReloadError {
    /// It is none.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// It is of another replica, or of another cluster.
    #[error("it is of replica {replica} of cluster {cluster_id}, and this process is another one: restart it instead")]
    OtherReplica {
        /// Which.
        replica: ReplicaId,
        /// Of which cluster.
        cluster_id: u64,
    },
    /// With whom the cluster began never changes.
    #[error("its cluster.genesis is {wanted:?}, and this cluster began with {began:?}: set cluster.genesis = {began:?}")]
    OtherGenesis {
        /// As it is.
        began: Vec<u64>,
        /// As it was written.
        wanted: Vec<u64>,
    },
    /// A member would not be reached any more.
    #[error("its cluster.peers leaves out replica {0}, a member of the cluster: remove that first (walras cluster remove {0})")]
    Member(ReplicaId),
    /// What order entry shall show.
    #[error(transparent)]
    EntryTls(#[from] EntryTlsError),
    /// The links could not be made. With other keys on the same port the old ones are closed by then.
    #[error("{0}")]
    Links(String),
}

/// What the configuration says of each replica, for people.
pub(super) fn peer_views(addresses: &BTreeMap<ReplicaId, Addresses>, links: Option<&LinkOptions>) -> BTreeMap<ReplicaId, PeerView> {
    let link = |id: &ReplicaId| links.and_then(|links| links.peers.get(id)).map_or_else(String::new, ToString::to_string);
    let view = |(id, addresses): (&ReplicaId, &Addresses)| {
        (*id, PeerView { link: link(id), addresses: addresses.clone(), ..PeerView::default() })
    };
    addresses.iter().map(view).collect()
}

/// Where each takes binary orders.
pub(super) fn order_entries(addresses: &BTreeMap<ReplicaId, Addresses>) -> BTreeMap<ReplicaId, Arc<str>> {
    addresses.iter().map(|(id, addresses)| (*id, addresses.order_entry.as_str().into())).collect()
}

impl ReplicaVenue {
    /// Takes over what a configuration that was read again says of the other replicas: who they are, where they and this one's links
    /// are, and the keys; and reads the certificate of order entry again. `before` is the one that is in force.
    ///
    /// # Errors
    /// It says what can not be; nothing was changed.
    pub async fn reload(&self, before: &Config, config: &Config) -> Result<(), ReloadError> {
        config.check()?;
        let options = config.cluster_options()?;
        let cluster = self.cluster();
        let (replica, cluster_id) = (options.consensus.id, options.consensus.cluster_id);
        if (replica, cluster_id) != (cluster.me(), cluster.view().cluster_id) {
            return Err(ReloadError::OtherReplica { replica, cluster_id });
        }
        if options.genesis != self.genesis {
            let ids = |members: &Members| members.voters.iter().map(|id| id.get()).collect();
            return Err(ReloadError::OtherGenesis { began: ids(&self.genesis), wanted: ids(&options.genesis) });
        }
        refuse_lost_member(cluster, &options.addresses)?;
        let fix = [options.fix.as_ref(), options.fix_market_data.as_ref()].map(|fix| fix.map(|fix| &fix.port));
        let ports = [options.order_entry.as_ref(), fix[0], fix[1]];
        let renewed = self.read_entry_tls(ports.into_iter().flatten().find(|port| port.tls != EntryTlsOptions::Off))?;
        let asked = ClusterRequest::Peers(options.addresses, options.links);
        let stopping = || ReloadError::Links("the venue is stopping".to_owned());
        self.handle().ask_cluster(asked).await.map_err(|_| stopping())?.map_err(ReloadError::Links)?;
        if let (Some(shown), Some(renewed)) = (&self.entry_tls, &renewed) {
            shown.renew(renewed);
        }
        let ids: Vec<String> = cluster.view().peers.keys().map(ToString::to_string).collect();
        info!("the configuration was read again: the replicas are {}", ids.join(", "));
        let later = before.sections_that_need_a_restart(config);
        if !later.is_empty() {
            warn!("what changed in the sections {} of the configuration counts after a restart", later.join(", "));
        }
        Ok(())
    }

    /// The certificate that order entry shows from now on, if it speaks TLS already.
    fn read_entry_tls(&self, options: Option<&EntryOptions>) -> Result<Option<EntryTls>, EntryTlsError> {
        let (Some(_), Some(EntryOptions { listen, tls })) = (&self.entry_tls, options) else { return Ok(None) };
        entry_tls(tls, &self.data, *listen)
    }
}

fn refuse_lost_member(cluster: &ClusterStatus, addresses: &BTreeMap<ReplicaId, Addresses>) -> Result<(), ReloadError> {
    let members = cluster.view().members;
    let lost = members.voters.union(&members.learners).find(|id| !addresses.contains_key(id));
    lost.map_or(Ok(()), |id| Err(ReloadError::Member(*id)))
}

impl<D: Disk> ReplicaThread<D> {
    /// These are the replicas from now on.
    pub(super) fn set_peers(
        &mut self,
        addresses: BTreeMap<ReplicaId, Addresses>,
        links: Option<LinkOptions>,
    ) -> Result<(), String> {
        let (views, order_entries) = (peer_views(&addresses, links.as_ref()), order_entries(&addresses));
        let (me, now_ns) = (self.cluster.me(), self.now_ns);
        let gateways = links.as_ref().map(|links| links.gateways.clone()).unwrap_or_default();
        self.links.change(links, now_ns, &mut self.link_events).map_err(|e| e.to_string())?;
        self.cluster.set_peers(views);
        let others = addresses.into_keys().filter(|id| *id != me).collect();
        let at = self.at();
        self.replica.set_peers(at, others, order_entries);
        self.cluster.set_leaves(&gateways);
        self.replica.set_leaves(gateways);
        Ok(())
    }
}
