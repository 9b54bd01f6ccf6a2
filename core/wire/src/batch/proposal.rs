//! Proposed blocks to bytes and back.

use walras_types::limits::{BATCH_ASSETS_MAX, BATCH_PAIRS_MAX, BATCH_VENUE_PAIRS_MAX, POOLS_MAX};
use walras_types::{Amount, BatchMarketId, BatchPrice};

use super::varint::{self, VARINT_BYTES_MAX};
use crate::codec::{DecodeError, Reader, Wire, Writer, wire_struct};

/// Pools that may trade in one block.
pub const POOL_TRADES_MAX: usize = 1 << 16;

/// Everything, in parts per billion.
pub const GAP_PPB_MAX: u32 = walras_types::PPB_ALL;

/// A block as a proposer sends it: what the batch clears at, and what the proposer says comes of it. Plain numbers; nothing is
/// checked but their form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockProposal {
    /// The market.
    pub market: BatchMarketId,
    /// The block's number in its market.
    pub number: u64,
    /// Hash of the block before.
    pub parent: [u8; 32],
    /// Hash of the batch that it clears.
    pub batch_hash: [u8; 32],
    /// Valuation of each asset of the market, [`BATCH_ASSETS_MAX`] at most; never [`BatchPrice::ZERO`].
    pub prices: Vec<Option<BatchPrice>>,
    /// What trades, in strictly ascending order of the pairs, [`BATCH_PAIRS_MAX`] at most.
    pub trades: Vec<PairTradeWire>,
    /// What pools trade, in strictly ascending order of the pools, [`POOL_TRADES_MAX`] at most.
    pub pools: Vec<PoolTradeWire>,
    /// How good it is, and evidence that not much more could have traded.
    pub certificate: Certificate,
    /// What the state hashes to once the block is executed.
    pub roots: Option<BlockRoots>,
}

/// A pair that trades: of two different assets, and something of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PairTradeWire {
    /// Number of the asset sold, among the market's.
    pub sell: u16,
    /// Number of the asset bought, among the market's.
    pub buy: u16,
    /// Units sold by sell offers.
    pub sold: Amount,
    /// Units bought by buy offers.
    pub bought_by_buy_offers: Amount,
    /// The last sell offer that trades; there exactly when some are sold.
    pub marginal: Option<OfferKeyWire>,
}

/// The place of an offer in its pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OfferKeyWire {
    /// Its effective limit.
    pub limit: BatchPrice,
    /// Its tie-break.
    pub tie: u64,
    /// Its number.
    pub id: u64,
}

/// Which asset of a pool the pool sells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolSideWire {
    /// The first.
    First,
    /// The second.
    Second,
}

/// A pool that trades.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolTradeWire {
    /// Its number among the market's pools.
    pub pool: u32,
    /// What it sells.
    pub side: PoolSideWire,
    /// Units that it sells, at least 1.
    pub sold: Amount,
}

/// Evidence from outside the core that at these prices no clearing trades much more: a solution of the dual problem, one potential
/// for each asset, and how far at most what trades lies below what it proves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Certificate {
    /// Of what could trade at most, the share that does not, in parts per billion, [`GAP_PPB_MAX`] at most.
    pub gap_ppb: u32,
    /// Of what offers clearly in the money want to sell, the share that does not trade, in parts per billion: of the asset that is
    /// worst off.
    pub unserved_ppb: u32,
    /// One for each of [`BlockProposal::prices`].
    pub potentials: Vec<i64>,
}

/// Hashes of the state after a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockRoots {
    /// Of the accounts.
    pub accounts: [u8; 32],
    /// Of the offers.
    pub offers: [u8; 32],
    /// Of everything.
    pub state: [u8; 32],
}

wire_struct!(OfferKeyWire { limit, tie, id });
wire_struct!(BlockRoots { accounts, offers, state });

