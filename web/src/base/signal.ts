// A value that can be watched, and drawing at most once per frame. All the reactivity that the page has.

export type Unsubscribe = () => void;

export class Signal<T> {
  readonly #watchers = new Set<(value: T) => void>();
  #value: T;

  constructor(value: T) {
    this.#value = value;
  }

  get value(): T {
    return this.#value;
  }

  /** Tells the watchers even when the value is the same object: models are changed in place. */
  set value(value: T) {
    this.#value = value;
    for (const watcher of [...this.#watchers]) watcher(value);
  }

  touch(): void {
    this.value = this.#value;
  }

  /** Calls `watcher` on every change from now on. */
  watch(watcher: (value: T) => void): Unsubscribe {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }
}

/** Wraps `draw` so that any number of calls within a frame draw once. */
export function oncePerFrame(draw: () => void): () => void {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      draw();
    });
  };
}

/** As `oncePerFrame`, but at most once in `period_ms`: for text that people and screen readers must be able to read. */
export function atMostEvery(periodMs: number, act: () => void): () => void {
  let asked = false;
  let lastMs = -Infinity;
  return () => {
    if (asked) return;
    asked = true;
    const waitMs = Math.max(0, lastMs + periodMs - performance.now());
    setTimeout(() => {
      asked = false;
      lastMs = performance.now();
      act();
    }, waitMs);
  };
}
