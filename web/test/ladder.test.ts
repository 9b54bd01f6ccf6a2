import assert from "node:assert/strict";
import { test } from "node:test";
import { type LadderPicture, type LadderRow, paintLadder } from "../src/views/ladder-paint.ts";
import type { Palette } from "../src/views/theme.ts";

const row = (side: "buy" | "sell", orderCount: number, own: bigint): LadderRow =>
  ({ side, level: { price: side === "buy" ? 99n : 101n, size: 5n, orderCount }, total: 5n, own });

/** All that is written, from left to right in each line. */
function written(picture: Partial<LadderPicture>): string[] {
  const texts: { words: string; x: number; y: number }[] = [];
  const context = new Proxy({}, {
    get: (_, name) => (name === "fillText" ? (words: string, x: number, y: number) => texts.push({ words, x, y })
      : name === "measureText" ? () => ({ width: 10 }) : name === "globalAlpha" ? 1 : () => {}),
    set: () => true,
  }) as CanvasRenderingContext2D;
  const whole: LadderPicture = {
    bids: [], asks: [], rowsPerSide: 2, chosen: null, hovered: null, middleText: "Spread 2", isLive: true, priceText: String,
    sizeText: (size) => `${size}.0`, ...picture,
  };
  paintLadder(context, 300, 200, whole, new Proxy({}, { get: () => "rgb(0, 0, 0)" }) as Palette);
  const heights = [...new Set(texts.map(({ y }) => y))].sort((a, b) => a - b);
  return heights.map((y) => texts.filter((text) => text.y === y).sort((a, b) => a.x - b.x).map(({ words }) => words).join(" | "));
}

test("the columns are named by what they show: on each side the number of orders, and one's own size as a tag", () => {
  assert.deepEqual(written({ asks: [row("sell", 7, 0n)], bids: [row("buy", 3, 2n)] }), [
    "Orders | Price | For sale", "7 | 101 | 5.0", "Spread 2", "5.0 | 99 | ◆ 2.0", "Wanted | Orders",
  ]);
});
