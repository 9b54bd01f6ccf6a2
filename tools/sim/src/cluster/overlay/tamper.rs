//! Datagrams that somebody cuts on their way, and others that somebody without the tree's key makes and sends in a node's name: a bit of a
//! real one turned, other numbers under another key's seal, any bytes, a real one with more behind it. Nobody may take any of them.

use std::collections::BTreeSet;
use std::rc::Rc;

use walras_relay::packet::{Header, Packet, PacketWriter, TreeKey};
use walras_testkit::Choices;

use super::links::Datagram;
use crate::cluster::checks::Checks;
use crate::cluster::mutation::Mutation;

/// Of a thousand datagrams so many are cut, and so many are followed by a forged one.
const CUT_PERMILLE: u64 = 10;
const FORGED_PERMILLE: u64 = 30;
/// How long a forged one is on its way.
const DELAY_NS: [u64; 2] = [20_000, 2_000_000];
/// Most bytes of one that is made of nothing.
const NOISE_BYTES_MAX: usize = 200;

/// See the module's documentation.
pub(super) struct Tamper {
    /// Apart from all others, so that what else is drawn stays the same.
    choices: Choices<'static>,
    /// A key that no node has.
    key: TreeKey,
    /// For [`Mutation::SealsUnchecked`].
    is_unchecked: bool,
    is_over: bool,
    /// What nobody has looked at yet.
    under_way: BTreeSet<Rc<[u8]>>,
    cut: u64,
    forged: u64,
    refused: u64,
}

impl Tamper {
    pub(super) fn new(choices: Choices<'static>, mutation: Option<Mutation>) -> Self {
        let is_unchecked = mutation == Some(Mutation::SealsUnchecked);
        let (key, under_way) = (TreeKey::new([77; 32]), BTreeSet::new());
        Self { choices, key, is_unchecked, is_over: false, under_way, cut: 0, forged: 0, refused: 0 }
    }

    /// Datagrams that were cut, that were forged, and of both those that somebody looked at and did not take.
    pub(super) fn counts(&self) -> [u64; 3] {
        [self.cut, self.forged, self.refused]
    }

    /// Nothing is cut or forged any more.
    pub(super) fn end(&mut self) {
        self.is_over = true;
    }

    /// A datagram is sent. It may be cut; what is forged after it, and when that arrives.
    pub(super) fn strike(&mut self, now_ns: u64, datagram: &mut Datagram) -> Option<(u64, Datagram)> {
        if self.is_over || datagram.bytes.is_empty() {
            return None;
        }
        let drawn = self.choices.below(1_000);
        if drawn < CUT_PERMILLE {
            let kept = self.choices.below(datagram.bytes.len() as u64) as usize;
            datagram.bytes = Rc::from(&datagram.bytes[..kept]);
            self.under_way.insert(Rc::clone(&datagram.bytes));
            self.cut += 1;
            return None;
        }
        if drawn >= CUT_PERMILLE + FORGED_PERMILLE {
            return None;
        }
        let bytes: Rc<[u8]> = self.forge(&datagram.bytes).into();
        self.under_way.insert(Rc::clone(&bytes));
        self.forged += 1;
        let at_ns = now_ns + self.choices.within(DELAY_NS[0], DELAY_NS[1]);
        Some((at_ns, Datagram { bytes, ..datagram.clone() }))
    }

    fn forge(&mut self, real: &[u8]) -> Vec<u8> {
        let mut bytes = real.to_vec();
        match (self.choices.below(4), Packet::of_own(real)) {
            (0, Some(packet)) => {
                let (mut writer, header) = (PacketWriter::default(), *packet.header());
                for (_, message) in packet.messages() {
                    let has_room = writer.push(message);
                    assert!(has_room, "they came in a packet");
                }
                let header = Header { packet: header.packet + 1, first: header.first + 1, release_ns: 0, ..header };
                bytes.clear();
                writer.finish(&header, &self.key, &mut bytes);
            }
            (1, _) => {
                bytes = (0..self.choices.below(NOISE_BYTES_MAX as u64)).map(|_| self.choices.byte()).collect();
            }
            (2, _) => bytes.push(self.choices.byte()),
            _ => {
                let at = self.choices.below(bytes.len() as u64) as usize;
                bytes[at] ^= 1 << self.choices.below(8);
            }
        }
        bytes
    }
}

/// Somebody looks at a datagram that has arrived: the packet that it takes.
pub(super) fn open<'d>(tamper: &mut Option<Tamper>, bytes: &'d [u8], key: &TreeKey, checks: &mut Checks) -> Option<Packet<'d>> {
    let Some(tamper) = tamper else { return Packet::decode(bytes, key).ok() };
    let packet = if tamper.is_unchecked { Packet::of_own(bytes) } else { Packet::decode(bytes, key).ok() };
    if tamper.under_way.remove(bytes) {
        match packet {
            Some(packet) => checks.on_false_taken(packet.header()),
            None => tamper.refused += 1,
        }
    }
    packet
}

#[cfg(test)]
mod tests {
    use walras_relay::packet::Kind;

    use super::*;
    use crate::cluster::overlay::links::Address;

    /// Each way to cut and to forge: none gives a packet under the key, and none is the real one.
    #[test]
    fn what_is_cut_or_forged_is_no_packet() {
        let (key, mut writer, mut bytes) = (TreeKey::new([1; 32]), PacketWriter::default(), Vec::new());
        assert!(writer.push(b"one") && writer.push(b"another"));
        let header = Header { kind: Kind::Data, count: 2, channel: 7, tree: 1, packet: 9, first: 3, sent_ns: 1, release_ns: 2 };
        writer.finish(&header, &key, &mut bytes);
        let real: Rc<[u8]> = bytes.into();
        let mut tamper = Tamper::new(Choices::of_seed(5), None);
        let mut seen = 0;
        for now_ns in 0..20_000 {
            let mut datagram = Datagram { from: Address::Node(1), to: Address::Node(2), bytes: Rc::clone(&real) };
            let forged = tamper.strike(now_ns, &mut datagram);
            let is_cut = datagram.bytes != real;
            assert!(!is_cut || forged.is_none());
            for false_one in is_cut.then_some(datagram).into_iter().chain(forged.map(|(_, datagram)| datagram)) {
                seen += 1;
                assert!(false_one.bytes != real && Packet::decode(&false_one.bytes, &key).is_err(), "{false_one:?}");
                assert!(tamper.under_way.contains(&false_one.bytes));
            }
        }
        let [cut, forged, refused] = tamper.counts();
        assert!(cut > 100 && forged > 300 && seen == cut + forged && refused == 0, "{cut} cut, {forged} forged, {seen} seen");
        tamper.end();
        let mut datagram = Datagram { from: Address::Node(1), to: Address::Node(2), bytes: Rc::clone(&real) };
        assert!((0..1_000).all(|now_ns| tamper.strike(now_ns, &mut datagram).is_none()) && datagram.bytes == real);
    }
}
