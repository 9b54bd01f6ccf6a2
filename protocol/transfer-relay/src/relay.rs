//! The state machine.

use std::collections::VecDeque;

use walras_engine::{Engine, InTransit, PriceIndex, TransferStanding, compare_numbers};
use walras_types::{RejectReason, ShardId, TransferSeq};
use walras_wire::{Command, CompareTransfers, SetBack, ShardCommand, ShardPlace, TransferNumbers};

use crate::pace::{Pace, Pause, Retry};
use crate::settle::{Reported, consecutive, settlements};
use crate::trouble::Trouble;

/// What a transfer relay reads of its own shard's state, at one log entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// Which shard of how many it is.
    pub place: ShardPlace,
    /// What it knows of the other shard; `None` if it does not know the other shard.
    pub with_other: Option<WithOther>,
    /// Transfers in transit to the other shard, oldest first, at most as many as are delivered at once.
    pub waiting: Vec<InTransit>,
}

/// What a shard knows of another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WithOther {
    standing: TransferStanding,
    numbers: TransferNumbers,
    sent_before: TransferSeq,
}

impl Look {
    /// From this state.
    pub fn at<I: PriceIndex>(engine: &Engine<I>, to: ShardId, transfers_at_once: usize) -> Self {
        let with_other = || {
            let (standing, numbers) = (engine.transfer_standing(to)?, engine.transfer_numbers(to)?);
            Some(WithOther { standing, numbers, sent_before: engine.transfers_sent_before(to)? })
        };
        let waiting = engine.transfers_in_transit(to).take(transfers_at_once).collect();
        Self { place: engine.shard_place(), with_other: with_other(), waiting }
    }
}

/// What the other shard reports about itself, from a state that has everything it acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Directory {
    /// Which shard it is.
    pub own: ShardId,
    /// Its numbers of transfers to and from the relay's shard; `None` if it does not know that shard.
    pub numbers: Option<TransferNumbers>,
}

/// What the driver has to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Read the own shard's state, if commands are taken here: [`TransferRelay::on_look`].
    Look,
    /// Submit this to the own shard: [`TransferRelay::on_done`].
    Command(Command),
    /// Ask the other shard for its directory: [`TransferRelay::on_directory`].
    Ask,
    /// Deliver these to the other shard: [`TransferRelay::on_outcomes`].
    Deliver(Vec<InTransit>),
    /// The round is over: [`TransferRelay::pause`].
    Over(Ended),
}

/// How a round ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Commands are not taken here: the leader's relays work for this shard.
    Elsewhere,
    /// Nothing is in transit.
    Idle,
    /// This many transfers were delivered and settled.
    Delivered(usize),
    /// The operator has to act.
    Failed(Trouble),
}

/// What it waits for.
#[derive(Debug)]
enum State {
    Rests {
        failed: bool,
        goes_on: bool,
    },
    Begins,
    Configures,
    Asks {
        before: TransferNumbers,
    },
    /// The other shard has answered; waits for the own numbers as they are now.
    Holds {
        before: TransferNumbers,
        reported: TransferNumbers,
    },
    /// Waits for the log to compare both.
    Compares,
    Compared,
    Delivers {
        first: TransferSeq,
    },
    Settles {
        left: VecDeque<ShardCommand>,
        count: usize,
    },
}

/// Delivers the transfers of one shard to one other.
#[derive(Debug)]
pub struct TransferRelay {
    place: ShardPlace,
    to: ShardId,
    retry: Retry,
    /// Something failed since the numbers were compared: the other shard may have been set back.
    doubts: bool,
    state: State,
}

const RESTS: State = State::Rests { failed: false, goes_on: false };

impl TransferRelay {
    /// For the shard at `place`, to another one.
    #[must_use]
    pub fn new(place: ShardPlace, to: ShardId, pace: Pace) -> Self {
        Self { place, to, retry: Retry::new(pace), doubts: true, state: RESTS }
    }

    /// Begins a round.
    pub fn begin(&mut self) -> Step {
        self.state = State::Begins;
        Step::Look
    }

    /// The state; `None` if no commands are taken here.
    ///
    /// # Panics
    /// If the last step was another one; so do the methods below.
    pub fn on_look(&mut self, look: Option<Look>) -> Step {
        let Some(look) = look else {
            self.doubts = true;
            return self.over(Ended::Elsewhere);
        };
        match std::mem::replace(&mut self.state, RESTS) {
            State::Begins if look.place != self.place => {
                self.state = State::Configures;
                Step::Command(Command::Shard(ShardCommand::Configure(self.place)))
            }
            State::Begins | State::Configures => self.go_on(look),
            State::Holds { before, reported } => self.hold(look, before, reported),
            State::Compared => self.judge(look),
            state => panic!("the last step was not to look: the relay is at {state:?}"),
        }
    }

