//! Execution reports: the events that concern an account, numbered for it. They are kept for a while, so that they can be sent
//! again after a connection or a replica is lost.

use std::collections::BTreeMap;

use walras_types::{AccountId, LogIndex, OrderId, Side, TimeNs};
use walras_wire::order_entry::{Filled, Report, TradeRole, encode_filled};
use walras_wire::{AccountEvent, Event, OrderEvent, Resting, SessionEvent, TradeParty, Traded, encode_event};

use super::chunks::Chunks;

/// How many reports are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportSettings {
    /// Of one account, at most. The oldest go first, some dozens at a time.
    pub per_account_max: u32,
    /// Bytes of all accounts' reports together, at most (a report has about 80). When they are spent, the piece of any account that
    /// was begun first goes.
    pub bytes_max: u64,
}

impl Default for ReportSettings {
    /// 4,096 of an account; 128 MiB in all.
    fn default() -> Self {
        Self { per_account_max: 4_096, bytes_max: 128 << 20 }
    }
}

/// The answer to a wish for old reports.
#[derive(Debug)]
pub enum Resend<I> {
    /// Those after the wished number, in order; none when there are none yet.
    Found(I),
    /// Some of them are not kept any more.
    OlderThanKept {
        /// The earliest that is, or the next one to come where none is.
        first_kept: u64,
    },
}

/// The reports that an account has got.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Told {
    /// The latest number.
    pub(super) report_seq: u64,
    /// How many are kept.
    pub(super) kept: u32,
    /// The pieces in which they are, oldest and newest.
    pub(super) pieces: Option<(u32, u32)>,
}

/// The reports of all accounts: a function of the events alone, and so the same on every replica. Feed it every event, in order. A
/// clone shares what is kept until it changes.
#[derive(Clone, Debug)]
pub struct Reports {
    pub(super) settings: ReportSettings,
    /// By account; an account exists from its creation on.
    pub(super) told: Vec<Told>,
    pub(super) chunks: Chunks,
    /// Whose a standing order is that shows only a part: its replenishment does not say.
    pub(super) icebergs: BTreeMap<OrderId, AccountId>,
    /// The entry whose events come now, and the order that came in with it.
    entry: LogIndex,
    incoming: Option<OrderId>,
    /// Reused for each report.
    scratch: Vec<u8>,
}

impl Reports {
    /// No account has any report.
    #[must_use]
    pub fn new(settings: ReportSettings) -> Self {
        Self {
            settings,
            told: Vec::new(),
            chunks: Chunks::default(),
            icebergs: BTreeMap::new(),
            entry: LogIndex(0),
            incoming: None,
            scratch: Vec::new(),
        }
    }

    /// How many are kept.
    #[must_use]
    pub fn settings(&self) -> ReportSettings {
        self.settings
    }

