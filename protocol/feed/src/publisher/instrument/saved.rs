//! An instrument of a saved publisher.

use walras_types::{OrderId, PriceTicks, Side, SizeLots};
use walras_wire::DecodeError;
use walras_wire::codec::{Reader, Wire, Writer};

use super::{Instrument, Standing};
use crate::book::Levels;
use crate::channel::{ChannelId, View};
use crate::id_map::IdMap;
use crate::message::{Message, TopChanged};
use crate::publisher::Views;
use crate::publisher::outbox::Outbox;
use crate::publisher::saved::{get_head, get_message, put_head, put_message};

impl Instrument {
    pub(in crate::publisher) fn save(&self, w: &mut Writer<'_>) {
        put_message(w, self.defined.into());
        put_message(w, self.phase.into());
        put_message(w, self.indicated.into());
        put_head(w, &self.changed_by);
        for outbox in self.outboxes.iter().flatten() {
            w.u64(outbox.next());
        }
        w.u64(self.next_place);
        let mut standing: Vec<(&OrderId, &Standing)> = self.standing.iter().collect();
        standing.sort_unstable_by_key(|(order_id, _)| **order_id);
        w.u32(standing.len() as u32);
        for (order_id, &Standing { side, price, open, shown, place }) in standing {
            order_id.put(w);
            side.put(w);
            price.put(w);
            open.put(w);
            shown.put(w);
            w.u64(place);
        }
    }

    pub(in crate::publisher) fn restore(r: &mut Reader<'_>, views: Views, number: u32) -> Result<Self, DecodeError> {
        let defined = get_message(r, "an instrument's definition", |message| match message {
            Message::InstrumentDefined(defined) => (defined.instrument.0 == number).then_some(defined),
            _ => None,
        })?;
        let phase = get_message(r, "an instrument's phase", |message| match message {
            Message::PhaseChanged(phase) => Some(phase),
            _ => None,
        })?;
        let indicated = get_message(r, "what an auction would trade", |message| match message {
            Message::AuctionIndicated(indicated) => Some(indicated),
            _ => None,
        })?;
        let changed_by = get_head(r)?;
        let mut outboxes = [const { None }; 3];
        for (outbox, view) in outboxes.iter_mut().zip(View::BOOKS) {
            if views.has(view) {
                *outbox = Some(Outbox::restore(r, ChannelId::instrument(view, defined.instrument))?);
            }
        }
        let next_place = r.u64()?;
        let (standing, levels) = orders(r, next_place)?;
        let mut instrument = Self {
            defined,
            phase,
            indicated,
            top: TopChanged::NOTHING,
            changed_by,
            standing,
            levels,
            next_place,
            entering: None,
            changed: Vec::new(),
            outboxes,
            is_listed: false,
        };
        instrument.top = instrument.best();
        Ok(instrument)
    }
}

/// Standing orders by number, and the levels that they make.
fn orders(r: &mut Reader<'_>, next_place: u64) -> Result<(IdMap<Standing>, Levels), DecodeError> {
    let (mut standing, mut levels, mut last) = (IdMap::default(), Levels::default(), None);
    for _ in 0..r.u32()? {
        let order_id = OrderId::get(r)?;
        r.checked((last < Some(order_id)).then_some(()), "orders by number")?;
        last = Some(order_id);
        let (side, price): (Side, PriceTicks) = (Wire::get(r)?, Wire::get(r)?);
        let (open, shown): (SizeLots, SizeLots) = (Wire::get(r)?, Wire::get(r)?);
        let place = r.u64()?;
        let is_sound = !open.is_zero() && shown <= open && place < next_place;
        r.checked(is_sound.then_some(()), "an order that stands")?;
        let shows = levels.change(side, price, SizeLots::ZERO, shown);
        r.checked(if shown.is_zero() { Some(()) } else { shows.ok().map(|_| ()) }, "levels within bounds")?;
        standing.insert(order_id, Standing { side, price, open, shown, place });
    }
    Ok((standing, levels))
}
