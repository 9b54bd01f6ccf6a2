//! What a replica of the campaign has in addition to HTTP, order entry and its links: FIX, the Binance dialect, the operators' port, a
//! batch market, and in a cluster a mesh of clocks.

use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::path::{Path, PathBuf};

use anyhow::Context;
use walras_clock_sync::mesh::MeshKey;

/// Name of the batch market in paths.
pub(crate) const BATCH_MARKET: &str = "main";
/// Between two of its batches.
const BATCH_INTERVAL_MS: i64 = 200;
/// From one exchange of probes to the next: half as often as usual, since the mesh shares its machine with everything else.
const MESH_INTERVAL_MS: i64 = 20;

/// Where a replica listens.
#[derive(Clone, Debug)]
pub(crate) struct MorePorts {
    pub(crate) fix: String,
    pub(crate) fix_data: String,
    pub(crate) facade: String,
    pub(crate) operator: String,
}

impl MorePorts {
    /// Ports that are free now, for each of so many processes: no two of them the same.
    pub(crate) fn free(processes: usize) -> anyhow::Result<Vec<Self>> {
        let listen = |_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no port is free");
        let listeners = (0..4 * processes).map(listen).collect::<anyhow::Result<Vec<_>>>()?;
        let address = |listener: &TcpListener| anyhow::Ok(listener.local_addr()?.to_string());
        let addresses = listeners.iter().map(address).collect::<anyhow::Result<Vec<_>>>()?;
        let of_one = |of: &[String]| {
            let [fix, fix_data, facade, operator] = <[String; 4]>::try_from(of.to_vec()).unwrap_or_default();
            Self { fix, fix_data, facade, operator }
        };
        Ok(addresses.chunks(4).map(of_one).collect())
    }

    /// Adds those of FIX to a configuration: a leaf gateway has no others of these.
    pub(crate) fn add_fix_to(&self, table: &mut toml::Table) {
        set(table, "fix", "listen", self.fix.as_str());
        set(table, "fix", "market_data_listen", self.fix_data.as_str());
    }

    /// Adds them to a configuration, and the batch market.
    pub(crate) fn add_to(&self, table: &mut toml::Table) {
        self.add_fix_to(table);
        set(table, "binance", "listen", self.facade.as_str());
        set(table, "http", "operator_listen", self.operator.as_str());
        let mut market = toml::Table::new();
        market.insert("name".to_owned(), BATCH_MARKET.into());
        market.insert("assets".to_owned(), vec!["USD", "BTC"].into());
        market.insert("interval_ms".to_owned(), BATCH_INTERVAL_MS.into());
        table.insert("batch".to_owned(), vec![toml::Value::from(market)].into());
    }

    /// Reads them from a configuration.
    pub(crate) fn of(table: &toml::Table) -> Option<Self> {
        let (fix, fix_data) = fix_of(table)?;
        Some(Self { fix, fix_data, facade: text(table, "binance", "listen")?, operator: text(table, "http", "operator_listen")? })
    }
}

/// Where FIX is in a configuration: orders, and market data.
pub(crate) fn fix_of(table: &toml::Table) -> Option<(String, String)> {
    Some((text(table, "fix", "listen")?, text(table, "fix", "market_data_listen")?))
}

fn text(table: &toml::Table, section: &str, key: &str) -> Option<String> {
    Some(table.get(section)?.get(key)?.as_str()?.to_owned())
}

/// A mesh that measures the replicas' clocks.
#[derive(Clone, Debug)]
pub(crate) struct Mesh {
    /// Where each node listens.
    pub(crate) nodes: Vec<String>,
    /// Its key, which outsiders do not have.
    pub(crate) key: MeshKey,
    file: PathBuf,
}

impl Mesh {
    /// Of so many nodes on ports that are free now; the key's file is in this folder.
    pub(crate) fn new(dir: &Path, count: usize) -> anyhow::Result<Self> {
        let (secret, file): ([u8; 32], _) = (walras_access::random_bytes(), dir.join("mesh.key"));
        std::fs::write(&file, secret).with_context(|| format!("writing {}", file.display()))?;
        let key = MeshKey::of_secret(&secret).map_err(anyhow::Error::msg)?;
        let sockets: Vec<UdpSocket> =
            (0..count).map(|_| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))).collect::<Result<_, _>>().context("no port is free")?;
        let nodes = sockets.iter().map(|socket| Ok(socket.local_addr()?.to_string())).collect::<anyhow::Result<_>>()?;
        Ok(Self { nodes, key, file })
    }

    /// Adds one of its nodes to a configuration.
    pub(crate) fn add_to(&self, table: &mut toml::Table, node: usize) {
        set(table, "clock", "source", "mesh");
        set(table, "clock", "mesh_nodes", self.nodes.clone());
        set(table, "clock", "mesh_node", i64::try_from(node).unwrap_or_default());
        set(table, "clock", "mesh_listen", self.nodes[node].as_str());
        set(table, "clock", "mesh_key", self.file.display().to_string());
        set(table, "clock", "mesh_interval_ms", MESH_INTERVAL_MS);
    }
}

fn set(table: &mut toml::Table, section: &str, key: &str, value: impl Into<toml::Value>) {
    let section = table.entry(section).or_insert_with(|| toml::Table::new().into());
    if let Some(section) = section.as_table_mut() {
        section.insert(key.to_owned(), value.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_added_to_a_configuration_is_read_from_it() {
        let mut table: toml::Table = "[http]\nlisten = \"127.0.0.1:0\"\n".parse().unwrap();
        let both = MorePorts::free(2).unwrap();
        let ports = &both[0];
        ports.add_to(&mut table);
        let dir = tempfile::tempdir().unwrap();
        let mesh = Mesh::new(dir.path(), 3).unwrap();
        mesh.add_to(&mut table, 2);
        let read: toml::Table = table.to_string().parse().unwrap();
        assert_eq!(read["http"]["listen"].as_str(), Some("127.0.0.1:0"), "what was there stays");
        assert_eq!(read["batch"][0]["name"].as_str(), Some(BATCH_MARKET));
        assert_eq!(read["clock"]["mesh_listen"].as_str(), Some(mesh.nodes[2].as_str()));
        let again = MorePorts::of(&read).unwrap();
        let all = |ports: &MorePorts| [&ports.fix, &ports.fix_data, &ports.facade, &ports.operator].map(String::clone);
        assert_eq!(all(&again), all(ports));
        let of_both: std::collections::BTreeSet<String> = both.iter().flat_map(all).collect();
        assert_eq!(of_both.len(), 8);
        let mut gateway = toml::Table::new();
        both[1].add_fix_to(&mut gateway);
        assert_eq!(fix_of(&gateway), Some((both[1].fix.clone(), both[1].fix_data.clone())));
        assert!(MorePorts::of(&gateway).is_none());
    }
}
