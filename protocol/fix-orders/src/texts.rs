//! Texts that lead to an order otherwise than by its number: those that replaces gave it, or asked for.
//!
//! They are kept with the order and bounded: the one that it has now, and the last [`ASKED_MAX`] that were asked for. An older one leads to
//! nothing. Each call takes O([`ASKED_MAX`]) steps and as many look-ups, however many texts there are.

use std::collections::{BTreeMap, VecDeque};

use walras_types::ClientOrderId;

/// Texts of an order that were asked for last. A client may send more replaces before the first one is answered, each naming the text of
/// the one before.
pub(crate) const ASKED_MAX: usize = 32;

/// Where there are more texts than this, of each order only the last one that was asked for is kept, and the one that it has now.
const TEXTS_MAX: usize = 65_536;

/// The texts of all orders.
#[derive(Clone, Debug, Default)]
pub(crate) struct Texts {
    /// Each text leads to the order that had it last.
    by_text: BTreeMap<Box<str>, ClientOrderId>,
    of_orders: BTreeMap<ClientOrderId, OfOrder>,
}

/// The texts of an order, without the one of its number.
#[derive(Clone, Debug, Default)]
struct OfOrder {
    /// The one that it has, if that is not the one of its number.
    now: Option<Box<str>>,
    /// Those that were asked for, the latest last, each once.
    asked: VecDeque<Box<str>>,
}

impl OfOrder {
    fn has(&self, text: &str) -> bool {
        self.now.as_deref() == Some(text) || self.asked.iter().any(|asked| **asked == *text)
    }
}

impl Texts {
    /// The order to which a text leads.
    pub(crate) fn get(&self, text: &str) -> Option<ClientOrderId> {
        self.by_text.get(text).copied()
    }

    /// Orders that have such texts.
    pub(crate) fn orders(&self) -> usize {
        self.of_orders.len()
    }

    /// All texts.
    pub(crate) fn len(&self) -> usize {
        self.by_text.len()
    }

    /// A replace asks for this text. It leads to the order at once: a client may name it before the answer.
    pub(crate) fn ask(&mut self, text: &str, id: ClientOrderId) {
        let asked_max = if self.by_text.len() < TEXTS_MAX { ASKED_MAX } else { 1 };
        let of = self.of_orders.entry(id).or_default();
        of.asked.retain(|asked| **asked != *text);
        of.asked.push_back(text.into());
        let mut gone = Vec::new();
        while of.asked.len() > asked_max {
            gone.extend(of.asked.pop_front());
        }
        self.by_text.insert(text.into(), id);
        for text in gone {
            self.unlink(&text, id);
        }
    }

    /// The replace was carried out: the order has this text.
    pub(crate) fn take(&mut self, text: &str, id: ClientOrderId) {
        let before = self.of_orders.entry(id).or_default().now.replace(text.into());
        self.by_text.insert(text.into(), id);
        if let Some(before) = before {
            self.unlink(&before, id);
        }
    }

    /// The replace was not carried out.
    pub(crate) fn refuse(&mut self, text: &str, id: ClientOrderId) {
        let Some(of) = self.of_orders.get_mut(&id) else { return };
        of.asked.retain(|asked| **asked != *text);
        let is_empty = of.asked.is_empty() && of.now.is_none();
        self.unlink(text, id);
        if is_empty {
            self.of_orders.remove(&id);
        }
    }

    /// Another order has this text from now on, by its number.
    pub(crate) fn release(&mut self, text: &str) {
        self.by_text.remove(text);
    }

    /// The order is not known any more.
    pub(crate) fn forget(&mut self, id: ClientOrderId) {
        let Some(OfOrder { now, asked }) = self.of_orders.remove(&id) else { return };
        for text in asked.into_iter().chain(now) {
            self.unlink(&text, id);
        }
    }

    /// Keeps of each order only the text that was asked for last, and the one that it has now.
    pub(crate) fn thin(&mut self) {
        let Self { by_text, of_orders } = self;
        for of in of_orders.values_mut() {
            of.asked.drain(..of.asked.len().saturating_sub(1));
        }
        by_text.retain(|text, id| of_orders.get(&*id).is_some_and(|of| of.has(text)));
    }

