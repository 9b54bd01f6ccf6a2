// The right end of the masthead: connection, log position, demo progress, whose key, theme, help.

import { byId, h, setText, svg } from "../base/dom.ts";
import { group } from "../base/format.ts";
import { oncePerFrame } from "../base/signal.ts";
import type { Venue } from "../state/venue.ts";
import { t } from "../texts/index.ts";
import { nextTheme, themeChoice } from "./theme.ts";

export function venueBarView(venue: Venue, openKey: () => void, openHelp: () => void, openSettings: () => void, openAlerts: () => void): void {
  const link = h("span.fact.link-state", { id: "connection", role: "status" });
  const log = h("b", { id: "log-index" }, "–");
  const logFact = h("span.fact.muted", { title: "Position in the venue's log: every change of the market is one entry, in order" }, "Log № ", log);
  const progress = h("progress", { max: 1000, value: 0, "aria-label": "Demo progress" });
  const demoText = h("span", { id: "demo-words" });
  const demo = h("span.demo.muted", { hidden: true }, demoText, progress);
  const storage = h("span.fact.sell", { role: "alert", hidden: true }, "Storage full: the venue takes no orders");
  const key = h("button", { type: "button", id: "key-button", onclick: openKey });
  const theme = h("button", { type: "button", id: "theme-button", onclick: nextTheme });
  const help = h("button.icon", { type: "button", id: "help-button", "aria-label": "Help and keyboard shortcuts", onclick: openHelp }, "?");
  const bell = h("button.icon", { type: "button", id: "alerts-button", title: t.alerts.title, "aria-label": t.alerts.button, onclick: openAlerts }, mark("M8 2a4 4 0 0 0-4 4v3l-1.5 2.5h11L12 9V6a4 4 0 0 0-4-4zM6.5 13a1.5 1.5 0 0 0 3 0"));
  const settings = h("button.icon", { type: "button", id: "settings-button", title: t.settings.title, "aria-label": t.settings.button, onclick: openSettings },
    mark("M2 4.5h7M13 4.5h1M2 11.5h1M7 11.5h7M11 2.5v4M5 9.5v4"));
  byId("venue-bar").append(link, storage, demo, logFact, h("span.tools", {}, key, theme, bell, settings, help));

  const drawLink = (): void => {
    const { state, retryInMs } = venue.connection.value;
    link.dataset["state"] = state;
    const seconds = Math.max(1, Math.round(retryInMs / 1000));
    const ready = venue.status.value?.ready ?? true;
    setText(link, state === "live" ? (ready ? "Live" : "Live, the venue is starting") : state === "connecting" ? "Connecting" : `Connection lost, next try in ${seconds} s`);
  };
  const drawStatus = oncePerFrame(() => {
    const status = venue.status.value;
    if (!status) return;
    drawLink();
    setText(log, group(status.log_index));
    storage.hidden = status.storage !== "full";
    demo.hidden = status.demo === null;
    if (status.demo) {
      progress.value = status.demo.progress_permille;
      const done = status.demo.progress_permille >= 1000;
      setText(demoText, done ? "Demo day over" : `Demo day ${pace(status.demo.speed)}`);
      demo.title = `Replaying ${status.demo.source}: ${(status.demo.progress_permille / 10).toFixed(1)} % done`;
    }
    setText(byId("build-line"), `${status.venue} · Walras ${status.version}${status.commit ? ` · ${status.commit.slice(0, 12)}` : ""}`);
  });
  const drawKey = (): void => {
    const { state } = venue.account;
    const text = { no_key: "Use a key", signing_in: "Signing in", signed_in: `Key ${venue.account.keyId}`, refused: "Key refused" }[state.value];
    setText(key, text);
    key.title = venue.account.keyId === "" ? "The API key this page trades with" : `The API key this page trades with: ${venue.account.keyId}`;
  };
  const drawTheme = (): void => {
    setText(theme, { system: "◐ Auto", light: "○ Light", dark: "● Dark" }[themeChoice.value]);
    theme.setAttribute("aria-label", `Colours: ${themeChoice.value}. Change`);
  };
  venue.connection.watch(drawLink);
  venue.status.watch(drawStatus);
  venue.account.state.watch(drawKey);
  themeChoice.watch(drawTheme);
  drawLink();
  drawKey();
  drawTheme();
}

/** "10x" is "×10". */
function pace(speed: string): string {
  return speed === "max" ? "at full speed" : `×${speed.replace(/x$/, "")}`;
}

/** A line drawing, 16 by 16. */
function mark(path: string): SVGSVGElement {
  return svg("svg", { viewBox: "0 0 16 16", class: "icon-mark", "aria-hidden": "true" }, svg("path", { d: path }));
}