    /// The own shard has applied the command, or rejected it for a reason.
    pub fn on_done(&mut self, rejected: Option<RejectReason>) -> Step {
        match (std::mem::replace(&mut self.state, RESTS), rejected) {
            (State::Configures, None) => {
                self.state = State::Begins;
                Step::Look
            }
            (State::Compares, None) => {
                self.state = State::Compared;
                Step::Look
            }
            // The relay of the former leader was faster.
            (State::Settles { left, count }, None | Some(RejectReason::TransferTaken)) => self.settle(left, count),
            (State::Configures | State::Compares | State::Settles { .. }, Some(reason)) => self.fail(Trouble::Refused(reason)),
            (state, _) => panic!("the last step was not a command: the relay is at {state:?}"),
        }
    }

    /// The other shard's directory.
    pub fn on_directory(&mut self, directory: Directory) -> Step {
        let State::Asks { before } = std::mem::replace(&mut self.state, RESTS) else {
            panic!("the last step was not to ask for a directory")
        };
        let (shard, Directory { own: found, numbers }) = (self.to, directory);
        if found != shard {
            return self.fail(Trouble::Elsewhere { shard, found });
        }
        let Some(reported) = numbers else { return self.fail(Trouble::Stranger { shard }) };
        self.state = State::Holds { before, reported };
        Step::Look
    }

    /// The other shard's results of the delivered transfers.
    pub fn on_outcomes(&mut self, reported: Vec<Reported>) -> Step {
        let State::Delivers { first } = std::mem::replace(&mut self.state, RESTS) else {
            panic!("the last step was not to deliver")
        };
        let reported = consecutive(first, reported);
        if reported.is_empty() {
            return self.fail(Trouble::Unclear { shard: self.to });
        }
        self.settle(settlements(self.to, &reported).into(), reported.len())
    }

    /// A step failed, or its result is unknown: the round is over.
    pub fn on_failed(&mut self) {
        self.doubts = true;
        self.state = State::Rests { failed: true, goes_on: false };
    }

    /// The wait before the next round, varied by `random`.
    pub fn pause(&mut self, random: u32) -> Pause {
        match self.state {
            State::Rests { failed: true, .. } => self.retry.wait(random),
            State::Rests { goes_on: true, .. } => {
                let _ = self.retry.rest();
                Pause::None
            }
            _ => self.retry.rest(),
        }
    }

    fn over(&mut self, ended: Ended) -> Step {
        self.state = State::Rests { failed: false, goes_on: matches!(ended, Ended::Delivered(_)) };
        Step::Over(ended)
    }

    fn fail(&mut self, trouble: Trouble) -> Step {
        self.on_failed();
        Step::Over(Ended::Failed(trouble))
    }

    /// The shard knows its place: compares numbers if needed, else delivers.
    fn go_on(&mut self, look: Look) -> Step {
        let Some(with) = look.with_other else { return self.fail(Trouble::Refused(RejectReason::UnknownShard)) };
        if self.doubts || with.standing != TransferStanding::Agreed {
            self.state = State::Asks { before: with.numbers };
            return Step::Ask;
        }
        self.deliver(look.waiting)
    }

    /// Compares the reported numbers with the own ones. A change of standing goes through the log, which knows more than this
    /// replica may.
    fn hold(&mut self, look: Look, before: TransferNumbers, reported: TransferNumbers) -> Step {
        let shard = self.to;
        let Some(with) = look.with_other else { return self.fail(Trouble::Refused(RejectReason::UnknownShard)) };
        match (compare_numbers(before, reported, with.numbers, with.sent_before), with.standing) {
            (Ok(()), TransferStanding::Agreed) => {
                self.doubts = false;
                self.deliver(look.waiting)
            }
            (Err(found), TransferStanding::Stopped(_)) => self.set_back(found),
            _ => {
                self.state = State::Compares;
                Step::Command(Command::Shard(ShardCommand::CompareTransfers(CompareTransfers { shard, before, reported })))
            }
        }
    }

    /// Goes by the standing that the log has decided.
    fn judge(&mut self, look: Look) -> Step {
        match look.with_other.map(|with| with.standing) {
            Some(TransferStanding::Agreed) => {
                self.doubts = false;
                self.deliver(look.waiting)
            }
            Some(TransferStanding::Stopped(found)) => self.set_back(found),
            Some(TransferStanding::Doubted) | None => self.go_on(look),
        }
    }

    fn set_back(&mut self, found: SetBack) -> Step {
        self.fail(Trouble::SetBack { shard: self.to, found })
    }

