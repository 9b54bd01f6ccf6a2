//! Channels: one market in one view, or the snapshots of all markets in one view.

use walras_relay::packet::{Header, Kind};
use walras_types::limits::{BATCH_MARKETS_MAX, INSTRUMENTS_MAX};
use walras_types::{BatchMarketId, InstrumentId};

/// How much of a market a channel shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum View {
    /// Every displayed order.
    Orders,
    /// What each price level shows.
    Levels,
    /// The best bid and ask.
    Top,
    /// The blocks of a batch market.
    Batches,
}

impl View {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Orders, Self::Levels, Self::Top, Self::Batches];
    /// Those of a continuous market.
    pub const BOOKS: [Self; 3] = [Self::Orders, Self::Levels, Self::Top];

    const fn number(self) -> u32 {
        match self {
            Self::Orders => 1,
            Self::Levels => 2,
            Self::Top => 3,
            Self::Batches => 4,
        }
    }
}

/// A channel, as packets number it: the view in the highest byte, the market in the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChannelId(u32);

const MARKET_BITS: u32 = 24;
const MARKET_MASK: u32 = (1 << MARKET_BITS) - 1;
/// The market whose channel has the snapshots of all others in its view that the first tree carries. Those of the next trees are before it.
const SNAPSHOTS: u32 = MARKET_MASK;
/// The least number of a channel of snapshots.
const SNAPSHOTS_MIN: u32 = SNAPSHOTS - (TREES_MAX - 1);

/// Parallel trees of a venue at most.
pub const TREES_MAX: u32 = 64;

/// Channels of a venue at most: every instrument in each view, every batch market, and each view's snapshots by each tree.
pub const CHANNELS_MAX: usize =
    View::BOOKS.len() * INSTRUMENTS_MAX as usize + BATCH_MARKETS_MAX + View::ALL.len() * TREES_MAX as usize;

// Every instrument has a channel.
const _: () = assert!(INSTRUMENTS_MAX < SNAPSHOTS_MIN);

/// Parallel trees, over which the markets of a venue are spread: all packets of a market travel by one of them, so no relay carries all
/// markets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trees(u32);

impl Trees {
    /// One tree for all.
    pub const ONE: Self = Self(1);

    /// So many; `None` for none and for too many.
    #[must_use]
    pub const fn new(count: u32) -> Option<Self> {
        if count >= 1 && count <= TREES_MAX { Some(Self(count)) } else { None }
    }

    /// How many.
    #[must_use]
    pub const fn count(self) -> u32 {
        self.0
    }

    /// The tree, from 0, by which a channel's packets travel: that of its market, modulo their number.
    #[must_use]
    pub const fn of(self, channel: ChannelId) -> u32 {
        if channel.is_of_snapshots() { (SNAPSHOTS - channel.market()) % self.0 } else { channel.market() % self.0 }
    }
}

impl ChannelId {
    /// An instrument's.
    ///
    /// # Panics
    /// In the view of batch markets, or for an instrument that no venue has.
    #[must_use]
    pub const fn instrument(view: View, instrument: InstrumentId) -> Self {
        assert!(!matches!(view, View::Batches) && instrument.0 < SNAPSHOTS_MIN, "an instrument's view");
        Self(view.number() << MARKET_BITS | instrument.0)
    }

    /// A batch market's.
    #[must_use]
    pub const fn batches(market: BatchMarketId) -> Self {
        Self(View::Batches.number() << MARKET_BITS | market.0 as u32)
    }

    /// That of all snapshots in a view, where there is one tree.
    #[must_use]
    pub const fn snapshots(view: View) -> Self {
        Self(view.number() << MARKET_BITS | SNAPSHOTS)
    }

    /// That of the snapshots of a channel.
    #[must_use]
    pub const fn snapshots_of(self, trees: Trees) -> Self {
        Self(self.view().number() << MARKET_BITS | (SNAPSHOTS - trees.of(self)))
    }

    /// Out of a packet.
    #[must_use]
    pub fn new(number: u32) -> Option<Self> {
        let known = View::ALL.into_iter().any(|view| view.number() == number >> MARKET_BITS);
        known.then_some(Self(number))
    }

    /// As packets have it.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// What it shows.
    #[must_use]
    pub const fn view(self) -> View {
        match self.0 >> MARKET_BITS {
            1 => View::Orders,
            2 => View::Levels,
            3 => View::Top,
            _ => View::Batches,
        }
    }

