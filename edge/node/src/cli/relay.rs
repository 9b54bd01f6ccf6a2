//! `walras relay`.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use walras_access::random_u64;
use walras_feed::channel::CHANNELS_MAX;
use walras_feed::control::RelayFigures;
use walras_relay_link::socket::{Offload, Socket};
use walras_relay_link::{Layout, Lookout, RelayNode};
use walras_terminal::table::table;

use super::relay_plan::{PlanArgs, plan};
use super::{Cli, CliError, Output, print};

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
    /// Of parallel trees, the one in which it stands, from 0.
    #[arg(long, default_value_t = 0)]
    pub parallel: usize,
    /// Address and port to receive at, where that is not the one in the file.
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<SocketAddr>,
    /// Never sleep, but ask the kernel for packets again and again. This takes a whole core, and saves the time in which the kernel
    /// wakes the relay for a packet.
    #[arg(long)]
    pub spin: bool,
}

/// What is asked of relays.
#[derive(Debug, Subcommand)]
pub enum RelayCommand {
    /// Asks all relays of a tree, and leaf gateways below them, what came to them, from a machine that has the tree's key.
    Status {
        /// The tree's file.
        #[arg(long, value_name = "FILE")]
        tree: PathBuf,
    },
    /// Plans a tree for a number of receivers, and writes its file; docs/relays.md describes it.
    Plan(PlanArgs),
}

/// How long relays may take to answer.
const ANSWER: Duration = Duration::from_millis(300);

/// How long a relay waits for packets before it looks at the time: it watches its sibling.
const WAIT: Duration = Duration::from_millis(5);
/// From one report to the next.
const REPORT_EVERY: Duration = Duration::from_secs(60);

pub(super) fn run(cli: &Cli, args: &RelayArgs) -> Result<(), CliError> {
    let asked = match &args.command {
        Some(RelayCommand::Status { tree }) => Some(status(&Layout::read_all(tree)?)?),
        Some(RelayCommand::Plan(args)) => Some(plan(args)?),
        None => None,
    };
    if let Some(Output { human, json }) = asked {
        return print(&if cli.json { format!("{json}\n") } else { human });
    }
    let (Some(tree), Some(layer), Some(place)) = (&args.tree, args.layer, args.place) else {
        return Err(CliError::Wrong("a relay needs --tree, --layer and --place".to_owned()));
    };
    let mut layouts = Layout::read_all(tree)?;
    if args.parallel >= layouts.len() {
        let (parallel, trees) = (args.parallel, layouts.len());
        return Err(CliError::Wrong(format!("--parallel {parallel}: the file has {trees} trees, numbered from 0")));
    }
    relay(&layouts.swap_remove(args.parallel), (layer, place), args).map(|never| match never {})
}

/// What each relay says, as a table and as JSON.
fn status(layouts: &[Layout]) -> Result<Output, CliError> {
    let failed = |source| CliError::Io { what: "could not ask the relays".to_owned(), source };
    let (mut rows, mut receivers) = (Vec::new(), Vec::new());
    for layout in layouts {
        let relays = layout.layers.len().saturating_sub(1);
        let layers = layout.layers.iter().enumerate();
        let places = layers.flat_map(|(layer, nodes)| nodes.iter().enumerate().map(move |(place, at)| (layer, place, *at)));
        let places: Vec<(usize, usize, SocketAddr)> = places.collect();
        let addresses: Vec<SocketAddr> = places.iter().map(|(.., address)| *address).collect();
        let mut lookout = Lookout::open(&addresses, layout.tree_number, layout.key.clone(), random_u64()).map_err(failed)?;
        let said = lookout.ask(ANSWER).map_err(failed)?;
        for (place, said) in places.iter().zip(said) {
            // Of receivers, leaf gateways alone answer: that another one does not says nothing.
            if place.0 < relays {
                rows.push(row(layout.tree_number, *place, said));
            } else if said.is_some() {
                receivers.push(row(layout.tree_number, *place, said));
            }
        }
    }
    let columns = [
        ("tree", "tree"),
        ("layer", "layer"),
        ("place", "place"),
        ("address", "address"),
        ("packets", "packets"),
        ("by a hedge", "by_hedge"),
        ("copies", "copies"),
        ("lost", "lost"),
        ("not taken", "not_taken"),
        ("refused", "refused"),
        ("late", "late"),
        ("asked", "recalls_asked"),
        ("answered", "recalls_answered"),
        ("recalled", "messages_recalled"),
        ("failed", "recalls_failed"),
        ("transit p50, us", "transit_p50_us"),
        ("p99, us", "transit_p99_us"),
    ];
    // Most venues have one tree.
    let columns = if layouts.len() > 1 { &columns[..] } else { &columns[1..] };
    let shown: Vec<Value> = rows.iter().chain(&receivers).map(for_people).collect();
    let trees: Vec<Value> = layouts.iter().map(|layout| json!({"tree": layout.tree_number, "hedge": layout.hedge})).collect();
    Ok(Output { human: table(&shown, columns), json: json!({"trees": trees, "relays": rows, "receivers": receivers}) })
}

