//! The texts that the owners of an entry's orders call them by, for the reports of its events. Events have numbers alone.

use walras_gateway::session::OrderNames;
use walras_market_data::OrderHistories;
use walras_types::{ClientOrderId, ClientOrderName, EngineVersion, OrderId};
use walras_wire::{Command, Event, OrderAccepted, OrderEvent, Rejected};

/// Numbers of texts have this bit ([`walras_gateway::ClientOrder`]): of other orders nothing is looked for.
const TEXT_BIT: u64 = 1 << 63;

/// Reports have texts from this version of the engine on: all programs that know it read snapshots of such reports.
const SINCE: EngineVersion = EngineVersion(14);

/// Of the events of one entry, those about orders with texts, by their places.
#[derive(Debug, Default)]
pub(crate) struct EntryNames(Vec<(usize, OrderNames)>);

impl EntryNames {
    /// Takes an entry. `version` is in force after it. `histories` are those from before it: an order that it ends is there, and one that
    /// it lets in is not.
    pub(crate) fn take(&mut self, version: EngineVersion, histories: &OrderHistories, command: Option<&Command>, events: &[Event]) {
        self.0.clear();
        if version < SINCE {
            return;
        }
        let mut entered = None;
        let replaced = command.and_then(|command| replacement(command, events));
        for (at, event) in events.iter().enumerate() {
            let of = move |order_id: OrderId, id: ClientOrderId| name_of(histories, entered, (order_id, id));
            let names = match event {
                Event::Order(OrderEvent::Accepted(e)) => {
                    let name = command.and_then(|command| entered_name(command, e));
                    entered = Some((e.order_id, name));
                    [name, None]
                }
                Event::Order(OrderEvent::Traded(e)) => [&e.maker, &e.taker].map(|party| of(party.order_id, party.client_order_id)),
                Event::Order(OrderEvent::Amended(e)) => {
                    let given = replaced.filter(|(place, _)| *place == at).map(|(_, name)| name);
                    [given.or_else(|| of(e.order_id, e.client_order_id)), None]
                }
                Event::Order(OrderEvent::Cancelled(e)) => [of(e.order_id, e.client_order_id), None],
                Event::Order(OrderEvent::Reduced(e)) => [of(e.order_id, e.client_order_id), None],
                Event::Order(OrderEvent::Triggered(e)) => [of(e.order_id, e.client_order_id), None],
                Event::Rejected(e) => [command.and_then(|command| rejected_name(command, e)), None],
                // The event names its order by the venue's number alone.
                Event::Order(OrderEvent::Replenished(_)) => continue,
                Event::Account(_) | Event::Session(_) | Event::Instrument(_) | Event::BatchMarket(_) => continue,
                Event::Batch(_) | Event::Shard(_) | Event::Venue(_) => continue,
            };
            if names != OrderNames::default() {
                self.0.push((at, names));
            }
        }
    }

    /// The events of the entry that it took last, each with its texts.
    pub(crate) fn with<'e>(&'e self, events: &'e [Event]) -> impl Iterator<Item = (&'e Event, OrderNames)> {
        let mut named = self.0.iter().peekable();
        events.iter().enumerate().map(move |(at, event)| {
            let names = named.next_if(|(of, _)| *of == at).map_or_else(OrderNames::default, |(_, names)| *names);
            (event, names)
        })
    }
}

/// The text of an order: of the last one that the entry let in, or of one that stood before.
fn name_of(
    histories: &OrderHistories,
    entered: Option<(OrderId, Option<ClientOrderName>)>,
    (order_id, id): (OrderId, ClientOrderId),
) -> Option<ClientOrderName> {
    if id.0 & TEXT_BIT == 0 {
        return None;
    }
    match entered {
        Some((entered, name)) if entered == order_id => name,
        _ => histories.get(order_id)?.about?.name,
    }
}

/// The text with which an order was entered.
fn entered_name(command: &Command, e: &OrderAccepted) -> Option<ClientOrderName> {
    let Command::Order(order) = command else { return None };
    let (name, new) = (order.name()?, order.entered()?);
    let is_it = (new.account, new.instrument, new.client_order_id) == (e.account, e.instrument, e.client_order_id);
    is_it.then_some(name)
}

