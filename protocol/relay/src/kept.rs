//! How many bytes of their latest messages all channels keep together. Where they are too many, the channel to which nothing came for
//! longest gives way.

use std::collections::BTreeMap;

/// A channel's part of it, and its neighbours in the order in which channels were used last.
#[derive(Debug)]
struct Part {
    channel: u32,
    bytes: usize,
    older: Option<usize>,
    newer: Option<usize>,
}

/// See the module's documentation. It allocates for a channel that is new, and nothing after that.
#[derive(Debug)]
pub struct KeptTotal {
    bytes: usize,
    bytes_max: usize,
    /// By channel, where its part is.
    places: BTreeMap<u32, usize>,
    /// Those that keep nothing are no one's neighbours.
    parts: Vec<Part>,
    oldest: Option<usize>,
    newest: Option<usize>,
}

impl KeptTotal {
    /// Nothing is kept yet.
    #[must_use]
    pub const fn new(bytes_max: usize) -> Self {
        Self { bytes: 0, bytes_max, places: BTreeMap::new(), parts: Vec::new(), oldest: None, newest: None }
    }

    /// Something came to a channel, which keeps so many bytes now. Then ask for [`KeptTotal::gives_way`] until there is none.
    pub fn keeps(&mut self, channel: u32, bytes: usize) {
        let next = self.parts.len();
        let at = *self.places.entry(channel).or_insert(next);
        if at == next {
            self.parts.push(Part { channel, bytes: 0, older: None, newer: None });
        }
        let before = std::mem::replace(&mut self.parts[at].bytes, bytes);
        self.bytes = self.bytes - before + bytes;
        if before > 0 {
            self.leave(at);
        }
        if bytes > 0 {
            self.follow(at);
        }
    }

    /// The channel that is to forget what it keeps, if all keep too much. It counts as keeping nothing from now on.
    pub fn gives_way(&mut self) -> Option<u32> {
        let oldest = self.oldest.filter(|_| self.bytes > self.bytes_max)?;
        let channel = self.parts[oldest].channel;
        self.keeps(channel, 0);
        Some(channel)
    }

    /// A part is no one's neighbour any more.
    fn leave(&mut self, at: usize) {
        let Part { older, newer, .. } = self.parts[at];
        match older {
            Some(older) => self.parts[older].newer = newer,
            None => self.oldest = newer,
        }
        match newer {
            Some(newer) => self.parts[newer].older = older,
            None => self.newest = older,
        }
    }

    /// It was used last.
    fn follow(&mut self, at: usize) {
        let older = self.newest.replace(at);
        (self.parts[at].older, self.parts[at].newer) = (older, None);
        match older {
            Some(older) => self.parts[older].newer = Some(at),
            None => self.oldest = Some(at),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_channel_to_which_nothing_came_for_longest_gives_way() {
        let mut kept = KeptTotal::new(10);
        (1..=3).for_each(|channel| kept.keeps(channel, 3));
        kept.keeps(1, 4);
        assert_eq!(kept.gives_way(), None, "all have room");
        kept.keeps(4, 3);
        assert_eq!([kept.gives_way(), kept.gives_way()], [Some(2), None]);
        kept.keeps(2, 5);
        assert_eq!([kept.gives_way(), kept.gives_way(), kept.gives_way()], [Some(3), Some(1), None]);
        // One that has too much alone gives way as well.
        kept.keeps(5, 11);
        assert_eq!([(); 4].map(|()| kept.gives_way()), [Some(4), Some(2), Some(5), None]);
        assert_eq!((kept.bytes, kept.oldest, kept.newest), (0, None, None));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Next to a list of channels, those used last at its end.
        #[test]
        fn it_is_as_a_list_says(bytes_max in 0_usize..60, steps in prop::collection::vec((0_u32..8, 0_usize..20), 1..200)) {
            let (mut kept, mut list) = (KeptTotal::new(bytes_max), Vec::<(u32, usize)>::new());
            for (channel, bytes) in steps {
                kept.keeps(channel, bytes);
                list.retain(|(of, _)| *of != channel);
                list.extend((bytes > 0).then_some((channel, bytes)));
                while list.iter().map(|(_, bytes)| bytes).sum::<usize>() > bytes_max {
                    prop_assert_eq!(kept.gives_way(), Some(list.remove(0).0));
                }
                prop_assert_eq!(kept.gives_way(), None);
                prop_assert_eq!(kept.bytes, list.iter().map(|(_, bytes)| bytes).sum::<usize>());
            }
        }
    }
}
