// Two dialogs: whose key the page uses, and what the page is with its keyboard shortcuts.

import { forgetKey, keepKey } from "../api/key-store.ts";
import { parseKey } from "../api/signing.ts";
import { h, setText } from "../base/dom.ts";
import type { Venue } from "../state/venue.ts";
import { SHORTCUTS, shortcutsOn } from "./shortcuts.ts";

export function keyDialog(venue: Venue): () => void {
  const input = h("input", { type: "password", id: "key-input", autocomplete: "off", spellcheck: "false", "aria-describedby": "key-fault" });
  const fault = h("p.sell", { id: "key-fault", role: "alert" });
  const current = h("p.muted");
  const forget = h("button", { type: "button", id: "key-forget", onclick: () => {
    forgetKey();
    venue.setKey(null);
    dialog.close();
  } }, "Forget the key");
  const form = h("form", { method: "dialog" },
    h("h2", { id: "key-dialog-title" }, "API key"),
    h("p", {}, "The page signs every session with this key. It is kept in this tab only, until you close it, and the secret is never sent."),
    current,
    h("label.field", { for: "key-input" }, "Key"), input, fault,
    h("div.row", {}, h("button.primary", { type: "submit", id: "key-use" }, "Use this key"), forget,
      h("button.plain", { type: "button", onclick: () => dialog.close() }, "Close")),
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
      setText(fault, (error as Error).message);
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
    setText(current, keyId === "" ? "No key in use. The demo prints an address that carries one; paste it here if you opened the page without." : `In use: ${keyId}`);
    forget.hidden = keyId === "";
    dialog.showModal();
    input.focus();
  };
}

export function helpDialog(venue: Venue): () => void {
  const batches = h("p", {}, h("b", {}, "In a batch"), " nobody is first. Offers to sell one asset for another are collected for a moment, then one price for each asset is found at which as much is bought of each as is sold, and all who accept those prices trade at once. An offer is signed by its account, in this browser.");
  const fair = h("p", {}, h("b", {}, "Fair access"), " takes away what being near gives. Orders are stamped at the gateway that they reach, and held for a moment, d_s, so that one with an earlier stamp can still come first; market data is held, d_h, so that all replicas show it at the same instant.");
  const batchKeys = h("div", {}, h("h3", {}, "Keyboard, in the batch view"),
    h("div.keys", {}, ...SHORTCUTS.flatMap(({ keys, inBatch }) => (inBatch === undefined ? [] : [h("div", {}, h("kbd", {}, keys), inBatch)]))));
  const toggle = h("input", { type: "checkbox", id: "shortcuts-on", onchange: () => {
    shortcutsOn.value = toggle.checked;
  } });
  const dialog = h("dialog", { "aria-labelledby": "help-title", id: "help" },
    h("h2", { id: "help-title" }, "What you are looking at"),
    h("p", {}, "A market where anyone with a key may offer to buy or sell. An offer that meets another trades at once, at the price that stood first; one that meets none waits in the book until somebody takes it, or its owner cancels it."),
    h("p", {}, h("b.buy", {}, "Blue is demand"), ": bids, what buyers want, on the left. ", h("b.sell", {}, "Vermilion is supply"), ": asks, what sellers offer, on the right. Yellow is yours. The price is where the two meet."),
    h("p", {}, "Every change has a number in the venue's log; the number at the top counts them. Times are UTC."),
    batches,
    fair,
    h("h3", {}, "Keyboard"),
    h("div.keys", {}, ...SHORTCUTS.map(({ keys, does }) => h("div", {}, h("kbd", {}, keys), does))),
    batchKeys,
    h("p", {}, h("label", {}, toggle, " Single-key shortcuts are on (", h("kbd", {}, "?"), " always works)")),
    h("form", { method: "dialog" }, h("div.row", {}, h("button.primary", { type: "submit" }, "Close"))),
  );
  document.body.prepend(dialog);
  return () => {
    toggle.checked = shortcutsOn.value;
    batches.hidden = batchKeys.hidden = venue.desk.list.value.length === 0;
    fair.hidden = !venue.fair.isOn.value;
    if (!dialog.open) dialog.showModal();
  };
}
