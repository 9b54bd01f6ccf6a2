// The ways to look at the venue: the order books, the batches, fair access. The address's fragment says which, so each can be linked to.

import { byId, h, setText } from "../base/dom.ts";
import { Signal } from "../base/signal.ts";
import { slug, type Venue } from "../state/venue.ts";

export type View = "book" | "batch" | "fair";

export const BATCH_FRAGMENT = "batch";
export const FAIR_FRAGMENT = "fair";

const VIEWS: View[] = ["book", "batch", "fair"];
const WORDS: Record<View, { tab: string; motto: string; skip: string; skipWords: string }> = {
  book: {
    tab: "Order book", skip: "#ticket", skipWords: "Skip to the order ticket",
    motto: "One open order book: the best price trades first.",
  },
  batch: {
    tab: "Batch", skip: "#offer", skipWords: "Skip to your offer",
    motto: "All offers of a batch clear together, at one set of prices.",
  },
  fair: {
    tab: "Fair access", skip: "#fair-head", skipWords: "Skip to the delays",
    motto: "First at the venue's edge is first, and all see the market at once.",
  },
};

export const shownView = new Signal<View>("book");

/** Those that this venue has. */
export function viewsOf(venue: Venue): View[] {
  return VIEWS.filter((view) => view === "book" || (view === "batch" ? venue.desk.list.value.length > 0 : venue.fair.isOn.value));
}

/** The fragment that shows a view. */
export function fragmentOf(view: View, venue: Venue): string {
  return view === "batch" ? BATCH_FRAGMENT : view === "fair" ? FAIR_FRAGMENT : slug(venue.market.value?.symbol ?? "");
}

export function viewTabs(venue: Venue): void {
  const links = VIEWS.map((view) => ({ view, link: h("a", { href: `#${fragmentOf(view, venue)}`, id: `tab-${view}`, title: `${WORDS[view].tab} (V)` }, WORDS[view].tab) }));
  const nav = byId("views");
  nav.append(...links.map(({ link }) => link));
  const draw = (): void => {
    const shown = shownView.value;
    const views = viewsOf(venue);
    nav.hidden = views.length < 2;
    for (const { view, link } of links) {
      link.hidden = !views.includes(view);
      byId(`view-${view}`).hidden = view !== shown;
      if (view === shown) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    setText(byId("motto"), WORDS[shown].motto);
    const skip = byId<HTMLAnchorElement>("skip");
    skip.href = WORDS[shown].skip;
    setText(skip, WORDS[shown].skipWords);
    venue.desk.shown = shown === "batch";
    venue.fair.shown = shown === "fair";
  };
  shownView.watch(draw);
  venue.desk.list.watch(draw);
  venue.fair.isOn.watch(draw);
  venue.market.watch(() => {
    for (const { view, link } of links) link.href = `#${fragmentOf(view, venue)}`;
  });
  draw();
}
