// The machines of the venue as this replica sees them: replicas, leaf gateways, the relay tree. Asked for once a second while it is
// looked at.

import type { ClusterView, FairAccessView, Latency, RelayNode, RelayTree } from "walras";
import { client } from "../api/client.ts";
import { group, showShare, showSpan } from "../base/format.ts";
import { Signal } from "../base/signal.ts";
import { errorText } from "../texts/error-text.ts";
import { t } from "../texts/index.ts";
import { sharePpm } from "./fair-access.ts";

const ASK_EVERY_MS = 1_000;
/** Whether the venue has fair access is known a moment after the page has begun. So long is that waited for. */
const KNOWN_WITHIN_MS = 1_000;
const LOOK_AGAIN_MS = 20;

export interface NetworkLook {
  cluster: ClusterView;
  fair: FairAccessView | null;
  latency: Latency | null;
}

export class NetworkDesk {
  /** Whether there is more than one machine to show. */
  readonly isOn = new Signal(false);
  /** Whether that was found out. */
  isKnown = false;
  readonly look = new Signal<NetworkLook | null>(null);
  /** Which of the relay trees is drawn, by its place in `treesOf`. */
  readonly shownTree = new Signal(0);
  /** Why the last question had no answer. */
  readonly trouble = new Signal<string | null>(null);
  readonly #hasFair: () => boolean | null;
  readonly #begunMs = performance.now();
  #shown = false;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** `hasFair` is null as long as nobody knows. */
  constructor(hasFair: () => boolean | null) {
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
      const { replicas, gateways, tree } = await client.call("getCluster", {});
      this.isOn.value = replicas.length > 1 || gateways.length > 0 || tree !== null;
    } catch {
      this.isOn.value = false;
    }
    this.isKnown = true;
  }

  async #ask(): Promise<void> {
    const isFair = this.#hasFair();
    // Otherwise what is known of delays would come a second after the rest, and push it down.
    if (isFair === null && performance.now() - this.#begunMs < KNOWN_WITHIN_MS) {
      this.#timer = setTimeout(() => void this.#ask(), LOOK_AGAIN_MS);
      return;
    }
    try {
      if (!document.hidden) {
        const [cluster, fair, latency] = await Promise.all([
          client.call("getCluster", {}), isFair ? client.call("getFairAccess", {}) : null, isFair ? client.call("getLatency", {}) : null,
        ]);
        this.trouble.value = null;
        this.look.value = { cluster, fair, latency };
      }
    } catch (error) {
      this.trouble.value = errorText(error);
    }
    clearTimeout(this.#timer);
    if (this.#shown) this.#timer = setTimeout(() => void this.#ask(), ASK_EVERY_MS);
  }
}

/** The relay trees of the venue: none, one, or several over which its markets are spread. Pure. */
export function treesOf({ tree = null, parallel_trees: others = [] }: ClusterView): RelayTree[] {
  return tree === null ? [] : [tree, ...others];
}

/** Why packets do not go by a relay. */
export type OutBecause = NonNullable<RelayNode["out_because"]>;

/** Relays that are named; more are counted. */
const NAMED_MAX = 4;

/** As the venue says, or because it does not answer; null where packets go by it. Pure. */
function outBecause({ out_because: why, answers }: RelayNode): OutBecause | null {
  return why ?? (answers ? null : "silent");
}

/** Relays of a tree that are out, or do not answer. Pure. */
export function relaysOut({ relays }: RelayTree): { layer: number; place: number; why: OutBecause }[] {
  return relays.flatMap((relay) => {
    const why = outBecause(relay);
    return why === null ? [] : [{ layer: relay.layer, place: relay.place, why }];
  });
}

/** The same in words; empty where there are none. Pure. */
export function outWords(tree: RelayTree): string {
  const { network: words } = t;
  const out = relaysOut(tree);
  const named = out.slice(0, NAMED_MAX).map(({ layer, place, why }) => words.relayOut(String(layer), String(place), words.outBecause[why]));
  const more = out.length - named.length;
  if (named.length === 0) return "";
  return words.relaysOut([...named, ...(more === 0 ? [] : [words.count(group(String(more)))])].join("; "));
}

/** What a relay said of itself, for people; dashes where it does not answer. */
export interface RelayLine {
  key: string;
  place: string;
  /** Why packets do not go by it; empty where they do. */
  trouble: string;
  packets: string;
  /** Of these, those that came by a hedge. */
  hedges: string;
  lost: string;
  transit: string;
}

/** The relays of a tree in the venue's order. Pure. */
export function relayLines({ relays }: RelayTree): RelayLine[] {
  const { network: words } = t;
  const count = (value: number | null): string => (value === null ? "–" : group(String(value)));
  return relays.map((relay) => {
    const { layer, place, packets, by_hedge, lost, transit_ns_p50: transitNs } = relay;
    const why = outBecause(relay);
    return {
      key: `${layer} ${place}`, place: words.relayAt(String(layer), String(place)), trouble: why === null ? "" : words.outBecause[why],
      packets: count(packets), hedges: count(by_hedge), lost: count(lost), transit: transitNs === null ? "–" : showSpan(transitNs),
    };
  });
}

