//! Readers of the binary market-data feed: `walras_feed`'s machine for `walras/feed.py`, which has the sockets.

use std::collections::BTreeMap;

use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};
use walras_feed::book::{Book, Content};
use walras_feed::channel::{ChannelId, Trees};
use walras_feed::control::Control;
use walras_feed::message::{Head, Message, Place};
use walras_feed::reader::MarketReader;
use walras_relay::packet::{Packet, TreeKey};
use walras_relay::reader::ReaderSettings;
use walras_types::Side;

/// As docs/market-data-feed.md advises.
const SETTINGS: ReaderSettings =
    ReaderSettings { held_max: 1 << 16, gap_wait_ns: 300_000, retry_ns: 2_000_000, request_max: 1_000 };

/// The name of the entry that is put among messages when a copy was made from a snapshot.
const SNAPSHOT_TAKEN: &str = "SnapshotTaken";

/// The channels that a program reads, without a socket. The caller passes in datagrams, sends what `requests` returns, and calls it
/// again at `wake_ns`.
#[pyclass(module = "walras._native")]
pub(crate) struct FeedReader {
    key: TreeKey,
    tree: u32,
    trees: Trees,
    can_ask: bool,
    readers: BTreeMap<u32, MarketReader>,
    forged: u64,
}

/// Channel, name of the message, whether it ends its log entry, the entry's index and time, when it may be used, and the message's fields.
type Taken<'py> = (u32, &'static str, bool, u64, u64, u64, Bound<'py, PyDict>);

/// Price in ticks, lots shown, number of orders.
type Level = (i64, u64, u32);

/// An order's number, whether it buys, its price in ticks and the lots that it shows.
type Displayed = (u64, bool, i64, u64);

#[pymethods]
impl FeedReader {
    /// `key` has 32 bytes. Without `can_ask` there is nobody to ask for missed messages, and a gap is closed by a snapshot.
    #[new]
    fn new(key: &[u8], tree: u32, trees: u32, can_ask: bool) -> PyResult<Self> {
        let key = <[u8; 32]>::try_from(key).map_err(|_| PyValueError::new_err(format!("key: {} bytes, 32 expected", key.len())))?;
        let trees = Trees::new(trees)
            .ok_or_else(|| PyValueError::new_err(format!("trees: {trees} parallel trees cannot be; give 1 to 64")))?;
        Ok(Self { key: TreeKey::new(key), tree, trees, can_ask, readers: BTreeMap::new(), forged: 0 })
    }

    /// Reads a channel from now on, or from its first message.
    fn read(&mut self, channel: u32, from_the_start: bool) -> PyResult<()> {
        let id = ChannelId::new(channel).filter(|id| !id.is_of_snapshots());
        let id = id.ok_or_else(|| {
            PyValueError::new_err(format!("channel {channel:#x}: no market has it; see docs/market-data-feed.md"))
        })?;
        let reader = if from_the_start { MarketReader::from_the_start(id, SETTINGS) } else { MarketReader::joining(id, SETTINGS) };
        self.readers.insert(channel, reader.of_trees(self.trees));
        Ok(())
    }

