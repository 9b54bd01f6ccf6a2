//! Execution reports: the events of each account, numbered per account. Recent reports are retained, so that they can be resent
//! after the loss of a connection or a replica.

use std::collections::BTreeMap;

use walras_ledger::Parts;
use walras_types::{AccountId, ClientOrderName, LogIndex, OrderId, Side, TimeNs};
use walras_wire::order_entry::{Filled, Report, TradeRole, encode_filled};
use walras_wire::{AccountEvent, Event, OrderEvent, Resting, SessionEvent, TradeParty, Traded, encode_event};

use super::chunks::{Chunks, Record};

/// How many reports are retained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportSettings {
    /// Maximum per account. The oldest are dropped first, some dozens at a time.
    pub per_account_max: u32,
    /// Maximum bytes over all accounts (a report takes about 80). Beyond this, the piece that was begun first is dropped, whichever
    /// account it belongs to.
    pub bytes_max: u64,
}

impl Default for ReportSettings {
    /// 4,096 reports per account; 128 MiB in total.
    fn default() -> Self {
        Self { per_account_max: 4_096, bytes_max: 128 << 20 }
    }
}

/// The reply to a resend request.
#[derive(Debug)]
pub enum Resend<I> {
    /// The reports after the requested number, in order. Empty if there are none yet.
    Found(I),
    /// Some of the requested reports are no longer retained.
    OlderThanKept {
        /// The earliest retained number, or the next number if no report is retained.
        first_kept: u64,
    },
}

/// The texts that the owners of the orders of an event call them by; of a trade, the maker's and the taker's. Other events have the first
/// alone. Of an amendment that gave the order another text ([`walras_wire::NamedAmend`]) it is that one; of later events it is again the
/// one with which the order entered.
pub type OrderNames = [Option<ClientOrderName>; 2];

/// A retained report, and the text that its owner calls the order by.
pub type NamedReport<'a> = (Report<'a>, Option<ClientOrderName>);

/// One account's reports.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AccountReports {
    /// Number of the latest report; 0 before the first.
    pub(super) report_seq: u64,
    /// Number of retained reports.
    pub(super) kept: u32,
    /// The oldest and the newest piece that hold them.
    pub(super) pieces: Option<(u32, u32)>,
}

/// The reports of all accounts. The caller passes in every event, in order. The state depends on the events alone, so it is the
/// same on every replica. A clone shares the retained pieces until either copy changes them.
#[derive(Clone, Debug)]
pub struct Reports {
    pub(super) settings: ReportSettings,
    /// Indexed by account number; an entry exists once the account is created.
    pub(super) accounts: Parts<AccountReports>,
    pub(super) chunks: Chunks,
    /// The owner of each open iceberg: a `Replenished` event does not name the account.
    pub(super) icebergs: BTreeMap<OrderId, AccountId>,
    /// Whether any report ever had a text.
    pub(super) has_names: bool,
    /// The current log entry, and the order that it brings in, if any.
    entry: LogIndex,
    incoming: Option<OrderId>,
    /// Encoding buffer, reused for each report.
    scratch: Vec<u8>,
}

impl Reports {
    /// Creates an empty state: no accounts, no reports.
    #[must_use]
    pub fn new(settings: ReportSettings) -> Self {
        Self {
            settings,
            accounts: Parts::default(),
            chunks: Chunks::default(),
            icebergs: BTreeMap::new(),
            has_names: false,
            entry: LogIndex(0),
            incoming: None,
            scratch: Vec::new(),
        }
    }

    /// A copy for a snapshot. It has everything that there is for each account in common with these reports until it changes; what is
    /// copied at once is icebergs and the places of pieces that were dropped.
    #[must_use]
    pub fn share(&mut self) -> Self {
        let Self { settings, accounts, chunks, icebergs, has_names, entry, incoming, scratch: _ } = self;
        let (accounts, chunks, icebergs) = (accounts.share(), chunks.share(), icebergs.clone());
        let (settings, has_names, entry, incoming) = (*settings, *has_names, *entry, *incoming);
        Self { settings, accounts, chunks, icebergs, has_names, entry, incoming, scratch: Vec::new() }
    }

