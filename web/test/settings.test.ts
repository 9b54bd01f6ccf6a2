import assert from "node:assert/strict";
import { test } from "node:test";

const kept = new Map<string, string>([["walras.sound", '"loud"'], ["walras.layout", '"ladder"']]);
Object.defineProperty(globalThis, "localStorage", {
  value: {
    getItem: (name: string) => kept.get(name) ?? null,
    setItem: (name: string, text: string) => {
      if (text.length > 20) throw new Error("it is full");
      kept.set(name, text);
    },
  },
});
const { flag, isText, layout, Setting, soundOn, texts } = await import("../src/base/settings.ts");

test("sound is off until it is chosen, and what is chosen is kept", () => {
  assert.equal(soundOn.value, false, "what nobody could have chosen is not taken");
  soundOn.value = true;
  assert.equal(kept.get("walras.sound"), "true");
  assert.equal(new Setting("sound", false, flag).value, true, "the next page has it");
  assert.equal(layout.value, "ladder");
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
