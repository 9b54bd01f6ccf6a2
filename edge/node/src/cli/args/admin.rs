//! The words of `walras admin`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use walras_archive::Day;

/// `walras admin`.
#[derive(Debug, Subcommand)]
pub enum AdminCommand {
    /// Defines an asset.
    Asset {
        /// Such as BTC.
        symbol: String,
        /// Digits after the point.
        decimals: u8,
    },
    /// Defines an instrument. It starts closed: see `phase`.
    Instrument(Box<InstrumentArgs>),
    /// Opens an account and prints its id.
    Account {
        /// Key that signs the account's transactions in batch markets: a file of an Ed25519 key, or the 64 hexadecimal digits of a public key.
        #[arg(long, value_name = "KEY")]
        transaction_key: Option<String>,
    },
    /// Gives an account the key that signs its transactions in batch markets.
    ///
    /// Where the key before was stolen, suspend the account first (docs/operations.md, "Keys").
    TransactionKey {
        /// Whose.
        account: u32,
        /// A file of an Ed25519 key, or the 64 hexadecimal digits of a public key.
        key: String,
    },
    /// Lets an account issue and burn an asset by transactions of batch markets.
    Issuer {
        /// Which asset.
        asset: String,
        /// Who.
        account: u32,
    },
    /// Opens or closes a batch market.
    BatchPhase {
        /// Which.
        batch: String,
        /// To what.
        #[arg(value_parser = ["open", "closed"])]
        phase: String,
    },
    /// Sets what each account costs that a transaction of a batch market opens.
    AccountFee {
        /// Which.
        batch: String,
        /// An amount and an asset, such as `0.5 USD`; or `none`.
        #[arg(required = true, num_args = 1..=2, value_name = "FEE")]
        fee: Vec<String>,
    },
    /// Lists accounts.
    Accounts {
        /// The first id.
        #[arg(long, default_value_t = 0)]
        from: u32,
        /// How many.
        #[arg(long, default_value_t = 100)]
        limit: u32,
    },
    /// Shows an account: balances, positions, and the limits that bind it.
    Show {
        /// Its id.
        account: u32,
    },
    /// Credits an account.
    Deposit(TransferArgs),
    /// Debits an account.
    Withdraw(TransferArgs),
    /// Shows the fees collected in each asset, or moves those in one to an account.
    Fees {
        /// To whom; without it they are shown.
        #[arg(requires = "asset")]
        account: Option<u32>,
        /// Of what.
        asset: Option<String>,
    },
    /// Sets an account's limits in an instrument. What is not given: 10000 open orders, orders of 1000000000 lots, any position.
    Limits(LimitsArgs),
    /// Moves an instrument to another trading phase.
    Phase {
        /// Which.
        instrument: String,
        /// To what.
        #[arg(value_parser = ["closed", "pre_open", "opening_auction", "continuous", "halt", "closing_auction"])]
        phase: String,
    },
    /// Says whose an instrument is, where there are several shards. Tell the shard that has it first.
    InstrumentShard {
        /// Which.
        instrument: String,
        /// Whose.
        shard: u8,
    },
    /// Suspends or reinstates an account.
    Status {
        /// Which.
        account: u32,
        /// To what.
        #[arg(value_parser = ["active", "suspended"])]
        status: String,
    },
    /// Makes a key at the venue and prints it once, or registers a public key.
    Key(KeyArgs),
    /// Lists keys.
    Keys,
    /// Revokes a key.
    Revoke {
        /// Which.
        key_id: String,
    },
    /// Writes a snapshot.
    Snapshot,
}

/// `walras admin instrument`.
#[derive(Debug, Args)]
pub struct InstrumentArgs {
    /// Such as BTC/USD.
    pub symbol: String,
    /// What is traded.
    pub base: String,
    /// What it is paid with.
    pub quote: String,
    /// Smallest step of the price, in quote per base.
    #[arg(long)]
    pub tick_size: String,
    /// Smallest step of the size, in base.
    #[arg(long)]
    pub lot_size: String,
    /// Centre of the price band until an auction trades, and of the collar until the first trade.
    #[arg(long)]
    pub reference_price: String,
    /// Maker fee in parts per million; negative for a rebate.
    #[arg(long, default_value_t = 0, allow_hyphen_values = true)]
    pub maker_fee_ppm: i32,
    /// Taker fee in parts per million.
    #[arg(long, default_value_t = 0)]
    pub taker_fee_ppm: i32,
    /// How far from the last trade a limit may lie, in ppm; before any trade from the reference price, for a stop from its trigger.
    #[arg(long)]
    pub collar_ppm: Option<u32>,
    /// How far from the reference price a trade may lie before the instrument halts, in ppm. An auction's price becomes the reference.
    #[arg(long)]
    pub band_ppm: Option<u32>,
    /// How an incoming order is shared within a price level; first in, first out without it.
    #[arg(long, value_parser = ["price_time", "pro_rata", "top_pro_rata", "split"])]
    pub allocation: Option<String>,
    /// Smallest share of pro_rata, top_pro_rata and split, in base; one lot without it.
    #[arg(long, value_name = "SIZE", requires = "allocation")]
    pub allocation_min_size: Option<String>,
    /// Of top_pro_rata: most that the order which set the price gets ahead of the others, in base.
    #[arg(long, value_name = "SIZE", requires = "allocation", required_if_eq("allocation", "top_pro_rata"))]
    pub allocation_top_size_max: Option<String>,
    /// Of split: how much of the incoming size goes first in, first out; the rest pro rata.
    #[arg(long, value_name = "PERCENT", requires = "allocation", required_if_eq("allocation", "split"), value_parser = clap::value_parser!(u8).range(0..=100))]
    pub allocation_fifo_percent: Option<u8>,
    /// Limits of every account that has none of its own in the instrument; see also `limits`.
    #[command(flatten)]
    pub default_limits: LimitFlags,
}

