//! From messages to bytes.

use std::io::Write;

use walras_types::Side;

use super::{ItchBody, ItchMessage, MESSAGE_BYTES_MAX, NAME};
use crate::error::HistoryError;

/// Writes an ITCH 5.0 file.
#[derive(Debug)]
pub struct ItchWriter<W> {
    sink: W,
    index: u64,
}

/// Room for a message behind its length.
struct Frame {
    bytes: [u8; MESSAGE_BYTES_MAX + 2],
    length: usize,
}

impl Frame {
    fn put(&mut self, field: &[u8]) -> &mut Self {
        self.bytes[self.length..self.length + field.len()].copy_from_slice(field);
        self.length += field.len();
        self
    }

    fn side(&mut self, side: Side) -> &mut Self {
        self.put(match side {
            Side::Buy => b"B",
            Side::Sell => b"S",
        })
    }
}

impl<W: Write> ItchWriter<W> {
    /// Writes to `sink`, which should buffer.
    pub fn new(sink: W) -> Self {
        Self { sink, index: 0 }
    }

    /// Writes one message.
    pub fn write(&mut self, message: &ItchMessage) -> Result<(), HistoryError> {
        self.index += 1;
        let refuse = |what, advice| HistoryError::Unwritable { index: self.index, what, format: NAME, advice };
        let header = message.header;
        if header.time_ns >> 48 != 0 {
            return Err(refuse("a time of 2^48 nanoseconds (78 hours) or more", "give the time since the day's midnight"));
        }
        let mut frame = Frame { bytes: [0; MESSAGE_BYTES_MAX + 2], length: 2 };
        frame
            .put(&[message.message_type()])
            .put(&header.locate.to_be_bytes())
            .put(&header.tracking.to_be_bytes())
            .put(&header.time_ns.to_be_bytes()[2..]);
        match message.body {
            ItchBody::System { code } => frame.put(&[code]),
            ItchBody::Directory {
                symbol,
                market_category,
                financial_status,
                round_lot_size,
                round_lots_only,
                issue_classification,
                issue_subtype,
                authenticity,
                short_sale_threshold,
                ipo_flag,
                luld_tier,
                etp_flag,
                etp_leverage,
                inverse,
            } => frame
                .put(&symbol)
                .put(&[market_category, financial_status])
                .put(&round_lot_size.to_be_bytes())
                .put(&[round_lots_only, issue_classification])
                .put(&issue_subtype)
                .put(&[authenticity, short_sale_threshold, ipo_flag, luld_tier, etp_flag])
                .put(&etp_leverage.to_be_bytes())
                .put(&[inverse]),
            ItchBody::TradingAction { symbol, state, reserved, reason } => frame.put(&symbol).put(&[state, reserved]).put(&reason),
            ItchBody::Add { order_ref, side, shares, symbol, price, attribution } => frame
                .put(&order_ref.to_be_bytes())
                .side(side)
                .put(&shares.to_be_bytes())
                .put(&symbol)
                .put(&price.to_be_bytes())
                .put(attribution.as_ref().map_or(&[], |name| &name[..])),
            ItchBody::Execute { order_ref, shares, match_number } => {
                frame.put(&order_ref.to_be_bytes()).put(&shares.to_be_bytes()).put(&match_number.to_be_bytes())
            }
            ItchBody::ExecuteAtPrice { order_ref, shares, match_number, printable, price } => frame
                .put(&order_ref.to_be_bytes())
                .put(&shares.to_be_bytes())
                .put(&match_number.to_be_bytes())
                .put(if printable { b"Y" } else { b"N" })
                .put(&price.to_be_bytes()),
            ItchBody::Cancel { order_ref, shares } => frame.put(&order_ref.to_be_bytes()).put(&shares.to_be_bytes()),
            ItchBody::Delete { order_ref } => frame.put(&order_ref.to_be_bytes()),
            ItchBody::Replace { old_ref, new_ref, shares, price } => {
                frame.put(&old_ref.to_be_bytes()).put(&new_ref.to_be_bytes()).put(&shares.to_be_bytes()).put(&price.to_be_bytes())
            }
            ItchBody::Trade { order_ref, side, shares, symbol, price, match_number } => frame
                .put(&order_ref.to_be_bytes())
                .side(side)
                .put(&shares.to_be_bytes())
                .put(&symbol)
                .put(&price.to_be_bytes())
                .put(&match_number.to_be_bytes()),
            ItchBody::Cross { shares, symbol, price, match_number, cross_type } => frame
                .put(&shares.to_be_bytes())
                .put(&symbol)
                .put(&price.to_be_bytes())
                .put(&match_number.to_be_bytes())
                .put(&[cross_type]),
            ItchBody::Other { .. } => {
                return Err(refuse("a message with nothing known but its type", "leave it out"));
            }
        };
        let length = u16::try_from(frame.length - 2).expect("a message has at most fifty bytes");
        frame.bytes[..2].copy_from_slice(&length.to_be_bytes());
        self.sink.write_all(&frame.bytes[..frame.length]).map_err(HistoryError::Write)
    }

    /// Flushes and gives the sink back.
    pub fn finish(mut self) -> Result<W, HistoryError> {
        self.sink.flush().map_err(HistoryError::Write)?;
        Ok(self.sink)
    }
}
