// The head of the network view: who leads, the window in which market data has to arrive, what receivers ask for again, and what is
// unfair all the same.

import type { RelayTree } from "walras";
import { byId, h, setText } from "../../base/dom.ts";
import { group, showSpan } from "../../base/format.ts";
import { lateWords, withTarget } from "../../state/fair-access.ts";
import { treesOf } from "../../state/network.ts";
import type { Venue } from "../../state/venue.ts";
import { t } from "../../texts/index.ts";
import { shownView } from "../view-tabs.ts";

export function networkHeadView(venue: Venue): void {
  const words = t.network;
  const { network: desk } = venue;
  const who = h("span.who", { id: "network-who" }, "–");
  const window = h("span.last", { id: "network-window" }, "–");
  const under = h("span.change.muted");
  const dd = (id: string): HTMLElement => h("dd", { id: `network-${id}` }, "–");
  const facts = {
    replicas: dd("replicas"),
    gateways: dd("gateways"),
    copies: dd("copies"),
    packets: dd("packets"),
    asked: dd("asked"),
    delivered: dd("delivered"),
    unfair: dd("unfair"),
    matching: dd("matching"),
    late: dd("late"),
    receivers: dd("receivers-late"),
  };
  const fact = (name: string, value: HTMLElement, title: string): HTMLElement => h("div", { title }, h("dt", {}, name), value);
  const trouble = h("p.sell", { id: "network-trouble", role: "status", hidden: true });
  byId("network-head").append(
    h("div.picker", {}, who, h("span.sub", {}, words.window)),
    h("div.price", {}, window, under),
    h(
      "dl.facts",
      {},
      fact(words.replicas, facts.replicas, words.replicasTitle),
      fact(words.gateways, facts.gateways, words.gatewaysTitle),
      fact(words.copies, facts.copies, words.copiesTitle),
      fact(words.packets, facts.packets, words.packetsTitle),
      fact(words.asked, facts.asked, words.askedTitle),
      fact(words.delivered, facts.delivered, words.deliveredTitle),
      fact(words.unfair, facts.unfair, words.unfairTitle),
      fact(words.matching, facts.matching, words.matchingTitle),
      fact(words.lateData, facts.late, words.lateDataTitle),
      fact(words.latePackets, facts.receivers, words.latePacketsTitle),
    ),
    trouble,
  );
  const draw = (): void => {
    trouble.hidden = desk.trouble.value === null;
    setText(trouble, desk.trouble.value === null ? "" : words.trouble(desk.trouble.value));
    const look = desk.look.value;
    if (!look || shownView.value !== "network") return;
    const { cluster, fair } = look;
    const { leader, replicas, gateways = [] } = cluster;
    // Of all relay trees together: each carries some of the markets.
    const trees = treesOf(cluster);
    const total = (of: (tree: RelayTree) => number): string =>
      (trees.length === 0 ? "–" : group(String(trees.reduce((sum, tree) => sum + of(tree), 0))));
    setText(who, leader === null ? words.nobody : words.leading(String(leader)));
    setText(window, fair?.release ? showSpan(fair.release.delay_ns) : words.windowOff);
    window.classList.toggle("quiet", !fair?.release);
    setText(under, fair?.release ? words.windowWords : "");
    const of = (up: number, all: number): string => (all === 0 ? "–" : `${group(String(up))} / ${group(String(all))}`);
    const linked = replicas.filter(({ is_linked }) => is_linked).length;
    const linkedLeaves = gateways.filter(({ is_linked }) => is_linked).length;
    setText(facts.replicas, of(linked, replicas.length));
    facts.replicas.classList.toggle("sell", linked < replicas.length);
    setText(facts.gateways, of(linkedLeaves, gateways.length));
    facts.gateways.classList.toggle("sell", linkedLeaves < gateways.length);
    setText(facts.copies, trees[0] ? String(trees[0].hedge + 1) : "–");
    setText(facts.packets, total(({ packets }) => packets));
    setText(facts.asked, total(({ asked }) => asked));
    const lastLayers = trees.flatMap(({ delivery }) => delivery?.slice(-1) ?? []);
    const windows = lastLayers.flatMap(({ window_ns: windowNs }) => windowNs ?? []);
    setText(facts.delivered, windows.length === 0 ? "–" : showSpan(Math.max(...windows)));
    setText(facts.unfair, fair?.sequencer ? withTarget(fair.sequencer.unfair_recent_ppm, fair.sequencer.target_ppm) : "–");
    const matching = fair?.sequencer?.unfairly_matched_recent_ppm;
    setText(facts.matching, matching === undefined ? "–" : withTarget(matching, null));
    setText(facts.late, fair?.release ? lateWords(fair.release, null).share : "–");
    const latePackets = lastLayers.reduce((sum, { late }) => sum + late, 0);
    setText(facts.receivers, lastLayers.length === 0 ? "–" : group(String(latePackets)));
    facts.receivers.classList.toggle("sell", latePackets > 0);
    const reports = fair?.release?.judged?.receivers;
    facts.receivers.title = reports === undefined ? "" : words.lateSamples(group(String(reports.late)), group(String(reports.samples)));
    document.title = `${words.title} · Walras`;
  };
  desk.look.watch(draw);
  desk.trouble.watch(draw);
  shownView.watch(draw);
}
