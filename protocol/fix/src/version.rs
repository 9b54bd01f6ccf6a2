//! Versions of the protocol: what a message begins with, and the version of the application messages in it.

/// A version of FIX, of the session and of the messages in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// FIX 4.0.
    Fix40,
    /// FIX 4.1.
    Fix41,
    /// FIX 4.2.
    Fix42,
    /// FIX 4.3.
    Fix43,
    /// FIX 4.4.
    Fix44,
    /// FIX 5.0 over FIXT 1.1.
    Fix50,
    /// FIX 5.0 SP1 over FIXT 1.1.
    Fix50Sp1,
    /// FIX 5.0 SP2 over FIXT 1.1.
    Fix50Sp2,
}

impl Version {
    /// All of them, the oldest first.
    pub const ALL: [Self; 8] =
        [Self::Fix40, Self::Fix41, Self::Fix42, Self::Fix43, Self::Fix44, Self::Fix50, Self::Fix50Sp1, Self::Fix50Sp2];

    /// What a message begins with: BeginString(8).
    #[must_use]
    pub const fn begin_string(self) -> &'static str {
        match self {
            Self::Fix40 => "FIX.4.0",
            Self::Fix41 => "FIX.4.1",
            Self::Fix42 => "FIX.4.2",
            Self::Fix43 => "FIX.4.3",
            Self::Fix44 => "FIX.4.4",
            Self::Fix50 | Self::Fix50Sp1 | Self::Fix50Sp2 => "FIXT.1.1",
        }
    }

    /// Whether the session is one of FIXT 1.1, in which messages of several versions may come.
    #[must_use]
    pub const fn is_fixt(self) -> bool {
        matches!(self, Self::Fix50 | Self::Fix50Sp1 | Self::Fix50Sp2)
    }

    /// The version of a session, by BeginString(8) and, for FIXT 1.1, DefaultApplVerID(1137) of its logon. `None` where it is
    /// not known or not spoken.
    #[must_use]
    pub fn of_session(begin_string: &[u8], default_appl_ver_id: Option<&[u8]>) -> Option<Self> {
        match begin_string {
            b"FIXT.1.1" => Self::of_appl_ver_id(default_appl_ver_id?).filter(|version| version.is_fixt()),
            other => Self::ALL.into_iter().find(|version| version.begin_string().as_bytes() == other),
        }
    }

    /// The version of an application message, by ApplVerID(1128).
    #[must_use]
    pub fn of_appl_ver_id(value: &[u8]) -> Option<Self> {
        let [digit @ b'2'..=b'9'] = value else { return None };
        Self::ALL.get(usize::from(digit - b'2')).copied()
    }

    /// The time format of this version: whole seconds, or milliseconds.
    pub(crate) const fn has_milliseconds(self) -> bool {
        !matches!(self, Self::Fix40 | Self::Fix41)
    }

    /// Whether a reject names the type and the tag that it is about in fields of their own.
    pub(crate) const fn rejects_with_fields(self) -> bool {
        !matches!(self, Self::Fix40 | Self::Fix41)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_has_the_version_that_its_logon_names() {
        for (begin_string, appl_ver_id, expected) in [
            ("FIX.4.0", None, Some(Version::Fix40)),
            ("FIX.4.4", None, Some(Version::Fix44)),
            ("FIX.4.4", Some("9"), Some(Version::Fix44)),
            ("FIXT.1.1", Some("7"), Some(Version::Fix50)),
            ("FIXT.1.1", Some("9"), Some(Version::Fix50Sp2)),
            ("FIXT.1.1", Some("6"), None),
            ("FIXT.1.1", Some("10"), None),
            ("FIXT.1.1", None, None),
            ("FIX.3.9", None, None),
        ] {
            let version = Version::of_session(begin_string.as_bytes(), appl_ver_id.map(str::as_bytes));
            assert_eq!(version, expected, "{begin_string} {appl_ver_id:?}");
        }
        assert_eq!(Version::of_appl_ver_id(b"2"), Some(Version::Fix40));
        assert_eq!(Version::of_appl_ver_id(b"6"), Some(Version::Fix44));
    }
}
