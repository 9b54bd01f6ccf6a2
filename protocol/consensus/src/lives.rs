//! The processes under one id, as a peer meets them by their links: which one is there, and whether there are two.
//!
//! Each process has an incarnation, a number of its own, later ones higher ones (a stamp of its start). A new one takes the place of the one before: it died, or its machine did. One
//! whose place was taken and that comes back was not dead. That may happen once by accident, since a connection that a process made may be met after its end; one
//! that comes again and again runs, and so does the other: then the one that started later has to stop.
//!
//! Unless the one that took the place has taken part meanwhile: it was there for longer than a newcomer sits out (`newcomer.rs`), while the former one could not be reached. What it
//! promised since then under the id the former one does not know. So that one has to stop, whichever started first.

/// Former processes under one id that are remembered.
const FORMER_MAX: usize = 16;

/// A former process comes back so often before one of the two is told to stop.
const RETURNS: u32 = 3;

/// What a greeting says about the processes under an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// There is one, as far as it is known: it is linked now, whoever was before.
    One,
    /// One that another one took the place of is there too: it is refused, and will try again if it runs.
    Two,
    /// It comes again and again, so both run: this one started later, and has to stop.
    LaterOfTwo,
    /// The same, and the other one started later: that one has to stop, and this one is linked now.
    FirstOfTwo,
    /// Another one took its place and has taken part since: this one has to stop.
    Outlived,
}

/// The processes under one id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lives {
    current: Option<u64>,
    former: Vec<u64>,
    /// How often former ones came back since the current one greeted.
    return_count: u32,
    /// Whether the current one has taken part.
    has_taken_part: bool,
}

impl Lives {
    /// A process greets.
    pub fn greets(&mut self, incarnation: u64) -> Life {
        if self.former.contains(&incarnation) {
            if self.has_taken_part {
                return Life::Outlived;
            }
            self.return_count += 1;
            let is_later = self.current.is_some_and(|current| incarnation > current);
            return match (self.return_count >= RETURNS, is_later) {
                (false, _) => Life::Two,
                (true, true) => Life::LaterOfTwo,
                (true, false) => {
                    self.former.retain(|former| *former != incarnation);
                    self.take_place(incarnation);
                    // If that one comes again it is the later one, and proven.
                    self.return_count = RETURNS;
                    Life::FirstOfTwo
                }
            };
        }
        if self.current != Some(incarnation) {
            self.take_place(incarnation);
        }
        Life::One
    }

    /// The current one says something that counts for the consensus: it is no newcomer here any more.
    pub fn takes_part(&mut self) {
        self.has_taken_part = true;
    }

    fn take_place(&mut self, incarnation: u64) {
        if let Some(former) = self.current.replace(incarnation) {
            if self.former.len() == FORMER_MAX {
                self.former.remove(0);
            }
            self.former.push(former);
        }
        self.return_count = 0;
        self.has_taken_part = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_was_replaced_does_not_come_back() {
        let mut lives = Lives::default();
        assert_eq!([lives.greets(1), lives.greets(1)], [Life::One; 2], "the same process connects again");
        assert_eq!([lives.greets(2), lives.greets(1), lives.greets(2)], [Life::One, Life::Two, Life::One]);
    }

    #[test]
    fn of_two_that_both_come_again_and_again_the_one_that_started_first_goes_on() {
        let mut lives = Lives::default();
        assert_eq!([lives.greets(1), lives.greets(2)], [Life::One; 2]);
        assert_eq!([lives.greets(1), lives.greets(1), lives.greets(1)], [Life::Two, Life::Two, Life::FirstOfTwo]);
        assert_eq!([lives.greets(2), lives.greets(1)], [Life::LaterOfTwo, Life::One]);
        // Seen in the other order.
        let mut lives = Lives::default();
        assert_eq!([lives.greets(2), lives.greets(1)], [Life::One; 2]);
        assert_eq!([lives.greets(2), lives.greets(2), lives.greets(2)], [Life::Two, Life::Two, Life::LaterOfTwo]);
    }

    #[test]
    fn one_whose_place_was_taken_by_one_that_took_part_stops_whichever_started_first() {
        for (former, current) in [(1, 2), (2, 1)] {
            let mut lives = Lives::default();
            assert_eq!(lives.greets(former), Life::One);
            lives.takes_part();
            assert_eq!(lives.greets(current), Life::One);
            // Until it takes part the other one may come back.
            assert_eq!(lives.greets(former), Life::Two);
            lives.takes_part();
            assert_eq!(
                [lives.greets(former), lives.greets(former), lives.greets(current)],
                [Life::Outlived, Life::Outlived, Life::One]
            );
            // It was started again, on the folder of the one that went on.
            assert_eq!([lives.greets(3), lives.greets(3)], [Life::One; 2]);
        }
    }
}
