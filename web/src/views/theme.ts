// Light or dark: the system's choice unless the user chose. Canvases ask here for the colours that the style sheet defines.

import { Signal } from "../base/signal.ts";

export type ThemeChoice = "system" | "light" | "dark";

export interface Palette {
  paper: string;
  sheet: string;
  ink: string;
  muted: string;
  hair: string;
  edge: string;
  bid: string;
  ask: string;
  own: string;
  onOwn: string;
  face: string;
}

const STORED = "walras.theme";
const NAMES = ["system", "light", "dark"] as const;

export const themeChoice = new Signal<ThemeChoice>(stored());
/** Changes when the colours do. */
export const palette = new Signal<Palette>(read());

export function nextTheme(): void {
  themeChoice.value = NAMES[(NAMES.indexOf(themeChoice.value) + 1) % NAMES.length] ?? "system";
}

export function startTheme(): void {
  apply();
  themeChoice.watch((choice) => {
    localStorage.setItem(STORED, choice);
    apply();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", apply);
}

export function prefersLessMotion(): boolean {
  return matchMedia("(prefers-reduced-motion: reduce)").matches;
}

function apply(): void {
  const choice = themeChoice.value;
  if (choice === "system") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = choice;
  palette.value = read();
}

function stored(): ThemeChoice {
  const text = localStorage.getItem(STORED);
  return NAMES.find((name) => name === text) ?? "system";
}

/** Colours as the browser computes them: `light-dark()` is only resolved on a property that takes a colour. */
function read(): Palette {
  const probe = document.createElement("span");
  document.documentElement.append(probe);
  const colour = (name: string): string => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
  const result: Palette = {
    paper: colour("paper"),
    sheet: colour("sheet"),
    ink: colour("ink"),
    muted: colour("muted"),
    hair: colour("hair"),
    edge: colour("edge"),
    bid: colour("bid"),
    ask: colour("ask"),
    own: colour("own"),
    onOwn: colour("on-own"),
    face: getComputedStyle(document.documentElement).getPropertyValue("--face").trim(),
  };
  probe.remove();
  return result;
}
