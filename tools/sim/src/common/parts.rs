//! Several states in one snapshot, each with its length before it.

/// Writes a part of a state.
type Writer<'a> = &'a dyn Fn(&mut Vec<u8>);

/// Each part is written by one of these; about so many bytes come of them together.
pub(crate) fn join(bytes_expected: usize, parts: &[Writer<'_>]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(bytes_expected);
    for write in parts {
        let at = bytes.len();
        bytes.extend_from_slice(&[0; 8]);
        write(&mut bytes);
        let length = (bytes.len() - at - 8) as u64;
        bytes[at..at + 8].copy_from_slice(&length.to_le_bytes());
    }
    bytes
}

/// The parts of such bytes.
pub(crate) fn split<const N: usize>(mut bytes: &[u8]) -> Result<[&[u8]; N], String> {
    let mut parts = [bytes; N];
    for part in &mut parts {
        let next = || {
            let (length, rest) = bytes.split_first_chunk::<8>()?;
            rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)
        };
        let (found, rest) = next().ok_or("it is cut short")?;
        (*part, bytes) = (found, rest);
    }
    if bytes.is_empty() { Ok(parts) } else { Err("more follows than belongs to it".to_owned()) }
}
