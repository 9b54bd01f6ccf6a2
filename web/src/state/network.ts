// The machines of the venue as this replica sees them: replicas, leaf gateways, the relay tree. Asked for once a second while it is looked at.

import type { Cluster, FairAccess, Latency, RelayNode } from "../api/fair-types.ts";
import { fetchCluster, fetchFairAccess, fetchLatency } from "../api/rest.ts";
import { Signal } from "../base/signal.ts";

const ASK_EVERY_MS = 1_000;

export interface NetworkLook {
  cluster: Cluster;
  fair: FairAccess | null;
  latency: Latency | null;
}

export class NetworkDesk {
  /** Whether there is more than one machine to show. */
  readonly isOn = new Signal(false);
  readonly look = new Signal<NetworkLook | null>(null);
  /** Why the last question had no answer. */
  readonly trouble = new Signal<string | null>(null);
  readonly #hasFair: () => boolean;
  #shown = false;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(hasFair: () => boolean) {
    this.#hasFair = hasFair;
  }

  /** It is asked for while somebody looks at it. */
  set shown(shown: boolean) {
    if (shown === this.#shown) return;
    this.#shown = shown;
    clearTimeout(this.#timer);
    if (shown) void this.#ask();
  }

  /** Finds out whether there is anything to show; a venue that does not say has nothing. */
  async lookOnce(): Promise<void> {
    try {
      const { replicas, gateways = [], tree = null } = await fetchCluster();
      this.isOn.value = replicas.length > 1 || gateways.length > 0 || tree !== null;
    } catch {
      this.isOn.value = false;
    }
  }

  async #ask(): Promise<void> {
    try {
      if (!document.hidden) {
        const isFair = this.#hasFair();
        const [cluster, fair, latency] = await Promise.all([fetchCluster(), isFair ? fetchFairAccess() : null, isFair ? fetchLatency() : null]);
        this.trouble.value = null;
        this.look.value = { cluster, fair, latency };
      }
    } catch (error) {
      this.trouble.value = (error as Error).message;
    }
    clearTimeout(this.#timer);
    if (this.#shown) this.#timer = setTimeout(() => void this.#ask(), ASK_EVERY_MS);
  }
}

export interface Node {
  id: string;
  kind: "gateway" | "replica" | "relay" | "receiver";
  isUp: boolean;
  leads: boolean;
  isHere: boolean;
  /** For people. */
  label: string;
  /** What a relay said of itself; `undefined` where it has not been asked yet, or is none. */
  said?: RelayNode | undefined;
  /** So many nodes are drawn as this one: those for which there is no room. */
  stands: number;
}

export interface Edge {
  from: string;
  to: string;
  kind: "orders" | "cluster" | "data";
  isUp: boolean;
}

export interface Picture {
  /** From where orders come in to where market data arrives. */
  columns: Node[][];
  edges: Edge[];
}

/** More in a column do not fit side by side. */
const COLUMN_MAX = 48;
/** Beyond so many between two layers only some are drawn: every packet takes another path anyway. */
const EDGES_MAX = 240;

/** What is drawn. Pure. */
export function pictureOf({ replica: me, leader, replicas, gateways = [], tree = null }: Cluster): Picture {
  const node = (id: string, kind: Node["kind"], isUp: boolean, label: string): Node => ({ id, kind, isUp, label, leads: false, isHere: false, stands: 1 });
  const leaves = gateways.map(({ gateway, is_linked }) => node(`gateway ${gateway}`, "gateway", is_linked, String(gateway)));
  const members = replicas.map(({ replica, is_linked }) => ({ ...node(`replica ${replica}`, "replica", is_linked, String(replica)), leads: replica === leader, isHere: replica === me }));
  const relays = new Map((tree?.relays ?? []).map((relay) => [`${relay.layer} ${relay.place}`, relay]));
  const layers = (tree?.layers ?? []).map((count, layer, all) =>
    Array.from({ length: count }, (_, place) => {
      const said = relays.get(`${layer} ${place}`);
      return {
        ...node(`layer ${layer} ${place}`, layer === all.length - 1 ? "receiver" : "relay", said?.answers ?? true, `${place}`),
        said,
      };
    }));
  const columns = [leaves, members, ...layers].map(fitted);
  const top = `replica ${leader ?? me}`;
  const edges: Edge[] = [
    ...gateways.filter(({ stands_below, is_linked }) => stands_below && is_linked).map(({ gateway }) => ({ from: `gateway ${gateway}`, to: `replica ${me}`, kind: "orders" as const, isUp: true })),
    ...members.filter(({ id }) => id !== top).map(({ id, isUp }) => ({ from: id, to: top, kind: "cluster" as const, isUp })),
  ];
  const tiers = columns.slice(2);
  tiers.forEach((tier, layer) => {
    const above = layer === 0 ? columns[1]?.filter(({ id }) => id === top) ?? [] : tiers[layer - 1] ?? [];
    const each = Math.max(1, Math.floor(EDGES_MAX / Math.max(1, above.length * tier.length) * tier.length));
    above.forEach((from, place) => {
      // All of them where there is room, else those that lie nearest to it.
      const begin = Math.round((place / Math.max(1, above.length - 1)) * Math.max(0, tier.length - each));
      for (const to of tier.slice(begin, begin + each)) edges.push({ from: from.id, to: to.id, kind: "data", isUp: from.isUp && to.isUp });
    });
  });
  const drawn = new Set(columns.flat().map(({ id }) => id));
  return { columns: columns.filter((column) => column.length > 0), edges: edges.filter(({ from, to }) => drawn.has(from) && drawn.has(to)) };
}

/** What does not fit stands behind the last that does. */
function fitted(nodes: Node[]): Node[] {
  if (nodes.length <= COLUMN_MAX) return nodes;
  // Those in trouble are never among the hidden.
  const sorted = [...nodes.filter(({ isUp }) => !isUp), ...nodes.filter(({ isUp }) => isUp)].slice(0, COLUMN_MAX);
  const kept = nodes.filter((node) => sorted.includes(node));
  const last = kept.at(-1);
  return last ? [...kept.slice(0, -1), { ...last, stands: nodes.length - COLUMN_MAX + 1 }] : kept;
}
