//! The command line's words.

mod admin;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use walras_client::load::Mode;

pub(super) use admin::{AdminCommand, InstrumentArgs, KeyArgs, LimitFlags, LimitsArgs, TransferArgs};

use super::batch_ends::Blocks;
use super::session::OnceArgs;

/// A whole exchange in one program: the venue, its clients and its tools.
///
/// Exit status: 0 done; 1 the venue refused; 2 the command line is wrong; 3 the venue could not be reached; 4 a file, the
/// configuration or the machine failed; 5 a log is damaged; 6 a replica stopped by itself.
#[derive(Debug, Parser)]
#[command(name = "walras", version, propagate_version = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// Prints JSON instead of tables.
    #[arg(long, global = true)]
    pub json: bool,
    /// The venue's address; of a cluster several, with commas: the first that answers is asked, and passes on who leads.
    #[arg(long, global = true, env = "WALRAS_URL", default_value = "http://127.0.0.1:7070", value_name = "URL")]
    pub url: String,
    /// File of the key to sign with: one line, `<key id>.<secret>`.
    #[arg(long, visible_alias = "key", global = true, env = "WALRAS_KEY_FILE", value_name = "FILE")]
    pub key_file: Option<PathBuf>,
    /// File of the Ed25519 key that signs transactions of batch markets, where it is another than that of --key-file.
    #[arg(long, global = true, env = "WALRAS_TRANSACTION_KEY_FILE", value_name = "FILE")]
    pub transaction_key_file: Option<PathBuf>,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Runs a venue until SIGINT or SIGTERM.
    Serve(ServeArgs),
    /// Runs a venue in which a real or generated order stream is replayed beside market-making bots.
    Demo(DemoArgs),
    /// Enters an order: limit with --price, else market; --trigger makes it a stop, --take-profit a take-profit.
    Order(Box<OrderArgs>),
    /// Cancels one order, or with --all those of the account.
    Cancel(CancelArgs),
    /// Changes price, trigger or open size of an order.
    Amend(AmendArgs),
    /// Shows an instrument's book.
    Book(BookArgs),
    /// Shows an instrument's last trades.
    Trades(TradesArgs),
    /// Shows the venue's instruments.
    Instruments,
    /// Shows what the venue is doing.
    Status,
    /// Shows the account's balances, positions, orders, fills or transfers; moves its funds to another shard.
    Account(AccountArgs),
    /// Shows the shards of the venue, whose the instruments are, and what is in transit.
    Shards,
    /// Opens and shows sessions, whose commands take effect once, however often they are sent.
    #[command(subcommand)]
    Session(super::session::SessionCommand),
    /// Sells in a batch market, or takes an offer out; signed with an Ed25519 key.
    #[command(subcommand)]
    Offer(OfferCommand),
    /// Looks at the pools of batch markets; creates them, adds to them and takes out, signed with an Ed25519 key.
    #[command(subcommand)]
    Pool(PoolCommand),
    /// Pays another account by a transaction of a batch market; signed with an Ed25519 key.
    Pay(PayArgs),
    /// Looks at batch markets; opens accounts, issues and burns by transactions, signed with an Ed25519 key.
    #[command(subcommand)]
    Batch(BatchCommand),
    /// Operator commands: assets, instruments, phases, accounts, deposits, limits, keys.
    #[command(subcommand)]
    Admin(AdminCommand),
    /// Runs, shows and changes a cluster of replicas.
    #[command(subcommand)]
    Cluster(super::cluster::ClusterCommand),
    /// Makes a key of one's own, or replaces a lost operator's key.
    #[command(subcommand)]
    Keys(KeysCommand),
    /// Runs a leaf gateway: it takes orders, binary and by FIX, and passes them on to a replica.
    Gateway(super::gateway::GatewayArgs),
    /// Runs a relay of market data until it is stopped.
    Relay(super::relay::RelayArgs),
    /// Looks at participants' programs that run in a gateway's process.
    #[command(subcommand)]
    Strategy(super::strategy::StrategyCommand),
    /// Runs recorded history through a book, or through a venue.
    Replay(ReplayArgs),
    /// Clears a batch of offers from a CSV, JSON or Parquet file.
    Clear(ClearArgs),
    /// Measures this machine, or with --instrument a running venue under load.
    Bench(BenchArgs),
    /// Looks into a venue's log, also while the venue runs.
    #[command(subcommand)]
    Log(LogCommand),
    /// Looks into an archive, whether its venue runs or not.
    #[command(subcommand)]
    Archive(ArchiveCommand),
    /// Checks a configuration file, or prints the reference of all keys.
    Config(ConfigArgs),
}

