//! What a round of the thread that applies commands takes from its queue of requests.

use crossbeam_channel::{Receiver, TryRecvError};

use crate::request::Request;

/// Visits in a round of the thread that applies commands.
pub const VISITS_PER_ROUND: usize = 4;

/// The requests that a round takes: what looks at the state is counted, and the rest waits for the next round.
#[derive(Debug)]
pub struct RoundOfVisits {
    left: usize,
}

impl Default for RoundOfVisits {
    fn default() -> Self {
        Self { left: VISITS_PER_ROUND }
    }
}

impl RoundOfVisits {
    /// The next request. `None` where there is none, and once this round had its visits: then the requests that wait keep their order.
    pub fn take(&mut self, requests: &Receiver<Request>) -> Option<Request> {
        if self.left == 0 {
            return None;
        }
        let request = match requests.try_recv() {
            Ok(request) => request,
            Err(TryRecvError::Empty) => return None,
            // Nobody has a handle any more.
            Err(TryRecvError::Disconnected) => Request::Stop,
        };
        match &request {
            Request::Read(_) | Request::Subscribe { .. } | Request::GoOn { .. } => self.left -= 1,
            Request::Connect { .. }
            | Request::Unsubscribe { .. }
            | Request::Disconnect { .. }
            | Request::CancelBehind { .. }
            | Request::Snapshot(_)
            | Request::Barrier(_)
            | Request::Cluster(..)
            | Request::Stop => {}
        }
        Some(request)
    }
}

#[cfg(test)]
mod tests {
    use crossbeam_channel::bounded;

    use super::*;

    #[test]
    fn a_round_takes_its_visits_and_leaves_the_rest_in_order() {
        let (requests_in, requests) = bounded(1_000);
        let read = || Request::Read(Box::new(|_| ()));
        for _ in 0..10 {
            requests_in.send(read()).unwrap();
        }
        // What costs nothing comes with the others, and not before them.
        requests_in.send(Request::Snapshot(tokio::sync::oneshot::channel().0)).unwrap();
        requests_in.send(read()).unwrap();
        requests_in.send(Request::Stop).unwrap();
        let mut rounds = Vec::new();
        while !requests.is_empty() {
            let (mut round, mut taken) = (RoundOfVisits::default(), String::new());
            while let Some(request) = round.take(&requests) {
                taken.push(match request {
                    Request::Read(_) => 'r',
                    Request::Snapshot(_) => 's',
                    _ => '.',
                });
            }
            rounds.push(taken);
        }
        assert_eq!(rounds, ["rrrr", "rrrr", "rrsr."]);
        assert!(RoundOfVisits::default().take(&requests).is_none(), "there is nothing");
        drop(requests_in);
        assert!(matches!(RoundOfVisits::default().take(&requests), Some(Request::Stop)), "nobody is there");
    }
}
