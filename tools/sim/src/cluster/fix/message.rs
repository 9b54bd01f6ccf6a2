//! FIX messages as a client reads and writes them: text between separators.

use std::fmt::Write as _;

use crate::common::clock::EPOCH_NS;

/// The version of FIX that a client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cluster) enum Spoken {
    Fix42,
    Fix44,
    Fix50Sp2,
}

impl Spoken {
    /// That of the client in this place: nothing is drawn for it.
    pub(super) fn of_client(number: usize) -> Self {
        [Self::Fix44, Self::Fix42, Self::Fix50Sp2][number % 3]
    }

    /// BeginString(8).
    pub(super) fn begin_string(self) -> &'static str {
        match self {
            Self::Fix42 => "FIX.4.2",
            Self::Fix44 => "FIX.4.4",
            Self::Fix50Sp2 => "FIXT.1.1",
        }
    }

    /// HandlInst(21), which an order needs before 4.4.
    pub(super) fn handling(self) -> &'static str {
        if self == Self::Fix42 { "21=1|" } else { "" }
    }
}

/// A message of the venue.
#[derive(Clone, Debug)]
pub(in crate::cluster) struct Received {
    fields: Vec<(u32, String)>,
}

impl Received {
    /// Of whole bytes; `None` where they are no fields.
    pub(super) fn of(bytes: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?;
        let fields = text.split_terminator('\x01').map(|field| {
            let (tag, value) = field.split_once('=')?;
            Some((tag.parse().ok()?, value.to_owned()))
        });
        Some(Self { fields: fields.collect::<Option<_>>()? })
    }

    pub(in crate::cluster) fn get(&self, tag: u32) -> Option<&str> {
        self.fields.iter().find(|(found, _)| *found == tag).map(|(_, value)| value.as_str())
    }

    /// The same, empty where the field is not there.
    pub(in crate::cluster) fn text(&self, tag: u32) -> &str {
        self.get(tag).unwrap_or_default()
    }

    pub(in crate::cluster) fn number(&self, tag: u32) -> Option<u64> {
        self.get(tag)?.parse().ok()
    }

    /// The entries of the group of NoMDEntries(268), each of which begins with this tag.
    pub(super) fn entries(&self, first: u32) -> Vec<Vec<(u32, String)>> {
        let mut entries: Vec<Vec<(u32, String)>> = Vec::new();
        let group = self.fields.iter().skip_while(|(tag, _)| *tag != 268).skip(1);
        for (tag, value) in group.take_while(|(tag, _)| *tag != 10) {
            if *tag == first {
                entries.push(Vec::new());
            }
            entries.iter_mut().next_back().into_iter().for_each(|entry| entry.push((*tag, value.clone())));
        }
        entries
    }

    /// In which version it is.
    pub(in crate::cluster) fn spoken(&self) -> Option<Spoken> {
        [Spoken::Fix42, Spoken::Fix44, Spoken::Fix50Sp2].into_iter().find(|spoken| self.text(8) == spoken.begin_string())
    }

    pub(super) fn is_possible_duplicate(&self) -> bool {
        self.get(43) == Some("Y")
    }
}

/// Where the first message ends, if it is whole.
pub(super) fn end_of_message(bytes: &[u8]) -> Option<usize> {
    let at = bytes.windows(4).position(|window| window == b"\x0110=")?;
    (bytes.len() >= at + 8).then_some(at + 8)
}

/// A message of FIX 4.4; `|` stands for the separator, in `fields` too.
pub(super) fn written(fields: &str) -> Vec<u8> {
    written_in(Spoken::Fix44.begin_string(), fields)
}

/// The same with another BeginString(8).
pub(super) fn written_in(begin_string: &str, fields: &str) -> Vec<u8> {
    let text = format!("8={begin_string}|9={}|{fields}", fields.len()).replace('|', "\x01");
    let sum = text.bytes().fold(0_u8, u8::wrapping_add);
    format!("{text}10={sum:03}\x01").into_bytes()
}

/// The time of day, as FIX writes it.
pub(super) fn stamp(now_ns: u64) -> String {
    // Simulated time begins on the 14th, and lasts for days at most.
    const FIRST_DAY: u64 = EPOCH_NS / 1_000_000_000 / 86_400;
    let ms = (EPOCH_NS + now_ns) / 1_000_000;
    let (s, ms) = (ms / 1_000, ms % 1_000);
    let mut text = String::new();
    let day = 14 + s / 86_400 - FIRST_DAY;
    let _ = write!(text, "202311{day:02}-{:02}:{:02}:{:02}.{ms:03}", s / 3_600 % 24, s / 60 % 60, s % 60);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let bytes = written("35=0|34=7|52=20231114-22:13:20.000|43=Y|");
        assert_eq!(end_of_message(&bytes), Some(bytes.len()));
        assert_eq!(end_of_message(&bytes[..bytes.len() - 1]), None);
        let message = Received::of(&bytes).unwrap();
        assert_eq!((message.text(35), message.number(34), message.get(58)), ("0", Some(7), None));
        assert!(message.is_possible_duplicate() && message.spoken() == Some(Spoken::Fix44));
        let message = Received::of(&written_in("FIXT.1.1", "35=0|34=7|")).unwrap();
        assert_eq!(message.spoken(), Some(Spoken::Fix50Sp2));
        assert_eq!(stamp(0), "20231114-22:13:20.000");
        assert_eq!(stamp(7_200_000_000_000), "20231115-00:13:20.000");
    }
}