/// `walras serve`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Configuration file (TOML); docs/configuration.md lists its keys.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Data folder; overrides the configuration.
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Address and port; overrides the configuration.
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<String>,
    /// Least important messages that are written to standard error.
    #[arg(long, env = "WALRAS_LOG_LEVEL", value_enum, default_value = "info", value_name = "LEVEL")]
    pub log_level: LogLevel,
    /// How messages are written: for people, or one JSON object a line.
    #[arg(long, env = "WALRAS_LOG_FORMAT", value_enum, default_value = "text", value_name = "FORMAT")]
    pub log_format: LogFormat,
}

/// How important a message is.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum LogLevel {
    /// Something failed.
    Error,
    /// Something should be looked at.
    Warn,
    /// What the venue does.
    Info,
    /// More of it, for whoever looks for a fault.
    Debug,
    /// Everything.
    Trace,
}

/// How messages are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// A line for people.
    Text,
    /// A JSON object.
    Json,
}

/// `walras demo`.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Where and how to serve. The data folder is `.walras/demo` unless given.
    #[command(flatten)]
    pub serve: ServeArgs,
    /// Pace of the stream: 1x, 10x and so on, or max.
    #[arg(long)]
    pub speed: Option<String>,
    /// LOBSTER message file to replay instead of the one that is found, or `synthetic` for a generated stream.
    #[arg(long, value_name = "FILE")]
    pub file: Option<String>,
    /// Market-making bots beside the stream.
    #[arg(long)]
    pub bots: Option<u32>,
    /// Seed of the generated stream and of the bots.
    #[arg(long)]
    pub seed: Option<u64>,
}

/// A side.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum SideArg {
    /// Buys base for quote.
    Buy,
    /// Sells base for quote.
    Sell,
}

impl SideArg {
    /// Its name in the API.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Buy => "buy",
            Self::Sell => "sell",
        }
    }
}

