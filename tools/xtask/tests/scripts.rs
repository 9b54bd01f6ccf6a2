//! `tools/setup.sh` and `tools/quietly.sh`: what is missing or too old ends in one line to run, and what takes long says so.
//! `tools/run_tests.py`: test programs of some crates run as cargo would run them. The tools that they ask are stand-ins: nothing is
//! installed, and nothing built.
#![allow(clippy::unwrap_used, reason = "in a test a panic is the answer")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::json;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn folder_of(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("setup").join(name)
}

/// The same, made and empty.
fn folder(name: &str) -> PathBuf {
    let folder = folder_of(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn write_program(path: &Path, script: &str) {
    fs::write(path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Runs setup with these in place of tools, each with its script.
fn setup(name: &str, instead: &[(&str, &str)], compiler: &str) -> Output {
    let folder = folder(name);
    let here = folder.display();
    // A machine that has all: what a test is not about is in order.
    let said = format!("echo \"$0 $*\" >>{here}/ran");
    let usual: [(&str, &str); 9] = [
        ("rustc", "echo 'rustc 99.0.0 (0123abc 2030-01-01)'"),
        ("cargo", "exit 0"),
        ("rustup", &said),
        ("node", "echo v99.0.0"),
        ("npm", "exit 0"),
        ("python3", "exit 0"),
        ("chromium-headless-shell", "exit 0"),
        ("id", "echo 1000"),
        ("apt-get", &said),
    ];
    for (tool, script) in usual.iter().chain(instead) {
        write_program(&folder.join(tool), script);
    }
    let path = format!("{here}:{}", std::env::var("PATH").unwrap());
    let mut command = Command::new(root().join("tools/setup.sh"));
    command.arg("test").env("PATH", path).env("CC", compiler).env_remove("CI").env_remove("CHROMIUM").env_remove("PYTHON");
    command.output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn a_machine_that_has_all_is_told_nothing() {
    let output = setup("all", &[], "true");
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(said(&output), "");
}

#[test]
fn what_is_too_old_is_named_with_what_is_needed_and_the_line_that_renews_it() {
    let node = fs::read_to_string(root().join("web/package.json")).unwrap();
    let wanted = node.split("\"node\": \">=").nth(1).and_then(|rest| rest.split('"').next()).unwrap().to_owned();
    let rust = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let rust = rust.split("rust-version = \"").nth(1).and_then(|rest| rest.split('"').next()).unwrap().to_owned();
    let cases = [
        ("old-node", ("node", "echo v20.18.3"), wanted.as_str(), "20.18.3", "npx --yes n lts"),
        ("older-node", ("node", "echo v9.20.0"), wanted.as_str(), "9.20.0", "npx --yes n lts"),
        ("no-node", ("node", "exit 127"), wanted.as_str(), "", "npx --yes n lts"),
        ("old-rust", ("rustc", "echo 'rustc 1.9.0 (0123abc 2016-01-01)'"), rust.as_str(), "1.9.0", "rustup update stable"),
    ];
    for (name, instead, wanted, found, line) in cases {
        let output = setup(name, &[instead], "true");
        let said = said(&output);
        assert_eq!(output.status.code(), Some(1), "{name}: {said}");
        assert!(said.contains(wanted) && said.contains(found) && said.contains(line), "{name}: {said}");
    }
    let enough = setup("enough", &[("node", &format!("echo v{wanted}.0"))], "true");
    assert!(enough.status.success(), "{}", said(&enough));
}

#[test]
fn without_a_c_compiler_the_packages_are_named_or_installed() {
    let output = setup("no-compiler", &[], "false");
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(
        said(&output).contains("sudo sh -c 'apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev'"),
        "{}",
        said(&output)
    );

    let output = setup("root", &[("id", "echo 0")], "false");
    assert!(output.status.success(), "{}", said(&output));
    let ran = fs::read_to_string(folder_of("root").join("ran")).unwrap();
    assert!(
        ran.contains("apt-get update") && ran.contains("apt-get install -y -qq --no-install-recommends gcc libc6-dev"),
        "{ran}"
    );

    let output = setup("root-fails", &[("id", "echo 0"), ("apt-get", "echo 'no network'; exit 100")], "false");
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("no network") && said(&output).contains("run: apt-get update"), "{}", said(&output));
}

fn quietly(what: &str, script: &str) -> Command {
    let mut command = Command::new(root().join("tools/quietly.sh"));
    command.args([what, "sh", "-c", script]);
    command
}

#[test]
fn what_goes_well_and_fast_is_not_heard_of_and_what_fails_is_shown() {
    let well = quietly("building", "echo noise; echo more >&2").output().unwrap();
    assert_eq!((well.status.code(), said(&well).as_str(), well.stdout.len()), (Some(0), "", 0));
    let badly = quietly("building", "echo the cause; exit 7").output().unwrap();
    assert_eq!(badly.status.code(), Some(7));
    assert!(said(&badly).starts_with("the cause\n") && said(&badly).contains("building: that failed"), "{}", said(&badly));
}

#[test]
fn what_takes_long_says_so() {
    let heard = folder("long").join("heard");
    let stderr = fs::File::create(&heard).unwrap();
    // It ends once the sign of life is there.
    let script = format!("until grep -q 'building the page' '{}'; do :; done", heard.display());
    let status = quietly("building the page", &script).env("QUIETLY_PATIENCE_S", "0.01").stderr(stderr).status().unwrap();
    assert!(status.success());
}

/// Runs the test programs of some crates, where cargo says that it built these: a crate's folder, and what its program does.
fn run_tests(name: &str, built: &[(&str, &str)], asked: &[&str]) -> Output {
    let folder = folder(name);
    let mut said = String::new();
    for (at, (of, script)) in built.iter().enumerate() {
        let executable = folder.join(format!("program-{at}"));
        write_program(&executable, script);
        let [manifest, source] = ["Cargo.toml", "src/lib.rs"].map(|file| root().join(of).join(file));
        let artifact = |is_test: bool, executable: Option<&Path>| {
            json!({
                "reason": "compiler-artifact",
                "manifest_path": manifest,
                "target": { "src_path": source },
                "profile": { "test": is_test },
                "executable": executable,
            })
        };
        // A library has no executable, and a program is none of tests.
        let artifacts = [(true, Some(executable.as_path())), (false, None), (false, Some(Path::new("/bin/false")))];
        for (is_test, executable) in artifacts {
            said += &format!("{}\n", artifact(is_test, executable));
        }
    }
    said += "{\"reason\":\"build-finished\",\"success\":true}\n";
    fs::write(folder.join("said"), said).unwrap();
    let cargo = folder.join("cargo");
    write_program(&cargo, &format!("echo \"$*\" >'{0}/asked'\ncat '{0}/said'", folder.display()));
    run_tests_with(&cargo.display().to_string(), asked)
}

fn run_tests_with(cargo: &str, asked: &[&str]) -> Output {
    let mut command = Command::new("python3");
    command.arg(root().join("tools/run_tests.py")).args(asked).env("CARGO", format!("'{cargo}'")).output().unwrap()
}

#[test]
fn programs_of_the_crates_that_were_named_run_in_their_folders() {
    let shows = "echo \"$CARGO_MANIFEST_DIR $(pwd) $*\"";
    let output = run_tests(
        "run-tests",
        &[("core/wire", shows), ("edge/node", "exit 1"), ("core/types", shows)],
        &["core/types", "core/wire"],
    );
    assert!(output.status.success(), "{}", said(&output));
    let [types, wire] = ["core/types", "core/wire"].map(|of| root().join(of).display().to_string());
    let expected = format!(
        "     Running core/types/src/lib.rs\n{types} {types} --quiet\n     Running core/wire/src/lib.rs\n{wire} {wire} --quiet\n"
    );
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
    let asked = fs::read_to_string(folder_of("run-tests").join("asked")).unwrap();
    assert_eq!(asked, "test --workspace --tests --no-run --message-format=json-render-diagnostics\n");
    // What it asks for is what the other targets build, so that nothing is compiled again.
    assert!(fs::read_to_string(root().join("Makefile")).unwrap().contains("test --workspace --tests --no-run\n"));
}

#[test]
fn a_program_that_fails_is_named_after_the_others_have_run() {
    let built = [("core/types", "echo 'the cause'; exit 101"), ("core/wire", "echo 'all is well'")];
    let output = run_tests("run-tests-fail", &built, &["core/types/", "core/wire"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(said(&output), "failed: core/types/src/lib.rs\n");
    let heard = String::from_utf8(output.stdout).unwrap();
    assert!(heard.contains("the cause\n") && heard.ends_with("all is well\n"), "{heard}");
}

#[test]
fn crates_without_a_test_program_and_a_build_that_fails_end_the_run() {
    let output = run_tests("run-tests-none", &[("core/types", "exit 0")], &["core/types", "core/typos"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("core/typos: name folders of members") && output.stdout.is_empty(), "{}", said(&output));
    let cargo = folder("run-tests-build").join("cargo");
    write_program(&cargo, "echo 'error: it does not compile' >&2; exit 101");
    let output = run_tests_with(&cargo.display().to_string(), &["core/types"]);
    assert_eq!((output.status.code(), said(&output).as_str()), (Some(101), "error: it does not compile\n"));
}
