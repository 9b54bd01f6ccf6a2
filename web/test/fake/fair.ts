// Fair access of a cluster of three, seen from one replica: steered delays, gateways with an outlier among them, stages with tails.

import type {
  Clock, ClusterGateway, ClusterView, FairAccessView, GatewayFigures, Latency, LayerDelivery, RelayNode, RelayTree, ReleaseJudged,
  StageTimes,
} from "walras";
import { Random } from "../../../sdk/typescript/test/random.ts";
import {
  cluster, gatewayFigures, muteRelay, relayNode, relayTree, releaseFigures, releaseJudged, replica, sequencerFigures, silentRelay,
} from "../whole.ts";

const TARGET_PPM = 10_000;
const US = 1_000;

/** Median and spread (the logarithm's deviation) of each stage. */
const STAGES: [stage: StageTimes["stage"], medianNs: number, spread: number][] = [
  ["receive", 6.5 * US, 0.5], ["transit", 118 * US, 0.35], ["hold", 196 * US, 0.3], ["log", 410 * US, 0.45], ["apply", 9 * US, 0.9],
  ["answer", 14 * US, 0.6],
  ["order", 780 * US, 0.35], ["request", 930 * US, 0.4], ["publish", 640 * US, 0.4], ["release", 1_900 * US, 0.2],
];

/** All but the first answer. The third forwards nothing. Each has lost as many packets as there are relays before it. */
function relaysOf(layers: number[]): RelayNode[] {
  const all = layers.slice(0, -1).flatMap((count, layer) => Array.from({ length: count }, (_, place) => ({ layer, place })));
  const busy = (at: Partial<RelayNode>, lost: number): RelayNode => relayNode({ ...at, by_hedge: 2, lost });
  return all.map((at, number) => (number === 0 ? silentRelay(at) : number === 2 ? muteRelay(at) : busy(at, number)));
}

export class FakeFair {
  /** Which replica the page is of. */
  replica = 1;
  leader = 1;
  hasRelease = true;
  hasMesh = true;
  /** Gateway 3 is an outlier from here on. */
  hasOutlier = false;
  /** Replica 3 tells nothing, and so far nothing is judged without it. */
  silent: "no" | "not_judged" | "judged_without" = "no";
  /** Leaf gateways, from id 40 on, and the one of them whose link is lost. */
  gateways = 0;
  lostGateway = 0;
  /** Of a relay tree, and how many packets came to its receivers after their release time. */
  layers: number[] = [];
  latePackets = 0;
  /** Layers of further trees. The first relay of each of these does not answer, and the third forwards nothing. */
  parallelLayers: number[][] = [];
  /** Orders so far. */
  steps = 0;
  readonly #random = new Random(5);
  #delayNs = 312 * US;
  #releaseNs = 2_540 * US;
  #unfairPpm = 9_100;
  #publications = 4_200;
  #late = 31;