/// `walras order`.
#[derive(Debug, Args)]
pub struct OrderArgs {
    /// Buy or sell.
    pub side: SideArg,
    /// Instrument, such as BTC/USD or BTC-USD.
    pub instrument: String,
    /// How much, in base.
    pub size: String,
    /// Limit price; without it the order is a market order.
    #[arg(long)]
    pub price: Option<String>,
    /// Trigger price of a stop: the order waits until a trade touches it, to buy from below and to sell from above.
    #[arg(long)]
    pub trigger: Option<String>,
    /// Trigger price of a take-profit: as of a stop, to buy from above and to sell from below.
    #[arg(long, value_name = "TRIGGER", conflicts_with = "trigger")]
    pub take_profit: Option<String>,
    /// Distance of a trailing stop from the best price since it came, in quote: its trigger follows the market.
    #[arg(long, value_name = "DISTANCE", conflicts_with_all = ["trigger", "take_profit"])]
    pub trail: Option<String>,
    /// The same in millionths of the price.
    #[arg(long, value_name = "PPM", conflicts_with_all = ["trigger", "take_profit", "trail"])]
    pub trail_ppm: Option<u32>,
    /// Your name for the order: a number, or a text of 1 to 36 characters; a random number without it.
    #[arg(long, value_name = "NAME")]
    pub id: Option<String>,
    /// How long it stands; of a stop, also how long it waits (ioc and fok ones until cancelled).
    #[arg(long, value_parser = ["gtc", "day", "gtt", "ioc", "fok"])]
    pub tif: Option<String>,
    /// With --tif gtt: when it expires, nanoseconds since the Unix epoch.
    #[arg(long, value_name = "NS")]
    pub expires: Option<u64>,
    /// Never takes: what would trade at once is rejected or repriced.
    #[arg(long, value_parser = ["reject", "reprice"], num_args = 0..=1, default_missing_value = "reject")]
    pub post_only: Option<String>,
    /// Shows only so much at a time.
    #[arg(long, value_name = "PEAK", conflicts_with = "hidden")]
    pub iceberg: Option<String>,
    /// Shows nothing.
    #[arg(long)]
    pub hidden: bool,
    /// Trades at least so much at once, or is cancelled.
    #[arg(long, value_name = "SIZE")]
    pub min_size: Option<String>,
    /// Your name for an open order with which it is linked: one cancels the other. Of the same side and size.
    #[arg(long, value_name = "NAME")]
    pub oco_with: Option<String>,
    /// Your name for an order to come of which it is an exit: it stands for what that one has filled. Of the other side and the same size.
    #[arg(long, value_name = "NAME", conflicts_with = "oco_with")]
    pub exit_of: Option<String>,
    /// What happens when it would trade with an order of the same account.
    #[arg(long, value_parser = ["cancel_newest", "cancel_oldest", "cancel_both", "decrement", "allow"])]
    pub self_trade: Option<String>,
    /// So that it takes effect once.
    #[command(flatten)]
    pub once: OnceArgs,
}

/// `walras cancel`.
#[derive(Debug, Args)]
pub struct CancelArgs {
    /// Instrument; with --all, only orders in it.
    #[arg(required_unless_present = "all")]
    pub instrument: Option<String>,
    /// Your name for the order.
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    pub id: Option<String>,
    /// All open orders.
    #[arg(long)]
    pub all: bool,
    /// With --all: only those of one side.
    #[arg(long, requires = "all")]
    pub side: Option<SideArg>,
    /// So that it takes effect once.
    #[command(flatten)]
    pub once: OnceArgs,
}

/// `walras amend`.
#[derive(Debug, Args)]
pub struct AmendArgs {
    /// Instrument.
    pub instrument: String,
    /// Your name for the order.
    pub id: String,
    /// New limit price.
    #[arg(long, required_unless_present_any = ["size", "trigger"])]
    pub price: Option<String>,
    /// New trigger of a stop or take-profit that waits.
    #[arg(long)]
    pub trigger: Option<String>,
    /// New open size.
    #[arg(long)]
    pub size: Option<String>,
    /// So that it takes effect once.
    #[command(flatten)]
    pub once: OnceArgs,
}

/// `walras book`.
#[derive(Debug, Args)]
pub struct BookArgs {
    /// Instrument.
    pub instrument: String,
    /// Levels of a side.
    #[arg(long, default_value_t = 10)]
    pub depth: usize,
}

/// `walras trades`.
#[derive(Debug, Args)]
pub struct TradesArgs {
    /// Instrument.
    pub instrument: String,
    /// How many.
    #[arg(long, default_value_t = 20)]
    pub limit: usize,
}

/// Where a transaction of a batch market goes.
#[derive(Debug, Args)]
pub struct IntoBatch {
    /// The batch market.
    #[arg(long, default_value = "main")]
    pub batch: String,
    /// Only one of the next N blocks may have the transaction; after them its signature is good for nothing. As many as the market has in
    /// about two minutes without it, and any with `none`.
    #[arg(long, value_name = "N|none", value_parser = super::batch_ends::blocks)]
    pub blocks: Option<Blocks>,
}

