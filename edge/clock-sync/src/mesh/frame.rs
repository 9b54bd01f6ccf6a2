//! The encoding of a datagram: a head, a body, and a tag.
//!
//! | bytes | head |
//! | --- | --- |
//! | 1 | version, 2 |
//! | 1 | what follows: 1 a probe, 2 reports, 3 a result |
//! | 2 | zeros |
//! | 4, 4 | node that sends, node that it is for |
//! | 8, 8 | incarnation of the sender; incarnation of the receiver as far as the sender has heard, else 0 |
//!
//! The tag is the keyed BLAKE3 hash of all before it, 32 bytes. Numbers are little endian. All probes have one size, so that both
//! directions take the same time on a wire.

use walras_fair_access::clock::Correction;
use walras_fair_access::mesh::{EdgeEstimate, EdgeFault, EdgeReport, Fault, NodeId, PROBE_BYTES, Probe, Verdict};

use super::MeshKey;

/// Bytes of a head.
const HEAD_BYTES: usize = 28;
/// Bytes of a tag.
const TAG_BYTES: usize = blake3::OUT_LEN;
/// Bytes of any datagram at most: it fits into one packet of any network.
pub const FRAME_BYTES_MAX: usize = 1_232;
/// Edges in one datagram at most.
pub const EDGES_MAX: usize = 24;

const VERSION: u8 = 2;
const PROBE: u8 = 1;
const REPORTS: u8 = 2;
const RESULT: u8 = 3;

/// Sender and receiver, with their incarnations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The sender.
    pub from: NodeId,
    /// The receiver.
    pub to: NodeId,
    /// The sender's incarnation.
    pub sender_incarnation: u64,
    /// The receiver's incarnation, as far as the sender knows it; 0 for none.
    pub receiver_incarnation: u64,
}

/// The body of a datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// To or from a peer.
    Probe(Probe),
    /// To the coordinator: reports of the sender's edges, at most [`EDGES_MAX`], all of one window.
    Reports(Vec<EdgeReport>),
    /// From the coordinator.
    Result(NodeResult),
}

/// A window's result for the receiving node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeResult {
    /// The window.
    pub window: u64,
    /// The node whose clock is the venue time.
    pub reference: NodeId,
    /// The verdict on this node's clock.
    pub verdict: Verdict,
    /// Standard deviation of the edges' loop errors.
    pub loop_error_ns: u64,
    /// Standard deviation of their change from window to window.
    pub noise_ns: u64,
    /// Residuals of this node's edges by their other ends, at most [`EDGES_MAX`]; positive if the other end seems ahead.
    pub residuals: Vec<(NodeId, i64)>,
}

/// Why bytes are not a datagram of this mesh.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// Malformed.
    #[error("not a datagram of a mesh of this version: drop it, and check that all nodes run the same version")]
    Malformed,
    /// Not authenticated with the mesh's key.
    #[error("the datagram's tag is not one of this mesh's key: drop it, and check that all nodes have the same key")]
    Unauthenticated,
}

/// Encodes a datagram with its tag.
#[must_use]
pub fn encode(key: &MeshKey, head: &Head, body: &Body) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEAD_BYTES + PROBE_BYTES + TAG_BYTES);
    let kind = match body {
        Body::Probe(_) => PROBE,
        Body::Reports(_) => REPORTS,
        Body::Result(_) => RESULT,
    };
    bytes.extend([VERSION, kind, 0, 0]);
    bytes.extend(head.from.0.to_le_bytes());
    bytes.extend(head.to.0.to_le_bytes());
    bytes.extend(head.sender_incarnation.to_le_bytes());
    bytes.extend(head.receiver_incarnation.to_le_bytes());
    match body {
        Body::Probe(probe) => bytes.extend(probe.encode()),
        Body::Reports(reports) => put_reports(&mut bytes, reports),
        Body::Result(result) => put_result(&mut bytes, result),
    }
    let tag = blake3::keyed_hash(&key.0, &bytes);
    bytes.extend(tag.as_bytes());
    bytes
}

