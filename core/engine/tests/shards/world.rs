//! Some shards, and the sum over all of them.

use std::collections::BTreeMap;

use walras_engine::{Engine, TransferOutcome};
use walras_types::*;
use walras_wire::*;

use crate::venue::{BTC, EUR, USD, opening, phase, spec};

pub const ACCOUNTS: u32 = 4;
pub const ASSETS: [AssetId; 3] = [BTC, USD, EUR];

/// Shards, and what came into the venue and left it, counted from the events alone.
pub struct World {
    pub shards: Vec<Engine>,
    pub now: TimeNs,
    issued: BTreeMap<AssetId, i128>,
    /// How often what happened.
    pub reached: BTreeMap<String, u32>,
}

pub fn shard(index: usize) -> ShardId {
    ShardId(u8::try_from(index).unwrap())
}

impl World {
    /// One venue that was never told of shards.
    pub fn alone() -> Self {
        Self { shards: vec![Engine::new()], now: TimeNs(1), issued: BTreeMap::new(), reached: BTreeMap::new() }
    }

    /// The same assets, accounts and instruments everywhere; funds only at shard 0, and of the instruments each has those whose number
    /// leaves its own over when divided by the count.
    pub fn new(count: usize, amount: u64) -> Self {
        let mut world = Self { shards: Vec::new(), now: TimeNs(1), issued: BTreeMap::new(), reached: BTreeMap::new() };
        for own in 0..count {
            world.shards.push(Engine::with_hash_seed(own as u64));
            let place = ShardPlace { own: shard(own), count: shard(count).0 };
            world.take(own, Command::Shard(ShardCommand::Configure(place)));
            for command in opening(ACCOUNTS, amount, &[spec(0), spec(1), spec(2)]) {
                if own == 0 || !matches!(command, Command::Account(AccountCommand::Deposit(_))) {
                    world.take(own, command);
                }
            }
            for instrument in (0..3).map(InstrumentId) {
                let owner = shard(instrument.0 as usize % count);
                world.take(own, Command::Shard(ShardCommand::AssignInstrument(InstrumentShard { instrument, shard: owner })));
                if owner == shard(own) {
                    world.take(own, phase(instrument.0, TradingPhase::Continuous));
                }
            }
        }
        world.check().unwrap();
        world
    }

    /// Applies a command to a shard, and gives its events.
    pub fn apply(&mut self, at: usize, command: Command) -> Vec<Event> {
        let mut events = Vec::new();
        let engine = &mut self.shards[at];
        engine.apply(engine.last_applied().next(), self.now, &command, &mut events);
        engine.check_invariants();
        for event in &events {
            let name = match event {
                Event::Rejected(e) => format!("{:?}", e.reason),
                Event::Shard(e) => format!("{e:?}").split('(').next().unwrap().to_owned(),
                Event::Order(OrderEvent::Traded(_)) => "Traded".to_owned(),
                _ => String::new(),
            };
            *self.reached.entry(name).or_default() += 1;
            let (asset, amount) = match event {
                Event::Account(AccountEvent::Deposited(e)) => (e.asset, i128::from(e.amount.get())),
                Event::Account(AccountEvent::Withdrawn(e)) => (e.asset, -i128::from(e.amount.get())),
                _ => continue,
            };
            *self.issued.entry(asset).or_default() += amount;
        }
        events
    }

    /// Applies a command that has to take effect.
    pub fn take(&mut self, at: usize, command: Command) -> Vec<Event> {
        let events = self.apply(at, command);
        assert!(!matches!(events[..], [Event::Rejected(_)]), "{command:?} at {at}: {events:?}");
        events
    }

    /// Why a command is refused; it changes nothing.
    pub fn refused(&mut self, at: usize, command: Command) -> RejectReason {
        let before = self.snapshot(at);
        match self.apply(at, command)[..] {
            [Event::Rejected(Rejected { reason, .. })] => {
                assert!(lasting(&before) == lasting(&self.snapshot(at)), "{command:?} was refused and changed something");
                reason
            }
            ref other => panic!("{command:?} at {at} was not refused: {other:?}"),
        }
    }

    pub fn restart(&mut self, at: usize) {
        let bytes = self.snapshot(at);
        self.restore(at, &bytes);
        assert_eq!(self.snapshot(at), bytes);
    }

    pub fn snapshot(&self, at: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.shards[at].snapshot(&mut bytes);
        bytes
    }

    pub fn restore(&mut self, at: usize, bytes: &[u8]) {
        self.shards[at] = Engine::restore_with_hash_seed(bytes, 3).unwrap();
        self.shards[at].check_invariants();
    }

    pub fn in_transit_count(&self) -> usize {
        let to = |engine: &Engine| (0..self.shards.len()).map(|to| engine.transfers_in_transit_count(shard(to))).sum::<usize>();
        self.shards.iter().map(to).sum()
    }

    /// Over all shards: what accounts have, the fees, and what left one shard and is not at the other, are what came into the venue.
    pub fn check(&self) -> Result<(), String> {
        for asset in ASSETS {
            let mut sum = 0;
            let mut issued = 0;
            for (from, engine) in self.shards.iter().enumerate() {
                issued += engine.issued_here(asset);
                sum += i128::from(engine.fees(asset).get());
                for account in (0..engine.account_count()).map(AccountId) {
                    let has = engine.balance(account, asset);
                    sum += i128::from(has.available.get()) + i128::from(has.reserved.get());
                }
                for (to, other) in self.shards.iter().enumerate() {
                    let lost = |seq| other.transfer_outcome(shard(from), seq) != Some(TransferOutcome::Taken);
                    let mine = engine.transfers_in_transit(shard(to)).filter(|t| t.transfer.asset == asset);
                    sum += mine.filter(|t| lost(t.transfer_seq)).map(|t| i128::from(t.transfer.amount.get())).sum::<i128>();
                }
            }
            let expected = self.issued.get(&asset).copied().unwrap_or(0);
            if sum != expected {
                return Err(format!("there are {sum} of asset {asset}, and {expected} came in"));
            }
            if issued != expected {
                return Err(format!("the shards say that {issued} of asset {asset} came in, and it was {expected}"));
            }
        }
        Ok(())
    }
}

/// What of a snapshot does not move with every entry: without magic, versions, index and time, and without the hash of it all.
fn lasting(snapshot: &[u8]) -> &[u8] {
    &snapshot[28..snapshot.len() - 32]
}
