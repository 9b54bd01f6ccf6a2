//! Why a command was refused. Numbers are stable: they are on the wire, in the log and in clients' programs.
//!
//! 47 and 65 are not to be given again: reasons of these numbers were published once and never produced (an instrument has a
//! reference price from its first day, and the bound on an asset's supply, 66, also bounds every balance).

macro_rules! reject_reasons {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $advice:literal;)*) => {
        /// Why a command was refused.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u16)]
        pub enum RejectReason { $(#[doc = $advice] $name = $number,)* }

        impl RejectReason {
            /// Every reason, in the order of their numbers.
            pub const ALL: &[RejectReason] = &[$(RejectReason::$name,)*];

            /// The reason's stable number.
            #[must_use]
            pub const fn number(self) -> u16 { self as u16 }

            /// The reason of a number.
            #[must_use]
            pub const fn from_number(number: u16) -> Option<Self> {
                match number { $($number => Some(Self::$name),)* _ => None }
            }

            /// Its name in `snake_case` APIs.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)* }
            }

            /// A sentence that says what is wrong and what to do.
            #[must_use]
            pub const fn advice(self) -> &'static str {
                match self { $(Self::$name => $advice,)* }
            }
        }
    };
}

reject_reasons! {
    // 1-19: what is named does not exist, or exists already.
    UnknownAccount = 1, "No such account: check its number; the operator creates accounts, from 0 without gaps.";
    UnknownInstrument = 2, "No such instrument: list the venue's instruments and use a symbol, or over binary order entry an id, from there.";
    UnknownAsset = 3, "No such asset: list the venue's assets and use a symbol, or over binary order entry an id, from there.";
    UnknownOrder = 4, "No open order of this account has that client_order_id: it was filled, cancelled, or never accepted; look at the account's orders and fills.";
    DuplicateClientOrderId = 5, "An open order of this account already has that client_order_id: choose another, or cancel the first.";
    IdNotNext = 6, "Ids of accounts, assets and instruments are dense: use the next free one.";
    DuplicateTransfer = 7, "This transfer_id, or a later one, was already applied to the account: use a larger one for a new transfer.";
    AccountSuspended = 8, "The account is suspended: send only cancels, until the operator reinstates it.";
    DuplicateSymbol = 9, "That symbol is in use: choose another.";
    UnknownSession = 10, "No such session: it was closed, or never opened. Open another, and look at the open orders before sending again what was not answered.";
    UnknownBatchMarket = 11, "No such batch market: list the venue's batch markets and use an id from there.";
    DuplicateTransaction = 12, "A transaction of this account and number is collected already: wait for its block, then give another transaction a new number.";
    KeyTaken = 13, "Another account has that public key, or will when its block is cleared: use another key.";
    UnknownShard = 14, "No such other shard: list the venue's shards and use the number of another than this one.";
    TransferTaken = 15, "The transfer of that number was taken already: look up its result, and report that to the shard that sent it.";

    // 20-39: the command is outside its documented range.
    PriceOutOfRange = 20, "The price is out of range: give one from 1 to 1099511627775 ticks.";
    SizeOutOfRange = 21, "The size is out of range: give one from 1 to 68719476735 lots, and split what is larger.";
    ValueOverflow = 22, "Price times size exceeds what an amount can hold: send a smaller order.";
    DisplayInvalid = 23, "The order cannot be shown this way: give an iceberg a peak of at least one lot, below its size, and at least a thousandth of it; use iceberg and hidden only for orders that can rest.";
    MinSizeInvalid = 24, "The minimum size does not fit the order: give at least one lot and at most its size, and leave it out of post-only and fill-or-kill orders.";
    PostOnlyInvalid = 25, "Post-only goes with limit orders that can rest: leave it out, or use another time in force than immediate-or-cancel and fill-or-kill.";
    TimeInForceInvalid = 26, "A market order does not rest: use immediate-or-cancel or fill-or-kill (a stop may wait with any time in force).";
    AlreadyExpired = 27, "The good-till time, or the last block that may have the transaction, has passed: give a later one.";
    SpecInvalid = 28, "The definition is inconsistent: see the ranges of its fields at POST /v1/admin/instruments in the API's description, /openapi.yaml.";
    AmendInvalid = 29, "The amendment does not fit the order: give a new price, trigger or size; only a stop that waits has a trigger, a trailing stop has none to give, and one without a limit has no price.";
    AmountOutOfRange = 30, "The amount is out of range: give from 1 to 9223372036854775807 of the asset's smallest units.";
    DecimalsOutOfRange = 31, "The asset has too many decimals: give at most 18.";
    TransactionSeqOutOfWindow = 32, "The transaction's number is not among the 64 that follow the account's last one: use the next one.";
    BatchRulesInvalid = 33, "The interval, the most transactions and the rules of a batch market are out of range: see their documented ranges. The share 2^-mu must be larger than the commission 2^-commission, so the number mu is the smaller one.";
    BatchAssetsInvalid = 34, "A batch market has 2 to 100 assets, each once; or 1 to 100 currencies, no more of them than assets, and at most 20480 pairs of assets of which one is a currency: add assets and name currencies before it is opened, and leave this one out.";
    BatchMarketMismatch = 35, "The transaction names another batch market: send it to that one.";
    AccessDelayTooLong = 36, "The delay of fair access is too long: give at most ten seconds.";
    ShardsInvalid = 37, "The shards do not fit: give a count from 1 to 64 that never falls and an own number below it that never changes, and make a shard other than 0 one before its first instrument.";
    EngineVersionInvalid = 38, "The venue does not go to that engine version: it is not later than the one in force, or not every replica is linked and knows it; ask walras cluster upgrade-check.";
    NeedsLaterVersion = 39, "This needs a later engine version than the one in force: ask the operator to finish the upgrade (walras cluster finish-upgrade).";

    // 40-59: the market's state does not allow it.
    PhaseTakesNoOrders = 40, "The instrument is closed or halted: send only cancels, and wait with orders until its phase changes.";
    PhaseNoImmediate = 41, "Nothing matches in this phase: wait with market, immediate-or-cancel, fill-or-kill and minimum-size orders for continuous trading, or send one that can rest.";
    PhaseChangeInvalid = 42, "The instrument cannot go from its phase to that one: use one that may follow (closed: pre_open, continuous; pre_open: opening_auction, closed; opening_auction: continuous, halt, closed; continuous: halt, closing_auction, closed; halt: opening_auction, continuous, closing_auction, closed; closing_auction: halt, closed).";
    PostOnlyWouldTrade = 43, "The order would trade at once: lower a bid, raise an ask, or allow it to take.";
    FillOrKillUnfillable = 44, "The book cannot fill the whole order now: lower its size, give it a better price, or use immediate-or-cancel to take what there is.";
    MinSizeUnfillable = 45, "The book cannot fill the minimum size now: lower it, give the order a better price, or leave the minimum out.";
    BookFull = 46, "The book holds as many orders as it can: cancel orders that are not needed, or wait until others leave it.";
    PriceOutsideCollar = 48, "The limit price is outside the instrument's collar: use one within it; it lies around the last trade, before any around the reference price, and around a stop's trigger.";
    BatchMarketClosed = 49, "The batch market is closed: wait until the operator opens it.";
    BatchFull = 50, "The batch has as many transactions as it can: send it again for the next one.";
    BatchNotNext = 51, "That is not the number of the market's next block: look at the last one, and close the one after it.";
    BatchNotCleared = 52, "The batch that was closed before waits to be cleared: clear it first.";
    BatchAssetsFixed = 53, "The assets of a batch market are fixed once it was opened: create another market.";
    InstrumentElsewhere = 54, "The instrument is another shard's: list the venue's shards and send the command to the one that has it.";
    InstrumentInUse = 55, "The instrument cannot go to another shard now: wait until it is closed and has no open orders.";
    TransferNotNext = 56, "That is not the number of the next transfer: send all of them in the order of their numbers, and confirm none that is not in transit.";
    TransfersFull = 57, "As many transfers to that shard are in transit as there can be, or 256 of them are this account's: wait until it has taken some, then try again.";
    AccountsByOperator = 58, "The venue has several shards, and an account has the same id in all of them: ask the operator to create it.";
    TransfersStopped = 59, "One of the two shards was set back to an older state, so nothing moves between them: ask the operator to restore it, and send the transfer again when GET /v1/shards says that they agree.";

    // 60-79: the account may not.
    InsufficientFunds = 60, "The available balance does not cover the order's value and fee, or the withdrawal: ask for less, cancel orders that reserve the asset, or deposit.";
    OrderTooLarge = 61, "The order exceeds the account's largest size in this instrument: split it, or ask the operator to raise the limit.";
    OrderValueTooLarge = 62, "The order exceeds the account's largest value in this instrument: split it, or ask the operator to raise the limit.";
    TooManyOpenOrders = 63, "The account has as many open orders in this instrument, or standing offers in batch markets, as it may: cancel some.";
    PositionLimit = 64, "Filled, the order would take the account's position past its limit: lower its size, cancel open orders of its side, or ask the operator to raise the limit.";
    SupplyOverflow = 66, "The asset's total supply would exceed what a balance can hold: deposit less.";
    NoTransactionKey = 67, "The account has no key for transactions: ask the operator to set one.";

    // 80-89: the session does not allow it.
    SessionSeqGap = 80, "A command of this session before this session_seq has not come: send all of them again, from the session's next number on, in order and without gaps.";
    SessionSeqTooOld = 81, "The session no longer remembers what came of this session_seq: read the account's reports, and leave at most 1024 commands unanswered.";
    TooManySessions = 82, "The venue has as many sessions as it can, and none is this account's to give up: try again later, or ask the operator.";
    SessionSeqReused = 83, "Another command of this session has this session_seq, and this one changed nothing: give a new command the next number, and repeat a command unchanged.";

    // 90-99: the market's state does not allow it, continued: 40 to 59 are given.
    StopWouldTrigger = 90, "The last trade has touched the trigger, so the order would not wait: give a buy stop or a sell take-profit a trigger above the last price and a sell stop or a buy take-profit one below it, or send a limit or market order to trade at once.";
    FillCheckTooDeep = 91, "The order would meet more than 1024 resting orders (or 4096 prices, where its account has no order on the other side) before it is known whether all of it, or its minimum size, can be filled: send a smaller order, lower its minimum, or use immediate-or-cancel.";
    BookBusy = 92, "The book still carries out an earlier command, in steps, and takes no other before that: nothing was done; send it again in a moment.";
    LinkInvalid = 93, "The order cannot be linked with that one: name an open order of the account in the instrument, give this one its side and its open size, link no order twice, and let at least one of them wait for a trigger; a limit order that is linked as it enters is post-only; an exit is one of two, a stop or take-profit that comes before its entry and has the other side and the same size.";
    LinkedOrderFixed = 94, "An order that is linked with another keeps its terms, and an entry with exits its size: cancel it, which cancels what is linked with it, and send all again.";
    TrailInvalid = 95, "The trailing stop cannot follow the market at that distance: give at least one tick, or 1 to 999999 millionths of the price, so that its trigger is a price from 1 to 1099511627775 ticks.";

    NoSuchPair = 96, "The batch market has no pair of these two assets, because neither is one of its currencies: use two offers, one that sells for a currency and one that buys with it.";

    // 100-149: refused at the gateway, before the log; Forbidden also by the engine, of a command that its session may not send.
    Malformed = 100, "The request does not parse: see the API's documented shape.";
    TooLarge = 101, "The request is larger than the gateway reads: send a smaller one.";
    Unauthenticated = 102, "No valid key and signature: sign the request as the API documents.";
    UnknownKey = 103, "No such API key: check the key id; if the key was revoked, ask the operator for another one.";
    SignatureInvalid = 104, "The signature does not match the request: check the secret, and sign exactly the text that the venue checks.";
    TimestampStale = 105, "The request's timestamp is too far from the gateway's clock, or before the first one that it takes after a restart: synchronise the clock, and sign again with the later of now and accepts_timestamps_from_ns of GET /v1/status.";
    NonceReused = 106, "This nonce was used already: a request is taken once; use a fresh nonce.";
    Throttled = 107, "Too many requests: slow down and try again.";
    Forbidden = 108, "The key or the session may not do this: use one with the permission.";
    NotFound = 109, "There is nothing at this address: look for the right one in the API's description, /openapi.yaml.";
    VenueNotReady = 110, "The venue is starting or recovering: try again.";
    StorageFull = 111, "The venue cannot write its log, so it takes no commands: free disk space.";
    Overloaded = 112, "The venue's queue is full: try again.";
    PriceNotOnTick = 113, "The price is not a whole number of ticks: see the instrument's tick_size.";
    SizeNotOnLot = 114, "The size is not a whole number of lots: see the instrument's lot_size.";
    AmountNotOnUnit = 115, "The amount has more decimals than the asset: see the asset's decimals.";
    NotLeader = 116, "Another replica takes commands: send it there (the answer says where, if it is known), or try again after the election.";
    NotInACluster = 117, "Replicas of earlier versions take no snapshots on demand: use a replica of this version.";
    LastOperatorKey = 118, "Without this key nobody could administer the venue: create another operator's key first, then revoke this one.";
    KeyExpired = 119, "The API key has expired: ask the operator for another one.";
    JoinedRefused = 120, "A transaction that this one is joined with is refused, and one does not count without the other: look at that one's reason, and send all of them again.";
}

