//! `walras relay`.

use std::convert::Infallible;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use walras_access::random_u64;
use walras_feed::control::RelayFigures;
use walras_relay_link::socket::{Offload, Socket};
use walras_relay_link::{Layout, RelayNode, ask_relay};
use walras_terminal::table::table;

use super::{CliError, print};

/// `walras relay`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct RelayArgs {
    /// Something else than to run a relay.
    #[command(subcommand)]
    pub command: Option<RelayCommand>,
    /// The tree's file, the same on all its machines; docs/relays.md describes it.
    #[arg(long, value_name = "FILE", required = true)]
    pub tree: Option<PathBuf>,
    /// The layer in which this relay stands, from 0.
    #[arg(long, required = true)]
    pub layer: Option<usize>,
    /// Its place in the layer, from 0.
    #[arg(long, required = true)]
    pub place: Option<u32>,
    /// Address and port to receive at, where that is not the one in the file.
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<SocketAddr>,
}

/// What is asked of relays.
#[derive(Debug, Subcommand)]
pub enum RelayCommand {
    /// Asks all relays of a tree what came to them, from a machine that has the tree's key.
    Status {
        /// The tree's file.
        #[arg(long, value_name = "FILE")]
        tree: PathBuf,
    },
}

/// How long a relay may take to answer.
const ANSWER: Duration = Duration::from_millis(300);

/// How long a relay waits for packets before it looks whether there is something to report.
const WAIT: Duration = Duration::from_secs(1);
/// From one report to the next.
const REPORT_EVERY: Duration = Duration::from_secs(60);

pub(super) fn run(args: &RelayArgs) -> Result<(), CliError> {
    if let Some(RelayCommand::Status { tree }) = &args.command {
        return print(&status(&Layout::read(tree)?)?);
    }
    let (Some(tree), Some(layer), Some(place)) = (&args.tree, args.layer, args.place) else {
        return Err(CliError::Wrong("a relay needs --tree, --layer and --place".to_owned()));
    };
    relay(&Layout::read(tree)?, (layer, place), args.listen).map(|never| match never {})
}

/// What each relay says, as a table.
fn status(layout: &Layout) -> Result<String, CliError> {
    let mut rows = Vec::new();
    let relays = layout.layers.len().saturating_sub(1);
    for (layer, nodes) in layout.layers[..relays].iter().enumerate() {
        for (place, address) in nodes.iter().enumerate() {
            let from =
                SocketAddr::new(if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() }, 0);
            let failed = |source| CliError::Io { what: format!("could not ask {address}"), source };
            let socket = Socket::bind(from, ANSWER, Offload::None).map_err(failed)?;
            let said = ask_relay(&socket, layout.tree_number, &layout.key, *address, random_u64()).map_err(failed)?;
            rows.push(row(layer, place, *address, said));
        }
    }
    let columns = [
        ("layer", "layer"),
        ("place", "place"),
        ("address", "address"),
        ("packets", "packets"),
        ("by a hedge", "hedges"),
        ("copies", "copies"),
        ("lost", "lost"),
        ("not taken", "not_taken"),
        ("refused", "refused"),
        ("transit p50, us", "transit_p50_us"),
        ("p99, us", "transit_p99_us"),
    ];
    Ok(table(&rows, &columns))
}

fn row(layer: usize, place: usize, address: SocketAddr, said: Option<RelayFigures>) -> Value {
    let Some(figures) = said else {
        return json!({"layer": layer, "place": place, "address": address.to_string(), "packets": "no answer"});
    };
    let us = |ns: u64| ns / 1_000;
    json!({
        "layer": layer,
        "place": place,
        "address": address.to_string(),
        "packets": figures.first,
        "hedges": figures.hedged,
        "copies": figures.copies,
        "lost": figures.lost,
        "not_taken": figures.not_taken,
        "refused": figures.forged + figures.malformed + figures.others,
        "transit_p50_us": us(figures.transit_ns_p50),
        "transit_p99_us": us(figures.transit_ns_p99),
    })
}

fn relay(layout: &Layout, (layer, place): (usize, u32), listen: Option<SocketAddr>) -> Result<Infallible, CliError> {
    let (relay, listed, next) = layout.relay(layer, place)?;
    let above = layer.checked_sub(1).map_or(&[][..], |above| &layout.layers[above]);
    let address = listen.unwrap_or(listed);
    let failed = |what: String| move |source| CliError::Io { what, source };
    let socket = Socket::bind(address, WAIT, Offload::Segments)
        .map_err(failed(format!("could not receive at {address}; give an address of this machine with --listen")))?;
    let offload = match socket.offload() {
        Offload::Segments => "the kernel joins and cuts packets",
        Offload::None => "the kernel neither joins nor cuts packets: a newer one makes this relay several times faster",
    };
    let bound = socket.address().map_err(failed("could not read the address".to_owned()))?;
    print(&format!("relay {place} of layer {layer} receives at {bound}\n"))?;
    eprintln!("walras: relay {place} of layer {layer} receives at {bound} and sends to {} nodes; {offload}", next.len());
    let mut node = RelayNode::new(socket, relay, layout.key.clone(), next).below(above);
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
            "walras: in all {} packets passed on ({} by a hedge), {} further copies, {} of other trees, {} without the seal, {} malformed, {} not taken by \
             the system",
            now.first,
            now.hedged,
            now.copies,
            now.others,
            now.forged,
            now.malformed,
            node.lost()
        );
    }
    now
}
