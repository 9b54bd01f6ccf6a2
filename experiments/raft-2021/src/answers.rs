//! Books that disagree are not compared.

use anyhow::{bail, ensure};

use crate::books::{Contender, LimitOrder, Trade};

/// What a book said, and what was left in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Lots that traded when the book was cleared beforehand.
    pub lots_cleared: u64,
    /// Trades of the timed operation, in their order.
    pub trades: Vec<Trade>,
    /// The book after it.
    pub left: Vec<LimitOrder>,
}

impl Answer {
    /// Lots traded by the timed operation.
    #[must_use]
    pub fn lots_traded(&self) -> u64 {
        self.trades.iter().map(|trade| trade.size.get()).sum()
    }
}

/// The one answer that all contenders gave.
pub fn agreed(answers: &[(Contender, Answer)]) -> anyhow::Result<&Answer> {
    let Some(((first, expected), others)) = answers.split_first() else { bail!("no book was asked") };
    for (contender, answer) in others {
        let pair = format!("{} and {}", first.name(), contender.name());
        ensure!(answer.lots_cleared == expected.lots_cleared, "{pair} cleared different volumes: a book is wrong, no time counts");
        ensure!(answer.trades == expected.trades, "{pair} traded differently: a book is wrong, no time counts");
        ensure!(answer.left == expected.left, "{pair} hold different orders afterwards: a book is wrong, no time counts");
    }
    Ok(expected)
}
