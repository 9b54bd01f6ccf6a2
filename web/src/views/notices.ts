// What happens without being looked at: notices in the corner for the eye, a live region for screen readers.

import { trimZeros } from "../base/decimal.ts";
import { byId, h, setText } from "../base/dom.ts";
import { group } from "../base/format.ts";
import { describeFill } from "../state/offer-outcome.ts";
import type { Said } from "../state/outcome.ts";
import type { Venue } from "../state/venue.ts";
import { t } from "../texts/index.ts";
import { shownView } from "./view-tabs.ts";

const GOOD_STAYS_MS = 6_000;
const BAD_STAYS_MS = 20_000;
const SHOWN_MAX = 3;

export function noticesView(venue: Venue): void {
  const host = byId("notices");
  const live = byId("live-polite");
  const show = (notice: Said): void => {
    const box = h("div.notice", { role: notice.tone === "bad" ? "alert" : null, "data-tone": notice.tone },
      h("b", {}, notice.title), notice.text,
      h("button.icon", { type: "button", "aria-label": t.notices.dismiss, onclick: () => box.remove() }, "×"));
    host.append(box);
    while (host.children.length > SHOWN_MAX) host.firstElementChild?.remove();
    setTimeout(() => box.remove(), notice.tone === "bad" ? BAD_STAYS_MS : GOOD_STAYS_MS);
  };
  venue.notice.watch((notice) => {
    if (notice) show(notice);
  });
  venue.filled.watch((fills) => {
    const [first] = fills;
    if (!first) return;
    const rest = fills.length > 1 ? t.outcome.andMore(fills.length - 1) : "";
    const traded = first.side === "buy" ? t.outcome.boughtAt : t.outcome.soldAt;
    const text = `${traded(group(trimZeros(first.size)), first.instrument, group(first.price))}${rest}`;
    setText(live, text);
    // One's own incoming order is answered in the ticket already.
    if (fills.some((fill) => fill.role !== "taker")) show({ tone: "good", title: t.notices.orderTraded, text: `${text}.` });
  });
  venue.desk.filled.watch((fills) => {
    const [first] = fills;
    if (!first) return;
    const text = `${describeFill(first)}${fills.length > 1 ? t.offers.andMore(fills.length - 1) : ""}.`;
    setText(live, text);
    // The batch view lists one's trades and answers in its ticket.
    if (shownView.value !== "batch") show({ tone: "good", title: t.notices.offerTraded, text });
  });
  venue.connection.watch(({ state }) => {
    if (state === "waiting") setText(live, t.notices.lost);
    if (state === "live") setText(live, t.notices.connected);
  });
}