    /// The number of its market. That of snapshots is beyond all markets.
    #[must_use]
    pub const fn market(self) -> u32 {
        self.0 & MARKET_MASK
    }

    /// Whether it has snapshots.
    #[must_use]
    pub const fn is_of_snapshots(self) -> bool {
        self.0 & MARKET_MASK >= SNAPSHOTS_MIN
    }
}

/// The release time of a packet that is held until then; `None` for heartbeats, and for snapshots, which may be known when they are sent.
#[must_use]
pub fn held_until(header: &Header) -> Option<u64> {
    let is_news = || ChannelId::new(header.channel).is_some_and(|channel| !channel.is_of_snapshots());
    (header.kind == Kind::Data && header.release_ns > 0 && is_news()).then_some(header.release_ns)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Nodes have room for them all.
    #[test]
    fn a_venue_at_its_limits_has_no_more_channels_than_there_may_be() {
        let trees = Trees::new(TREES_MAX).unwrap();
        let instruments = (0..INSTRUMENTS_MAX).map(InstrumentId);
        let books = instruments.flat_map(|market| View::BOOKS.map(|view| ChannelId::instrument(view, market)));
        let batches = (0..BATCH_MARKETS_MAX as u16).map(|market| ChannelId::batches(BatchMarketId(market)));
        let mut channels: BTreeSet<ChannelId> = books.chain(batches).collect();
        let snapshots: Vec<ChannelId> = channels.iter().map(|channel| channel.snapshots_of(trees)).collect();
        channels.extend(snapshots);
        assert_eq!(channels.len(), CHANNELS_MAX);
    }

    #[test]
    fn channels_have_their_numbers() {
        let orders = ChannelId::instrument(View::Orders, InstrumentId(5));
        assert_eq!((orders.get(), orders.view(), orders.is_of_snapshots()), (0x0100_0005, View::Orders, false));
        assert_eq!(ChannelId::batches(BatchMarketId(7)).get(), 0x0400_0007);
        for view in View::ALL {
            let snapshots = ChannelId::snapshots(view);
            assert_eq!((snapshots.view(), snapshots.is_of_snapshots()), (view, true));
            assert_eq!(ChannelId::new(snapshots.get()), Some(snapshots));
        }
        assert_eq!((ChannelId::new(5), ChannelId::new(0x0500_0000)), (None, None));
    }

    #[test]
    fn news_alone_is_held() {
        let news = ChannelId::instrument(View::Top, InstrumentId(5));
        let held = |channel, kind, release_ns| {
            let (count, tree, packet, first, sent_ns) = (1, 1, 1, 1, 1);
            held_until(&Header { kind, count, channel, tree, packet, first, sent_ns, release_ns })
        };
        assert_eq!(held(news.get(), Kind::Data, 7), Some(7));
        let not_held = [
            held(news.get(), Kind::Data, 0),
            held(news.get(), Kind::Heartbeat, 7),
            held(news.snapshots_of(Trees::ONE).get(), Kind::Data, 7),
            held(0, Kind::Data, 7),
        ];
        assert_eq!(not_held, [None; 4]);
    }

    #[test]
    fn markets_are_spread_over_trees_and_their_snapshots_travel_with_them() {
        assert_eq!((Trees::new(0), Trees::new(TREES_MAX + 1)), (None, None));
        for count in [1, 2, 7, TREES_MAX] {
            let trees = Trees::new(count).unwrap();
            let mut markets = vec![0; count as usize];
            for market in 0..10 * count {
                for view in View::BOOKS {
                    let channel = ChannelId::instrument(view, InstrumentId(market));
                    let snapshots = channel.snapshots_of(trees);
                    assert!(snapshots.is_of_snapshots() && snapshots.view() == view, "{channel:?}");
                    assert_eq!(trees.of(snapshots), trees.of(channel));
                    markets[trees.of(channel) as usize] += 1;
                }
            }
            assert!(markets.iter().all(|markets| *markets == 30), "evenly: {markets:?}");
        }
        let channel = ChannelId::instrument(View::Top, InstrumentId(5));
        assert_eq!(channel.snapshots_of(Trees::ONE), ChannelId::snapshots(View::Top));
    }
}
