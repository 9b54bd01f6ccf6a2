// What went wrong on this side, and the venue's reasons.

/** A reason of the venue by its number: what it is called, and what to do. */
export interface Reason {
  name: string;
  advice: string;
}

/** By the numbers of docs/reject-reasons.md. In English the venue's own words are shown. */
export const reasons: Readonly<Record<number, Reason>> = {};

/** Why a block left a transaction out, by the numbers of `DropReason` in core/types. */
export const drops: Readonly<Record<number, Reason>> = {};

export const errors = {
  plainNumber: "Write a plain number, such as 61234.5: digits and at most one point.",
  wholeNumber: "Write a whole number here.",
  digits: (most: number) => `Use at most ${most} digits after the point.`,
  bothAboveZero: "Both must be above zero.",
  limitAboveZero: "A limit is above zero. To take whatever price clears, choose “Any price”.",
  noSuchPrice: "No market clears at such a price: write one nearer to those above.",
  keyShape: "A key looks like hm_name.secret or ed_name.secret: copy it whole, as the venue printed it, or its address with #demo=.",
  keyCut: "The secret is cut short: copy the key whole.",
  keyLength: "The secret of an Ed25519 key is 43 characters: copy the key whole.",
  noEd25519:
    "This browser cannot sign with Ed25519: use Chrome 137, Edge 137, Firefox 129, Safari 17 or anything newer, over https or " +
    "on this machine.",
  notEd25519: "Transactions are signed with Ed25519: use a key whose id begins with ed_.",
  notConnected: "Not connected to the venue: nothing was sent. Wait for the connection and try again.",
  outcomeUnknown: "The connection broke before the venue answered. It may have taken the request: check the open orders.",
  outcomeUnknownOffer: "The connection broke before the venue answered. It may have taken the transaction: look at your offers.",
  noResult: (path: string) => `The venue's answer to ${path} has no result: reload the page to get the venue's own version of it.`,
  noReason: (path: string, status: number) => `The venue answered ${path} with status ${status} and no reason: look at its log.`,
  clockBack: (seconds: string) =>
    `The venue's clock was set back, and until it has caught up no key is taken: sign in again in ${seconds} s, or ask its ` +
    "operator.",
};
