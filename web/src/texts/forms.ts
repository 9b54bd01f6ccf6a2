// Counts in texts: digits in groups of three, and the form of a word that goes with a number in a language. The catalogues that are loaded
// later import this and nothing else of the page, which waits for them.

const SPACE = "\u00a0";

/** 12345 is "12 345", with a no-break space. */
export function grouped(count: number): string {
  return String(count).replace(/\B(?=(\d{3})+$)/g, SPACE);
}

/** The forms that the language's rules (CLDR) name; `other` is there in every language. */
export type Forms = Partial<Record<Intl.LDMLPluralRule, string>> & { other: string };

/** Chooses the form of a word for a count. */
export function pluralsOf(language: string): (count: number, forms: Forms) => string {
  const rules = new Intl.PluralRules(language);
  return (count, forms) => forms[rules.select(count)] ?? forms.other;
}
