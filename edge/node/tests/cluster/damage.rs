//! Disks that fail: a log with a byte that is another, and a disk that is really full.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::Signal;
use serde_json::json;

use super::client::{Diary, Participant};
use super::namespaces::{works, write_script};
use super::{Cluster, PATIENCE, Shape, check_told, member, participants, progress, stop_in_order, until};

/// The segments of a replica's log, oldest first.
fn segments(folder: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder.join("log")).unwrap().map(|file| file.unwrap().path());
    let mut segments: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|extension| extension == "seg")).collect();
    segments.sort();
    segments
}

#[test]
fn a_replica_whose_log_is_damaged_does_not_start_and_another_one_takes_its_place() {
    let mut cluster = Cluster::of(Shape { later: 1, checkpoint_every: 400, ..Shape::default() });
    let participants = participants(&cluster, 2);
    progress(&participants, 400);
    let leader = cluster.local.wait_for_leader(PATIENCE).unwrap();
    let odd = leader % 3 + 1;
    let replica = &mut cluster.local.replicas[odd as usize - 1];
    replica.signal(Signal::TERM).unwrap();
    assert_eq!(replica.wait().unwrap(), Some(0));

    // A byte in the middle of what the first segment holds: not one of the zeros that fill a block.
    let path = segments(&cluster.folder(odd)).remove(0);
    let mut bytes = std::fs::read(&path).unwrap();
    let end = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    let at = (end / 2..).find(|at| bytes[*at] != 0).unwrap();
    bytes[at] ^= 0x10;
    std::fs::write(&path, &bytes).unwrap();
    cluster.local.start(odd).unwrap_err();
    let said = cluster.said(odd);
    assert!(said.contains("is damaged at byte") && said.contains("from another replica"), "{said}");
    assert!(std::fs::read(&path).unwrap() == bytes, "it is left as it was found");
    progress(&participants, 200);

    cluster.local.start(4).unwrap();
    let operator = cluster.operator(leader);
    let post = |what: &str, body| operator.signed("POST", &format!("/v1/admin/cluster/{what}"), Some(&body));
    until("the fourth is let in", || post("add", json!({"replica": 4, "learner": true})).is_ok());
    until("the fourth learns", || member(&cluster, 4, 4) == "learner");
    cluster.catches_up(4);
    until("the fourth may vote", || post("add", json!({"replica": 4})).is_ok());
    until("the fourth votes", || member(&cluster, leader, 4) == "voter");
    until("the damaged one is taken out", || post("remove", json!({"replica": odd})).is_ok());
    until("it has left", || member(&cluster, leader, odd) == "none");
    progress(&participants, 200);

    let diaries: Vec<Diary> = participants.into_iter().map(Participant::finish).collect();
    let left: Vec<u64> = (1..=4).filter(|id| *id != odd).collect();
    let end = stop_in_order(&mut cluster, &left);
    check_told(&cluster, &left, &diaries, end);
}

/// A disk of a few megabytes in the place of a replica's data folder, which only processes in its namespace see.
struct Room {
    /// Whoever holds the namespace open.
    holder: Child,
    data: PathBuf,
}

/// Replica 3 has it.
const CRAMPED: u64 = 3;
const ROOM_BYTES: u64 = 12 << 20;

impl Room {
    /// In the place of `data`, with what is there.
    fn make(data: PathBuf) -> Self {
        let script = format!(
            "cp -a \"$0\" \"$0.kept\" && mount -t tmpfs -o size={ROOM_BYTES} tmpfs \"$0\" && cp -a \"$0.kept/.\" \"$0\" && echo ready && exec cat"
        );
        let mut holder = Command::new("unshare")
            .args(["--user", "--map-root-user", "--mount", "sh", "-c", &script])
            .arg(&data)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(holder.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line.trim(), "ready");
        Self { holder, data }
    }

    /// A program that begins the replica there.
    fn write_program(&self, path: &Path) {
        let (walras, holder) = (env!("CARGO_BIN_EXE_walras"), self.holder.id());
        let enter = format!("nsenter --preserve-credentials --user --mount --target {holder}");
        let text = format!(
            "#!/bin/sh\ncase \"$*\" in\n*/replica-{CRAMPED}/*) exec {enter} -- '{walras}' \"$@\" ;;\n*) exec '{walras}' \"$@\" ;;\nesac\n"
        );
        write_script(path, &text);
    }

    /// The folder as those see it who are not in the namespace.
    fn seen(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root", self.holder.id())).join(self.data.strip_prefix("/").unwrap())
    }

    /// Writes until nothing fits any more.
    fn fill(&self) {
        let mut file = std::fs::File::create(self.seen().join("filler")).unwrap();
        let piece = vec![0x5a; 4_096];
        while file.write_all(&piece).is_ok() {}
    }

    fn free(&self) {
        std::fs::remove_file(self.seen().join("filler")).unwrap();
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        drop(self.holder.stdin.take());
        let _ = self.holder.wait();
    }
}

#[test]
fn a_replica_whose_disk_is_full_promises_nothing_and_goes_on_once_there_is_room() {
    let mount = ["--user", "--map-root-user", "--mount", "sh", "-c", "mount -t tmpfs tmpfs /mnt"];
    if !works("unshare", &mount) || !works("nsenter", &["--version"]) {
        println!("skipped: this system lets no user mount a small disk of its own (unshare, nsenter)");
        return;
    }
    let scripts = tempfile::tempdir().unwrap();
    let program = scripts.path().join("in-its-room.sh");
    let mut room = None;
    let shape = Shape { segment_bytes: 1 << 20, checkpoint_every: 400, ..Shape::default() };
    let mut cluster = Cluster::of_program(&program, shape, |folder| {
        let made = Room::make(folder.join(format!("replica-{CRAMPED}")).join("data"));
        made.write_program(&program);
        room = Some(made);
    });
    let room = room.unwrap();
    let participants = participants(&cluster, 2);
    progress(&participants, 200);

    room.fill();
    until("it says so", || cluster.storage(CRAMPED) == "full");
    let said = cluster.said(CRAMPED);
    assert!(said.contains("no space left") && said.contains("free space on that disk"), "{said}");
    progress(&participants, 300);

    room.free();
    until("it writes again", || cluster.storage(CRAMPED) == "ok");
    cluster.catches_up(CRAMPED);
    progress(&participants, 300);
    let diaries: Vec<Diary> = participants.into_iter().map(Participant::finish).collect();
    let end = stop_in_order(&mut cluster, &[1, 2, 3]);
    // Its log where the others' are, to be read.
    let copied = Command::new("cp").arg("-a").arg(room.seen().join(".")).arg(&room.data).status().unwrap();
    assert!(copied.success());
    check_told(&cluster, &[1, 2, 3], &diaries, end);
}
