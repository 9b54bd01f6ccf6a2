// Orders with exits in the fake book: held until their entry trades, then as large as what it has filled.

import type { FakeBook, FakeOrder, FakeTrade } from "./matching.ts";

function exitsOf(book: FakeBook, entry: FakeOrder): FakeOrder[] {
  return book.stops.filter(({ account, exitOf }) => account === entry.account && exitOf === entry.clientOrderId);
}

/** The exits of the orders that traded follow what is filled. */
export function releaseExits(book: FakeBook, trades: FakeTrade[]): void {
  for (const entry of new Set(trades.flatMap(({ maker, taker }) => [maker, taker]))) {
    const exits = exitsOf(book, entry);
    const [one, other] = exits;
    if (one && other) [one.linked, other.linked] = [other, one];
    for (const exit of exits) {
      exit.isHeld = false;
      exit.open = entry.filled ?? 0n;
      book.onOrder(exit, "waiting_trigger");
    }
    if (entry.open === 0n) freeExits(book, entry);
  }
}

/** The entry is gone: what stands for something stays, and what is held goes. */
export function freeExits(book: FakeBook, entry: FakeOrder): void {
  for (const exit of exitsOf(book, entry)) {
    delete exit.exitOf;
    if (exit.isHeld === true) book.cancel(exit);
  }
}

/** An order that left, or was triggered, takes what is linked with it along. */
export function cancelBracket(book: FakeBook, gone: FakeOrder): void {
  const { exitOf, linked } = gone;
  delete gone.exitOf;
  delete gone.linked;
  freeExits(book, gone);
  if (linked !== undefined) {
    delete linked.linked;
    delete linked.exitOf;
    book.cancel(linked);
  }
  const entry = exitOf === undefined ? undefined : book.find(gone.account, exitOf);
  if (entry) book.cancel(entry);
}
