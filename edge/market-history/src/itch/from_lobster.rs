//! A LOBSTER file as the ITCH file that it could have come from.

use std::io::{BufRead, Write};

use super::{ItchBody, ItchHeader, ItchMessage, ItchWriter, NAME, Symbol8};
use crate::error::HistoryError;
use crate::lobster::{LobsterMessage, LobsterReader, LobsterType};

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ItchConversion {
    /// LOBSTER lines read, one message each.
    pub messages_in: u64,
    /// Messages written, those before and after included.
    pub messages_out: u64,
}

/// Number of the only instrument.
const LOCATE: u16 = 1;

/// Writes the LOBSTER file `source` as ITCH 5.0, as instrument `symbol`: the start of the day, the instrument and its trading state;
/// then one message for each line; then the end of the day. Trades are numbered from 1. What ITCH knows and LOBSTER does not (tracking
/// numbers, the instrument's properties) is zero or the plainest value.
pub fn lobster_to_itch<R: BufRead, W: Write>(source: R, sink: W, symbol: Symbol8) -> Result<ItchConversion, HistoryError> {
    let mut reader = LobsterReader::new(source);
    let mut writer = ItchWriter::new(sink);
    let mut counts = ItchConversion::default();
    let mut put = |time_ns, locate, body| {
        counts.messages_out += 1;
        writer.write(&ItchMessage { header: ItchHeader { locate, tracking: 0, time_ns }, body })
    };
    let mut time_ns = 0;
    let mut match_number = 0;
    while let Some(message) = reader.next_message() {
        let (line, message) = message?;
        time_ns = message.time_ns;
        if counts.messages_in == 0 {
            for code in *b"OSQ" {
                put(time_ns, 0, ItchBody::System { code })?;
            }
            put(time_ns, LOCATE, ItchBody::plain_directory(symbol))?;
            put(time_ns, LOCATE, ItchBody::TradingAction { symbol, state: b'T', reserved: b' ', reason: *b"    " })?;
        }
        counts.messages_in += 1;
        if matches!(message.message_type, LobsterType::Execute | LobsterType::ExecuteHidden | LobsterType::Cross) {
            match_number += 1;
        }
        put(time_ns, LOCATE, body(&message, line, symbol, match_number)?)?;
    }
    for code in *b"MEC" {
        put(time_ns, 0, ItchBody::System { code })?;
    }
    writer.finish()?;
    Ok(counts)
}

fn body(message: &LobsterMessage, index: u64, symbol: Symbol8, match_number: u64) -> Result<ItchBody, HistoryError> {
    let refuse =
        |what| HistoryError::Unwritable { index, what, format: NAME, advice: "correct the line, or leave it out of the file" };
    let order_ref = u64::try_from(message.order_id.max(0)).map_err(|_| refuse("the order id"))?;
    let shares = || u32::try_from(message.size).map_err(|_| refuse("a size of 2^32 or more"));
    let price = || u32::try_from(message.price).map_err(|_| refuse("a price below zero, or of 2^32 ten-thousandths or more"));
    Ok(match message.message_type {
        LobsterType::Add => {
            ItchBody::Add { order_ref, side: message.side, shares: shares()?, symbol, price: price()?, attribution: None }
        }
        LobsterType::Reduce => ItchBody::Cancel { order_ref, shares: shares()? },
        LobsterType::Delete => ItchBody::Delete { order_ref },
        LobsterType::Execute => ItchBody::Execute { order_ref, shares: shares()?, match_number },
        LobsterType::ExecuteHidden => {
            ItchBody::Trade { order_ref: 0, side: message.side, shares: shares()?, symbol, price: price()?, match_number }
        }
        LobsterType::Cross => ItchBody::Cross { shares: message.size, symbol, price: price()?, match_number, cross_type: b'O' },
        LobsterType::Halt => ItchBody::TradingAction {
            symbol,
            state: match message.price {
                -1 => b'H',
                0 => b'Q',
                _ => b'T',
            },
            reserved: b' ',
            reason: *b"    ",
        },
    })
}
