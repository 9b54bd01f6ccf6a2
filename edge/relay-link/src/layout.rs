//! The file that says who stands where in a tree: the same on all its machines.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use walras_feed::channel::{CHANNELS_MAX, TREES_MAX, Trees};
use walras_relay::live::TREE_NUMBER_MAX;
use walras_relay::packet::TreeKey;
use walras_relay::relay::{Relay, RelaySettings};
use walras_relay::tree::{HEDGE_MAX, Tree, TreeError};

use crate::socket::Socket;

/// Packets of each channel that a relay remembers, in 512 bytes: some milliseconds of the fastest channel.
const PACKETS_REMEMBERED: usize = 1 << 12;
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
    /// Too many trees.
    #[error("{path}: {trees} trees are too many: a venue spreads its markets over {TREES_MAX} at most")]
    Trees {
        /// The file.
        path: PathBuf,
        /// How many it has.
        trees: usize,
    },
    /// There is no number for the last tree.
    #[error("{path}: tree: numbers of trees go up to {TREE_NUMBER_MAX}, and parallel ones have the next: choose a smaller one")]
    Number {
        /// The file.
        path: PathBuf,
    },
    /// Not all receivers are in all trees.
    #[error(
        "{path}: one tree has {receivers} receivers, another one {other}: each receiver has an address of its own in every \
         tree, at the same place"
    )]
    Receivers {
        /// The file.
        path: PathBuf,
        /// Of the first tree.
        receivers: usize,
        /// Of another one.
        other: usize,
    },
    /// Some node is out of reach.
    #[error(
        "a socket at {from} does not reach {to}: give all nodes of a tree addresses of one kind, IPv4 or IPv6, or let a node that sends \
         to both receive at `[::]` and its port, which has both"
    )]
    Reach {
        /// Where the socket is bound.
        from: SocketAddr,
        /// A node's address.
        to: SocketAddr,
    },
    /// The key is none.
    #[error("{path}: a tree's key is one line of 64 hexadecimal digits: make one with `openssl rand -hex 32`")]
    Key {
        /// The file.
        path: PathBuf,
    },
    /// A socket does not say where it is bound.
    #[error("could not read the address of a socket: {source}")]
    Address {
        /// What the system said.
        source: std::io::Error,
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
    /// Further trees, by which other markets travel.
    #[serde(default)]
    parallel: Vec<ParallelFile>,
}

/// A further tree of the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ParallelFile {
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
    /// How many trees the file has: the markets are spread over them.
    pub trees: Trees,
    /// Which of them this is, from 0.
    pub index: u32,
}

impl Layout {
    /// Reads a file, and that of the key which it names, relative to it: the first tree of it.
    pub fn read(path: &Path) -> Result<Self, LayoutError> {
        Self::read_all(path).map(|mut all| all.swap_remove(0))
    }

    /// Reads a file likewise: all its trees, one at least. They share the key and have numbers one after the other.
    pub fn read_all(path: &Path) -> Result<Vec<Self>, LayoutError> {
        let file: File =
            toml::from_str(&read(path)?).map_err(|error| LayoutError::Parse { path: path.into(), detail: error.to_string() })?;
        let File { tree: first_number, hedge, key_file, layers, parallel } = file;
        let layers: Vec<_> = [layers].into_iter().chain(parallel.into_iter().map(|tree| tree.layers)).collect();
        let trees = u32::try_from(layers.len()).ok().and_then(Trees::new);
        let trees = trees.ok_or_else(|| LayoutError::Trees { path: path.into(), trees: layers.len() })?;
        if first_number.checked_add(trees.count() - 1).is_none_or(|last| last > TREE_NUMBER_MAX) {
            return Err(LayoutError::Number { path: path.into() });
        }
        let receivers = layers[0].last().map_or(0, Vec::len);
        if let Some(other) = layers.iter().map(|layers| layers.last().map_or(0, Vec::len)).find(|count| *count != receivers) {
            return Err(LayoutError::Receivers { path: path.into(), receivers, other });
        }
        if hedge > HEDGE_MAX {
            return Err(LayoutError::Hedge { path: path.into(), hedge });
        }
        let key_file = path.parent().map_or(key_file.clone(), |folder| folder.join(&key_file));
        let key = key_of(&read(&key_file)?).ok_or(LayoutError::Key { path: key_file })?;
        let one = |(index, layers): (u32, Vec<Vec<SocketAddr>>)| {
            let widths = layers.iter().map(|layer| u32::try_from(layer.len()).unwrap_or(u32::MAX)).collect();
            let tree = Tree::of_layers(widths).map_err(|source| LayoutError::Shape { path: path.into(), source })?;
            Ok(Self { tree_number: first_number + index, hedge, tree, layers, key: key.clone(), trees, index })
        };
        (0..).zip(layers).map(one).collect()
    }

    /// The addresses of all nodes, by number.
    #[must_use]
    pub fn nodes(&self) -> Vec<SocketAddr> {
        self.layers.iter().flatten().copied().collect()
    }

    /// Whether a socket of this machine reaches all nodes of the tree: each of them may get packets of it in some view, or an answer.
    ///
    /// # Errors
    /// An address is of the other kind.
    pub fn check_reach(&self, socket: &Socket) -> Result<(), LayoutError> {
        let from = socket.address().map_err(|source| LayoutError::Address { source })?;
        let far = self.layers.iter().flatten().find(|to| !socket.reaches(**to));
        far.map_or(Ok(()), |to| Err(LayoutError::Reach { from, to: *to }))
    }

