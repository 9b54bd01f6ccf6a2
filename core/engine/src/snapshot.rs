//! The state as bytes and back. One state has one encoding, whatever the price index, the hash seed and the way it was reached, so
//! that replicas compare states by comparing hashes.
//!
//! Little endian, in this order: magic, engine version, wire version; log index and time; the delays of fair access; assets;
//! accounts with status and last transfer; instruments, each with definition, phase, shard, reference price, last price, trade
//! count, from version 13 on what is left of a change of phase, the linked orders and the exits of entries, the accounts that have
//! a position or limits of their own, and the open orders in the book's order; what is left of mass cancels; shards (`shards.rs`);
//! the open sessions by id, each with account, token, last use, next place and the answers it remembers, oldest first; the nonces
//! of signed commands by their last moments; from version 13 on the dead man's switches; batch markets (`batch_snapshot.rs`); the
//! ledger; the BLAKE3 hash of all of that.

use std::collections::BTreeMap;

use blake3::Hasher;
use walras_batch::MarketForm;
use walras_ledger::{Ledger, Parts};
use walras_order_book::{Becomes, Condition, OpenOrder, OrderBook, OwnerId, PriceIndex, Seniority, Trailing, Trigger};
use walras_types::{
    AccountId, AssetId, EngineVersion, InstrumentSpec, LogIndex, Side, SizeLots, TimeNs, TradingPhase, Trail, TransferId,
};
use walras_wire::codec::{DecodeError, Reader, Wire, Writer};
use walras_wire::{AccessDelays, AccountStatus, AssetSpec, WIRE_VERSION};

use crate::batches::Batches;
use crate::changing::{Saved, SavedLinks};
use crate::engine::Engine;
use crate::market::{Market, MarketState, POSITION_LOTS_MAX};
use crate::nonces::Nonces;
use crate::operator::{are_possible, is_consistent};
use crate::sessions::Sessions;
use crate::shards::Shards;
use crate::versions::{NEWEST, OLDEST, Rules, is_known};

const MAGIC: [u8; 8] = *b"walras-s";
const HASH_LEN: usize = 32;

/// Why bytes are not an engine's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestoreError {
    /// The hash at the end is not that of the bytes.
    Damaged,
    /// Intact bytes of something else.
    NotASnapshot,
    /// A snapshot of another version.
    Version {
        /// The version of the engine whose state it is.
        engine: u16,
        /// Its wire version.
        wire: u16,
    },
    /// The bytes end early or hold a value out of range.
    Decode(DecodeError),
    /// The ledger's part is wrong.
    Ledger(walras_ledger::RestoreError),
    /// A batch market's part is wrong, or that of accounts for them.
    Batch(walras_batch::RestoreError),
    /// A book's part is wrong.
    Book(walras_order_book::RestoreError),
    /// The parts contradict each other.
    Contradiction(&'static str),
}

impl std::fmt::Display for RestoreError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Damaged => {
                f.write_str("the snapshot is damaged or cut: its hash does not match; use an older one and replay more of the log")
            }
            Self::NotASnapshot => f.write_str("this is no snapshot of an engine: check the file's name"),
            Self::Version { engine, wire } => write!(
                f,
                "the snapshot is of engine version {engine} and wire version {wire}, and this program reads engine versions {OLDEST} to {NEWEST} \
                 and wire version {WIRE_VERSION}: run a program that knows both (docs/operations.md, \"Upgrade\")"
            ),
            Self::Decode(source) => {
                write!(f, "the snapshot does not decode ({source}); the program that wrote it is at fault: replay the log instead")
            }
            Self::Ledger(source) => write!(
                f,
                "the snapshot's ledger is wrong ({source}); the program that wrote it is at fault: replay the log instead"
            ),
            Self::Book(source) => {
                write!(f, "the snapshot's book is wrong ({source}); the program that wrote it is at fault: replay the log instead")
            }
            Self::Batch(source) => write!(
                f,
                "the snapshot's batch markets are wrong ({source}); the program that wrote it is at fault: replay the log instead"
            ),
            Self::Contradiction(source) => write!(
                f,
                "the snapshot contradicts itself ({source}); the program that wrote it is at fault: replay the log instead"
            ),
        }
    }
}

impl std::error::Error for RestoreError {}

