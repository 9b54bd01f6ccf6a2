//! What the operator may do to batch markets.

use axum::extract::State;
use serde::Deserialize;
use serde_json::{Value, json};
use walras_access::Refusal;
use walras_batch_signatures::check_key;
use walras_config as config;
use walras_config::{FEE_SHAPE, WrittenFee};
use walras_ports::{Catalog, batch_name, fee_in_units};
use walras_sequencer::SignedBy;
use walras_types::{AccountId, AssetId, BatchMarketId, BatchPhase, PublicKey, RejectReason};
use walras_wire::{
    AccountCommand, AddBatchAsset, BatchMarketCommand, Command, SetAccountFee, SetAccountKey, SetBatchCurrencies, SetBatchPhase,
    SetIssuer, VenueCommand,
};

use super::admin::apply;
use super::signed::Signed;
use super::{Answer, App, ok};
use crate::json::batches::{hex, unhex};
use crate::json::outcome;
use crate::json::requests::parse;

fn malformed(detail: impl Into<String>) -> Refusal {
    Refusal::new(RejectReason::Malformed, detail)
}

fn batch_named(catalog: &Catalog, name: &str) -> Result<BatchMarketId, Refusal> {
    let unknown = || Refusal::new(RejectReason::UnknownBatchMarket, format!("batch: {name:?}"));
    Ok(catalog.batch_by_name(name).ok_or_else(unknown)?.market)
}

fn asset_named(catalog: &Catalog, key: &str, name: &str) -> Result<AssetId, Refusal> {
    let unknown = || catalog.unknown_asset(key, name);
    Ok(catalog.asset_by_symbol(name).ok_or_else(unknown)?.spec.asset)
}

