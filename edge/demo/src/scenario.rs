//! The demo's objects at its venue: assets, an instrument, funded accounts, a key. Created once and found again later.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use walras_access::{Access, generate, now, write_secret};
use walras_batch_signatures::SigningKey;
use walras_gateway::{Algorithm, ClientKey, Permission};
use walras_ports::{Outcome, VenueHandle};
use walras_types::{
    AccountId, Allocation, Amount, AssetId, FeeSchedule, InstrumentId, InstrumentSpec, PriceTicks, RejectReason, RiskLimits,
    SizeLots, Symbol, TradingPhase, TransferId,
};
use walras_wire::{
    AccountCommand, AssetSpec, CollectFees, Command, InstrumentCommand, SetRiskLimits, SetTradingPhase, Transfer, VenueCommand,
};
use zeroize::Zeroizing;

use super::DemoError;
use super::stream::Source;

/// Number of accounts that send the stream's orders.
const CROWD: usize = 8;
/// Quote units of a dollar, and of a tick of a cent on a lot of one share.
const DOLLAR: u64 = 1_000_000;
const CENT: u64 = DOLLAR / 100;

/// Initial funds of each kind of account, in whole shares and dollars.
const USER_FUNDS: (u64, u64) = (1_000, 1_000_000);
const BOT_FUNDS: (u64, u64) = (20_000, 20_000_000);
const CROWD_FUNDS: (u64, u64) = (10_000_000, 10_000_000_000);

/// Maximum number of open orders of a stream's account, which represents many participants.
const STREAM_ORDERS_MAX: u32 = 1_000_000;