impl From<DecodeError> for RestoreError {
    fn from(error: DecodeError) -> Self {
        Self::Decode(error)
    }
}

impl From<walras_ledger::RestoreError> for RestoreError {
    fn from(error: walras_ledger::RestoreError) -> Self {
        Self::Ledger(error)
    }
}

impl From<walras_batch::RestoreError> for RestoreError {
    fn from(error: walras_batch::RestoreError) -> Self {
        Self::Batch(error)
    }
}

/// Batch markets and the ledger, the last parts.
pub(crate) fn encode_funds(form: MarketForm, batches: &Batches, ledger: &Ledger, sink: &mut impl FnMut(&[u8])) {
    batches.encode(form, sink);
    match form {
        MarketForm::WithoutPools => ledger.snapshot_without_pools(sink),
        MarketForm::Pools | MarketForm::Steps | MarketForm::KeysKept => ledger.snapshot(sink),
    }
}

/// What a snapshot ends with: the hash of what is behind `start`.
pub(crate) fn append_hash(out: &mut Vec<u8>, start: usize) {
    let hash = blake3::hash(&out[start..]);
    out.extend_from_slice(hash.as_bytes());
}

/// The hash that a snapshot ends with: [`Engine::state_hash`] of its state. `None` of bytes that are too few for one.
#[must_use]
pub fn snapshot_hash(bytes: &[u8]) -> Option<[u8; 32]> {
    bytes.last_chunk::<HASH_LEN>().copied()
}

impl Engine {
    /// The engine of which `bytes` are the snapshot. It behaves as the saved one ever after.
    pub fn restore(bytes: &[u8]) -> Result<Self, RestoreError> {
        Self::restore_with_hash_seed(bytes, 0)
    }
}

impl<I: PriceIndex> Engine<I> {
    /// Appends the state's bytes to `out`.
    pub fn snapshot(&self, out: &mut Vec<u8>) {
        let start = out.len();
        self.state_bytes(out);
        append_hash(out, start);
    }

    /// Appends the state's bytes to `out`: [`Self::snapshot`] without the hash at its end.
    pub fn state_bytes(&self, out: &mut Vec<u8>) {
        self.encode(&mut |piece| out.extend_from_slice(piece));
    }

    /// Whether these are the state's bytes, as [`Self::state_bytes`] has them. Costs a fraction of [`Self::state_hash`].
    #[must_use]
    pub fn has_state_bytes(&self, bytes: &[u8]) -> bool {
        let (mut left, mut is_same) = (bytes, true);
        self.encode(&mut |piece| match left.strip_prefix(piece) {
            Some(rest) => left = rest,
            None => is_same = false,
        });
        is_same && left.is_empty()
    }

    /// The BLAKE3 hash of the state's bytes: the last 32 bytes of [`Self::snapshot`]. Equal on every replica after the same entry.
    #[must_use]
    pub fn state_hash(&self) -> [u8; HASH_LEN] {
        let (mut hasher, mut some) = (Hasher::new(), Vec::with_capacity(FLUSH_LEN + 1024));
        self.encode(&mut |piece| {
            // Many of the pieces are a few bytes, and the hash takes long ones several times as fast.
            some.extend_from_slice(piece);
            if some.len() >= FLUSH_LEN {
                hasher.update(&some);
                some.clear();
            }
        });
        hasher.update(&some);
        *hasher.finalize().as_bytes()
    }

