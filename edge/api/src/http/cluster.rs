//! The cluster: what a replica says of it, and what the operator may change.

use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use walras_access::Refusal;
use walras_consensus::{MemberChange, ReplicaId, Role};
use walras_peer_link::{LinkFaults, PathFaults};
use walras_ports::{
    ClusterRequest, ClusterStatus, ClusterView, LeafView, NodeFigures, PeerView, RecallFigures, RelayOut, TreeView,
};
use walras_sequencer::SignedBy;
use walras_types::{EngineVersion, RejectReason};
use walras_wire::{ClusterAction, ClusterRequestNote, Command, VenueCommand};

use super::admin::apply;
use super::fair_access::status_name;
use super::signed::Signed;
use super::{Answer, ApiError, App, ok};
use crate::json::requests::parse;
use crate::json::views;

/// The status of what another replica must be asked: 421, Misdirected Request. An answer with it was not carried out here and never
/// will be.
pub(super) const ELSEWHERE: StatusCode = StatusCode::MISDIRECTED_REQUEST;

/// Says in a refusal who leads.
pub(super) async fn name_leader(State(app): State<App>, request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    if response.status() == ELSEWHERE { misdirected(app.venue.cluster()) } else { response }
}

fn misdirected(cluster: &ClusterStatus) -> Response {
    let mut error = views::error(RejectReason::NotLeader, None);
    error["leader"] = match cluster.leader() {
        Some((id, addresses)) if id != cluster.me() && !addresses.http.is_empty() => {
            json!({"replica": id.get(), "url": format!("http://{}", addresses.http)})
        }
        _ => Value::Null,
    };
    (ELSEWHERE, [(header::CONTENT_TYPE, "application/json")], json!({"error": error}).to_string()).into_response()
}

pub(super) async fn status(State(app): State<App>) -> Answer {
    Ok(ok(&view(&app.venue.cluster().view())))
}

fn role(role: Role) -> &'static str {
    match role {
        Role::Leader => "leader",
        Role::Follower { .. } => "follower",
        Role::Candidate => "candidate",
    }
}

fn view(view: &ClusterView) -> Value {
    let leader = match view.role {
        Role::Leader => Some(view.me),
        Role::Follower { leader } => leader,
        Role::Candidate => None,
    };
    let mut peers = view.peers.clone();
    for id in view.members.voters.iter().chain(&view.members.learners) {
        peers.entry(*id).or_default();
    }
    json!({
        "cluster_id": view.cluster_id.to_string(),
        "replica": view.me.get(),
        "role": role(view.role),
        "term": view.term.0.to_string(),
        "leader": leader.map(ReplicaId::get),
        "takes_commands": view.is_taking,
        "log_index": view.log_index.0.to_string(),
        "last_slot": view.last_slot.0.to_string(),
        "decided_slot": view.decided_slot.0.to_string(),
        "waiting": view.waiting,
        "halted": view.halted,
        "sequencing_delay_ns": view.fair_access.as_ref().map(|fair| fair.intake.delay_ns),
        "clock": view.fair_access.as_ref().map(|fair| status_name(fair.clock.status)),
        "version": env!("CARGO_PKG_VERSION"),
        "wire_version": walras_wire::WIRE_VERSION,
        "engine_version": view.engine_version.0,
        "engine_newest": view.engine_newest.0,
        "is_changing": view.members.is_joint(),
        "gateways": view.leaves.iter().map(|(id, leaf)| gateway(*id, leaf)).collect::<Vec<_>>(),
        "tree": view.trees.first().map(tree),
        "parallel_trees": view.trees.iter().skip(1).map(tree).collect::<Vec<_>>(),
        "replicas": peers.iter().map(|(id, peer)| replica(*id, peer, view)).collect::<Vec<_>>(),
    })
}

fn gateway(id: ReplicaId, LeafView { software, stands_below, sessions, trouble }: &LeafView) -> Value {
    json!({
        "gateway": id.get(),
        "is_linked": software.is_some(),
        "version": software,
        "stands_below": stands_below,
        "sessions": sessions,
        "trouble": trouble,
    })
}

/// Without the addresses, which only machines of the tree need to know.
fn tree(view: &TreeView) -> Value {
    let TreeView { number, hedge, layers, packets, not_taken, asked, asked_too_often, epoch, out, nodes } = view;
    let relays = nodes.len().saturating_sub(1);
    let of_layer = |(layer, nodes): (usize, &Vec<Option<NodeFigures>>)| {
        let first: usize = layers[..layer].iter().sum();
        let why_out = |place: usize| out.iter().find(|(number, _)| *number as usize == first + place).map(|(_, why)| *why);
        nodes.iter().enumerate().map(|(place, said)| relay((layer, place), why_out(place), said.as_ref())).collect::<Vec<_>>()
    };
    json!({
        "tree": number,
        "hedge": hedge,
        "layers": layers,
        "packets": packets,
        "not_taken": not_taken,
        "asked": asked,
        "asked_too_often": asked_too_often,
        "epoch": epoch,
        "relays": nodes.iter().take(relays).enumerate().flat_map(of_layer).collect::<Vec<_>>(),
        "delivery": nodes.iter().enumerate().map(|(layer, nodes)| delivery(layer, nodes)).collect::<Vec<_>>(),
        "receivers": receivers(nodes),
    })
}