/// `walras offer`.
#[derive(Debug, Subcommand)]
pub enum OfferCommand {
    /// Offers an amount of one asset for another.
    Sell(OfferSellArgs),
    /// Offers what an amount of one asset costs at most, in another: it brings that amount at least, and more at a better price.
    Buy(OfferBuyArgs),
    /// Takes an offer out of its market.
    Cancel {
        /// The number of the transaction that created it.
        sequence: u64,
        /// Where it goes.
        #[command(flatten)]
        into: IntoBatch,
    },
    /// Shows the account's standing offers.
    List,
}

/// `walras offer sell`.
#[derive(Debug, Args)]
pub struct OfferSellArgs {
    /// How much is sold.
    pub amount: String,
    /// What is sold.
    pub sell: String,
    /// What for.
    pub buy: String,
    /// Least bought for each one sold; any price without it. The whole amount brings at least what this comes to, in whole units: never less.
    #[arg(long)]
    pub price: Option<String>,
    /// Where it goes.
    #[command(flatten)]
    pub into: IntoBatch,
}

/// `walras offer buy`.
#[derive(Debug, Args)]
pub struct OfferBuyArgs {
    /// How much is bought at least, once all of the offer has traded.
    pub amount: String,
    /// What is bought.
    pub buy: String,
    /// What is sold for it.
    pub sell: String,
    /// Most sold for each one bought. The amount times this, rounded up to whole units, is offered.
    #[arg(long)]
    pub price: String,
    /// Where it goes.
    #[command(flatten)]
    pub into: IntoBatch,
}

/// `walras pool`.
#[derive(Debug, Subcommand)]
pub enum PoolCommand {
    /// Shows a market's pools.
    List {
        /// The batch market.
        #[arg(default_value = "main")]
        batch: String,
    },
    /// Shows the account's shares of pools, and what they are worth.
    Shares,
    /// Creates a pool that trades two assets; the account is its first provider.
    Create(PoolCreateArgs),
    /// Adds to a pool, in the ratio of what it has, for shares of it.
    Deposit {
        /// Which pool: the account that created it and the number of its transaction, such as 7:12.
        pool: String,
        /// The most that it takes of its first asset.
        first: String,
        /// The most that it takes of its second asset.
        second: String,
        /// Where it goes.
        #[command(flatten)]
        into: IntoBatch,
    },
    /// Gives shares of a pool back for their part of what it has.
    Withdraw {
        /// Which pool: the account that created it and the number of its transaction, such as 7:12.
        pool: String,
        /// How many shares; all that the account has without it.
        shares: Option<u64>,
        /// Where it goes.
        #[command(flatten)]
        into: IntoBatch,
    },
}

/// `walras pool create`.
#[derive(Debug, Args)]
pub struct PoolCreateArgs {
    /// What it begins with of its first asset.
    pub first_amount: String,
    /// The first asset.
    pub first: String,
    /// What it begins with of its second asset.
    pub second_amount: String,
    /// The second asset.
    pub second: String,
    /// The weights of the two assets, such as 80 20, for a weighted pool; 1 to 1000 each.
    #[arg(long, num_args = 2, value_names = ["FIRST", "SECOND"], conflicts_with = "amplification")]
    pub weights: Option<Vec<u16>>,
    /// The amplification of a stable-swap pool, 1 to 1000000: for assets whose smallest units are of about one value.
    #[arg(long)]
    pub amplification: Option<u32>,
    /// What the pool asks beyond its price, in parts per million, at most 100000. It stays in the pool.
    #[arg(long, default_value_t = 3_000)]
    pub fee_ppm: u32,
    /// Where it goes.
    #[command(flatten)]
    pub into: IntoBatch,
}

/// `walras pay`.
#[derive(Debug, Args)]
pub struct PayArgs {
    /// Whom: the account's id.
    pub account: u32,
    /// How much.
    pub amount: String,
    /// Of what.
    pub asset: String,
    /// Where it goes.
    #[command(flatten)]
    pub into: IntoBatch,
}

