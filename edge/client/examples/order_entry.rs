//! Buys by binary order entry: `cargo run -p walras-client --example order_entry HOST:PORT KEYFILE ACCOUNT INSTRUMENT_ID TICKS LOTS`.

use walras_client::{EntrySession, read_key};
use walras_gateway::session::{ClientEvent, ClientSettings};
use walras_types::{AccountId, ClientOrderId, InstrumentId, OrderTerms, PriceTicks, Side, SizeLots};
use walras_wire::order_entry::ReportEvent;
use walras_wire::{Command, NewOrder, OrderCommand};

/// Enters an order; its first execution report.
pub(crate) fn run(args: &[String]) -> Result<ReportEvent, Box<dyn std::error::Error>> {
    let [address, key, account, instrument, ticks, lots] = args else { return Err("give all six arguments".into()) };
    let (account, instrument) = (AccountId(account.parse()?), InstrumentId(instrument.parse()?));
    let price = PriceTicks::new(ticks.parse()?).ok_or("no such price")?;
    let terms = OrderTerms::limit(Side::Buy, price, SizeLots::new(lots.parse()?));
    let token = walras_access::random_u64(); // the session's name, and here the order's too
    let order = NewOrder { account, instrument, client_order_id: ClientOrderId(token), terms };
    let settings = ClientSettings::new(vec![address.clone()], token);
    let mut session = EntrySession::new(settings, read_key(key.as_ref())?, None).ok_or("no address")?;
    loop {
        match session.wait()? {
            ClientEvent::LoggedOn { .. } => _ = session.submit(&Command::Order(OrderCommand::New(order)))?,
            ClientEvent::Report { event, .. } => return Ok(event),
            ClientEvent::Answer { rejected: None, .. } => {}
            other => return Err(format!("{other:?}").into()),
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("{:?}", run(&std::env::args().skip(1).collect::<Vec<_>>())?);
    Ok(())
}
