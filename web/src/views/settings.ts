// Two dialogs: what the user chose of how the page looks and asks, and the price alerts.

import { parseUnits } from "walras";
import { h, setText } from "../base/dom.ts";
import { group, ungroup } from "../base/format.ts";
import { confirmations, hiddenPanels, layout, type Panel, PANELS, panelSizes, type Setting, soundOn, timeZone } from "../base/settings.ts";
import { addAlert, type Alert, alerts, ALERTS_MAX, reached, removeAlert } from "../state/alerts.ts";
import type { Venue } from "../state/venue.ts";
import { errorText } from "../texts/error-text.ts";
import { t } from "../texts/index.ts";
import { LANGUAGE_NAMES, type Language, languageChoice, LANGUAGES, preferredOf } from "../texts/language.ts";
import { playTone } from "./tone.ts";

/** Opens the settings. */
export function settingsDialog(): () => void {
  const words = t.settings;
  const choice = <T extends string>(
    setting: Setting<T>, id: string, label: string, options: [T, string][], reload = false,
  ): HTMLElement => {
    const select = h("select", { id, onchange: () => {
      setting.value = select.value as T;
      if (reload) location.reload();
    } }, ...options.map(([value, text]) => h("option", { value, selected: value === setting.value }, text)));
    setting.watch((value) => {
      select.value = value;
    });
    return h("div.setting", {}, h("label", { for: id }, label), select);
  };
  const sound = h("input", { type: "checkbox", id: "setting-sound", checked: soundOn.value, onchange: () => {
    soundOn.value = sound.checked;
    if (sound.checked) playTone();
  } });
  const hideUnchecked = (): void => {
    hiddenPanels.value = PANELS.filter((_, index) => boxes[index]?.checked === false);
  };
  const boxes: HTMLInputElement[] = PANELS.map((panel) =>
    h("input", { type: "checkbox", id: `show-${panel}`, value: panel, onchange: hideUnchecked }));
  const drawBoxes = (): void => {
    for (const box of boxes) box.checked = !hiddenPanels.value.includes(box.value as Panel);
  };
  hiddenPanels.watch(drawBoxes);
  drawBoxes();
  const panels = h("div.checks", { role: "group", "aria-labelledby": "setting-panels" },
    ...PANELS.map((panel, index) => h("label", {}, boxes[index], t.headings[`${panel}-title` as const])));
  const reset = h("button", { type: "button", id: "layout-reset", onclick: () => {
    layout.reset();
    hiddenPanels.reset();
    panelSizes.reset();
  } }, words.layoutReset);
  const dialog = h("dialog", { id: "settings", "aria-labelledby": "settings-title" },
    h("h2", { id: "settings-title" }, words.title),
    choice<Language | "auto">(languageChoice, "setting-language", words.language, [
      ["auto", words.languageAuto(LANGUAGE_NAMES[preferredOf(navigator.languages)])],
      ...LANGUAGES.map((each): [Language, string] => [each, LANGUAGE_NAMES[each]]),
    ], true),
    choice(timeZone, "setting-times", words.times, [["utc", words.utc], ["local", words.local]], true),
    choice(confirmations, "setting-confirm", words.confirm, [
      ["far", words.confirmFar], ["all", words.confirmAll], ["off", words.confirmOff],
    ]),
    choice(layout, "setting-layout", words.layout, [
      ["standard", words.layoutStandard], ["chart", words.layoutChart], ["book", words.layoutBook],
    ]),
    h("div.setting", {}, h("span", { id: "setting-panels" }, words.panels), panels),
    h("div.setting", {}, h("span", {}, words.sound), h("label.check", {}, sound, ` ${words.soundWords}`)),
    h("p.muted.small", {}, words.kept),
    h("form", { method: "dialog" }, h("div.row", {}, h("button.primary", { type: "submit" }, words.close), reset)));
  document.body.prepend(dialog);
  return () => {
    if (!dialog.open) dialog.showModal();
  };
}

export function alertWords({ symbol, price, when }: Alert): string {
  return when === "rises" ? t.alerts.rises(symbol, group(price)) : t.alerts.falls(symbol, group(price));
}

/** Opens the alerts; tells those that are reached. */
export function alertsDialog(venue: Venue): () => void {
  const words = t.alerts;
  const select = h("select", { id: "alert-instrument" });
  const price = h("input", {
    type: "text", id: "alert-price", inputmode: "decimal", autocomplete: "off", "aria-describedby": "alert-fault",
  });
  const fault = h("p.sell", { id: "alert-fault", role: "alert" });
  const list = h("ul.alerts", { id: "alerts-list" });
  const form = h("form", {},
    h("div.setting", {}, h("label", { for: "alert-instrument" }, words.instrument), select),
    h("div.setting", {}, h("label", { for: "alert-price" }, words.price), price),
    fault,
    h("div.row", {},
      h("button.primary", { type: "submit", id: "alert-add" }, words.add),
      h("button.plain", { type: "button", onclick: () => dialog.close() }, t.settings.close)));
  const dialog = h("dialog", { id: "alerts", "aria-labelledby": "alerts-title" },
    h("h2", { id: "alerts-title" }, words.title), h("p", {}, words.words), list, form);
  document.body.prepend(dialog);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const units = venue.units(select.value);
    if (!units) return;
    const text = ungroup(price.value);
    try {
      parseUnits(text, units.priceDecimals);
      const wrong = addAlert(select.value, text, venue.tickers.lastPrice(units.instrument));
      setText(fault, wrong === null ? "" : { none: words.noPrice, there: words.there, many: words.many(String(ALERTS_MAX)) }[wrong]);
      if (wrong === null) price.value = "";
    } catch (error) {
      setText(fault, errorText(error));
    }
    price.focus();
  });
  const draw = (): void => {
    const lines = alerts.value.map((alert) => {
      const said = alertWords(alert);
      const remove = (): void => removeAlert(alert);
      return h("li", {}, said, h("button", { type: "button", "aria-label": words.remove(said), onclick: remove }, words.removeShort));
    });
    list.replaceChildren(...(lines.length === 0 ? [h("li.muted", {}, words.none)] : lines));
  };
  alerts.watch(draw);
  venue.tickers.all.watch((all) => {
    if (alerts.value.length === 0) return;
    for (const [symbol, { last_price: last }] of all) {
      if (last === null) continue;
      for (const alert of reached(symbol, last)) {
        venue.say({ tone: "good", title: words.reached, text: words.reachedText(alertWords(alert), group(last)) });
        if (soundOn.value) playTone();
      }
    }
  });
  venue.filled.watch((fills) => {
    if (soundOn.value && fills.length > 0) playTone();
  });
  draw();
  return () => {
    const symbols = venue.instruments.value.map(({ symbol }) => symbol);
    const open = venue.market.value?.symbol;
    select.replaceChildren(...symbols.map((symbol) => h("option", { value: symbol, selected: symbol === open }, symbol)));
    setText(fault, "");
    if (!dialog.open) dialog.showModal();
    price.focus();
  };
}
