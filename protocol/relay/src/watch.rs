//! A relay watches its sibling: it asks it again and again whether it is there, and tells the sender when no answer comes.

use crate::live::Live;

/// How closely.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchSettings {
    /// From one question to the next.
    pub every_ns: u64,
    /// A sibling that answers nothing for so long is silent, where it was asked 4 times at least.
    pub silent_ns: u64,
}

impl Default for WatchSettings {
    /// 5 ms and 25 ms.
    fn default() -> Self {
        Self { every_ns: 5_000_000, silent_ns: 25_000_000 }
    }
}

/// Unanswered questions before a sibling is silent: a relay that was itself suspended asks first.
const QUESTIONS_MIN: u32 = 4;

/// What a watching relay wants to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchEffect {
    /// Ask this relay.
    Ping {
        /// Its number.
        node: u32,
        /// The question.
        question: u64,
    },
    /// Tell the sender that this relay is silent.
    Report {
        /// Its number.
        node: u32,
    },
}

/// See the module's documentation.
#[derive(Debug)]
pub struct Watch {
    me: u32,
    settings: WatchSettings,
    watched: Option<u32>,
    next_ns: u64,
    /// When it last answered, or when watching it began.
    heard_ns: u64,
    unanswered: u32,
    /// The first question to this sibling, and the next one.
    questions: (u64, u64),
}

impl Watch {
    /// One that watches nobody before a view came. `seed` is random, so that no answer of an earlier life counts.
    #[must_use]
    pub fn new(me: u32, settings: WatchSettings, seed: u64) -> Self {
        Self { me, settings, watched: None, next_ns: u64::MAX, heard_ns: 0, unanswered: 0, questions: (seed, seed) }
    }

    /// Who is in has changed.
    pub fn set_view(&mut self, now_ns: u64, live: &Live) {
        let watched = live.watched_by(self.me);
        if watched != self.watched {
            (self.watched, self.unanswered, self.heard_ns) = (watched, 0, now_ns);
            self.questions.0 = self.questions.1;
            self.next_ns = if watched.is_some() { now_ns } else { u64::MAX };
        }
    }

    /// An answer came.
    pub fn on_pong(&mut self, now_ns: u64, question: u64) {
        let (first, next) = self.questions;
        if question.wrapping_sub(first) < next.wrapping_sub(first) {
            (self.heard_ns, self.unanswered) = (now_ns, 0);
        }
    }

    /// What is to be done now.
    pub fn on_timer(&mut self, now_ns: u64, effects: &mut Vec<WatchEffect>) {
        let Some(node) = self.watched.filter(|_| now_ns >= self.next_ns) else { return };
        let is_silent = now_ns.saturating_sub(self.heard_ns) >= self.settings.silent_ns;
        if is_silent && self.unanswered >= QUESTIONS_MIN {
            effects.push(WatchEffect::Report { node });
        }
        effects.push(WatchEffect::Ping { node, question: self.questions.1 });
        self.questions.1 = self.questions.1.wrapping_add(1);
        self.unanswered = self.unanswered.saturating_add(1);
        self.next_ns = now_ns.saturating_add(self.settings.every_ns);
    }

    /// When [`Watch::on_timer`] has something to do.
    #[must_use]
    pub fn wake_ns(&self) -> u64 {
        self.next_ns
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::tree::Tree;

    const MS: u64 = 1_000_000;

    fn step(watch: &mut Watch, now_ns: u64) -> Vec<WatchEffect> {
        let mut effects = Vec::new();
        watch.on_timer(now_ns, &mut effects);
        effects
    }

    #[test]
    fn a_sibling_that_answers_is_not_reported_and_a_silent_one_is() {
        let tree = Tree::new(2, 3, 9).unwrap();
        let mut watch = Watch::new(2, WatchSettings::default(), u64::MAX - 1);
        assert_eq!(step(&mut watch, 0), [], "nobody before a view came");
        watch.set_view(0, &Live::all(&tree));
        for at in 0..20 {
            let [WatchEffect::Ping { node: 0, question }] = step(&mut watch, at * 5 * MS)[..] else { panic!("{watch:?}") };
            assert_eq!(step(&mut watch, at * 5 * MS), [], "it has asked");
            watch.on_pong(at * 5 * MS + 1, question);
        }
        watch.on_pong(1_000 * MS, 77);
        let reports: Vec<u64> = (20..30).filter(|at| step(&mut watch, at * 5 * MS).len() == 2).collect();
        assert_eq!(reports, [25, 26, 27, 28, 29], "after 25 ms, and again until somebody acts");
        watch.set_view(150 * MS, &Live::without(&tree, 1, &BTreeSet::from([0])));
        assert!(matches!(step(&mut watch, 150 * MS)[..], [WatchEffect::Ping { node: 1, .. }]));
        watch.set_view(151 * MS, &Live::without(&tree, 2, &BTreeSet::from([0, 1])));
        assert_eq!((step(&mut watch, 200 * MS), watch.wake_ns()), (vec![], u64::MAX), "nobody is left");
    }

    #[test]
    fn one_that_was_suspended_asks_before_it_reports() {
        let mut watch = Watch::new(0, WatchSettings::default(), 0);
        watch.set_view(0, &Live::all(&Tree::new(2, 3, 9).unwrap()));
        step(&mut watch, 0);
        let said: Vec<usize> = (0..5).map(|at| step(&mut watch, (10_000 + at * 5) * MS).len()).collect();
        assert_eq!(said, [1, 1, 1, 2, 2]);
    }
}
