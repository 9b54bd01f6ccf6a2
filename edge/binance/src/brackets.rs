//! Order lists with a working order and one or two pending ones (OTO, OTOCO): an entry and its exits.
//!
//! The venue takes exits before their entry, so a list is two or three commands, the pending orders first. Where one is refused, those
//! before it are cancelled again, and nothing is left of the list.

use serde_json::Value;
use walras_gateway::ClientOrder;
use walras_sequencer::SignedBy;
use walras_types::{AccountId, InstrumentId, OrderId};
use walras_wire::{CancelOrder, Command, OrderCommand};

use crate::app::App;
use crate::client_ids;
use crate::error::Error;
use crate::names::Names;
use crate::order_lists::{OF_A_LEG, described};
use crate::orders::Wanted;
use crate::params::Params;
use crate::report;

/// A list that was asked for.
pub(crate) struct WantedBracket {
    name: ClientOrder,
    entry: Wanted,
    exits: Vec<Wanted>,
}

impl WantedBracket {
    /// Reads the parameters of `orderList/oto`.
    pub(crate) fn read_oto(names: &Names, params: &Params) -> Result<Self, Error> {
        Self::read(names, params, &["pending"])
    }

    /// Reads those of `orderList/otoco`.
    pub(crate) fn read_otoco(names: &Names, params: &Params) -> Result<Self, Error> {
        Self::read(names, params, &["pendingAbove", "pendingBelow"])
    }

    fn read(names: &Names, params: &Params, pending: &[&str]) -> Result<Self, Error> {
        let name = params.client_order_id("listClientOrderId")?.unwrap_or_else(client_ids::fresh);
        params.text("newOrderRespType")?;
        let entry = Wanted::read(names, &leg(params, "working", "working")?)?;
        let of = |prefix: &&str| Wanted::read(names, &leg(params, prefix, "pending")?);
        let exits = pending.iter().map(of).collect::<Result<Vec<_>, Error>>()?;
        for exit in &exits {
            if exit.terms.side == entry.terms.side || exit.terms.size != entry.terms.size {
                let text = "Pending orders of the working order's side or of another quantity are not supported for this symbol.";
                return Err(Error::new(-2010, text));
            }
            if exit.terms.order_type.trigger().is_none() {
                let text = "Pending orders without a stopPrice are not supported for this symbol.";
                return Err(Error::new(-2010, text));
            }
        }
        Ok(Self { name, entry, exits })
    }

    /// How many orders it has.
    pub(crate) fn order_count(&self) -> u64 {
        1 + self.exits.len() as u64
    }

    /// Places all of them, or none, also where nobody waits for the answer any more.
    pub(crate) async fn place(self, app: &App, account: AccountId, signed: SignedBy) -> Result<Value, Error> {
        let own = app.clone();
        app.run_whole(account, async move { self.place_each(&own, account, signed).await }).await
    }

    async fn place_each(self, app: &App, account: AccountId, signed: SignedBy) -> Result<Value, Error> {
        let Self { name, entry, exits } = self;
        let (symbol, instrument, called) = (entry.symbol.clone(), entry.scale.spec.instrument, entry.called);
        // The signature goes into the log with the first command.
        let mut signed = Some(signed);
        let (mut placed, mut answers) = (Vec::new(), Vec::new());
        let orders: Vec<Wanted> = exits.into_iter().map(|exit| exit.exit_of(called)).chain([entry]).collect();
        for wanted in orders {
            let exit = wanted.called;
            match wanted.place(app, account, signed.take().unwrap_or(SignedBy::NOBODY)).await {
                Ok(answer) => {
                    placed.push(exit);
                    answers.push(answer);
                }
                Err(error) => {
                    // Where the entry may have been carried out, its exits are what protects it.
                    if !error.is_in_doubt() {
                        take_out(app, account, instrument, &placed).await;
                    }
                    return Err(error);
                }
            }
        }
        answers.rotate_right(1);
        let id = answers.iter().filter_map(|answer| answer["orderId"].as_u64()).max().unwrap_or(0);
        let id = report::list_id(OrderId(id), OrderId(id));
        let was_met = answers[0]["fills"].as_array().is_some_and(|fills| !fills.is_empty());
        let is_gone = !was_met && answers[0]["status"] == "EXPIRED";
        if is_gone {
            // The venue refuses what is to fill or be killed, so its exits still wait for it.
            take_out(app, account, instrument, &placed[..placed.len() - 1]).await;
        }
        for (place, answer) in answers.iter_mut().enumerate() {
            answer["orderListId"] = id.into();
            if place > 0 && !was_met {
                answer["status"] = if is_gone { "EXPIRED" } else { "PENDING_NEW" }.into();
            }
            if let Some(fields) = answer.as_object_mut() {
                fields.remove("fills");
            }
        }
        let time = answers[0]["transactTime"].clone();
        let mut list = described(id, "OTO", &name.to_string(), &symbol, time, &answers);
        list["orderReports"] = answers.into();
        Ok(list)
    }
}

/// Cancels exits whose entry does not come.
async fn take_out(app: &App, account: AccountId, instrument: InstrumentId, exits: &[ClientOrder]) {
    for exit in exits {
        let cancel = CancelOrder { account, instrument, client_order_id: exit.id };
        // One that is gone was cancelled with the other.
        let _ = app.venue.command_by(SignedBy::NOBODY, Command::Order(OrderCommand::Cancel(cancel))).await;
    }
}

/// The parameters of one order of a list, of which side and quantity may be those of several.
fn leg(params: &Params, prefix: &str, shared: &str) -> Result<Params, Error> {
    let mut leg = Params::default();
    for name in ["symbol", "selfTradePreventionMode"] {
        if let Some(value) = params.text(name)? {
            leg.add(name.to_owned(), value.to_owned())?;
        }
    }
    params.required(&format!("{prefix}Type"))?;
    let of_all = [("Side", "side"), ("Quantity", "quantity")].map(|(suffix, name)| (format!("{shared}{suffix}"), name));
    let of_one = OF_A_LEG.map(|(suffix, name)| (format!("{prefix}{suffix}"), name));
    for (from, name) in of_all.into_iter().chain(of_one) {
        if let Some(value) = params.text(&from)? {
            leg.add(name.to_owned(), value.to_owned())?;
        }
    }
    leg.add("newOrderRespType".to_owned(), "FULL".to_owned())?;
    Ok(leg)
}