    /// The relay at a place, and its address.
    pub fn relay(&self, layer: usize, place: u32) -> Result<(Relay, SocketAddr), LayoutError> {
        let listed = self.layers.get(layer).map_or(0, Vec::len);
        let is_relay = layer + 1 < self.layers.len();
        let Some(address) = self.layers.get(layer).filter(|_| is_relay).and_then(|nodes| nodes.get(place as usize)) else {
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
        Ok((Relay::new(self.tree.clone(), settings), *address))
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
    use std::time::Duration;

    use walras_feed::channel::{ChannelId, View};
    use walras_relay::packet::{Header, Kind};
    use walras_relay::relay::Arrival;
    use walras_types::InstrumentId;
    use walras_types::limits::INSTRUMENTS_MAX;

    use super::*;
    use crate::socket::Offload;

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
        let (relay, address) = layout.relay(0, 0).unwrap();
        assert_eq!((address.port(), relay.number(), layout.nodes().len()), (1, 0, 3));
        for (layer, place, listed) in [(0, 1, 1), (1, 0, 2), (2, 0, 0)] {
            let error = layout.relay(layer, place).unwrap_err().to_string();
            assert!(error.contains(&format!("lists {listed} there")), "{error}");
        }
    }

    /// A venue at its limits has three views of 16,384 instruments.
    #[test]
    fn a_relay_passes_on_all_channels_that_a_venue_can_have_and_no_more() {
        let (_folder, layout) = written(SOUND, &"0a".repeat(32));
        let (mut relay, _) = layout.unwrap().relay(0, 0).unwrap();
        let mut arrives = |channel| {
            let (kind, count, tree, packet, first) = (Kind::Data, 1, 1, 9, 1);
            relay.arrives(&Header { kind, count, channel, tree, packet, first, sent_ns: 0, release_ns: 0 })
        };
        for view in View::BOOKS {
            for instrument in (0..INSTRUMENTS_MAX).map(InstrumentId) {
                assert_eq!(arrives(ChannelId::instrument(view, instrument).get()), Arrival::First, "{view:?} of {instrument:?}");
            }
        }
        let others = CHANNELS_MAX as u32 - 3 * INSTRUMENTS_MAX;
        assert!((0..others).all(|other| arrives(0x0400_0000 + other) == Arrival::First), "room for batch markets and snapshots");
        assert_eq!(arrives(0x0500_0000), Arrival::NoRoom);
    }

    #[test]
    fn parallel_trees_have_the_next_numbers() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tree.toml");
        let parallel = "[[parallel]]\nlayers = [[\"127.0.0.1:4\", \"127.0.0.1:5\"]]\n";
        std::fs::write(&path, format!("{SOUND}{parallel}{parallel}")).unwrap();
        std::fs::write(folder.path().join("tree.key"), "0a".repeat(32)).unwrap();
        let all = Layout::read_all(&path).unwrap();
        let shapes: Vec<_> = all.iter().map(|one| (one.tree_number, one.index, one.trees.count(), one.tree.layers())).collect();
        assert_eq!(shapes, [(1, 0, 3, &[1, 2][..]), (2, 1, 3, &[2]), (3, 2, 3, &[2])]);
        assert_eq!(Layout::read(&path).unwrap().layers, all[0].layers);
        for (more, says) in [
            ("[[parallel]]\nlayers = [[\"127.0.0.1:4\"]]\n", "one tree has 2 receivers, another one 1"),
            ("[[parallel]]\nlayers = [[\"127.0.0.1:4\"], []]\n", "2 receivers, another one 0"),
            ("[[parallel]]\ntree = 4\n", "tree"),
            (&parallel.repeat(64), "65 trees are too many"),
        ] {
            std::fs::write(&path, format!("{SOUND}{more}")).unwrap();
            let error = Layout::read_all(&path).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
        std::fs::write(&path, SOUND.replace("tree = 1", "tree = 65536")).unwrap();
        assert!(Layout::read_all(&path).unwrap_err().to_string().contains("choose a smaller one"));
    }

    #[test]
    fn a_tree_that_a_socket_does_not_reach_as_a_whole_is_refused_with_what_to_do() {
        let bind = |address: &str| Socket::bind(address.parse().unwrap(), Duration::from_millis(1), Offload::None);
        let (_folder, mixed) = written(SOUND, &"0a".repeat(32));
        let (_other, of_v4) = written(&SOUND.replace("[::1]:2", "127.0.0.1:2"), &"0a".repeat(32));
        let (mixed, of_v4) = (mixed.unwrap(), of_v4.unwrap());
        let error = mixed.check_reach(&bind("127.0.0.1:0").unwrap()).unwrap_err().to_string();
        assert!(error.contains("does not reach [::1]:2") && error.contains("receive at `[::]`"), "{error}");
        of_v4.check_reach(&bind("127.0.0.1:0").unwrap()).unwrap();
        let (Ok(all), Ok(one)) = (bind("[::]:0"), bind("[::1]:0")) else {
            println!("skipped: this system has no IPv6");
            return;
        };
        assert!(of_v4.check_reach(&one).unwrap_err().to_string().contains("does not reach 127.0.0.1:"));
        if !all.reaches(of_v4.layers[0][0]) {
            println!("skipped: sockets of IPv6 have no IPv4 on this system (net.ipv6.bindv6only)");
            return;
        }
        mixed.check_reach(&all).unwrap();
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
