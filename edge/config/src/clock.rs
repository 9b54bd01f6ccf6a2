//! The `[clock]` section: parsed and checked for a clock source.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::Path;
use std::time::Duration;

use walras_clock_sync::chrony::ChronyOptions;
use walras_clock_sync::mesh::{MeshKey, MeshOptions};
use walras_clock_sync::phc::PhcOptions;
use walras_clock_sync::{ClockOptions, SourceOptions};
use walras_fair_access::mesh::NodeId;

use super::ConfigError;
use super::keys::Clock;

const US: u64 = 1_000;
const MS: u64 = 1_000_000;
/// A minute.
const BOUND_US_MAX: u64 = 60_000_000;
/// How long a clock must be within three quarters of its limit before it stamps again.
const GOOD_FOR_NS: u64 = 1_000_000_000;
const CHRONY_PATIENCE: Duration = Duration::from_millis(500);
const PHC_INTERVAL: Duration = Duration::from_millis(250);

fn wrong(key: &'static str, detail: impl Into<String>) -> ConfigError {
    ConfigError::Clock { key, detail: detail.into() }
}

/// Checks the section, without reading files or resolving names.
pub(super) fn check(clock: &Clock) -> Result<(), ConfigError> {
    for (key, value, low) in
        [("clock.bound_max_us", clock.bound_max_us, 1), ("clock.declared_bound_us", clock.declared_bound_us, 0)]
    {
        if !(low..=BOUND_US_MAX).contains(&value) {
            return Err(wrong(key, format!("{value} is out of range: give {low} to {BOUND_US_MAX} (a minute)")));
        }
    }
    match clock.source.as_str() {
        "" => Ok(()),
        "system" if clock.declared_bound_us == 0 => {
            let advice =
                "source \"system\" has no bound of its own: declare how far the system's clock may be off, or take \"chrony\"";
            Err(wrong("clock.declared_bound_us", advice))
        }
        "system" => Ok(()),
        "chrony" => chrony_address(clock).map(|_| ()),
        "phc" if clock.declared_bound_us == 0 && clock.phc_bound_file.is_empty() => {
            let advice =
                "such a clock does not know its own error: declare it, or name the driver's file with clock.phc_bound_file";
            Err(wrong("clock.declared_bound_us", advice))
        }
        "phc" => Ok(()),
        "mesh" if clock.mesh_key.is_empty() => {
            let advice =
                "a mesh needs a key, the same on all nodes: make one with `head -c 32 /dev/urandom > mesh.key` and name its file";
            Err(wrong("clock.mesh_key", advice))
        }
        "mesh" => {
            mesh(clock, MeshKey::of_secret(&[0; 32]).map_err(|e| wrong("clock.mesh_key", e))?, listen_to_check(clock)?).map(|_| ())
        }
        other => {
            Err(wrong("clock.source", format!("{other:?} is none of \"system\", \"chrony\", \"phc\", \"mesh\"; or leave it empty")))
        }
    }
}

fn chrony_address(clock: &Clock) -> Result<SocketAddr, ConfigError> {
    let advice = || wrong("clock.chrony", format!("{:?} is no address: give one like 127.0.0.1:323", clock.chrony));
    clock.chrony.parse().map_err(|_| advice())
}

fn own_line(clock: &Clock) -> Result<&str, ConfigError> {
    let line = clock.mesh_nodes.get(clock.mesh_node as usize).map(String::as_str);
    let count = clock.mesh_nodes.len();
    line.ok_or_else(|| wrong("clock.mesh_node", format!("{} is none of the {count} mesh_nodes, counted from 0", clock.mesh_node)))
}

/// The address for a check, which does not resolve names: a placeholder if it is a name.
fn listen_to_check(clock: &Clock) -> Result<SocketAddr, ConfigError> {
    own_line(clock)?;
    if clock.mesh_listen.is_empty() { Ok(([0, 0, 0, 0], 0).into()) } else { listen_address(clock) }
}

fn listen_address(clock: &Clock) -> Result<SocketAddr, ConfigError> {
    if clock.mesh_listen.is_empty() {
        let line = own_line(clock)?;
        let found = line.to_socket_addrs().ok().and_then(|mut all| all.next());
        let advice = || {
            wrong(
                "clock.mesh_nodes",
                format!("{line:?} is no address that this node can listen on: give HOST:PORT, or set clock.mesh_listen"),
            )
        };
        return found.ok_or_else(advice);
    }
    let advice =
        || wrong("clock.mesh_listen", format!("{:?} is no address to listen on: give one like 0.0.0.0:7373", clock.mesh_listen));
    clock.mesh_listen.parse().map_err(|_| advice())
}

fn mesh(clock: &Clock, key: MeshKey, listen: SocketAddr) -> Result<MeshOptions, ConfigError> {
    let options = MeshOptions {
        node: NodeId(clock.mesh_node),
        nodes: clock.mesh_nodes.clone(),
        listen,
        socket: None,
        key,
        coordinator: NodeId(clock.mesh_coordinator),
        window_ns: clock.mesh_window_ms.saturating_mul(MS),
        interval_ns: clock.mesh_interval_ms.saturating_mul(MS),
    };
    options.check().map_err(|detail| wrong("clock.mesh_*", detail))?;
    Ok(options)
}

