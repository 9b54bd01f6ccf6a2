// The watch list: the starred markets with their last prices and the day's changes, always in sight. One click opens a market.

import { type Instrument, pathSymbol } from "walras";
import { byId, h, hidden, setText } from "../base/dom.ts";
import { group, showChange } from "../base/format.ts";
import { favourites } from "../base/settings.ts";
import { atMostEvery } from "../base/signal.ts";
import type { Venue } from "../state/venue.ts";
import { t } from "../texts/index.ts";

const DRAW_EVERY_MS = 250;

interface Entry {
  instrument: Instrument;
  button: HTMLButtonElement;
  price: HTMLElement;
  change: HTMLElement;
}

export function watchView(venue: Venue, openMarkets: () => void): void {
  const words = t.watch;
  const list = h("ul.watched", { "aria-labelledby": "watch-title" });
  const empty = h("p.empty", {}, words.none);
  byId("watch-tools").append(h("button.plain", {
    type: "button", id: "watch-choose", title: words.chooseTitle, "aria-haspopup": "dialog", onclick: openMarkets,
  }, words.choose));
  byId("watch-body").append(list, empty);
  let entries: Entry[] = [];

  const draw = (): void => {
    for (const { instrument, button, price, change } of entries) {
      const last = venue.tickers.lastPrice(instrument);
      const ppm = venue.tickers.changePpm(instrument);
      setText(price, last === null ? "–" : group(last));
      setText(change, ppm === null ? "–" : showChange(ppm));
      change.classList.toggle("buy", ppm !== null && ppm > 0);
      change.classList.toggle("sell", ppm !== null && ppm < 0);
      if (instrument.symbol === venue.market.value?.symbol) button.setAttribute("aria-current", "true");
      else button.removeAttribute("aria-current");
    }
  };
  const make = (instrument: Instrument): Entry => {
    const { symbol } = instrument;
    const price = h("span");
    const change = h("span.change", { title: t.quote.changeTitle(t.quote.day) });
    const button = h("button", { type: "button", id: `watched-${pathSymbol(symbol)}`, onclick: () => {
      location.hash = pathSymbol(symbol);
    } }, h("b", {}, symbol), price, change, hidden(t.quote.today));
    return { instrument, button, price, change };
  };
  const listStarred = (): void => {
    const starred = favourites.value.flatMap((symbol) => venue.instrument(symbol) ?? []);
    // A phase that changes takes the focus from no button.
    if (starred.length !== entries.length || starred.some(({ symbol }, index) => symbol !== entries[index]?.instrument.symbol)) {
      entries = starred.map(make);
      list.replaceChildren(...entries.map(({ button }) => h("li", {}, button)));
    }
    list.hidden = entries.length === 0;
    // Until the venue has said what it trades, nothing is known of what is starred.
    empty.hidden = entries.length > 0 || venue.instruments.value.length === 0;
    draw();
  };
  favourites.watch(listStarred);
  venue.instruments.watch(listStarred);
  venue.market.watch(draw);
  venue.tickers.all.watch(atMostEvery(DRAW_EVERY_MS, draw));
  listStarred();
}
