//! The state of a peer across its connections, and the handling of its frames.

use std::net::IpAddr;

use walras_consensus::{Incarnations, ReplicaId};

use crate::config::PeerAddress;
use crate::connection::Connection;
use crate::dial::Dial;
use crate::error::LinkError;
use crate::event::LinkEvent;
use crate::faults::{Disposition, FaultyPath};
use crate::frame::{Frame, FrameError, Versions};
use crate::snapshot::{Coming, SnapshotFailure};
use walras_random::Random;

pub(crate) struct Peer {
    pub(crate) address: PeerAddress,
    /// The slot of its connection, once it has greeted.
    pub(crate) up: Option<usize>,
    pub(crate) versions: Option<Versions>,
    /// Where it greeted from last.
    pub(crate) greeted_from: Option<IpAddr>,
    pub(crate) dial: Dial,
    pub(crate) failure_count: u32,
    pub(crate) faults: Option<Box<InjectedFaults>>,
    pub(crate) incarnations: Incarnations,
}

impl Peer {
    pub(crate) fn new(address: PeerAddress, dial: Dial) -> Self {
        let incarnations = Incarnations::default();
        Self { address, up: None, versions: None, greeted_from: None, dial, failure_count: 0, faults: None, incarnations }
    }
}

/// Injected faults in both directions.
pub(crate) struct InjectedFaults {
    pub(crate) out: FaultyPath<bytes::Bytes>,
    pub(crate) back: FaultyPath<Frame>,
}

impl InjectedFaults {
    pub(crate) fn new() -> Self {
        Self { out: FaultyPath::new(), back: FaultyPath::new() }
    }

    pub(crate) fn receive(&mut self, now_ns: u64, random: &mut Random, bytes_max: usize, frame: Frame) -> Disposition<Frame> {
        match &frame {
            // The connection itself stays up: faults affect messages only.
            Frame::Ping | Frame::Pong | Frame::Hello(_) | Frame::Refused(_) | Frame::Dismissed(_) => Disposition::Now(frame),
            Frame::Message(bytes) => {
                let len = bytes.len();
                self.back.message(now_ns, random, len, bytes_max, frame)
            }
            Frame::Begin { .. }
            | Frame::Chunk { .. }
            | Frame::End { .. }
            | Frame::Aborted { .. }
            | Frame::Credit { .. }
            | Frame::Answer { .. } => self.back.piece(now_ns, 0, frame),
        }
    }
}

/// A frame of a peer that is linked.
pub(crate) fn deliver(
    connection: &mut Connection,
    id: ReplicaId,
    frame: Frame,
    events: &mut Vec<LinkEvent>,
) -> Result<(), LinkError> {
    let unexpected = |what| Err(FrameError::Unexpected(what).into());
    match frame {
        Frame::Message(bytes) => events.push(LinkEvent::Message { from: id, bytes }),
        Frame::Ping => connection.pong_due = true,
        // Only its arrival counts.
        Frame::Pong => {}
        Frame::Begin { id: snapshot, total_bytes, meta } => {
            if connection.coming.is_some() {
                return unexpected("a second snapshot before the first one was answered");
            }
            connection.coming = Some(Coming::new(snapshot, total_bytes));
            events.push(LinkEvent::SnapshotBegin { from: id, id: snapshot, meta, total_bytes });
        }
        Frame::Chunk { id: snapshot, bytes } => {
            // Chunks of a refused snapshot may still arrive.
            if let Some(coming) = connection.coming.as_mut().filter(|coming| coming.id == snapshot) {
                let offset = coming.chunk(&bytes)?;
                events.push(LinkEvent::SnapshotChunk { from: id, id: snapshot, offset, bytes });
            }
        }
        Frame::End { id: snapshot, hash } => {
            if let Some(coming) = connection.coming.as_mut().filter(|coming| coming.id == snapshot && !coming.has_ended) {
                match coming.end(hash) {
                    Ok(()) => events.push(LinkEvent::SnapshotEnd { from: id, id: snapshot, hash }),
                    Err(why) => {
                        connection.answer(snapshot, Some(why.to_string()));
                        events.push(LinkEvent::SnapshotBroken { from: id, id: snapshot, why });
                    }
                }
            }
        }
        Frame::Aborted { id: snapshot, why } => {
            if connection.coming.as_ref().is_some_and(|coming| coming.id == snapshot && !coming.has_ended) {
                connection.coming = None;
                events.push(LinkEvent::SnapshotBroken { from: id, id: snapshot, why: SnapshotFailure::Source(why) });
            }
        }
        Frame::Credit { id: snapshot, bytes } => {
            if let Some(leaving) = connection.leaving.as_mut().filter(|leaving| leaving.id == snapshot) {
                leaving.credit(bytes);
            }
        }
        Frame::Answer { id: snapshot, accepted, why } => {
            if connection.leaving.as_ref().is_some_and(|leaving| leaving.id == snapshot) {
                connection.leaving = None;
                events.push(if accepted {
                    LinkEvent::SnapshotDelivered { to: id, id: snapshot }
                } else {
                    LinkEvent::SnapshotFailed { to: id, id: snapshot, why: SnapshotFailure::Refused(why) }
                });
            }
        }
        Frame::Hello(_) => return unexpected("a second greeting"),
        Frame::Refused(why) => return Err(LinkError::RefusedByPeer(why)),
        Frame::Dismissed(why) => return Err(LinkError::Dismissed(why)),
    }
    Ok(())
}