/// The public key that a text is, if signatures can be made for it.
pub(super) fn public_key(field: &str, text: &str) -> Result<PublicKey, Refusal> {
    let bytes = unhex(text).and_then(|bytes| <[u8; 32]>::try_from(bytes).ok());
    let key =
        PublicKey(bytes.ok_or_else(|| malformed(format!("{field}: give the 64 hexadecimal digits of an Ed25519 public key")))?);
    check_key(&key).map_err(|e| malformed(format!("{field}: {e}")))?;
    Ok(key)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyRequest {
    account_id: u32,
    key: String,
}

pub(super) async fn set_account_key(State(app): State<App>, signed: Signed) -> Answer {
    let by = signed.operator()?;
    let KeyRequest { account_id, key } = parse(&signed.body)?;
    let key = public_key("key", &key)?;
    let command = Command::Account(AccountCommand::SetKey(SetAccountKey { account: AccountId(account_id), key }));
    apply(&app, by, command, json!({"account_id": account_id, "key": hex(&key.0)})).await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct IssuerRequest {
    asset: String,
    account_id: u32,
}

pub(super) async fn set_issuer(State(app): State<App>, signed: Signed) -> Answer {
    let by = signed.operator()?;
    let IssuerRequest { asset, account_id } = parse(&signed.body)?;
    let catalog = app.venue.catalog_for_commands()?;
    let asset = asset_named(&catalog, "asset", &asset)?;
    apply(&app, by, Command::Venue(VenueCommand::SetIssuer(SetIssuer { asset, account: AccountId(account_id) })), json!({})).await
}

/// The keys of `[[batch]]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BatchRequest {
    name: String,
    assets: Vec<String>,
    #[serde(default)]
    currencies: Vec<String>,
    interval_ms: Option<u64>,
    commission: Option<u8>,
    mu: Option<u8>,
    gap_percent_max: Option<u8>,
    unserved_percent_max: Option<u8>,
    intake: Option<String>,
    transactions_max: Option<u32>,
    account_fee: Option<String>,
}

/// Creates a market, says how many of its assets are currencies, adds its assets, says what accounts cost and opens it. Where one of these
/// is refused, those before it stand: the market is there, closed, and declared in the configuration under the same name it is finished. It
/// runs to its end, also where nobody waits for the answer any more.
pub(super) async fn create_batch(State(app): State<App>, signed: Signed) -> Answer {
    let by = signed.operator()?;
    let asked: BatchRequest = parse(&signed.body)?;
    let usual = config::Batch::default();
    let section = config::Batch {
        name: asked.name,
        assets: asked.assets,
        currencies: asked.currencies,
        interval_ms: asked.interval_ms.unwrap_or(usual.interval_ms),
        commission: asked.commission.unwrap_or(usual.commission),
        mu: asked.mu.unwrap_or(usual.mu),
        gap_percent_max: asked.gap_percent_max.unwrap_or(usual.gap_percent_max),
        unserved_percent_max: asked.unserved_percent_max.unwrap_or(usual.unserved_percent_max),
        intake: asked.intake.unwrap_or(usual.intake),
        transactions_max: asked.transactions_max.unwrap_or(usual.transactions_max),
        account_fee: asked.account_fee.unwrap_or(usual.account_fee),
    };
    section.symbol().ok_or_else(|| malformed("name: give 1 to 15 characters of A-Z 0-9 / - . _"))?;
    section.check().map_err(malformed)?;
    let catalog = app.venue.catalog_for_commands()?;
    let named = section.all_assets().map(|name| asset_named(&catalog, "assets", name));
    let assets = named.collect::<Result<Vec<_>, Refusal>>()?;
    let fee = section.account_fee().map_or(Ok(None), |written| fee_in_units(written, &catalog))?;
    let next = app.venue.read(|v| v.engine.batch_markets().len()).await?;
    let market = BatchMarketId(u16::try_from(next).map_err(|_| RejectReason::IdNotNext)?);
    let mut domain = [0; 32];
    getrandom::fill(&mut domain).expect("the operating system gives random bytes");
    let spec = section.spec(market, domain).ok_or(RejectReason::BatchRulesInvalid)?;
    let mut commands = vec![BatchMarketCommand::Create(spec)];
    let currencies = section.currency_count();
    commands.extend(currencies.map(|currencies| BatchMarketCommand::SetCurrencies(SetBatchCurrencies { market, currencies })));
    commands.extend(assets.into_iter().map(|asset| BatchMarketCommand::AddAsset(AddBatchAsset { market, asset })));
    if fee.is_some() {
        commands.push(BatchMarketCommand::SetAccountFee(SetAccountFee { market, fee }));
    }
    commands.push(BatchMarketCommand::SetPhase(SetBatchPhase { market, phase: BatchPhase::Open }));
    let answer = json!({"market_id": market.0, "name": batch_name(&spec), "domain": hex(&domain)});
    let own = app.clone();
    app.venue.run_whole(None, async move { carry_out_each(&own, &by, commands, answer).await }).await?
}

/// Carries out an operator's commands in their order, up to one that is refused. The answer is the last one's, with what was to be added.
async fn carry_out_each(app: &App, by: &SignedBy, commands: Vec<BatchMarketCommand>, added: Value) -> Answer {
    let (mut signed, mut answer) = (by.clone(), Value::Null);
    for command in commands {
        let outcome = app.venue.command_by(signed, Command::BatchMarket(command)).await?;
        answer = outcome::operator(&outcome, added.clone())?;
        signed = by.further();
    }
    Ok(ok(&answer))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PhaseRequest {
    batch: String,
    phase: String,
}

pub(super) async fn set_batch_phase(State(app): State<App>, signed: Signed) -> Answer {
    let by = signed.operator()?;
    let PhaseRequest { batch, phase } = parse(&signed.body)?;
    let catalog = app.venue.catalog_for_commands()?;
    let market = batch_named(&catalog, &batch)?;
    let phase = match phase.as_str() {
        "open" => BatchPhase::Open,
        "closed" => BatchPhase::Closed,
        other => return Err(malformed(format!("phase: {other:?} is none of closed, open")).into()),
    };
    apply(&app, by, Command::BatchMarket(BatchMarketCommand::SetPhase(SetBatchPhase { market, phase })), json!({})).await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AccountFeeRequest {
    batch: String,
    account_fee: String,
}

pub(super) async fn set_account_fee(State(app): State<App>, signed: Signed) -> Answer {
    let by = signed.operator()?;
    let AccountFeeRequest { batch, account_fee } = parse(&signed.body)?;
    let catalog = app.venue.catalog_for_commands()?;
    let market = batch_named(&catalog, &batch)?;
    let written = WrittenFee::read(&account_fee).ok_or_else(|| malformed(format!("account_fee: {account_fee:?}: {FEE_SHAPE}")))?;
    let command =
        Command::BatchMarket(BatchMarketCommand::SetAccountFee(SetAccountFee { market, fee: fee_in_units(written, &catalog)? }));
    apply(&app, by, command, json!({})).await
}
