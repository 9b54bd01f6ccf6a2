// The right end of the masthead: connection, log position, demo progress, whose key, theme, help.

import { byId, h, setText, svg } from "../base/dom.ts";
import { group, signed } from "../base/format.ts";
import { oncePerFrame } from "../base/signal.ts";
import type { Venue } from "../state/venue.ts";
import { t } from "../texts/index.ts";
import { nextTheme, themeChoice } from "./theme.ts";

export function venueBarView(
  venue: Venue, openKey: () => void, openHelp: () => void, openSettings: () => void, openAlerts: () => void,
): void {
  const link = h("span.fact.link-state", { id: "connection", role: "status" });
  const log = h("b", { id: "log-index" }, "–");
  const logFact = h("span.fact.muted", { title: t.bar.logTitle }, t.bar.log, log);
  const progress = h("progress", { max: 1000, value: 0, "aria-label": t.bar.demoProgress });
  const demoText = h("span", { id: "demo-words" });
  const demo = h("span.demo.muted", { hidden: true }, demoText, progress);
  const storage = h("span.fact.sell", { role: "alert", hidden: true }, t.bar.storageFull);
  const key = h("button", { type: "button", id: "key-button", onclick: openKey });
  const theme = h("button", { type: "button", id: "theme-button", onclick: nextTheme });
  const help = h("button.icon", { type: "button", id: "help-button", "aria-label": t.bar.help, onclick: openHelp }, "?");
  const bell = h("button.icon", {
    type: "button", id: "alerts-button", title: t.alerts.title, "aria-label": t.alerts.button, onclick: openAlerts,
  }, mark("M8 2a4 4 0 0 0-4 4v3l-1.5 2.5h11L12 9V6a4 4 0 0 0-4-4zM6.5 13a1.5 1.5 0 0 0 3 0"));
  const settings = h("button.icon", {
    type: "button", id: "settings-button", title: t.settings.title, "aria-label": t.settings.button, onclick: openSettings,
  }, mark("M2 4.5h7M13 4.5h1M2 11.5h1M7 11.5h7M11 2.5v4M5 9.5v4"));
  byId("venue-bar").append(link, storage, demo, logFact, h("span.tools", {}, key, theme, bell, settings, help));

  const drawLink = (): void => {
    const { state, retryInMs } = venue.connection.value;
    link.dataset["state"] = state;
    const seconds = Math.max(1, Math.round(retryInMs / 1000));
    const ready = venue.status.value?.ready ?? true;
    setText(
      link,
      state === "live"
        ? ready
          ? t.bar.live
          : t.bar.starting
        : state === "connecting"
          ? t.bar.connecting
          : t.bar.lost(String(seconds)),
    );
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
      setText(demoText, done ? t.bar.demoOver : t.bar.demoDay(pace(status.demo.speed)));
      demo.title = t.bar.demoTitle(status.demo.source, signed((status.demo.progress_permille / 10).toFixed(1)));
    }
    setText(byId("build-line"), `${status.venue} · Walras ${status.version}${status.commit ? ` · ${status.commit.slice(0, 12)}` : ""}`);
  });
  const drawKey = (): void => {
    const { state } = venue.account;
    const text = {
      no_key: t.bar.noKey,
      signing_in: t.bar.signingIn,
      signed_in: t.bar.key(shortened(venue.account.keyId)),
      refused: t.bar.keyRefused,
    }[state.value];
    setText(key, text);
    key.title = venue.account.keyId === "" ? t.bar.keyTitle : t.bar.keyTitleOf(venue.account.keyId);
  };
  const drawTheme = (): void => {
    setText(theme, t.bar.themes[themeChoice.value]);
    theme.setAttribute("aria-label", t.bar.themeLabel(t.bar.themeNames[themeChoice.value]));
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
  return speed === "max" ? t.bar.fullSpeed : `×${signed(speed.replace(/x$/, ""))}`;
}

/** A line drawing, 16 by 16. */
function mark(path: string): SVGSVGElement {
  return svg("svg", { viewBox: "0 0 16 16", class: "icon-mark", "aria-hidden": "true" }, svg("path", { d: path }));
}

/** Ids of real keys are long; the whole one is in the button's title. */
function shortened(keyId: string): string {
  return keyId.length > 7 ? `${keyId.slice(0, 6)}…` : keyId;
}
