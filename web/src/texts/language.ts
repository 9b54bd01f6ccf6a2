// In which language the page speaks: the one that the user chose, else the first of the browser's that there is, else English.

import { oneOf, Setting } from "../base/settings.ts";

export type Language = "en" | "zh" | "de";

export const LANGUAGES: readonly Language[] = ["en", "zh", "de"];

/** As each calls itself. */
export const LANGUAGE_NAMES: Record<Language, string> = { en: "English", zh: "简体中文", de: "Deutsch" };

/** For the `lang` of the document, and for `Intl`. */
export const LANGUAGE_TAGS: Record<Language, string> = { en: "en", zh: "zh-Hans", de: "de" };

/** `auto` follows the browser. */
export const languageChoice = new Setting<Language | "auto">("language", "auto", oneOf("auto", ...LANGUAGES));

/** The first of the wanted languages, such as "de-AT", that there is. */
export function preferredOf(wanted: readonly string[]): Language {
  for (const tag of wanted) {
    const [primary = ""] = tag.toLowerCase().split("-");
    const found = LANGUAGES.find((language) => language === primary);
    if (found !== undefined) return found;
  }
  return "en";
}

/** Outside a browser it is English. It does not change while the page is open: another choice loads the page again. */
export const language: Language = languageChoice.value !== "auto" ? languageChoice.value
  : preferredOf(typeof document === "undefined" ? [] : navigator.languages);

/** What stands between the whole part of a number and its fraction. */
export const DECIMAL_SIGN: string =
  new Intl.NumberFormat(LANGUAGE_TAGS[language]).formatToParts(1.5).find(({ type }) => type === "decimal")?.value ?? ".";
