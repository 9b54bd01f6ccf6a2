import assert from "node:assert/strict";
import test from "node:test";
import type { ClusterGateway, ClusterView, FairAccessView } from "walras";
import {
  headsOf, leafLines, nameOf, outWords, pictureOf, relayLines, relaysOut, replicaLines, treesOf,
} from "../src/state/network.ts";
import { cluster, gatewayFigures, muteRelay, relayNode, relayTree, replica, sequencerFigures, silentRelay } from "./whole.ts";

function clusterOf(gateways: number, layers: number[], lost: number[] = []): ClusterView {
  const leaf = (id: number): ClusterGateway => ({
    gateway: id, is_linked: !lost.includes(id), version: null, stands_below: id % 2 === 0, sessions: 1, trouble: null,
  });
  return cluster({
    replica: 2, leader: 1, replicas: [1, 2, 3].map((id) => replica({ replica: id, is_linked: id !== 3 })),
    gateways: Array.from({ length: gateways }, (_, at) => leaf(40 + at)),
    tree: layers.length === 0 ? null : relayTree({ layers }),
  });
}

test("columns go from gateways to receivers, and lines join what is drawn", () => {
  const { columns, edges } = pictureOf(clusterOf(4, [2, 6], [42]));
  assert.deepEqual(
    columns.map((column) => [column[0]?.kind, column.length]), [["gateway", 4], ["replica", 3], ["relay", 2], ["receiver", 6]],
  );
  assert.deepEqual(
    edges.filter(({ kind }) => kind === "orders").map(({ from, to }) => [from, to]), [["gateway 40", "replica 2"]], "42 is not linked",
  );
  assert.deepEqual(
    edges.filter(({ kind }) => kind === "cluster").map(({ from, to, isUp }) => [from, to, isUp]),
    [["replica 2", "replica 1", true], ["replica 3", "replica 1", false]],
  );
  assert.equal(edges.filter(({ kind }) => kind === "data").length, 2 + 12);
});

test("a thousand receivers are drawn as some, and none is lost from the count", () => {
  const { columns, edges } = pictureOf(clusterOf(300, [10, 100, 1_000], [339]));
  for (const column of columns) assert.ok(column.length <= 48);
  assert.deepEqual(columns.map((column) => column.reduce((sum, { stands }) => sum + stands, 0)), [300, 3, 10, 100, 1_000]);
  assert.ok(columns[0]?.some(({ id, isUp }) => id === "gateway 339" && !isUp), "one in trouble is never among the hidden");
  assert.ok(edges.length < 1_000, `${edges.length} lines`);
});

test("a relay that does not answer is drawn as down, with the lines to it; one that was not asked is up", () => {
  const { tree, ...rest } = clusterOf(1, [2, 3]);
  const { columns, edges } = pictureOf({
    ...rest, tree: tree == null ? null : { ...tree, relays: [relayNode(), silentRelay({ place: 1 })] },
  });
  assert.deepEqual(columns.at(-2)?.map(({ isUp, said }) => [isUp, said?.packets]), [[true, 7], [false, null]]);
  assert.ok(columns.at(-1)?.every(({ isUp }) => isUp), "receivers are not asked for by place");
  assert.deepEqual(edges.filter(({ kind, isUp }) => kind === "data" && !isUp).length, 1 + 3);
});

test("a relay that answers and is out is drawn as down, and why is said", () => {
  const unaware = relayNode({ layer: 1, is_in: false, out_because: "unaware" });
  const relays = [relayNode(), muteRelay({ place: 1 }), unaware, relayNode({ layer: 1, place: 1, answers: false })];
  const tree = relayTree({ layers: [2, 2, 3], relays });
  const { columns, edges } = pictureOf({ ...clusterOf(0, []), tree });
  const drawn = columns.slice(1, 3).map((column) => column.map(({ isUp, out }) => [isUp, out]));
  assert.deepEqual(drawn, [[[true, null], [false, "mute"]], [[false, "unaware"], [false, "silent"]]]);
  assert.equal(edges.filter(({ kind, isUp }) => kind === "data" && isUp).length, 1, "from the sender to the relay that is in");
  assert.equal(
    outWords(tree),
    "Relays in trouble: layer 0, place 1: answers and forwards nothing; " +
      "layer 1, place 0: does not take up the view of the tree; layer 1, place 1: does not answer.",
  );
  assert.equal(outWords(relayTree({ layers: [1, 3], relays: [relayNode()] })), "", "all are in");
  const many = relayTree({ layers: [9, 9], relays: Array.from({ length: 9 }, (_, place) => silentRelay({ place })) });
  assert.match(outWords(many), /place 3: does not answer; 5 more\.$/);
});

