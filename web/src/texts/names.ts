// What things are called that the venue names by a word or a number. A name that the page does not know is shown as the venue spells it.

import { sentence, words } from "../base/format.ts";
import { t } from "./index.ts";

/** The side with a mark, so that it never hangs on colour alone. */
export function sideText(side: "buy" | "sell" | null): string {
  return side === "buy" ? `▲ ${t.sides.buy}` : side === "sell" ? `▼ ${t.sides.sell}` : `◆ ${t.sides.auction}`;
}

/** An order's kind, within a sentence. */
export function kindName(kind: string): string {
  return known(t.kinds, kind) ?? words(kind);
}

/** What an order was in a trade. */
export function roleName(role: string): string {
  return known(t.roles, role) ?? role;
}

/** Why the venue refused: by number, else by its own name. */
export function reasonName(code: number, name: string): string {
  return t.reasons[code]?.name ?? sentence(name);
}

/** Why an order was cancelled, within a line. */
export function cancelName(reason: string): string {
  return known(t.history.reasons, reason) ?? words(reason);
}

export function known(texts: Readonly<Record<string, string>>, name: string): string | undefined {
  return Object.hasOwn(texts, name) ? texts[name] : undefined;
}
