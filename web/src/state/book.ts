// Levels of a book as the page shows and counts them.

import type { BookLevel, Side } from "walras";
import { toMultiple } from "../base/decimal.ts";

/** The first `count` levels after joining prices into steps of `step`: bids join downwards, asks upwards, away from the other side. */
export function grouped(levels: BookLevel[], side: Side, step: bigint, count: number): BookLevel[] {
  const rows: BookLevel[] = [];
  for (const level of levels) {
    const price = toMultiple(level.price, step, side === "buy" ? "down" : "up");
    const last = rows.at(-1);
    if (last?.price === price) {
      last.size += level.size;
      last.orderCount += level.orderCount;
    } else if (rows.length === count) break;
    else rows.push({ price, size: level.size, orderCount: level.orderCount });
  }
  return rows;
}

/** Total size of the levels no further than `ppm` parts per million from `middle`. */
export function sizeWithin(levels: BookLevel[], middle: bigint, ppm: bigint): bigint {
  const reach = (middle * ppm) / 1_000_000n;
  let total = 0n;
  for (const { price, size } of levels) {
    const distance = price > middle ? price - middle : middle - price;
    if (distance > reach) break;
    total += size;
  }
  return total;
}