/// `walras batch`.
#[derive(Debug, Subcommand)]
pub enum BatchCommand {
    /// Shows the venue's batch markets.
    List,
    /// Shows the last blocks of one, newest first.
    Blocks {
        /// Which market.
        #[arg(default_value = "main")]
        batch: String,
        /// How many.
        #[arg(long, default_value_t = 20)]
        limit: usize,
    },
    /// Shows supply and demand of a pair around the last price.
    Demand {
        /// What is sold.
        sell: String,
        /// What for.
        buy: String,
        /// Which market.
        #[arg(long, default_value = "main")]
        batch: String,
    },
    /// Shows what came of the account's last transactions: kept, dropped and why, filled how much at what.
    Outcome {
        /// The number of one transaction: of the last ones, or an older one whose offer stands or ended late. Without it the last ones.
        sequence: Option<u64>,
    },
    /// Asks for a proof, checks it here, and shows what it proves. Nothing is believed but a block's hash.
    Proof {
        /// What to prove.
        #[command(subcommand)]
        what: ProofCommand,
        /// The hash of the block, 64 hexadecimal digits from a source that you trust. Without it the venue's own word is taken.
        #[arg(long, global = true)]
        trusted: Option<String>,
        /// Which market.
        #[arg(long, default_value = "main", global = true)]
        batch: String,
    },
    /// Opens an account for a key, by a transaction of the own account. It has the next id when the block is cleared.
    CreateAccount {
        /// The new account's: a file of an Ed25519 key, or the 64 hexadecimal digits of a public key.
        key: String,
        /// Where it goes.
        #[command(flatten)]
        into: IntoBatch,
    },
    /// Replaces the own account's key for transactions, by a transaction that the present one signs. The new one signs from the
    /// block on that has the transaction; API keys are others.
    SetKey {
        /// The new one: a file of an Ed25519 key, or the 64 hexadecimal digits of a public key.
        key: String,
        /// Where it goes.
        #[command(flatten)]
        into: IntoBatch,
    },
    /// Makes new units of an asset, as its issuer.
    Issue(IssueArgs),
    /// Destroys units of an asset, as its issuer.
    Burn(IssueArgs),
    /// Sends several transactions that one block takes together, or not at all. Each is a command line of its own, in quotes.
    Together {
        /// Two or more, in their order, such as "offer sell 1 BTC USD --price 30000" "pay 7 12.5 EUR".
        #[arg(required = true, num_args = 2.., value_name = "TRANSACTION")]
        transactions: Vec<String>,
        /// Where they go.
        #[command(flatten)]
        into: IntoBatch,
    },
}

/// `walras batch proof`.
#[derive(Debug, Subcommand)]
pub enum ProofCommand {
    /// A block in short: its place in the chain, how good its clearing is, a price or a trade.
    Block {
        /// Its number; the last block without it.
        block: Option<u64>,
        /// An asset whose price to prove.
        #[arg(long)]
        price: Option<String>,
        /// What a pair sells and what it buys, whose trade to prove.
        #[arg(long, num_args = 2, value_names = ["SELL", "BUY"])]
        trade: Option<Vec<String>>,
    },
    /// What a block did with a transaction of the account, or with the offer that it created.
    Transaction {
        /// The transaction's number.
        sequence: u64,
        /// In which block; without it the newest that did something under that number.
        #[arg(long)]
        block: Option<u64>,
    },
    /// What the account had when the last block ended.
    Account,
}

/// `walras batch issue` and `walras batch burn`.
#[derive(Debug, Args)]
pub struct IssueArgs {
    /// How much.
    pub amount: String,
    /// Of what.
    pub asset: String,
    /// Where it goes.
    #[command(flatten)]
    pub into: IntoBatch,
}

/// What to show of an account.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub enum AccountPart {
    /// Balances and positions.
    #[default]
    Balances,
    /// Open orders.
    Orders,
    /// The last trades.
    Fills,
    /// The last orders that ended.
    Closed,
    /// Transfers to other shards that are in transit.
    Transfers,
}

