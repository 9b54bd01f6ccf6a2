// Where one order waited, stage by stage, for a picture of all of them on one line of time. Pure.

import type { OrderWaits } from "walras";

export type WaitStage = "leaf" | "gateway" | "sequencer" | "log" | "decided" | "report";

export interface Wait {
  stage: WaitStage;
  ns: number;
  /** Where it begins and how long it is, of all of them together. */
  from: number;
  part: number;
}

/** The stages that are known, in their order. Where it is not known how two of them divide, both are one. */
export function waitStages({ leaf_ns, gateway_ns, sequencer_ns, log_ns, decided_ns, report_ns }: OrderWaits): Wait[] {
  const divided: [WaitStage, number | null][] =
    sequencer_ns === null || log_ns === null ? [["decided", decided_ns]] : [["sequencer", sequencer_ns], ["log", log_ns]];
  const known = ([["leaf", leaf_ns], ["gateway", gateway_ns], ...divided, ["report", report_ns]] as [WaitStage, number | null][])
    .flatMap(([stage, ns]) => (ns === null ? [] : [{ stage, ns }]));
  const all = Math.max(1, known.reduce((sum, { ns }) => sum + ns, 0));
  let before = 0;
  return known.map(({ stage, ns }) => {
    const from = before / all;
    before += ns;
    return { stage, ns, from, part: ns / all };
  });
}
