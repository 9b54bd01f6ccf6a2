// The end of a list that the venue has in pages: says whether there are older entries, and loads them at a click or as one scrolls there.

import { h, setText } from "../base/dom.ts";
import { group } from "../base/format.ts";
import { PAST_KEPT } from "../state/account.ts";
import type { Said } from "../state/outcome.ts";
import type { Past } from "../state/past.ts";
import { t } from "../texts/index.ts";

/** Rows drawn at first, and added at a time: more may be loaded than are drawn. */
const ROWS = 200;
const NEAR_PX = 300;

const said = t.account.older;

/** A list of anything. */
type Source = Pick<Past<unknown>, "state" | "isComplete" | "error" | "more" | "all"> & {
  changed: { watch(watcher: () => void): () => void };
};

export class Older {
  readonly element: HTMLElement;
  /** How many rows to draw at most. */
  rows = ROWS;
  readonly #words = h("span");
  readonly #button: HTMLButtonElement;
  readonly #past: Source;
  readonly #draw: () => void;
  #known = 0;

  /** `box` is what scrolls. `draw` draws at most `rows` of the list, and calls `show`. */
  constructor(id: string, past: Source, box: HTMLElement, draw: () => void) {
    this.#past = past;
    this.#draw = draw;
    this.#button = h("button", { type: "button", id, onclick: () => this.#more() }, said.show);
    this.element = h("p.empty.older", {}, this.#words, " ", this.#button);
    past.changed.watch(draw);
    box.addEventListener("scroll", () => {
      const isNear = box.scrollTop > 0 && box.scrollHeight - box.scrollTop - box.clientHeight < NEAR_PX;
      if (isNear && (this.#known > this.rows || past.state === "more")) this.#more();
    });
  }

  /** `known` is how many rows could be drawn of what is loaded. */
  show(known: number): void {
    this.#known = known;
    const { state, isComplete, error } = this.#past;
    const hides = known > this.rows;
    const words = hides || state === "unasked" || state === "more" ? ""
      : state === "loading" ? said.loading
      : state === "failed" ? said.failed(error)
      : state === "full" ? said.full(group(String(PAST_KEPT)))
      : !isComplete ? said.beyond
      : known === 0 ? "" : said.end;
    setText(this.#words, words);
    this.#button.hidden = !hides && state !== "more" && state !== "failed";
    setText(this.#button, state === "failed" && !hides ? said.again : said.show);
    this.element.hidden = words === "" && this.#button.hidden;
  }

  #more(): void {
    if (this.#known > this.rows) {
      this.rows += ROWS;
      return this.#draw();
    }
    this.rows += ROWS;
    void this.#past.more();
  }
}

/** Loads everything, with a count on the button, then saves it. Where loading fails nothing is saved, and a notice says why. */
export function saveAll(
  button: HTMLButtonElement, past: Source, count: () => number, save: () => void, say: (notice: Said) => void,
): void {
  if (button.getAttribute("aria-busy") === "true") return;
  const words = button.textContent ?? "";
  button.setAttribute("aria-busy", "true");
  const stop = past.changed.watch(() => setText(button, said.saving(group(String(count())))));
  void past.all().finally(() => {
    stop();
    button.removeAttribute("aria-busy");
    setText(button, words);
    if (past.state === "failed") say({ tone: "bad", title: said.notSaved, text: said.failed(past.error) });
    else save();
  });
}
