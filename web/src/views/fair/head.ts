// The head of the fair-access view: which replica this is, how long orders and market data wait, and what comes of it.

import type { StampClock } from "walras";
import { byId, h, setText } from "../../base/dom.ts";
import { group, showSpan } from "../../base/format.ts";
import { type FairLook, lateWords, withTarget } from "../../state/fair-access.ts";
import type { Venue } from "../../state/venue.ts";
import { t } from "../../texts/index.ts";
import { shownView } from "../view-tabs.ts";

export const CLOCK_WORDS: Record<StampClock["status"], string> = t.fair.clocks;
const said = t.fair;

export function fairHeadView(venue: Venue): void {
  const { fair: desk } = venue;
  const who = h("span.who", { id: "fair-who" }, "–");
  const does = h("span.phase", { id: "fair-does" });
  const delay = h("span.last", { id: "fair-delay" }, "–");
  const under = h("span.change.muted", { id: "fair-delay-words" });
  const facts = {
    unfair: h("dd", { id: "fair-unfair" }), held: h("dd"), release: h("dd", { id: "fair-release" }),
    late: h("dd", { id: "fair-late" }), clock: h("dd", { id: "fair-clock" }),
  };
  const fact = (name: string, value: HTMLElement, title: string): HTMLElement => h("div", { title }, h("dt", {}, name), value);
  const words = h("p.fair-words", { id: "fair-words" });
  const trouble = h("p.sell", { id: "fair-trouble", role: "status", hidden: true });
  byId("fair-head").append(
    h("div.picker", {}, who, h("span.sub", {}, does)),
    h("div.price", {}, h("span", {}, h("span.sr", {}, said.ordersWait), delay), under),
    h("dl.facts", {},
      fact(said.unfair, facts.unfair, said.unfairTitle),
      fact(said.held, facts.held, said.heldTitle),
      fact(said.release, facts.release, said.releaseTitle),
      fact(said.late, facts.late, said.lateTitle),
      fact(said.clock, facts.clock, said.clockTitle)),
    words, trouble,
  );

  const draw = (): void => {
    trouble.hidden = desk.trouble.value === null;
    setText(trouble, desk.trouble.value === null ? "" : said.trouble(desk.trouble.value));
    const look = desk.look.value;
    if (!look) return;
    const { fair: { clock, sequencer, release, is_sequencing }, cluster } = look;
    setText(who, said.replica(String(cluster.replica)));
    does.dataset["phase"] = is_sequencing ? "open" : "passes";
    setText(does, doesWords(look));
    setText(delay, sequencer ? showSpan(sequencer.delay_ns) : said.off);
    setText(under, sequencer
      ? is_sequencing ? said.hold : said.wasHold
      : said.asTheyCome);
    setText(facts.unfair, sequencer ? withTarget(sequencer.unfair_recent_ppm, sequencer.target_ppm) : "–");
    setText(facts.held, sequencer ? group(String(sequencer.held)) : "–");
    setText(facts.release, release ? showSpan(release.delay_ns) : said.notAtAll);
    setText(facts.late, release ? lateWords(release, desk.history.latePpm).share : "–");
    setText(facts.clock, clock ? `${CLOCK_WORDS[clock.status]}${clock.bound_ns === null ? "" : `, ± ${showSpan(clock.bound_ns)}`}` : "–");
    words.replaceChildren(...explain(look));
    if (shownView.value === "fair") document.title = sequencer ? `d_s ${showSpan(sequencer.delay_ns)} · Walras` : `${said.title} · Walras`;
  };
  desk.look.watch(draw);
  desk.trouble.watch(draw);
  shownView.watch(draw);
}

function doesWords({ fair: { is_sequencing, gateway }, cluster: { leader, replica } }: FairLook): string {
  if (is_sequencing) return said.leadsHere;
  const to = gateway?.leader ?? leader;
  if (to === null) return said.nobody;
  return to === replica ? said.leads : said.passes(String(to));
}

function explain({ fair: { sequencer, release, is_sequencing }, cluster: { leader, replicas } }: FairLook): Node[] {
  const nodes: Node[] = [];
  const say = (...parts: (string | Node)[]): void =>
    void nodes.push(...parts.map((part) => (typeof part === "string" ? document.createTextNode(part) : part)));
  if (sequencer && !is_sequencing) {
    const page = replicas.find(({ replica }) => replica === leader)?.http;
    say(said.old);
    if (leader !== null)
      say(
        said.now,
        page ? h("a", { href: `http://${page}/#fair` }, said.nowReplica(String(leader))) : said.nowReplica(String(leader)),
        said.nowSequences,
      );
  }
  if (sequencer?.target_ppm === null) say(said.fixed);
  if (!sequencer) say(said.notHeld);
  if (!release) say(said.notReleased);
  else if (release.late > 0) say(said.wereLate(release.publications, release.late, showSpan(release.late_ns_max)));
  else say(said.inTime(release.publications));
  const silent = release?.judged?.silent ?? [];
  if (silent.length > 0) say(said.silentText(said.silentStart(silent.length, silent.join(", "))));
  for (const replica of release?.judged?.outliers ?? []) say(said.outlierText(String(replica)));
  return nodes;
}
