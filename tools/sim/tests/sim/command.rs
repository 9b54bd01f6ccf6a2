//! The program: what it writes for other programs.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

/// Runs it; whether it ended well, what it printed, and what it wrote.
fn run(name: &str, args: &[&str]) -> (bool, String, Value) {
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.json"));
    let output = Command::new(env!("CARGO_BIN_EXE_walras-sim")).args(args).arg("--json").arg(&file).output().unwrap();
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    (output.status.success(), String::from_utf8(output.stdout).unwrap(), serde_json::from_str(&text).unwrap())
}

#[test]
fn what_seeds_saw_is_written_for_each_kind_of_venue() {
    for (name, args) in [
        ("cluster", &["--seconds", "2"][..]),
        ("alone", &["--replicas", "1", "--seconds", "2"]),
        ("shards", &["--shards", "--seconds", "2"]),
    ] {
        let (is_well, said, json) = run(name, &[args, &["--seeds", "2"]].concat());
        assert!(is_well, "{said}");
        assert_eq!(json["seeds_without_a_violation"], 2);
        assert_eq!(json["violation"], Value::Null);
        let figure = |field: &str| json[field].as_f64().unwrap();
        assert!(figure("simulated_s") > 1.0 && figure("simulated_s_per_s_and_core") > 0.0);
        assert!((figure("venue_hours_without_a_violation") * 3_600.0 - figure("simulated_s")).abs() < 1e-6);
        assert_eq!(json["counts"]["simulated_ns"].as_u64().unwrap() / 1_000_000_000, figure("simulated_s") as u64);
    }
}

#[test]
fn a_violation_is_written_with_the_line_that_shows_it_again() {
    let (is_well, said, json) = run("violation", &["--mutation", "AnswerMixedUp", "--lose-disks", "no", "--durability", "disk"]);
    assert!(!is_well);
    let seed = &json["violation"]["seed"];
    assert_eq!(json["violation"]["check"], "answers");
    assert!(said.contains(&format!("again: walras-sim --seeds 1 --seed {seed} --cluster")), "{said}");
    assert!(json["again"].as_str().unwrap().contains("--durability disk"));
}
