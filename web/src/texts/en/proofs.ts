// Proofs of what the account has in a batch market.

export const proofs = {
  proofs: {
    checked: (block: string) => `✓ Checked: it was so after block ${block}.`,
    differs: (block: string) => `⚠ The venue's own proof for block ${block} says otherwise.`,
    words: (block: string, root: string) =>
      `✓ means: checked in this browser against a block's state root, last that of block ${block}: ${root}. ` +
      "The root comes from this venue: compare it with another replica's.",
    contradicted: (block: string, root: string) =>
      "⚠ means: the venue's own proof differs from what it shows. Ask the venue's operator, " +
      `and compare the state root of block ${block}, ${root}, with another replica's.`,
    whole: (block: string, root: string) => `State root of block ${block}: ${root}`,
    broken: (block: string, why: string) =>
      `⚠ The venue's proof for block ${block} does not hold: ${why}. Compare with another replica.`,
    /** By the light client's codes (docs/light-client.md). */
    faults: {
      1: "its format is of a version that this page does not know, so load the page again",
      2: "it is malformed",
      3: "it is a proof for another block",
      4: "it does not prove what was asked",
      5: "it proves something impossible",
      7: "the block does not follow the one before it",
    },
  },
};
