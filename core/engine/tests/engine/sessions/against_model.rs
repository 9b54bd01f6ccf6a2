//! Random streams with repeats, gaps, reopening, closing, windows that overflow and restarts, on the engine and on the naive model.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use walras_engine::{Engine, Numbered};
use walras_types::*;
use walras_wire::*;

use super::restored::forgetful;
use super::{close, idle, next, open, same_sessions, snapshot, start};
use crate::generate;
use crate::model::Model;

/// Which place of a session.
#[derive(Clone, Copy, Debug)]
enum Place {
    Next,
    Back(u64),
    Ahead(u64),
    Any(u64),
}

/// A step; sessions are picked by number among those that were ever opened.
#[derive(Clone, Debug)]
enum Step {
    Plain(Command),
    Open {
        by: Option<usize>,
        owner: Option<u32>,
        token: u64,
    },
    /// So many opened in a row, of tokens from the first on.
    Crowd {
        owner: Option<u32>,
        first: u64,
        count: u64,
    },
    Close {
        by: Option<usize>,
        session: usize,
    },
    Send {
        session: usize,
        at: Place,
        command: Command,
        own: bool,
        /// What was sent before under this number, where it is known here.
        again: bool,
    },
    /// So many commands in a row.
    Burst {
        session: usize,
        count: usize,
    },
    /// Save, forget, restore.
    Restart,
    /// Pass this many nanoseconds.
    Wait(u64),
}

/// What a restart does to the state's bytes, and how a leader might go wrong.
type Restart = fn(&Engine) -> Vec<u8>;

fn owner() -> impl Strategy<Value = Option<u32>> {
    prop_oneof![2 => Just(None), 12 => (0..3u32).prop_map(Some), 1 => Just(Some(5))]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let place = prop_oneof![
        10 => Just(Place::Next),
        4 => (0..6u64).prop_map(Place::Back),
        2 => prop_oneof![Just(1_023), Just(1_024), Just(1_025), Just(1_026)].prop_map(Place::Back),
        2 => (1..4u64).prop_map(Place::Ahead),
        1 => prop_oneof![Just(0), Just(u64::MAX), any::<u64>()].prop_map(Place::Any),
    ];
    let session = || any::<u16>().prop_map(usize::from);
    // Near the window's length and its double, so that what is beside is off.
    let burst = prop_oneof![3 => 1..20usize, 2 => 1_015..1_035usize, 1 => 2_040..2_060usize];
    let step = prop_oneof![
        6 => generate::command().prop_map(Step::Plain),
        // Few tokens that come again, and many that make room.
        8 => (prop::option::weighted(0.2, session()), owner(), prop_oneof![0..4u64, 0..40u64])
            .prop_map(|(by, owner, token)| Step::Open { by, owner, token }),
        1 => (owner(), 0..40u64, 8..20u64).prop_map(|(owner, first, count)| Step::Crowd { owner, first, count }),
        2 => (prop::option::weighted(0.6, session()), session()).prop_map(|(by, session)| Step::Close { by, session }),
        40 => (session(), place, generate::command(), prop::bool::weighted(0.9), prop::bool::weighted(0.7))
            .prop_map(|(session, at, command, own, again)| Step::Send { session, at, command, own, again }),
        1 => (session(), burst).prop_map(|(session, count)| Step::Burst { session, count }),
        2 => Just(Step::Restart),
        2 => (1..40u64).prop_map(Step::Wait),
    ];
    vec(step, 20..160)
}

/// The command, made the session's account's.
fn owned(command: Command, account: AccountId) -> Command {
    match command {
        Command::Order(OrderCommand::New(c)) => Command::Order(OrderCommand::New(NewOrder { account, ..c })),
        Command::Order(OrderCommand::Cancel(c)) => Command::Order(OrderCommand::Cancel(CancelOrder { account, ..c })),
        Command::Order(OrderCommand::Amend(c)) => Command::Order(OrderCommand::Amend(AmendOrder { account, ..c })),
        Command::Order(OrderCommand::AmendNamed(c)) => {
            Command::Order(OrderCommand::AmendNamed(NamedAmend { amend: AmendOrder { account, ..c.amend }, ..c }))
        }
        Command::Order(OrderCommand::MassCancel(c)) => Command::Order(OrderCommand::MassCancel(MassCancel { account, ..c })),
        other => other,
    }
}

/// Both, and what was opened.
struct Pair {
    engine: Engine,
    model: Model,
    now: TimeNs,
    /// Every session that there ever was, and one that there never was.
    ever: Vec<(SessionId, Option<AccountId>)>,
    reached: BTreeMap<String, u32>,
    /// What was sent first under each number.
    sent: BTreeMap<Ordinal, Command>,
    restart: Restart,
}

