import assert from "node:assert/strict";
import { test } from "node:test";

const kept = new Map<string, string>([
  ["walras.sound", '"loud"'], ["walras.layout", '"sideways"'], ["walras.hidden-panels", '["tape","book","watch",7]'],
  ["walras.panel-sizes", '{"standard.wide.book":400,"standard.wide.ticket":300}'],
]);
Object.defineProperty(globalThis, "localStorage", {
  value: {
    getItem: (name: string) => kept.get(name) ?? null,
    setItem: (name: string, text: string) => {
      if (text.length > 20) throw new Error("it is full");
      kept.set(name, text);
    },
  },
});
const listeners: ((event: { key: string | null }) => void)[] = [];
Object.defineProperty(globalThis, "addEventListener", {
  value: (_: string, listener: (typeof listeners)[number]) => void listeners.push(listener),
});
const {
  flag, hiddenPanels, isText, layout, oneOf, panelSizes, Setting, SharedSetting, soundOn, texts,
} = await import("../src/base/settings.ts");

test("sound is off until it is chosen, and what is chosen is kept", () => {
  assert.equal(soundOn.value, false, "what nobody could have chosen is not taken");
  soundOn.value = true;
  assert.equal(kept.get("walras.sound"), "true");
  assert.equal(new Setting("sound", false, flag).value, true, "the next page has it");
});

test("an arrangement that there is not is not taken, and of hidden panels and sizes only those that can be chosen", () => {
  assert.equal(layout.value, "standard");
  assert.deepEqual(hiddenPanels.value, ["watch", "tape"]);
  assert.deepEqual(panelSizes.value, { "standard.wide.book": 400 });
});

test("what is chosen of the layout is kept, and reset to what it was first", () => {
  layout.value = "book";
  hiddenPanels.value = ["depth"];
  assert.deepEqual([kept.get("walras.layout"), kept.get("walras.hidden-panels")], ['"book"', '["depth"]']);
  assert.equal(new Setting<string>("layout", "standard", oneOf("standard", "chart", "book")).value, "book", "the next page has it");
  layout.reset();
  hiddenPanels.reset();
  panelSizes.reset();
  assert.deepEqual([layout.value, hiddenPanels.value, panelSizes.value], ["standard", [], {}]);
  assert.equal(kept.get("walras.panel-sizes"), "{}");
  assert.deepEqual([kept.get("walras.layout"), kept.get("walras.hidden-panels")], ['"standard"', "[]"]);
});

test("what cannot be read or kept holds until the page is closed", () => {
  kept.set("walras.broken", "{");
  const broken = new Setting("broken", "as before", (value) => (isText(value) ? value : null));
  assert.equal(broken.value, "as before");
  const favourites = new Setting<string[]>("favourites", [], texts);
  favourites.value = ["BTC/USD", "ETH/USD", "SOL/USD"];
  assert.equal(favourites.value.length, 3);
  assert.equal(kept.get("walras.favourites"), undefined);
});

test("a shared list takes over what another tab has kept, and the next choice adds to that", () => {
  const list = new SharedSetting<string[]>("list", [], texts);
  list.value = ["A"];
  kept.set("walras.list", '["A","B"]');
  const hear = (key: string | null): void => listeners.forEach((listener) => listener({ key }));
  hear("walras.other");
  assert.deepEqual(list.value, ["A"], "other news are not its own");
  hear("walras.list");
  list.value = [...list.value, "C"];
  assert.equal(kept.get("walras.list"), '["A","B","C"]');
  kept.delete("walras.list");
  hear(null);
  assert.deepEqual(list.value, [], "the browser was made to forget");
});
