//! A batch market of a saved publisher.

use walras_types::{AssetId, AssetPlaces};
use walras_wire::DecodeError;
use walras_wire::codec::{Reader, Wire, Writer};

use super::BatchMarket;
use crate::channel::{ChannelId, View};
use crate::message::{AssetCleared, Message};
use crate::publisher::Views;
use crate::publisher::outbox::Outbox;
use crate::publisher::saved::{get_head, get_message, put_head, put_message};

impl BatchMarket {
    pub(in crate::publisher) fn save(&self, w: &mut Writer<'_>) {
        put_message(w, self.defined.into());
        put_message(w, self.phase.into());
        put_head(w, &self.changed_by);
        if let Some(outbox) = &self.outbox {
            w.u64(outbox.next());
        }
        w.u16(self.assets.len() as u16);
        for (asset, sold) in self.assets.iter().zip(&self.sold) {
            asset.put(w);
            w.u64(*sold);
        }
        w.u8(u8::from(self.cleared.is_some()));
        if let Some((cleared, assets)) = &self.cleared {
            put_message(w, (*cleared).into());
            w.u16(assets.len() as u16);
            assets.iter().for_each(|asset| put_message(w, (*asset).into()));
        }
    }

    pub(in crate::publisher) fn restore(r: &mut Reader<'_>, views: Views, number: u32) -> Result<Self, DecodeError> {
        let defined = get_message(r, "a batch market's definition", |message| match message {
            Message::BatchMarketDefined(defined) => (u32::from(defined.market.0) == number).then_some(defined),
            _ => None,
        })?;
        let phase = get_message(r, "a batch market's phase", |message| match message {
            Message::BatchPhaseChanged(phase) => Some(phase),
            _ => None,
        })?;
        let changed_by = get_head(r)?;
        let has_outbox = views.has(View::Batches);
        let outbox = if has_outbox { Some(Outbox::restore(r, ChannelId::batches(defined.market))?) } else { None };
        let (mut assets, mut sold) = (Vec::new(), Vec::new());
        for _ in 0..r.u16()? {
            assets.push(AssetId::get(r)?);
            sold.push(r.u64()?);
        }
        let places = r.checked(AssetPlaces::of(&assets).ok(), "assets of a venue, each once")?;
        let is_cleared = r.u8()?;
        let cleared = match is_cleared {
            0 => None,
            1 => {
                let cleared = get_message(r, "a block", |message| match message {
                    Message::BatchCleared(cleared) => Some(cleared),
                    _ => None,
                })?;
                Some((cleared, prices(r, assets.len())?))
            }
            _ => return Err(r.expected("0 (no block yet) or 1")),
        };
        Ok(Self { defined, phase, assets, places, sold, cleared, changed_by, outbox, is_listed: false })
    }
}

fn prices(r: &mut Reader<'_>, count_max: usize) -> Result<Vec<AssetCleared>, DecodeError> {
    let count = r.u16()?;
    r.checked((usize::from(count) <= count_max).then_some(()), "prices of the market's assets")?;
    let mut prices = Vec::new();
    for _ in 0..count {
        prices.push(get_message(r, "an asset's price", |message| match message {
            Message::AssetCleared(price) => Some(price),
            _ => None,
        })?);
    }
    Ok(prices)
}
