//! Files: opened, decompressed as they are read, and recognised by what they begin with.

use std::fs::File;
use std::io::{BufRead, BufReader, Error, ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;

use flate2::bufread::{DeflateDecoder, MultiGzDecoder};
use lzma_rust2::XzReader;

use crate::error::{HistoryError, Position, show};
use crate::format::Format;
use crate::{bitstamp, itch, lobster, sse, workload_file};

/// A stream of a file's bytes after decompression.
pub type ByteSource = Box<dyn BufRead + Send>;

/// Memory that decompressing an xz file may take; level 9 needs 65 MiB.
pub const XZ_MEMORY_KIB_MAX: u32 = 256 * 1024;

const BUFFER_BYTES: usize = 256 * 1024;
/// How much of a file is looked at to recognise it.
const SNIFF_BYTES: usize = 8 * 1024;

/// Recognises a file by its first bytes, decompressed. Its name does not matter: these formats' files carry any.
pub fn detect(path: &Path) -> Result<Format, HistoryError> {
    let mut head = Vec::with_capacity(SNIFF_BYTES);
    let at = Position::Byte(0);
    open_bytes(path)?.take(SNIFF_BYTES as u64).read_to_end(&mut head).map_err(|source| HistoryError::Read { at, source })?;
    detect_bytes(&head).ok_or_else(|| HistoryError::UnknownFormat {
        path: path.to_owned(),
        reason: match first_line(&head) {
            [] => "it is empty".to_owned(),
            line if lobster::is_row(line) => lobster::instead(),
            _ => format!("it begins with {}", show(&head)),
        },
    })
}

fn first_line(head: &[u8]) -> &[u8] {
    head.split(|&byte| byte == b'\n').next().unwrap_or_default().trim_ascii_end()
}

/// Recognises the beginning of a file: some thousand bytes, after decompression.
#[must_use]
pub fn detect_bytes(head: &[u8]) -> Option<Format> {
    let line = first_line(head);
    if line.starts_with(sse::LINE_START) {
        return Some(Format::Sse);
    }
    if line == bitstamp::ORDERS_HEADER {
        return Some(Format::BitstampOrders);
    }
    if bitstamp::split_log_line(line).is_some_and(|(_, _, json)| json.starts_with(b"{")) {
        return Some(Format::BitstampLog);
    }
    if lobster::parse_message(line).is_ok() {
        return Some(Format::Lobster);
    }
    // The binary formats: every whole message at hand must be one.
    if is_itch(head) {
        return Some(Format::Itch);
    }
    if is_workload(head) {
        return Some(Format::Workload);
    }
    None
}

fn is_itch(head: &[u8]) -> bool {
    let mut rest = head;
    let mut known = 0;
    while let Some((prefix, tail)) = rest.split_first_chunk::<2>() {
        let length = u16::from_be_bytes(*prefix);
        let Some(&message_type) = tail.first() else { break };
        if itch::message_length(message_type) != Some(length) {
            return false;
        }
        known += 1;
        rest = tail.get(usize::from(length)..).unwrap_or_default();
    }
    known > 0
}

fn is_workload(head: &[u8]) -> bool {
    let (records, _) = head.as_chunks::<{ workload_file::RECORD_BYTES }>();
    !records.is_empty() && records.iter().all(|record| workload_file::WorkloadCommand::decode(record).is_ok())
}

/// Opens a file for reading, through the decompressor that its first bytes call for: xz, gzip, or zip with a single file.
pub fn open_bytes(path: &Path) -> Result<ByteSource, HistoryError> {
    let file = File::open(path).map_err(|source| HistoryError::Open { path: path.to_owned(), source })?;
    decompressed(path, BufReader::with_capacity(BUFFER_BYTES, file))
}

/// The same for bytes that lie elsewhere than in a file; `path` is for the errors.
pub fn decompressed(path: &Path, mut file: impl BufRead + Seek + Send + 'static) -> Result<ByteSource, HistoryError> {
    let opening = |source| HistoryError::Open { path: path.to_owned(), source };
    let mut magic = Vec::with_capacity(6);
    (&mut file).take(6).read_to_end(&mut magic).map_err(opening)?;
    file.seek(SeekFrom::Start(0)).map_err(opening)?;
    Ok(match &magic[..] {
        [0xfd, b'7', b'z', b'X', b'Z', 0] => buffered(XzReader::new_mem_limit(file, true, XZ_MEMORY_KIB_MAX)),
        [0x1f, 0x8b, ..] => buffered(MultiGzDecoder::new(file)),
        [b'P', b'K', 3, 4, ..] => open_zip(path, file)?,
        _ => Box::new(file),
    })
}

fn buffered(source: impl Read + Send + 'static) -> ByteSource {
    Box::new(BufReader::with_capacity(BUFFER_BYTES, source))
}

/// The `zip` crate reads the directory and `flate2` the data: the crate's own reader of an entry borrows the archive, so it could not
/// outlive this function.
fn open_zip(path: &Path, file: impl BufRead + Seek + Send + 'static) -> Result<ByteSource, HistoryError> {
    let refuse = |reason: String| HistoryError::Archive { path: path.to_owned(), reason };
    let mut archive = zip::ZipArchive::new(file).map_err(|error| refuse(error.to_string()))?;
    if archive.len() != 1 {
        return Err(refuse(format!("holds {} files, not one", archive.len())));
    }
    let entry = archive.by_index_raw(0).map_err(|error| refuse(error.to_string()))?;
    if entry.encrypted() {
        return Err(refuse("its file is encrypted".to_owned()));
    }
    let (method, packed_bytes, crc, bytes) = (entry.compression(), entry.compressed_size(), entry.crc32(), entry.size());
    let start = entry.data_start().ok_or_else(|| refuse("does not say where its file begins".to_owned()))?;
    drop(entry);
    let mut file = archive.into_inner();
    file.seek(SeekFrom::Start(start)).map_err(|source| HistoryError::Open { path: path.to_owned(), source })?;
    let packed = file.take(packed_bytes);
    match method {
        zip::CompressionMethod::Stored => Ok(buffered(Checked::new(packed, crc, bytes))),
        zip::CompressionMethod::Deflated => Ok(buffered(Checked::new(DeflateDecoder::new(packed), crc, bytes))),
        other => Err(refuse(format!("is compressed by the method {other}, and only deflate is known here"))),
    }
}

/// Holds what is read against the length and checksum that an archive states.
struct Checked<R> {
    source: R,
    crc: flate2::Crc,
    stated_crc: u32,
    stated_bytes: u64,
    read_bytes: u64,
}

impl<R> Checked<R> {
    fn new(source: R, stated_crc: u32, stated_bytes: u64) -> Self {
        Self { source, crc: flate2::Crc::new(), stated_crc, stated_bytes, read_bytes: 0 }
    }
}

impl<R: Read> Read for Checked<R> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let count = self.source.read(into)?;
        self.crc.update(&into[..count]);
        self.read_bytes += count as u64;
        if count == 0 && !into.is_empty() && (self.crc.sum(), self.read_bytes) != (self.stated_crc, self.stated_bytes) {
            return Err(Error::new(ErrorKind::InvalidData, "the file's length or checksum is not the one that the archive states"));
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_have_names_and_an_error_lists_them() {
        for format in Format::ALL {
            assert_eq!(Format::from_name(format.name()), Some(format));
        }
        let error = detect(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))).unwrap_err().to_string();
        for format in Format::ALL {
            assert!(error.contains(format.name()), "{error}");
        }
        assert!(error.contains("Cargo.toml: not a known format (it begins with '[package]"), "{error}");
    }

    #[test]
    fn beginnings_are_told_apart() {
        assert_eq!(detect_bytes(b"34200.1,1,5,10,5853300,-1\n34200.2,"), Some(Format::Lobster));
        assert_eq!(detect_bytes(b"//SecurityIDSource=101 MsgType=111 "), Some(Format::Sse));
        assert_eq!(detect_bytes(b"1430438404518 trade {\"price\""), Some(Format::BitstampLog));
        assert_eq!(detect_bytes(&[bitstamp::ORDERS_HEADER, b"\r\n"].concat()), Some(Format::BitstampOrders));
        assert_eq!(detect_bytes(&[0, 12, b'S', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, b'O', 0, 39, b'R']), Some(Format::Itch));
        assert_eq!(detect_bytes(&[0, 12, b'S', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, b'O', 0, 38, b'R']), None);
        let cancel = workload_file::WorkloadCommand { user: 1, order_id: 9, op: workload_file::WorkloadOp::Cancel };
        assert_eq!(detect_bytes(&cancel.encode()), Some(Format::Workload));
        assert_eq!(detect_bytes(b""), None);
        assert_eq!(detect_bytes(b"time,price\n"), None);
    }
}