    fn deliver(&mut self, waiting: Vec<InTransit>) -> Step {
        let Some(oldest) = waiting.first() else { return self.over(Ended::Idle) };
        self.state = State::Delivers { first: oldest.transfer_seq };
        Step::Deliver(waiting)
    }

    fn settle(&mut self, mut left: VecDeque<ShardCommand>, count: usize) -> Step {
        let Some(next) = left.pop_front() else { return self.over(Ended::Delivered(count)) };
        self.state = State::Settles { left, count };
        Step::Command(Command::Shard(next))
    }
}

#[cfg(test)]
mod tests {
    use walras_types::{AccountId, Amount, AssetId, ClientTransferId, Symbol, TimeNs, TransferId};
    use walras_wire::{AccountCommand, AssetSpec, Event, Transfer, TransferOut, VenueCommand};

    use super::*;
    use crate::settle::{carried, outcomes};

    const PACE: Pace = Pace { poll_ns: 10, retry_ns_max: 40 };

    /// Two shards.
    struct Two([Engine; 2]);

    impl Two {
        fn new() -> Self {
            let mut two = Self([Engine::new(), Engine::new()]);
            for at in 0..2 {
                let symbol = Symbol::new("USD").unwrap();
                two.take(at, Command::Shard(ShardCommand::Configure(place(at))));
                two.take(at, Command::Venue(VenueCommand::CreateAsset(AssetSpec { asset: AssetId(0), symbol, decimals: 0 })));
                two.take(at, Command::Account(AccountCommand::Create(AccountId(0))));
            }
            let (account, asset, transfer_id) = (AccountId(0), AssetId(0), TransferId(1));
            two.take(0, Command::Account(AccountCommand::Deposit(Transfer { account, asset, amount: units(100), transfer_id })));
            two
        }

        /// The reject reason, if any.
        fn take(&mut self, at: usize, command: Command) -> Option<RejectReason> {
            let mut events = Vec::new();
            let engine = &mut self.0[at];
            engine.apply(engine.last_applied().next(), TimeNs(1), &command, &mut events);
            events.iter().find_map(|event| if let Event::Rejected(rejected) = event { Some(rejected.reason) } else { None })
        }

        fn send(&mut self, name: u64) {
            let (account, asset, to_shard, client_transfer_id) = (AccountId(0), AssetId(0), ShardId(1), ClientTransferId(name));
            let transfer = TransferOut { account, asset, amount: units(10), to_shard, client_transfer_id };
            assert_eq!(self.take(0, Command::Shard(ShardCommand::TransferOut(transfer))), None);
        }

        /// A whole round of shard 0's relay; what it did besides looking.
        fn round(&mut self, relay: &mut TransferRelay) -> (Vec<&'static str>, Ended) {
            let (mut did, mut step) = (Vec::new(), relay.begin());
            loop {
                step = match step {
                    Step::Look => relay.on_look(Some(Look::at(&self.0[0], ShardId(1), 64))),
                    Step::Command(command) => {
                        did.push(match command {
                            Command::Shard(ShardCommand::CompareTransfers(_)) => "compares",
                            Command::Shard(ShardCommand::ConfirmTransfers(_)) => "confirms",
                            _ => "commands",
                        });
                        let rejected = self.take(0, command);
                        relay.on_done(rejected)
                    }
                    Step::Ask => {
                        did.push("asks");
                        relay.on_directory(Directory { own: ShardId(1), numbers: self.0[1].transfer_numbers(ShardId(0)) })
                    }
                    Step::Deliver(waiting) => {
                        did.push("delivers");
                        for waits in &waiting {
                            self.take(1, Command::Shard(ShardCommand::TransferIn(carried(ShardId(0), waits))));
                        }
                        let delivered: Vec<TransferSeq> = waiting.iter().map(|waits| waits.transfer_seq).collect();
                        relay.on_outcomes(outcomes(&self.0[1], ShardId(0), &delivered))
                    }
                    Step::Over(ended) => return (did, ended),
                };
            }
        }

        fn available(&self, at: usize) -> u64 {
            self.0[at].balance(AccountId(0), AssetId(0)).available.get()
        }
    }

    fn place(at: usize) -> ShardPlace {
        ShardPlace { own: ShardId(at as u8), count: 2 }
    }

    fn units(amount: u64) -> Amount {
        Amount::new(amount).unwrap()
    }

    fn relay() -> TransferRelay {
        TransferRelay::new(place(0), ShardId(1), PACE)
    }

