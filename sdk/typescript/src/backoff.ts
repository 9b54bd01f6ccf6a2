// How long to wait before the next attempt: doubling from a quarter second to ten seconds, with jitter so that the clients of a venue that
// restarts do not all return at the same instant.

const FIRST_MS = 250;
const MOST_MS = 10_000;

export class Backoff {
  readonly #random: () => number;
  #failures = 0;

  constructor(random: () => number = Math.random) {
    this.#random = random;
  }

  next(): number {
    const ceiling = Math.min(MOST_MS, FIRST_MS * 2 ** this.#failures);
    this.#failures += 1;
    return Math.round(ceiling * (0.5 + this.#random() / 2));
  }

  reset(): void {
    this.#failures = 0;
  }
}
