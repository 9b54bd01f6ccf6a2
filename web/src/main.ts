// Start here: makes the model, hangs the views on it, loads the market. Every view reads the model and none knows another.

import { Backoff, type Key } from "walras";
import { takeKey } from "./api/key-store.ts";
import { byId } from "./base/dom.ts";
import { ungroup } from "./base/format.ts";
import type { Signal } from "./base/signal.ts";
import { FOLLOWED_MAX } from "./state/tickers.ts";
import { Venue } from "./state/venue.ts";
import { translateDocument } from "./texts/document.ts";
import { errorText } from "./texts/error-text.ts";
import { t } from "./texts/index.ts";
import { assetsView } from "./views/account/assets.ts";
import { accountHeadView } from "./views/account/head.ts";
import { orderHistoryView, tradeHistoryView } from "./views/account/histories.ts";
import { profitView } from "./views/account/profit.ts";
import { blocksView } from "./views/batch/blocks.ts";
import { curvesView } from "./views/batch/curves.ts";
import { batchHeadView } from "./views/batch/head.ts";
import { offerView } from "./views/batch/offer.ts";
import { cancelOffers, offerFillsView, offersView } from "./views/batch/offers.ts";
import { poolTicketView } from "./views/batch/pool-ticket.ts";
import { poolsShown, poolsView } from "./views/batch/pools.ts";
import { vectorView } from "./views/batch/vector.ts";
import { candlesView } from "./views/candles.ts";
import { depthView } from "./views/depth.ts";
import { helpDialog, keyDialog } from "./views/dialogs.ts";
import { delaysView } from "./views/fair/delays.ts";
import { gatewaysView } from "./views/fair/gateways.ts";
import { fairHeadView } from "./views/fair/head.ts";
import { stagesView } from "./views/fair/stages.ts";
import { fillsView, holdingsView } from "./views/holdings.ts";
import { ladderView } from "./views/ladder.ts";
import { marketsDialog } from "./views/markets.ts";
import { leavesView } from "./views/network/gateways.ts";
import { networkHeadView } from "./views/network/head.ts";
import { relaysView } from "./views/network/relays.ts";
import { treeView } from "./views/network/tree.ts";
import { noticesView } from "./views/notices.ts";
import { orderDialog } from "./views/order-detail.ts";
import { cancelEverything, ordersView } from "./views/orders.ts";
import { panelsView } from "./views/panels.ts";
import { quoteView } from "./views/quote.ts";
import { alertsDialog, settingsDialog } from "./views/settings.ts";
import { type ShortcutActions, startShortcuts } from "./views/shortcuts.ts";
import { tapeView } from "./views/tape.ts";
import { nextTheme, startTheme } from "./views/theme.ts";
import { ticketView } from "./views/ticket.ts";
import { venueBarView } from "./views/venue-bar.ts";
import {
  ACCOUNT_FRAGMENT, BATCH_FRAGMENT, FAIR_FRAGMENT, NETWORK_FRAGMENT, fragmentOf, shownView, viewsOf, viewTabs,
} from "./views/view-tabs.ts";
import { watchView } from "./views/watch.ts";

/** Longest that the page is kept from being seen half drawn. */
const REVEAL_MS_MAX = 1_500;
const LOOK_EVERY_MS = 50;

const venue = new Venue();
translateDocument();
startTheme();
noticesView(venue);

const openKey = keyDialog(venue);
const openHelp = helpDialog(venue);
const openMarkets = marketsDialog(venue);
const openOrder = orderDialog(venue);
venueBarView(venue, openKey, openHelp, settingsDialog(), alertsDialog(venue));
quoteView(venue, openMarkets);
candlesView(venue);
panelsView(depthView(venue));
watchView(venue, openMarkets);
const ticket = ticketView(venue, openKey);
const ladder = ladderView(venue, ticket.setPrice);
tapeView(venue);
ordersView(venue, openOrder);
fillsView(venue);
holdingsView(venue);
batchHeadView(venue);
vectorView(venue);
curvesView(venue);
blocksView(venue);
const offer = offerView(venue, openKey);
poolsView(venue, poolTicketView(venue, openKey));
offersView(venue);
offerFillsView(venue);
fairHeadView(venue);
delaysView(venue);
gatewaysView(venue);
stagesView(venue);
accountHeadView(venue, openKey);
assetsView(venue);
profitView(venue);
orderHistoryView(venue, openOrder);
tradeHistoryView(venue);
networkHeadView(venue);
treeView(venue);
relaysView(venue);
leavesView(venue);
viewTabs(venue);

const everywhere = { help: openHelp, theme: nextTheme, key: openKey, view: () => {
  const views = viewsOf(venue);
  const next = views[(views.indexOf(shownView.value) + 1) % views.length];
  if (next !== undefined && next !== shownView.value) goTo(fragmentOf(next, venue));
} };
const keys: Record<typeof shownView.value, ShortcutActions> = {
  book: {
    ...everywhere,
    buy: () => ticket.setSide("buy"),
    sell: () => ticket.setSide("sell"),
    price: () => ticket.focus("price"),
    size: () => ticket.focus("size"),
    book: () => ladder.focus(),
    orders: () => focusIn("orders"),
    instrument: openMarkets,
    cancelAll: () => void cancelEverything(venue),
  },
  batch: {
    ...everywhere,
    buy: () => toOffer("buy"),
    sell: () => toOffer("sell"),
    price: () => toOffer("limit"),
    size: () => toOffer("amount"),
    book: () => byId("components").querySelector<HTMLElement>("input:checked")?.focus(),
    orders: () => focusIn("offers"),
    instrument: () => byId("batch").focus(),
    cancelAll: () => void cancelOffers(venue),
  },
  account: { ...everywhere, instrument: () => byId("trades-search").focus() },
  fair: everywhere,
  network: everywhere,
};
startShortcuts(() => keys[shownView.value]);

