// Paints the ladder: prices down the middle, what is wanted to the left, what is for sale to the right, so that the two sides are
// distinguished by place before colour. Next to each size its bar; behind it, paler, the total up to that price.

import type { BookLevel } from "walras";
import { t } from "../texts/index.ts";
import type { Palette } from "./theme.ts";

export const ROW_PX = 20;
export const HEAD_PX = 18;

export interface LadderRow {
  side: "buy" | "sell";
  level: BookLevel;
  /** Size up to and including this level, from the best. */
  total: bigint;
  /** Own open size at this level. */
  own: bigint;
}

export interface LadderPicture {
  /** Best first. */
  bids: LadderRow[];
  asks: LadderRow[];
  rowsPerSide: number;
  chosen: { side: "buy" | "sell"; price: bigint } | null;
  /** Under the pointer. */
  hovered: { side: "buy" | "sell"; index: number } | null;
  middleText: string;
  isLive: boolean;
  priceText(price: bigint): string;
  sizeText(size: bigint): string;
}

/** Rows that fit on each side of the middle row. */
export function rowsPerSide(height: number): number {
  return Math.max(1, Math.floor((height - 2 * HEAD_PX - ROW_PX) / (2 * ROW_PX)));
}

/** The top of a row's strip; `index` counts from the best level of its side. */
export function rowTop(side: "buy" | "sell", index: number, perSide: number): number {
  const middleTop = HEAD_PX + perSide * ROW_PX;
  return side === "sell" ? middleTop - (index + 1) * ROW_PX : middleTop + (index + 1) * ROW_PX;
}

/** Which row lies at height `y`. */
export function rowAt(y: number, perSide: number): { side: "buy" | "sell"; index: number } | null {
  const middleTop = HEAD_PX + perSide * ROW_PX;
  if (y < HEAD_PX) return null;
  if (y < middleTop) return { side: "sell", index: Math.floor((middleTop - y - 0.01) / ROW_PX) };
  if (y < middleTop + ROW_PX) return null;
  const index = Math.floor((y - middleTop - ROW_PX) / ROW_PX);
  return index < perSide ? { side: "buy", index } : null;
}

export function paintLadder(
  context: CanvasRenderingContext2D,
  width: number,
  height: number,
  picture: LadderPicture,
  colours: Palette,
): void {
  const column = Math.min(104, width * 0.34);
  const left = Math.round((width - column) / 2);
  const right = left + Math.round(column);
  context.clearRect(0, 0, width, height);
  context.textBaseline = "middle";
  const widest = largest([...picture.bids, ...picture.asks].map((row) => row.level.size));
  const deepest = largest([picture.bids.at(-1)?.total ?? 0n, picture.asks.at(-1)?.total ?? 0n]);

  const small = `400 11px ${colours.face}`;
  context.font = small;
  context.fillStyle = colours.muted;
  const bottom = HEAD_PX + (2 * picture.rowsPerSide + 1) * ROW_PX + HEAD_PX / 2;
  text(context, t.book.orders, left - 8, HEAD_PX / 2, "right");
  text(context, t.book.price, (left + right) / 2, HEAD_PX / 2, "center");
  text(context, t.book.offered, right + 8, HEAD_PX / 2, "left");
  text(context, t.book.wanted, left - 8, bottom, "right");
  text(context, t.book.orders, right + 8, bottom, "left");

  context.globalAlpha = picture.isLive ? 1 : 0.45;
  for (const row of [...picture.asks, ...picture.bids]) {
    const list = row.side === "sell" ? picture.asks : picture.bids;
    const index = list.indexOf(row);
    const top = rowTop(row.side, index, picture.rowsPerSide);
    if (picture.hovered?.side === row.side && picture.hovered.index === index) {
      context.fillStyle = colours.hair;
      context.fillRect(0, top, width, ROW_PX);
    }
    paintRow(context, { left, right, top, width }, row, share(row.level.size, widest), share(row.total, deepest), picture, colours);
  }
  context.globalAlpha = 1;

  const middle = HEAD_PX + picture.rowsPerSide * ROW_PX + ROW_PX / 2;
  context.fillStyle = colours.ink;
  context.fillRect(0, Math.round(middle - ROW_PX / 2) + 2, width, 1);
  context.fillRect(0, Math.round(middle + ROW_PX / 2) - 3, width, 1);
  context.font = small;
  text(context, picture.isLive ? picture.middleText : t.book.waiting, width / 2, middle, "center");
}

interface Strip {
  left: number;
  right: number;
  top: number;
  width: number;
}

function paintRow(
  context: CanvasRenderingContext2D,
  { left, right, top, width }: Strip,
  row: LadderRow,
  sizeShare: number,
  totalShare: number,
  picture: LadderPicture,
  colours: Palette,
): void {
  const sell = row.side === "sell";
  const colour = sell ? colours.ask : colours.bid;
  const room = sell ? width - right : left;
  const middle = top + ROW_PX / 2;
  const strength = context.globalAlpha;
  const bar = (length: number, alpha: number, inset: number): void => {
    context.globalAlpha = strength * alpha;
    context.fillStyle = colour;
    context.fillRect(sell ? right : left - length, top + inset, length, ROW_PX - 2 * inset);
    context.globalAlpha = strength;
  };
  bar(room * totalShare, 0.11, 0);
  bar(Math.max(1, room * sizeShare), 0.3, 2);
  bar(2, 1, 0);

  context.font = `700 12.5px ${colours.face}`;
  context.fillStyle = colour;
  text(context, picture.priceText(row.level.price), (left + right) / 2, middle, "center");
  context.font = `400 12.5px ${colours.face}`;
  context.fillStyle = colours.ink;
  text(context, picture.sizeText(row.level.size), sell ? right + 8 : left - 8, middle, sell ? "left" : "right");

  // The empty half: how many orders make up the level, or the user's own size as a yellow tag, which no heading needs to name.
  context.font = `400 11px ${colours.face}`;
  context.fillStyle = colours.muted;
  const inward = sell ? left - 8 : right + 8;
  const align = sell ? "right" : "left";
  if (row.own === 0n) {
    text(context, `${row.level.orderCount}`, inward, middle, align);
  } else {
    context.font = `700 11px ${colours.face}`;
    const label = `◆ ${picture.sizeText(row.own)}`;
    const span = context.measureText(label).width + 10;
    context.fillStyle = colours.own;
    context.fillRect(sell ? left - span - 3 : right + 3, top + 2, span, ROW_PX - 4);
    context.fillStyle = colours.onOwn;
    text(context, label, inward, middle, align);
  }

  if (picture.chosen?.side === row.side && picture.chosen.price === row.level.price) {
    context.strokeStyle = colours.ink;
    context.lineWidth = 2;
    context.strokeRect(1, top + 1, width - 2, ROW_PX - 2);
  }
}

function text(context: CanvasRenderingContext2D, words: string, x: number, y: number, align: CanvasTextAlign): void {
  context.textAlign = align;
  context.fillText(words, x, y + 0.5);
}

function largest(values: bigint[]): bigint {
  return values.reduce((a, b) => (a > b ? a : b), 1n);
}

/** `part / whole` as a float between 0 and 1: pixels only. */
function share(part: bigint, whole: bigint): number {
  return Number((part * 10_000n) / whole) / 10_000;
}
