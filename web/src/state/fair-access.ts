// What the page knows of fair access: asked for once a second while somebody looks, with the last minutes kept for the plots.

import type { Clock, ClusterView, FairAccessView, GatewayFigures, Latency, ReleaseFigures, StampClock } from "walras";
import { client } from "../api/client.ts";
import { showShare } from "../base/format.ts";
import { Signal } from "../base/signal.ts";
import { errorText } from "../texts/error-text.ts";
import { t } from "../texts/index.ts";

const ASK_EVERY_MS = 1_000;
const KEPT_MS = 300_000;
/** A pause longer than this is a gap in the plots. */
const GAP_MS = 3_500;
/** Over so long late publications are counted for their share. */
const LATE_OVER_MS = 30_000;
/** Fewer give no share. */
const PUBLICATIONS_MIN = 100;
/** Stamps by the computer's clock: then there is no other to ask about. */
const SYSTEM = "system";

/** All of it at one moment. */
export interface FairLook {
  fair: FairAccessView;
  cluster: ClusterView;
  clock: Clock | null;
  latency: Latency;
}

export class FairDesk {
  /** Whether the venue has fair access, as its status says. */
  readonly isOn = new Signal(false);
  /** Whether its status has come. */
  isKnown = false;
  readonly look = new Signal<FairLook | null>(null);
  /** Why the last question had no answer. */
  readonly trouble = new Signal<string | null>(null);
  readonly history = new FairHistory();
  #shown = false;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** It is asked for while somebody looks at it. */
  set shown(shown: boolean) {
    if (shown === this.#shown) return;
    this.#shown = shown;
    clearTimeout(this.#timer);
    if (shown) void this.#ask();
  }

  async #ask(): Promise<void> {
    try {
      if (!document.hidden) {
        const fair = await client.call("getFairAccess", {});
        const hasClock = fair.clock !== null && fair.clock.source !== SYSTEM;
        const [cluster, latency, clock] = await Promise.all([
          client.call("getCluster", {}), client.call("getLatency", {}), hasClock ? client.call("getClock", {}) : null,
        ]);
        this.history.add(fair, Date.now());
        this.trouble.value = null;
        this.look.value = { fair, cluster, latency, clock };
      }
    } catch (error) {
      this.trouble.value = errorText(error);
    }
    clearTimeout(this.#timer);
    if (this.#shown) this.#timer = setTimeout(() => void this.#ask(), ASK_EVERY_MS);
  }
}

interface Moment {
  atMs: number;
  delayNs: number | null;
  unfairPpm: number | null;
  releaseNs: number | null;
  publications: number;
  late: number;
  latePpm: number | null;
}

export type Measure = "delayNs" | "unfairPpm" | "releaseNs" | "latePpm";

/** The last minutes. */
export class FairHistory {
  #moments: Moment[] = [];

  add({ sequencer, release, is_sequencing }: FairAccessView, atMs: number): void {
    const { publications, late } = release ?? { publications: 0, late: 0 };
    // A replica that restarted counts from 0.
    if (publications < (this.#moments.at(-1)?.publications ?? 0)) {
      for (const moment of this.#moments) [moment.publications, moment.late] = [0, 0];
    }
    const before = this.#moments.findLast((moment) => moment.atMs <= atMs - LATE_OVER_MS) ?? this.#moments[0];
    const recent = before === undefined ? 0 : publications - before.publications;
    this.#moments.push({
      atMs,
      // Where another one leads, these are from when this one did.
      delayNs: is_sequencing ? sequencer?.delay_ns ?? null : null,
      unfairPpm: is_sequencing ? sequencer?.unfair_recent_ppm ?? null : null,
      releaseNs: release?.delay_ns ?? null, publications, late,
      latePpm: release === null || before === undefined || recent < PUBLICATIONS_MIN ? null : ((late - before.late) / recent) * 1e6,
    });
    this.#moments = this.#moments.filter((moment) => moment.atMs > atMs - KEPT_MS);
  }

  /** The share of publications that were late in the last seconds; `null` while there were none. */
  get latePpm(): number | null {
    return this.#moments.at(-1)?.latePpm ?? null;
  }

  /** For pixels: seconds, and the measure at each. Where nobody asked for a while the line is broken. */
  series(measure: Measure): [seconds: number[], values: (number | null)[]] {
    const [seconds, values]: [number[], (number | null)[]] = [[], []];
    let lastMs = Infinity;
    for (const moment of this.#moments) {
      if (moment.atMs - lastMs > GAP_MS) {
        seconds.push((lastMs + moment.atMs) / 2_000);
        values.push(null);
      }
      seconds.push(moment.atMs / 1_000);
      values.push(moment[measure]);
      lastMs = moment.atMs;
    }
    return [seconds, values];
  }
}

/** The share of market data that came too late, and of whom nothing is known: a share of nothing is no 0 %. */
export function lateWords({ judged, target_ppm }: ReleaseFigures, herePpm: number | null): { share: string; silent: string } {
  const silent = judged?.silent ?? [];
  const who = silent.length === 0 ? "" : t.fair.silent(silent.length, silent.join(", "));
  if (judged?.publications === 0) return { share: who === "" ? t.fair.notJudged : t.fair.notJudgedFor(who), silent: who };
  const share = withTarget(judged?.unfair_recent_ppm ?? herePpm, target_ppm);
  return { share: who === "" ? share : `${share}; ${who}`, silent: who };
}

/** A share, and what it is steered to. */
export function withTarget(ppm: number | null, targetPpm: number | null): string {
  const share = ppm === null ? "–" : showShare(ppm);
  return targetPpm === null ? share : t.fair.ofTarget(share, showShare(targetPpm));
}

/** One gateway, as far as this replica can tell. */
export interface GatewayRow {
  id: number;
  isHere: boolean;
  leads: boolean;
  /** Its page, where that is known and another one. */
  page: string | null;
  /** This replica's own clock; of the others only a probe mesh tells, and only how far they were off in its last window. */
  clock: { status: StampClock["status"]; boundNs: number | null } | { offNs: number } | { excluded: string } | null;
  stamps: "count" | "outlier" | "none";
  /** Taken into the hold by the leader; `null` where this replica never led. */
  figures: GatewayFigures | null;
  isLinked: boolean;
  trouble: string | null;
}

export function gatewayRows({ fair, cluster, clock }: FairLook): GatewayRow[] {
  const known = new Map((fair.sequencer?.gateways ?? []).map((figures) => [figures.gateway, figures]));
  const replicas = new Map(cluster.replicas.map((replica) => [replica.replica, replica]));
  const ids = [...new Set([...replicas.keys(), ...known.keys()])].sort((a, b) => a - b);
  return ids.map((id) => {
    const replica = replicas.get(id);
    const figures = known.get(id) ?? null;
    const isHere = id === cluster.replica;
    return {
      id, isHere, figures,
      leads: id === cluster.leader,
      page: isHere || !replica?.http ? null : `http://${replica.http}/#fair`,
      clock: isHere && fair.clock ? { status: fair.clock.status, boundNs: fair.clock.bound_ns } : clockInMesh(clock, id),
      stamps: figures === null || figures.held === figures.unstamped ? "none" : figures.is_outlier ? "outlier" : "count",
      isLinked: isHere || (replica?.is_linked ?? false),
      trouble: replica?.trouble ?? null,
    };
  });
}

function clockInMesh(clock: Clock | null, id: number): GatewayRow["clock"] {
  const excluded = clock?.mesh?.excluded.find(({ node }) => node === id);
  if (excluded) return { excluded: excluded.why };
  const residual = clock?.mesh?.peers.find(({ node }) => node === id)?.residual_ns;
  return residual == null ? null : { offNs: Math.abs(Number(residual)) };
}

/** Of so many, in parts per million; `null` of none. */
export function sharePpm(part: number, all: number): number | null {
  return all === 0 ? null : (part / all) * 1e6;
}
