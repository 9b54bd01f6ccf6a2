// Against exact fractions: the same definitions, without any rounding.

import assert from "node:assert/strict";
import test from "node:test";
import {
  bollingerBands, convergence, exponentialAverage, GUARD, type Line, relativeStrength, simpleAverage, squareRoot, type Traded, trueRange,
  volumeWeighted,
} from "../src/indicators/indicators.ts";

interface Fraction {
  n: bigint;
  d: bigint;
}

const ONE = 10n ** BigInt(GUARD);
const whole = (n: bigint): Fraction => ({ n, d: 1n });
const gcd = (a: bigint, b: bigint): bigint => (b === 0n ? (a < 0n ? -a : a) : gcd(b, a % b));
const reduced = (n: bigint, d: bigint): Fraction => {
  const by = gcd(n, d) || 1n;
  return { n: n / by, d: d / by };
};
const add = (a: Fraction, b: Fraction): Fraction => reduced(a.n * b.d + b.n * a.d, a.d * b.d);
const times = (a: Fraction, n: bigint, d: bigint): Fraction => reduced(a.n * n, a.d * d);

/** How many guard units `line` is below the exact value: within `most`, and never above. */
function assertNear(line: Line, exact: (Fraction | null)[], most: bigint): void {
  assert.equal(line.length, exact.length);
  line.forEach((value, at) => {
    const wanted = exact[at];
    if (value === null || wanted == null) return assert.equal(value === null, wanted == null, `at ${at}`);
    const below = wanted.n * ONE - value * wanted.d;
    assert.ok(below >= -most * wanted.d && below <= most * wanted.d, `at ${at}: ${value} against ${wanted.n}/${wanted.d}`);
  });
}

/** Prices that jump, stand still and fall, as markets do. */
function prices(count: number, seed: number): bigint[] {
  let state = BigInt(seed);
  let price = 3_053_429n;
  return Array.from({ length: count }, () => {
    state = (state * 6_364_136_223_846_793_005n + 1_442_695_040_888_963_407n) % 2n ** 64n;
    const roll = Number(state >> 33n) % 100;
    price += roll < 20 ? 0n : roll < 90 ? BigInt(roll - 55) : BigInt((roll - 95) * 4_000);
    return price < 1n ? (price = 1n) : price;
  });
}

test("the simple average is exact to the last digit", () => {
  for (const period of [1, 3, 20]) {
    const list = prices(60, 7);
    const exact = list.map(
      (_, at) => (at + 1 < period ? null : { n: list.slice(at + 1 - period, at + 1).reduce((a, b) => a + b), d: BigInt(period) }),
    );
    assertNear(simpleAverage(list, period), exact, 1n);
  }
  assert.deepEqual(simpleAverage([1n, 2n, 4n], 3), [null, null, 2_333_333_333_333n]);
});

test("the exponential average strays by less than its period of guard units", () => {
  for (const period of [1, 2, 50]) {
    const list = prices(200, 11);
    let last: Fraction | null = null;
    const exact = list.map((price, at) => {
      if (at + 1 < period) return null;
      last = last === null ? { n: list.slice(0, period).reduce((a, b) => a + b), d: BigInt(period) }
        : add(times(whole(price), 2n, BigInt(period + 1)), times(last, BigInt(period - 1), BigInt(period + 1)));
      return last;
    });
    assertNear(exponentialAverage(list, period), exact, BigInt(period));
  }
});

test("VWAP is exact, and begins again with the UTC day", () => {
  const list = prices(90, 3);
  const candles: Traded[] = list.map(
    (close, at) => ({ timeS: 1_700_000_000 + at * 3_600, high: close + 5n, low: close - 7n, close, volume: BigInt((at * 37) % 11) }),
  );
  const exact = candles.map((_, at) => {
    const day = Math.floor((candles[at]?.timeS ?? 0) / 86_400);
    const ofDay = candles.slice(0, at + 1).filter(({ timeS }) => Math.floor(timeS / 86_400) === day);
    const volume = ofDay.reduce((sum, candle) => sum + candle.volume, 0n);
    return volume === 0n ? null : {
      n: ofDay.reduce((sum, { high, low, close, volume: much }) => sum + (high + low + close) * much, 0n), d: 3n * volume,
    };
  });
  assertNear(volumeWeighted(candles), exact, 1n);
});

test("RSI is Wilder's, 100 in a rise, 0 in a fall, 50 in calm", () => {
  assert.deepEqual(relativeStrength([1n, 2n, 3n, 4n], 2).slice(2), [100n * ONE, 100n * ONE]);
  assert.deepEqual(relativeStrength([4n, 3n, 2n, 1n], 2).slice(2), [0n, 0n]);
  assert.deepEqual(relativeStrength([5n, 5n, 5n], 2).slice(2), [50n * ONE]);
  const list = prices(120, 5);
  const period = 14;
  let [gain, loss] = [whole(0n), whole(0n)];
  const exact = list.map((price, at) => {
    if (at === 0) return null;
    const change = price - (list[at - 1] ?? 0n);
    const [up, down] = change > 0n ? [change, 0n] : [0n, -change];
    if (at <= period) {
      [gain, loss] = [add(gain, reduced(up, BigInt(period))), add(loss, reduced(down, BigInt(period)))];
      if (at < period) return null;
    } else {
      gain = add(times(gain, BigInt(period - 1), BigInt(period)), reduced(up, BigInt(period)));
      loss = add(times(loss, BigInt(period - 1), BigInt(period)), reduced(down, BigInt(period)));
    }
    const both = add(gain, loss);
    return both.n === 0n ? whole(50n) : reduced(100n * gain.n * both.d, gain.d * both.n);
  });
  // A share of two averages, each off by less than `period` guard units of at least one tick between them.
  assertNear(relativeStrength(list, period), exact, BigInt(200 * period));
});

