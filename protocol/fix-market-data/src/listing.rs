//! Requests for securities, and their answers, which are made as the client reads them: a venue may have more than wait for a client.

use std::collections::BTreeMap;

use walras_fix::{Body, Version};
use walras_fix_orders::Catalog;
use walras_types::BatchMarketId;

use crate::limits::LISTED_PER_MESSAGE;
use crate::request::Lasting;
use crate::say::{Head, Security, security_definition, security_list};
use crate::server::BatchListed;

/// All that there are now: instruments by id, then the assets of each batch market. None is ever gone or another one.
#[derive(Clone, Copy)]
pub(crate) struct Securities<'a> {
    pub(crate) catalog: &'a Catalog,
    pub(crate) batches: &'a [BatchListed],
}

impl Securities<'_> {
    /// The one of this symbol.
    fn find(self, symbol: &str) -> Option<Security> {
        if let Some(listed) = self.catalog.find(symbol) {
            return Some(Security::of(listed));
        }
        let (asset, market) = symbol.split_once('@')?;
        let batch = self.batches.iter().find(|batch| batch.name == market)?;
        let at = batch.assets.iter().position(|listed| listed == asset)?;
        of_asset(batch, at)
    }
}

fn of_asset(batch: &BatchListed, at: usize) -> Option<Security> {
    let per = batch.assets.first().map_or("", String::as_str);
    batch.assets.get(at).map(|asset| Security::of_batch(&batch.name, asset, per))
}

/// The first so many instruments, and of each batch market the first so many assets.
#[derive(Clone, Debug, Default)]
struct Mark {
    instruments: usize,
    assets: BTreeMap<BatchMarketId, usize>,
}

impl Mark {
    /// All that there are.
    fn of(all: Securities<'_>) -> Self {
        let assets = all.batches.iter().map(|batch| (batch.market, batch.assets.len())).collect();
        Self { instruments: all.catalog.iter().count(), assets }
    }

    fn count(&self) -> usize {
        self.instruments + self.assets.values().sum::<usize>()
    }
}

/// What answers a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// SecurityList(y), each of many securities.
    Lists,
    /// SecurityDefinition(d), one for each security of a list.
    Definitions,
    /// SecurityDefinition(d) of one security.
    Definition,
}

impl Answer {
    /// The type of the request.
    const fn asked(self) -> &'static str {
        match self {
            Self::Lists => "x",
            Self::Definitions | Self::Definition => "c",
        }
    }

    const fn per_message(self) -> usize {
        match self {
            Self::Lists => LISTED_PER_MESSAGE,
            Self::Definitions | Self::Definition => 1,
        }
    }

    /// SecurityRequestResult(560), SecurityResponseType(323): whether any was found.
    const fn result(self, is_found: bool) -> &'static str {
        match (self, is_found) {
            (Self::Lists, true) => "0",
            (Self::Lists, false) => "2",
            (Self::Definitions, true) => "4",
            (Self::Definition, true) => "1",
            (Self::Definitions | Self::Definition, false) => "6",
        }
    }
}

/// A request for securities: SecurityListRequest(x), SecurityDefinitionRequest(c).
#[derive(Clone, Debug)]
pub(crate) struct Listing {
    id: Box<str>,
    answer: Answer,
    /// The one that it wants; `None` for all of them.
    symbol: Option<Box<str>>,
    lasting: Lasting,
    /// Messages that answered it.
    messages: u64,
    /// What the client has when it has read the list that is on its way.
    known: Mark,
    /// What it was sent of that.
    sent: Mark,
    /// Securities of the list that is on its way, and those of them that were not sent.
    total: usize,
    left: usize,
    /// The one that it wants was there.
    is_found: bool,
}

impl Listing {
    pub(crate) fn new(id: Box<str>, answer: Answer, symbol: Option<Box<str>>, lasting: Lasting) -> Self {
        let (known, sent) = (Mark::default(), Mark::default());
        Self { id, answer, symbol, lasting, messages: 0, known, sent, total: 0, left: 0, is_found: false }
    }

    pub(crate) fn name(&self) -> (&'static str, Box<str>) {
        (self.answer.asked(), self.id.clone())
    }

    pub(crate) fn lasting(&self) -> Lasting {
        self.lasting
    }

    /// Whether it is answered as far as it was begun to be.
    pub(crate) fn is_said(&self) -> bool {
        self.messages > 0 && self.left == 0
    }

    /// The next message: of the list that is on its way, or of what has come since. The first one comes also where there is nothing.
    pub(crate) fn next(&mut self, all: Securities<'_>, version: Version) -> Option<(&'static str, Body)> {
        if self.left == 0 {
            if self.messages > 0 && self.lasting == Lasting::Once {
                return None;
            }
            self.begin(all);
            if self.messages > 0 && self.total == 0 {
                return None;
            }
        }
        let part = self.take(all);
        self.left = if part.is_empty() { 0 } else { self.left.saturating_sub(part.len()) };
        self.messages += 1;
        let result = self.answer.result(!part.is_empty());
        let head = Head { id: &self.id, number: self.messages, result, total: self.total, version };
        Some(match self.answer {
            Answer::Lists => ("y", security_list(&head, &part, self.left == 0)),
            Answer::Definitions | Answer::Definition => {
                ("d", security_definition(&head, part.first().ok_or("The venue has no such instrument")))
            }
        })
    }

    /// A list of all that the client does not have is on its way.
    fn begin(&mut self, all: Securities<'_>) {
        self.total = match &self.symbol {
            Some(symbol) => usize::from(!self.is_found && all.find(symbol).is_some()),
            None => {
                self.known = Mark::of(all);
                self.known.count().saturating_sub(self.sent.count())
            }
        };
        self.left = self.total;
    }

    /// The next securities of that list.
    fn take(&mut self, all: Securities<'_>) -> Vec<Security> {
        let Self { answer, symbol, known, sent, is_found, .. } = self;
        if let Some(symbol) = symbol {
            let found = all.find(symbol).into_iter().collect::<Vec<_>>();
            *is_found = !found.is_empty();
            return found;
        }
        let most = answer.per_message();
        let to = known.instruments.min(sent.instruments + most);
        let mut part: Vec<Security> = all.catalog.iter().take(to).skip(sent.instruments).map(Security::of).collect();
        sent.instruments = to;
        for batch in all.batches {
            let end = known.assets.get(&batch.market).copied().unwrap_or(0);
            let from = sent.assets.entry(batch.market).or_insert(0);
            let to = end.min(*from + most - part.len()).max(*from);
            part.extend((*from..to).filter_map(|at| of_asset(batch, at)));
            *from = to;
        }
        part
    }
}