/// The receivers that answer, which are leaf gateways.
fn receivers(nodes: &[Vec<Option<NodeFigures>>]) -> Vec<Value> {
    let last = nodes.last().into_iter().flatten().enumerate();
    last.filter_map(|(place, said)| said.as_ref().map(|said| receiver(place, said))).collect()
}

fn receiver(place: usize, said: &NodeFigures) -> Value {
    let RecallFigures { asked, answered, messages, failed } = said.recalls;
    json!({
        "place": place,
        "packets": said.packets,
        "refused": said.refused,
        "late": said.late,
        "recalls_asked": asked,
        "recalls_answered": answered,
        "messages_recalled": messages,
        "recalls_failed": failed,
        "transit_ns_p50": said.transit_ns_p50,
        "transit_ns_p99": said.transit_ns_p99,
    })
}

fn relay((layer, place): (usize, usize), out: Option<RelayOut>, said: Option<&NodeFigures>) -> Value {
    let why = out.map(|why| match why {
        RelayOut::Silent => "silent",
        RelayOut::Unaware => "unaware",
        RelayOut::Mute => "mute",
    });
    let figure = |of: fn(&NodeFigures) -> u64| said.map(of);
    json!({
        "layer": layer,
        "place": place,
        "is_in": out.is_none(),
        "out_because": why,
        "answers": said.is_some(),
        "packets": figure(|said| said.packets),
        "by_hedge": figure(|said| said.by_hedge),
        "copies": figure(|said| said.copies),
        "lost": figure(|said| said.lost),
        "not_taken": figure(|said| said.not_taken),
        "refused": figure(|said| said.refused),
        "transit_ns_p50": figure(|said| said.transit_ns_p50),
        "transit_ns_p99": figure(|said| said.transit_ns_p99),
    })
}

/// When packets reach a layer: from its earliest node to its latest one. Nodes to which nothing came do not count.
fn delivery(layer: usize, nodes: &[Option<NodeFigures>]) -> Value {
    let answering = nodes.iter().flatten();
    let transits = || answering.clone().filter(|said| said.packets > 0).map(|said| said.transit_ns_p50);
    let (earliest, latest) = (transits().min(), transits().max());
    json!({
        "layer": layer,
        "nodes": nodes.len(),
        "answering": answering.clone().count(),
        "earliest_ns": earliest,
        "latest_ns": latest,
        "window_ns": latest.zip(earliest).map(|(latest, earliest)| latest - earliest),
        "latest_ns_p99": answering.clone().filter(|said| said.packets > 0).map(|said| said.transit_ns_p99).max(),
        "late": answering.clone().map(|said| said.late).sum::<u64>(),
    })
}

fn replica(id: ReplicaId, peer: &PeerView, view: &ClusterView) -> Value {
    let is_me = id == view.me;
    let text = |address: &str| if address.is_empty() { Value::Null } else { address.into() };
    let member = match () {
        () if view.members.voters.contains(&id) => "voter",
        () if view.members.learners.contains(&id) => "learner",
        () => "none",
    };
    let version = if is_me { Some(env!("CARGO_PKG_VERSION")) } else { peer.software.as_deref() };
    json!({
        "replica": id.get(),
        "member": member,
        "is_linked": is_me || peer.software.is_some(),
        "version": version,
        "engine_newest": if is_me { Some(view.engine_newest.0) } else { peer.engine_newest.map(|version| version.0) },
        "trouble": if is_me { view.clock_trouble.as_deref() } else { peer.trouble.as_deref() },
        "http": text(&peer.addresses.http),
        "order_entry": text(&peer.addresses.order_entry),
    })
}

/// `POST /v1/admin/cluster/transfer` and `/remove`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReplicaRequest {
    replica: u64,
}

/// `POST /v1/admin/cluster/add`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AddRequest {
    replica: u64,
    #[serde(default)]
    learner: bool,
}

/// `POST /v1/admin/cluster/engine-version`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EngineVersionRequest {
    engine_version: u16,
}

/// `POST /v1/admin/cluster/faults`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FaultsRequest {
    replica: u64,
    #[serde(default)]
    out: PathFaultsRequest,
    #[serde(default)]
    back: PathFaultsRequest,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct PathFaultsRequest {
    #[serde(default)]
    lost_per_million: u32,
    #[serde(default)]
    delay_ns: u64,
}

