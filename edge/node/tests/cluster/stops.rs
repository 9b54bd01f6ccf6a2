//! Replicas that must not go on: each stops by itself and says why, the others go on, and nothing that was acknowledged is lost.

use std::path::Path;

use rustix::process::Signal;
use walras_engine::Engine;
use walras_replica_log::SnapshotReader;
use walras_sequencer::Content;
use walras_types::Amount;
use walras_wire::{AccountCommand, Command, Transfer};

use super::client::{Diary, Participant};
use super::{Cluster, Shape, check, check_told, entries, open, participants, progress, stop_in_order, until};

/// The status of a replica that must not go on by itself.
pub(crate) const HALTED: Option<i32> = Some(6);

/// The status with which a replica ends by itself.
pub(crate) fn status_of(cluster: &mut Cluster, id: u64) -> Option<i32> {
    let (replica, mut status) = (&mut cluster.local.replicas[id as usize - 1], None);
    until("it has stopped by itself", || {
        status = replica.has_ended();
        status.is_some()
    });
    status.flatten()
}

/// Writes a state into a replica's newest snapshot that is not what the log makes: the first deposit brought a unit more. Its checksums
/// are right, so nothing but a comparison of states can find it. The last entry in it.
fn forge_state(id: u64, dir: &Path) -> u64 {
    let log = entries(dir);
    let opened = open(id, dir, 3);
    let info = opened.snapshots.list().pop().expect("it has a snapshot");
    let state = opened.snapshots.read(info.meta.slot).and_then(SnapshotReader::read_all).unwrap();
    // The engine's part is the first one, behind its length.
    let (length, rest) = state.split_first_chunk::<8>().unwrap();
    let (engine, rest) = rest.split_at(u64::from_le_bytes(*length) as usize);

    let (mut other, mut events, mut is_forged) = (Engine::new(), Vec::new(), false);
    for mut entry in log.into_iter().take_while(|entry| entry.log_index <= info.meta.log_index) {
        if let Content::Command(Command::Account(AccountCommand::Deposit(transfer))) = entry.content
            && !std::mem::replace(&mut is_forged, true)
        {
            let amount = Amount::new(transfer.amount.get() + 1).unwrap();
            entry.content = Command::Account(AccountCommand::Deposit(Transfer { amount, ..transfer })).into();
        }
        events.clear();
        entry.apply(&mut other, &mut events);
    }
    assert_eq!(other.last_applied(), info.meta.log_index, "the log begins with entry 1 and reaches the snapshot");
    let mut forged = Vec::new();
    other.snapshot(&mut forged);
    assert_ne!(forged, engine);
    let mut writer = opened.snapshots.begin(info.meta.clone()).unwrap();
    writer.append(&(forged.len() as u64).to_le_bytes()).unwrap();
    writer.append(&forged).unwrap();
    writer.append(rest).unwrap();
    writer.finish().unwrap();
    opened.log.close().unwrap();
    info.meta.log_index.0
}

#[test]
fn a_replica_whose_state_is_another_stops_and_says_where() {
    let mut cluster = Cluster::start(0);
    let participants = participants(&cluster, 2);
    let leader = cluster.local.wait_for_leader(super::PATIENCE).unwrap();
    let odd = leader % 3 + 1;
    let dir = cluster.folder(odd);
    let has_snapshot = || {
        std::fs::read_dir(dir.join("snapshots")).unwrap().any(|file| file.unwrap().file_name().to_string_lossy().ends_with(".snap"))
    };
    until("it has a snapshot", has_snapshot);
    let replica = &mut cluster.local.replicas[odd as usize - 1];
    replica.signal(Signal::TERM).unwrap();
    assert_eq!(replica.wait().unwrap(), Some(0));
    let from = forge_state(odd, &dir);

    cluster.local.start(odd).unwrap();
    assert_eq!(status_of(&mut cluster, odd), HALTED);
    let said = cluster.said(odd);
    let (_, why) = said.rsplit_once("this replica has stopped: ").expect("it says so last");
    let at: u64 = why.strip_prefix("the state after log entry ").and_then(|rest| rest.split(' ').next()).unwrap().parse().unwrap();
    assert!(at > from && why.contains(" of 3 replicas") && why.contains("under a new id"), "{from}: {why}");

    progress(&participants, 300);
    let others: Vec<u64> = (1..=3).filter(|id| *id != odd).collect();
    let diaries: Vec<Diary> = participants.into_iter().map(Participant::finish).collect();
    let end = stop_in_order(&mut cluster, &others);
    check_told(&cluster, &others, &diaries, end);
}