/// Position limit of a bot, long or short, in lots: the venue's limit, above the bot's own.
const BOT_POSITION_MAX: u64 = 2_000;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DemoFile {
    version: u32,
    user: u32,
    crowd: Vec<u32>,
    bots: Vec<u32>,
    key: String,
    /// The user's key for FIX; absent in files of earlier versions.
    #[serde(default)]
    fix_key: Option<String>,
    /// The batch market's accounts; absent in files of earlier versions.
    #[serde(default)]
    batch_bots: Vec<BatchBot>,
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct BatchBot {
    account: u32,
    /// Its key, like the user's.
    key: String,
}

/// The demo's part of a venue.
#[derive(Clone)]
pub struct Scenario {
    /// The traded instrument.
    pub instrument: InstrumentId,
    /// Accounts of the stream.
    pub crowd: Vec<AccountId>,
    /// Accounts of the bots.
    pub bots: Vec<AccountId>,
    /// The account of the page's user.
    pub user: AccountId,
    /// The key of the page's user: it signs requests, and transactions of the batch market.
    pub key: Zeroizing<String>,
    /// The user's key for FIX engines, which log on with a password: its secret.
    pub fix_key: Zeroizing<String>,
    batch_bots: Vec<(AccountId, Zeroizing<String>)>,
    base: AssetId,
    quote: AssetId,
}

pub(super) fn apply(venue: &VenueHandle, step: &'static str, command: Command) -> Result<Outcome, DemoError> {
    let refused = |reason| DemoError::Refused { step, reason };
    let outcome = venue.command_blocking(command).map_err(|why| DemoError::NoOutcome { step, why })?;
    match outcome.rejected() {
        Some(reason) => Err(refused(reason)),
        None => Ok(outcome),
    }
}

impl Scenario {
    /// Creates what is missing.
    pub fn prepare(
        venue: &VenueHandle,
        access: &Access,
        data: &Path,
        source: &Source,
        (bot_count, batch_bot_count): (u32, u32),
    ) -> Result<Self, DemoError> {
        let quote = asset(venue, "USD", 6)?;
        let base = asset(venue, source.symbol(), 0)?;
        let instrument = instrument(venue, source, base, quote)?;
        let path = data.join("demo.json");
        let mut file = match read_file(&path)? {
            Some(file) => file,
            None => DemoFile {
                version: 1,
                user: account(venue)?.0,
                crowd: Vec::new(),
                bots: Vec::new(),
                key: generate(Algorithm::Ed25519).to_token().as_str().to_owned(),
                fix_key: None,
                batch_bots: Vec::new(),
            },
        };
        // A demo of an earlier version has a key that cannot sign transactions.
        if ClientKey::from_token(&file.key).is_ok_and(|key| key.ed25519_seed().is_none()) {
            file.key = generate(Algorithm::Ed25519).to_token().as_str().to_owned();
        }
        let new_fix_key = || generate(Algorithm::HmacSha256).to_token().as_str().to_owned();
        let fix_key = Zeroizing::new(file.fix_key.get_or_insert_with(new_fix_key).clone());
        while file.crowd.len() < CROWD {
            file.crowd.push(account(venue)?.0);
        }
        while file.bots.len() < bot_count as usize {
            file.bots.push(account(venue)?.0);
        }
        while file.batch_bots.len() < batch_bot_count as usize {
            let key = generate(Algorithm::Ed25519).to_token().as_str().to_owned();
            file.batch_bots.push(BatchBot { account: account(venue)?.0, key });
        }
        let text = serde_json::to_string_pretty(&file).expect("strings and numbers always encode");
        write_secret(&path, text.as_bytes())?;

        let user = AccountId(file.user);
        let invalid = |detail: String| DemoError::File { path: path.display().to_string(), detail };
        for text in [file.key.as_str(), fix_key.as_str()] {
            let key = ClientKey::from_token(text).map_err(|e| invalid(e.to_string()))?;
            if !access.list().iter().any(|known| known["key_id"] == key.key_id().as_str()) {
                let permissions = [Permission::Read, Permission::Trade].into_iter().collect();
                access.add(key.record(Some(user), permissions).map_err(|e| invalid(e.to_string()))?).map_err(DemoError::Key)?;
            }
        }
        let scenario = Self {
            instrument,
            crowd: file.crowd.iter().copied().map(AccountId).collect(),
            bots: file.bots.iter().take(bot_count as usize).copied().map(AccountId).collect(),
            user,
            key: Zeroizing::new(file.key.clone()),
            fix_key,
            batch_bots: (file.batch_bots.iter().take(batch_bot_count as usize))
                .map(|bot| (AccountId(bot.account), Zeroizing::new(bot.key.clone())))
                .collect(),
            base,
            quote,
        };
        scenario.fund(venue, user, USER_FUNDS)?;
        for &bot in &scenario.bots {
            scenario.fund(venue, bot, BOT_FUNDS)?;
            let limits =
                RiskLimits { position_lots_max: SizeLots::new(BOT_POSITION_MAX), open_orders_max: 8, ..RiskLimits::STANDARD };
            apply(
                venue,
                "limit a bot",
                Command::Account(AccountCommand::SetRiskLimits(SetRiskLimits { account: bot, instrument, limits })),
            )?;
        }
        scenario.top_up(venue)?;
        scenario.open(venue)?;
        Ok(scenario)
    }

    /// The key with which the page's user signs transactions.
    pub(super) fn user_signs(&self) -> Option<SigningKey> {
        signing_key(&self.key)
    }

    /// The bots of the batch market, with their signing keys.
    pub(super) fn batch_bots(&self) -> Vec<(AccountId, SigningKey)> {
        self.batch_bots.iter().filter_map(|(account, key)| Some((*account, signing_key(key)?))).collect()
    }

    /// Gives an account its initial funds of each asset of which it has none.
    fn fund(&self, venue: &VenueHandle, account: AccountId, (shares, dollars): (u64, u64)) -> Result<(), DemoError> {
        for (asset, units) in [(self.base, shares), (self.quote, dollars * DOLLAR)] {
            let balance = venue.read_blocking(move |v| v.engine.balance(account, asset)).map_err(refused("show a balance"))?;
            if !balance.available.is_zero() || !balance.reserved.is_zero() {
                continue;
            }
            let amount = Amount::new(units).expect("the demo's funds are far below the largest amount");
            let transfer = Transfer { account, asset, amount, transfer_id: TransferId(now().0) };
            apply(venue, "deposit", Command::Account(AccountCommand::Deposit(transfer)))?;
        }
        Ok(())
    }

    /// Restores the initial funds of the stream's accounts where they changed much: shares and dollars move between these accounts,
    /// the bots and the user, and fees are paid.
    pub(super) fn top_up(&self, venue: &VenueHandle) -> Result<(), DemoError> {
        let quote = self.quote;
        let failed = |reason| DemoError::Refused { step: "show balances", reason };
        if !venue.read_blocking(move |v| v.engine.fees(quote)).map_err(failed)?.is_zero() {
            apply(
                venue,
                "collect fees",
                Command::Account(AccountCommand::CollectFees(CollectFees { asset: quote, account: self.crowd[0] })),
            )?;
        }
        for &account in &self.crowd {
            for (asset, target) in [(self.base, CROWD_FUNDS.0), (self.quote, CROWD_FUNDS.1 * DOLLAR)] {
                let balance = venue.read_blocking(move |v| v.engine.balance(account, asset)).map_err(failed)?;
                let total = balance.available.get() + balance.reserved.get();
                let transfer = |units: u64| Transfer {
                    account,
                    asset,
                    amount: Amount::new(units).expect("the demo's funds are far below the largest amount"),
                    transfer_id: TransferId(now().0),
                };
                if total < target / 2 {
                    apply(venue, "deposit", Command::Account(AccountCommand::Deposit(transfer(target - total))))?;
                } else if total > target * 2 && balance.available.get() >= total - target {
                    apply(venue, "withdraw", Command::Account(AccountCommand::Withdraw(transfer(total - target))))?;
                }
            }
        }
        Ok(())
    }

    /// Opens the instrument, or opens it again after a halt.
    pub(super) fn open(&self, venue: &VenueHandle) -> Result<(), DemoError> {
        let instrument = self.instrument;
        let phase = venue.read_blocking(move |v| v.engine.instrument(instrument).map(|view| view.phase));
        let phase = phase.map_err(|reason| DemoError::Refused { step: "show the instrument", reason })?;
        let to = |phase| Command::Instrument(InstrumentCommand::SetPhase(SetTradingPhase { instrument, phase }));
        let steps: &[TradingPhase] = match phase {
            None | Some(TradingPhase::Continuous) => &[],
            Some(TradingPhase::Closed | TradingPhase::OpeningAuction | TradingPhase::Halt) => &[TradingPhase::Continuous],
            Some(TradingPhase::PreOpen) => &[TradingPhase::OpeningAuction, TradingPhase::Continuous],
            Some(TradingPhase::ClosingAuction) => &[TradingPhase::Closed, TradingPhase::Continuous],
        };
        for &phase in steps {
            apply(venue, "open the instrument", to(phase))?;
        }
        Ok(())
    }
}

fn read_file(path: &PathBuf) -> Result<Option<DemoFile>, DemoError> {
    let invalid = |detail: String| DemoError::File { path: path.display().to_string(), detail };
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(invalid(e.to_string())),
    };
    let file: DemoFile = serde_json::from_slice(&bytes).map_err(|e| invalid(e.to_string()))?;
    if file.version == 1 { Ok(Some(file)) } else { Err(invalid(format!("version {} is not 1", file.version))) }
}