impl Pair {
    fn new(restart: Restart) -> Self {
        let ever = vec![(SessionId(1), None)];
        let mut pair = Self {
            engine: Engine::new(),
            model: Model::default(),
            now: TimeNs(1),
            ever,
            reached: BTreeMap::new(),
            sent: BTreeMap::new(),
            restart,
        };
        // The model does all at once.
        pair.engine.set_meetings_max(u32::MAX);
        for command in start().into_iter().chain([open(None, 0), open(Some(0), 0), open(Some(1), 0)]) {
            pair.apply(None, command).unwrap();
        }
        pair
    }

    fn reach(&mut self, what: String) {
        *self.reached.entry(what).or_default() += 1;
    }

    /// Applies to both, and compares what came of it.
    fn apply(&mut self, ordinal: Option<Ordinal>, command: Command) -> Result<(), String> {
        let (index, now) = (self.engine.last_applied().next(), self.now);
        let (mut events, mut expected) = (Vec::new(), Vec::new());
        let (became, should) = match ordinal {
            None => {
                self.engine.apply(index, now, &command, &mut events);
                self.model.apply(index, now, &command, &mut expected);
                (None, None)
            }
            Some(ordinal) => (
                Some(self.engine.apply_numbered(index, now, ordinal, &command, &mut events)),
                Some(self.model.apply_numbered(index, now, ordinal, &command, &mut expected)),
            ),
        };
        if (became, &events) != (should, &expected) {
            return Err(format!("{ordinal:?} {command:?}: {became:?} {events:?}, and in the model {should:?} {expected:?}"));
        }
        if let (Some(Numbered::Done(_)), Some(ordinal)) = (became, ordinal) {
            self.sent.insert(ordinal, command);
        }
        if let Some(became) = became {
            self.reach(match became {
                Numbered::Done(Answer { rejected: None, .. }) => "Done".into(),
                Numbered::Done(Answer { rejected: Some(reason), .. }) => format!("Done/{reason:?}"),
                Numbered::Repeated(_) => "Repeated".into(),
                Numbered::Refused(reason) => format!("Refused/{reason:?}"),
            });
        }
        for event in events {
            match event {
                Event::Session(SessionEvent::Opened(e)) if self.ever.iter().all(|(session, _)| *session != e.session) => {
                    self.ever.push((e.session, e.account));
                    self.reach("Opened".into());
                }
                Event::Session(SessionEvent::Opened(_)) => self.reach("Opened/Again".into()),
                Event::Session(SessionEvent::Closed(e)) if ordinal.is_some_and(|ordinal| ordinal.session == e.session) => {
                    self.reach("Closed/ItsOwn".into());
                }
                Event::Session(SessionEvent::Closed(_)) if matches!(command, Command::Session(SessionCommand::Open(_))) => {
                    self.reach("Closed/ForRoom".into())
                }
                Event::Session(SessionEvent::Closed(_)) => self.reach("Closed".into()),
                _ => {}
            }
        }
        Ok(())
    }

    fn pick(&self, number: usize) -> (SessionId, Option<AccountId>) {
        self.ever[number % self.ever.len()]
    }

    fn next(&self, session: SessionId) -> Ordinal {
        let next = self.engine.session(session).map_or(SessionSeq(1), |view| view.next);
        Ordinal { session, session_seq: next }
    }

    fn step(&mut self, step: &Step) -> Result<(), String> {
        match *step {
            Step::Plain(command) => self.apply(None, command),
            Step::Open { by, owner, token } => {
                let by = by.map(|by| self.next(self.pick(by).0));
                self.apply(by, open(owner, token))
            }
            Step::Crowd { owner, first, count } => {
                (first..first + count).try_for_each(|token| self.apply(None, open(owner, token)))
            }
            Step::Close { by, session } => {
                let session = self.pick(session).0;
                // Most sessions close themselves.
                let by = by.map(|by| self.next(if by % 3 > 0 { session } else { self.pick(by).0 }));
                self.apply(by, close(session))
            }
            Step::Send { session, at, command, own, again } => {
                let (session, owner) = self.pick(session);
                let Ordinal { session_seq: SessionSeq(next), .. } = self.next(session);
                let session_seq = SessionSeq(match at {
                    Place::Next => next,
                    Place::Back(by) => next.saturating_sub(by),
                    Place::Ahead(by) => next + by,
                    Place::Any(place) => place,
                });
                let command = owner.filter(|_| own).map_or(command, |account| owned(command, account));
                let ordinal = Ordinal { session, session_seq };
                let command = self.sent.get(&ordinal).copied().filter(|_| again).unwrap_or(command);
                self.apply(Some(ordinal), command)
            }
            Step::Burst { session, count } => {
                let (session, owner) = self.pick(session);
                (0..count).try_for_each(|_| self.apply(Some(self.next(session)), idle(owner.map_or(0, |account| account.0))))
            }
            Step::Restart => {
                let bytes = (self.restart)(&self.engine);
                self.engine = Engine::restore_with_hash_seed(&bytes, 5).map_err(|error| error.to_string())?;
                self.engine.set_meetings_max(u32::MAX);
                if snapshot(&self.engine) == bytes { Ok(()) } else { Err("one state has one encoding".into()) }
            }
            Step::Wait(ns) => {
                self.now = TimeNs(self.now.0 + ns);
                Ok(())
            }
        }
    }

