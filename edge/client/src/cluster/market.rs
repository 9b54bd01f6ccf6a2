//! What the load trades, and with which accounts and keys.

use std::time::{Duration, Instant};

use serde_json::json;
use walras_access::generate;
use walras_gateway::session::ClientSettings;
use walras_gateway::{Algorithm, ClientKey, Permission};
use walras_market_history::Format;
use walras_replay::venue::VenueOptions;
use walras_types::{AccountId, AssetId, ClientOrderId, InstrumentId, Symbol};
use walras_wire::order_entry::ReportsWanted;
use walras_wire::{Command, OrderCommand};

use crate::error::LoadError;
use crate::http::{Client, ClientError};

pub(super) fn settings(orders: &[String]) -> ClientSettings {
    let retry_delay_ns = 5_000_000;
    ClientSettings {
        reports: ReportsWanted::None,
        retry_delay_ns,
        ..ClientSettings::new(orders.to_vec(), walras_access::random_u64())
    }
}

/// The next free ids of the venue, and symbols that nothing there has: for each of so many markets of the same two assets.
pub(super) fn options(client: &Client, accounts: u32, markets: u32) -> Result<Vec<VenueOptions>, LoadError> {
    let count = |path: &str, field: &str| {
        let answer = client.get(path)?;
        Ok::<_, LoadError>(answer[field].as_array().map_or(0, Vec::len) as u32)
    };
    let (assets, instruments) = (count("/v1/assets", "assets")?, count("/v1/instruments", "instruments")?);
    let first_account = client.get("/v1/status")?["accounts"].as_u64().unwrap_or(0) as u32;
    let symbol = |text: String| Symbol::new(&text).expect("a letter and a number are a symbol");
    let one = |market: u32| VenueOptions {
        base: AssetId(assets),
        base_symbol: symbol(format!("B{assets}")),
        quote: AssetId(assets + 1),
        quote_symbol: symbol(format!("Q{assets}")),
        instrument: InstrumentId(instruments + market),
        symbol: symbol(if market == 0 { format!("B{assets}/Q{assets}") } else { format!("B{assets}/Q{assets}.{market}") }),
        first_account: AccountId(first_account),
        accounts,
        ..VenueOptions::new(Format::Workload)
    };
    Ok((0..markets).map(one).collect())
}

/// Whether a command of the setting up is one market's, and not that of its assets and accounts.
pub(super) fn is_market(command: &Command) -> bool {
    matches!(command, Command::Instrument(_))
}

/// A key that trades for an account, made known to all these replicas.
pub fn account_key(clients: &[Client], account: AccountId) -> Result<ClientKey, LoadError> {
    let key = generate(Algorithm::Ed25519);
    let permissions = [Permission::Read, Permission::Trade].into_iter().collect();
    let record = key.record(Some(account), permissions).map_err(|e| LoadError::Cluster(e.to_string()))?;
    let body = json!({
        "account_id": account.0, "permissions": ["read", "trade"], "key_id": key.key_id().as_str(),
        "public_key": record.credential().to_text().as_str(),
    });
    for client in clients {
        let begun = Instant::now();
        loop {
            match client.signed("POST", "/v1/admin/keys", Some(&body)) {
                Ok(_) => break,
                // A follower hears of the account a moment later.
                Err(ClientError::Refused { name, .. }) if name == "UnknownAccount" && begun.elapsed() < Duration::from_secs(5) => {
                    std::thread::sleep(Duration::from_millis(2)); // pause: another process has to apply what was decided
                }
                Err(e) => return Err(e.into()),
            }
        }
    }
    Ok(key)
}

pub(super) fn rename(command: &mut Command, by: u64) {
    let id = match command {
        Command::Order(OrderCommand::New(order)) => &mut order.client_order_id,
        Command::Order(OrderCommand::Cancel(cancel)) => &mut cancel.client_order_id,
        Command::Order(OrderCommand::Amend(amend)) => &mut amend.amendment.client_order_id,
        _ => return,
    };
    *id = ClientOrderId(id.0 + by);
}