    /// How many reports are retained.
    #[must_use]
    pub fn settings(&self) -> ReportSettings {
        self.settings
    }

    /// Applies the next event, of orders without texts. Calls `deliver` with each report that the event produces: for no account, one,
    /// or two.
    pub fn on_event(&mut self, log_index: LogIndex, time: TimeNs, event: &Event, mut deliver: impl FnMut(AccountId, &Report<'_>)) {
        self.on_named_event(log_index, time, event, OrderNames::default(), |account, report, _| deliver(account, report));
    }

    /// The same of an event about orders whose owners may call them by a text.
    pub fn on_named_event(
        &mut self,
        log_index: LogIndex,
        time: TimeNs,
        event: &Event,
        names: OrderNames,
        mut deliver: impl FnMut(AccountId, &Report<'_>, Option<ClientOrderName>),
    ) {
        if log_index != self.entry {
            self.entry = log_index;
            self.incoming = None;
        }
        let at = At { log_index, time };
        match event {
            Event::Order(e) => {
                self.on_order(at, (event, names), e, &mut deliver);
                return;
            }
            // Every new connection opens its session again, so this event carries no news for the account.
            Event::Session(SessionEvent::Opened(_)) => return,
            Event::Account(AccountEvent::Created(account)) => self.create(*account),
            // The command may name an account that does not exist; `report` skips it.
            Event::Rejected(_) => {}
            Event::Account(_) | Event::Session(SessionEvent::Closed(_)) | Event::Batch(_) | Event::Shard(_) => {}
            Event::Instrument(_) | Event::BatchMarket(_) | Event::Venue(_) => {}
        }
        for account in event.accounts().into_iter().flatten() {
            self.report(at, (account, names[0]), |bytes| encode_event(event, bytes), &mut deliver);
        }
    }

    /// Applies an order event. `order` is the content of `event`.
    fn on_order(&mut self, at: At, (event, names): (&Event, OrderNames), order: &OrderEvent, deliver: &mut impl Deliver) {
        self.incoming = order.comes_in().or(self.incoming);
        let account = match order {
            OrderEvent::Traded(e) => {
                self.on_trade(at, e, names, deliver);
                return;
            }
            OrderEvent::Replenished(e) => self.icebergs.get(&e.order_id).copied(),
            OrderEvent::Accepted(e) => {
                // A pending stop displays nothing, so it is not an iceberg yet.
                self.stands(e.order_id, e.account, if e.price.is_some() { e.resting } else { Resting::default() });
                Some(e.account)
            }
            OrderEvent::Amended(e) => {
                self.stands(e.order_id, e.account, if e.price.is_some() { e.resting } else { Resting::default() });
                Some(e.account)
            }
            OrderEvent::Triggered(e) => {
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
            self.report(at, (account, names[0]), |bytes| encode_event(event, bytes), deliver);
        }
    }

    /// Number of an account's latest report; 0 before its first.
    #[must_use]
    pub fn report_seq(&self, account: AccountId) -> u64 {
        self.of_account(account).report_seq
    }

    /// Number of an account's earliest retained report, or the next number if no report is retained.
    #[must_use]
    pub fn first_kept(&self, account: AccountId) -> u64 {
        let account_reports = self.of_account(account);
        account_reports.report_seq - u64::from(account_reports.kept) + 1
    }

    /// The reports of an account after `after`, in order.
    #[must_use]
    pub fn resend(&self, account: AccountId, after: u64) -> Resend<impl Iterator<Item = Report<'_>>> {
        match self.resend_named(account, after) {
            Resend::Found(found) => Resend::Found(found.map(|(report, _)| report)),
            Resend::OlderThanKept { first_kept } => Resend::OlderThanKept { first_kept },
        }
    }

    /// The same, each with the text that its owner calls the order by.
    #[must_use]
    pub fn resend_named(&self, account: AccountId, after: u64) -> Resend<impl Iterator<Item = NamedReport<'_>>> {
        let first_kept = self.first_kept(account);
        if after.saturating_add(1) < first_kept {
            return Resend::OlderThanKept { first_kept };
        }
        let oldest = self.of_account(account).pieces.map(|(oldest, _)| oldest);
        let kept = self.chunks.records_from(oldest).zip(first_kept..);
        // `skip_while` over at most `per_account_max` short records: a resend is rare.
        let reports = kept.map(|(record, report_seq)| {
            let Record { log_index, time, event, name } = record;
            (Report { report_seq, log_index, time, event }, name)
        });
        Resend::Found(reports.skip_while(move |(report, _)| report.report_seq <= after))
    }

    fn of_account(&self, account: AccountId) -> AccountReports {
        usize::try_from(account.0).ok().and_then(|at| self.accounts.get(at)).copied().unwrap_or_default()
    }

    /// Account numbers are dense, so they serve as indexes, and a participant cannot make the table larger than the number of
    /// accounts.
    fn create(&mut self, account: AccountId) {
        let len = usize::try_from(account.0).expect("an account's number fits an index") + 1;
        if self.accounts.len() < len {
            self.accounts.resize(len, AccountReports::default());
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

    fn on_trade(&mut self, at: At, e: &Traded, names: OrderNames, deliver: &mut impl Deliver) {
        let is_uncross = self.incoming != Some(e.taker.order_id);
        let (maker_side, maker_role, taker_side, taker_role) = if is_uncross {
            (Side::Buy, TradeRole::Auction, Side::Sell, TradeRole::Auction)
        } else {
            (e.taker_side.opposite(), TradeRole::Maker, e.taker_side, TradeRole::Taker)
        };
        let mut report_fill = |party: &TradeParty, name, side, role| {
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
            self.report(at, (party.account, name), |bytes| encode_filled(&filled, bytes), deliver);
        };
        report_fill(&e.maker, names[0], maker_side, maker_role);
        report_fill(&e.taker, names[1], taker_side, taker_role);
        if e.maker.open.is_zero() {
            self.gone(e.maker.order_id);
        }
        // The event of an incoming order precedes its trades and already gives the open size that will rest.
        if is_uncross && e.taker.open.is_zero() {
            self.gone(e.taker.order_id);
        }
    }

    fn report(
        &mut self,
        at: At,
        (account, name): (AccountId, Option<ClientOrderName>),
        encode: impl FnOnce(&mut Vec<u8>),
        deliver: &mut impl Deliver,
    ) {
        let Some(account_reports) = usize::try_from(account.0).ok().and_then(|index| self.accounts.get_mut(index)) else { return };
        self.scratch.clear();
        encode(&mut self.scratch);
        account_reports.report_seq += 1;
        account_reports.kept += 1;
        let oldest = account_reports.pieces.map(|(oldest, _)| oldest);
        let At { log_index, time } = at;
        let record = Record { log_index, time, event: &self.scratch, name };
        self.has_names |= name.is_some();
        let newest = self.chunks.append(account_reports.pieces.map(|(_, newest)| newest), account, &record);
        account_reports.pieces = Some((oldest.unwrap_or(newest), newest));
        let report_seq = account_reports.report_seq;
        if account_reports.kept > self.settings.per_account_max {
            let oldest = account_reports.pieces.expect("an account with reports has a piece").0;
            self.drop_piece(oldest);
        }
        while self.chunks.bytes() > self.settings.bytes_max {
            let Some(oldest) = self.chunks.oldest() else { break };
            self.drop_piece(oldest);
        }
        deliver(account, &Report { report_seq, log_index, time, event: &self.scratch }, name);
    }

    /// Drops a piece, which must be its account's oldest. The oldest piece overall always is.
    fn drop_piece(&mut self, piece: u32) {
        let dropped = self.chunks.drop(piece);
        let index = usize::try_from(dropped.account.0).expect("an account's number fits an index");
        let account_reports = &mut self.accounts[index];
        account_reports.kept -= dropped.count;
        let newest = account_reports.pieces.expect("a piece belongs to an account that has it").1;
        account_reports.pieces = dropped.next.map(|next| (next, newest));
    }
}

/// Who hears of a report.
trait Deliver: FnMut(AccountId, &Report<'_>, Option<ClientOrderName>) {}

impl<F: FnMut(AccountId, &Report<'_>, Option<ClientOrderName>)> Deliver for F {}

#[derive(Clone, Copy)]
struct At {
    log_index: LogIndex,
    time: TimeNs,
}
