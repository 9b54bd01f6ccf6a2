//! The bytes of a Parquet page, whatever they are compressed by, and never more of them than a page may have.

use std::io::Read;

use parquet::basic::Compression;
use parquet::errors::{ParquetError, Result};

/// The most bytes that a page may become: writers begin another page at one to sixteen megabytes.
pub(super) const PAGE_LEN_MAX: usize = 64 << 20;
/// More than Snappy ever makes of a byte: its longest copy is of 64 bytes and takes two or more.
const SNAPPY_RATIO_MAX: usize = 64;
/// More than LZ4 ever makes of a byte: each byte of a length counts 255.
const LZ4_RATIO_MAX: usize = 256;
/// The first guess at the length of what LZ4 compressed, which its bytes do not say.
const LZ4_GUESS: usize = 64 << 10;
/// Lengths before and after compression, before each part of a page as Hadoop writes LZ4.
const HADOOP_HEAD_LEN: usize = 8;

/// How the pages of a column are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Codec {
    Plain,
    Snappy,
    Gzip,
    Zstd,
    /// One block.
    Lz4Raw,
    /// Blocks, each with its lengths, as Hadoop writes them.
    Lz4Hadoop,
}

impl Codec {
    pub(super) fn of(compression: Compression) -> Result<Self> {
        Ok(match compression {
            Compression::UNCOMPRESSED => Self::Plain,
            Compression::SNAPPY => Self::Snappy,
            Compression::GZIP(_) => Self::Gzip,
            Compression::ZSTD(_) => Self::Zstd,
            Compression::LZ4_RAW => Self::Lz4Raw,
            Compression::LZ4 => Self::Lz4Hadoop,
            other @ (Compression::LZO | Compression::BROTLI(_)) => {
                // Without the level that the library adds: a file does not have it.
                let name = other.to_string().split('(').next().map(str::to_owned).unwrap_or_default();
                return Err(ParquetError::NYI(format!("compression {name}")));
            }
        })
    }

    /// Appends what these bytes were before compression.
    pub(super) fn decompress(self, bytes: &[u8], into: &mut Vec<u8>) -> Result<()> {
        match self {
            Self::Plain => {
                into.extend_from_slice(bytes);
                Ok(())
            }
            Self::Snappy => snappy(bytes, into),
            Self::Gzip => all_of(flate2::read::MultiGzDecoder::new(bytes), into),
            Self::Zstd => all_of(ruzstd::decoding::StreamingDecoder::new(bytes).map_err(external)?, into),
            Self::Lz4Raw => lz4(bytes, into),
            Self::Lz4Hadoop => lz4_of_hadoop(bytes, into),
        }
    }
}

fn external(error: impl std::error::Error + Send + Sync + 'static) -> ParquetError {
    ParquetError::External(Box::new(error))
}

fn too_long() -> ParquetError {
    ParquetError::General(format!("a page is longer than {PAGE_LEN_MAX} bytes: write pages of a megabyte"))
}

fn damaged(what: &str) -> ParquetError {
    ParquetError::General(what.to_owned())
}

/// Memory is taken as bytes come, not as a file says that they will.
fn all_of(reader: impl Read, into: &mut Vec<u8>) -> Result<()> {
    let most = PAGE_LEN_MAX as u64 + 1;
    let read = reader.take(most).read_to_end(into)?;
    if read > PAGE_LEN_MAX { Err(too_long()) } else { Ok(()) }
}

fn snappy(bytes: &[u8], into: &mut Vec<u8>) -> Result<()> {
    let len = snap::raw::decompress_len(bytes).map_err(external)?;
    if len > bytes.len().saturating_mul(SNAPPY_RATIO_MAX) {
        return Err(damaged("a page claims to be longer than its bytes can make it"));
    }
    let before = into.len();
    into.resize(before + len, 0);
    snap::raw::Decoder::new().decompress(bytes, &mut into[before..]).map_err(external)?;
    Ok(())
}

