//! The client's session of order entry that waits: over a restart of the venue.

use walras_client::{Client, EntrySession};
use walras_gateway::session::{ClientEvent, ClientSettings};
use walras_log_store::RealDisk;
use walras_types::{AccountId, ClientOrderId, InstrumentId, OrderTerms, PriceTicks, Side, SizeLots};
use walras_wire::{Command, NewOrder, OrderCommand};

use crate::support::{Venue, config, restart};

fn bid(id: u64) -> Command {
    let terms = OrderTerms::limit(Side::Buy, PriceTicks::new(116_000).unwrap(), SizeLots::new(5_000));
    let (account, instrument, client_order_id) = (AccountId(0), InstrumentId(0), ClientOrderId(id));
    Command::Order(OrderCommand::New(NewOrder { account, instrument, client_order_id, terms }))
}

/// Waits for the next answer, which is that of this command.
fn answered(session: &mut EntrySession, seq: u64) {
    loop {
        if let ClientEvent::Answer { session_seq, rejected, .. } = session.wait().unwrap() {
            return assert_eq!((session_seq.0, rejected), (seq, None));
        }
    }
}

#[test]
fn a_session_that_waits_goes_on_where_the_venue_starts_again() {
    let mut venue = Venue::start();
    let market = venue.market();
    let address = venue.node().order_entry_address().unwrap().to_string();
    let settings = ClientSettings::new(vec![address.clone()], 9);
    let mut session = EntrySession::new(settings, market.alice_key.clone(), None).unwrap();
    assert!(matches!(session.wait().unwrap(), ClientEvent::LoggedOn { .. }));
    session.submit(&bid(1)).unwrap();
    answered(&mut session, 1);
    venue.stop();
    // It is numbered now, and sent when the venue is back.
    session.submit(&bid(2)).unwrap();
    let mut config = config();
    config.order_entry.listen = address;
    venue.node = Some(restart(RealDisk, &venue.dir, &config));
    answered(&mut session, 2);
    let alice = Client::new(&venue.url(), Some(market.alice_key.clone()));
    let open = alice.signed("GET", "/v1/orders", None).unwrap();
    let names: Vec<&str> =
        open["orders"].as_array().unwrap().iter().filter_map(|order| order["client_order_id"].as_str()).collect();
    assert_eq!(names, ["1", "2"]);
}
