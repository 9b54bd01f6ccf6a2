// The limit that stands in the offer's field, for pixels: the curves draw it before anything is sent.

import { Signal } from "../../base/signal.ts";

export const typedLimit = new Signal<number | null>(null);