    /// [`Engine::restore`] with any price index, and the seed of [`Self::with_hash_seed`].
    pub fn restore_with_hash_seed(bytes: &[u8], hash_seed: u64) -> Result<Self, RestoreError> {
        let (content, hash) = bytes.split_last_chunk::<HASH_LEN>().ok_or(RestoreError::Damaged)?;
        if blake3::hash(content) != *hash {
            return Err(RestoreError::Damaged);
        }
        let (magic, _) = content.split_first_chunk::<8>().ok_or(RestoreError::NotASnapshot)?;
        if *magic != MAGIC {
            return Err(RestoreError::NotASnapshot);
        }
        let r = &mut Reader::new(content);
        r.u64()?;
        let (version, wire) = (EngineVersion(r.u16()?), r.u16()?);
        if !is_known(version) || wire != WIRE_VERSION {
            return Err(RestoreError::Version { engine: version.0, wire });
        }
        let mut engine = Self::with_hash_seed(hash_seed);
        engine.version = version;
        engine.last_applied = LogIndex(r.u64()?);
        engine.time = TimeNs::get(r)?;
        engine.access_delays = AccessDelays::get(r)?;
        if !are_possible(&engine.access_delays) {
            return Err(RestoreError::Contradiction("the delays of fair access"));
        }
        engine.assets = list(r, AssetSpec::get)?;
        for (status, transfer) in list(r, |r| Ok((AccountStatus::get(r)?, Option::<TransferId>::get(r)?)))? {
            engine.statuses.push(status);
            engine.transfers.push(transfer);
        }
        for _ in 0..r.u32()? {
            engine.decode_market(r)?;
        }
        engine.decode_cancelling(r)?;
        engine.shards = Shards::decode(r)?;
        engine.sessions = Sessions::decode(r, engine.last_applied, engine.statuses.len())?;
        engine.nonces = Nonces::decode(r)?.map_err(RestoreError::Contradiction)?;
        if version.has_names() {
            engine.decode_switches(r)?;
        }
        let has_pools = version.has_pools();
        engine.batches = Batches::decode(r, version.market_form(), version.batch_edition())?;
        let restore = if has_pools { Ledger::restore } else { Ledger::restore_without_pools };
        engine.ledger = restore(&content[r.position()..])?;
        engine.check_restored()?;
        // Orders or positions in another order than a snapshot has them would restore to a state of other bytes.
        if !engine.has_state_bytes(content) {
            return Err(RestoreError::Contradiction("the order of its parts"));
        }
        Ok(engine)
    }

    fn encode(&self, sink: &mut impl FnMut(&[u8])) {
        self.encode_head(sink);
        encode_funds(self.version.market_form(), &self.batches, &self.ledger, sink);
    }

    /// What comes before batch markets and the ledger.
    fn encode_head(&self, sink: &mut impl FnMut(&[u8])) {
        let mut buffer = Vec::with_capacity(FLUSH_LEN + 1024);
        let mut flush = |buffer: &mut Vec<u8>| {
            if buffer.len() >= FLUSH_LEN {
                sink(buffer);
                buffer.clear();
            }
        };
        self.encode_front(&mut buffer, &mut flush);
        for market in &self.markets {
            market.encode_front(&mut buffer, &mut flush);
            market.book.for_each_order(|order| {
                put_order(order, &mut Writer(&mut buffer));
                flush(&mut buffer);
            });
        }
        self.encode_back(&mut buffer, &mut flush);
        sink(&buffer);
    }

    /// What comes before the instruments, and how many there are.
    fn encode_front(&self, buffer: &mut Vec<u8>, flush: &mut impl FnMut(&mut Vec<u8>)) {
        self.encode_before_accounts(buffer, flush);
        encode_accounts(&self.statuses, &self.transfers, buffer, flush);
        count(&mut Writer(buffer), self.markets.len());
    }

    /// What comes before the accounts.
    pub(crate) fn encode_before_accounts(&self, buffer: &mut Vec<u8>, flush: &mut impl FnMut(&mut Vec<u8>)) {
        buffer.extend_from_slice(&MAGIC);
        let w = &mut Writer(buffer);
        self.version.put(w);
        w.u16(WIRE_VERSION);
        w.u64(self.last_applied.0);
        self.time.put(w);
        self.access_delays.put(w);
        count(w, self.assets.len());
        for asset in &self.assets {
            asset.put(&mut Writer(buffer));
            flush(buffer);
        }
    }

    /// What comes between the instruments and batch markets.
    fn encode_back(&self, buffer: &mut Vec<u8>, flush: &mut impl FnMut(&mut Vec<u8>)) {
        self.encode_before_sessions(buffer, flush);
        self.sessions.encode(buffer, flush);
        self.encode_after_sessions(buffer, flush);
    }

    pub(crate) fn encode_before_sessions(&self, buffer: &mut Vec<u8>, flush: &mut impl FnMut(&mut Vec<u8>)) {
        self.encode_cancelling(buffer, flush);
        self.shards.encode(buffer, flush);
    }

    pub(crate) fn encode_after_sessions(&self, buffer: &mut Vec<u8>, flush: &mut impl FnMut(&mut Vec<u8>)) {
        self.nonces.encode(buffer, flush);
        if self.version.has_names() {
            self.encode_switches(buffer, flush);
        }
    }

