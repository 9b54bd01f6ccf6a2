//! The windows against a naive model: a list of all that came.

use std::collections::BTreeMap;

use proptest::prelude::*;
use walras_fair_access::duplicates::{Copy, CopyCounts, DuplicateSettings, Duplicates, OpenError};
use walras_types::{SessionId, SessionSeq};

const WINDOW: u64 = 8;
const SETTINGS: DuplicateSettings = DuplicateSettings { sessions_max: 3, window: WINDOW as usize, digest_key: 5 };

#[derive(Default)]
struct Naive {
    came: BTreeMap<u64, u64>,
    after: u64,
    newest: u64,
}

impl Naive {
    fn judge(&mut self, seq: u64, content: u64) -> Copy {
        if seq > self.newest + WINDOW {
            return Copy::TooFarAhead;
        }
        if seq == 0 || seq + WINDOW <= self.newest {
            return Copy::TooOld;
        }
        if seq <= self.after {
            return Copy::Duplicate;
        }
        self.newest = self.newest.max(seq);
        match self.came.get(&seq) {
            Some(first) if *first == content => Copy::Duplicate,
            Some(_) => Copy::Differs,
            None => {
                self.came.insert(seq, content);
                Copy::First
            }
        }
    }
}

proptest! {
    #[test]
    fn it_is_the_naive_list(after in 0_u64..30, copies in prop::collection::vec((0_u64..2, 0_u64..16, 0_u64..2), 0..300)) {
        let mut duplicates = Duplicates::new(SETTINGS);
        let mut naive = [after, 0].map(|after| Naive { after, newest: after, ..Naive::default() });
        for (session, naive) in naive.iter().enumerate() {
            duplicates.open(SessionId(session as u64), SessionSeq(naive.after)).unwrap();
        }
        for (session, ahead, content) in copies {
            let naive = &mut naive[usize::try_from(session).unwrap()];
            let seq = (naive.newest + ahead).saturating_sub(10);
            let digest = duplicates.digest(&content.to_le_bytes());
            prop_assert_eq!(duplicates.judge(SessionId(session), SessionSeq(seq), digest), naive.judge(seq, content), "{}", seq);
        }
        let sum = |of: fn(&CopyCounts) -> u64| (0..2).map(|session| of(duplicates.counts(SessionId(session)).unwrap())).sum::<u64>();
        prop_assert_eq!(sum(|counts| counts.first), naive.iter().map(|naive| naive.came.len() as u64).sum::<u64>());
        prop_assert_eq!(sum(|counts| counts.first), duplicates.totals().first);
    }

    /// Through any gateways in any order with any losses but the last copy's: each order passes once.
    #[test]
    fn every_order_passes_once(copies in 1_usize..5, order in any::<u64>()) {
        let mut duplicates = Duplicates::new(DuplicateSettings { window: 64, ..SETTINGS });
        duplicates.open(SessionId(1), SessionSeq(0)).unwrap();
        let mut all: Vec<u64> = (1..=60).flat_map(|seq| std::iter::repeat_n(seq, copies)).collect();
        let mut random = order | 1;
        for at in (1..all.len()).rev() {
            random = random.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(17) | 1;
            all.swap(at, usize::try_from(random % (at as u64 + 1)).unwrap());
        }
        let mut passed: Vec<u64> =
            all.into_iter().filter(|seq| duplicates.judge(SessionId(1), SessionSeq(*seq), *seq) == Copy::First).collect();
        passed.sort_unstable();
        prop_assert_eq!(passed, (1..=60).collect::<Vec<u64>>());
        prop_assert_eq!(duplicates.totals().duplicates, 60 * (copies as u64 - 1));
    }
}

#[test]
fn copies_that_differ_are_a_breach_of_their_session_alone() {
    let mut duplicates = Duplicates::new(SETTINGS);
    let (liar, other) = (SessionId(1), SessionId(2));
    duplicates.open(liar, SessionSeq(0)).unwrap();
    duplicates.open(other, SessionSeq(0)).unwrap();
    let [buy, sell] = [duplicates.digest(b"buy 1 at 2"), duplicates.digest(b"sell 1 at 2")];
    assert_eq!(duplicates.judge(liar, SessionSeq(1), buy), Copy::First);
    assert_eq!(duplicates.judge(liar, SessionSeq(1), sell), Copy::Differs);
    assert_eq!(duplicates.judge(liar, SessionSeq(1), buy), Copy::Duplicate, "the first still counts");
    assert_eq!(duplicates.judge(liar, SessionSeq(u64::MAX), buy), Copy::TooFarAhead);
    assert_eq!(duplicates.judge(liar, SessionSeq(2), sell), Copy::First, "a wild number moved nothing");
    assert_eq!(duplicates.judge(other, SessionSeq(1), sell), Copy::First);
    assert_eq!(duplicates.counts(other), Some(&CopyCounts { first: 1, ..CopyCounts::default() }));
    let counts = CopyCounts { first: 2, duplicates: 1, differing: 1, too_old: 0, too_far_ahead: 1 };
    assert_eq!(duplicates.close(liar), Some(counts));
    assert_eq!(duplicates.judge(liar, SessionSeq(3), buy), Copy::UnknownSession);
    assert_eq!((duplicates.unknown_session_count(), duplicates.totals().differing), (1, 1));
}

#[test]
fn sessions_are_bounded() {
    let mut duplicates = Duplicates::new(SETTINGS);
    for session in 0..3 {
        duplicates.open(SessionId(session), SessionSeq(0)).unwrap();
    }
    assert_eq!(duplicates.open(SessionId(2), SessionSeq(0)), Err(OpenError::Open));
    assert_eq!(duplicates.open(SessionId(3), SessionSeq(0)), Err(OpenError::Full));
    duplicates.close(SessionId(0));
    assert_eq!(duplicates.open(SessionId(3), SessionSeq(0)), Ok(()));
}
