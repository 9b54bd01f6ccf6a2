// The ways to look at the venue: the order books, the batches, fair access. The address's fragment says which, so each can be linked to.

import { pathSymbol } from "walras";
import { byId, h, setText } from "../base/dom.ts";
import { Signal } from "../base/signal.ts";
import type { Venue } from "../state/venue.ts";
import { t } from "../texts/index.ts";

export type View = "book" | "batch" | "account" | "fair" | "network";

export const BATCH_FRAGMENT = "batch";
export const FAIR_FRAGMENT = "fair";
export const ACCOUNT_FRAGMENT = "account";
export const NETWORK_FRAGMENT = "network";

const VIEWS: View[] = ["book", "batch", "account", "fair", "network"];
const WORDS: Record<View, { tab: string; motto: string; skip: string }> = t.views;
/** What the link at the top of the page skips to. */
const SKIPS: Record<View, string> = {
  book: "#ticket",
  batch: "#offer",
  account: "#account-head",
  fair: "#fair-head",
  network: "#network-head",
};

export const shownView = new Signal<View>("book");

/** Those that this venue has. */
export function viewsOf(venue: Venue): View[] {
  const { desk, fair, network } = venue;
  const has: Record<View, boolean> = {
    book: true, batch: desk.list.value.length > 0, account: true, fair: fair.isOn.value, network: network.isOn.value,
  };
  return VIEWS.filter((view) => has[view]);
}

/** The fragment that shows a view. */
export function fragmentOf(view: View, venue: Venue): string {
  const fragments: Record<View, string> = {
    book: pathSymbol(venue.market.value?.symbol ?? ""),
    batch: BATCH_FRAGMENT, account: ACCOUNT_FRAGMENT, fair: FAIR_FRAGMENT, network: NETWORK_FRAGMENT,
  };
  return fragments[view];
}

export function viewTabs(venue: Venue): void {
  const links = VIEWS.map((view) => {
    const { tab } = WORDS[view];
    return { view, link: h("a", { href: `#${fragmentOf(view, venue)}`, id: `tab-${view}`, title: `${tab} (V)` }, tab) };
  });
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
    skip.href = SKIPS[shown];
    setText(skip, WORDS[shown].skip);
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