    fn decode_market(&mut self, r: &mut Reader<'_>) -> Result<(), RestoreError> {
        let spec = InstrumentSpec::get(r)?;
        if spec.instrument.0 as usize != self.markets.len() || !is_consistent(&spec) {
            return Err(RestoreError::Contradiction("an instrument's definition"));
        }
        let mut state = MarketState::new(spec);
        state.follow(self.version);
        state.phase = TradingPhase::get(r)?;
        state.shard = Wire::get(r)?;
        state.set_reference_price(Wire::get(r)?);
        let last_price = Wire::get(r)?;
        state.trade_count = r.u64()?;
        let (changing, links) = if state.has_phase_steps { Saved::decode(r)? } else { (None, SavedLinks::default()) };
        let accounts = AccountId(u32::try_from(self.statuses.len()).expect("their count was a u32"));
        let mut next = AccountId(0);
        for _ in 0..r.u32()? {
            let (account, net_lots, limits) = (AccountId::get(r)?, r.i64()?, Option::get(r)?);
            if account < next || account >= accounts {
                return Err(RestoreError::Contradiction("a position's account"));
            }
            if net_lots.unsigned_abs() > POSITION_LOTS_MAX.unsigned_abs() || (net_lots == 0 && limits.is_none()) {
                return Err(RestoreError::Contradiction("a position's lots"));
            }
            next = AccountId(account.0 + 1);
            state.exposure_mut(account).net_lots = net_lots;
            if let Some(limits) = limits {
                state.set_limits(account, limits);
            }
        }
        let orders = list(r, order)?;
        let mut named: Vec<_> =
            orders.iter().map(|order| (order.order_id, AccountId(order.owner.0), order.client_order_id)).collect();
        named.sort_unstable();
        if named.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            return Err(RestoreError::Contradiction("two orders of one id"));
        }
        for order in &orders {
            let account = AccountId(order.owner.0);
            let sized = SizeLots::order_size(order.open.get()).is_some();
            if account >= accounts || order.order_id.0 > self.last_applied.0 || !sized {
                return Err(RestoreError::Contradiction("an order's account, id or size"));
            }
            state.exposure_mut(account).opened(order.side, order.open);
        }
        let held = orders.iter().filter(|order| order.trigger.is_some_and(|trigger| trigger.is_held)).count();
        let has_links = held > 0 || !links.pairs.is_empty() || !links.brackets.is_empty();
        let linked: Option<BTreeMap<_, _>> = has_links.then(|| orders.iter().map(|order| (order.order_id, *order)).collect());
        let book =
            OrderBook::restore(spec.allocation, self.hash_seed, last_price, orders.into_iter()).map_err(RestoreError::Book)?;
        for (order_id, account, name) in named {
            state.names.add(account, order_id, name);
        }
        let mut market = Market { book, state };
        if market.book.has_paused() && !market.is_continuous() {
            return Err(RestoreError::Contradiction("the rest of an order where nothing matches"));
        }
        if let Some(orders) = linked {
            if market.restore_links(&orders, &links.pairs).is_none() {
                return Err(RestoreError::Contradiction("linked orders"));
            }
            let are_there = market.restore_brackets(&orders, &links.brackets).is_some();
            if !are_there || market.state.links.brackets.held_count() != held {
                return Err(RestoreError::Contradiction("the exits of an order"));
            }
        }
        if let Some(saved) = changing {
            market.state.changing = Some(market.restore_changing(saved).map_err(RestoreError::Contradiction)?);
        }
        market.bound_steps();
        market.look_for_work(self.time);
        self.next_work = self.next_work.min(market.next_work());
        self.markets.push(market);
        Ok(())
    }

    /// Checks that the ledger goes with the rest: the same accounts and assets, and reserved what the open orders need.
    fn check_restored(&self) -> Result<(), RestoreError> {
        let (accounts, assets) = (self.ledger.account_count() as usize, self.ledger.asset_count());
        if accounts != self.statuses.len() || assets as usize != self.assets.len() {
            return Err(RestoreError::Contradiction("the ledger's accounts or assets"));
        }
        let dense = self.assets.iter().zip(0..).all(|(spec, next)| spec.asset == AssetId(next));
        if !dense || self.markets.iter().any(|market| market.state.spec.base.0.max(market.state.spec.quote.0) >= assets) {
            return Err(RestoreError::Contradiction("an asset's id"));
        }
        self.check_restored_batches()?;
        self.check_restored_shards()?;
        let mut reserved = vec![vec![0_u64; accounts]; self.assets.len()];
        let mut fits = true;
        for batch in self.batches.markets.iter().filter_map(|state| state.batch.as_ref()) {
            batch.for_each_reserved(|account, asset, amount| {
                let sum = &mut reserved[asset.0 as usize][account.0 as usize];
                match sum.checked_add(amount.get()) {
                    Some(total) => *sum = total,
                    None => fits = false,
                }
            });
        }
        for Market { book, state, .. } in &self.markets {
            book.for_each_order(|order| {
                let asset = state.reserve_asset(order.side).0 as usize;
                let sum = &mut reserved[asset][order.owner.0 as usize];
                match state.counted(order).and_then(|(amount, _)| sum.checked_add(amount.get())) {
                    Some(total) => *sum = total,
                    None => fits = false,
                }
            });
            if state.exposures().map(|(_, exposure)| i128::from(exposure.net_lots)).sum::<i128>() != 0 {
                return Err(RestoreError::Contradiction("positions: what was bought was not sold"));
            }
            let crossed = book.best(Side::Buy).zip(book.best(Side::Sell)).is_some_and(|(bid, ask)| bid >= ask);
            fits &= !(crossed && state.phase == TradingPhase::Continuous);
        }
        let agrees = (0..).map(AssetId).zip(&reserved).all(|(asset, column)| {
            (0..).map(AccountId).zip(column).all(|(account, &owed)| self.balance(account, asset).reserved.get() == owed)
        });
        if fits && agrees { Ok(()) } else { Err(RestoreError::Contradiction("what is reserved for orders and batches")) }
    }
}