impl std::fmt::Display for RejectReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({}): {}", self.name(), self.number(), self.advice())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advice::says_what_to_do;

    #[test]
    fn every_advice_says_what_is_wrong_and_what_to_do() {
        for &reason in RejectReason::ALL {
            let advice = reason.advice();
            assert!(says_what_to_do(advice), "{reason:?} does not say what to do: {advice}");
            assert!(advice.starts_with(char::is_uppercase) && advice.ends_with('.'), "{reason:?} is no sentence: {advice}");
            assert!(
                !advice.contains("_MAX") && !advice.contains("_WINDOW"),
                "{reason:?} names a constant, not its number: {advice}"
            );
        }
    }

    #[test]
    fn what_an_advice_says_of_limits_is_so() {
        use crate::limits::{
            AMOUNT_MAX, ASSET_DECIMALS_MAX, FILL_CHECK_LEVELS_MAX, FILL_CHECK_ORDERS_MAX, ICEBERG_SLICES_MAX, PRICE_TICKS_MAX,
            SESSION_WINDOW, SIZE_LOTS_MAX, TRAIL_PPM_MAX, TRANSFERS_PER_ACCOUNT_MAX,
        };
        let says = |reason: RejectReason, text: String| assert!(reason.advice().contains(&text), "{reason:?} does not say {text}");
        says(RejectReason::PriceOutOfRange, format!("from 1 to {PRICE_TICKS_MAX} ticks"));
        says(RejectReason::SizeOutOfRange, format!("from 1 to {SIZE_LOTS_MAX} lots"));
        says(RejectReason::TrailInvalid, format!("1 to {TRAIL_PPM_MAX} millionths"));
        says(RejectReason::TrailInvalid, format!("from 1 to {PRICE_TICKS_MAX} ticks"));
        says(RejectReason::AmountOutOfRange, format!("from 1 to {AMOUNT_MAX} of"));
        says(RejectReason::DecimalsOutOfRange, format!("at most {ASSET_DECIMALS_MAX}."));
        says(RejectReason::SessionSeqTooOld, format!("at most {SESSION_WINDOW} commands"));
        says(RejectReason::FillCheckTooDeep, format!("more than {FILL_CHECK_ORDERS_MAX} resting orders"));
        says(RejectReason::FillCheckTooDeep, format!("or {FILL_CHECK_LEVELS_MAX} prices"));
        says(RejectReason::TransfersFull, format!("or {TRANSFERS_PER_ACCOUNT_MAX} of them"));
        assert_eq!(ICEBERG_SLICES_MAX, 1_000, "a thousandth, says {}", RejectReason::DisplayInvalid.advice());
    }

    #[test]
    fn the_phases_that_may_follow_are_told() {
        use crate::TradingPhase::{self, Closed, ClosingAuction, Continuous, Halt, OpeningAuction, PreOpen};
        const PHASES: [(TradingPhase, &str); 6] = [
            (Closed, "closed"),
            (PreOpen, "pre_open"),
            (OpeningAuction, "opening_auction"),
            (Continuous, "continuous"),
            (Halt, "halt"),
            (ClosingAuction, "closing_auction"),
        ];
        let advice = RejectReason::PhaseChangeInvalid.advice();
        let list = advice.split_once('(').and_then(|(_, rest)| rest.split_once(')')).expect("a list in brackets").0;
        let listed: Vec<(&str, Vec<&str>)> = list
            .split("; ")
            .map(|of_one| of_one.split_once(": ").expect("a phase and what may follow it"))
            .map(|(from, next)| (from, next.split(", ").collect()))
            .collect();
        assert_eq!(listed.len(), PHASES.len());
        for (from, from_name) in PHASES {
            let next = &listed.iter().find(|(name, _)| *name == from_name).expect("every phase is listed").1;
            for (to, to_name) in PHASES {
                assert_eq!(next.contains(&to_name), from.may_become(to), "{from_name} to {to_name}");
            }
        }
    }

    /// Every reason is in the list that clients read, word for word.
    #[test]
    fn the_list_in_docs_is_whole() {
        let listed: Vec<&str> = include_str!("../../../docs/reject-reasons.md")
            .lines()
            .filter(|line| line.starts_with("| ") && !line.contains("---"))
            .collect();
        let row = |r: &RejectReason| format!("| {} | `{}` | {} |", r.number(), r.name(), r.advice());
        let expected: Vec<String> = RejectReason::ALL.iter().map(row).collect();
        assert_eq!(listed[1..], expected, "write these rows into docs/reject-reasons.md");
    }

    #[test]
    fn numbers_that_were_given_up_stay_free() {
        for number in [47, 65] {
            assert_eq!(RejectReason::from_number(number), None);
        }
    }

    #[test]
    fn numbers_are_unique_and_round_trip() {
        for pair in RejectReason::ALL.windows(2) {
            assert!(pair[0].number() < pair[1].number(), "{:?} then {:?}", pair[0], pair[1]);
        }
        for &reason in RejectReason::ALL {
            assert_eq!(RejectReason::from_number(reason.number()), Some(reason));
        }
        assert_eq!(RejectReason::from_number(0), None);
    }
}