    /// Takes the next event, and tells `tell` what came of it for whom: nobody, one account, or two.
    pub fn on_event(&mut self, log_index: LogIndex, time: TimeNs, event: &Event, mut tell: impl FnMut(AccountId, &Report<'_>)) {
        if log_index != self.entry {
            self.entry = log_index;
            self.incoming = None;
        }
        let at = At { log_index, time };
        match event {
            Event::Order(e) => {
                self.on_order(at, event, e, &mut tell);
                return;
            }
            // Every new connection opens its session again: that is no news to the account.
            Event::Session(SessionEvent::Opened(_)) => return,
            Event::Account(AccountEvent::Created(account)) => self.create(*account),
            // The command may have named an account that does not exist: that account gets no report.
            Event::Rejected(_) => {}
            Event::Account(_) | Event::Session(SessionEvent::Closed(_)) | Event::Batch(_) | Event::Shard(_) => {}
            Event::Instrument(_) | Event::BatchMarket(_) | Event::Venue(_) => {}
        }
        for account in event.accounts().into_iter().flatten() {
            self.report(at, account, |bytes| encode_event(event, bytes), &mut tell);
        }
    }

    /// The same for an order's: `order` is what `event` holds.
    fn on_order(&mut self, at: At, event: &Event, order: &OrderEvent, tell: &mut impl FnMut(AccountId, &Report<'_>)) {
        let account = match order {
            OrderEvent::Traded(e) => {
                self.on_trade(at, e, tell);
                return;
            }
            OrderEvent::Replenished(e) => self.icebergs.get(&e.order_id).copied(),
            OrderEvent::Accepted(e) => {
                self.incoming = Some(e.order_id);
                // A stop that waits shows nothing and is no iceberg yet.
                self.stands(e.order_id, e.account, if e.price.is_some() { e.resting } else { Resting::default() });
                Some(e.account)
            }
            OrderEvent::Amended(e) => {
                self.incoming = Some(e.order_id);
                self.stands(e.order_id, e.account, if e.price.is_some() { e.resting } else { Resting::default() });
                Some(e.account)
            }
            OrderEvent::Triggered(e) => {
                self.incoming = Some(e.order_id);
                self.stands(e.order_id, e.account, e.resting);
                Some(e.account)
            }
            OrderEvent::Cancelled(e) => {
                self.gone(e.order_id);
                Some(e.account)
            }
            OrderEvent::Reduced(e) => {
                if e.resting.open.is_zero() {
                    self.gone(e.order_id);
                }
                Some(e.account)
            }
        };
        if let Some(account) = account {
            self.report(at, account, |bytes| encode_event(event, bytes), tell);
        }
    }

    /// The latest number of an account; 0 before its first report.
    #[must_use]
    pub fn report_seq(&self, account: AccountId) -> u64 {
        self.told_of(account).report_seq
    }

    /// The earliest report of an account that is kept, or the next one to come where none is.
    #[must_use]
    pub fn first_kept(&self, account: AccountId) -> u64 {
        let told = self.told_of(account);
        told.report_seq - u64::from(told.kept) + 1
    }

    /// The reports of an account after `after`, in order.
    #[must_use]
    pub fn resend(&self, account: AccountId, after: u64) -> Resend<impl Iterator<Item = Report<'_>>> {
        let first_kept = self.first_kept(account);
        if after.saturating_add(1) < first_kept {
            return Resend::OlderThanKept { first_kept };
        }
        let oldest = self.told_of(account).pieces.map(|(oldest, _)| oldest);
        let kept = self.chunks.records_from(oldest).zip(first_kept..);
        // `skip_while` over at most `per_account_max` short records: a resend is rare.
        let reports = kept.map(|(record, report_seq)| Report {
            report_seq,
            log_index: record.log_index,
            time: record.time,
            event: record.event,
        });
        Resend::Found(reports.skip_while(move |report| report.report_seq <= after))
    }

    fn told_of(&self, account: AccountId) -> Told {
        usize::try_from(account.0).ok().and_then(|at| self.told.get(at)).copied().unwrap_or_default()
    }

    /// Accounts are dense, so an account's place is its number, and nobody can make the table larger than the venue is.
    fn create(&mut self, account: AccountId) {
        let len = usize::try_from(account.0).expect("an account's number fits an index") + 1;
        if self.told.len() < len {
            self.told.resize(len, Told::default());
        }
    }

    fn stands(&mut self, order_id: OrderId, account: AccountId, resting: Resting) {
        if !resting.shown.is_zero() && resting.shown < resting.open {
            self.icebergs.insert(order_id, account);
        } else {
            self.gone(order_id);
        }
    }

    fn gone(&mut self, order_id: OrderId) {
        self.icebergs.remove(&order_id);
    }

    fn on_trade(&mut self, at: At, e: &Traded, tell: &mut impl FnMut(AccountId, &Report<'_>)) {
        let is_uncross = self.incoming != Some(e.taker.order_id);
        let (maker_side, maker_role, taker_side, taker_role) = if is_uncross {
            (Side::Buy, TradeRole::Auction, Side::Sell, TradeRole::Auction)
        } else {
            (e.taker_side.opposite(), TradeRole::Maker, e.taker_side, TradeRole::Taker)
        };
        let mut told = |party: &TradeParty, side, role| {
            let filled = Filled {
                instrument: e.instrument,
                trade_id: e.trade_id,
                client_order_id: party.client_order_id,
                order_id: party.order_id,
                side,
                role,
                price: e.price,
                size: e.size,
                open: party.open,
                fee: party.fee,
            };
            self.report(at, party.account, |bytes| encode_filled(&filled, bytes), tell);
        };
        told(&e.maker, maker_side, maker_role);
        told(&e.taker, taker_side, taker_role);
        if e.maker.open.is_zero() {
            self.gone(e.maker.order_id);
        }
        // What an incoming order leaves standing was said before its trades.
        if is_uncross && e.taker.open.is_zero() {
            self.gone(e.taker.order_id);
        }
    }

    fn report(
        &mut self,
        at: At,
        account: AccountId,
        encode: impl FnOnce(&mut Vec<u8>),
        tell: &mut impl FnMut(AccountId, &Report<'_>),
    ) {
        let Some(told) = usize::try_from(account.0).ok().and_then(|index| self.told.get_mut(index)) else { return };
        self.scratch.clear();
        encode(&mut self.scratch);
        told.report_seq += 1;
        told.kept += 1;
        let oldest = told.pieces.map(|(oldest, _)| oldest);
        let newest = self.chunks.append(told.pieces.map(|(_, newest)| newest), account, at.log_index, at.time, &self.scratch);
        told.pieces = Some((oldest.unwrap_or(newest), newest));
        let (report_seq, log_index, time) = (told.report_seq, at.log_index, at.time);
        if told.kept > self.settings.per_account_max {
            let oldest = told.pieces.expect("an account with reports has a piece").0;
            self.drop_piece(oldest);
        }
        while self.chunks.bytes() > self.settings.bytes_max {
            let Some(oldest) = self.chunks.oldest() else { break };
            self.drop_piece(oldest);
        }
        tell(account, &Report { report_seq, log_index, time, event: &self.scratch });
    }

    /// Drops a piece that is its account's oldest. The oldest piece of all is one.
    fn drop_piece(&mut self, piece: u32) {
        let dropped = self.chunks.drop(piece);
        let index = usize::try_from(dropped.account.0).expect("an account's number fits an index");
        let told = &mut self.told[index];
        told.kept -= dropped.count;
        let newest = told.pieces.expect("a piece belongs to an account that has it").1;
        told.pieces = dropped.next.map(|next| (next, newest));
    }
}

#[derive(Clone, Copy)]
struct At {
    log_index: LogIndex,
    time: TimeNs,
}
