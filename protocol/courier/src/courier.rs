//! The courier.

use std::collections::VecDeque;

use walras_engine::{Engine, InTransit, PriceIndex, TransferStanding, compare_numbers};
use walras_types::{RejectReason, ShardId, TransferSeq};
use walras_wire::{Command, CompareTransfers, SetBack, ShardCommand, ShardPlace, TransferNumbers};

use crate::pace::{Pace, Pause, Retry};
use crate::settle::{Told, consecutive, settlements};
use crate::trouble::Trouble;

/// What a courier sees of its own shard, at one place in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// Which shard of how many it is.
    pub place: ShardPlace,
    /// How it stands with the other one; nothing where it does not know of it.
    pub with_other: Option<WithOther>,
    /// What is in transit to there, oldest first, as many as are brought at once.
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
    /// At this state.
    pub fn at<I: PriceIndex>(engine: &Engine<I>, to: ShardId, transfers_at_once: usize) -> Self {
        let with_other = || {
            let (standing, numbers) = (engine.transfer_standing(to)?, engine.transfer_numbers(to)?);
            Some(WithOther { standing, numbers, sent_before: engine.transfers_sent_before(to)? })
        };
        let waiting = engine.transfers_in_transit(to).take(transfers_at_once).collect();
        Self { place: engine.shard_place(), with_other: with_other(), waiting }
    }
}

/// What the other shard says of itself, from all that it has acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Directory {
    /// Which shard it is.
    pub own: ShardId,
    /// The numbers between it and the courier's shard, as it has them; nothing where it does not know of that.
    pub numbers: Option<TransferNumbers>,
}

/// What a courier wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Look at the own shard's state, if it takes commands here: [`Courier::on_look`].
    Look,
    /// Have the own shard's log take this: [`Courier::on_done`].
    Command(Command),
    /// Ask the other shard for its directory: [`Courier::on_directory`].
    Ask,
    /// Bring the other shard these: [`Courier::on_outcomes`].
    Bring(Vec<InTransit>),
    /// The round is over: [`Courier::pause`].
    Over(Ended),
}

/// How a round ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Others work for this shard: it takes no commands here.
    Elsewhere,
    /// Nothing is in transit.
    Idle,
    /// So many transfers were brought and settled.
    Brought(usize),
    /// Something is wrong.
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
    /// The other one has answered: what is it here by now?
    Holds {
        before: TransferNumbers,
        told: TransferNumbers,
    },
    /// The log holds one against the other.
    Compares,
    Compared,
    Brings {
        first: TransferSeq,
    },
    Settles {
        left: VecDeque<ShardCommand>,
        count: usize,
    },
}

/// From one shard to one other.
#[derive(Debug)]
pub struct Courier {
    place: ShardPlace,
    to: ShardId,
    retry: Retry,
    /// Something failed since the numbers were compared: the other shard may not be what it was.
    doubts: bool,
    state: State,
}

const RESTS: State = State::Rests { failed: false, goes_on: false };

impl Courier {
    /// Of the shard at `place`, to another one.
    #[must_use]
    pub fn new(place: ShardPlace, to: ShardId, pace: Pace) -> Self {
        Self { place, to, retry: Retry::new(pace), doubts: true, state: RESTS }
    }

    /// A round begins.
    pub fn begin(&mut self) -> Step {
        self.state = State::Begins;
        Step::Look
    }