useKeyOfAddress();
// An address pasted into an open tab, or going back in it, only changes the fragment: a key, a view, or an instrument.
addEventListener("hashchange", () => {
  if (location.hash.startsWith("#demo=")) useKeyOfAddress();
  else show(location.hash.slice(1));
});
// Only the venue's status says whether it has fair access.
venue.fair.isOn.watch(() => {
  if (location.hash === `#${FAIR_FRAGMENT}`) show(FAIR_FRAGMENT);
});
venue.network.isOn.watch(() => {
  if (location.hash === `#${NETWORK_FRAGMENT}`) show(NETWORK_FRAGMENT);
});
const preferred = location.hash.slice(1) || null;
revealWhenDrawn();
await start(preferred);
if (preferred !== null || venue.instruments.value.length === 0) show(preferred ?? BATCH_FRAGMENT);

/** The first button of a panel's table that does something, else the panel. */
function focusIn(panel: string): void {
  const buttons = [...byId(panel).querySelectorAll<HTMLElement>("td button:not(.name)")];
  (buttons.find((button) => button.checkVisibility()) ?? byId(panel)).focus();
}

/** Leads to the ticket for offers, also while pools are shown in its place. */
function toOffer(field: Parameters<typeof offer.focus>[0]): void {
  poolsShown.value = false;
  offer.focus(field);
}

function goTo(fragment: string): void {
  location.hash = fragment;
}

/** Shows what a fragment names: a view, or the order book of an instrument. Others, such as those of skip links, change nothing. */
function show(fragment: string): void {
  if (fragment === BATCH_FRAGMENT) {
    if (venue.desk.list.value.length > 0) shownView.value = "batch";
    return;
  }
  if (fragment === ACCOUNT_FRAGMENT) {
    shownView.value = "account";
    return;
  }
  if (fragment === NETWORK_FRAGMENT) {
    if (venue.network.isOn.value) shownView.value = "network";
    return;
  }
  if (fragment === FAIR_FRAGMENT) {
    if (venue.fair.isOn.value) shownView.value = "fair";
    return;
  }
  const named = venue.instrument(fragment);
  // Where nothing is traded yet, the order book has no name.
  if (fragment === "") shownView.value = "book";
  if (!named) return;
  if (named.symbol !== venue.market.value?.symbol) venue.choose(named.symbol);
  shownView.value = "book";
}

/** Shows the page once the first figures are drawn, or after a while in any case: then it says what it waits for. */
function revealWhenDrawn(): void {
  const reveal = (): void => document.documentElement.classList.remove("starting");
  const timer = setTimeout(() => {
    clearInterval(again);
    reveal();
  }, REVEAL_MS_MAX);
  const isThere = (): boolean => {
    const market = venue.market.value;
    const hasBook = market === null ? venue.desk.market.value !== null : market.book.isLive && market.ticker.value !== null;
    return venue.status.value !== null && hasBook && venue.account.state.value !== "signing_in" && isAccountThere() && areMachinesThere();
  };
  // What the account is worth hangs on more: its trades, and the prices of all markets.
  const isAccountThere = (): boolean => {
    const { account, desk, tickers, instruments } = venue;
    if (location.hash !== `#${ACCOUNT_FRAGMENT}` || account.state.value !== "signed_in") return true;
    const hasTickers = tickers.all.value.size >= Math.min(instruments.value.length, FOLLOWED_MAX);
    const hasPrices = hasTickers && (desk.list.value.length === 0 || desk.market.value?.last != null);
    const areTradesDrawn = ungroup(byId("account-trades").textContent ?? "") === String(account.fills.value.length);
    return account.hasPastFills.value && account.balances.value.size > 0 && hasPrices && areTradesDrawn;
  };
  // The figures of the machines are asked for once their view is shown, and that is known last.
  const areMachinesThere = (): boolean => {
    const { fair, network, status } = venue;
    const isAnswered = (desk: typeof fair | typeof network): boolean => desk.look.value !== null || desk.trouble.value !== null;
    if (location.hash === `#${FAIR_FRAGMENT}`) return status.value?.fair_access !== true || isAnswered(fair);
    if (location.hash === `#${NETWORK_FRAGMENT}`) return (network.isKnown && !network.isOn.value) || isAnswered(network);
    return true;
  };
  const again = setInterval(look, LOOK_EVERY_MS);
  const stops = [venue.status, venue.account.state, venue.desk.market].map((signal) => (signal as Signal<unknown>).watch(look));
  stops.push(venue.market.watch((market) => {
    if (market) stops.push(market.bookChanged.watch(look), market.ticker.watch(look));
  }));
  function look(): void {
    if (!isThere()) return;
    clearTimeout(timer);
    clearInterval(again);
    for (const stop of stops.splice(0)) stop();
    // Drawn in the next frame, laid out after it.
    requestAnimationFrame(() => requestAnimationFrame(reveal));
  }
}

function useKeyOfAddress(): void {
  let key: Key | null = null;
  try {
    key = takeKey();
  } catch (error) {
    venue.say({ tone: "bad", title: t.notices.keyInAddress, text: errorText(error) });
  }
  if (key) venue.setKey(key);
}

async function start(preferred: string | null): Promise<void> {
  const backoff = new Backoff();
  for (;;) {
    try {
      return await venue.start(preferred);
    } catch (error) {
      const waitMs = backoff.next();
      venue.connection.value = { state: "waiting", retryInMs: waitMs };
      if (waitMs > 4_000) venue.say({ tone: "bad", title: t.notices.silent, text: errorText(error) });
      await new Promise((resolve) => setTimeout(resolve, waitMs));
    }
  }
}
