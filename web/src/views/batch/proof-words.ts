// The marks ✓ and ⚠ of offers and balances that were checked, and the line that says what they were checked against.

import { setText } from "../../base/dom.ts";
import { group } from "../../base/format.ts";
import type { Mark, ProofDesk } from "../../state/proof-desk.ts";
import { t } from "../../texts/index.ts";
import { known } from "../../texts/names.ts";

const said = t.proofs;
const ROOT_DIGITS = 8;

/** Follows an offer or a balance. */
export function markOf(mark: Mark): string {
  return mark === null ? "" : mark.state === "checked" ? " ✓" : " ⚠";
}

export function markTitle(mark: Mark): string {
  return mark === null ? "" : ` ${(mark.state === "checked" ? said.checked : said.differs)(group(mark.block))}`;
}

/** The title has the whole root, to be compared with another replica's. */
export function drawProof(words: HTMLElement, proofs: ProofDesk): void {
  const { last } = proofs;
  const line = lineOf(proofs);
  words.hidden = line === "";
  setText(words, line);
  words.title = last === null ? "" : said.whole(group(last.block), last.root);
}

function lineOf(proofs: ProofDesk): string {
  const { last, broken } = proofs;
  if (broken) return said.broken(group(broken.block), known(said.faults, String(broken.code)) ?? broken.why);
  if (last === null) return "";
  const root = `${last.root.slice(0, ROOT_DIGITS)}…${last.root.slice(-ROOT_DIGITS)}`;
  return (proofs.isContradicted() ? said.contradicted : said.words)(group(last.block), root);
}
