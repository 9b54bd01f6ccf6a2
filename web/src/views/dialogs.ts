// Two dialogs: whose key the page uses, and what the page is with its keyboard shortcuts.

import { parseKey } from "walras";
import { forgetKey, keepKey } from "../api/key-store.ts";
import { h, setText } from "../base/dom.ts";
import type { Venue } from "../state/venue.ts";
import { errorText } from "../texts/error-text.ts";
import { t } from "../texts/index.ts";
import { SHORTCUTS, shortcutsOn } from "./shortcuts.ts";

export function keyDialog(venue: Venue): () => void {
  const input = h("input", {
    type: "password", id: "key-input", autocomplete: "off", spellcheck: "false", "aria-describedby": "key-fault",
  });
  const fault = h("p.sell", { id: "key-fault", role: "alert" });
  const current = h("p.muted");
  const forget = h("button", { type: "button", id: "key-forget", onclick: () => {
    forgetKey();
    venue.setKey(null);
    dialog.close();
  } }, t.key.forget);
  const form = h("form", { method: "dialog" },
    h("h2", { id: "key-dialog-title" }, t.key.title),
    h("p", {}, t.key.words),
    current,
    h("label.field", { for: "key-input" }, t.key.field), input, fault,
    h("div.row", {}, h("button.primary", { type: "submit", id: "key-use" }, t.key.use), forget,
      h("button.plain", { type: "button", onclick: () => dialog.close() }, t.key.close)),
  );
  const dialog = h("dialog", { "aria-labelledby": "key-dialog-title" }, form);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    try {
      const key = parseKey(input.value);
      keepKey(key);
      venue.setKey(key);
      dialog.close();
    } catch (error) {
      setText(fault, errorText(error));
      input.setAttribute("aria-invalid", "true");
      input.focus();
    }
  });
  document.body.prepend(dialog);
  return () => {
    input.value = "";
    input.removeAttribute("aria-invalid");
    setText(fault, "");
    const { keyId } = venue.account;
    setText(current, keyId === "" ? t.key.none : t.key.inUse(keyId));
    forget.hidden = keyId === "";
    dialog.showModal();
    input.focus();
  };
}

export function helpDialog(venue: Venue): () => void {
  const words = t.help;
  const batches = h("p", {}, h("b", {}, words.batchName), words.batch);
  const fair = h("p", {}, h("b", {}, words.fairName), words.fair);
  const inBatches = SHORTCUTS.flatMap(({ keys, inBatch }) => (inBatch === undefined ? [] : [h("div", {}, h("kbd", {}, keys), inBatch)]));
  const batchKeys = h("div", {}, h("h3", {}, words.keyboardBatch), h("div.keys", {}, ...inBatches));
  const toggle = h("input", { type: "checkbox", id: "shortcuts-on", onchange: () => {
    shortcutsOn.value = toggle.checked;
  } });
  const dialog = h("dialog", { "aria-labelledby": "help-title", id: "help" },
    h("h2", { id: "help-title" }, words.title),
    h("p", {}, words.market),
    h("p", {}, h("b.buy", {}, words.demandName), words.demand, h("b.sell", {}, words.supplyName), words.supply),
    h("p", {}, words.log),
    batches,
    fair,
    h("h3", {}, words.keyboard),
    h("div.keys", {}, ...SHORTCUTS.map(({ keys, does }) => h("div", {}, h("kbd", {}, keys), does))),
    batchKeys,
    h("p", {}, h("label", {}, toggle, words.single, h("kbd", {}, "?"), words.singleEnd)),
    h("form", { method: "dialog" }, h("div.row", {}, h("button.primary", { type: "submit" }, words.close))),
  );
  document.body.prepend(dialog);
  return () => {
    toggle.checked = shortcutsOn.value;
    batches.hidden = batchKeys.hidden = venue.desk.list.value.length === 0;
    fair.hidden = !venue.fair.isOn.value;
    if (!dialog.open) dialog.showModal();
  };
}