/// Decodes bytes that anyone may have sent. The tag is checked first.
///
/// # Errors
/// If they are not a datagram of this mesh.
pub fn decode(key: &MeshKey, bytes: &[u8]) -> Result<(Head, Body), FrameError> {
    if bytes.len() > FRAME_BYTES_MAX {
        return Err(FrameError::Malformed);
    }
    let (said, tag) =
        bytes.split_last_chunk::<TAG_BYTES>().filter(|(said, _)| said.len() >= HEAD_BYTES).ok_or(FrameError::Malformed)?;
    // `Hash` compares in constant time.
    if blake3::keyed_hash(&key.0, said) != *tag {
        return Err(FrameError::Unauthenticated);
    }
    let mut reader = Reader(said);
    let frame = (|| {
        let [version, kind, 0, 0] = *reader.take::<4>()? else { return None };
        let (from, to) = (reader.node()?, reader.node()?);
        let head = Head { from, to, sender_incarnation: reader.u64()?, receiver_incarnation: reader.u64()? };
        let body = match (version, kind) {
            (VERSION, PROBE) => Body::Probe(Probe::decode(std::mem::take(&mut reader.0)).ok()?),
            (VERSION, REPORTS) => Body::Reports(reader.reports(from)?),
            (VERSION, RESULT) => Body::Result(reader.result()?),
            _ => return None,
        };
        reader.0.is_empty().then_some((head, body))
    })();
    frame.ok_or(FrameError::Malformed)
}

fn put_reports(bytes: &mut Vec<u8>, reports: &[EdgeReport]) {
    debug_assert!(reports.len() <= EDGES_MAX, "split before it is sent");
    bytes.extend(reports.first().map_or(0, |report| report.window).to_le_bytes());
    bytes.push(reports.len() as u8);
    for EdgeReport { to, result, .. } in reports {
        bytes.extend(to.0.to_le_bytes());
        match *result {
            Ok(EdgeEstimate { anchor_local_ns, offset_ns, rate_ppt, round_trip_ns, noise_ns }) => {
                bytes.push(0);
                bytes.extend(anchor_local_ns.to_le_bytes());
                bytes.extend(offset_ns.to_le_bytes());
                bytes.extend(rate_ppt.to_le_bytes());
                bytes.extend(round_trip_ns.to_le_bytes());
                bytes.extend(noise_ns.to_le_bytes());
            }
            Err(EdgeFault::Silent) => bytes.push(1),
            Err(EdgeFault::Contradiction { by_ns }) => {
                bytes.push(2);
                bytes.extend(by_ns.to_le_bytes());
            }
            Err(EdgeFault::Steep { rate_ppt }) => {
                bytes.push(3);
                bytes.extend(rate_ppt.to_le_bytes());
            }
        }
    }
}

fn put_result(bytes: &mut Vec<u8>, result: &NodeResult) {
    debug_assert!(result.residuals.len() <= EDGES_MAX, "cut before it is sent");
    bytes.extend(result.window.to_le_bytes());
    bytes.extend(result.reference.0.to_le_bytes());
    match result.verdict {
        Verdict::Synced(line) => {
            bytes.push(0);
            bytes.extend(line.anchor_local_ns.to_le_bytes());
            bytes.extend(line.offset_ns.to_le_bytes());
            bytes.extend(line.rate_ppt.to_le_bytes());
            bytes.extend(line.bound_ns.to_le_bytes());
            bytes.extend(line.bound_growth_ppt.to_le_bytes());
            bytes.extend(line.bound_growth_ppt_per_s.to_le_bytes());
        }
        Verdict::Unreached => bytes.push(1),
        Verdict::Excluded(Fault::Jumped { by_ns }) => {
            bytes.push(2);
            bytes.extend(by_ns.to_le_bytes());
        }
        Verdict::Excluded(Fault::Drifts { rate_ppt }) => {
            bytes.push(3);
            bytes.extend(rate_ppt.to_le_bytes());
        }
        Verdict::Excluded(Fault::Contradicts { edges_bad, edges }) => {
            bytes.push(4);
            bytes.extend(edges_bad.to_le_bytes());
            bytes.extend(edges.to_le_bytes());
        }
    }
    bytes.extend(result.loop_error_ns.to_le_bytes());
    bytes.extend(result.noise_ns.to_le_bytes());
    bytes.push(result.residuals.len() as u8);
    for (node, residual_ns) in &result.residuals {
        bytes.extend(node.0.to_le_bytes());
        bytes.extend(residual_ns.to_le_bytes());
    }
}

