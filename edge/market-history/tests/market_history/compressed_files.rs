//! Compressed files are read as they are; damaged and wrong ones are errors that say what to do.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use walras_market_history::synthetic::{SyntheticConfig, write_lobster};
use walras_market_history::*;

/// A made market in each form a file may have.
fn write_forms(name: &str) -> (Vec<u8>, Vec<PathBuf>) {
    let mut plain = Vec::new();
    let config = SyntheticConfig { duration_ns: 10_000_000_000, ..SyntheticConfig::default() };
    write_lobster(config, &mut plain).unwrap();

    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&plain).unwrap();
    let mut xz = lzma_rust2::XzWriter::new(Vec::new(), lzma_rust2::XzOptions::with_preset(1)).unwrap();
    xz.write_all(&plain).unwrap();
    let forms = [
        ("csv", plain.clone()),
        ("csv.gz", gzip.finish().unwrap()),
        ("csv.xz", xz.finish().unwrap()),
        ("zip", zip_of(&[("market.csv", &plain)], zip::CompressionMethod::Deflated)),
        ("stored.zip", zip_of(&[("market.csv", &plain)], zip::CompressionMethod::Stored)),
    ];
    let paths = forms.map(|(extension, bytes)| write_file(&format!("{name}.{extension}"), &bytes));
    (plain, paths.to_vec())
}

fn zip_of(files: &[(&str, &[u8])], method: zip::CompressionMethod) -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, bytes) in files {
        archive.start_file(*name, zip::write::SimpleFileOptions::default().compression_method(method)).unwrap();
        archive.write_all(bytes).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

fn write_file(name: &str, bytes: &[u8]) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn every_form_gives_the_same_bytes() {
    let (plain, paths) = write_forms("whole");
    for path in paths {
        let mut bytes = Vec::new();
        open_bytes(&path).unwrap().read_to_end(&mut bytes).unwrap();
        assert!(bytes == plain, "{}", path.display());
        assert_eq!(detect(&path).unwrap(), Format::Lobster);
        let events = History::open(&path).unwrap().map(Result::unwrap).count();
        assert_eq!(events, plain.iter().filter(|&&byte| byte == b'\n').count());
    }
}

/// To the end or the first error.
fn read(path: &Path) -> Result<u64, HistoryError> {
    History::open_as(path, Format::Lobster)?.try_fold(0, |count, event| event.map(|_| count + 1))
}

#[test]
fn a_compressed_file_that_was_cut_or_changed_is_an_error() {
    let (_, paths) = write_forms("damaged");
    for path in &paths[1..] {
        let whole = std::fs::read(path).unwrap();
        for (what, bytes) in [
            ("cut", whole[..whole.len() / 2].to_vec()),
            ("cut at its end", whole[..whole.len() - 1].to_vec()),
            ("changed", {
                let mut bytes = whole.clone();
                let middle = bytes.len() / 2;
                bytes[middle] ^= 0x10;
                bytes
            }),
        ] {
            std::fs::write(path, bytes).unwrap();
            let error = read(path).expect_err(&format!("{} {what}", path.display())).to_string();
            assert!(error.contains("; "), "{error}");
        }
    }
}

#[test]
fn no_damage_makes_a_decompressor_panic() {
    let (_, paths) = write_forms("flipped");
    for path in &paths[1..] {
        let whole = std::fs::read(path).unwrap();
        // All of the headers and trailers, and some of what is between.
        let ends = 100.min(whole.len() / 2);
        let between = (ends..whole.len() - ends).step_by(whole.len() / 50 + 1);
        for at in (0..ends).chain(between).chain(whole.len() - ends..whole.len()) {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << (at % 8);
            std::fs::write(path, bytes).unwrap();
            // Some bytes mean nothing (a time stamp), so either outcome will do.
            let _ = read(path);
        }
    }
}

#[test]
fn wrong_archives_and_absent_files_are_errors_that_say_what_to_do() {
    let two = zip_of(&[("a.csv", b"1,1,1,1,1,1\n"), ("b.csv", b"1,1,1,1,1,1\n")], zip::CompressionMethod::Deflated);
    let error = read(&write_file("two.zip", &two)).unwrap_err().to_string();
    assert!(error.contains("holds 2 files, not one; unpack it"), "{error}");
    let error = read(&write_file("no.zip", b"PK\x03\x04 and no more")).unwrap_err().to_string();
    assert!(error.contains("unpack it and name the file inside"), "{error}");
    let error = detect(Path::new("absent.csv")).unwrap_err().to_string();
    assert!(error.contains("absent.csv") && error.contains("check the path"), "{error}");
    let error = detect(&write_file("empty", b"")).unwrap_err().to_string();
    assert!(error.contains("it is empty") && error.contains("lobster"), "{error}");
}

#[test]
fn an_xz_file_may_not_ask_for_all_memory() {
    // A block header with a dictionary of 4 GiB - 1 (property 40), as any file may claim.
    let (plain, paths) = write_forms("greedy");
    let mut bytes = std::fs::read(&paths[2]).unwrap();
    let header = &mut bytes[12..24];
    assert_eq!(header[2..4], [0x21, 1], "LZMA2 with one byte of properties");
    header[4] = 40;
    let mut crc = flate2::Crc::new();
    crc.update(&header[..8]);
    header[8..12].copy_from_slice(&crc.sum().to_le_bytes());
    std::fs::write(&paths[2], bytes).unwrap();
    let error = read(&paths[2]).unwrap_err().to_string();
    assert!(error.contains("memory"), "{error} ({} bytes)", plain.len());
}
