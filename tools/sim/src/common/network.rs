//! What happens to a message on its way.

use walras_testkit::Choices;

/// How well the network delivers at present.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NetworkQuality {
    pub(crate) loss_permille: u64,
    pub(crate) replay_permille: u64,
    pub(crate) delay_ns_max: u64,
}

impl NetworkQuality {
    pub(crate) const GOOD: Self = Self { loss_permille: 0, replay_permille: 0, delay_ns_max: 300_000 };

    pub(crate) fn bad(c: &mut Choices<'_>) -> Self {
        Self {
            loss_permille: c.pick(&[0, 10, 100, 500]),
            replay_permille: c.pick(&[0, 20, 300]),
            delay_ns_max: c.pick(&[300_000, 5_000_000, 200_000_000]),
        }
    }
}

/// When copies of a message arrive: the original first, then what was recorded and is replayed; none when it is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Passage {
    pub(crate) original_ns: Option<u64>,
    pub(crate) replay_ns: Option<u64>,
}

/// The longest that a recorded message is kept back.
const REPLAY_NS_MAX: u64 = 1_500_000_000;
const DELAY_NS_MIN: u64 = 20_000;

pub(crate) fn pass(quality: &NetworkQuality, now_ns: u64, c: &mut Choices<'_>) -> Passage {
    if c.below(1000) < quality.loss_permille {
        return Passage { original_ns: None, replay_ns: None };
    }
    let original_ns = now_ns + DELAY_NS_MIN + c.below(quality.delay_ns_max);
    let replayed = c.below(1000) < quality.replay_permille;
    Passage { original_ns: Some(original_ns), replay_ns: replayed.then(|| original_ns + 1 + c.below(REPLAY_NS_MAX)) }
}
