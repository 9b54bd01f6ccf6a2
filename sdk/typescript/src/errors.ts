// What can go wrong, each kind as a class of its own. Every message says what to do.

import type { ErrorBody, Leader } from "./schema/index.ts";

/** The venue refused a request. */
export class Refused extends Error {
  /** The reason's number, which stays the same over versions; docs/reject-reasons.md lists all. */
  readonly code: number;
  /** The reason's name. */
  readonly reason: string;
  /** What is wrong and what to do, in the venue's words. */
  readonly text: string;
  /** Which field, bound or number; empty where the venue says no more. */
  readonly detail: string;
  /** Which replica takes commands, where this one does not and knows. */
  readonly leader: Leader | null;
  /** Where the rejection of a session's command is in the log: its number is used up. */
  readonly logIndex: string | null;

  constructor({ code, name, message, detail = "", leader = null }: ErrorBody, logIndex: string | null = null) {
    super(`${code} ${name}: ${message}${detail === "" ? "" : ` (${detail})`}`);
    this.name = "Refused";
    [this.code, this.reason, this.text, this.detail, this.leader, this.logIndex] = [code, name, message, detail, leader, logIndex];
  }
}

/**
 * Refused as `TimestampStale` for longer than a client waits: the venue's clock was set back, and it takes no stamp before those that it
 * took already.
 */
export class ClockSetBack extends Refused {
  readonly waitMs: number;

  constructor(waitMs: number) {
    super({
      code: 105, name: "TimestampStale",
      message: `the venue's clock was set back: no key is taken before it has caught up, so try again in ${Math.ceil(waitMs / 1_000)} s`,
    });
    this.waitMs = waitMs;
  }
}

/** A command was sent and no answer came: the venue may have taken it, or may yet take it. A session sends such a command again. */
export class OutcomeUnknown extends Error {
  constructor(message = "no answer came: look at the account's orders, fills and transactions before sending it again") {
    super(message);
    this.name = "OutcomeUnknown";
  }
}

/** No replica could be asked, so nothing was sent. */
export class NotConnected extends Error {
  constructor(message = "not connected to the venue, so nothing was sent: wait for the connection and try again") {
    super(message);
    this.name = "NotConnected";
  }
}

/** An answer that is none of a venue's: the address is another program's, or a proxy's. */
export class BadAnswer extends Error {
  readonly path: string;
  readonly status: number;

  constructor(path: string, status: number) {
    super(`${path}: status ${status}, and not the answer of a venue: is this its address?`);
    this.name = "BadAnswer";
    [this.path, this.status] = [path, status];
  }
}

export type KeyProblem =
  /** It is no `<id>.<secret>`. */
  | "shape"
  /** The secret's end is missing. */
  | "cut"
  /** An Ed25519 secret has another length. */
  | "length"
  /** This browser or runtime has no Ed25519. */
  | "no_ed25519"
  /** What is signed here takes an Ed25519 key. */
  | "not_ed25519";

const KEY_ADVICE: Record<KeyProblem, string> = {
  shape: "a key is one line, such as hm_name.secret or ed_name.secret: copy it whole, as the venue printed it",
  cut: "the secret is cut short: copy the key whole",
  length: "the secret of an Ed25519 key is 43 characters: copy the key whole",
  no_ed25519: "no Ed25519 here: use Node 20, Chrome 137, Firefox 129, Safari 17 or anything newer, in a page over https or on this machine",
  not_ed25519: "transactions of batch markets are signed with Ed25519: use a key whose id begins with ed_",
};

/** A key that cannot be used. */
export class KeyError extends Error {
  readonly problem: KeyProblem;

  constructor(problem: KeyProblem) {
    super(KEY_ADVICE[problem]);
    this.name = "KeyError";
    this.problem = problem;
  }
}

export type DecimalProblem =
  | "not_a_number" | "not_whole" | "too_many_digits"
  /** A limit of zero. */
  | "limit_not_above_zero"
  /** Beyond what a batch market's price can be. */
  | "no_such_price"
  /** More of an asset than an offer can have, or none of it. */
  | "no_such_amount";

/** A text that is no quantity of this unit. */
export class DecimalError extends Error {
  readonly problem: DecimalProblem;
  /** With `too_many_digits`, how many there may be after the point. */
  readonly digitsMax: number;

  constructor(problem: DecimalProblem, digitsMax = 0) {
    super(decimalAdvice(problem, digitsMax));
    this.name = "DecimalError";
    [this.problem, this.digitsMax] = [problem, digitsMax];
  }
}

function decimalAdvice(problem: DecimalProblem, digitsMax: number): string {
  switch (problem) {
    case "not_a_number":
      return "give a plain number, such as 61234.5: digits and at most one point";
    case "not_whole":
      return "give a whole number";
    case "too_many_digits":
      return `give at most ${digitsMax} digits after the point`;
    case "limit_not_above_zero":
      return "a limit is above zero: to take any price, give none";
    case "no_such_price":
      return "no batch market clears at such a price: in smallest units it is not within 2^-126 and 2^126";
    case "no_such_amount":
      return "an offer is of 1 to 2^63 - 1 smallest units: give another amount or price";
  }
}