/// Why a block cannot be encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnwritableProposal {
    /// More assets than a market has.
    TooManyAssets(usize),
    /// More pairs trade than a market has.
    TooManyTrades(usize),
    /// The valuation of this asset is zero.
    ZeroPrice(usize),
    /// The trade at this place names an asset that has no place in `prices`, or one asset twice, or does not come after the one
    /// before it.
    Pair(usize),
    /// The trade at this place trades nothing, or has a marginal offer though no sell offer trades, or none though one does.
    Trade(usize),
    /// The pool's trade at this place sells nothing, or does not come after the one before it.
    Pool(usize),
    /// More pools trade than may.
    TooManyPools(usize),
    /// The certificate has so many potentials, not one for each asset.
    Potentials(usize),
    /// A share that the certificate states is more than everything.
    Share(u32),
}

impl std::fmt::Display for UnwritableProposal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::TooManyAssets(count) => write!(f, "{count} assets: a batch market has at most {BATCH_ASSETS_MAX}, so split it"),
            Self::TooManyTrades(count) => {
                write!(f, "{count} pairs trade: a batch market has at most {BATCH_PAIRS_MAX}, so split it")
            }
            Self::ZeroPrice(asset) => write!(f, "asset {asset} has the price zero: leave its price out if it does not trade"),
            Self::Pair(at) => {
                write!(f, "trade {at}: sort trades by pair, each pair once, of two different assets that have a place in prices")
            }
            Self::Trade(at) => {
                write!(
                    f,
                    "trade {at}: leave pairs out that do not trade, and name the marginal offer exactly where sell offers trade"
                )
            }
            Self::Pool(at) => {
                write!(f, "pool trade {at}: sort them by pool, each pool once, and leave those out that sell nothing")
            }
            Self::TooManyPools(count) => write!(f, "{count} pools trade: at most {POOL_TRADES_MAX} may, so leave some out"),
            Self::Potentials(count) => write!(f, "the certificate has {count} potentials: give one for each asset"),
            Self::Share(ppb) => {
                write!(f, "the certificate states a share of {ppb} ppb: at most {GAP_PPB_MAX} make sense, so state what is so")
            }
        }
    }
}

impl std::error::Error for UnwritableProposal {}

/// Every block has one since version 5: bytes without are of an older program.
const HAS_CERTIFICATE: u8 = 1;
const HAS_ROOTS: u8 = 2;

/// Pairs of so many assets.
const fn pair_count(asset_count: usize) -> u64 {
    asset_count as u64 * (asset_count as u64).saturating_sub(1)
}

const TRADE_BYTES_MIN: usize = 3;
const TRADE_BYTES_MAX: usize = 3 + 2 * VARINT_BYTES_MAX + 24;
const POOL_TRADE_BYTES_MIN: usize = 3;
const POOL_TRADE_BYTES_MAX: usize = 5 + 1 + VARINT_BYTES_MAX;

/// No block of so many pairs and pools has more bytes.
const fn bytes_max(pairs: usize, pools: usize) -> usize {
    let prices = BATCH_ASSETS_MAX.div_ceil(8) + 8 * BATCH_ASSETS_MAX;
    let trades = 3 + pairs * TRADE_BYTES_MAX + 3 + pools * POOL_TRADE_BYTES_MAX;
    let certificate = 8 + BATCH_ASSETS_MAX * VARINT_BYTES_MAX;
    2 + 8 + 64 + 1 + 2 + prices + trades + certificate + 96
}

/// No block has more bytes.
pub const BLOCK_PROPOSAL_BYTES_MAX: usize = bytes_max(BATCH_PAIRS_MAX, POOL_TRADES_MAX);

/// No block of a venue's market has more bytes.
pub const VENUE_BLOCK_PROPOSAL_BYTES_MAX: usize = bytes_max(BATCH_VENUE_PAIRS_MAX, POOLS_MAX);

const _: () = assert!(VENUE_BLOCK_PROPOSAL_BYTES_MAX < (1 << 20) - 2 * walras_types::limits::MESSAGE_BYTES_MAX);