    #[test]
    fn it_asks_first_then_delivers_and_settles_and_rests() {
        let (mut two, mut relay) = (Two::new(), relay());
        two.send(1);
        two.send(2);
        assert_eq!(two.round(&mut relay), (vec!["asks", "compares", "delivers", "confirms"], Ended::Delivered(2)));
        assert_eq!((two.available(0), two.available(1), relay.pause(0)), (80, 20, Pause::None));
        assert_eq!(two.round(&mut relay), (vec![], Ended::Idle));
        assert_eq!(relay.pause(0), Pause::UntilRung(10));
        // After a restart of the venue, numbers are compared first, though this relay did not notice it.
        two.take(0, Command::Shard(ShardCommand::DoubtTransfers));
        two.send(3);
        assert_eq!(two.round(&mut relay), (vec!["asks", "compares", "delivers", "confirms"], Ended::Delivered(1)));
        // After a failure it asks again, and has nothing to write down.
        relay.on_failed();
        assert_eq!(relay.pause(u32::MAX / 2), Pause::Whole(9));
        assert_eq!(two.round(&mut relay), (vec!["asks"], Ended::Idle));
    }

    #[test]
    fn it_configures_its_shard_and_works_at_that_place_only() {
        let mut two = Two::new();
        two.0[0] = Engine::new();
        let mut relay = relay();
        assert_eq!(two.round(&mut relay), (vec!["commands", "asks", "compares"], Ended::Idle));
        assert_eq!(two.0[0].shard_place(), place(0));
        relay.begin();
        assert_eq!(relay.on_look(None), Step::Over(Ended::Elsewhere));
        assert_eq!(two.round(&mut relay), (vec!["asks"], Ended::Idle), "others may have led meanwhile");
        let mut other = TransferRelay::new(ShardPlace { own: ShardId(1), count: 2 }, ShardId(0), PACE);
        other.begin();
        let step = other.on_look(Some(Look::at(&two.0[0], ShardId(1), 64)));
        assert!(matches!(step, Step::Command(Command::Shard(ShardCommand::Configure(_)))));
        let refused = Trouble::Refused(RejectReason::ShardsInvalid);
        assert_eq!(other.on_done(Some(RejectReason::ShardsInvalid)), Step::Over(Ended::Failed(refused)));
    }

    #[test]
    fn after_a_shard_was_set_back_nothing_is_delivered_until_its_state_is_restored() {
        let (mut two, mut relay) = (Two::new(), relay());
        let state = |engine: &Engine| {
            let mut bytes = Vec::new();
            engine.snapshot(&mut bytes);
            bytes
        };
        let old = state(&two.0[1]);
        two.send(1);
        two.round(&mut relay);
        let new = state(&two.0[1]);
        two.0[1] = Engine::restore(&old).unwrap();
        two.send(2);
        // A failed delivery leads it to compare.
        let failed = |ended: Ended| matches!(ended, Ended::Failed(_));
        assert!(failed(two.round(&mut relay).1));
        let found = SetBack::OtherTaken { next: TransferSeq(1), known: TransferSeq(2) };
        let set_back = Ended::Failed(Trouble::SetBack { shard: ShardId(1), found });
        assert_eq!(two.round(&mut relay), (vec!["asks", "compares"], set_back));
        assert_eq!(two.round(&mut relay), (vec!["asks"], set_back), "its log knows");
        assert_eq!((two.available(0), two.available(1)), (80, 0));
        two.0[1] = Engine::restore(&new).unwrap();
        assert_eq!(two.round(&mut relay), (vec!["asks", "compares", "delivers", "confirms"], Ended::Delivered(1)));
        assert_eq!((two.available(0), two.available(1)), (80, 20));
    }

    #[test]
    fn answers_of_another_shard_or_without_results_are_not_used() {
        let (mut two, mut relay) = (Two::new(), relay());
        let look = |two: &Two| Some(Look::at(&two.0[0], ShardId(1), 64));
        let numbers = two.0[1].transfer_numbers(ShardId(0));
        relay.begin();
        relay.on_look(look(&two));
        let elsewhere = Trouble::Elsewhere { shard: ShardId(1), found: ShardId(2) };
        assert_eq!(relay.on_directory(Directory { own: ShardId(2), numbers }), Step::Over(Ended::Failed(elsewhere)));
        relay.begin();
        relay.on_look(look(&two));
        let stranger = Trouble::Stranger { shard: ShardId(1) };
        assert_eq!(relay.on_directory(Directory { own: ShardId(1), numbers: None }), Step::Over(Ended::Failed(stranger)));
        two.round(&mut relay);
        two.send(1);
        relay.begin();
        assert!(matches!(relay.on_look(look(&two)), Step::Deliver(_)));
        assert_eq!(relay.on_outcomes(Vec::new()), Step::Over(Ended::Failed(Trouble::Unclear { shard: ShardId(1) })));
    }
}