/// What an account does with its funds.
#[derive(Debug, Subcommand)]
pub enum AccountCommand {
    /// Moves available funds to another shard.
    Transfer {
        /// Of what.
        asset: String,
        /// How much.
        amount: String,
        /// Where to.
        #[arg(long, value_name = "NUMBER")]
        to_shard: u8,
        /// Your number for the transfer, larger than any before; the time in nanoseconds without it. Repeat it to try again without moving
        /// twice.
        #[arg(long, value_name = "NUMBER")]
        id: Option<u64>,
    },
}

/// `walras account`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct AccountArgs {
    /// What to do instead of showing something.
    #[command(subcommand)]
    pub command: Option<AccountCommand>,
    /// What to show.
    #[arg(default_value = "balances")]
    pub part: AccountPart,
    /// Orders or fills of one instrument only.
    #[arg(long)]
    pub instrument: Option<String>,
    /// How many fills, or orders that ended.
    #[arg(long, default_value_t = 20)]
    pub limit: usize,
}

/// `walras keys`.
#[derive(Debug, Subcommand)]
pub enum KeysCommand {
    /// Makes an Ed25519 key; its public part is printed, for the operator to register.
    New {
        /// File to write it to, readable by its owner alone.
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
    },
    /// Makes a further operator's key for a venue that does not run, where the operator's key was lost. All other keys stay.
    ///
    /// The key is written to `operator.key` in the data folder; a file of that name becomes `operator.key.old`. In a cluster, stop one
    /// replica and recover its folder: started again, it gives the key to the others.
    Recover {
        /// The venue's data folder.
        dir: PathBuf,
    },
}

/// `walras replay`.
#[derive(Debug, Args)]
pub struct ReplayArgs {
    /// What to replay.
    pub file: PathBuf,
    /// Format; found out from the file without it.
    #[arg(long)]
    pub format: Option<String>,
    /// Which of the file's instruments, by symbol or by the file's number; not needed for a file of one.
    #[arg(long, value_name = "SYMBOL")]
    pub instrument: Option<String>,
    /// Lists the file's instruments with their messages, the busiest first, and replays nothing.
    #[arg(long, conflicts_with_all = ["instrument", "venue", "venue_log", "tick", "reference_price", "levels", "orderbook"])]
    pub instruments: bool,
    /// Price of a tick, such as 0.01. Without it that of the format; for NASDAQ's files 0.01, or 0.0001 if orders below a dollar need it.
    #[arg(long, value_name = "PRICE")]
    pub tick: Option<String>,
    /// Reference price of auctions, and with --venue of the instrument. Without it the exchange's rule.
    #[arg(long, value_name = "PRICE")]
    pub reference_price: Option<String>,
    /// Levels a side that a LOBSTER file shows. Without it those that the file's name says.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub levels: Option<u32>,
    /// LOBSTER's orderbook file. Without it the one in the same folder, if there is one.
    #[arg(long, value_name = "FILE", conflicts_with = "venue")]
    pub orderbook: Option<PathBuf>,
    /// Runs it through a venue of its own in this process: accounts, risk, ledger and book. The record is not followed where the
    /// venue trades otherwise; what is refused is counted.
    #[arg(long)]
    pub venue: bool,
    /// With --venue: runs it once more through a durable log in this folder, which must hold none, and reads it back.
    #[arg(long, value_name = "DIR", requires = "venue")]
    pub venue_log: Option<PathBuf>,
}

