// German, in the words of the trading floor: Order, Limit, Fill-or-Kill and Spread stay as they are.

import type { Texts } from "../index.ts";
import { batch } from "./batch.ts";
import { drops, errors, reasons } from "./errors.ts";
import { machines } from "./machines.ts";
import { market } from "./market.ts";
import { orders } from "./orders.ts";
import { page } from "./page.ts";
import { pools } from "./pools.ts";
import { proofs } from "./proofs.ts";

export const de: Texts = { ...page, ...market, ...orders, ...batch, ...machines, ...pools, ...proofs, errors, reasons, drops };
