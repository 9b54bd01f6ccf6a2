// Start here: makes the model, hangs the views on it, loads the market. Every view reads the model and none knows another.

import { takeKey } from "./api/key-store.ts";
import type { Key } from "./api/signing.ts";
import { Backoff } from "./api/backoff.ts";
import { byId } from "./base/dom.ts";
import { Venue } from "./state/venue.ts";
import { candlesView } from "./views/candles.ts";
import { depthView } from "./views/depth.ts";
import { helpDialog, keyDialog } from "./views/dialogs.ts";
import { fillsView, holdingsView } from "./views/holdings.ts";
import { ladderView } from "./views/ladder.ts";
import { noticesView } from "./views/notices.ts";
import { cancelEverything, ordersView } from "./views/orders.ts";
import { quoteView } from "./views/quote.ts";
import { startShortcuts } from "./views/shortcuts.ts";
import { tapeView } from "./views/tape.ts";
import { nextTheme, startTheme } from "./views/theme.ts";
import { ticketView } from "./views/ticket.ts";
import { venueBarView } from "./views/venue-bar.ts";

const venue = new Venue(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/v1/ws`);
startTheme();
noticesView(venue);

const openKey = keyDialog(venue);
const openHelp = helpDialog();
venueBarView(venue, openKey, openHelp);
quoteView(venue);
candlesView(venue);
depthView(venue);
const ticket = ticketView(venue, openKey);
const ladder = ladderView(venue, ticket.setPrice);
tapeView(venue);
ordersView(venue);
fillsView(venue);
holdingsView(venue);
startShortcuts({
  help: openHelp,
  buy: () => ticket.setSide("buy"),
  sell: () => ticket.setSide("sell"),
  price: () => ticket.focus("price"),
  size: () => ticket.focus("size"),
  book: () => ladder.focus(),
  orders: () => (byId("orders").querySelector<HTMLElement>("td button") ?? byId("orders")).focus(),
  instrument: () => byId("instrument").focus(),
  cancelAll: () => void cancelEverything(venue),
  theme: nextTheme,
  key: openKey,
});

useKeyOfAddress();
// An address pasted into an open tab, or going back in it, only changes the fragment: a key, or an instrument.
addEventListener("hashchange", () => {
  if (location.hash.startsWith("#demo=")) useKeyOfAddress();
  else {
    const named = venue.instrument(location.hash.slice(1));
    if (named && named.symbol !== venue.market.value?.symbol) venue.choose(named.symbol);
  }
});
await start(location.hash.slice(1) || null);

function useKeyOfAddress(): void {
  let key: Key | null = null;
  try {
    key = takeKey();
  } catch (error) {
    venue.say({ tone: "bad", title: "The key in the address is unusable", text: (error as Error).message });
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
      if (waitMs > 4_000) venue.say({ tone: "bad", title: "The venue does not answer", text: (error as Error).message });
      await new Promise((resolve) => setTimeout(resolve, waitMs));
    }
  }
}