/// `walras clear`.
///
/// Finds one price per asset at which the offers of a file trade with each other, and what each of them trades. docs/clear.md lists the columns.
#[derive(Debug, Args)]
pub struct ClearArgs {
    /// The offers: CSV, JSON or Parquet with the columns sell, buy, amount, limit_price and others; - is standard input.
    pub file: PathBuf,
    /// The commission: a power of two such as 2^-15, or its bits, 15; 0 is none.
    #[arg(long, default_value = "2^-15", value_parser = super::clear::eps)]
    pub eps: super::clear::EpsArg,
    /// An offer must trade in full when its limit is better than the rate by more than this: as --eps.
    #[arg(long, default_value = "2^-10", value_parser = super::clear::mu)]
    pub mu: walras_types::Mu,
    /// Decimals of all assets, or of one: 6, or BTC=8; may be repeated. Without it whole numbers count units, and others get 8.
    #[arg(long, value_name = "[ASSET=]NUMBER", value_delimiter = ',', value_parser = super::clear::decimals)]
    pub decimals: Vec<DecimalsArg>,
    /// Asset in which prices and values are given; the one traded most without it.
    #[arg(long, value_name = "ASSET")]
    pub numeraire: Option<String>,
    /// Writes a row for each fill.
    #[arg(long, value_name = "FILE")]
    pub fills: Option<PathBuf>,
    /// Draws supply and demand of the pairs that trade most, as SVG.
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
    /// How many pairs to draw.
    #[arg(long, default_value_t = 4, requires = "plot", value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub plot_pairs: u32,
    /// How prices are searched.
    #[arg(long, value_enum, default_value = "portfolio")]
    pub solver: SolverArg,
    /// Demand queries at most.
    #[arg(long, default_value_t = 10_000, value_name = "NUMBER")]
    pub queries: u64,
    /// Takes the best prices found after so long; the result then depends on the machine.
    #[arg(long, value_name = "MS")]
    pub deadline_ms: Option<u64>,
    /// Fails instead of reporting when an offer that must trade in full can not.
    #[arg(long)]
    pub strict: bool,
}

/// Decimals.
#[derive(Clone, Debug)]
pub enum DecimalsArg {
    /// Of all assets that are not named.
    All(u8),
    /// Of one.
    Of(String, u8),
}

/// How prices are searched.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum SolverArg {
    /// By the market's structure, with fallbacks.
    Portfolio,
    /// Newton's method with continuation alone.
    Newton,
    /// As in the SPEEDEX papers, for comparison.
    Tatonnement,
}

/// `walras bench`.
///
/// Without --instrument it measures this machine in about ten seconds: book, engine and disk, on a made stream whose answer is checked.
/// With --instrument it sends orders of the key's account to the venue at --url, on a schedule that does not wait for answers, and counts
/// each one's latency from when it was due.
#[derive(Debug, Args)]
pub struct BenchArgs {
    /// Commands of the made stream.
    #[arg(long, default_value_t = 1_000_000, value_name = "NUMBER", conflicts_with = "instrument")]
    pub commands: u64,
    /// The folder whose disk is measured; what is written there is removed again.
    #[arg(long, default_value = ".walras", value_name = "DIR", conflicts_with = "instrument")]
    pub data: PathBuf,
    /// Puts load on a running venue: on this instrument.
    #[arg(long, value_name = "SYMBOL")]
    pub instrument: Option<String>,
    /// What the orders do.
    #[arg(long, value_enum, default_value = "resting", requires = "instrument")]
    pub mode: Mode,
    /// Connections.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=1_000), requires = "instrument")]
    pub connections: u32,
    /// Commands a second, over all connections; half of them are orders that the other half take out again.
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=1_000_000), requires = "instrument")]
    pub rate: u32,
    /// Puts load on the cluster that the replica at --url belongs to, by its binary order entry: on a market of its own, which it sets up
    /// with an operator's key that all replicas know.
    #[arg(long, conflicts_with_all = ["instrument", "commands", "data"])]
    pub cluster: bool,
    /// With --cluster: sends pairs of orders through two gateways, a known time apart, and reports how many were sequenced the wrong way
    /// round; at rest, then with --offered commands a second.
    #[arg(long, requires = "cluster", conflicts_with_all = ["outstanding", "sessions"])]
    pub fair: bool,
    /// With --cluster: speaks TLS with order entry, which shows a certificate of this PEM file or one that an authority in it has signed.
    /// A venue that makes its own has it in its data folder, order-entry.crt.
    #[arg(long, value_name = "FILE", requires = "cluster")]
    pub entry_trust: Option<PathBuf>,
    /// With --cluster: commands a second, instead of as many as are answered.
    #[arg(long, value_name = "NUMBER", requires = "cluster", conflicts_with = "outstanding", value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub offered: Option<u64>,
    /// With --cluster: commands that are unanswered at any time.
    #[arg(long, value_name = "NUMBER", default_value_t = 4_096, requires = "cluster")]
    pub outstanding: usize,
    /// With --cluster: sessions, each on a connection of its own.
    #[arg(long, value_name = "NUMBER", default_value_t = 8, requires = "cluster", value_parser = clap::value_parser!(u32).range(2..=64))]
    pub sessions: u32,
    /// With --cluster: sends so many signed transactions to a batch market of its own, 256 in a frame, until each is cleared;
    /// --sessions says by how many connections.
    #[arg(long, value_name = "NUMBER", requires = "cluster", conflicts_with_all = ["fair", "offered", "outstanding", "seconds"], value_parser = clap::value_parser!(u32).range(1..=4_000_000))]
    pub transactions: Option<u32>,
    /// With --transactions: milliseconds from one batch to the next.
    #[arg(long, value_name = "MS", default_value_t = 250, requires = "transactions", value_parser = clap::value_parser!(u32).range(1..=60_000))]
    pub interval_ms: u32,
    /// How long: the load (10 unless given), or the disk's part (4).
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub seconds: Option<f64>,
}

