//! Input and output buffers of a connection.

use walras_wire::DecodeError;
use walras_wire::order_entry::{FRAME_HEADER_BYTES, FrameSizes, frame_len_of, split_frame_of};

/// The received part of an incomplete frame.
#[derive(Clone, Debug, Default)]
pub(super) struct Partial(Vec<u8>);

impl Partial {
    /// Returns the next complete frame without its length prefix, and the rest of `bytes`. An incomplete frame is stored until more
    /// bytes arrive. A frame that lies whole in `bytes` is not copied; one that had to be assembled is in `joined`.
    pub(super) fn next_frame<'f, 'a: 'f>(
        &mut self,
        bytes: &'a [u8],
        sizes: FrameSizes,
        joined: &'f mut Vec<u8>,
    ) -> Result<(Option<&'f [u8]>, &'a [u8]), DecodeError> {
        if self.0.is_empty() {
            if let Some((frame, rest)) = split_frame_of(bytes, sizes)? {
                return Ok((Some(frame), rest));
            }
            self.0.extend_from_slice(bytes);
            return Ok((None, &[]));
        }
        let rest = self.fill(FRAME_HEADER_BYTES, bytes);
        let Some(header) = self.0.first_chunk::<FRAME_HEADER_BYTES>() else { return Ok((None, rest)) };
        let whole = FRAME_HEADER_BYTES + frame_len_of(*header, sizes)?;
        let rest = self.fill(whole, rest);
        if self.0.len() < whole {
            return Ok((None, rest));
        }
        joined.clear();
        std::mem::swap(joined, &mut self.0);
        Ok((Some(&joined[FRAME_HEADER_BYTES..]), rest))
    }

    /// Fills the buffer up to `len` bytes; returns the bytes not used.
    fn fill<'a>(&mut self, len: usize, bytes: &'a [u8]) -> &'a [u8] {
        let missing = len.saturating_sub(self.0.len()).min(bytes.len());
        let (taken, rest) = bytes.split_at(missing);
        self.0.extend_from_slice(taken);
        rest
    }

    /// The stored part.
    pub(super) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.0)
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

/// Maximum capacity that an empty output buffer retains.
const OUTPUT_KEPT_BYTES: usize = 64 << 10;

/// Bytes that wait to be written.
#[derive(Clone, Debug, Default)]
pub(super) struct Output {
    bytes: Vec<u8>,
    written: usize,
}

impl Output {
    pub(super) fn unwritten(&self) -> &[u8] {
        &self.bytes[self.written..]
    }

    /// The buffer to which encoders append.
    pub(super) fn end(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Removes `len` bytes that were written. Moving the rest costs amortised constant time per byte.
    pub(super) fn consume(&mut self, len: usize) {
        self.written += len;
        assert!(self.written <= self.bytes.len(), "more was said to be written than there was");
        if self.written == self.bytes.len() {
            self.clear();
        } else if self.written > self.bytes.len() / 2 {
            self.bytes.copy_within(self.written.., 0);
            self.bytes.truncate(self.bytes.len() - self.written);
            self.written = 0;
        }
    }

    pub(super) fn clear(&mut self) {
        if self.bytes.capacity() > OUTPUT_KEPT_BYTES {
            // Frees the memory of a burst; otherwise a thousand connections that each had one would hold it for good.
            self.bytes = Vec::new();
        }
        self.bytes.clear();
        self.written = 0;
    }
}
