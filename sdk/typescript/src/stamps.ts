// What time to sign by: the venue's, as far as the client knows it, but no earlier than the first stamp that the venue takes.

/** How far ahead of its clock the venue takes stamps. */
const AHEAD_NS = 1_000_000_000n;

export class Stamps {
  readonly #nowMs: () => number;
  #offsetNs = 0n;
  #takesFromNs = 0n;

  constructor(nowMs: () => number = Date.now) {
    this.#nowMs = nowMs;
  }

  /** Nanoseconds since the epoch by this computer's clock. */
  ownTimeNs(): bigint {
    return BigInt(this.#nowMs()) * 1_000_000n;
  }

  /** The same by the venue's. */
  venueTimeNs(): bigint {
    return this.ownTimeNs() + this.#offsetNs;
  }

  /** What to sign a request with now. */
  next(): bigint {
    const now = this.venueTimeNs();
    return now > this.#takesFromNs ? now : this.#takesFromNs;
  }

  /** The venue's clock showed this when this computer's showed `ownNs`. */
  learnTime(venueNs: bigint, ownNs: bigint): void {
    this.#offsetNs = venueNs - ownNs;
  }

  /** After a restart the venue accepts no earlier timestamps: it may have accepted them before. */
  learnStart(takesFromNs: bigint): void {
    this.#takesFromNs = takesFromNs;
  }

  /** How long until the venue takes the next stamp: almost always no time at all, since it takes them ahead of its clock. */
  waitMs(): number {
    const waitNs = this.#takesFromNs - AHEAD_NS - this.venueTimeNs();
    return waitNs > 0n ? Number((waitNs + 999_999n) / 1_000_000n) : 0;
  }
}
