//! Parquet files with damage, read by the binary as a user runs it.

use std::path::Path;
use std::process::Command;

use parquet::basic::{Compression, Encoding};
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder, WriterVersion};

/// The exit status and what was said, with 1 GiB of memory and 20 seconds of processor: neither a hang nor gigabytes pass for an answer.
fn fails_within_bounds(file: &Path) -> (Option<i32>, String) {
    let limited = "ulimit -c 0 && ulimit -t 20 && ulimit -v 1048576 && exec \"$0\" clear \"$1\" --json";
    let mut command = Command::new("sh");
    command.args(["-c", limited, env!("CARGO_BIN_EXE_walras")]).arg(file);
    let output = command.output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

fn file_of(properties: WriterPropertiesBuilder) -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("offers.parquet");
    super::write_parquet(&file, properties.build());
    std::fs::read(&file).unwrap()
}

fn snappy() -> WriterPropertiesBuilder {
    WriterProperties::builder().set_compression(Compression::SNAPPY)
}

/// Reads a file that may be damaged; whether the library panicked on it. `what` names the damage.
fn read_or_refused(bytes: &[u8], what: &str) -> bool {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("offers.parquet");
    std::fs::write(&file, bytes).unwrap();
    let (status, said) = fails_within_bounds(&file);
    // Damage may leave other offers, and not every byte counts.
    let is_read = status == Some(0);
    let is_refused = status == Some(4) && said.starts_with(&format!("walras: {}: ", file.display())) && said.lines().count() == 1;
    assert!(is_read || is_refused, "{what}: {status:?} {said}");
    said.contains("its bytes cannot be decoded (")
}

/// Damages a file in many places, each on its own; on how many the library panicked.
fn panics_on_damage(sound: &[u8]) -> usize {
    let flips = [0xff, 0x80, 0x10, 0x02, 0x7f].into_iter().cycle();
    let damage = (0..sound.len()).step_by(6).zip(flips).filter(|&(at, flip)| {
        let mut bytes = sound.to_vec();
        bytes[at] ^= flip;
        read_or_refused(&bytes, &format!("byte {at} ^ {flip}"))
    });
    let cuts = (0..sound.len()).step_by(97).filter(|&at| {
        let cut_out = [&sound[..at], &sound[(at + 40).min(sound.len())..]].concat();
        read_or_refused(&sound[..at], &format!("cut at {at}")) | read_or_refused(&cut_out, &format!("without 40 from {at}"))
    });
    damage.count() + cuts.count()
}

#[test]
fn damage_ends_in_an_error_that_says_what_to_do() {
    let plain = WriterProperties::builder().set_dictionary_enabled(false).set_encoding(Encoding::PLAIN);
    let second_version = snappy().set_writer_version(WriterVersion::PARQUET_2_0);
    let panics = [snappy(), plain, second_version].map(|properties| panics_on_damage(&file_of(properties)));
    assert!(panics.into_iter().sum::<usize>() > 0, "the library panics on none of these: is the hook for its panics still needed?");
}

/// 2^31 - 1 as a file writes it.
const HUGE: [u8; 5] = [0xfe, 0xff, 0xff, 0xff, 0x0f];

#[test]
fn sizes_that_the_bytes_can_not_have_are_refused_before_memory_is_taken() {
    let sound = file_of(snappy());
    // The first page is a dictionary of texts: its kind, its size, its size as it lies here, how many texts, in which encoding.
    let header = [sound[4], sound[5], sound[6], sound[8], sound[10], sound[11], sound[13]];
    assert_eq!(header, [0x15, 4, 0x15, 0x15, 0x4c, 0x15, 0x15], "{:x?}", &sound[4..18]);
    let with = |at: usize, huge: &[u8]| [&sound[..at], huge, &sound[at + 1..]].concat();
    // Behind the header, a text begins with its length before compression.
    for (at, huge, expected) in [
        (12, &HUGE[..], "a dictionary counts more values than it has bytes"),
        (18, &[0xff, 0xff, 0xff, 0xff, 0x07], "a page claims to be longer than its bytes can make it"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("offers.parquet");
        std::fs::write(&file, with(at, huge)).unwrap();
        let (status, said) = fails_within_bounds(&file);
        assert!(status == Some(4) && said.contains(expected), "{status:?} {said}");
    }
}
