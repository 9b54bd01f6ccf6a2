import assert from "node:assert/strict";
import test from "node:test";
import type { Cluster, LeafGateway, RelayNode } from "../src/api/fair-types.ts";
import { pictureOf } from "../src/state/network.ts";

function cluster(gateways: number, layers: number[], lost: number[] = []): Cluster {
  const leaf = (id: number): LeafGateway => ({ gateway: id, is_linked: !lost.includes(id), version: null, stands_below: id % 2 === 0, sessions: 1, trouble: null });
  return {
    replica: 2, leader: 1, replicas: [1, 2, 3].map((replica) => ({ replica, member: "voter" as const, is_linked: replica !== 3, trouble: null, http: null })),
    gateways: Array.from({ length: gateways }, (_, at) => leaf(40 + at)),
    tree: layers.length === 0 ? null : { tree: 1, hedge: 1, layers, packets: 0, not_taken: 0, asked: 0, asked_too_often: 0 },
  };
}

test("columns go from gateways to receivers, and lines join what is drawn", () => {
  const { columns, edges } = pictureOf(cluster(4, [2, 6], [42]));
  assert.deepEqual(columns.map((column) => [column[0]?.kind, column.length]), [["gateway", 4], ["replica", 3], ["relay", 2], ["receiver", 6]]);
  assert.deepEqual(edges.filter(({ kind }) => kind === "orders").map(({ from, to }) => [from, to]), [["gateway 40", "replica 2"]], "42 is not linked");
  assert.deepEqual(edges.filter(({ kind }) => kind === "cluster").map(({ from, to, isUp }) => [from, to, isUp]), [["replica 2", "replica 1", true], ["replica 3", "replica 1", false]]);
  assert.equal(edges.filter(({ kind }) => kind === "data").length, 2 + 12);
});

test("a thousand receivers are drawn as some, and none is lost from the count", () => {
  const { columns, edges } = pictureOf(cluster(300, [10, 100, 1_000], [339]));
  for (const column of columns) assert.ok(column.length <= 48);
  assert.deepEqual(columns.map((column) => column.reduce((sum, { stands }) => sum + stands, 0)), [300, 3, 10, 100, 1_000]);
  assert.ok(columns[0]?.some(({ id, isUp }) => id === "gateway 339" && !isUp), "one in trouble is never among the hidden");
  assert.ok(edges.length < 1_000, `${edges.length} lines`);
});

test("a relay that does not answer is drawn as down, with the lines to it; one that was not asked is up", () => {
  const relay = (place: number, answers: boolean): RelayNode => ({
    layer: 0,
    place,
    answers,
    packets: answers ? 7 : null,
    by_hedge: null,
    copies: null,
    lost: null,
    not_taken: null,
    refused: null,
    transit_ns_p50: null,
    transit_ns_p99: null,
  });
  const { tree, ...rest } = cluster(1, [2, 3]);
  const { columns, edges } = pictureOf({ ...rest, tree: tree == null ? null : { ...tree, relays: [relay(0, true), relay(1, false)] } });
  assert.deepEqual(columns.at(-2)?.map(({ isUp, said }) => [isUp, said?.packets]), [[true, 7], [false, null]]);
  assert.ok(columns.at(-1)?.every(({ isUp }) => isUp), "receivers are not asked for by place");
  assert.deepEqual(edges.filter(({ kind, isUp }) => kind === "data" && !isUp).length, 1 + 3);
});

test("a venue without gateways and tree is its replicas", () => {
  const { columns, edges } = pictureOf({ ...cluster(0, []), tree: null });
  assert.deepEqual([columns.length, edges.length], [1, 2]);
});