#[test]
fn a_leader_whose_disk_takes_no_more_hands_over_and_goes_on_when_it_does() {
    let mut cluster = Cluster::of(Shape { segment_bytes: 1 << 20, ..Shape::default() });
    let participants = participants(&cluster, 2);
    progress(&participants, 100);

    // Where the leader's next segments shall be there is something else, which it can neither use nor remove.
    let leader = cluster.local.wait_for_leader(super::PATIENCE).unwrap();
    let log = cluster.folder(leader).join("log");
    let segments = std::fs::read_dir(&log)
        .unwrap()
        .filter_map(|file| u64::from_str_radix(file.unwrap().file_name().to_str()?.strip_suffix(".seg")?, 16).ok());
    let last = segments.max().unwrap();
    let obstacles: Vec<_> = (last + 1..last + 4).map(|id| log.join(format!("{id:016x}.seg"))).collect();
    // The first of them may be there by now.
    let obstacles: Vec<_> = obstacles.into_iter().filter(|path| std::fs::create_dir(path).is_ok()).collect();
    assert!(obstacles.len() >= 2);
    until("it says so", || cluster.storage(leader) == "full");
    until("another one leads", || cluster.other_leader(leader).is_some());
    assert!(cluster.said(leader).contains("log can not be written: handing over"), "{}", cluster.said(leader));
    progress(&participants, 300);

    obstacles.iter().for_each(|path| std::fs::remove_dir(path).unwrap());
    until("it writes again", || cluster.storage(leader) == "ok");
    cluster.catches_up(leader);
    progress(&participants, 300);
    let diaries: Vec<Diary> = participants.into_iter().map(Participant::finish).collect();
    let end = stop_in_order(&mut cluster, &[1, 2, 3]);
    check(&cluster, &[1, 2, 3], &diaries, end);
}

/// Lets a replica go on from what its disk has; what it says.
fn accept_loss(cluster: &Cluster, id: u64) -> serde_json::Value {
    let config = cluster.local.replicas[id as usize - 1].dir.join("walras.toml");
    let program = std::process::Command::new(env!("CARGO_BIN_EXE_walras"));
    let output = { program }.args(["--json", "cluster", "accept-loss", "--config"]).arg(config).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn after_the_end_of_a_majority_a_venue_in_memory_begins_again_when_its_operator_says_so() {
    let mut cluster = Cluster::of(Shape { more: vec![("cluster", "durability", "memory".into())], ..Shape::default() });
    let participants = participants(&cluster, 2);
    progress(&participants, 300);
    let diaries: Vec<Diary> = participants.into_iter().map(Participant::finish).collect();
    for replica in &mut cluster.local.replicas {
        replica.signal(Signal::KILL).unwrap();
        assert_eq!(replica.wait().unwrap(), None, "it was killed");
    }
    for id in 1..=3 {
        cluster.local.start(id).unwrap_err();
        assert!(cluster.said(id).contains("docs/cluster.md"), "it says where to read on: {}", cluster.said(id));
    }
    for id in 1..=3 {
        assert_eq!(accept_loss(&cluster, id)["had_crashed"], true);
        assert_eq!(accept_loss(&cluster, id)["had_crashed"], false, "once is enough");
        cluster.local.start(id).unwrap();
    }
    // It takes commands again, and all agree on what is left.
    let end = stop_in_order(&mut cluster, &[1, 2, 3]);
    let logs: Vec<_> = (1..=3).map(|id| entries(&cluster.folder(id))).collect();
    assert!(logs.iter().all(|log| log.len() as u64 >= end && log[..end as usize] == logs[0][..end as usize]));
    // What is lost is the end: of what was acknowledged, all before the first that is missing is there.
    for diary in &diaries {
        let there = |log_index: &u64, sent: &Command| {
            let entry = logs[0].get(*log_index as usize - 1);
            entry.is_some_and(|entry| entry.content == Content::Command(*sent))
        };
        let answers = diary.answers.iter().zip(&diary.sent);
        let mut left = answers.skip_while(|((_, log_index, _), sent)| there(&log_index.0, sent));
        assert!(left.all(|((_, log_index, _), sent)| !there(&log_index.0, sent)));
    }
}
