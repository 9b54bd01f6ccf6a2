//! Amendments: a smaller quantity of an open order, which keeps its place in the queue.
//!
//! The dialect says the whole quantity, the venue what is open. So the order is looked at first, and a trade between the look and the
//! command is not taken off: the answer says what the order has then.

use serde_json::{Value, json};
use walras_gateway::ClientOrder;
use walras_ports::{InstrumentScale, OrderKey};
use walras_sequencer::SignedBy;
use walras_types::{AccountId, RejectReason, SizeLots};
use walras_wire::{AmendOrder, Command, OrderCommand};

use crate::app::App;
use crate::error::{Asked, Error, without_outcome};
use crate::names::Names;
use crate::orders::{self, Which, instrument};
use crate::params::{Params, quantity};
use crate::report::{self, Order};
use crate::values::ms;

/// An amendment that was asked for.
#[derive(Clone, Debug)]
pub(crate) struct Amendment {
    symbol: String,
    scale: InstrumentScale,
    which: Which,
    /// How the order is to be called.
    called: Option<ClientOrder>,
    /// The whole quantity, what has traded included.
    size: SizeLots,
}

fn refused(text: &str) -> Error {
    Error::new(-2038, text)
}

impl Amendment {
    /// Reads the parameters of an amendment.
    pub(crate) fn read(names: &Names, params: &Params) -> Result<Self, Error> {
        let (symbol, scale) = instrument(names, params)?;
        let which = orders::which(params, ("orderId", "origClientOrderId"))?;
        let called = params.client_order_id("newClientOrderId")?;
        let text = params.decimal("newQty")?.ok_or_else(|| Error::missing("newQty"))?;
        let size = scale.parse_size(text).map_err(|e| quantity("newQty", e))?;
        Ok(Self { symbol, scale: *scale, which, called, size })
    }

    /// Carries it out.
    pub(crate) async fn carry_out(&self, app: &App, account: AccountId, signed: SignedBy) -> Result<Value, Error> {
        app.venue.catalog_for_commands()?;
        let instrument = self.scale.spec.instrument;
        let unknown = || Error::of(Asked::Amend, RejectReason::UnknownOrder);
        let order = orders::find_open(app, account, instrument, self.which).await?.ok_or_else(unknown)?;
        let amendment = walras_types::Amendment {
            client_order_id: order.called.id,
            price: None,
            trigger: None,
            size: Some(self.open_of(&order)?),
        };
        let command = Command::Order(OrderCommand::Amend(AmendOrder { account, instrument, amendment }));
        let outcome = app.venue.command_by(signed, command).await.map_err(|why| without_outcome(Asked::Amend, why))?;
        if let Some(reason) = outcome.rejected() {
            return Err(Error::of(Asked::Amend, reason));
        }
        let after = orders::find(app, account, instrument, (OrderKey::Venue(order.order_id), None)).await?;
        let after = after.ok_or_else(Error::in_doubt)?;
        Ok(json!({
            "transactTime": ms(outcome.time),
            "executionId": outcome.log_index.0,
            "amendedOrder": report::amended(&after, &self.symbol, &self.scale),
        }))
    }

    /// What is to be open of an order, if it may be amended so.
    fn open_of(&self, order: &Order) -> Result<SizeLots, Error> {
        if self.called.is_some_and(|called| called.id != order.called.id) {
            let text = "Another client order ID for an amended order is not supported: send its own as newClientOrderId, or none.";
            return Err(refused(text));
        }
        if self.size > order.size {
            return Err(refused("Order amend (quantity increase) is not supported."));
        }
        if self.size == order.size {
            return Err(refused("The requested action would change no state; rejecting."));
        }
        let open = SizeLots::new(self.size.get().saturating_sub(order.filled.get()));
        if open.is_zero() {
            return Err(refused("Order amend to no more than what has traded is not supported: cancel the order."));
        }
        Ok(open)
    }
}
