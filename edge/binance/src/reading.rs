//! What texts of parameters ask, without a venue behind them: for tools that look for a text which breaks the reader.

use std::sync::Arc;

use walras_ports::Catalog;
use walras_types::AccountId;
use walras_wire::{Command, NewOrder, OrderCommand};

use crate::amendments::Amendment;
use crate::brackets::WantedBracket;
use crate::error::Error;
use crate::names::Names;
use crate::order_lists::WantedList;
use crate::orders::{Cancel, Wanted};
use crate::params::{Params, signature, without_signature};

/// What a text asks of one kind of request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Read {
    /// The command of a new order.
    Order(Command),
    /// A cancel, an amendment, or a list of orders.
    Other,
    /// It is refused: the dialect's code and text.
    Refused(i32, String),
}

/// Reads a query and a form as each request that has parameters of orders does.
#[must_use]
pub fn read_all(catalog: &Arc<Catalog>, account: AccountId, query: &str, form: &str) -> Vec<Read> {
    let names = Names::new(Arc::clone(catalog));
    let with = |read: &dyn Fn(&Params) -> Result<Read, Error>| match params(query, form).and_then(|params| read(&params)) {
        Ok(read) => read,
        Err(error) => Read::Refused(error.code, error.text),
    };
    let order = |params: &Params| -> Result<Read, Error> {
        let wanted = Wanted::read(&names, params)?;
        let (instrument, client_order_id) = (wanted.scale.spec.instrument, wanted.called.id);
        let order = NewOrder { account, instrument, client_order_id, terms: wanted.terms };
        params.finish()?;
        // What an amount of quote comes to is known once the book is.
        let is_whole = !wanted.terms.size.is_zero();
        Ok(if is_whole { Read::Order(Command::Order(OrderCommand::New(order))) } else { Read::Other })
    };
    vec![
        with(&order),
        with(&|params| Cancel::read(&names, params, ("orderId", "origClientOrderId"), "newClientOrderId").map(|_| Read::Other)),
        with(&|params| Amendment::read(&names, params).map(|_| Read::Other)),
        with(&|params| WantedList::read(&names, params).map(|_| Read::Other)),
        with(&|params| WantedList::read_old(&names, params).map(|_| Read::Other)),
        with(&|params| WantedBracket::read_oto(&names, params).map(|_| Read::Other)),
        with(&|params| WantedBracket::read_otoco(&names, params).map(|_| Read::Other)),
        with(&|params| {
            params.limit(500, 1_000)?;
            params.symbols()?;
            params.flag("computeCommissionRates")?;
            params.zone()?;
            params.window_size()?;
            params.finish().map(|()| Read::Other)
        }),
    ]
}

/// The parameters of both, without their signatures.
fn params(query: &str, form: &str) -> Result<Params, Error> {
    let mut params = Params::default();
    for text in [query, form] {
        let (text, signed) = without_signature(text);
        signed.map(signature).transpose()?;
        params.add_encoded(&text)?;
    }
    Ok(params)
}
