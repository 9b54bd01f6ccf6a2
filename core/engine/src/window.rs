//! The answers that a session remembers. A state that is kept shares them until the session's next answer.

use std::ops::Deref;
use std::sync::Arc;

use walras_types::Answer;

/// A list of answers: a session's own, or shared with kept states. Reading and changing it costs one comparison more than a plain list's,
/// and no atomics but for the first change after it was shared.
pub(crate) enum Window {
    Own(Vec<Answer>),
    Shared(Arc<Vec<Answer>>),
}

impl Deref for Window {
    type Target = [Answer];

    #[inline]
    fn deref(&self) -> &[Answer] {
        match self {
            Self::Own(own) => own,
            Self::Shared(shared) => shared,
        }
    }
}

impl Window {
    pub(crate) const fn new() -> Self {
        Self::Own(Vec::new())
    }

    /// The list, to change it: a copy, where a kept state still has it.
    #[inline]
    pub(crate) fn own(&mut self) -> &mut Vec<Answer> {
        if let Self::Shared(_) = self {
            self.take_back();
        }
        match self {
            Self::Own(own) => own,
            Self::Shared(_) => unreachable!("it was taken back"),
        }
    }

    #[cold]
    #[inline(never)]
    fn take_back(&mut self) {
        let own = match std::mem::replace(self, Self::new()) {
            Self::Own(own) => own,
            Self::Shared(shared) => Arc::try_unwrap(shared).unwrap_or_else(|shared| Vec::clone(&shared)),
        };
        *self = Self::Own(own);
    }

    /// A copy that has the list in common with this one until either changes it.
    pub(crate) fn share(&mut self) -> Self {
        let shared = match std::mem::replace(self, Self::new()) {
            Self::Own(own) => Arc::new(own),
            Self::Shared(shared) => shared,
        };
        *self = Self::Shared(Arc::clone(&shared));
        Self::Shared(shared)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use walras_types::{ContentDigest, LogIndex};

    use super::*;

    fn answer(number: u64) -> Answer {
        Answer { log_index: LogIndex(number), rejected: None, content: ContentDigest(number) }
    }

    proptest! {
        /// It is what a plain list is, and copies are what it was when they were made.
        #[test]
        fn copies_stay_as_they_were(steps in prop::collection::vec((0..6_u8, 0..40_usize), 0..120)) {
            let (mut window, mut list): (Window, Vec<Answer>) = (Window::new(), Vec::new());
            let mut copies: Vec<(Window, Vec<Answer>)> = Vec::new();
            for (number, (kind, place)) in (0_u64..).zip(steps) {
                match kind {
                    0 => copies.push((window.share(), list.clone())),
                    1 => copies.truncate(place % 3),
                    2 | 3 => {
                        window.own().push(answer(number));
                        list.push(answer(number));
                    }
                    _ => {
                        let (of_window, of_list) = (window.own().get_mut(place), list.get_mut(place));
                        prop_assert_eq!(of_window.is_some(), of_list.is_some());
                        of_window.into_iter().chain(of_list).for_each(|held| *held = answer(number));
                    }
                }
                prop_assert_eq!(&window[..], &list[..]);
                for (copy, then) in &copies {
                    prop_assert_eq!(&copy[..], &then[..]);
                }
            }
        }
    }

    #[test]
    fn it_is_copied_only_while_a_kept_state_has_it() {
        let mut window = Window::Own(vec![answer(1)]);
        let at = window.as_ptr();
        let kept = window.share();
        assert_eq!((window.as_ptr(), kept.as_ptr()), (at, at), "nothing is copied yet");
        drop(kept);
        window.own()[0] = answer(2);
        assert_eq!(window.as_ptr(), at, "nobody else has it");
        let kept = window.share();
        window.own()[0] = answer(3);
        assert_eq!((kept.as_ptr(), kept[0]), (at, answer(2)));
        assert_ne!(window.as_ptr(), at);
    }
}