/// What is left to read.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take<const N: usize>(&mut self) -> Option<&'a [u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(taken)
    }

    fn u8(&mut self) -> Option<u8> {
        Some(self.take::<1>()?[0])
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(*self.take()?))
    }

    fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(*self.take()?))
    }

    fn i64(&mut self) -> Option<i64> {
        Some(i64::from_le_bytes(*self.take()?))
    }

    fn node(&mut self) -> Option<NodeId> {
        Some(NodeId(self.u32()?))
    }

    /// A count of edges.
    fn count(&mut self) -> Option<usize> {
        Some(usize::from(self.u8()?)).filter(|count| *count <= EDGES_MAX)
    }

    fn reports(&mut self, from: NodeId) -> Option<Vec<EdgeReport>> {
        let window = self.u64()?;
        let count = self.count()?;
        if count == 0 {
            return None;
        }
        (0..count)
            .map(|_| {
                let to = self.node()?;
                let result = match self.u8()? {
                    0 => Ok(EdgeEstimate {
                        anchor_local_ns: self.u64()?,
                        offset_ns: self.i64()?,
                        rate_ppt: self.i64()?,
                        round_trip_ns: self.u64()?,
                        noise_ns: self.u64()?,
                    }),
                    1 => Err(EdgeFault::Silent),
                    2 => Err(EdgeFault::Contradiction { by_ns: self.u64()? }),
                    3 => Err(EdgeFault::Steep { rate_ppt: self.i64()? }),
                    _ => return None,
                };
                Some(EdgeReport { window, from, to, result })
            })
            .collect()
    }

    fn result(&mut self) -> Option<NodeResult> {
        let (window, reference) = (self.u64()?, self.node()?);
        let verdict = match self.u8()? {
            0 => Verdict::Synced(Correction {
                anchor_local_ns: self.u64()?,
                offset_ns: self.i64()?,
                rate_ppt: self.i64()?,
                bound_ns: self.u64()?,
                bound_growth_ppt: self.u64()?,
                bound_growth_ppt_per_s: self.u64()?,
            }),
            1 => Verdict::Unreached,
            2 => Verdict::Excluded(Fault::Jumped { by_ns: self.i64()? }),
            3 => Verdict::Excluded(Fault::Drifts { rate_ppt: self.i64()? }),
            4 => Verdict::Excluded(Fault::Contradicts { edges_bad: self.u32()?, edges: self.u32()? }),
            _ => return None,
        };
        let (loop_error_ns, noise_ns, count) = (self.u64()?, self.u64()?, self.count()?);
        let residuals = (0..count).map(|_| Some((self.node()?, self.i64()?))).collect::<Option<_>>()?;
        Some(NodeResult { window, reference, verdict, loop_error_ns, noise_ns, residuals })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use walras_fair_access::mesh::Half;

    use super::*;

    fn key(secret: u8) -> MeshKey {
        MeshKey::of_secret(&[secret; 32]).unwrap()
    }

    fn body() -> impl Strategy<Value = Body> {
        let probe = (any::<u32>(), any::<bool>()).prop_map(|(exchange, second)| {
            let half = if second { Half::Second } else { Half::First };
            Body::Probe(if second { Probe::Answer { exchange, half, stamps: None } } else { Probe::Ask { exchange, half } })
        });
        let found = prop_oneof![
            any::<(u64, i64, i64, u64, u64)>().prop_map(|(anchor_local_ns, offset_ns, rate_ppt, round_trip_ns, noise_ns)| {
                Ok(EdgeEstimate { anchor_local_ns, offset_ns, rate_ppt, round_trip_ns, noise_ns })
            }),
            Just(Err(EdgeFault::Silent)),
            any::<u64>().prop_map(|by_ns| Err(EdgeFault::Contradiction { by_ns })),
            any::<i64>().prop_map(|rate_ppt| Err(EdgeFault::Steep { rate_ppt })),
        ];
        let edges = prop::collection::vec((any::<u32>(), found), 1..=EDGES_MAX);
        let reports = (any::<u64>(), edges).prop_map(|(window, edges)| {
            let report = |(to, result)| EdgeReport { window, from: NodeId(3), to: NodeId(to), result };
            Body::Reports(edges.into_iter().map(report).collect())
        });
        let verdict = prop_oneof![
            any::<(u64, i64, i64, u64, u64, u64)>().prop_map(|(anchor_local_ns, offset_ns, rate_ppt, bound_ns, growth, curve)| {
                Verdict::Synced(Correction {
                    anchor_local_ns,
                    offset_ns,
                    rate_ppt,
                    bound_ns,
                    bound_growth_ppt: growth,
                    bound_growth_ppt_per_s: curve,
                })
            }),
            Just(Verdict::Unreached),
            any::<i64>().prop_map(|by_ns| Verdict::Excluded(Fault::Jumped { by_ns })),
            any::<i64>().prop_map(|rate_ppt| Verdict::Excluded(Fault::Drifts { rate_ppt })),
            any::<(u32, u32)>().prop_map(|(edges_bad, edges)| Verdict::Excluded(Fault::Contradicts { edges_bad, edges })),
        ];
        let residuals = prop::collection::vec((any::<u32>().prop_map(NodeId), any::<i64>()), 0..=EDGES_MAX);
        let result = (any::<(u64, u32, u64, u64)>(), verdict, residuals).prop_map(
            |((window, reference, loop_error_ns, noise_ns), verdict, residuals)| {
                Body::Result(NodeResult { window, reference: NodeId(reference), verdict, loop_error_ns, noise_ns, residuals })
            },
        );
        prop_oneof![probe, reports, result]
    }

    fn head() -> impl Strategy<Value = Head> {
        any::<(u32, u64, u64)>().prop_map(|(to, sender_incarnation, receiver_incarnation)| Head {
            from: NodeId(3),
            to: NodeId(to),
            sender_incarnation,
            receiver_incarnation,
        })
    }

    proptest! {
        #[test]
        fn a_datagram_survives_its_bytes_and_fits(head in head(), body in body()) {
            let bytes = encode(&key(1), &head, &body);
            prop_assert!(bytes.len() <= FRAME_BYTES_MAX);
            prop_assert_eq!(decode(&key(1), &bytes), Ok((head, body)));
            prop_assert_eq!(decode(&key(2), &bytes), Err(FrameError::Unauthenticated));
        }

        /// One bit anywhere, and it is not authentic any more.
        #[test]
        fn no_bit_may_change(head in head(), body in body(), at: prop::sample::Index, bit in 0_u32..8) {
            let mut bytes = encode(&key(1), &head, &body);
            let at = at.index(bytes.len());
            bytes[at] ^= 1_u8 << bit;
            prop_assert_eq!(decode(&key(1), &bytes), Err(FrameError::Unauthenticated));
        }

        /// A node with the key that says anything: nothing panics, and what is read has one encoding.
        #[test]
        fn any_bytes_of_a_member(mut said in prop::collection::vec(any::<u8>(), 0..400), kind in 0_u8..5) {
            if said.len() >= 4 {
                said[..4].copy_from_slice(&[VERSION, kind, 0, 0]);
            }
            let tag = blake3::keyed_hash(&key(1).0, &said);
            said.extend(tag.as_bytes());
            if let Ok((head, body)) = decode(&key(1), &said) {
                prop_assert_eq!(encode(&key(1), &head, &body), said);
            }
        }
    }

    #[test]
    fn both_directions_of_a_probe_have_one_size() {
        let head = Head { from: NodeId(0), to: NodeId(1), sender_incarnation: 1, receiver_incarnation: 0 };
        let ask = Body::Probe(Probe::Ask { exchange: 1, half: Half::First });
        let answer = Body::Probe(Probe::Answer { exchange: 1, half: Half::Second, stamps: None });
        assert_eq!(encode(&key(1), &head, &ask).len(), encode(&key(1), &head, &answer).len());
        assert_eq!(decode(&key(1), &[0; FRAME_BYTES_MAX + 1]), Err(FrameError::Malformed));
    }
}
