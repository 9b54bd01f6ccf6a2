// How quantities are shown: grouped digits, the language's decimal sign, times in the chosen zone, changes with a real minus sign.
// Digits are grouped by spaces in every language, so that no point or comma is ever anything but the decimal sign.

import { formatUnits } from "walras";
import { abs, trimZeros } from "./decimal.ts";
import { timeZone } from "./settings.ts";
import { DECIMAL_SIGN, language, LANGUAGE_TAGS } from "../texts/language.ts";

const SPACE = "\u00a0";
const MINUS = "\u2212";

/** "1234567.50" is "1 234 567.50" (no-break spaces; with a comma in German), "-3" gets a real minus sign. */
export function group(text: string): string {
  const negative = text.startsWith("-");
  const [whole = "", fraction] = (negative ? text.slice(1) : text).split(".");
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, SPACE);
  return (negative ? MINUS : "") + grouped + (fraction === undefined ? "" : DECIMAL_SIGN + fraction);
}

/**
 * Back from what `group` shows, or somebody typed, to a plain decimal. The sign that is not the language's stays one, and fails to parse:
 * it may group.
 */
export function ungroup(text: string): string {
  return swapSigns(text.replace(/[\s'’]/g, "").replace(MINUS, "-"));
}

/** A plain decimal as it stands in a field: as somebody would type it. */
export function typed(text: string): string {
  return swapSigns(text);
}

/** Point and comma change places where the comma is the decimal sign. */
function swapSigns(text: string): string {
  return DECIMAL_SIGN === "." ? text : text.replace(/[.,]/g, (sign) => (sign === "." ? "," : "."));
}

/** A short figure, such as a percentage, with the language's decimal sign. */
export function signed(text: string): string {
  return text.replace(".", DECIMAL_SIGN);
}

export function showUnits(units: bigint, decimals: number): string {
  return group(formatUnits(units, decimals));
}

/** Trailing zeros off, at most `most` digits after the point; digits cut off are marked by an ellipsis-free "≈". */
export function showShort(text: string, most: number): string {
  const [whole = "0", fraction = ""] = text.split(".");
  if (fraction.length <= most) return group(trimZeros(text));
  const cut = trimZeros(`${whole}.${fraction.slice(0, most)}`);
  return (/[1-9]/.test(fraction.slice(most)) ? "≈" : "") + group(cut);
}

/** Parts per million as a percentage with sign: 12345 is "+1.23 %". */
export function showChange(ppm: number): string {
  const hundredths = BigInt(Math.round(ppm / 100));
  const sign = hundredths > 0n ? "+" : hundredths < 0n ? MINUS : "±";
  return `${sign}${signed(formatUnits(abs(hundredths), 2))}${SPACE}%`;
}

/** A small change, as of half a second, in parts per million: 12.5 is "+0.0013 %". */
export function showSmallChange(ppm: number): string {
  const sign = ppm > 0 ? "+" : ppm < 0 ? MINUS : "±";
  return `${sign}${signed((Math.abs(ppm) / 10_000).toFixed(Math.abs(ppm) < 10_000 ? 4 : 2))}${SPACE}%`;
}

/** How long ago: "0.4 s", "12 s", "3 min", "2 h". */
export function showAge(ageMs: number): string {
  const seconds = Math.max(0, ageMs) / 1_000;
  if (seconds < 9.95) return `${signed(seconds.toFixed(1))}${SPACE}s`;
  if (seconds < 99.5) return `${Math.round(seconds)}${SPACE}s`;
  return seconds < 5_970 ? `${Math.round(seconds / 60)}${SPACE}min` : `${Math.round(seconds / 3_600)}${SPACE}h`;
}

const TIME_UNITS: [per: number, unit: string][] = [[1, "ns"], [1e3, "µs"], [1e6, "ms"], [1e9, "s"]];

/** A span of time to three digits: "85 ns", "1.24 ms", "312 µs". */
export function showSpan(ns: number): string {
  // What rounds up to 1000 of a unit is 1 of the next.
  const [per, unit] = TIME_UNITS.find(([per], index) => index === TIME_UNITS.length - 1 || ns < 999.5 * per) ?? [1, "ns"];
  const value = ns / per;
  const places = unit === "ns" || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return `${signed(trimZeros(value.toFixed(places)))}${SPACE}${unit}`;
}

/** Parts per million as a share, to two digits: 8300 is "0.83 %", 12 is "0.0012 %", 0 is "0 %". */
export function showShare(ppm: number): string {
  const percent = ppm / 10_000;
  if (percent === 0) return `0${SPACE}%`;
  const places = Math.max(0, Math.min(6, 1 - Math.floor(Math.log10(percent))));
  return `${signed(trimZeros(percent.toFixed(places)))}${SPACE}%`;
}

/** Parts per million as a percentage, exact: 12500 is "1.25 %". */
export function showPercent(ppm: number): string {
  return `${signed(trimZeros(formatUnits(BigInt(ppm), 4)))}${SPACE}%`;
}

const two = (n: number): string => n.toString().padStart(2, "0");

/** Nanoseconds since the epoch as a time of day in the chosen zone, to the millisecond when `fine`. */
export function showTime(timeNs: string, fine = false): string {
  const date = inZone(timeNs);
  const clock = `${two(date.getUTCHours())}:${two(date.getUTCMinutes())}:${two(date.getUTCSeconds())}`;
  return fine ? `${clock}${DECIMAL_SIGN}${date.getUTCMilliseconds().toString().padStart(3, "0")}` : clock;
}

/** The same with the day before it: "2026-11-22 23:57:16". */
export function showDayTime(timeNs: string): string {
  return `${showDay(timeNs)} ${showTime(timeNs)}`;
}

/** English has two orders of day and month, so there it is ISO 8601. */
const DAYS =
  language === "en"
    ? null
    : new Intl.DateTimeFormat(LANGUAGE_TAGS[language], { year: "numeric", month: "2-digit", day: "2-digit", timeZone: "UTC" });

/** The day as the language writes it: "2026-11-22", "22.11.2026", "2026/11/22". */
export function showDay(timeNs: string): string {
  const date = inZone(timeNs);
  return DAYS === null ? date.toISOString().slice(0, 10) : DAYS.format(date);
}

/** What to write next to times: "UTC", or this computer's distance from it, such as "UTC+2". */
export function zoneName(atMs = Date.now()): string {
  if (timeZone.value === "utc") return "UTC";
  const minutes = -new Date(atMs).getTimezoneOffset();
  const [hours, rest] = [Math.floor(Math.abs(minutes) / 60), Math.abs(minutes) % 60];
  return minutes === 0 ? "UTC" : `UTC${minutes < 0 ? MINUS : "+"}${hours}${rest === 0 ? "" : `:${two(rest)}`}`;
}

/** By how many seconds the chosen zone is ahead of UTC at that time. */
export function zoneOffsetS(timeS: number): number {
  return timeZone.value === "utc" ? 0 : -new Date(timeS * 1_000).getTimezoneOffset() * 60;
}

/** A date whose UTC fields are those of the chosen zone. */
function inZone(timeNs: string): Date {
  const ms = Number(BigInt(timeNs) / 1_000_000n);
  return new Date(ms + zoneOffsetS(Math.floor(ms / 1_000)) * 1_000);
}

/** snake_case from the API as words: "good_till" is "good till". */
export function words(name: string): string {
  return name.replaceAll("_", " ");
}

export function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** "PriceOutsideCollar" is "Price outside collar". */
export function sentence(name: string): string {
  return capital(name.replace(/([a-z])([A-Z])/g, (_, a: string, b: string) => `${a} ${b.toLowerCase()}`));
}
