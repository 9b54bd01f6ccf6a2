// In the fake book: linked orders, where one cancels the other; and orders with exits, which are held until their entry trades and are then
// as large as its filled size.

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

/** Cancels the partners of linked orders that have traded. */
export function cancelPartners(book: FakeBook, trades: FakeTrade[]): void {
  for (const order of new Set(trades.flatMap(({ maker, taker }) => [maker, taker]))) {
    const other = order.linked;
    if (other === undefined) continue;
    delete order.linked;
    delete other.linked;
    book.cancel(other);
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