/// The place of the event that says that the command replaced an order, and the text that it gave it.
fn replacement(command: &Command, events: &[Event]) -> Option<(usize, ClientOrderName)> {
    let Command::Order(order) = command else { return None };
    let (name, amend) = (order.replacement_name()?, order.amended()?);
    let is_it = |event: &Event| {
        matches!(event, Event::Order(OrderEvent::Amended(e))
            if (e.account, e.instrument, e.client_order_id)
                == (amend.account, amend.instrument, amend.amendment.client_order_id))
    };
    // What was left to be done before may have amended the order too. A rejection comes last.
    let is_done = !matches!(events.last(), Some(Event::Rejected(_)));
    events.iter().rposition(is_it).filter(|_| is_done).map(|place| (place, name))
}

/// The text of an order that was to be entered.
fn rejected_name(command: &Command, e: &Rejected) -> Option<ClientOrderName> {
    command.name().filter(|_| (command.account(), command.client_order_id()) == (e.account, e.client_order_id))
}

#[cfg(test)]
mod tests {
    use walras_types::{
        AccountId, Amendment, ContentDigest, InstrumentId, LogIndex, OrderTerms, PriceTicks, RejectReason, Side, SizeLots, TimeNs,
    };
    use walras_wire::{
        AmendOrder, CancelReason, InvalidCommand, NamedAmend, NamedOrder, NewOrder, OrderAmended, OrderCancelled, OrderCommand,
        Priority, Resting,
    };

    use super::*;

    const ACCOUNT: AccountId = AccountId(3);
    const AT: InstrumentId = InstrumentId(0);

    fn accepted(order_id: u64, id: ClientOrderId) -> Event {
        Event::Order(OrderEvent::Accepted(OrderAccepted {
            instrument: AT,
            account: ACCOUNT,
            client_order_id: id,
            order_id: OrderId(order_id),
            side: Side::Buy,
            size: SizeLots::new(5),
            price: Some(PriceTicks::MIN),
            resting: Resting { open: SizeLots::new(5), shown: SizeLots::new(5) },
        }))
    }

    fn cancelled(order_id: u64, id: ClientOrderId) -> Event {
        Event::Order(OrderEvent::Cancelled(OrderCancelled {
            instrument: AT,
            account: ACCOUNT,
            client_order_id: id,
            order_id: OrderId(order_id),
            open: SizeLots::new(5),
            reason: CancelReason::Requested,
        }))
    }

    fn amended(order_id: u64, id: ClientOrderId) -> Event {
        Event::Order(OrderEvent::Amended(OrderAmended {
            instrument: AT,
            account: ACCOUNT,
            client_order_id: id,
            order_id: OrderId(order_id),
            side: Side::Buy,
            price: Some(PriceTicks::MIN),
            priority: Priority::Kept,
            resting: Resting { open: SizeLots::new(5), shown: SizeLots::new(5) },
        }))
    }

    #[test]
    fn an_order_has_its_text_from_the_entry_that_lets_it_in_to_the_one_that_ends_it() {
        let (name, id) = (ClientOrderName::new("bid-7").unwrap(), ClientOrderId(TEXT_BIT | 5));
        let terms = OrderTerms::limit(Side::Buy, PriceTicks::MIN, SizeLots::new(5));
        let new = NewOrder { account: ACCOUNT, instrument: AT, client_order_id: id, terms };
        let enters = Command::Order(OrderCommand::NewNamed(NamedOrder::new(&new, name)));
        let (mut histories, mut names, mut records) = (OrderHistories::default(), EntryNames::default(), Vec::new());
        let mut said = |log_index: u64, command: Option<&Command>, events: &[Event]| {
            names.take(SINCE, &histories, command, events);
            histories.on_entry(LogIndex(log_index), TimeNs(1), command, events, &mut records);
            names.with(events).map(|(_, [first, _])| first).collect::<Vec<_>>()
        };
        assert_eq!(said(7, Some(&enters), &[accepted(7, id)]), [Some(name)]);
        // Another order, of a number, and both end.
        let number = ClientOrderId(5);
        assert_eq!(said(8, None, &[accepted(8, number)]), [None]);
        assert_eq!(said(9, None, &[cancelled(8, number), cancelled(7, id)]), [None, Some(name)]);
        // In and out at once, and then it is not known any more.
        assert_eq!(said(10, Some(&enters), &[accepted(10, id), cancelled(10, id)]), [Some(name), Some(name)]);
        assert_eq!(said(11, None, &[cancelled(10, id)]), [None]);
    }

