import assert from "node:assert/strict";
import { test } from "node:test";
import type { FairAccessView } from "walras";
import { showShare, showSpan } from "../src/base/format.ts";
import { FairHistory, gatewayRows, lateWords, sharePpm } from "../src/state/fair-access.ts";
import { FakeFair } from "./fake/fair.ts";
import { releaseFigures, releaseJudged } from "./whole.ts";

const plain = (text: string): string => text.replaceAll("\u00a0", " ");
const look = (fair: FakeFair): Parameters<typeof gatewayRows>[0] =>
  ({ fair: fair.fairAccess(), cluster: fair.cluster(), clock: fair.clock(), latency: fair.latency() });

test("spans have three digits and the unit that fits", () => {
  const shown: [number, string][] = [
    [0, "0 ns"], [85, "85 ns"], [999, "999 ns"], [1_000, "1 µs"], [1_240, "1.24 µs"], [41_230, "41.2 µs"], [312_400, "312 µs"],
    [999_499, "999 µs"], [999_600, "1 ms"],
    [1_000_000, "1 ms"], [20_000_000, "20 ms"], [2_100_000_000, "2.1 s"], [61_000_000_000, "61 s"], [4e12, "4000 s"],
  ];
  for (const [ns, expected] of shown) assert.equal(plain(showSpan(ns)), expected, String(ns));
});

test("shares have two digits however small they are", () => {
  const shown: [number, string][] = [
    [0, "0 %"], [1, "0.0001 %"], [12, "0.0012 %"], [8_300, "0.83 %"], [8_349, "0.83 %"], [10_000, "1 %"], [123_456, "12 %"],
    [1_000_000, "100 %"],
  ];
  for (const [ppm, expected] of shown) assert.equal(plain(showShare(ppm)), expected, String(ppm));
  assert.equal(sharePpm(0, 0), null);
  assert.equal(sharePpm(1, 4), 250_000);
});

test("history keeps some minutes, breaks the line where nobody asked, and takes shares over some seconds", () => {
  const history = new FairHistory();
  const base = new FakeFair().fairAccess();
  const at = (publications: number, late: number, more: Partial<FairAccessView> = {}): FairAccessView => ({
    ...base, release: base.release && { ...base.release, delay_ns: 2_000, target_ppm: null, publications, late, late_ns_max: 1 }, ...more,
  });
  history.add(at(100, 50), 1_000);
  assert.equal(history.latePpm, null, "of one look nothing can be said");
  history.add(at(200, 50), 2_000);
  assert.equal(history.latePpm, 0);
  history.add(at(300, 60), 3_000);
  assert.equal(history.latePpm, 50_000, "ten of the 200 since the first look");
  // If another one leads, nothing is said of orders.
  history.add(at(400, 60, { is_sequencing: false }), 4_000);
  // Half a minute on the first looks count no more.
  history.add(at(500, 60), 33_000);
  assert.equal(history.latePpm, 0);
  const [seconds, values] = history.series("delayNs");
  assert.deepEqual(seconds, [1, 2, 3, 4, 18.5, 33]);
  assert.deepEqual(values, [312_000, 312_000, 312_000, null, null, 312_000]);
  // A replica that restarted counts from 0.
  history.add(at(10, 5), 34_000);
  assert.equal(history.latePpm, null, "of ten nothing can be said");
  history.add(at(110, 55), 35_000);
  assert.equal(history.latePpm, 500_000);
  history.add(at(20, 5), 400_000);
  assert.deepEqual(history.series("releaseNs"), [[400], [2_000]], "what is older than five minutes is gone");
});

test("a share of nothing is no 0 %, and a silent replica is named", () => {
  const fair = new FakeFair();
  const late = (): string => {
    const { release } = fair.fairAccess();
    assert.ok(release);
    return plain(lateWords(release, 1_200).share);
  };
  assert.equal(late(), "0.98 % of 1 %");
  fair.silent = "not_judged";
  assert.equal(late(), "Not judged: replica 3 is silent");
  fair.silent = "judged_without";
  assert.equal(late(), "0.98 % of 1 %; replica 3 is silent");
  // Where another one leads, what is late here is all that is known here.
  fair.leader = 2;
  assert.equal(late(), "0.12 % of 1 %");
  const judged = releaseJudged();
  const figures = releaseFigures({ publications: 3, late: 1, late_ns_max: 1, judged });
  assert.equal(lateWords(figures, null).share, "Not judged yet", "a leader that has led for a moment only");
  assert.equal(lateWords({ ...figures, judged: { ...judged, silent: [2, 3] } }, null).share, "Not judged: replicas 2, 3 are silent");
});

test("without market data that is held there is no share of it", () => {
  const history = new FairHistory();
  const fair = new FakeFair();
  fair.hasRelease = false;
  for (const second of [1, 2, 3]) history.add(fair.fairAccess(), second * 1_000);
  assert.equal(history.latePpm, null);
  assert.deepEqual(history.series("releaseNs")[1], [null, null, null]);
});

test("gateways are those of the cluster, with what is known of each", () => {
  const fair = new FakeFair();
  const rows = gatewayRows(look(fair));
  assert.deepEqual(rows.map(({ id, isHere, leads, stamps, isLinked, page }) => ({ id, isHere, leads, stamps, isLinked, page })), [
    { id: 1, isHere: true, leads: true, stamps: "count", isLinked: true, page: null },
    { id: 2, isHere: false, leads: false, stamps: "count", isLinked: true, page: "http://venue-2.example:7070/#fair" },
    { id: 3, isHere: false, leads: false, stamps: "count", isLinked: true, page: "http://venue-3.example:7070/#fair" },
  ]);
  assert.deepEqual(rows.map(({ clock }) => clock), [{ status: "good", boundNs: 18_400 }, { offNs: 2_310 }, { offNs: 4_870 }]);
  fair.hasOutlier = true;
  const [, , third] = gatewayRows(look(fair));
  assert.deepEqual([third?.stamps, third?.isLinked, third?.clock], ["outlier", false, { excluded: "its edges do not close" }]);

  // One that nothing came from, in a cluster whose addresses nobody configured.
  const quiet = look(new FakeFair());
  quiet.fair.sequencer?.gateways.pop();
  quiet.clock = null;
  for (const replica of quiet.cluster.replicas) replica.http = null;
  const [, , last] = gatewayRows(quiet);
  assert.deepEqual([last?.stamps, last?.figures, last?.page, last?.clock], ["none", null, null, null]);
  // Orders are not held at all: the cluster is there all the same.
  quiet.fair.sequencer = null;
  quiet.fair.clock = null;
  assert.deepEqual(gatewayRows(quiet).map(({ id, clock }) => [id, clock]), [[1, null], [2, null], [3, null]]);
});