  /** A second goes by. */
  step(): void {
    this.steps += 1;
    const noise = (scale: number): number => (this.#random.next() - 0.5) * scale;
    this.#unfairPpm = Math.max(0, Math.round(TARGET_PPM + (this.#unfairPpm - TARGET_PPM) * 0.9 + noise(2_600)));
    this.#delayNs = Math.round(this.#delayNs + (this.#unfairPpm - TARGET_PPM) * 0.6 + (312 * US - this.#delayNs) * 0.02 + noise(6 * US));
    this.#releaseNs = Math.round(this.#releaseNs * (1 + noise(0.02)));
    this.#publications += 20;
    if (this.#random.next() < 0.2) this.#late += 1;
  }

  fairAccess(): FairAccessView {
    const leads = this.replica === this.leader;
    const orders = 182_400 + this.steps * 1_210;
    return {
      is_sequencing: leads,
      clock: { status: "good", bound_ns: 18_400, source: this.hasMesh ? "mesh" : "system" },
      gateway: {
        leader: this.leader, unanswered: 3, orders: 61_000 + this.steps * 400, unstamped: 0, resent: 0, differing: 0, overloaded: 0,
        refused: 0, late: 412, stamped_by_kernel: 58_000, stamped_when_read: 0, stamps_raised: 0,
      },
      sequencer: sequencerFigures({
        delay_ns: this.#delayNs, target_ppm: TARGET_PPM, judged: orders, unfair: Math.round(orders * 0.0103),
        unfair_recent_ppm: this.#unfairPpm, matched: Math.round(orders * 0.4), unfairly_matched: Math.round(orders * 0.0008),
        unfairly_matched_recent_ppm: 2_100, worst_gateway: 3, held: leads ? 7 : 0,
        gateways: [this.#gateway(1, 0.41, 0.004), this.#gateway(2, 0.34, 0.013), this.#gateway(3, 0.25, 0.019)],
      }),
      release: this.hasRelease ? releaseFigures({
        delay_ns: this.#releaseNs, target_ppm: TARGET_PPM, publications: this.#publications, late: this.#late, late_ns_max: 3_840 * US,
        judged: leads ? this.#judged() : null,
      }) : null,
    };
  }

  #judged(): ReleaseJudged {
    const [outlierReports, outliers, silent] = [this.hasOutlier ? 40 : 0, this.hasOutlier ? [3] : [], this.silent === "no" ? [] : [3]];
    if (this.silent === "not_judged") return releaseJudged({ outlier_reports: outlierReports, outliers, silent });
    const receivers = { samples: 9_300, late: this.latePackets, delay_ns: this.#releaseNs };
    return releaseJudged({
      publications: this.#publications, unfair: 2 * this.#late, unfair_recent_ppm: 9_800, outlier_reports: outlierReports, outliers, silent,
      receivers,
    });
  }

  cluster(): ClusterView {
    const replicaOf = (id: number): ClusterView["replicas"][number] => replica({
      replica: id, is_linked: id !== 3 || !this.hasOutlier, trouble: id === 3 && this.hasOutlier ? "the connection was closed" : null,
      http: `venue-${id}.example:7070`,
    });
    const gateway = (id: number): ClusterGateway => ({
      gateway: id, is_linked: id !== this.lostGateway, version: id === this.lostGateway ? null : "0.1.0",
      stands_below: id % 3 === 0 && id !== this.lostGateway,
      sessions: id % 3 === 0 && id !== this.lostGateway ? id % 7 : 0,
      trouble: id === this.lostGateway ? "the other end closed the connection" : null,
    });
    const treeOf = (layers: number[], at: number): RelayTree => relayTree({
      tree: at + 1, layers, packets: 120_400 + this.steps * 140, asked: at === 0 ? 12 + this.steps : 0, delivery: this.#delivery(layers),
      relays: at === 0 ? [] : relaysOf(layers),
    });
    return cluster({
      replica: this.replica, leader: this.leader, replicas: [1, 2, 3].map(replicaOf),
      gateways: Array.from({ length: this.gateways }, (_, at) => gateway(40 + at)),
      tree: this.layers.length === 0 ? null : treeOf(this.layers, 0),
      parallel_trees: this.parallelLayers.map((layers, at) => treeOf(layers, at + 1)),
    });
  }

  /** Only the last layer holds packets until their release time. */
  #delivery(layers: number[]): LayerDelivery[] {
    return layers.map((nodes, layer) => ({
      layer, nodes, answering: nodes, earliest_ns: 40 * US * (layer + 1), latest_ns: 90 * US * (layer + 1),
      window_ns: 50 * US * (layer + 1), latest_ns_p99: 140 * US * (layer + 1),
      late: layer === layers.length - 1 ? this.latePackets : 0,
    }));
  }

  clock(): Clock | null {
    if (!this.hasMesh) return null;
    const peers = [1, 2, 3].filter((node) => node !== this.replica)
      .map((node) => ({ node, heard_ago_ns: "400000000", residual_ns: String(node === 2 ? -2_310 : 4_870) }));
    const mesh = {
      node: this.replica, coordinator: 1, reference: 1, window: "7", loop_error_ns: "900", noise_ns: "400", peers,
      excluded: this.hasOutlier ? [{ node: 3, why: "its edges do not close" }] : [],
      refused: { malformed: "0", unauthenticated: "0", misplaced: "0", late: "0" },
    };
    return {
      source: "mesh", status: "good", time_ns: "1", bound_ns: "18400", bound_max_ns: "50000", system_ahead_ns: "0", trouble: null, mesh,
    };
  }

  latency(): Latency {
    const stages = STAGES.filter(
      ([stage]) => this.hasRelease || (stage !== "publish" && stage !== "release"),
    ).map(([stage, median, spread]) => {
      const at = (deviations: number): number => Math.round(
        median * Math.exp(spread * deviations * (1 + (this.#random.next() - 0.5) * 0.1)),
      );
      return {
        stage, count: 11_400 + this.steps * 75, recent: 4_500, p50_ns: at(0), p90_ns: at(1.28), p99_ns: at(2.33), p999_ns: at(3.7),
        ns_max: at(4.6),
      };
    });
    return { timed_one_of: 16, recent_s: 60, stages };
  }

  #gateway(gateway: number, part: number, unfair: number): GatewayFigures {
    const held = Math.round((182_400 + this.steps * 1_210) * part);
    const isOutlier = gateway === 3 && this.hasOutlier;
    return gatewayFigures({
      gateway, is_outlier: isOutlier, overtaken: Math.round(held * unfair), overtaken_recent_ppm: Math.round(unfair * 1_000_000),
      duplicates: gateway === 1 ? 0 : 1_204 * gateway, differing: isOutlier ? 2 : 0, held, late: Math.round(held * unfair * 0.8),
      late_ns_max: 640 * US * gateway,
      unfair: Math.round(held * unfair), unstamped: isOutlier ? 320 : 0, outlier_stamps: isOutlier ? 320 : 0,
    });
  }
}
