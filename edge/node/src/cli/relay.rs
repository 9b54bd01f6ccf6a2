//! `walras relay`.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use walras_relay_link::socket::{Offload, Socket};
use walras_relay_link::{Layout, RelayNode};

use super::{CliError, print};

/// `walras relay`.
#[derive(Debug, Args)]
pub struct RelayArgs {
    /// The tree's file, the same on all its machines; docs/relays.md describes it.
    #[arg(long, value_name = "FILE")]
    pub tree: PathBuf,
    /// The layer in which this relay stands, from 0.
    #[arg(long)]
    pub layer: usize,
    /// Its place in the layer, from 0.
    #[arg(long)]
    pub place: u32,
    /// Address and port to receive at, where that is not the one in the file.
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<SocketAddr>,
}

/// How long a relay waits for packets before it looks whether there is something to report.
const WAIT: Duration = Duration::from_secs(1);
/// From one report to the next.
const REPORT_EVERY: Duration = Duration::from_secs(60);

pub(super) fn run(args: &RelayArgs) -> Result<Infallible, CliError> {
    let layout = Layout::read(&args.tree)?;
    let (relay, listed, next) = layout.relay(args.layer, args.place)?;
    let address = args.listen.unwrap_or(listed);
    let failed = |what: String| move |source| CliError::Io { what, source };
    let socket = Socket::bind(address, WAIT, Offload::Segments)
        .map_err(failed(format!("could not receive at {address}; give an address of this machine with --listen")))?;
    let offload = match socket.offload() {
        Offload::Segments => "the kernel joins and cuts packets",
        Offload::None => "the kernel neither joins nor cuts packets: a newer one makes this relay several times faster",
    };
    let (layer, place) = (args.layer, args.place);
    let bound = socket.address().map_err(failed("could not read the address".to_owned()))?;
    print(&format!("relay {place} of layer {layer} receives at {bound}\n"))?;
    eprintln!("walras: relay {place} of layer {layer} receives at {bound} and sends to {} nodes; {offload}", next.len());
    let mut node = RelayNode::new(socket, relay, layout.key.clone(), next);
    let (mut reported_at, mut reported) = (Instant::now(), node.counts());
    loop {
        node.step().map_err(failed(format!("the socket at {bound} failed")))?;
        if reported_at.elapsed() >= REPORT_EVERY {
            (reported_at, reported) = (Instant::now(), report(&node, reported));
        }
    }
}

/// Says what came since the last report, if anything did.
fn report(node: &RelayNode, before: walras_relay_link::NodeCounts) -> walras_relay_link::NodeCounts {
    let now = node.counts();
    if now != before {
        eprintln!(
            "walras: in all {} packets passed on, {} further copies, {} of other trees, {} without the seal, {} malformed, {} not taken by \
             the system",
            now.first,
            now.copies,
            now.others,
            now.forged,
            now.malformed,
            node.lost()
        );
    }
    now
}
