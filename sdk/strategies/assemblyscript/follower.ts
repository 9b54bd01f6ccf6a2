// A strategy that follows trades: after three trades in a row, each at a higher price than the one before, it buys a lot at once at the
// last price. It reads one channel of an instrument: trades are in all of them, and in no snapshot. docs/strategies.md describes the
// functions.

@external("walras", "limit_order")
declare function limitOrder(clientOrderId: i64, instrument: i32, side: i32, price: i64, size: i64, timeInForce: i32): i32;

const TRADED: u8 = 3;
const BUY: i32 = 0;
const IMMEDIATE_OR_CANCEL: i32 = 2;
const RISES: i32 = 3;

const buffer = memory.data(1472);
let lastPrice: i64 = 0;
let rises: i32 = 0;
let orders: i64 = 0;
// The channel of its first trade, and the number of the last one.
let follows: i32 = 0;
let last: i64 = 0;

export function walras_abi(): i32 {
  return 1;
}

export function walras_buffer(): i32 {
  return buffer as i32;
}

// A message: its kind is byte 1; a trade's price bytes 27 to 35.
export function walras_market_data(channel: i32, number: i64, len: i32): void {
  if (len < 44 || load<u8>(buffer, 1) != TRADED) return;
  if (follows == 0) follows = channel;
  // What the gateway had missed comes late, when it is no news any more.
  if (channel != follows || number <= last) return;
  last = number;
  const price = load<i64>(buffer, 27);
  rises = lastPrice > 0 && price > lastPrice ? rises + 1 : 0;
  lastPrice = price;
  if (rises < RISES) return;
  rises = 0;
  orders += 1;
  limitOrder(orders, channel & 0xffffff, BUY, price, 1, IMMEDIATE_OR_CANCEL);
}
