//! Who is connected and listens to what, and the sending of it.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use tokio::sync::mpsc;
use walras_types::InstrumentId;

use super::books::{BookViews, KnownBooks};
use super::publication::Shared;
use super::{ConnectionId, Subscription};
use crate::account::Watched;
use crate::status::{Progress, Status};

/// Something that becomes known to readers, or changes who they are.
#[derive(Debug)]
pub(super) enum Item {
    /// Somebody is there.
    Connect { id: ConnectionId, queue: mpsc::Sender<Shared> },
    /// Somebody is gone.
    Disconnect(ConnectionId),
    /// A feed begins, with what there is so far.
    Start { id: ConnectionId, subscription: Subscription, snapshot: Shared },
    /// A book's feed begins with what its readers were sent so far.
    StartBook { id: ConnectionId, instrument: InstrumentId },
    /// The state is another: what readers of books were sent is no longer of use.
    ForgetBooks,
    /// More of what a feed began with, for one who listens.
    More { id: ConnectionId, part: Shared },
    /// To be dropped here, where it holds nobody up.
    Discard(Box<Watched>),
    /// A feed ends.
    Stop { id: ConnectionId, subscription: Subscription },
    /// To each who listens to it.
    Updates(BTreeMap<Subscription, Shared>),
    /// How far the market is: for all who read the status.
    Progress(Progress),
}

#[derive(Debug)]
struct Connection {
    queue: mpsc::Sender<Shared>,
    subscriptions: Vec<Subscription>,
}

/// All connections, and the answers to their questions.
#[derive(Debug)]
pub(super) struct Outbox {
    connections: HashMap<ConnectionId, Connection>,
    books: BookViews,
    status: Status,
}

impl Outbox {
    pub(super) fn new(status: Status, known_books: KnownBooks) -> Self {
        Self { connections: HashMap::new(), books: BookViews::new(known_books), status }
    }

    /// A feed begins, for one who is there.
    fn start(&mut self, id: ConnectionId, subscription: Subscription, snapshot: Shared, dropped: impl FnOnce(ConnectionId)) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        if !connection.subscriptions.contains(&subscription) {
            connection.subscriptions.push(subscription);
        }
        if connection.queue.try_send(snapshot).is_err() {
            self.connections.remove(&id);
            dropped(id);
        }
    }

    /// Sends an item. A connection that does not read is dropped, and `dropped` gets its id.
    pub(super) fn take(&mut self, item: Item, mut dropped: impl FnMut(ConnectionId)) {
        match item {
            Item::Connect { id, queue } => {
                self.connections.insert(id, Connection { queue, subscriptions: Vec::new() });
            }
            Item::Disconnect(id) => {
                self.connections.remove(&id);
            }
            Item::Start { id, subscription, snapshot } => {
                self.books.take(&snapshot);
                self.start(id, subscription, snapshot, dropped);
            }
            Item::StartBook { id, instrument } => match self.books.snapshot(instrument) {
                Some(snapshot) => self.start(id, Subscription::Book(instrument), snapshot, dropped),
                // Forgotten since the reader asked, as those were who read it: it connects again, too.
                None => {
                    self.connections.remove(&id);
                    dropped(id);
                }
            },
            Item::ForgetBooks => self.books.clear(),
            Item::More { id, part } => {
                if self.connections.get(&id).is_some_and(|connection| connection.queue.try_send(part).is_err()) {
                    self.connections.remove(&id);
                    dropped(id);
                }
            }
            Item::Discard(watched) => drop(watched),
            Item::Stop { id, subscription } => {
                if let Some(connection) = self.connections.get_mut(&id) {
                    connection.subscriptions.retain(|other| *other != subscription);
                }
            }
            Item::Updates(updates) => {
                updates.values().for_each(|update| self.books.take(update));
                self.connections.retain(|&id, connection| {
                    let mut wanted = connection.subscriptions.iter().filter_map(|subscription| updates.get(subscription));
                    let is_slow = wanted.any(|push| connection.queue.try_send(Arc::clone(push)).is_err());
                    if is_slow {
                        dropped(id);
                    }
                    !is_slow
                });
            }
            Item::Progress(progress) => self.status.show(progress),
        }
    }

    /// Forgets everybody: what they were to be sent is lost.
    pub(super) fn clear(&mut self, mut dropped: impl FnMut(ConnectionId)) {
        self.books.clear();
        self.connections.drain().for_each(|(id, _)| dropped(id));
    }
}