/// The signing key in an Ed25519 key's token.
fn signing_key(token: &str) -> Option<SigningKey> {
    Some(SigningKey::from_seed(&*ClientKey::from_token(token).ok()?.ed25519_seed()?))
}

pub(super) fn refused(step: &'static str) -> impl Fn(RejectReason) -> DemoError {
    move |reason| DemoError::Refused { step, reason }
}

pub(super) fn asset(venue: &VenueHandle, name: &str, decimals: u8) -> Result<AssetId, DemoError> {
    if let Some(known) = venue.catalog().asset_by_symbol(name) {
        return Ok(known.spec.asset);
    }
    let symbol = Symbol::new(name).ok_or(DemoError::Refused { step: "name an asset", reason: RejectReason::Malformed })?;
    let next = venue.read_blocking(|v| v.engine.assets().len()).map_err(refused("count assets"))?;
    let asset = AssetId(u32::try_from(next).expect("assets are numbered in 32 bits"));
    apply(venue, "create an asset", Command::Venue(VenueCommand::CreateAsset(AssetSpec { asset, symbol, decimals })))?;
    Ok(asset)
}

fn account(venue: &VenueHandle) -> Result<AccountId, DemoError> {
    let next = AccountId(venue.read_blocking(|v| v.engine.account_count()).map_err(refused("count accounts"))?);
    apply(venue, "open an account", Command::Account(AccountCommand::Create(next)))?;
    Ok(next)
}

fn instrument(venue: &VenueHandle, source: &Source, base: AssetId, quote: AssetId) -> Result<InstrumentId, DemoError> {
    let name = format!("{}/USD", source.symbol());
    if let Some(known) = venue.catalog().instrument_by_symbol(&name) {
        return Ok(known.spec.instrument);
    }
    let symbol = Symbol::new(&name).ok_or(DemoError::Refused { step: "name an instrument", reason: RejectReason::Malformed })?;
    let next = venue.read_blocking(|v| v.engine.instruments().len()).map_err(refused("count instruments"))?;
    let spec = InstrumentSpec {
        instrument: InstrumentId(u32::try_from(next).expect("instruments are numbered in 32 bits")),
        symbol,
        base,
        quote,
        lot_units: 1,
        tick_value_units: CENT,
        allocation: Allocation::PriceTime,
        fees: FeeSchedule { maker_ppm: -20, taker_ppm: 50 },
        collar_ppm: 100_000,
        band_ppm: 200_000,
        reference_price: source.first_price(),
        default_limits: RiskLimits { open_orders_max: STREAM_ORDERS_MAX, ..RiskLimits::STANDARD },
    };
    apply(venue, "create an instrument", Command::Instrument(InstrumentCommand::Create(spec)))?;
    Ok(spec.instrument)
}

/// A price in cents.
pub(super) fn cents(cents: i64) -> PriceTicks {
    PriceTicks::saturating(cents)
}