test("each relay says what it passed on, by hedges, and lost; one that does not answer says nothing", () => {
  const busy = relayNode({ layer: 1, place: 3, packets: 120_400, by_hedge: 9_300, lost: 12, transit_ns_p50: 312_000 });
  const lines = relayLines(relayTree({ layers: [2, 4, 6], relays: [silentRelay(), muteRelay({ place: 1, lost: 5 }), busy] }));
  const plain = lines.map((line) => Object.values(line).map((text) => text.replace(/\s/gu, " ")));
  assert.deepEqual(plain, [
    ["0 0", "0, 0", "does not answer", "–", "–", "–", "–"],
    ["0 1", "0, 1", "answers and forwards nothing", "0", "0", "5", "1 ns"],
    ["1 3", "1, 3", "", "120 400", "9 300", "12", "312 µs"],
  ]);
  assert.deepEqual(relayLines(relayTree({ layers: [2, 6] })), [], "before the first answer");
});

test("replicas show what became of their orders, leaf gateways where they stand and who uses them", () => {
  const of = clusterOf(3, [], [42]);
  const gateways = [gatewayFigures({ gateway: 1, held: 1_200, overtaken: 6 }), gatewayFigures({ gateway: 3 })];
  const fair: FairAccessView = {
    is_sequencing: true, clock: { status: "good", bound_ns: 1, source: "system" }, gateway: null,
    sequencer: sequencerFigures({ gateways }), release: null,
  };
  const texts = (lines: object[]): unknown[][] =>
    lines.map((line) => Object.values(line).map((value) => (typeof value === "string" ? value.replace(/\s/gu, " ") : value)));
  assert.deepEqual(texts(replicaLines({ cluster: of, fair, latency: null })), [
    ["1", "1", true, "1 200", "0.5 %", null], ["2", "2", true, "–", "–", null], ["3", "3", false, "0", "–", null],
  ]);
  assert.deepEqual(texts(replicaLines({ cluster: of, fair: null, latency: null })).map((line) => line.slice(3, 5)), [
    ["–", "–"], ["–", "–"], ["–", "–"],
  ]);
  assert.deepEqual(texts(leafLines(of)), [
    ["40", "40", true, "this replica", "1", null], ["41", "41", true, "another replica", "–", null],
    ["42", "42", false, "this replica", "1", null],
  ]);
});

test("of several trees one is drawn, and each says how many of its relays are down", () => {
  const second = relayTree({ tree: 2, layers: [2, 4, 6], relays: [silentRelay(), relayNode({ place: 1 }), silentRelay({ layer: 1 })] });
  const of = { ...clusterOf(0, [3, 6]), parallel_trees: [second] };
  const trees = treesOf(of);
  assert.deepEqual(trees.map((tree) => [tree.tree, relaysOut(tree).length]), [[1, 0], [2, 2]]);
  const drawn = trees.map((tree) => pictureOf(of, tree).columns.map((column) => column.length));
  assert.deepEqual(drawn, [[3, 3, 6], [3, 2, 4, 6]]);
  assert.deepEqual(pictureOf(of).columns.length, 3, "the first one by default");
  assert.deepEqual(treesOf(clusterOf(0, [])), []);
});

test("layers are counted as in the table, with leaf gateways and without", () => {
  for (const gateways of [0, 2]) {
    const picture = pictureOf(clusterOf(gateways, [2, 4, 6]));
    const all = ["Replicas 3", "Relay layer 0: 2", "Relay layer 1: 4", "Receivers 6"];
    assert.deepEqual(headsOf(picture), gateways === 0 ? all : ["Leaf gateways 2", ...all]);
    assert.deepEqual(picture.columns.slice(-4).map((column) => nameOf(column[1]!)), [
      "Replica 2", "Relay, layer 0, place 1", "Relay, layer 1, place 1", "Receiver 1",
    ]);
  }
  assert.deepEqual(
    headsOf(pictureOf(clusterOf(0, [2, 1_000]))).slice(1), ["Relays 2", "Receivers 1\u00a0000"], "a single layer needs no number",
  );
});

test("a venue without gateways and tree is its replicas", () => {
  const { columns, edges } = pictureOf({ ...clusterOf(0, []), tree: null });
  assert.deepEqual([columns.length, edges.length], [1, 2]);
});