    #[test]
    fn a_replacement_has_the_text_that_it_gives() {
        let [first, second] = ["bid-7", "bid-8"].map(|text| ClientOrderName::new(text).unwrap());
        let (id, number) = (ClientOrderId(TEXT_BIT | 5), ClientOrderId(5));
        let terms = OrderTerms::limit(Side::Buy, PriceTicks::MIN, SizeLots::new(5));
        let new = NewOrder { account: ACCOUNT, instrument: AT, client_order_id: id, terms };
        let enters = Command::Order(OrderCommand::NewNamed(NamedOrder::new(&new, first)));
        let amendment = Amendment { client_order_id: id, price: Some(PriceTicks::MAX), trigger: None, size: None };
        let amend = AmendOrder { account: ACCOUNT, instrument: AT, amendment };
        let replaces = Command::Order(OrderCommand::AmendNamed(NamedAmend { amend, name: second }));
        let (mut histories, mut names, mut records) = (OrderHistories::default(), EntryNames::default(), Vec::new());
        let mut said = |log_index: u64, command: &Command, events: &[Event]| {
            names.take(SINCE, &histories, Some(command), events);
            histories.on_entry(LogIndex(log_index), TimeNs(1), Some(command), events, &mut records);
            names.with(events).map(|(_, [first, _])| first).collect::<Vec<_>>()
        };
        assert_eq!(said(7, &enters, &[accepted(7, id)]), [Some(first)]);
        assert_eq!(said(8, &replaces, &[amended(7, id)]), [Some(second)]);
        // To all else it is the order that entered.
        let plain = Amendment { price: None, size: Some(SizeLots::new(5)), ..amendment };
        let amends = Command::Order(OrderCommand::Amend(AmendOrder { amendment: plain, ..amend }));
        assert_eq!(said(9, &amends, &[amended(7, id)]), [Some(first)]);
        // What was left to be done comes before, and the command may come to nothing.
        let rejected = Event::Rejected(Rejected::of(&replaces, RejectReason::UnknownOrder));
        assert_eq!(said(10, &replaces, &[amended(7, id), rejected]), [Some(first), None]);
        let events = [amended(7, id), amended(8, number), amended(7, id)];
        assert_eq!(said(11, &replaces, &events), [Some(first), None, Some(second)]);
        let about = histories.get(OrderId(7)).unwrap().about.unwrap();
        assert_eq!((about.name, about.terms.unwrap().order_type.limit()), (Some(first), Some(PriceTicks::MAX)));
        names.take(EngineVersion(13), &histories, Some(&replaces), &events[..1]);
        assert_eq!(names.with(&events[..1]).map(|(_, names)| names).collect::<Vec<_>>(), [OrderNames::default()]);
    }

    #[test]
    fn an_order_that_is_rejected_has_its_text() {
        let name = ClientOrderName::new("bid-7");
        let invalid = InvalidCommand {
            account: Some(ACCOUNT),
            instrument: None,
            client_order_id: Some(ClientOrderId(TEXT_BIT | 5)),
            reason: RejectReason::Malformed,
            content: ContentDigest(1),
            name,
        };
        let mut names = EntryNames::default();
        let command = Command::Invalid(invalid);
        let rejected = Rejected::of(&command, RejectReason::Malformed);
        let of_another = Rejected { client_order_id: Some(ClientOrderId(6)), ..rejected };
        let events = [Event::Rejected(rejected), Event::Rejected(of_another)];
        let mut said = |version: u16| {
            names.take(EngineVersion(version), &OrderHistories::default(), Some(&command), &events);
            names.with(&events).map(|(_, names)| names).collect::<Vec<OrderNames>>()
        };
        assert_eq!(said(14), [[name, None], [None, None]]);
        assert_eq!(said(13), [OrderNames::default(); 2], "programs that know no later version do not read it in a snapshot");
    }
}
