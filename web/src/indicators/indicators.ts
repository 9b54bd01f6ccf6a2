// Averages of prices, in whole numbers. A price goes in as a whole number of its smallest unit and comes out as a whole number of
// 10^-GUARD of it. What can be exact is (simple average, VWAP): one rounding, at the end. What feeds on itself (exponential average, RSI)
// rounds once a step, down, by less than one unit of the last guard digit; the errors fade as the average does, so that they stay below
// `period` of those units: ten digits beyond what is shown.

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
  const [weight, whole] = [2n, BigInt(period + 1)];
  let last: bigint | null = null;
  let sum = 0n;
  return prices.map((price, at) => {
    sum += price;
    if (at + 1 < period) return null;
    last = last === null ? floor(sum * ONE, BigInt(period)) : floor(price * ONE * weight + last * (whole - weight), whole);
    return last;
  });
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
