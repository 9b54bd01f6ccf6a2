//! The file that says who stands where in a tree: the same on all its machines.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use walras_relay::packet::TreeKey;
use walras_relay::relay::{Relay, RelaySettings};
use walras_relay::tree::{HEDGE_MAX, Tree, TreeError};

/// Packets of each channel that a relay remembers: some milliseconds of the fastest channel.
const PACKETS_REMEMBERED: usize = 1 << 12;
/// Channels that a relay passes on: three views of ten thousand instruments, 32 KiB each as far as they are used.
const CHANNELS_MAX: usize = 30_000;
const KEY_BYTES: usize = 32;

/// Why a file says of no tree.
#[derive(Debug, thiserror::Error)]
pub enum LayoutError {
    /// A file cannot be read.
    #[error("could not read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// It is not TOML, or a key is missing, unknown or of the wrong type.
    #[error("{path}: {detail}")]
    Parse {
        /// The file.
        path: PathBuf,
        /// Where and what.
        detail: String,
    },
    /// There is no such tree.
    #[error("{path}: layers: {source}")]
    Shape {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: TreeError,
    },
    /// More copies than there can be.
    #[error("{path}: hedge = {hedge} is out of range: a packet has at most {HEDGE_MAX} additional copies")]
    Hedge {
        /// The file.
        path: PathBuf,
        /// What it says.
        hedge: u32,
    },
    /// The key is none.
    #[error("{path}: a tree's key is one line of 64 hexadecimal digits: make one with `openssl rand -hex 32`")]
    Key {
        /// The file.
        path: PathBuf,
    },
    /// No relay stands there.
    #[error("layer {layer} has no relay at place {place}: the file lists {listed} there, and the last layer are the receivers")]
    NoRelay {
        /// The layer that was asked for.
        layer: usize,
        /// The place that was asked for.
        place: u32,
        /// Nodes of the layer.
        listed: usize,
    },
}

/// The file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    tree: u32,
    #[serde(default)]
    hedge: u32,
    key_file: PathBuf,
    layers: Vec<Vec<SocketAddr>>,
}

/// A tree with its addresses and its key.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Its number, as in its packets.
    pub tree_number: u32,
    /// Additional copies of each packet.
    pub hedge: u32,
    /// Its shape.
    pub tree: Tree,
    /// The addresses of each layer, by place; the last are the receivers.
    pub layers: Vec<Vec<SocketAddr>>,
    /// Its key.
    pub key: TreeKey,
}

impl Layout {
    /// Reads a file, and that of the key which it names, relative to it.
    pub fn read(path: &Path) -> Result<Self, LayoutError> {
        let file: File =
            toml::from_str(&read(path)?).map_err(|error| LayoutError::Parse { path: path.into(), detail: error.to_string() })?;
        let File { tree: tree_number, hedge, key_file, layers } = file;
        if hedge > HEDGE_MAX {
            return Err(LayoutError::Hedge { path: path.into(), hedge });
        }
        let widths = layers.iter().map(|layer| u32::try_from(layer.len()).unwrap_or(u32::MAX)).collect();
        let tree = Tree::of_layers(widths).map_err(|source| LayoutError::Shape { path: path.into(), source })?;
        let key_file = path.parent().map_or(key_file.clone(), |folder| folder.join(&key_file));
        let key = key_of(&read(&key_file)?).ok_or(LayoutError::Key { path: key_file })?;
        Ok(Self { tree_number, hedge, tree, layers, key })
    }

    /// The relay at a place, its address, and those of the next layer.
    pub fn relay(&self, layer: usize, place: u32) -> Result<(Relay, SocketAddr, &[SocketAddr]), LayoutError> {
        let listed = self.layers.get(layer).map_or(0, Vec::len);
        let (Some(address), Some(next)) =
            (self.layers.get(layer).and_then(|nodes| nodes.get(place as usize)), self.layers.get(layer + 1))
        else {
            return Err(LayoutError::NoRelay { layer, place, listed });
        };
        let settings = RelaySettings {
            layer,
            place,
            tree: self.tree_number,
            hedge: self.hedge,
            packets_remembered: PACKETS_REMEMBERED,
            channels_max: CHANNELS_MAX,
        };
        Ok((Relay::new(self.tree.clone(), settings), *address, next))
    }
}

fn read(path: &Path) -> Result<String, LayoutError> {
    std::fs::read_to_string(path).map_err(|source| LayoutError::Read { path: path.into(), source })
}

fn key_of(text: &str) -> Option<TreeKey> {
    let digits = text.trim().as_bytes();
    let mut secret = [0; KEY_BYTES];
    if digits.len() != 2 * KEY_BYTES || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    for (byte, pair) in secret.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(TreeKey::new(secret))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOUND: &str =
        "tree = 1\nhedge = 1\nkey_file = \"tree.key\"\nlayers = [[\"127.0.0.1:1\"], [\"[::1]:2\", \"127.0.0.1:3\"]]\n";

    fn written(layout: &str, key: &str) -> (tempfile::TempDir, Result<Layout, LayoutError>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tree.toml");
        std::fs::write(&path, layout).unwrap();
        std::fs::write(folder.path().join("tree.key"), key).unwrap();
        let layout = Layout::read(&path);
        (folder, layout)
    }

    #[test]
    fn a_file_says_who_stands_where() {
        let (_folder, layout) = written(SOUND, &format!("{}\n", "0a".repeat(32)));
        let layout = layout.unwrap();
        assert_eq!((layout.tree_number, layout.hedge, layout.tree.layers()), (1, 1, &[1, 2][..]));
        let (_, address, next) = layout.relay(0, 0).unwrap();
        assert_eq!((address.port(), next.len()), (1, 2));
        for (layer, place, listed) in [(0, 1, 1), (1, 0, 2), (2, 0, 0)] {
            let error = layout.relay(layer, place).unwrap_err().to_string();
            assert!(error.contains(&format!("lists {listed} there")), "{error}");
        }
    }

    #[test]
    fn a_wrong_file_is_refused_with_what_to_do() {
        let key = "0a".repeat(32);
        for (layout, key, says) in [
            (SOUND, "0a", "openssl rand -hex 32"),
            (SOUND, &"zz".repeat(32), "openssl rand -hex 32"),
            (&SOUND.replace("hedge = 1", "hedge = 9"), &key, "at most 8"),
            (&SOUND.replace("hedge", "hegde"), &key, "hegde"),
            (&SOUND.replace("[::1]:2", "localhost"), &key, "layers"),
            (&SOUND.replace("[\"127.0.0.1:1\"], ", "[], "), &key, "at least as many nodes"),
            (&SOUND.replace("tree.key", "other.key"), &key, "other.key"),
        ] {
            let error = written(layout, key).1.unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