    /// Takes a datagram; returns the messages that followed from it, in order.
    fn datagram<'py>(&mut self, py: Python<'py>, now_ns: u64, bytes: &[u8]) -> PyResult<Vec<Taken<'py>>> {
        let Ok(packet) = Packet::decode(bytes, &self.key) else {
            self.forged += 1;
            return Ok(Vec::new());
        };
        if let Some(Control::GoneBefore { channel, number }) = Control::decode(&packet) {
            // If messages of a channel of snapshots are gone, all readers of its view wait for the next snapshot.
            self.readers.values_mut().for_each(|reader| {
                if reader.channel().get() == channel || reader.channel().snapshots_of(self.trees).get() == channel {
                    reader.gone_before(channel, number);
                }
            });
            return Ok(Vec::new());
        }
        let mut taken = Vec::new();
        let mut failed = None;
        let release_ns = packet.header().release_ns;
        for (channel, reader) in &mut self.readers {
            let (place, had_copy) = (taken.len(), reader.book().is_some());
            reader.packet(now_ns, &packet, |head, message| match described(py, *channel, head, message, release_ns) {
                Ok(message) => taken.push(message),
                Err(error) => failed = Some(error),
            });
            if let (false, Some(book)) = (had_copy, reader.book()) {
                let Head { log_index, time_ns, .. } = *book.head();
                taken.insert(place, (*channel, SNAPSHOT_TAKEN, book.is_whole(), log_index, time_ns, release_ns, PyDict::new(py)));
            }
            // With nobody to ask, what is missing after the time of a reordered datagram is gone.
            if !self.can_ask
                && let Some(missing) = reader.request(now_ns)
            {
                reader.gone_before(missing.channel, u64::MAX);
            }
        }
        failed.map_or(Ok(taken), Err)
    }

    /// Requests for missed messages, to be sent to the venue or a gateway at once. `sent_ns` is the time of day, since the Unix epoch.
    fn requests<'py>(&mut self, py: Python<'py>, now_ns: u64, sent_ns: u64) -> Vec<Bound<'py, PyBytes>> {
        if !self.can_ask {
            return Vec::new();
        }
        let (tree, key) = (self.tree, &self.key);
        let asked = self.readers.values_mut().filter_map(|reader| reader.request(now_ns));
        let packet = |request| {
            let mut bytes = Vec::new();
            Control::Ask(request).encode(tree, sent_ns, key, &mut bytes);
            PyBytes::new(py, &bytes)
        };
        asked.map(packet).collect()
    }

    /// When there may be something to ask for; `None` where nothing is missing, or nobody can be asked.
    #[getter]
    fn wake_ns(&self) -> Option<u64> {
        self.readers.values().filter_map(MarketReader::wake_ns).min().filter(|_| self.can_ask)
    }

    /// Gives the channel's copy up, and makes another from the next snapshot.
    fn await_snapshot(&mut self, channel: u32) -> PyResult<()> {
        self.reader_mut(channel)?.await_snapshot();
        Ok(())
    }

    /// Whether a channel's copy is one that the venue had.
    fn is_live(&self, channel: u32) -> PyResult<bool> {
        Ok(self.book(channel)?.is_some_and(Book::is_whole))
    }

    /// Number of a channel's next message.
    fn next(&self, channel: u32) -> PyResult<u64> {
        Ok(self.reader(channel)?.next())
    }

    /// Messages that wait behind a gap.
    fn held(&self, channel: u32) -> PyResult<usize> {
        Ok(self.reader(channel)?.held_count())
    }

    /// Of a channel: messages read, further copies, dropped ones, requests.
    fn counts(&self, channel: u32) -> PyResult<(u64, u64, u64, u64)> {
        let counts = self.reader(channel)?.counts();
        let asked = if self.can_ask { counts.asked } else { 0 };
        Ok((counts.read, counts.copies, counts.dropped, asked))
    }

    /// Datagrams without the tree's seal.
    #[getter]
    fn forged(&self) -> u64 {
        self.forged
    }

    /// Why a channel's copy was last given up.
    fn error(&self, channel: u32) -> PyResult<Option<String>> {
        Ok(self.reader(channel)?.error().map(|error| error.to_string()))
    }

    /// Bids and asks, best first. The view `top` has one level of each side at most. `None` while the channel waits for a snapshot.
    fn levels(&self, channel: u32, depth: usize) -> PyResult<Option<[Vec<Level>; 2]>> {
        let Some(book) = self.book(channel)? else { return Ok(None) };
        if let Content::Top(top) = book.content() {
            return Ok(Some(top.map_or([Vec::new(), Vec::new()], |top| {
                let best = |price: Option<walras_types::PriceTicks>, shown: walras_types::SizeLots, count| {
                    price.map(|price| (price.get(), shown.get(), count)).into_iter().collect()
                };
                [best(top.bid, top.bid_shown, top.bid_order_count), best(top.ask, top.ask_shown, top.ask_order_count)]
            })));
        }
        let Some(levels) = book.levels() else { return Ok(Some([Vec::new(), Vec::new()])) };
        let side =
            |side| levels.levels(side).take(depth).map(|level| (level.price.get(), level.shown.get(), level.order_count)).collect();
        Ok(Some([side(Side::Buy), side(Side::Sell)]))
    }

    /// Every displayed order, those at one price in their order of execution. `None` while the channel waits for a snapshot.
    fn orders(&self, channel: u32) -> PyResult<Option<Vec<Displayed>>> {
        let Some(book) = self.book(channel)? else { return Ok(None) };
        let Content::Orders(orders) = book.content() else {
            return Err(PyValueError::new_err(format!("channel {channel:#x}: only the view by order has orders")));
        };
        let orders = orders.orders().into_iter();
        Ok(Some(orders.map(|order| (order.order_id.0, order.side == Side::Buy, order.price.get(), order.shown.get())).collect()))
    }
}

impl FeedReader {
    fn reader(&self, channel: u32) -> PyResult<&MarketReader> {
        self.readers.get(&channel).ok_or_else(|| unread(channel))
    }

    fn reader_mut(&mut self, channel: u32) -> PyResult<&mut MarketReader> {
        self.readers.get_mut(&channel).ok_or_else(|| unread(channel))
    }

    fn book(&self, channel: u32) -> PyResult<Option<&Book>> {
        Ok(self.reader(channel)?.book())
    }
}

fn unread(channel: u32) -> PyErr {
    PyKeyError::new_err(format!("channel {channel:#x} is not read here: name it in channels="))
}

/// A message with its fields. Numbers stay numbers, an enumerated value is its name, an absent one `None`, and one of several parts a
/// tuple.
fn described<'py>(py: Python<'py>, channel: u32, head: &Head, message: &Message, release_ns: u64) -> PyResult<Taken<'py>> {
    let fields = PyDict::new(py);
    let schema = message.schema();
    for (field, (name, text)) in schema.fields.iter().zip(message.fields()) {
        let mut values: Vec<Bound<'py, PyAny>> = Vec::new();
        let mut is_absent = false;
        for ((part, _, names), text) in field.parts().zip(text.split(' ')) {
            let number = text.parse::<i128>();
            if part.ends_with("_present") {
                is_absent = number == Ok(0);
                continue;
            }
            let named = number.as_ref().ok().and_then(|number| names.iter().find(|(known, _)| i128::from(*known) == *number));
            values.push(match (named, number) {
                (Some((_, name)), _) => name.into_pyobject(py)?.into_any(),
                (None, Ok(number)) => number.into_pyobject(py)?.into_any(),
                (None, Err(_)) => text.into_pyobject(py)?.into_any(),
            });
        }
        match values.as_slice() {
            _ if is_absent => fields.set_item(name, py.None())?,
            [value] => fields.set_item(name, value)?,
            values => fields.set_item(name, PyTuple::new(py, values)?)?,
        }
    }
    Ok((channel, schema.name, head.place == Place::Last, head.log_index, head.time_ns, release_ns, fields))
}
