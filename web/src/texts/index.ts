// The page's texts that are not where they are used: one catalogue, so that other languages can stand next to it.

import { en } from "./en.ts";

export const t = en;
