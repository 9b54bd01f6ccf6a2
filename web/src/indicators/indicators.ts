// Averages of prices and how far prices stray from them, in whole numbers. A price goes in as a whole number of its smallest unit and comes
// out as a whole number of 10^-GUARD of it. Simple average, Bollinger's bands and VWAP are exact but for one rounding at the end. Recursive
// ones (exponential average, MACD, RSI, ATR) round down once a step, by less than one unit of the last guard digit; the errors fade as the
// average does, so that they stay below `period` of those units: ten digits beyond what is shown.
//
// Libraries of indicators (trading-signals, technicalindicators) compute in floats, or bring a library of decimals with them. Seven short
// definitions in whole numbers need neither, and test/indicators.test.ts compares them with exact fractions.

/** Digits kept beyond the price's own. */
export const GUARD = 12;
const ONE = 10n ** BigInt(GUARD);

/** `null` until there are enough prices. */
export type Line = (bigint | null)[];

/** The mean of the last `period` prices. */
export function simpleAverage(prices: bigint[], period: number): Line {
  let sum = 0n;
  return prices.map((price, at) => {
    sum += price - (at >= period ? prices[at - period] ?? 0n : 0n);
    return at + 1 < period ? null : floor(sum * ONE, BigInt(period));
  });
}

/** Each price weighs `2 / (period + 1)`, what was before the rest; it begins with the simple average of the first `period`. */
export function exponentialAverage(prices: bigint[], period: number): Line {
  return smoothed(prices.map((price) => price * ONE), period);
}

/** The same, of values that have the guard digits already. */
function smoothed(values: bigint[], period: number): Line {
  const [weight, whole] = [2n, BigInt(period + 1)];
  let last: bigint | null = null;
  let sum = 0n;
  return values.map((value, at) => {
    sum += value;
    if (at + 1 < period) return null;
    last = last === null ? floor(sum, BigInt(period)) : floor(value * weight + last * (whole - weight), whole);
    return last;
  });
}

/** Bollinger's bands: two population standard deviations of the last `period` prices above and below their mean. */
export function bollingerBands(prices: bigint[], period: number): { upper: Line; middle: Line; lower: Line } {
  const n = BigInt(period);
  let [sum, squares] = [0n, 0n];
  const around = prices.map((price, at) => {
    const gone = at >= period ? prices[at - period] ?? 0n : 0n;
    sum += price - gone;
    squares += price * price - gone * gone;
    // The deviation is sqrt(n * squares - sum^2) / n.
    return at + 1 < period ? null : { sum: sum * ONE, reach: squareRoot(4n * (n * squares - sum * sum) * ONE * ONE) };
  });
  const line = (sign: bigint): Line => around.map((each) => each && floor(each.sum + sign * each.reach, n));
  return { upper: line(1n), middle: line(0n), lower: line(-1n) };
}

export const MACD = { fast: 12, slow: 26, signal: 9 };

/** Appel's MACD: the fast exponential average less the slow one, and the exponential average of that. */
export function convergence(prices: bigint[]): { macd: Line; signal: Line } {
  const [fast, slow] = [exponentialAverage(prices, MACD.fast), exponentialAverage(prices, MACD.slow)];
  const macd = slow.map((value, at) => (value === null ? null : (fast[at] ?? 0n) - value));
  const from = MACD.slow - 1;
  const signal = smoothed(macd.slice(from).map((value) => value ?? 0n), MACD.signal);
  return { macd, signal: [...macd.slice(0, from).map(() => null), ...signal] };
}

export interface Traded {
  /** Seconds since the epoch. */
  timeS: number;
  high: bigint;
  low: bigint;
  close: bigint;
  volume: bigint;
}

const DAY_S = 86_400;

/** What a unit cost on average since the start of the UTC day, of candles: each counts with a third of its high, low and close. */
export function volumeWeighted(candles: Traded[]): Line {
  let day = Number.NaN;
  let [value, volume] = [0n, 0n];
  return candles.map((candle) => {
    const itsDay = Math.floor(candle.timeS / DAY_S);
    if (itsDay !== day) [day, value, volume] = [itsDay, 0n, 0n];
    value += (candle.high + candle.low + candle.close) * candle.volume;
    volume += candle.volume;
    return volume === 0n ? null : floor(value * ONE, 3n * volume);
  });
}

/** Wilder's average true range: the span of a candle and the close before it. */
export function trueRange(candles: Pick<Traded, "high" | "low" | "close">[], period: number): Line {
  const n = BigInt(period);
  let average = 0n;
  return candles.map(({ high, low }, at) => {
    const before = candles[at - 1]?.close;
    if (before === undefined) return null;
    const range = ((high > before ? high : before) - (low < before ? low : before)) * ONE;
    if (at <= period) {
      average += range;
      if (at < period) return null;
      return (average = floor(average, n));
    }
    return (average = floor(average * (n - 1n) + range, n));
  });
}

/** Wilder's index of relative strength, from 0 to 100 times 10^GUARD: 50 where nothing moved. */
export function relativeStrength(prices: bigint[], period: number): Line {
  let [gain, loss] = [0n, 0n];
  const n = BigInt(period);
  return prices.map((price, at) => {
    if (at === 0) return null;
    const change = price - (prices[at - 1] ?? price);
    const [up, down] = change > 0n ? [change * ONE, 0n] : [0n, -change * ONE];
    if (at <= period) {
      gain += up;
      loss += down;
      if (at < period) return null;
      [gain, loss] = [floor(gain, n), floor(loss, n)];
    } else {
      gain = floor(gain * (n - 1n) + up, n);
      loss = floor(loss * (n - 1n) + down, n);
    }
    return gain + loss === 0n ? 50n * ONE : floor(100n * ONE * gain, gain + loss);
  });
}

/** Towards minus infinity; `denominator` is above zero. */
function floor(numerator: bigint, denominator: bigint): bigint {
  const quotient = numerator / denominator;
  return numerator < 0n && quotient * denominator !== numerator ? quotient - 1n : quotient;
}

/** The whole part of the square root of a number of at least zero: Newton's method, from above. */
export function squareRoot(of: bigint): bigint {
  if (of < 2n) return of;
  let root = 1n << BigInt(Math.ceil(of.toString(2).length / 2));
  for (;;) {
    const next = (root + of / root) >> 1n;
    if (next >= root) return root;
    root = next;
  }
}
