//! How replicas begin: what the leader of a shard logs first, and a log whose entries do not follow each other.

use walras_consensus::{Body, HardState, Members, Pack, Recovered, Settings, Slot, SlotEntry, Term};
use walras_engine::Engine;
use walras_sequencer::{Content, Halt, LogGap, ReplicatedSequencer, ReplicatedSettings, StartHalt, encode_entry};
use walras_types::{AccountId, LogIndex, ShardId, TimeNs};
use walras_wire::{AccountCommand, Command, ShardCommand, ShardPlace};

use super::{REPLICAS, World, id};

const MARK: Command = Command::Shard(ShardCommand::DoubtTransfers);

fn account(account: u32) -> Command {
    Command::Account(AccountCommand::Create(AccountId(account)))
}

/// The commands that a replica has applied.
fn applied(world: &World, n: usize) -> Vec<Content> {
    world.nodes[n].around.entries.values().map(|entry| entry.content.clone()).collect()
}

fn submit(world: &mut World, n: usize, command: Command) {
    world.with(n, |sequencer, _| {
        assert!(sequencer.submit(TimeNs(5), None, &command, None).is_ok());
        Ok(())
    });
    let content = Content::from(command);
    world.run_until("it is applied", |world| applied(world, n).contains(&content));
}

/// A later leader of one of several shards may know less than others saw of the shard: it says so before it takes anything.
#[test]
fn each_later_leader_of_a_shard_marks_its_beginning_first() {
    let mut world = World::new(21, None);
    (0..REPLICAS).for_each(|n| world.start(n));
    world.run_until("somebody leads", |world| world.leader().is_some());
    let first = world.leader().unwrap();
    let configure = Command::Shard(ShardCommand::Configure(ShardPlace { own: ShardId(0), count: 2 }));
    for command in [account(0), configure, account(1)] {
        submit(&mut world, first, command);
    }
    world.crash(first);
    world.run_until("another one leads", |world| world.leader().is_some());
    let second = world.leader().unwrap();
    submit(&mut world, second, account(2));
    let expected = [account(0), configure, account(1), MARK, account(2)].map(Content::from);
    let known = applied(&world, second);
    // Empty slots of a new term are no entries.
    assert_eq!(known, expected, "the first leader of a shard that is new has nothing to mark");
}

/// A sole replica whose log has entries of these times, each in a slot.
fn start(times: &[u64]) -> Result<LogIndex, StartHalt> {
    let members = Members::of_voters([id(0)]);
    let entries = (1..).zip(times).map(|(slot, time)| {
        let (mut bytes, mut pack) = (Vec::new(), Pack::new());
        encode_entry(TimeNs(*time), None, &account(slot), &mut bytes);
        pack.push(&bytes);
        SlotEntry { slot: Slot(u64::from(slot)), term: Term(1), body: Body::Pack(pack.into_bytes()) }
    });
    let recovered = Recovered::genesis(members.clone());
    let recovered = Recovered {
        hard_state: HardState { term: Term(1), commit: Slot(times.len() as u64), ..recovered.hard_state },
        entries: entries.collect(),
        ..recovered
    };
    let settings = ReplicatedSettings::new(Settings::new(7, id(0)));
    let mut around = World::new(1, None).nodes.swap_remove(0).around;
    let sequencer = ReplicatedSequencer::start(0, settings, recovered, Engine::new(), 1, &mut around)?;
    Ok(sequencer.engine().last_applied())
}

#[test]
fn a_log_whose_time_goes_back_is_refused() {
    assert!(matches!(start(&[5, 5, 6]), Ok(LogIndex(3))));
    let gap = LogGap { last: LogIndex(2), found: LogIndex(3) };
    match start(&[5, 6, 4]) {
        Err(StartHalt::Halt(Halt::Gap(found))) => assert_eq!(found, gap),
        other => panic!("{other:?}"),
    }
    assert!(gap.to_string().contains("restore both from the same backup"));
}