fn lz4(bytes: &[u8], into: &mut Vec<u8>) -> Result<()> {
    let most = bytes.len().saturating_mul(LZ4_RATIO_MAX).min(PAGE_LEN_MAX);
    let (before, mut room) = (into.len(), LZ4_GUESS.min(most));
    loop {
        into.resize(before + room, 0);
        match lz4_flex::block::decompress_into(bytes, &mut into[before..]) {
            Ok(len) => {
                into.truncate(before + len);
                return Ok(());
            }
            Err(lz4_flex::block::DecompressError::OutputTooSmall { .. }) if room < most => room = (4 * room).min(most),
            Err(error) => return Err(external(error)),
        }
    }
}

fn lz4_of_hadoop(bytes: &[u8], into: &mut Vec<u8>) -> Result<()> {
    let mut rest = bytes;
    while !rest.is_empty() {
        let short = || damaged("a page compressed by LZ4 ends within a block");
        let (head, blocks) = rest.split_at_checked(HADOOP_HEAD_LEN).ok_or_else(short)?;
        let length = |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]) as usize;
        let (block, after) = blocks.split_at_checked(length(4)).ok_or_else(short)?;
        let before = into.len();
        lz4(block, into)?;
        if into.len() - before != length(0) {
            return Err(damaged("a block compressed by LZ4 has another length than the page says"));
        }
        if into.len() > PAGE_LEN_MAX {
            return Err(too_long());
        }
        rest = after;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn plain(codec: Codec, bytes: &[u8]) -> Result<Vec<u8>> {
        let mut into = b"levels".to_vec();
        codec.decompress(bytes, &mut into)?;
        assert!(into.starts_with(b"levels"));
        Ok(into[6..].to_vec())
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn zstd(bytes: &[u8]) -> Vec<u8> {
        ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
    }

    fn hadoop(blocks: &[&[u8]]) -> Vec<u8> {
        let block = |block: &&[u8]| {
            let compressed = lz4_flex::block::compress(block);
            let lengths = [block.len(), compressed.len()].map(|length| (length as u32).to_be_bytes());
            [lengths.concat(), compressed].concat()
        };
        blocks.iter().flat_map(block).collect()
    }

    #[test]
    fn every_codec_gives_back_what_was_written() {
        let long: Vec<u8> = (0..1_000_000_u32).map(|at| (at / 700) as u8).collect();
        for bytes in [&b""[..], b"a", &long] {
            for (codec, compressed) in [
                (Codec::Plain, bytes.to_vec()),
                (Codec::Snappy, snap::raw::Encoder::new().compress_vec(bytes).unwrap()),
                (Codec::Gzip, gzip(bytes)),
                (Codec::Zstd, zstd(bytes)),
                (Codec::Lz4Raw, lz4_flex::block::compress(bytes)),
                (Codec::Lz4Hadoop, hadoop(&[bytes, b"", bytes])),
            ] {
                let expected = if codec == Codec::Lz4Hadoop { [bytes, bytes].concat() } else { bytes.to_vec() };
                assert_eq!(plain(codec, &compressed).unwrap(), expected, "{codec:?} {}", bytes.len());
            }
        }
    }

    #[test]
    fn a_page_that_would_fill_the_memory_is_refused() {
        let zeros = vec![0; PAGE_LEN_MAX + 1];
        for (codec, compressed) in [
            (Codec::Gzip, gzip(&zeros)),
            (Codec::Zstd, zstd(&zeros)),
            (Codec::Lz4Raw, lz4_flex::block::compress(&zeros)),
            (Codec::Lz4Hadoop, hadoop(&[&zeros[..PAGE_LEN_MAX], b"x"])),
        ] {
            assert!(plain(codec, &compressed).is_err(), "{codec:?}");
        }
        assert!(plain(Codec::Snappy, &[0xff, 0xff, 0xff, 0xff, 0x07, 0]).is_err());
    }

    #[test]
    fn damage_is_an_error() {
        for codec in [Codec::Snappy, Codec::Gzip, Codec::Zstd, Codec::Lz4Raw, Codec::Lz4Hadoop] {
            assert!(plain(codec, b"\xff\xff\xff\xffneither of them").is_err(), "{codec:?}");
        }
    }
}
