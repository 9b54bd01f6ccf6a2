//! Attacks on a batch market.

use super::{Attack, Group, Needs, garbage, in_turn, talk};
use crate::barrage::Shots;
use crate::limits::OFFER_ROUNDS_PER_SECOND;

/// Transactions in a request of forged ones.
const FORGED_AT_ONCE: u64 = 250;

pub(super) const RESTING_OFFERS: Attack = Attack {
    name: "resting_offers",
    group: Group::Flood,
    about: "64 small offers a batch by one account, at limits that differ by 2^30, of which none ever trades",
    needs: Needs::Batch,
    plans: |_| Vec::new(),
    shots: |aim| {
        let (participant, batch) = (Box::new(aim.participant.clone()), Box::new(aim.batch.clone()));
        vec![Shots::Offers { address: aim.http.to_owned(), participant, batch, per_second: OFFER_ROUNDS_PER_SECOND }]
    },
};

pub(super) const FORGED_TRANSACTIONS: Attack = Attack {
    name: "forged_transactions",
    group: Group::Malformed,
    about: "2,000 transactions a second whose signatures are well formed and those of others, 250 in a request",
    needs: Needs::Batch,
    shots: |_| Vec::new(),
    plans: |field| {
        let forged = field.batch.forged(FORGED_AT_ONCE);
        vec![talk(field.http, 8, Vec::new(), in_turn(vec![forged]), field.rate(8))]
    },
};

pub(super) const GIANT_TRANSACTIONS: Attack = Attack {
    name: "giant_transactions",
    group: Group::Malformed,
    about: "20 connections a second with requests of the largest transactions, of too many, of endless ones, and of none",
    needs: Needs::Batch,
    shots: |_| Vec::new(),
    plans: |field| vec![garbage(field.http, field.rate(20), field.batch.giants())],
};

pub(super) const UNFINISHED_JOINED: Attack = Attack {
    name: "unfinished_joined",
    group: Group::Flood,
    about: "63 joined transactions of each of 4 accounts, 25 times a second, of which the last never comes",
    needs: Needs::Batch,
    shots: |_| Vec::new(),
    plans: |field| vec![talk(field.http, 8, Vec::new(), in_turn(field.batch.unfinished()), field.rate(25))],
};

pub(super) const FLOOD_DROPPED: Attack = Attack {
    name: "flood_dropped",
    group: Group::Flood,
    about: "1,600 signed transactions a second of 4 accounts that spend more than they have, so that all are dropped",
    needs: Needs::Batch,
    shots: |_| Vec::new(),
    plans: |field| vec![talk(field.http, 8, Vec::new(), in_turn(field.batch.overdrafts()), field.rate(25))],
};