/// Appends a block to `buffer`, or leaves it as it is.
///
/// ```text
/// market u16 | number u64 | parent 32 | batch hash 32 | flags u8: 1, and 2 for roots
/// asset count n u16 | which have a price: a bit each, lowest first, in whole bytes, the rest 0 | their prices u64
/// trade count v | each: steps to its pair v | sold v | bought by buy offers v | if any sold: limit u64, tie u64, id u64
/// pool trade count v | each: steps to its pool v | side u8 | sold v
/// certificate: gap u32 | unserved u32 | n potentials: varints of 0, -1, 1, -2, ... as 0, 1, 2, 3, ...
/// roots: accounts 32 | offers 32 | state 32
/// ```
///
/// `v` is a varint. Pairs are counted in their order without those of an asset with itself: `sell * (n - 1) + buy`, less 1 where
/// `buy > sell`. The first has as many steps as its number, another as many as lie between it and the one before.
///
/// # Errors
/// [`UnwritableProposal`] where a block would have two encodings or none.
pub fn encode_block_proposal(proposal: &BlockProposal, buffer: &mut Vec<u8>) -> Result<(), UnwritableProposal> {
    let before = buffer.len();
    let done = write(proposal, &mut Writer(buffer));
    if done.is_err() {
        buffer.truncate(before);
    }
    done
}

fn write(proposal: &BlockProposal, w: &mut Writer<'_>) -> Result<(), UnwritableProposal> {
    let BlockProposal { market, number, parent, batch_hash, prices, trades, pools, certificate, roots } = proposal;
    let asset_count = prices.len();
    if asset_count > BATCH_ASSETS_MAX {
        return Err(UnwritableProposal::TooManyAssets(asset_count));
    }
    market.put(w);
    number.put(w);
    parent.put(w);
    batch_hash.put(w);
    w.u8(HAS_CERTIFICATE | if roots.is_some() { HAS_ROOTS } else { 0 });
    w.u16(asset_count as u16);
    put_prices(prices, w)?;
    put_trades(trades, asset_count, w)?;
    put_pools(pools, w)?;
    let Certificate { gap_ppb, unserved_ppb, potentials } = certificate;
    if let Some(share) = [*gap_ppb, *unserved_ppb].into_iter().find(|share| *share > GAP_PPB_MAX) {
        return Err(UnwritableProposal::Share(share));
    }
    if potentials.len() != asset_count {
        return Err(UnwritableProposal::Potentials(potentials.len()));
    }
    w.u32(*gap_ppb);
    w.u32(*unserved_ppb);
    potentials.iter().for_each(|&potential| varint::put_signed(w, potential));
    if let Some(roots) = roots {
        roots.put(w);
    }
    Ok(())
}

fn put_prices(prices: &[Option<BatchPrice>], w: &mut Writer<'_>) -> Result<(), UnwritableProposal> {
    for priced in prices.chunks(8) {
        w.u8(priced.iter().rev().fold(0, |bits, price| bits << 1 | u8::from(price.is_some())));
    }
    for (asset, price) in prices.iter().enumerate() {
        match price {
            Some(price) if price.is_zero() => return Err(UnwritableProposal::ZeroPrice(asset)),
            Some(price) => price.put(w),
            None => {}
        }
    }
    Ok(())
}

fn put_trades(trades: &[PairTradeWire], asset_count: usize, w: &mut Writer<'_>) -> Result<(), UnwritableProposal> {
    if trades.len() > BATCH_PAIRS_MAX {
        return Err(UnwritableProposal::TooManyTrades(trades.len()));
    }
    varint::put(w, trades.len() as u64);
    let mut next = 0;
    for (at, trade) in trades.iter().enumerate() {
        let number = pair_number(trade, asset_count).filter(|&number| number >= next).ok_or(UnwritableProposal::Pair(at))?;
        let trades_nothing = trade.sold.is_zero() && trade.bought_by_buy_offers.is_zero();
        if trades_nothing || trade.sold.is_zero() != trade.marginal.is_none() {
            return Err(UnwritableProposal::Trade(at));
        }
        varint::put(w, number - next);
        varint::put(w, trade.sold.get());
        varint::put(w, trade.bought_by_buy_offers.get());
        if let Some(marginal) = &trade.marginal {
            marginal.put(w);
        }
        next = number + 1;
    }
    Ok(())
}

