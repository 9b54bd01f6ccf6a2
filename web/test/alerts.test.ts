import assert from "node:assert/strict";
import test from "node:test";
import { addAlert, alerts, reached } from "../src/state/alerts.ts";

test("an alert waits for the price to come from where it was, and is shown once", () => {
  alerts.value = [];
  assert.equal(addAlert("BTC/USD", "101.5", "100.00"), null);
  assert.equal(addAlert("BTC/USD", "99", "100.00"), null);
  assert.deepEqual(alerts.value.map(({ when }) => when), ["rises", "falls"]);
  assert.deepEqual(reached("BTC/USD", "101.49"), []);
  assert.deepEqual(reached("ETH/USD", "500"), []);
  assert.deepEqual(reached("BTC/USD", "101.50").map(({ price }) => price), ["101.5"]);
  assert.deepEqual(reached("BTC/USD", "102"), [], "only once");
  assert.deepEqual(reached("BTC/USD", "98.99").map(({ price }) => price), ["99"]);
});

test("an alert that says nothing new is refused, and the same price stands once", () => {
  alerts.value = [];
  assert.equal(addAlert("BTC/USD", "100", "100.00"), "there");
  assert.equal(addAlert("BTC/USD", "100", null), "none");
  assert.equal(addAlert("BTC/USD", "110", "100"), null);
  assert.equal(addAlert("BTC/USD", "110.0", "100"), null);
  assert.equal(alerts.value.length, 1);
});
