// Where an order waited: the stages on one line of time, and what is said where not all is known.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { OrderWaits } from "walras";
import { waitStages } from "../src/state/order-detail.ts";

const WAITS: OrderWaits = {
  leaf_ns: null, gateway_ns: 100, sequencer_ns: 300, log_ns: 500, decided_ns: 800, report_ns: 100, total_ns: 1_000, late_ns: 0,
};

test("each stage begins where the one before ends", () => {
  assert.deepEqual(waitStages(WAITS), [
    { stage: "gateway", ns: 100, from: 0, part: 0.1 },
    { stage: "sequencer", ns: 300, from: 0.1, part: 0.3 },
    { stage: "log", ns: 500, from: 0.4, part: 0.5 },
    { stage: "report", ns: 100, from: 0.9, part: 0.1 },
  ]);
});

test("of an order by a leaf gateway the way from there comes first", () => {
  const stages = waitStages({ ...WAITS, leaf_ns: 1_000, total_ns: 2_000 });
  const placed = stages.map(({ stage, from }) => [stage, from]);
  assert.deepEqual(placed, [["leaf", 0], ["gateway", 0.5], ["sequencer", 0.55], ["log", 0.7], ["report", 0.95]]);
});

test("two stages whose border is not known are one", () => {
  const stages = waitStages({ ...WAITS, sequencer_ns: null, log_ns: null });
  const placed = stages.map(({ stage, ns, from }) => [stage, ns, from]);
  assert.deepEqual(placed, [["gateway", 100, 0], ["decided", 800, 0.1], ["report", 100, 0.9]]);
});

test("what is not known, or not yet, has no place on the line", () => {
  const stages = waitStages({ ...WAITS, gateway_ns: null, report_ns: null, total_ns: null });
  assert.deepEqual(stages.map(({ stage, part }) => [stage, part]), [["sequencer", 300 / 800], ["log", 500 / 800]]);
  const none = { leaf_ns: 0, gateway_ns: 0, sequencer_ns: 0, log_ns: 0, decided_ns: 0, report_ns: 0, total_ns: 0, late_ns: 0 };
  assert.ok(waitStages(none).every(({ from, part }) => from === 0 && part === 0), "nothing is divided by nothing");
});
