// The exits of an order: a take-profit and a stop-loss that become active as it fills. Pure, as ticket.ts.

import { type ExitRequest, formatUnits, type OrderRequest, type OrderType, type Side } from "walras";
import { trimZeros } from "../base/decimal.ts";
import { group, showUnits } from "../base/format.ts";
import { t } from "../texts/index.ts";
import type { Units } from "./market.ts";
import { type Faults, isTriggered, quantity } from "./ticket.ts";

/** As typed; what is empty is not asked for. */
export interface ExitFields {
  takeProfit?: string;
  stopLoss?: string;
  /** The limit of the stop-loss. */
  stopLimit?: string;
}

type Exits = Pick<OrderRequest, "take_profit" | "stop_loss">;

export const takesExits = (kind: OrderType): boolean => kind === "limit" || kind === "market";

/** The exits of an order of `side`, at `price` where it has a limit. Adds what is wrong with their fields, and what to think of. */
export function checkExits(
  fields: ExitFields & { side: Side; ocoWith?: string },
  units: Units,
  price: bigint | null,
  lastPrice: bigint | null,
  faults: Faults,
  warnings: Faults,
): Exits {
  const { side } = fields;
  const exitSide = side === "buy" ? "sell" : "buy";
  const said = t.ticket.exits;
  const read = (name: keyof ExitFields): bigint | null => {
    const text = fields[name] ?? "";
    return text.trim() === "" ? null : quantity(text, units.priceDecimals, units.tick, name, "tick", faults);
  };
  const [takeProfit, stopLoss, stopLimit] = [read("takeProfit"), read("stopLoss"), read("stopLimit")];
  const above = (exit: bigint, than: bigint): boolean => (side === "buy" ? exit > than : exit < than);
  for (const [name, kind, exit] of [["takeProfit", "take_profit", takeProfit], ["stopLoss", "stop", stopLoss]] as const) {
    if (exit === null) continue;
    const isRight = price === null || (name === "takeProfit" ? above(exit, price) : above(price, exit));
    if (!isRight) faults[name] = said.wrongSide[name][side](showUnits(price, units.priceDecimals));
    else if (lastPrice !== null && isTriggered(exitSide, kind, exit, lastPrice)) {
      const where = lastPrice === exit ? "at" : lastPrice > exit ? "above" : "below";
      warnings[name] = t.ticket.triggered[name === "takeProfit" ? "takeProfit" : "stop"][where](showUnits(lastPrice, units.priceDecimals));
    }
  }
  if ((fields.stopLimit ?? "").trim() !== "" && (fields.stopLoss ?? "").trim() === "") faults.stopLimit = said.limitAlone;
  // A limit that is better than the trigger may not trade when the price runs away.
  if (stopLimit !== null && stopLoss !== null && above(stopLimit, stopLoss)) warnings.stopLimit = said.limitBetter[side];
  if (fields.ocoWith && (takeProfit ?? stopLoss) !== null) faults[takeProfit !== null ? "takeProfit" : "stopLoss"] = said.notLinked;
  const exit = (trigger: bigint, limit: bigint | null): ExitRequest => ({
    trigger: formatUnits(trigger, units.priceDecimals),
    ...(limit === null ? {} : { price: formatUnits(limit, units.priceDecimals) }),
  });
  return {
    ...(takeProfit === null ? {} : { take_profit: exit(takeProfit, null) }),
    ...(stopLoss === null ? {} : { stop_loss: exit(stopLoss, stopLimit) }),
  };
}

/** "take-profit at 31 000.00, stop-loss at 29 000.00, limit 28 990.00"; `null` of an order without exits. */
export function exitsText({ take_profit, stop_loss }: Exits): string | null {
  const said = t.ticket.exits;
  const parts = [
    ...(take_profit ? [said.takeProfitAt(group(trimZeros(take_profit.trigger, 2)))] : []),
    ...(stop_loss ? [said.stopLossAt(group(trimZeros(stop_loss.trigger, 2)))] : []),
    ...(stop_loss?.price === undefined ? [] : [said.limitAt(group(trimZeros(stop_loss.price, 2)))]),
  ];
  return parts.length === 0 ? null : parts.join(said.comma);
}
