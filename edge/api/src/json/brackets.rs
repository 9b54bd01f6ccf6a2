//! An order that is asked for with its exits: as many commands, of which the exits' come first.

use serde::Deserialize;
use walras_access::Refusal;
use walras_ports::Catalog;
use walras_types::{AccountId, ClientOrderId, Display, OrderTerms, OrderType, TimeInForce};
use walras_wire::{Command, LinkedOrder, NewOrder, OrderCommand};

use super::outcome::Subject;
use super::requests::{OrderRequest, client_order, field, instrument};

/// A take-profit or a stop-loss of an order.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExitRequest {
    client_order_id: Option<String>,
    trigger: String,
    price: Option<String>,
}

/// An order with its exits, as commands and what their answers are about.
#[derive(Clone, Debug)]
pub struct BracketCommands {
    /// What each is called in the request.
    pub exits: Vec<(&'static str, Command, Subject)>,
    /// The order itself.
    pub entry: (Command, Subject),
}

impl OrderRequest {
    /// Whether it has exits.
    #[must_use]
    pub const fn has_exits(&self) -> bool {
        self.take_profit.is_some() || self.stop_loss.is_some()
    }

    /// How many it has.
    #[must_use]
    pub fn exit_count(&self) -> u16 {
        u16::from(self.take_profit.is_some()) + u16::from(self.stop_loss.is_some())
    }

    /// The commands of an order with exits. `fresh` names those that the client did not.
    pub fn bracket(
        &self,
        account: AccountId,
        catalog: &Catalog,
        fresh: impl Fn() -> ClientOrderId,
    ) -> Result<BracketCommands, Refusal> {
        let entry = self.command_alone(account, catalog, &fresh)?;
        let scale = instrument(catalog, &self.instrument)?;
        let terms = self.terms(scale)?;
        let mut exits = Vec::new();
        for (what, asked) in [("take_profit", &self.take_profit), ("stop_loss", &self.stop_loss)] {
            let Some(ExitRequest { client_order_id, trigger, price }) = asked else { continue };
            let called = match client_order_id {
                Some(text) => client_order(text)?,
                None => fresh().into(),
            };
            let trigger = field(&format!("{what}.trigger"), scale.parse_price(trigger))?;
            let price = price.as_deref().map(|text| field(&format!("{what}.price"), scale.parse_price(text))).transpose()?;
            let order_type = match (what, price) {
                ("take_profit", None) => OrderType::TakeProfit { trigger },
                ("take_profit", Some(price)) => OrderType::TakeProfitLimit { trigger, price },
                (_, None) => OrderType::Stop { trigger },
                (_, Some(price)) => OrderType::StopLimit { trigger, price },
            };
            let terms = OrderTerms {
                side: terms.side.opposite(),
                order_type,
                time_in_force: TimeInForce::GoodTillCancel,
                display: Display::Full,
                min_size: None,
                ..terms
            };
            let subject = Subject { account, instrument: scale.spec.instrument, called };
            let order = NewOrder { account, instrument: subject.instrument, client_order_id: called.id, terms };
            let exit = LinkedOrder::exit(&order, entry.1.called.id, called.name);
            exits.push((what, Command::Order(OrderCommand::NewLinked(exit)), subject));
        }
        Ok(BracketCommands { exits, entry })
    }
}