/// The place of a pair among all of two different assets.
fn pair_number(trade: &PairTradeWire, asset_count: usize) -> Option<u64> {
    let (sell, buy, assets) = (u64::from(trade.sell), u64::from(trade.buy), asset_count as u64);
    (sell < assets && buy < assets && sell != buy).then(|| sell * (assets - 1) + buy - u64::from(buy > sell))
}

fn put_pools(pools: &[PoolTradeWire], w: &mut Writer<'_>) -> Result<(), UnwritableProposal> {
    if pools.len() > POOL_TRADES_MAX {
        return Err(UnwritableProposal::TooManyPools(pools.len()));
    }
    varint::put(w, pools.len() as u64);
    let mut next = 0;
    for (at, trade) in pools.iter().enumerate() {
        let steps =
            u64::from(trade.pool).checked_sub(next).filter(|_| !trade.sold.is_zero()).ok_or(UnwritableProposal::Pool(at))?;
        varint::put(w, steps);
        w.u8(match trade.side {
            PoolSideWire::First => 0,
            PoolSideWire::Second => 1,
        });
        varint::put(w, trade.sold.get());
        next = u64::from(trade.pool) + 1;
    }
    Ok(())
}

/// Reads the one block that `bytes` are.
///
/// # Errors
/// [`DecodeError`] where the bytes stop being one: cut short, too long, not in the one form that a value has, a number out of
/// range.
pub fn decode_block_proposal(bytes: &[u8]) -> Result<BlockProposal, DecodeError> {
    if bytes.len() > BLOCK_PROPOSAL_BYTES_MAX {
        return Err(DecodeError::layout(BLOCK_PROPOSAL_BYTES_MAX, "the end of the longest block"));
    }
    let r = &mut Reader::new(bytes);
    let (market, number, parent, batch_hash) = (Wire::get(r)?, Wire::get(r)?, Wire::get(r)?, Wire::get(r)?);
    let flags = r.u8()?;
    let is_known = flags & HAS_CERTIFICATE != 0 && flags <= HAS_CERTIFICATE | HAS_ROOTS;
    r.checked(is_known.then_some(()), "flags 1 or 3: every block has a certificate")?;
    let asset_count = usize::from(r.u16()?);
    r.checked((asset_count <= BATCH_ASSETS_MAX).then_some(()), "at most BATCH_ASSETS_MAX (4096) assets")?;
    let prices = get_prices(r, asset_count)?;
    let trades = get_trades(r, asset_count, bytes.len())?;
    let pools = get_pools(r, bytes.len())?;
    let certificate = get_certificate(r, asset_count)?;
    let roots = if flags & HAS_ROOTS == 0 { None } else { Some(Wire::get(r)?) };
    r.clone().finish()?;
    Ok(BlockProposal { market, number, parent, batch_hash, prices, trades, pools, certificate, roots })
}

fn get_prices(r: &mut Reader<'_>, asset_count: usize) -> Result<Vec<Option<BatchPrice>>, DecodeError> {
    let has_price = r.slice(asset_count.div_ceil(8), "a bit for each asset")?;
    let padding = has_price.last().map_or(0, |last| u32::from(*last) >> ((asset_count - 1) % 8 + 1));
    r.checked((padding == 0).then_some(()), "0 in the bits after the last asset's")?;
    let price = |asset: usize| {
        if has_price[asset / 8] >> (asset % 8) & 1 == 0 {
            return Ok(None);
        }
        let price = BatchPrice::get(r)?;
        r.checked((!price.is_zero()).then_some(Some(price)), "a price that is not zero")
    };
    (0..asset_count).map(price).collect()
}

