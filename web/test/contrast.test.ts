// The palette keeps WCAG AA contrast in both themes: 4.5 for text, 3 for the edges of controls and the marks of charts.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

const css = readFileSync(new URL("../src/style/tokens.css", import.meta.url), "utf8");
const themes: Record<"light" | "dark", Map<string, string>> = { light: new Map(), dark: new Map() };
for (const [, name, light, dark] of css.matchAll(/--([a-z-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)/g)) {
  themes.light.set(name as string, light as string);
  themes.dark.set(name as string, dark as string);
}

const TEXT: [string, string][] = [
  ["ink", "paper"], ["ink", "sheet"], ["muted", "paper"], ["muted", "sheet"], ["bid", "paper"], ["ask", "paper"], ["bid", "sheet"],
  ["ask", "sheet"],
  ["on-fill", "bid-fill"], ["on-fill", "ask-fill"], ["on-own", "own"], ["paper", "ink"],
];
const MARKS: [string, string][] = [["edge", "paper"], ["edge", "sheet"], ["focus", "paper"], ["bid-fill", "paper"], ["ask-fill", "paper"]];

for (const [theme, colours] of Object.entries(themes)) {
  for (const [pairs, least] of [[TEXT, 4.5], [MARKS, 3]] as const) {
    for (const [front, back] of pairs) {
      test(`${theme}: ${front} on ${back} is at least ${least}`, () => {
        const ratio = contrast(colours.get(front) ?? "", colours.get(back) ?? "");
        assert.ok(ratio >= least, `${ratio.toFixed(2)}`);
      });
    }
  }
}

test("sizes stay readable on the strongest bar of the ladder", () => {
  for (const [theme, colours] of Object.entries(themes)) {
    for (const side of ["bid", "ask"]) {
      // The level's bar (0.3) lies on the total's (0.11).
      const back = mix(mix(colours.get("paper") ?? "", colours.get(side) ?? "", 0.11), colours.get(side) ?? "", 0.3);
      assert.ok(contrast(colours.get("ink") ?? "", back) >= 4.5, `${theme} ${side}`);
    }
  }
});

test("the names of the curves stay readable on their own fill", () => {
  for (const [theme, colours] of Object.entries(themes)) {
    for (const side of ["bid", "ask"]) {
      const back = mix(colours.get("paper") ?? "", colours.get(side) ?? "", 0.1);
      const ratio = contrast(colours.get(side) ?? "", back);
      assert.ok(ratio >= 4.5, `${theme} ${side}: ${ratio.toFixed(2)}`);
    }
  }
});

test("one's own square among the collected transactions stands out by its edge", () => {
  for (const [theme, colours] of Object.entries(themes)) {
    assert.ok(contrast(colours.get("ink") ?? "", colours.get("sheet") ?? "") >= 4.5, theme);
    const edges = [
      contrast(colours.get("own") ?? "", colours.get("ink") ?? ""), contrast(colours.get("own") ?? "", colours.get("sheet") ?? ""),
    ];
    assert.ok(Math.max(...edges) >= 3, theme);
  }
});

function channels(hex: string): number[] {
  assert.match(hex, /^#[0-9a-f]{6}$/);
  return [1, 3, 5].map((at) => Number.parseInt(hex.slice(at, at + 2), 16));
}

function luminance(hex: string): number {
  const [red = 0, green = 0, blue = 0] = channels(hex).map((value) => {
    const part = value / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrast(a: string, b: string): number {
  const [high = 0, low = 0] = [luminance(a), luminance(b)].sort((x, y) => y - x);
  return (high + 0.05) / (low + 0.05);
}

function mix(back: string, front: string, alpha: number): string {
  const [under, over] = [channels(back), channels(front)];
  const mixed = under.map((value, index) => Math.round(value * (1 - alpha) + (over[index] ?? 0) * alpha));
  return `#${mixed.map((value) => value.toString(16).padStart(2, "0")).join("")}`;
}