    /// A text leads to an order no more, unless the order has it all the same. Another order may have it by now.
    fn unlink(&mut self, text: &str, id: ClientOrderId) {
        let is_kept = self.of_orders.get(&id).is_some_and(|of| of.has(text));
        if !is_kept && self.by_text.get(text) == Some(&id) {
            self.by_text.remove(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use walras_random::Random;

    use super::*;

    const QUOTE: ClientOrderId = ClientOrderId(7);

    /// A standing quote of a session that replaces it 1,000 times a second, for half a minute.
    #[test]
    fn an_order_that_is_replaced_again_and_again_has_few_texts() {
        let mut texts = Texts::default();
        for number in 0..36_000_u64 {
            let text = format!("q{number}");
            texts.ask(&text, QUOTE);
            texts.take(&text, QUOTE);
            assert!(texts.len() <= ASKED_MAX + 1 && texts.orders() == 1);
        }
        assert_eq!([35_999_u64, 35_968, 35_967].map(|number| texts.get(&format!("q{number}"))), [Some(QUOTE), Some(QUOTE), None]);
        texts.forget(QUOTE);
        assert_eq!((texts.len(), texts.orders()), (0, 0));
    }

    /// A hundred replaces are on their way, and each names the text of the one before.
    #[test]
    fn what_was_asked_last_leads_to_the_order_whatever_is_answered() {
        let mut texts = Texts::default();
        let text = |number: u64| format!("q{number}");
        for number in 0..100 {
            texts.ask(&text(number), QUOTE);
        }
        for number in 0..100 {
            if number < 3 {
                texts.take(&text(number), QUOTE);
            } else {
                assert_eq!(texts.get(&text(99)), Some(QUOTE), "at {number}");
                texts.refuse(&text(number), QUOTE);
            }
            assert_eq!(texts.get(&text(number.min(2))), Some(QUOTE), "the one that it has");
        }
        assert_eq!((texts.get(&text(99)), texts.len()), (None, 1));
    }

    #[test]
    fn a_text_leads_to_the_order_that_had_it_last() {
        let (mut texts, other) = (Texts::default(), ClientOrderId(8));
        texts.ask("a", QUOTE);
        texts.take("a", QUOTE);
        texts.ask("a", other);
        assert_eq!(texts.get("a"), Some(other));
        texts.forget(QUOTE);
        assert_eq!(texts.get("a"), Some(other));
        texts.refuse("a", other);
        assert_eq!((texts.get("a"), texts.len(), texts.orders()), (None, 0, 0));
        // To and fro: the text is the order's while it has it, however it came to it.
        for text in ["a", "b", "a"] {
            texts.ask(text, QUOTE);
            texts.take(text, QUOTE);
        }
        texts.refuse("a", QUOTE);
        assert_eq!(["a", "b"].map(|text| texts.get(text)), [Some(QUOTE), Some(QUOTE)]);
    }

    /// Whatever is asked and answered, each order has few texts, each text leads to an order that has it, and nothing is left in the end.
    #[test]
    fn texts_and_orders_belong_together() {
        let (mut texts, mut random) = (Texts::default(), Random::new(3));
        for step in 0..4_000 {
            let (id, text) = (ClientOrderId(random.below(40)), format!("t{}", random.below(300)));
            match random.below(10) {
                0..=4 => texts.ask(&text, id),
                5..=7 => texts.take(&text, id),
                8 => texts.refuse(&text, id),
                _ => texts.forget(id),
            }
            assert!(texts.len() <= 40 * (ASKED_MAX + 1));
            let mut links = texts.by_text.iter();
            assert!(links.all(|(text, id)| texts.of_orders.get(id).is_some_and(|of| of.has(text))), "at {step}");
            assert!(texts.of_orders.values().all(|of| of.asked.len() <= ASKED_MAX), "at {step}");
        }
        (0..40).for_each(|id| texts.forget(ClientOrderId(id)));
        assert_eq!((texts.len(), texts.orders()), (0, 0));
    }

    #[test]
    fn with_very_many_texts_each_order_keeps_its_last_ones() {
        let mut texts = Texts::default();
        for number in 0..300_000_u64 {
            let (id, text) = (ClientOrderId(number % 10_000), format!("q{number}"));
            texts.ask(&text, id);
            texts.take(&text, id);
        }
        assert!(texts.len() <= TEXTS_MAX + 2 * 10_000, "{}", texts.len());
        texts.thin();
        assert_eq!((texts.len(), texts.orders()), (10_000, 10_000));
        assert!((290_000..300_000).all(|number| texts.get(&format!("q{number}")) == Some(ClientOrderId(number % 10_000))));
    }
}
