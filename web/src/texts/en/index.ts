// English: the catalogue that the others are held against.

import { batch } from "./batch.ts";
import { drops, errors, reasons } from "./errors.ts";
import { machines } from "./machines.ts";
import { market } from "./market.ts";
import { orders } from "./orders.ts";
import { page } from "./page.ts";
import { pools } from "./pools.ts";
import { proofs } from "./proofs.ts";

export const en = { ...page, ...market, ...orders, ...batch, ...machines, ...pools, ...proofs, errors, reasons, drops };