/// How many follow, of `bytes_min` each at least: never more than there are bytes for.
fn count(r: &mut Reader<'_>, most: u64, bytes_min: usize, byte_count: usize, expected: &'static str) -> Result<usize, DecodeError> {
    let count = varint::get(r)?;
    let room = (byte_count - r.position()) / bytes_min;
    r.checked(usize::try_from(count).ok().filter(|&fit| count <= most && fit <= room), expected)
}

fn amount(r: &mut Reader<'_>) -> Result<Amount, DecodeError> {
    let units = varint::get(r)?;
    r.checked(Amount::new(units), "an amount up to AMOUNT_MAX")
}

fn get_trades(r: &mut Reader<'_>, asset_count: usize, byte_count: usize) -> Result<Vec<PairTradeWire>, DecodeError> {
    let pair_count = pair_count(asset_count);
    let most = pair_count.min(BATCH_PAIRS_MAX as u64);
    let trade_count = count(r, most, TRADE_BYTES_MIN, byte_count, "no more trades than pairs, and bytes for each")?;
    let mut trades = Vec::with_capacity(trade_count);
    let mut next = 0_u64;
    for _ in 0..trade_count {
        let number = next.checked_add(varint::get(r)?).filter(|&number| number < pair_count);
        let number = r.checked(number, "steps to a pair of the market's assets")?;
        // There is a pair, so there are two assets.
        let (sell, place) = (number / (asset_count as u64 - 1), number % (asset_count as u64 - 1));
        let buy = place + u64::from(place >= sell);
        let (sold, bought_by_buy_offers) = (amount(r)?, amount(r)?);
        let trades_nothing = sold.is_zero() && bought_by_buy_offers.is_zero();
        r.checked((!trades_nothing).then_some(()), "something sold or bought in a pair that is named")?;
        let marginal = if sold.is_zero() { None } else { Some(Wire::get(r)?) };
        // Both are below BATCH_ASSETS_MAX.
        trades.push(PairTradeWire { sell: sell as u16, buy: buy as u16, sold, bought_by_buy_offers, marginal });
        next = number + 1;
    }
    Ok(trades)
}

fn get_pools(r: &mut Reader<'_>, byte_count: usize) -> Result<Vec<PoolTradeWire>, DecodeError> {
    let pool_count = count(
        r,
        POOL_TRADES_MAX as u64,
        POOL_TRADE_BYTES_MIN,
        byte_count,
        "at most POOL_TRADES_MAX (65536) pools, and bytes for each",
    )?;
    let mut pools = Vec::with_capacity(pool_count);
    let mut next = 0_u64;
    for _ in 0..pool_count {
        let pool = next.checked_add(varint::get(r)?).and_then(|pool| u32::try_from(pool).ok());
        let pool = r.checked(pool, "steps to a pool below 2^32")?;
        let side = match r.u8()? {
            0 => PoolSideWire::First,
            1 => PoolSideWire::Second,
            _ => return Err(r.expected("side 0 (it sells its first asset) or 1 (its second)")),
        };
        let sold = amount(r)?;
        r.checked((!sold.is_zero()).then_some(()), "something sold by a pool that is named")?;
        pools.push(PoolTradeWire { pool, side, sold });
        next = u64::from(pool) + 1;
    }
    Ok(pools)
}

fn get_certificate(r: &mut Reader<'_>, asset_count: usize) -> Result<Certificate, DecodeError> {
    let (gap_ppb, unserved_ppb) = (r.u32()?, r.u32()?);
    let are_shares = gap_ppb <= GAP_PPB_MAX && unserved_ppb <= GAP_PPB_MAX;
    r.checked(are_shares.then_some(()), "a gap and an unserved share of at most 1000000000 ppb")?;
    let potentials = (0..asset_count).map(|_| varint::get_signed(r)).collect::<Result<_, _>>()?;
    Ok(Certificate { gap_ppb, unserved_ppb, potentials })
}
