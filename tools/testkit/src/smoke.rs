//! Fuzz targets on any compiler: the seeds in `tools/fuzz/seeds`, then thousands of inputs from fixed random numbers, half of them
//! changed seeds. `WALRAS_SMOKE_INPUTS` asks for more per target, `WALRAS_SMOKE_TARGET` for one target alone.
#![allow(clippy::unwrap_used, reason = "only tests call it, and a test fails by panicking")]

use std::path::{Path, PathBuf};

use crate::Random;
use crate::fuzz::Target;

/// `tools/fuzz/seeds/TARGET`.
#[must_use]
pub fn seed_folder(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/seeds").join(target)
}

/// A target's seeds, in the order of their names.
#[must_use]
pub fn seeds(target: &str) -> Vec<Vec<u8>> {
    let Ok(folder) = std::fs::read_dir(seed_folder(target)) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = folder.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

/// Changes a few bytes, cuts, repeats a part, or joins two seeds.
fn change(random: &mut Random, seeds: &[Vec<u8>]) -> Vec<u8> {
    let below = |random: &mut Random, bound: usize| (random.next_u64() % bound.max(1) as u64) as usize;
    let mut bytes = seeds[below(random, seeds.len())].clone();
    for _ in 0..=below(random, 4) {
        let at = below(random, bytes.len());
        match below(random, 6) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, random.next_u64() as u8),
            2 => {
                let part = bytes[at..(at + below(random, 40)).min(bytes.len())].to_vec();
                bytes.splice(at..at, part);
            }
            3 => {
                let other = &seeds[below(random, seeds.len())];
                bytes.truncate(at);
                bytes.extend_from_slice(&other[below(random, other.len())..]);
            }
            _ if bytes.is_empty() => {}
            4 => bytes[at] ^= 1 << below(random, 8),
            _ => bytes[at] = [0, 1, 0x7f, 0x80, 0xff, random.next_u64() as u8][below(random, 6)],
        }
    }
    bytes
}

fn made_up(random: &mut Random, most: u64) -> Vec<u8> {
    let mut bytes = vec![0; (random.next_u64() % most) as usize];
    random.fill(&mut bytes);
    bytes
}

fn inputs_per_target() -> u64 {
    std::env::var("WALRAS_SMOKE_INPUTS").map_or(300, |count| count.parse().expect("WALRAS_SMOKE_INPUTS is a number of inputs"))
}

/// Runs a target, and on a panic says which input it was.
fn run(name: &str, target: fn(&[u8]), bytes: &[u8]) {
    let done = std::panic::catch_unwind(|| target(bytes));
    if let Err(cause) = done {
        let hex = data_encoding::HEXLOWER.encode(bytes);
        eprintln!("{name} failed on these {} bytes: {hex}", bytes.len());
        std::panic::resume_unwind(cause);
    }
}

/// Runs the targets that are wanted.
pub fn smoke(targets: &[Target], wanted: impl Fn(&str) -> bool) {
    let only = std::env::var("WALRAS_SMOKE_TARGET").ok();
    for (number, &(name, target)) in (0..).zip(targets) {
        if !wanted(name) || only.as_deref().is_some_and(|only| only != name) {
            continue;
        }
        let seeds = seeds(name);
        seeds.iter().for_each(|seed| run(name, target, seed));
        let mut random = Random::new(number);
        for round in 0..inputs_per_target() {
            let bytes = match round % 2 {
                0 if !seeds.is_empty() => change(&mut random, &seeds),
                _ => made_up(&mut random, 1 << (4 + round % 9)),
            };
            run(name, target, &bytes);
        }
    }
}

/// Every target has seeds, a program and a line in the manifest of `tools/fuzz`.
pub fn check_programs(targets: &[Target]) {
    for (name, _) in targets {
        assert!(!seeds(name).is_empty(), "tools/fuzz/seeds/{name} is empty: put a small input of each kind there (see make_seeds)");
        let program = seed_folder(name).join(format!("../../fuzz_targets/{name}.rs"));
        assert!(program.is_file(), "tools/fuzz/fuzz_targets/{name}.rs is missing");
        let manifest = std::fs::read_to_string(seed_folder(name).join("../../Cargo.toml")).unwrap();
        assert!(manifest.contains(&format!("name = \"{name}\"")), "tools/fuzz/Cargo.toml does not name {name}");
    }
}
