//! Keys and numbers from the operating system's entropy, and files that only their owner may read.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use walras_gateway::{Algorithm, ClientKey};
use walras_log_store::with_reserve;

use crate::error::AccessError;

/// A new key from the operating system's entropy.
#[must_use]
pub fn generate(algorithm: Algorithm) -> ClientKey {
    let mut entropy = [0; ClientKey::ENTROPY_LEN];
    getrandom::fill(&mut entropy).expect("the operating system gives random bytes");
    ClientKey::generate(algorithm, &entropy)
}

/// Replaces a file that only its owner may read, atomically.
pub fn write_secret(path: &Path, bytes: &[u8]) -> Result<(), AccessError> {
    let fail = |action| move |source| AccessError::Io { action, path: path.to_path_buf(), source };
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::create_dir_all(dir).map_err(fail("create the folder of"))?;
    let temporary = path.with_extension("new");
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let mut file = with_reserve(|| options.open(&temporary)).map_err(fail("create the successor of"))?;
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(fail("write the successor of"))?;
    std::fs::rename(&temporary, path).map_err(fail("replace"))?;
    with_reserve(|| std::fs::File::open(dir)).and_then(|dir| dir.sync_all()).map_err(fail("sync the folder of"))
}

/// Fresh random bytes.
#[must_use]
pub fn random_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
    bytes
}

/// A fresh random number.
#[must_use]
pub fn random_u64() -> u64 {
    u64::from_le_bytes(random_bytes())
}