impl Clock {
    /// The options of this node's clock; `None` if there is none. Reads the mesh's key and resolves its own name.
    ///
    /// # Errors
    /// If the section is invalid or the key cannot be read.
    pub fn options(&self) -> Result<Option<ClockOptions>, ConfigError> {
        check(self)?;
        let declared_ns = self.declared_bound_us * US;
        let source = match self.source.as_str() {
            "system" => SourceOptions::System { bound_ns: declared_ns },
            "chrony" => SourceOptions::Chrony(ChronyOptions {
                address: chrony_address(self)?,
                reference_bound_ns: declared_ns,
                patience: CHRONY_PATIENCE,
            }),
            "phc" => SourceOptions::Phc(PhcOptions {
                device: self.phc.clone().into(),
                reference_bound_ns: declared_ns,
                bound_file: Some(self.phc_bound_file.clone().into()).filter(|_| !self.phc_bound_file.is_empty()),
                interval: PHC_INTERVAL,
            }),
            "mesh" => {
                let key = MeshKey::load(Path::new(&self.mesh_key)).map_err(|e| wrong("clock.mesh_key", e))?;
                SourceOptions::Mesh(mesh(self, key, listen_address(self)?)?)
            }
            _ => return Ok(None),
        };
        Ok(Some(ClockOptions { bound_max_ns: self.bound_max_us * US, good_for_ns: GOOD_FOR_NS, source }))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Config;
    use super::*;

    fn parse(text: &str) -> Result<Config, String> {
        Config::parse(&format!("[clock]\n{text}"), Path::new("walras.toml")).map_err(|e| e.to_string())
    }

    const MESH: &str =
        "source = \"mesh\"\nmesh_nodes = [\"127.0.0.1:7373\", \"127.0.0.1:7374\"]\nmesh_node = 1\nmesh_key = \"no-such-key\"\n";

    #[test]
    fn each_source_has_its_options() {
        assert!(Config::default().clock.options().unwrap().is_none());
        let options = |text: &str| parse(text).unwrap().clock.options().unwrap().unwrap();
        let system = options("source = \"system\"\ndeclared_bound_us = 300\nbound_max_us = 500\n");
        assert_eq!(system.bound_max_ns, 500_000);
        assert!(matches!(system.source, SourceOptions::System { bound_ns: 300_000 }));
        let SourceOptions::Chrony(chrony) = options("source = \"chrony\"\n").source else { panic!("chrony") };
        assert_eq!((chrony.address.to_string(), chrony.reference_bound_ns), ("127.0.0.1:323".to_owned(), 0));
        let SourceOptions::Phc(phc) = options("source = \"phc\"\nphc_bound_file = \"b\"\n").source else { panic!("phc") };
        assert_eq!((phc.device, phc.bound_file), ("/dev/ptp0".into(), Some("b".into())));
        let folder = tempfile::tempdir().unwrap();
        let key = folder.path().join("mesh.key");
        std::fs::write(&key, [7; 32]).unwrap();
        let SourceOptions::Mesh(mesh) = options(&MESH.replace("no-such-key", key.to_str().unwrap())).source else { panic!("mesh") };
        assert_eq!((mesh.node, mesh.listen.to_string()), (NodeId(1), "127.0.0.1:7374".to_owned()));
    }

    #[test]
    fn impossible_ones_say_what_would_do() {
        for (text, key, why) in [
            ("source = \"ntp\"\n", "clock.source", "none of"),
            ("source = \"system\"\n", "clock.declared_bound_us", "chrony"),
            ("source = \"phc\"\n", "clock.declared_bound_us", "phc_bound_file"),
            ("source = \"chrony\"\nchrony = \"localhost\"\n", "clock.chrony", "127.0.0.1:323"),
            ("bound_max_us = 0\n", "clock.bound_max_us", "give 1 to"),
            (&MESH.replace("mesh_key = \"no-such-key\"", ""), "clock.mesh_key", "head -c 32"),
            (&MESH.replace("mesh_node = 1", "mesh_node = 2"), "clock.mesh_node", "counted from 0"),
            (&MESH.replace("7374", "7373"), "clock.mesh_", "stands twice"),
            (&format!("{MESH}mesh_listen = \"x\"\n"), "clock.mesh_listen", "0.0.0.0:7373"),
            (&format!("{MESH}mesh_window_ms = 3\n"), "clock.mesh_", "window"),
        ] {
            let said = parse(text).unwrap_err();
            assert!(said.contains(key) && said.contains(why), "{text}: {said}");
        }
        let said = parse(MESH).unwrap().clock.options().unwrap_err().to_string();
        assert!(said.contains("clock.mesh_key") && said.contains("no-such-key"), "{said}");
    }
}
