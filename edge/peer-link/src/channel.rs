//! The byte stream of a connection, with or without TLS.

use std::io::{self, BufRead, IoSlice, Read, Write};

use rustls_pki_types::CertificateDer;

use crate::frame::{Decoder, Outgoing};

/// The layer between frames and socket.
pub(crate) enum Channel {
    /// Output is copied here first; only for tests.
    Plain {
        out: Vec<u8>,
        at: usize,
    },
    Tls(Box<rustls::Connection>),
}

impl Channel {
    pub(crate) fn plain() -> Self {
        Self::Plain { out: Vec::new(), at: 0 }
    }

    /// Whether output waits for the socket.
    pub(crate) fn wants_write(&self) -> bool {
        match self {
            Self::Plain { out, .. } => !out.is_empty(),
            Self::Tls(tls) => tls.wants_write(),
        }
    }

    /// Queues frames, in as few TLS records as possible. TLS buffers them until its handshake is complete.
    pub(crate) fn put(&mut self, frames: &[Outgoing]) -> io::Result<()> {
        match self {
            Self::Plain { out, .. } => {
                for Outgoing { header, payload } in frames {
                    out.extend_from_slice(header);
                    out.extend_from_slice(payload);
                }
                Ok(())
            }
            Self::Tls(tls) => {
                let slices: Vec<IoSlice<'_>> = frames
                    .iter()
                    .flat_map(|frame| [&frame.header[..], &frame.payload])
                    .filter(|part| !part.is_empty())
                    .map(IoSlice::new)
                    .collect();
                let bytes: usize = frames.iter().map(Outgoing::len).sum();
                let taken = tls.writer().write_vectored(&slices)?;
                assert_eq!(taken, bytes, "no limit is set on what the connection buffers, so it takes all or fails");
                Ok(())
            }
        }
    }

    /// One write to the socket.
    pub(crate) fn write_to(&mut self, socket: &mut impl Write) -> io::Result<()> {
        match self {
            Self::Plain { out, at } => {
                match socket.write(&out[*at..])? {
                    0 => return Err(io::ErrorKind::WriteZero.into()),
                    written => *at += written,
                }
                if *at == out.len() {
                    out.clear();
                    *at = 0;
                }
                Ok(())
            }
            Self::Tls(tls) => match tls.write_tls(socket)? {
                0 => Err(io::ErrorKind::WriteZero.into()),
                _ => Ok(()),
            },
        }
    }

    /// Takes bytes from the socket and passes their content to the decoder.
    pub(crate) fn take(&mut self, mut bytes: &[u8], decoder: &mut Decoder) -> Result<(), rustls::Error> {
        match self {
            Self::Plain { .. } => decoder.push(bytes),
            Self::Tls(tls) => {
                while !bytes.is_empty() {
                    if matches!(tls.read_tls(&mut Read::by_ref(&mut bytes)), Ok(0) | Err(_)) {
                        // Bytes after the end that the other side declared. (The buffer cannot be full, because it is drained
                        // below.)
                        return Ok(());
                    }
                    let state = tls.process_new_packets()?;
                    let mut left = state.plaintext_bytes_to_read();
                    let mut reader = tls.reader();
                    while left > 0 {
                        let Ok(chunk) = reader.fill_buf() else { break };
                        let len = chunk.len();
                        decoder.push(chunk);
                        reader.consume(len);
                        left -= len;
                    }
                }
            }
        }
        Ok(())
    }

    /// The peer's certificate, once verified.
    pub(crate) fn certificate(&self) -> Option<&CertificateDer<'static>> {
        match self {
            Self::Plain { .. } => None,
            Self::Tls(tls) => tls.peer_certificates()?.first(),
        }
    }

    /// Sends the end of the stream.
    pub(crate) fn close(&mut self) {
        if let Self::Tls(tls) = self {
            tls.send_close_notify();
        }
    }
}
