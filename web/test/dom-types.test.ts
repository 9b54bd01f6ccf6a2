// What the compiler must refuse: each line below fails `npm run check` if its mistake ever passes. Nothing here runs.

import assert from "node:assert/strict";
import test from "node:test";
import { h } from "../src/base/dom.ts";

/** Never called: it is read by the compiler only. */
export function mistakes(): void {
  // @ts-expect-error An event that no element has.
  h("button", { onclik: () => {} });
  // @ts-expect-error A misspelt attribute.
  h("input", { "aria-lable": "Price" });
  // @ts-expect-error A tag that does not exist.
  h("tdd.num");
  // @ts-expect-error A value that is no text.
  h("input", { value: { price: "1" } });
  // @ts-expect-error A number is no child: it has to be formatted.
  h("td", {}, 1);
  h("button", { onclick: (event) => event.preventDefault(), "data-tone": "bad", "aria-pressed": true });
}

test("the element builder refuses misspelt events, attributes, tags and values", () => {
  assert.equal(typeof mistakes, "function");
});
