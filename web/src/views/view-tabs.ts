// Two ways to look at the venue: the order books, and the batches. The address's fragment says which, so each can be linked to.

import { byId, h, setText } from "../base/dom.ts";
import { Signal } from "../base/signal.ts";
import { slug, type Venue } from "../state/venue.ts";

export type View = "book" | "batch";

export const BATCH_FRAGMENT = "batch";

const WORDS: Record<View, { tab: string; motto: string; skip: string; skipWords: string }> = {
  book: {
    tab: "Order book", skip: "#ticket", skipWords: "Skip to the order ticket",
    motto: "A live exchange. Every offer to buy or sell stands in one open book; the best price trades first.",
  },
  batch: {
    tab: "Batch", skip: "#offer", skipWords: "Skip to your offer",
    motto: "All assets at once. The offers of a batch meet at one set of prices, and nobody is first.",
  },
};

export const shownView = new Signal<View>("book");

export function viewTabs(venue: Venue): void {
  const links = {
    book: h("a", { href: "#", id: "tab-book", title: "Order book (V)" }, WORDS.book.tab),
    batch: h("a", { href: `#${BATCH_FRAGMENT}`, id: "tab-batch", title: "Batch (V)" }, WORDS.batch.tab),
  };
  const nav = byId("views");
  nav.append(links.book, links.batch);
  const draw = (): void => {
    const view = shownView.value;
    nav.hidden = venue.desk.list.value.length === 0;
    for (const name of ["book", "batch"] as const) {
      byId(`view-${name}`).hidden = name !== view;
      if (name === view) links[name].setAttribute("aria-current", "page");
      else links[name].removeAttribute("aria-current");
    }
    setText(byId("motto"), WORDS[view].motto);
    const skip = byId<HTMLAnchorElement>("skip");
    skip.href = WORDS[view].skip;
    setText(skip, WORDS[view].skipWords);
    venue.desk.shown = view === "batch";
  };
  shownView.watch(draw);
  venue.desk.list.watch(draw);
  venue.market.watch((market) => {
    if (market) links.book.href = `#${slug(market.symbol)}`;
  });
  draw();
}
