// The ways to look at the venue: the order books, the batches, fair access. The address's fragment says which, so each can be linked to.

import { byId, h, setText } from "../base/dom.ts";
import { Signal } from "../base/signal.ts";
import { slug, type Venue } from "../state/venue.ts";
import { t } from "../texts/index.ts";

export type View = "book" | "batch" | "account" | "fair" | "network";

export const BATCH_FRAGMENT = "batch";
export const FAIR_FRAGMENT = "fair";
export const ACCOUNT_FRAGMENT = "account";
export const NETWORK_FRAGMENT = "network";

const VIEWS: View[] = ["book", "batch", "account", "fair", "network"];
const WORDS: Record<View, { tab: string; motto: string; skip: string; skipWords: string }> = {
  book: {
    tab: "Order book", skip: "#ticket", skipWords: "Skip to the order ticket",
    motto: "One open order book: the best price trades first.",
  },
  batch: {
    tab: "Batch", skip: "#offer", skipWords: "Skip to your offer",
    motto: "All offers of a batch clear together, at one set of prices.",
  },
  network: { tab: t.network.tab, skip: "#network-head", skipWords: t.network.skip, motto: t.network.motto },
  account: { tab: t.account.tab, skip: "#account-head", skipWords: t.account.skip, motto: t.account.motto },
  fair: {
    tab: "Fair access", skip: "#fair-head", skipWords: "Skip to the delays",
    motto: "First at the venue's edge is first, and all see the market at once.",
  },
};

export const shownView = new Signal<View>("book");

/** Those that this venue has. */
export function viewsOf(venue: Venue): View[] {
  const has: Record<View, boolean> = { book: true, batch: venue.desk.list.value.length > 0, account: true, fair: venue.fair.isOn.value, network: venue.network.isOn.value };
  return VIEWS.filter((view) => has[view]);
}

/** The fragment that shows a view. */
export function fragmentOf(view: View, venue: Venue): string {
  const fragments: Record<View, string> = { book: slug(venue.market.value?.symbol ?? ""), batch: BATCH_FRAGMENT, account: ACCOUNT_FRAGMENT, fair: FAIR_FRAGMENT, network: NETWORK_FRAGMENT };
  return fragments[view];
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
    // What the account is worth follows the prices of batches too.
    venue.desk.shown = shown === "batch" || shown === "account";
    venue.fair.shown = shown === "fair";
    venue.network.shown = shown === "network";
  };
  shownView.watch(draw);
  venue.desk.list.watch(draw);
  venue.fair.isOn.watch(draw);
  venue.network.isOn.watch(draw);
  venue.market.watch(() => {
    for (const { view, link } of links) link.href = `#${fragmentOf(view, venue)}`;
  });
  draw();
}
