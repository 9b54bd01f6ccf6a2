// Walks the page by Tab and checks that the focus is always seen.

import assert from "node:assert/strict";
import type { Page } from "playwright-core";

const STOPS_MAX = 80;

export async function assertTabStopsVisible(page: Page, expectedStops: RegExp[]): Promise<void> {
  const seen: string[] = [];
  for (let stop = 0; stop < STOPS_MAX; stop += 1) {
    await page.keyboard.press("Tab");
    const at = await page.evaluate(() => {
      const element = document.activeElement;
      if (!element || element === document.body) return null;
      // A radio button's ring is drawn on what stands next to it in the label.
      const shown = element.matches(".choice input, .component input") ? element.nextElementSibling ?? element : element;
      const box = shown.getBoundingClientRect();
      const { outlineStyle, outlineWidth } = getComputedStyle(shown);
      const name = element.getAttribute("aria-label") ?? element.getAttribute("aria-labelledby") ?? element.closest("label")?.textContent
        ?? (element as HTMLInputElement).labels?.[0]?.textContent ?? element.textContent ?? "";
      return {
        name: `${element.tagName.toLowerCase()} ${name.trim()}`, hasName: name.trim() !== "", size: box.width * box.height,
        ring: outlineStyle !== "none" && outlineWidth !== "0px",
      };
    });
    if (at === null) break;
    if (seen.length > 0 && at.name === seen[0]) break;
    seen.push(at.name);
    assert.ok(at.hasName, `${at.name} has a name`);
    assert.ok(at.size > 0, `${at.name} is shown while it has the focus`);
    assert.ok(at.ring, `${at.name} shows that it has the focus`);
  }
  for (const expected of expectedStops) {
    assert.ok(seen.some((name) => expected.test(name)), `Tab reaches ${expected}; it reached: ${seen.join(" | ")}`);
  }
}
