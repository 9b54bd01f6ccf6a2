//! One batch market as it is published.

mod saved;

use walras_types::{AssetId, AssetPlaces, BatchMarketId, BatchPhase, BatchPrice};
use walras_wire::BatchMarketSpec;

use crate::channel::ChannelId;
use crate::message::{
    AssetCleared, BatchAssetAdded, BatchCleared, BatchIntervalChanged, BatchMarketDefined, BatchPhaseChanged, Head, Message, Place,
};
use crate::publisher::outbox::{Outbox, append};

#[derive(Clone, Debug)]
pub(super) struct BatchMarket {
    defined: BatchMarketDefined,
    phase: BatchPhaseChanged,
    assets: Vec<AssetId>,
    /// Follows from them.
    places: AssetPlaces,
    /// Sold of each asset in the batch that was closed last.
    sold: Vec<u64>,
    /// The last block, and what came to each asset.
    cleared: Option<(BatchCleared, Vec<AssetCleared>)>,
    changed_by: Head,
    outbox: Option<Outbox>,
    is_listed: bool,
}

impl BatchMarket {
    pub(super) fn new(spec: &BatchMarketSpec, outbox: Option<Outbox>, head: Head) -> Self {
        let mut market = Self {
            defined: BatchMarketDefined {
                market: spec.market,
                symbol: spec.symbol,
                interval_ns: spec.interval_ns,
                transactions_max: spec.transactions_max,
            },
            phase: BatchPhaseChanged { phase: BatchPhase::Closed },
            assets: Vec::new(),
            places: AssetPlaces::default(),
            sold: Vec::new(),
            cleared: None,
            changed_by: head,
            outbox,
            is_listed: false,
        };
        market.say(&head, &market.defined.into());
        market
    }

    pub(super) fn list(&mut self) -> bool {
        !std::mem::replace(&mut self.is_listed, true)
    }

    pub(super) fn outbox(&self) -> Option<&Outbox> {
        self.outbox.as_ref()
    }

    pub(super) fn outbox_mut(&mut self) -> Option<&mut Outbox> {
        self.outbox.as_mut()
    }

    pub(super) fn say(&mut self, head: &Head, message: &Message) {
        if let Some(outbox) = &mut self.outbox {
            outbox.push(message, head);
        }
    }

    pub(super) fn asset_added(&mut self, head: &Head, asset: AssetId) {
        let place = self.assets.len() as u16;
        self.assets.push(asset);
        self.places.push(asset);
        self.sold.push(0);
        self.say(head, &BatchAssetAdded { place, asset }.into());
    }

    pub(super) fn phase(&mut self, head: &Head, phase: BatchPhase) {
        self.phase = BatchPhaseChanged { phase };
        self.say(head, &self.phase.into());
    }

    pub(super) fn interval(&mut self, head: &Head, interval_ns: u64) {
        self.defined.interval_ns = interval_ns;
        self.say(head, &BatchIntervalChanged { interval_ns }.into());
    }

    /// A batch was closed: its trades are counted from here on.
    pub(super) fn closed(&mut self) {
        self.sold.fill(0);
    }

    /// An offer sold so many units.
    pub(super) fn sold(&mut self, asset: AssetId, units: u64) {
        if let Some(sold) = self.places.place(asset).and_then(|place| self.sold.get_mut(usize::from(place))) {
            // No more is sold of an asset than there is.
            *sold = sold.saturating_add(units);
        }
    }

    pub(super) fn cleared(&mut self, head: &Head, cleared: BatchCleared) {
        self.say(head, &cleared.into());
        self.cleared = Some((cleared, Vec::new()));
    }

    /// The prices of the block that was cleared by this entry, by place.
    pub(super) fn priced(&mut self, head: &Head, prices: &[Option<BatchPrice>]) {
        let Some((cleared, _)) = self.cleared else { return };
        let of_asset = |((&asset, &price), &sold)| AssetCleared { block: cleared.block, asset, price, sold };
        let assets: Vec<AssetCleared> = self.assets.iter().zip(prices).zip(&self.sold).map(of_asset).collect();
        assets.iter().for_each(|asset| self.say(head, &(*asset).into()));
        self.cleared = Some((cleared, assets));
    }

    pub(super) fn end_entry(&mut self, head: &Head, listed: &mut Vec<ChannelId>) {
        self.is_listed = false;
        self.changed_by = *head;
        if let Some(outbox) = &mut self.outbox
            && outbox.end_entry()
        {
            listed.push(ChannelId::batches(self.defined.market));
        }
    }

    /// Appends the messages that make its state.
    pub(super) fn snapshot(&self, out: &mut Vec<u8>) -> (Head, u64) {
        let head = Head { place: Place::Inner, ..self.changed_by };
        let mut count = 0;
        let mut say = |message: Message| {
            append(&message, &head, out);
            count += 1;
        };
        say(self.defined.into());
        for (place, &asset) in (0..).zip(&self.assets) {
            say(BatchAssetAdded { place, asset }.into());
        }
        say(self.phase.into());
        if let Some((cleared, assets)) = &self.cleared {
            say((*cleared).into());
            assets.iter().for_each(|asset| say((*asset).into()));
        }
        (head, count)
    }

    pub(super) fn market(&self) -> BatchMarketId {
        self.defined.market
    }
}