    /// All the steps, or where the engine first differs.
    fn run(&mut self, steps: &[Step]) -> Result<(), String> {
        for step in steps {
            self.step(step)?;
            self.engine.check_invariants();
            same_sessions(&self.engine, &self.model)?;
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn equal_the_model_after_every_command(steps in steps()) {
        let mut straight = Pair::new(snapshot);
        prop_assert_eq!(straight.run(&steps), Ok(()));
        // One that never restarted, given the same, is in the same state.
        let mut steady = Pair::new(snapshot);
        let kept: Vec<_> = steps.into_iter().filter(|step| !matches!(step, Step::Restart)).collect();
        prop_assert_eq!(steady.run(&kept), Ok(()));
        prop_assert_eq!(steady.engine.state_hash(), straight.engine.state_hash());
    }

    /// What is not done is to the state as a tick: it takes its place in the log, lets time pass, and no more.
    #[test]
    fn what_is_not_done_is_a_tick(steps in steps(), number in any::<u16>(), back in 0..4u64, ahead in any::<bool>(), wait in 0..40u64) {
        let mut pair = Pair::new(snapshot);
        prop_assert_eq!(pair.run(&steps), Ok(()));
        let mut ticked = Engine::restore(&snapshot(&pair.engine)).unwrap();
        ticked.set_meetings_max(u32::MAX);
        let (session, owner) = pair.pick(usize::from(number));
        let SessionSeq(next) = pair.next(session).session_seq;
        let ordinal = super::place(session, if ahead { next + 1 + back } else { next.saturating_sub(1 + back) });
        let (index, time) = (ticked.last_applied().next(), TimeNs(pair.now.0 + wait));
        let (mut events, mut of_tick) = (Vec::new(), Vec::new());
        let command = idle(owner.map_or(0, |account| account.0));
        let became = pair.engine.apply_numbered(index, time, ordinal, &command, &mut events);
        ticked.apply(index, time, &Command::Venue(VenueCommand::Tick), &mut of_tick);
        prop_assert!(!matches!(became, Numbered::Done(_)));
        prop_assert_eq!(events, of_tick);
        prop_assert_eq!(pair.engine.state_hash(), ticked.state_hash());
    }
}

const REACHED: &str = "
    Done Done/Forbidden Done/UnknownOrder Done/UnknownSession Done/UnknownAccount Done/AccountSuspended Repeated
    Refused/SessionSeqGap Refused/SessionSeqTooOld Refused/SessionSeqReused Refused/UnknownSession
    Opened Opened/Again Closed Closed/ForRoom Closed/ItsOwn
";

const RUNS: u32 = 90;

fn some_runs(restart: Restart) -> (BTreeMap<String, u32>, u32) {
    let mut runner = TestRunner::new_with_rng(ProptestConfig::default(), TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let (mut reached, mut differ) = (BTreeMap::new(), 0);
    for _ in 0..RUNS {
        let mut pair = Pair::new(restart);
        differ += u32::from(pair.run(&steps().new_tree(&mut runner).unwrap().current()).is_err());
        for (what, times) in pair.reached {
            *reached.entry(what).or_default() += times;
        }
    }
    (reached, differ)
}

/// The comparison is worth what the streams reach.
#[test]
fn the_streams_reach_everything() {
    let (reached, differ) = some_runs(snapshot);
    assert_eq!(differ, 0);
    let missed: Vec<_> = REACHED.split_whitespace().filter(|what| !reached.contains_key(*what)).collect();
    assert!(missed.is_empty(), "never happened: {missed:?}; it did: {reached:#?}");
}

/// The planted fault of the decision record: a snapshot without the windows. The comparison has to see it.
#[test]
fn a_window_left_out_of_the_snapshot_is_found() {
    let differ = some_runs(forgetful).1;
    assert!(differ > RUNS * 2 / 3, "{differ} of {RUNS} runs show it");
    // The least that shows it: an order that is sent again over a restart.
    let mut pair = Pair::new(forgetful);
    let session = pair.ever[2].0;
    let sent = Step::Send { session: 2, at: Place::Next, command: idle(0), own: true, again: false };
    pair.run(&[sent]).unwrap();
    let done = pair.engine.answer(super::place(session, 1)).unwrap();
    let kept = Engine::restore(&snapshot(&pair.engine)).unwrap();
    let lost = Engine::restore(&forgetful(&pair.engine)).unwrap();
    let again = |mut engine: Engine| {
        let index = engine.last_applied().next();
        engine.apply_numbered(index, TimeNs(1), super::place(session, 1), &idle(0), &mut Vec::new())
    };
    assert_eq!(next(&kept, session), super::place(session, 2));
    assert_eq!(again(kept), Numbered::Repeated(done));
    assert!(matches!(again(lost), Numbered::Done(_)), "the order is taken twice");
}