/// Limits in an instrument. What is not given: 10000 open orders, orders of 1000000000 lots, any position.
#[derive(Debug, Args)]
pub struct LimitFlags {
    /// Largest order, in base.
    #[arg(long, value_name = "SIZE")]
    pub order_size_max: Option<String>,
    /// Largest order, in quote.
    #[arg(long, value_name = "AMOUNT")]
    pub order_value_max: Option<String>,
    /// Most open orders of an account.
    #[arg(long, value_name = "NUMBER")]
    pub open_orders_max: Option<u32>,
    /// Largest position of an account, in base.
    #[arg(long, value_name = "SIZE")]
    pub position_max: Option<String>,
}

/// `walras admin deposit` and `withdraw`.
#[derive(Debug, Args)]
pub struct TransferArgs {
    /// Whose.
    pub account: u32,
    /// Of what.
    pub asset: String,
    /// How much.
    pub amount: String,
    /// Your number for the transfer, larger than any before on the account. Repeat it to try again without moving twice. Without it
    /// the venue gives the next one.
    #[arg(long, value_name = "NUMBER")]
    pub id: Option<u64>,
}

/// `walras admin limits`.
#[derive(Debug, Args)]
pub struct LimitsArgs {
    /// Whose.
    pub account: u32,
    /// Where.
    pub instrument: String,
    /// How much.
    #[command(flatten)]
    pub limits: LimitFlags,
}

/// `walras admin key`.
#[derive(Debug, Args)]
pub struct KeyArgs {
    /// The account that it acts for; none for an operator's or a transfer relay's key.
    #[arg(long)]
    pub account: Option<u32>,
    /// What it may do; `transfer_relay`: deliver another shard's transfers, nothing else.
    #[arg(long, value_delimiter = ',', default_value = "read,trade", value_parser = ["read", "trade", "operator", "transfer_relay"])]
    pub permissions: Vec<String>,
    /// What to call it in lists, such as the name of its holder: 1 to 64 characters.
    #[arg(long)]
    pub name: Option<String>,
    /// When it expires: after a time, such as 90d, 12h or 30m, or when a day of UTC begins, such as 2027-01-31. Never without it.
    #[arg(long, value_name = "WHEN", value_parser = expiry)]
    pub expires: Option<u64>,
    /// How it signs, where the venue makes it.
    #[arg(long, value_parser = ["ed25519", "hmac-sha256"], conflicts_with = "public_key")]
    pub algorithm: Option<String>,
    /// Id of a key made by `walras keys new`.
    #[arg(long, requires = "public_key")]
    pub key_id: Option<String>,
    /// Its public part. One of 64 begins with a hyphen.
    #[arg(long, requires = "key_id", allow_hyphen_values = true)]
    pub public_key: Option<String>,
    /// Writes the key into this file instead of printing it.
    #[arg(long, value_name = "FILE", conflicts_with = "public_key")]
    pub out: Option<PathBuf>,
}

/// When a key expires, nanoseconds since the Unix epoch.
fn expiry(text: &str) -> Result<u64, String> {
    expiry_from(walras_access::now().0, text)
}

fn expiry_from(now_ns: u64, text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u64); 4] = [("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)];
    if let Some(day) = Day::parse(text) {
        return Ok(day.start().0);
    }
    let (count, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let seconds = UNITS.iter().find(|(name, _)| *name == unit).and_then(|(_, of)| count.parse::<u64>().ok()?.checked_mul(*of));
    let ns = seconds.and_then(|seconds| seconds.checked_mul(1_000_000_000)?.checked_add(now_ns));
    ns.ok_or_else(|| "give a time from now, such as 90d, 12h, 30m or 10s, or a day of UTC, such as 2027-01-31".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_expires_after_a_time_or_when_a_day_begins() {
        const NOW: u64 = 1_767_225_600_000_000_000;
        let after = |text: &str| expiry_from(NOW, text).unwrap() - NOW;
        let second = 1_000_000_000;
        assert_eq!(["90d", "12h", "30m", "10s"].map(after), [90 * 86_400, 12 * 3_600, 30 * 60, 10].map(|count| count * second));
        assert_eq!(expiry_from(NOW, "2026-01-01"), Ok(NOW));
        for wrong in ["", "d", "12", "1.5h", "-1d", "5y", "2027-02-30", "99999999999999999999d", "999999999999d"] {
            assert!(expiry_from(NOW, wrong).unwrap_err().contains("such as 90d"), "{wrong}");
        }
    }
}
