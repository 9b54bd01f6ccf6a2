//! Folders from which a replica does not start, and what it says; and a snapshot that was cut short, which costs nothing.

use std::path::{Path, PathBuf};
use std::process::Child;

use rustix::process::Signal;

use super::client::{Diary, Participant};
use super::identity::{copy, second_process};
use super::{Cluster, PATIENCE, Shape, check_told, participants, progress, stop_in_order, until};

/// Changes a key of a replica's configuration; what it was.
fn configure(cluster: &Cluster, id: u64, key: &str, value: toml::Value) -> toml::Value {
    let path = cluster.local.replicas[id as usize - 1].dir.join("walras.toml");
    let mut table: toml::Table = std::fs::read_to_string(&path).unwrap().parse().unwrap();
    let before = table["cluster"].as_table_mut().unwrap().insert(key.to_owned(), value).unwrap();
    std::fs::write(&path, table.to_string()).unwrap();
    before
}

/// A process that was started on a folder ends by itself; what it said.
fn refuses(mut process: Child, data: &Path) -> String {
    let mut status = None;
    until("it ends", || {
        status = process.try_wait().unwrap();
        status.is_some()
    });
    assert!(!status.unwrap().success());
    std::fs::read_to_string(data.with_extension("log")).unwrap()
}

/// The files of a folder, with what is in them.
fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let paths = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let mut files: Vec<_> = paths.map(|path| (path.clone(), std::fs::read(path).unwrap())).collect();
    files.sort();
    files
}

fn newest_snapshot(folder: &Path) -> Option<PathBuf> {
    let paths = std::fs::read_dir(folder.join("snapshots")).ok()?.map(|file| file.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == "snap")).max()
}

#[test]
fn folders_of_others_are_refused_and_a_snapshot_cut_short_costs_nothing() {
    let mut cluster = Cluster::of(Shape { checkpoint_every: 300, ..Shape::default() });
    let participants = participants(&cluster, 2);
    progress(&participants, 400);
    let leader = cluster.local.wait_for_leader(PATIENCE).unwrap();
    let odd = leader % 3 + 1;
    let folder = cluster.folder(odd);
    until("it has a snapshot", || newest_snapshot(&folder).is_some());
    let stop = |cluster: &mut Cluster| {
        let replica = &mut cluster.local.replicas[odd as usize - 1];
        replica.signal(Signal::TERM).unwrap();
        assert_eq!(replica.wait().unwrap(), Some(0));
    };

    stop(&mut cluster);
    let snapshot = newest_snapshot(&folder).unwrap();
    let length = std::fs::metadata(&snapshot).unwrap().len();
    std::fs::OpenOptions::new().write(true).open(&snapshot).unwrap().set_len(length / 2).unwrap();
    cluster.local.start(odd).unwrap();
    cluster.catches_up(odd);
    let said = cluster.said(odd);
    assert!(said.contains(&format!("the snapshot {} is damaged", snapshot.display())), "{said}");
    progress(&participants, 200);

    // With whom the cluster began does not change.
    stop(&mut cluster);
    let alone = toml::Value::Array(vec![toml::Value::Integer(odd.cast_signed())]);
    let genesis = configure(&cluster, odd, "genesis", alone);
    cluster.local.start(odd).unwrap_err();
    let said = cluster.said(odd);
    assert!(said.contains("began with the replicas [1, 2, 3]") && said.contains("correct cluster.genesis"), "{said}");
    configure(&cluster, odd, "genesis", genesis);
    cluster.local.start(odd).unwrap();
    cluster.catches_up(odd);
    progress(&participants, 200);
    let diaries: Vec<Diary> = participants.into_iter().map(Participant::finish).collect();
    let end = stop_in_order(&mut cluster, &[1, 2, 3]);
    check_told(&cluster, &[1, 2, 3], &diaries, end);

    // Another replica's folder.
    let data = cluster.local.replicas[odd as usize - 1].dir.join("swapped");
    copy(&cluster.local.replicas[leader as usize - 1].data(), &data);
    let log = data.join("replica").join("log");
    let before = files(&log);
    let said = refuses(second_process(&cluster, odd, &data), &data);
    assert!(said.contains(&format!("holds the log of replica {leader}, not of replica {odd}")), "{said}");
    assert!(files(&log) == before, "it is left as it was found");
}
