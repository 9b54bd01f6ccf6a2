//! What proofs have in common: claims, errors, reading bytes.

/// What a proof is asked to show about a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim<'a> {
    /// It is there with this content.
    Is(&'a [u8]),
    /// It is not there.
    Absent,
}

/// Why a proof proves nothing. Take the root from a source that you trust, and ask another venue or replica for the proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProofError {
    /// The bytes are of a version that this code does not know.
    UnknownVersion(u8),
    /// The bytes are no proof of this kind.
    Malformed,
    /// It is a proof about another key, of another claim, or of another state.
    Mismatch,
}

impl std::fmt::Display for ProofError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::UnknownVersion(version) => write!(f, "the proof has version {version}, unknown here: update this program"),
            Self::Malformed => f.write_str("the bytes are no proof: ask for it again, or elsewhere"),
            Self::Mismatch => f.write_str(
                "the proof does not lead from this claim to this root: compare block, key and content, then ask elsewhere",
            ),
        }
    }
}

impl std::error::Error for ProofError {}

/// The first byte of each encoded proof.
pub(crate) const VERSION: u8 = 1;

/// The rest of what is decoded.
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// Begins to read a proof of a kind.
    pub(crate) fn of(bytes: &'a [u8], kind: u8) -> Result<Self, ProofError> {
        let mut reader = Self(bytes);
        match reader.byte()? {
            VERSION => {}
            version => return Err(ProofError::UnknownVersion(version)),
        }
        must(reader.byte()? == kind)?;
        Ok(reader)
    }

    /// What comes next, without taking it.
    pub(crate) fn peek(&self, length: usize) -> Result<&'a [u8], ProofError> {
        self.0.get(..length).ok_or(ProofError::Malformed)
    }

    pub(crate) fn take(&mut self, length: usize) -> Result<&'a [u8], ProofError> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(ProofError::Malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], ProofError> {
        self.take(N).map(|taken| taken.try_into().expect("as many were taken"))
    }

    pub(crate) fn byte(&mut self) -> Result<u8, ProofError> {
        self.array().map(|[byte]| byte)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, ProofError> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, ProofError> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) const fn rest(self) -> &'a [u8] {
        self.0
    }

    pub(crate) fn end(self) -> Result<(), ProofError> {
        self.0.is_empty().then_some(()).ok_or(ProofError::Malformed)
    }
}

/// Fails unless a condition of the format holds.
pub(crate) fn must(holds: bool) -> Result<(), ProofError> {
    holds.then_some(()).ok_or(ProofError::Malformed)
}