    /// How it looks here; `None` where no commands are taken here.
    ///
    /// # Panics
    /// When that was not the step, like the others below.
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
            State::Holds { before, told } => self.hold(look, before, told),
            State::Compared => self.judge(look),
            state => panic!("a courier looks at its shard when it wants to, and it is at {state:?}"),
        }
    }

    /// The own log has this command, and refused it for a reason, or did not.
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
            // Another courier, of the replica that led before, was faster.
            (State::Settles { left, count }, None | Some(RejectReason::TransferTaken)) => self.settle(left, count),
            (State::Configures | State::Compares | State::Settles { .. }, Some(reason)) => self.fail(Trouble::Refused(reason)),
            (state, _) => panic!("a courier had a command taken that it did not want, at {state:?}"),
        }
    }

    /// The other shard has answered who it is.
    pub fn on_directory(&mut self, directory: Directory) -> Step {
        let State::Asks { before } = std::mem::replace(&mut self.state, RESTS) else {
            panic!("a courier is told of the other shard when it asks")
        };
        let (shard, Directory { own: found, numbers }) = (self.to, directory);
        if found != shard {
            return self.fail(Trouble::Elsewhere { shard, found });
        }
        let Some(told) = numbers else { return self.fail(Trouble::Stranger { shard }) };
        self.state = State::Holds { before, told };
        Step::Look
    }

    /// The other shard has said what came of what was brought.
    pub fn on_outcomes(&mut self, told: Vec<Told>) -> Step {
        let State::Brings { first } = std::mem::replace(&mut self.state, RESTS) else {
            panic!("a courier is told what came of transfers when it has brought some")
        };
        let told = consecutive(first, told);
        if told.is_empty() {
            return self.fail(Trouble::Unclear { shard: self.to });
        }
        self.settle(settlements(self.to, &told).into(), told.len())
    }

    /// A step could not be done, or nobody knows whether it was: the round is over.
    pub fn on_failed(&mut self) {
        self.doubts = true;
        self.state = State::Rests { failed: true, goes_on: false };
    }

    /// What comes before the next round. `random` are any bits.
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
        self.state = State::Rests { failed: false, goes_on: matches!(ended, Ended::Brought(_)) };
        Step::Over(ended)
    }

    fn fail(&mut self, trouble: Trouble) -> Step {
        self.on_failed();
        Step::Over(Ended::Failed(trouble))
    }

    /// The place is taken: asks the other shard where that has to come first, else brings.
    fn go_on(&mut self, look: Look) -> Step {
        let Some(with) = look.with_other else { return self.fail(Trouble::Refused(RejectReason::UnknownShard)) };
        if self.doubts || with.standing != TransferStanding::Agreed {
            self.state = State::Asks { before: with.numbers };
            return Step::Ask;
        }
        self.bring(look.waiting)
    }

    /// Holds what was told against what is known. Where that changes how the two stand, the log has the word: it knows more than this replica may.
    fn hold(&mut self, look: Look, before: TransferNumbers, told: TransferNumbers) -> Step {
        let shard = self.to;
        let Some(with) = look.with_other else { return self.fail(Trouble::Refused(RejectReason::UnknownShard)) };
        match (compare_numbers(before, told, with.numbers, with.sent_before), with.standing) {
            (Ok(()), TransferStanding::Agreed) => {
                self.doubts = false;
                self.bring(look.waiting)
            }
            (Err(found), TransferStanding::Stopped(_)) => self.set_back(found),
            _ => {
                self.state = State::Compares;
                Step::Command(Command::Shard(ShardCommand::CompareTransfers(CompareTransfers { shard, before, told })))
            }
        }
    }

    /// What the log says.
    fn judge(&mut self, look: Look) -> Step {
        match look.with_other.map(|with| with.standing) {
            Some(TransferStanding::Agreed) => {
                self.doubts = false;
                self.bring(look.waiting)
            }
            Some(TransferStanding::Stopped(found)) => self.set_back(found),
            Some(TransferStanding::Doubted) | None => self.go_on(look),
        }
    }

    fn set_back(&mut self, found: SetBack) -> Step {
        self.fail(Trouble::SetBack { shard: self.to, found })
    }

    fn bring(&mut self, waiting: Vec<InTransit>) -> Step {
        let Some(oldest) = waiting.first() else { return self.over(Ended::Idle) };
        self.state = State::Brings { first: oldest.transfer_seq };
        Step::Bring(waiting)
    }

    fn settle(&mut self, mut left: VecDeque<ShardCommand>, count: usize) -> Step {
        let Some(next) = left.pop_front() else { return self.over(Ended::Brought(count)) };
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

    /// Two shards, and what is done at each.
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

        /// Why it was refused, if it was.
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

        /// A whole round of shard 0's courier; what it did besides looking.
        fn round(&mut self, courier: &mut Courier) -> (Vec<&'static str>, Ended) {
            let (mut did, mut step) = (Vec::new(), courier.begin());
            loop {
                step = match step {
                    Step::Look => courier.on_look(Some(Look::at(&self.0[0], ShardId(1), 64))),
                    Step::Command(command) => {
                        did.push(match command {
                            Command::Shard(ShardCommand::CompareTransfers(_)) => "compares",
                            Command::Shard(ShardCommand::ConfirmTransfers(_)) => "confirms",
                            _ => "commands",
                        });
                        let rejected = self.take(0, command);
                        courier.on_done(rejected)
                    }
                    Step::Ask => {
                        did.push("asks");
                        courier.on_directory(Directory { own: ShardId(1), numbers: self.0[1].transfer_numbers(ShardId(0)) })
                    }
                    Step::Bring(waiting) => {
                        did.push("brings");
                        for waits in &waiting {
                            self.take(1, Command::Shard(ShardCommand::TransferIn(carried(ShardId(0), waits))));
                        }
                        let brought: Vec<TransferSeq> = waiting.iter().map(|waits| waits.transfer_seq).collect();
                        courier.on_outcomes(outcomes(&self.0[1], ShardId(0), &brought))
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

    fn courier() -> Courier {
        Courier::new(place(0), ShardId(1), PACE)
    }

    #[test]
    fn it_asks_first_then_brings_and_settles_and_rests() {
        let (mut two, mut courier) = (Two::new(), courier());
        two.send(1);
        two.send(2);
        assert_eq!(two.round(&mut courier), (vec!["asks", "compares", "brings", "confirms"], Ended::Brought(2)));
        assert_eq!((two.available(0), two.available(1), courier.pause(0)), (80, 20, Pause::None));
        assert_eq!(two.round(&mut courier), (vec![], Ended::Idle));
        assert_eq!(courier.pause(0), Pause::UntilRung(10));
        // The venue begins anew: the numbers are compared first, though this courier knows nothing of it.
        two.take(0, Command::Shard(ShardCommand::DoubtTransfers));
        two.send(3);
        assert_eq!(two.round(&mut courier), (vec!["asks", "compares", "brings", "confirms"], Ended::Brought(1)));
        // After a failure it asks again, and has nothing to write down.
        courier.on_failed();
        assert_eq!(courier.pause(u32::MAX / 2), Pause::Whole(9));
        assert_eq!(two.round(&mut courier), (vec!["asks"], Ended::Idle));
    }

    #[test]
    fn it_tells_its_shard_its_place_and_works_nowhere_else() {
        let mut two = Two::new();
        two.0[0] = Engine::new();
        let mut courier = courier();
        assert_eq!(two.round(&mut courier), (vec!["commands", "asks", "compares"], Ended::Idle));
        assert_eq!(two.0[0].shard_place(), place(0));
        courier.begin();
        assert_eq!(courier.on_look(None), Step::Over(Ended::Elsewhere));
        assert_eq!(two.round(&mut courier), (vec!["asks"], Ended::Idle), "others may have led meanwhile");
        let mut other = Courier::new(ShardPlace { own: ShardId(1), count: 2 }, ShardId(0), PACE);
        other.begin();
        let step = other.on_look(Some(Look::at(&two.0[0], ShardId(1), 64)));
        assert!(matches!(step, Step::Command(Command::Shard(ShardCommand::Configure(_)))));
        let refused = Trouble::Refused(RejectReason::ShardsInvalid);
        assert_eq!(other.on_done(Some(RejectReason::ShardsInvalid)), Step::Over(Ended::Failed(refused)));
    }

    #[test]
    fn where_one_was_set_back_nothing_is_brought_until_it_has_its_state_again() {
        let (mut two, mut courier) = (Two::new(), courier());
        let state = |engine: &Engine| {
            let mut bytes = Vec::new();
            engine.snapshot(&mut bytes);
            bytes
        };
        let old = state(&two.0[1]);
        two.send(1);
        two.round(&mut courier);
        let new = state(&two.0[1]);
        two.0[1] = Engine::restore(&old).unwrap();
        two.send(2);
        // It finds out by what it can not bring.
        let failed = |ended: Ended| matches!(ended, Ended::Failed(_));
        assert!(failed(two.round(&mut courier).1));
        let found = SetBack::OtherTaken { next: TransferSeq(1), known: TransferSeq(2) };
        let set_back = Ended::Failed(Trouble::SetBack { shard: ShardId(1), found });
        assert_eq!(two.round(&mut courier), (vec!["asks", "compares"], set_back));
        assert_eq!(two.round(&mut courier), (vec!["asks"], set_back), "its log knows");
        assert_eq!((two.available(0), two.available(1)), (80, 0));
        two.0[1] = Engine::restore(&new).unwrap();
        assert_eq!(two.round(&mut courier), (vec!["asks", "compares", "brings", "confirms"], Ended::Brought(1)));
        assert_eq!((two.available(0), two.available(1)), (80, 20));
    }

    #[test]
    fn who_answers_for_another_or_says_nothing_is_not_believed() {
        let (mut two, mut courier) = (Two::new(), courier());
        let look = |two: &Two| Some(Look::at(&two.0[0], ShardId(1), 64));
        let numbers = two.0[1].transfer_numbers(ShardId(0));
        courier.begin();
        courier.on_look(look(&two));
        let elsewhere = Trouble::Elsewhere { shard: ShardId(1), found: ShardId(2) };
        assert_eq!(courier.on_directory(Directory { own: ShardId(2), numbers }), Step::Over(Ended::Failed(elsewhere)));
        courier.begin();
        courier.on_look(look(&two));
        let stranger = Trouble::Stranger { shard: ShardId(1) };
        assert_eq!(courier.on_directory(Directory { own: ShardId(1), numbers: None }), Step::Over(Ended::Failed(stranger)));
        two.round(&mut courier);
        two.send(1);
        courier.begin();
        assert!(matches!(courier.on_look(look(&two)), Step::Bring(_)));
        assert_eq!(courier.on_outcomes(Vec::new()), Step::Over(Ended::Failed(Trouble::Unclear { shard: ShardId(1) })));
    }
}
