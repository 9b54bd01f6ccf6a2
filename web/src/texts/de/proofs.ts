// Nachweise dessen, was das Konto in einem Batch-Markt hat.

import type { proofs as en } from "../en/proofs.ts";

export const proofs: typeof en = {
  proofs: {
    checked: (block) => `✓ Geprüft: So war es nach Block ${block}.`,
    differs: (block) => `⚠ Der eigene Nachweis des Handelsplatzes für Block ${block} sagt etwas anderes.`,
    words: (block, root) =>
      `✓ heißt: in diesem Browser gegen den Zustands-Hash eines Blocks geprüft, zuletzt gegen den von Block ${block}: ${root}. ` +
      "Der Hash kommt von diesem Handelsplatz: Vergleichen Sie ihn mit dem eines anderen Replikats.",
    contradicted: (block, root) =>
      "⚠ heißt: Der Nachweis des Handelsplatzes weicht von dem ab, was er anzeigt. Fragen Sie den Betreiber, " +
      `und vergleichen Sie den Zustands-Hash von Block ${block}, ${root}, mit dem eines anderen Replikats.`,
    whole: (block, root) => `Zustands-Hash von Block ${block}: ${root}`,
    broken: (block, why) =>
      `⚠ Der Nachweis des Handelsplatzes zu Block ${block} ist ungültig: ${why}. Vergleichen Sie mit einem anderen Replikat.`,
    faults: {
      1: "Sein Format hat eine Version, die diese Seite nicht kennt; laden Sie die Seite neu",
      2: "Er ist fehlerhaft aufgebaut",
      3: "Er gilt einem anderen Block",
      4: "Er beweist nicht, wonach gefragt wurde",
      5: "Er beweist etwas Unmögliches",
      7: "Der Block folgt nicht auf den vor ihm",
    },
  },
};