/** A replica, which participants may use as a gateway, for people. */
export interface ReplicaLine {
  key: string;
  name: string;
  isLinked: boolean;
  /** Orders that it passed on and the leader held, those of the leaf gateways below it among them; a dash where nothing is held. */
  orders: string;
  /** Of these, the share that left after one with a later stamp. */
  overtaken: string;
  trouble: string | null;
}

/** The replicas in the venue's order, with what the leader judged of their orders. Pure. */
export function replicaLines({ cluster, fair }: NetworkLook): ReplicaLine[] {
  const judged = new Map((fair?.sequencer?.gateways ?? []).map((figures) => [figures.gateway, figures]));
  return cluster.replicas.map(({ replica, is_linked: isLinked, trouble }) => {
    const figures = judged.get(replica);
    const share = figures === undefined ? null : sharePpm(figures.overtaken, figures.held);
    return {
      key: String(replica), name: String(replica), isLinked, orders: figures === undefined ? "–" : group(String(figures.held)),
      overtaken: share === null ? "–" : showShare(share), trouble,
    };
  });
}

/** A leaf gateway, for people. Its orders count for the replica above it: the venue has no figures of them by leaf. */
export interface LeafLine {
  key: string;
  name: string;
  isLinked: boolean;
  /** Which replica it stands below. */
  below: string;
  /** Of its participants; a dash where it stands below another replica, which alone knows. */
  sessions: string;
  trouble: string | null;
}

/** The leaf gateways in the venue's order. Pure. */
export function leafLines({ gateways = [] }: ClusterView): LeafLine[] {
  const { network: words } = t;
  return gateways.map(({ gateway, is_linked: isLinked, stands_below: isBelow, sessions, trouble }) => ({
    key: String(gateway), name: String(gateway), isLinked, below: isBelow ? words.belowHere : isLinked ? words.belowOther : "–",
    sessions: isBelow ? group(String(sessions)) : "–", trouble,
  }));
}

export interface Node {
  id: string;
  kind: "gateway" | "replica" | "relay" | "receiver";
  isUp: boolean;
  leads: boolean;
  isHere: boolean;
  /** For people. */
  label: string;
  /** Of relays and receivers, by the venue's count, which begins at 0. */
  layer: number | null;
  /** What a relay said of itself; `undefined` where it has not been asked yet, or is none. */
  said?: RelayNode | undefined;
  /** Why packets do not go by a relay. */
  out: OutBecause | null;
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

/** What is drawn, of the relay trees this one. Pure. */
export function pictureOf(cluster: ClusterView, shown: RelayTree | null = cluster.tree): Picture {
  const { replica: me, leader, replicas, gateways = [] } = cluster;
  const node = (id: string, kind: Node["kind"], isUp: boolean, label: string): Node =>
    ({ id, kind, isUp, label, layer: null, leads: false, isHere: false, out: null, stands: 1 });
  const leaves = gateways.map(({ gateway, is_linked }) => node(`gateway ${gateway}`, "gateway", is_linked, String(gateway)));
  const members = replicas.map(({ replica, is_linked }) => ({
    ...node(`replica ${replica}`, "replica", is_linked, String(replica)), leads: replica === leader, isHere: replica === me,
  }));
  const relays = new Map((shown?.relays ?? []).map((relay) => [`${relay.layer} ${relay.place}`, relay]));
  const layers = (shown?.layers ?? []).map((count, layer, all) =>
    Array.from({ length: count }, (_, place) => {
      const said = relays.get(`${layer} ${place}`);
      const out = said ? outBecause(said) : null;
      return {
        ...node(`layer ${layer} ${place}`, layer === all.length - 1 ? "receiver" : "relay", out === null, `${place}`),
        layer,
        said,
        out,
      };
    }));
  const columns = [leaves, members, ...layers].map(fitted);
  const top = `replica ${leader ?? me}`;
  const edges: Edge[] = [
    ...gateways.filter(({ stands_below, is_linked }) => stands_below && is_linked)
      .map(({ gateway }) => ({ from: `gateway ${gateway}`, to: `replica ${me}`, kind: "orders" as const, isUp: true })),
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
  return {
    columns: columns.filter((column) => column.length > 0), edges: edges.filter(({ from, to }) => drawn.has(from) && drawn.has(to)),
  };
}

/** What stands above each column: what it is, and how many. Where relays are in several layers, the layer has its number. Pure. */
export function headsOf({ columns }: Picture): string[] {
  const { network: words } = t;
  const isLayered = columns.filter(([first]) => first?.kind === "relay").length > 1;
  const names = { gateway: words.leafGateways, replica: words.replicasHead, relay: words.relaysOne, receiver: words.receivers };
  return columns.map((column) => {
    const [first] = column;
    const count = group(String(column.reduce((sum, { stands }) => sum + stands, 0)));
    if (first === undefined) return "";
    return first.kind === "relay" && isLayered ? words.relays(String(first.layer), count) : `${names[first.kind]} ${count}`;
  });
}

/** What one node is called. Pure. */
export function nameOf({ kind, label, layer }: Node): string {
  const { network: { nodes } } = t;
  return kind === "relay" ? nodes.relay(String(layer), label) : nodes[kind](label);
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
