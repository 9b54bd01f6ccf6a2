//! Keeps a book by the binary feed and prints its best levels, in ticks. One's own address is a receiver of the venue's relay tree:
//! `cargo run -p walras-relay-link --example feed_book OWN_ADDRESS TREE_FILE ASK_ADDRESS INSTRUMENT_ID`.

use std::io::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use walras_feed::channel::{ChannelId, View};
use walras_feed::{book::Book, reader::MarketReader};
use walras_relay::reader::ReaderSettings;
use walras_relay_link::socket::{Offload, Socket};
use walras_relay_link::{Layout, Leaf};
use walras_types::{InstrumentId, Side};

/// Calls `show` with the best bid and offer when they have changed, until it wants no more. Requests say the time of day.
pub(crate) fn run(args: &[String], mut show: impl FnMut([Option<i64>; 2]) -> bool) -> Result<(), Box<dyn std::error::Error>> {
    let [own, tree, ask, instrument] = args else { return Err("give all four arguments".into()) };
    let (layout, to, mut shown, mut goes_on) = (Layout::read(tree.as_ref())?, ask.parse()?, None, true);
    let mut leaf = Leaf::new(Socket::bind(own.parse()?, Duration::from_millis(1), Offload::Segments)?, layout.key.clone());
    let settings = ReaderSettings { held_max: 1 << 16, gap_wait_ns: 300_000, retry_ns: 2_000_000, request_max: 1_000 };
    let mut reader = MarketReader::joining(ChannelId::instrument(View::Levels, InstrumentId(instrument.parse()?)), settings);
    while goes_on {
        let now_ns = u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos())?;
        leaf.receive(|packet| reader.packet(now_ns, packet, |_, _| {}))?;
        reader.request(now_ns).map_or(Ok(()), |lost| leaf.ask(&lost, layout.tree_number, now_ns, to))?;
        let Some(levels) = reader.book().and_then(Book::levels) else { continue };
        let best = [Side::Buy, Side::Sell].map(|side| levels.best(side).map(|level| level.price.get()));
        goes_on = shown.replace(best) == Some(best) || show(best);
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    run(&std::env::args().skip(1).collect::<Vec<_>>(), |best| writeln!(std::io::stdout(), "{best:?}").is_ok())
}