impl<I: PriceIndex> Market<I> {
    /// All but its open orders, and how many there are.
    pub(crate) fn encode_front(&self, buffer: &mut Vec<u8>, flush: &mut impl FnMut(&mut Vec<u8>)) {
        let state = &self.state;
        let w = &mut Writer(buffer);
        state.spec.put(w);
        state.phase.put(w);
        state.shard.put(w);
        state.reference_price.put(w);
        self.book.last_price().put(w);
        w.u64(state.trade_count);
        if state.has_phase_steps {
            state.encode_changing(w);
        }
        // Open lots and counts follow from the orders; how many exposures there are follows from how far they grew.
        let lasting = || {
            state
                .exposures()
                .map(|(account, e)| (account, e.net_lots, state.limits_of_its_own(e)))
                .filter(|&(_, net, own)| net != 0 || own.is_some())
        };
        count(w, lasting().count());
        for (account, net_lots, own_limits) in lasting() {
            let w = &mut Writer(buffer);
            account.put(w);
            w.i64(net_lots);
            own_limits.copied().put(w);
            flush(buffer);
        }
        count(&mut Writer(buffer), self.book.order_count());
    }
}

/// Bytes gathered before they go on: as many as a hash takes at its best pace, and few enough that an allocator gives them without
/// further ado.
const FLUSH_LEN: usize = 1 << 15;

/// How many accounts there are, and each with its last transfer.
pub(crate) fn encode_accounts(
    statuses: &[AccountStatus],
    transfers: &Parts<Option<TransferId>>,
    buffer: &mut Vec<u8>,
    flush: &mut impl FnMut(&mut Vec<u8>),
) {
    count(&mut Writer(buffer), statuses.len());
    for (status, transfer) in statuses.iter().zip(transfers.iter()) {
        let w = &mut Writer(buffer);
        status.put(w);
        transfer.put(w);
        flush(buffer);
    }
}

pub(crate) fn count(w: &mut Writer<'_>, items: usize) {
    w.u32(u32::try_from(items).expect("every count has a limit below 2^32"));
}

/// As many items as the count before them says. Grows as they decode, so that a wrong count asks for no memory.
fn list<T>(r: &mut Reader<'_>, item: impl Fn(&mut Reader<'_>) -> Result<T, DecodeError>) -> Result<Vec<T>, DecodeError> {
    let len = r.u32()?;
    (0..len).map(|_| item(r)).collect()
}

