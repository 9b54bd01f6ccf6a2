// The texts that people read, in the page's language. English is part of the page; the other catalogues are loaded when they are asked for.

import { en } from "./en/index.ts";
import { type Language, language, LANGUAGE_TAGS } from "./language.ts";

/** What every language has: a key that one lacks, or has beyond English, does not compile. */
export type Texts = typeof en;

const CATALOGUES: Record<Language, () => Promise<Texts>> = {
  en: () => Promise.resolve(en),
  de: async () => (await import("./de/index.ts")).de,
  zh: async () => (await import("./zh/index.ts")).zh,
};

async function load(): Promise<Texts> {
  try {
    const texts = await CATALOGUES[language]();
    if (typeof document !== "undefined") document.documentElement.lang = LANGUAGE_TAGS[language];
    return texts;
  } catch {
    // Without its catalogue the page is still a page, in the language of its document.
    return en;
  }
}

/** Modules that use it wait for the catalogue, so it may be read as they load. */
export const t: Texts = await load();