/// More than nothing, less than a day.
fn seconds(text: &str) -> Result<f64, String> {
    let given: f64 = text.parse().map_err(|_| "give a number of seconds, such as 10 or 0.5".to_owned())?;
    if given > 0.0 && given <= 86_400.0 { Ok(given) } else { Err("give more than 0 and at most 86400 seconds".to_owned()) }
}

/// `walras log`.
#[derive(Debug, Subcommand)]
pub enum LogCommand {
    /// Prints entries, one a line.
    Dump {
        /// The venue's data folder.
        dir: PathBuf,
        /// First entry.
        #[arg(long)]
        from: Option<u64>,
        /// How many.
        #[arg(long)]
        limit: Option<u64>,
    },
    /// Reads every byte of the log and says what is there.
    Verify {
        /// The venue's data folder.
        dir: PathBuf,
    },
    /// Replays the log and compares the states on the way with those that the venue had: their hashes in the log, and the snapshots.
    Audit {
        /// The venue's data folder.
        dir: PathBuf,
    },
    /// Makes a folder of this version out of one in which an earlier version, or `walras replay --venue-log`, wrote a log of one machine.
    Import {
        /// The venue's data folder.
        dir: PathBuf,
        /// The configuration with which it will be started, if there is one.
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
    },
}

/// `walras archive`.
#[derive(Debug, Subcommand)]
pub enum ArchiveCommand {
    /// Lists the days.
    Ls {
        /// The archive's folder.
        dir: PathBuf,
    },
    /// Checks every byte of the closed days, and that they follow each other.
    Verify {
        /// The archive's folder.
        dir: PathBuf,
        /// Only this day, such as 2026-11-21.
        #[arg(long)]
        day: Option<String>,
    },
    /// Prints an instrument's trades as CSV.
    Export {
        /// The archive's folder.
        dir: PathBuf,
        /// Its symbol.
        #[arg(long)]
        instrument: String,
        /// Only of this day, such as 2026-11-21.
        #[arg(long)]
        day: Option<String>,
    },
}

/// `walras config`.
#[derive(Debug, Args)]
pub struct ConfigArgs {
    /// Prints docs/configuration.md.
    #[arg(long, conflicts_with = "check")]
    pub reference: bool,
    /// Checks this file.
    #[arg(long, value_name = "FILE", required_unless_present = "reference")]
    pub check: Option<PathBuf>,
}