/// A relay, with the fields of `GET /v1/cluster`.
fn row(tree: u32, (layer, place, address): (usize, usize, SocketAddr), said: Option<RelayFigures>) -> Value {
    let figure = |of: fn(RelayFigures) -> u64| said.map(of);
    json!({
        "tree": tree,
        "layer": layer,
        "place": place,
        "address": address.to_string(),
        "answers": said.is_some(),
        "packets": figure(|said| said.first),
        "by_hedge": figure(|said| said.hedged),
        "copies": figure(|said| said.copies),
        "lost": figure(|said| said.lost),
        "not_taken": figure(|said| said.not_taken),
        "refused": figure(|said| said.forged + said.malformed + said.others),
        "late": figure(|said| said.late),
        "recalls_asked": figure(|said| said.recalls.asked),
        "recalls_answered": figure(|said| said.recalls.answered),
        "messages_recalled": figure(|said| said.recalls.back),
        "recalls_failed": figure(|said| said.recalls.given_up),
        "transit_ns_p50": figure(|said| said.transit_ns_p50),
        "transit_ns_p99": figure(|said| said.transit_ns_p99),
    })
}

/// The same as a row of the table: times in microseconds.
fn for_people(row: &Value) -> Value {
    let Some(fields) = row.as_object().filter(|fields| fields["answers"] == true) else {
        let [tree, layer, place, address] = ["tree", "layer", "place", "address"].map(|field| &row[field]);
        return json!({"tree": tree, "layer": layer, "place": place, "address": address, "packets": "no answer"});
    };
    let mut shown = fields.clone();
    for (from, to) in [("transit_ns_p50", "transit_p50_us"), ("transit_ns_p99", "transit_p99_us")] {
        shown.insert(to.to_owned(), row[from].as_u64().map(|ns| ns / 1_000).into());
    }
    shown.into()
}

fn relay(layout: &Layout, (layer, place): (usize, u32), args: &RelayArgs) -> Result<Infallible, CliError> {
    let (relay, listed) = layout.relay(layer, place)?;
    let address = args.listen.unwrap_or(listed);
    let failed = |what: String| move |source| CliError::Io { what, source };
    let socket = Socket::bind(address, WAIT, Offload::Segments)
        .map_err(failed(format!("could not receive at {address}; give an address of this machine with --listen")))?;
    layout.check_reach(&socket)?;
    let offload = match socket.offload() {
        Offload::Segments => "the kernel joins and cuts packets",
        Offload::None => "the kernel neither joins nor cuts packets: a newer one makes this relay several times faster",
    };
    let (socket, waits) = if args.spin { (socket.spinning(WAIT), "; it spins on a core of its own") } else { (socket, "") };
    let bound = socket.address().map_err(failed("could not read the address".to_owned()))?;
    print(&format!("relay {place} of layer {layer} receives at {bound}\n"))?;
    let next = layout.layers[layer + 1].len();
    eprintln!("walras: relay {place} of layer {layer} receives at {bound} and sends to {next} nodes; {offload}{waits}");
    let mut node = RelayNode::new(socket, relay, layout.key.clone(), &layout.nodes(), random_u64());
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
        if node.taken_apart() > 0 {
            eprintln!(
                "walras: {} joined datagrams were too large for a path and went as single packets, which costs more: set feed.packet_bytes \
                 for the least MTU of the tree",
                node.taken_apart()
            );
        }
        if now.no_room > before.no_room {
            eprintln!("walras: {} packets of more channels than the {CHANNELS_MAX} of a venue were not passed on", now.no_room);
        }
    }
    now
}
