// Simplified Chinese, in the words of exchanges: 限价, 市价, 止损, 撤单.

import type { Texts } from "../index.ts";
import { batch } from "./batch.ts";
import { drops, errors, reasons } from "./errors.ts";
import { machines } from "./machines.ts";
import { market } from "./market.ts";
import { orders } from "./orders.ts";
import { page } from "./page.ts";
import { pools } from "./pools.ts";
import { proofs } from "./proofs.ts";

export const zh: Texts = { ...page, ...market, ...orders, ...batch, ...machines, ...pools, ...proofs, errors, reasons, drops };