impl From<PathFaultsRequest> for PathFaults {
    fn from(request: PathFaultsRequest) -> Self {
        let PathFaultsRequest { lost_per_million, delay_ns } = request;
        Self { lost_per_million, delay_ns }
    }
}

fn id(number: u64) -> Result<ReplicaId, Refusal> {
    ReplicaId::new(number).ok_or_else(|| Refusal::new(RejectReason::Malformed, "replica: they are numbered from 1"))
}

/// Has the log keep which key asked, then asks. What is not in the log is not done, and what is in it is tried, also where the client hangs
/// up in between.
async fn ask(app: &App, by: SignedBy, action: ClusterAction, replica: ReplicaId) -> Answer {
    let own = app.clone();
    app.venue.run_whole(None, async move { note_and_ask(&own, by, action, replica).await }).await?
}

async fn note_and_ask(app: &App, by: SignedBy, action: ClusterAction, replica: ReplicaId) -> Answer {
    let cluster = app.venue.cluster();
    let note = ClusterRequestNote { action, replica: replica.get() };
    app.venue.command_by(by, Command::Venue(VenueCommand::NoteClusterRequest(note))).await?;
    let asked = match action {
        ClusterAction::TransferLeadership => ClusterRequest::Transfer(replica),
        ClusterAction::AddVoter => ClusterRequest::Change(MemberChange::AddVoter(replica)),
        ClusterAction::AddLearner => ClusterRequest::Change(MemberChange::AddLearner(replica)),
        ClusterAction::Remove => ClusterRequest::Change(MemberChange::Remove(replica)),
    };
    match app.venue.ask_cluster(asked).await? {
        Ok(()) => Ok(ok(&view(&cluster.view()))),
        Err(_) if !matches!(cluster.view().role, Role::Leader) => Err(RejectReason::NotLeader.into()),
        Err(why) => Err(ApiError::with_status(Refusal::new(RejectReason::VenueNotReady, why), StatusCode::CONFLICT)),
    }
}

pub(super) async fn transfer(State(app): State<App>, signed: Signed) -> Answer {
    let by = signed.operator()?;
    let request: ReplicaRequest = parse(&signed.body)?;
    ask(&app, by, ClusterAction::TransferLeadership, id(request.replica)?).await
}

pub(super) async fn add(State(app): State<App>, signed: Signed) -> Answer {
    let by = signed.operator()?;
    let request: AddRequest = parse(&signed.body)?;
    let id = id(request.replica)?;
    if !app.venue.cluster().view().peers.contains_key(&id) {
        let advice = format!(
            "replica: {id} is not among cluster.peers here; list it on every replica, reload each (SIGHUP, `systemctl reload`), then add it"
        );
        return Err(Refusal::new(RejectReason::Malformed, advice).into());
    }
    let action = if request.learner { ClusterAction::AddLearner } else { ClusterAction::AddVoter };
    ask(&app, by, action, id).await
}

pub(super) async fn remove(State(app): State<App>, signed: Signed) -> Answer {
    let by = signed.operator()?;
    let request: ReplicaRequest = parse(&signed.body)?;
    ask(&app, by, ClusterAction::Remove, id(request.replica)?).await
}

/// Goes to a later version of the engine, once every replica's program knows it. The entry that does so says which key asked.
pub(super) async fn set_engine_version(State(app): State<App>, signed: Signed) -> Answer {
    let by = signed.operator()?;
    let request: EngineVersionRequest = parse(&signed.body)?;
    let (cluster, version) = (app.venue.cluster(), EngineVersion(request.engine_version));
    if !matches!(cluster.view().role, Role::Leader) {
        return Err(RejectReason::NotLeader.into());
    }
    if let Err(why) = app.venue.ask_cluster(ClusterRequest::CheckEngineVersion(version)).await? {
        return Err(ApiError::with_status(Refusal::new(RejectReason::EngineVersionInvalid, why), StatusCode::CONFLICT));
    }
    let command = Command::Venue(VenueCommand::SetEngineVersion(version));
    apply(&app, by, command, json!({})).await
}

/// Injects faults into this replica's links, for tests. Answers 404 unless the configuration allows it.
pub(super) async fn faults(State(app): State<App>, signed: Signed) -> Answer {
    signed.operator_key()?;
    let request: FaultsRequest = parse(&signed.body)?;
    if !app.config.cluster.test_faults {
        return Err(RejectReason::NotFound.into());
    }
    let faults = LinkFaults { out: request.out.into(), back: request.back.into() };
    let asked = ClusterRequest::Faults(id(request.replica)?, faults);
    match app.venue.ask_cluster(asked).await? {
        Ok(()) => Ok(ok(&json!({}))),
        Err(why) => Err(Refusal::new(RejectReason::Malformed, why).into()),
    }
}
