//! The incarnations of one replica, as a peer sees them by their links: which process is linked, and whether two run.
//!
//! Each process has an incarnation number, higher for later ones (a stamp of its start). A new process supersedes the one before,
//! which has died, or its machine has. If a superseded process reappears, it was not dead. That may happen once by accident, since
//! a connection may be accepted after the process that made it has ended. A process that reappears again and again runs, and so
//! does the other: then the later-started one has to stop.
//!
//! There is one exception. If the superseding process has taken part meanwhile, its probation was over (`probation.rs`) while the
//! former one was unreachable. The former one does not know what was promised under the id since then. So the former one has to
//! stop, whichever started first.

/// Former processes under one id that are remembered.
const FORMER_MAX: usize = 16;

/// Times that a superseded process reappears before one of the two has to stop.
const RETURNS: u32 = 3;

/// What a greeting says about the processes under an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GreetingVerdict {
    /// Only one process is known: it is linked now and supersedes any former one.
    One,
    /// A superseded process greets: it is refused, and will try again if it is still running.
    Two,
    /// It has come back repeatedly, so both processes run. This one started later and has to stop.
    LaterOfTwo,
    /// Both run, and the other one started later: that one has to stop, and this one is linked now.
    FirstOfTwo,
    /// It was superseded by a process that has taken part since: this one has to stop.
    Outlived,
}

/// The processes under one id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Incarnations {
    current: Option<u64>,
    former: Vec<u64>,
    /// How often former ones came back since the current one greeted.
    return_count: u32,
    /// Whether the current one has taken part.
    has_taken_part: bool,
}

impl Incarnations {
    /// A process greets with its incarnation number.
    pub fn on_greeting(&mut self, incarnation: u64) -> GreetingVerdict {
        if self.former.contains(&incarnation) {
            if self.has_taken_part {
                return GreetingVerdict::Outlived;
            }
            self.return_count += 1;
            let is_later = self.current.is_some_and(|current| incarnation > current);
            return match (self.return_count >= RETURNS, is_later) {
                (false, _) => GreetingVerdict::Two,
                (true, true) => GreetingVerdict::LaterOfTwo,
                (true, false) => {
                    self.former.retain(|former| *former != incarnation);
                    self.take_place(incarnation);
                    // If the other one comes back, it is known to be the later one.
                    self.return_count = RETURNS;
                    GreetingVerdict::FirstOfTwo
                }
            };
        }
        if self.current != Some(incarnation) {
            self.take_place(incarnation);
        }
        GreetingVerdict::One
    }

    /// The current process has sent a message of the consensus: its probation is over.
    pub fn on_participation(&mut self) {
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
    use super::GreetingVerdict::{FirstOfTwo, LaterOfTwo, One, Outlived, Two};
    use super::*;

    #[test]
    fn a_process_that_was_replaced_does_not_come_back() {
        let mut incarnations = Incarnations::default();
        assert_eq!([incarnations.on_greeting(1), incarnations.on_greeting(1)], [One; 2], "the same process connects again");
        assert_eq!([incarnations.on_greeting(2), incarnations.on_greeting(1), incarnations.on_greeting(2)], [One, Two, One]);
    }

    #[test]
    fn of_two_that_both_come_again_and_again_the_one_that_started_first_goes_on() {
        let mut incarnations = Incarnations::default();
        assert_eq!([incarnations.on_greeting(1), incarnations.on_greeting(2)], [One; 2]);
        assert_eq!([incarnations.on_greeting(1), incarnations.on_greeting(1), incarnations.on_greeting(1)], [Two, Two, FirstOfTwo]);
        assert_eq!([incarnations.on_greeting(2), incarnations.on_greeting(1)], [LaterOfTwo, One]);
        // Seen in the other order.
        let mut incarnations = Incarnations::default();
        assert_eq!([incarnations.on_greeting(2), incarnations.on_greeting(1)], [One; 2]);
        assert_eq!([incarnations.on_greeting(2), incarnations.on_greeting(2), incarnations.on_greeting(2)], [Two, Two, LaterOfTwo]);
    }

    #[test]
    fn one_whose_place_was_taken_by_one_that_took_part_stops_whichever_started_first() {
        for (former, current) in [(1, 2), (2, 1)] {
            let mut incarnations = Incarnations::default();
            assert_eq!(incarnations.on_greeting(former), One);
            incarnations.on_participation();
            assert_eq!(incarnations.on_greeting(current), One);
            // Until it takes part the other one may come back.
            assert_eq!(incarnations.on_greeting(former), Two);
            incarnations.on_participation();
            assert_eq!(
                [incarnations.on_greeting(former), incarnations.on_greeting(former), incarnations.on_greeting(current)],
                [Outlived, Outlived, One]
            );
            // It was started again, on the folder of the one that went on.
            assert_eq!([incarnations.on_greeting(3), incarnations.on_greeting(3)], [One; 2]);
        }
    }
}