test("a square root is the largest whole number whose square is not above", () => {
  const squares = prices(300, 13).flatMap((p) => [p * p, p * p - 1n, p ** 5n * 10n ** 24n]);
  const list = [...Array.from({ length: 2_000 }, (_, n) => BigInt(n)), ...squares];
  for (const of of list) {
    const root = squareRoot(of);
    assert.ok(root * root <= of && (root + 1n) * (root + 1n) > of, String(of));
  }
});

test("Bollinger's bands are two deviations from the mean, to the last digit", () => {
  for (const period of [2, 5, 20]) {
    const list = prices(80, 17);
    const n = BigInt(period);
    const { upper, middle, lower } = bollingerBands(list, period);
    assert.deepEqual(middle, simpleAverage(list, period));
    list.forEach((_, at) => {
      const [above, below] = [upper[at], lower[at]];
      if (at + 1 < period) return assert.deepEqual([above, below], [null, null]);
      assert.ok(above != null && below != null);
      const window = list.slice(at + 1 - period, at + 1);
      const sum = window.reduce((a, b) => a + b);
      // n^2 times the variance, from the deviations themselves.
      const variance = window.reduce((all, price) => all + (n * price - sum) ** 2n, 0n) / n;
      // Twice the deviation times n, in guard units, squared: between what the bands say and one more.
      const exact = 4n * variance * ONE * ONE;
      for (const reach of [n * above - sum * ONE, sum * ONE - n * below]) {
        assert.ok((reach - n) * (reach < n ? 0n : reach - n) <= exact && (reach + n + 1n) ** 2n > exact, `${period} at ${at}`);
      }
    });
  }
  const { upper, lower } = bollingerBands([7n, 7n, 7n], 3);
  assert.deepEqual([upper[2], lower[2]], [7n * ONE, 7n * ONE], "what stands still has no width");
  assert.deepEqual(bollingerBands([1n, 3n], 2).upper[1], 4n * ONE, "of 1 and 3 the mean is 2, the deviation 1");
});

test("MACD is the difference of two exponential averages, and its signal the average of that", () => {
  const list = prices(200, 19);
  const average = (values: (Fraction | null)[], period: number): (Fraction | null)[] => {
    const from = values.findIndex((value) => value !== null);
    let last: Fraction | null = null;
    return values.map((value, at) => {
      if (value === null || at - from + 1 < period) return null;
      last = last === null ? values.slice(from, at + 1).reduce<Fraction>((sum, each) => add(sum, each ?? whole(0n)), whole(0n)) : last;
      if (at - from + 1 === period) return (last = times(last, 1n, BigInt(period)));
      return (last = add(times(value, 2n, BigInt(period + 1)), times(last, BigInt(period - 1), BigInt(period + 1))));
    });
  };
  const [fast, slow] = [average(list.map(whole), 12), average(list.map(whole), 26)];
  const exact = slow.map((value, at) => value && add(fast[at] ?? whole(0n), times(value, -1n, 1n)));
  const { macd, signal } = convergence(list);
  assertNear(macd, exact, 26n);
  assertNear(signal, average(exact, 9), 35n);
  assert.equal(signal.findIndex((value) => value !== null), 33, "26 closes for the slow average, 9 of it for the signal");
  assert.ok(macd.some((value) => value !== null && value < 0n) && macd.some((value) => value !== null && value > 0n));
  assert.deepEqual(convergence(list.slice(0, 10)).signal, list.slice(0, 10).map(() => null), "too few closes");
});

test("ATR is Wilder's, and counts a gap from the close before", () => {
  const list = prices(120, 23);
  const candles = list.map((close, at) => ({ high: close + BigInt(at % 7), low: close - BigInt(at % 5), close }));
  const period = 14;
  const ranges = candles.map(({ high, low }, at) => {
    const before = list[at - 1];
    const all = before === undefined ? [] : [high - low, high - before, before - low];
    return all.reduce((most, each) => (each > most ? each : most), 0n);
  });
  let last: Fraction | null = null;
  const exact = ranges.map((range, at) => {
    if (at < period) return null;
    last = last === null ? { n: ranges.slice(1, period + 1).reduce((a, b) => a + b), d: BigInt(period) }
      : add(times(last, BigInt(period - 1), BigInt(period)), reduced(range, BigInt(period)));
    return last;
  });
  assertNear(trueRange(candles, period), exact, BigInt(period));
  const gap = [{ high: 10n, low: 10n, close: 10n }, { high: 21n, low: 20n, close: 20n }, { high: 20n, low: 19n, close: 19n }];
  assert.deepEqual(trueRange(gap, 2), [null, null, 6n * ONE], "11 and 1");
});