fn put_trigger(trigger: Option<Trigger>, w: &mut Writer<'_>) {
    // Where a trailing stop's trigger is follows from the best price.
    trigger.map(|trigger| trigger.trailing.map_or(trigger.price, |trailing| trailing.best)).put(w);
    if let Some(Trigger { becomes, trailing: Some(Trailing { by, .. }), .. }) = trigger {
        let (kind, distance) = match by {
            Trail::Ticks(ticks) => (5, ticks),
            Trail::Ppm(ppm) => (7, ppm),
        };
        w.u8(kind + u8::from(becomes == Becomes::Limit));
        w.u32(distance);
    } else if let Some(Trigger { condition, becomes, trailing: None, is_held, .. }) = trigger {
        let held = if is_held { HELD } else { 0 };
        w.u8(held
            + match (condition, becomes) {
                (Condition::Stop, Becomes::Market) => 0,
                (Condition::Stop, Becomes::Limit) => 1,
                (_, Becomes::Rest) => 2,
                (Condition::TakeProfit, Becomes::Market) => 3,
                (Condition::TakeProfit, Becomes::Limit) => 4,
            });
    }
}

/// Added to the number of an order that waits: it is held.
const HELD: u8 = 16;

fn trigger(r: &mut Reader<'_>, side: Side) -> Result<Option<Trigger>, DecodeError> {
    let Some(price) = Wire::get(r)? else { return Ok(None) };
    let kind = r.u8()?;
    let is_held = kind >= HELD;
    let (condition, becomes) = match if is_held { kind - HELD } else { kind } {
        0 => (Condition::Stop, Becomes::Market),
        1 => (Condition::Stop, Becomes::Limit),
        2 if !is_held => (Condition::Stop, Becomes::Rest),
        3 => (Condition::TakeProfit, Becomes::Market),
        4 => (Condition::TakeProfit, Becomes::Limit),
        kind @ 5..=8 if !is_held => {
            let distance = r.u32()?;
            let by = if kind < 7 { Trail::Ticks(distance) } else { Trail::Ppm(distance) };
            if !by.is_possible() {
                return Err(r.expected("a distance that a trailing stop may have"));
            }
            let becomes = if kind % 2 == 0 { Becomes::Limit } else { Becomes::Market };
            return Ok(Some(Trigger::trailing(side, by, price, becomes)));
        }
        _ => {
            return Err(r.expected(
                "0 or 1 (a stop, market or limit), 2 (the rest of an order), 3 or 4 (a take-profit likewise), 5 to 8 (a trailing stop), \
                 and 16 more for a stop or take-profit that is held",
            ));
        }
    };
    let trigger = Trigger::fixed(price, condition, becomes);
    Ok(Some(if is_held { trigger.held() } else { trigger }))
}

pub(crate) fn put_order(order: &OpenOrder, w: &mut Writer<'_>) {
    order.order_id.put(w);
    order.client_order_id.put(w);
    w.u32(order.owner.0);
    order.side.put(w);
    order.price.put(w);
    order.open.put(w);
    order.shown.put(w);
    order.time_in_force.put(w);
    order.display.put(w);
    put_trigger(order.trigger, w);
    order.post_only.put(w);
    order.min_size.put(w);
    order.self_trade.put(w);
    w.u8(match order.seniority {
        Seniority::Joined => 0,
        Seniority::SetThePrice => 1,
    });
}

fn order(r: &mut Reader<'_>) -> Result<OpenOrder, DecodeError> {
    let (order_id, client_order_id, owner, side) = (Wire::get(r)?, Wire::get(r)?, OwnerId(r.u32()?), Wire::get(r)?);
    Ok(OpenOrder {
        order_id,
        client_order_id,
        owner,
        side,
        price: Wire::get(r)?,
        open: Wire::get(r)?,
        shown: Wire::get(r)?,
        time_in_force: Wire::get(r)?,
        display: Wire::get(r)?,
        trigger: trigger(r, side)?,
        post_only: Wire::get(r)?,
        min_size: Wire::get(r)?,
        self_trade: Wire::get(r)?,
        seniority: match r.u8()? {
            0 => Seniority::Joined,
            1 => Seniority::SetThePrice,
            _ => return Err(r.expected("seniority 0 or 1")),
        },
    })
}
