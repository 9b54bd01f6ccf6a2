//! Attacks on the operators' port and on the mesh that measures clocks.

use walras_clock_sync::mesh::MeshKey;
use walras_clock_sync::mesh::frame::{Body, FRAME_BYTES_MAX, Head, NodeResult, encode};
use walras_fair_access::mesh::{EdgeFault, EdgeReport, Half, NodeId, Probe, Verdict};

use super::{Attack, Group, Needs, garbage, noise, of_http, of_websocket, talk};
use crate::crowd::Plan;
use crate::ports::Mesh;
use crate::wire::{request, upgrade};

pub(super) const IDLE_OPERATOR: Attack = Attack {
    name: "idle_operator",
    group: Group::Idle,
    about: "250 connections to the operators' port that send nothing, and 250 WebSockets there that ask nothing",
    needs: Needs::Nothing,
    shots: |_| Vec::new(),
    plans: |field| [Vec::new(), upgrade()].map(|opening| Plan::standing(field.operator, field.of(250), opening)).into(),
};

pub(super) const MALFORMED_OPERATOR: Attack = Attack {
    name: "malformed_operator",
    group: Group::Malformed,
    about: "100 connections a second to the operators' port with bytes that are no request, and frames that are none",
    needs: Needs::Nothing,
    shots: |_| Vec::new(),
    plans: |field| vec![garbage(field.operator, field.rate(100), [of_http(), of_websocket()].concat())],
};

pub(super) const FLOOD_OPERATOR: Attack = Attack {
    name: "flood_operator",
    group: Group::Flood,
    about: "3,000 requests a second to the operators' port without a key, and 200 with a participant's",
    needs: Needs::Nothing,
    shots: |_| Vec::new(),
    plans: |field| {
        let ask = || request("GET", "/v1/instruments/BTC-USD/book", "", None);
        let key = field.key.clone();
        let signed = move || request("GET", "/v1/admin/accounts/0", "", Some(&key));
        vec![
            talk(field.operator, 32, ask(), Box::new(ask), field.rate(3_000)),
            talk(field.operator, 16, Vec::new(), Box::new(signed), field.rate(200)),
        ]
    },
};

pub(super) const FORGED_MESH: Attack = Attack {
    name: "forged_mesh",
    group: Group::Malformed,
    about: "500 datagrams a second to each node of the mesh: noise, another key's, recorded ones, and those cut or with a bit turned",
    needs: Needs::Mesh,
    plans: |_| Vec::new(),
    shots: |aim| {
        let Some(mesh) = aim.mesh else { return Vec::new() };
        (0..mesh.nodes.len()).map(|node| aim.at(&mesh.nodes[node], to_node(mesh, node), 500)).collect()
    },
};

/// What an attacker sends to a node who heard what others said to it in an earlier run.
fn to_node(mesh: &Mesh, node: usize) -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> = (3..11_u64).map(|seed| noise(1 << seed, seed)).collect();
    all.push(noise(FRAME_BYTES_MAX, 11));
    all.push(noise(FRAME_BYTES_MAX + 1, 12));
    // With a key of the attacker's own.
    all.extend(MeshKey::of_secret(&[0x5e; 32]).map(|key| recorded(mesh, &key, node)).unwrap_or_default().into_iter().take(12));
    let recorded = recorded(mesh, &mesh.key, node);
    if let Some(whole) = recorded.first() {
        all.push([&whole[..], &[0]].concat());
        all.extend((0..whole.len()).step_by(7).map(|length| whole[..length].to_vec()));
        all.extend((0..whole.len() * 8).step_by(31).map(|bit| {
            let mut turned = whole.clone();
            turned[bit / 8] ^= 1 << (bit % 8);
            turned
        }));
    }
    all.extend(recorded);
    all
}

/// Requests, answers, reports and results of incarnations that are gone, from every node there is and from some that there are not.
fn recorded(mesh: &Mesh, key: &MeshKey, node: usize) -> Vec<Vec<u8>> {
    let count = mesh.nodes.len();
    let mut all = Vec::new();
    for from in (0..=count).filter(|from| *from != node) {
        let head = Head {
            from: NodeId(from as u32),
            to: NodeId(node as u32),
            sender_incarnation: 7 + from as u64,
            receiver_incarnation: 70 + node as u64,
        };
        let report = EdgeReport { window: 3, from: head.from, to: head.to, result: Err(EdgeFault::Silent) };
        let (window, reference, verdict) = (u64::MAX, NodeId(0), Verdict::Unreached);
        let result = NodeResult { window, reference, verdict, loop_error_ns: u64::MAX, noise_ns: u64::MAX, residuals: Vec::new() };
        let mut bodies = vec![Body::Reports(vec![report]), Body::Result(result)];
        for half in [Half::First, Half::Second] {
            for exchange in [0, 1, 2, u32::MAX] {
                bodies.push(Body::Probe(Probe::Ask { exchange, half }));
                bodies.push(Body::Probe(Probe::Answer { exchange, half, stamps: None }));
            }
        }
        all.extend(bodies.iter().map(|body| encode(key, &head, body)));
    }
    all
}
